/**
 * Which host names mean this machine itself, as a URL or a `Host` header spells them. Only there may an
 * address be plain http, and a server bound there answers to no other name.
 */
export const isLoopback = (hostname: string): boolean =>
  hostname === "localhost" || hostname === "[::1]" || /^127\.\d{1,3}\.\d{1,3}\.\d{1,3}$/.test(hostname)
