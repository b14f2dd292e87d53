/**
 * Which host names mean this machine itself, as written in a URL or a `Host` header. Only these may use
 * plain http, and a server bound to one answers to no other name.
 */
export const isLoopback = (hostname: string): boolean =>
  hostname === "localhost" || hostname === "[::1]" || /^127\.\d{1,3}\.\d{1,3}\.\d{1,3}$/.test(hostname)
