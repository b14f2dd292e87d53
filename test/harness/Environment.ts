/**
 * What a program under test is given of our environment. A day begins where it runs, because dates decide what a second
 * `run` does: at 2,000 times the speed half a second of loading lasts 17 minutes, and a midnight in between would begin
 * another night.
 */

/** A zone in which it is between 00:00 and 01:00 now. */
export const zoneWhereDayBegins = (now = new Date()): string => {
  const hour = now.getUTCHours()
  const behind = hour <= 12 ? hour : hour - 24
  return `Etc/GMT${behind < 0 ? behind : `+${behind}`}`
}

/** Chosen once, for the tests themselves as well: they fold days as the program does. */
export const timezone = (process.env["TZ"] ??= zoneWhereDayBegins())

/** Where Node keeps what it compiled (`vitest.config.ts`): it changes what a start costs, and nothing else. */
const compiled = process.env["NODE_COMPILE_CACHE"]

export const plainEnvironment: Readonly<Record<string, string>> = {
  PATH: process.env["PATH"] ?? "",
  TZ: timezone,
  ...(compiled === undefined ? {} : { NODE_COMPILE_CACHE: compiled }),
}
