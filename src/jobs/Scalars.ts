/**
 * The single values of a job file, each with its rule and the message for breaking it: strings, durations,
 * URLs, references, names, times. A rule's message never contains the value. `${NAME}` is replaced before
 * these rules apply, but editors still see it, so their patterns allow it.
 */
import { idCharactersMax, withoutEnd } from "../service/BodyBounds.ts"
import type { Duration } from "effect"
import { Schema } from "effect"
import { judgeCustomerId } from "./PersonalData.ts"
import { parseReference } from "./Reference.ts"
import { durationPattern, isDurationWithin, isLoopback, toDuration } from "../base/Text.ts"

/** What an editor checks as the value is typed: the rule, or anything with `${` in it. */
const editorPattern = (pattern: string) => () => ({ pattern: `^(?:${pattern})$|\\$\\{` })

/** A text by its rule, in words for who breaks it and as a pattern for editors. */
export const ruled = (fits: (value: string) => boolean, expected: string, pattern: string) =>
  Schema.String.check(Schema.makeFilter(fits, { expected, toJsonSchema: editorPattern(pattern) }))

const idRule = `at most ${idCharactersMax} characters`
export const isIdTooLong = (id: string): boolean => id.length > idCharactersMax
export const idTooLong = (id: string): string => `expected ${idRule}, got ${id.length}`

export const text = Schema.String.check(Schema.isMinLength(1, { expected: "a non-empty string" }))

export const jobName = ruled(
  (value) => /^[a-z0-9-]{1,64}$/.test(value),
  "a name of a-z, 0-9 and -, at most 64 characters",
  "[a-z0-9-]{1,64}",
)

/** Written as `80%`; at most 100. */
export const percent = (minimum: 0 | 1) =>
  Schema.String.check(
    Schema.isPattern(minimum === 0 ? /^(?:\d{1,2}|100)%$/ : /^(?:[1-9]\d?|100)%$/, {
      expected: `a percentage from "${minimum}%" to "100%"`,
    }),
  )

/** A duration within limits, both included. */
export const duration = (minimum: Duration.Input, maximum: Duration.Input) =>
  toDuration(
    ruled(
      isDurationWithin({ minimum, maximum }),
      `a duration from ${String(minimum)} to ${String(maximum)}: a number and a unit ` +
        "(millis, seconds, minutes, hours, days)",
      durationPattern,
    ),
  )

/**
 * Whether nobody on the way can read what is sent there. Plain http only to hosts of this very machine. Names
 * under `localhost` are not included: the network decides how they resolve.
 */
export const isSafeAddress = (url: URL): boolean =>
  url.hostname !== "" &&
  url.username === "" &&
  url.password === "" &&
  (url.protocol === "https:" || (url.protocol === "http:" && isLoopback(url.hostname)))

/**
 * A URL that the secret may be sent to, without its trailing slash; undefined if it is not one.
 */
export const parseServiceUrl = (value: string): string | undefined => {
  const url = URL.parse(value)
  if (url === null || !isSafeAddress(url) || /[?#\s]/.test(value)) return undefined
  return withoutEnd(url.href, "/")
}

/** A path from the root of a host, such as the one of the reference's local flow server: `/api/flows`. */
const isPath = (value: string): boolean => /^\/(?![/\\])[^?#\s\\]*$/.test(value)

/** The same, but a path alone means one on the host of `base_url`. */
export const parseUrlBeside = (base_url: string, value: string): string | undefined =>
  parseServiceUrl(isPath(value) ? new URL(value, base_url).href : value)

export const serviceUrlRule =
  "an https:// address without user, query or fragment (plain http only to this machine)"

export const serviceUrl = ruled(
  (value) => parseServiceUrl(value) !== undefined,
  serviceUrlRule,
  "https?://.+",
)

export const pathRule = ", or a path on base_url's host, such as /api/flows"

export const urlBeside = ruled(
  (value) => isPath(value) || parseServiceUrl(value) !== undefined,
  serviceUrlRule + pathRule,
  "https?://.+|/(?:[^/].*)?",
)

export const reference = ruled(
  (value) => parseReference(value, "") !== undefined,
  "env:NAME, file:PATH or exec:COMMAND: a secret is never written into a job file",
  "(?:env:[A-Za-z_][A-Za-z0-9_]*|(?:file|exec):.+)",
)

export const deadline = ruled(
  (value) => /^(?:[01][0-9]|2[0-3]):[0-5][0-9]$/.test(value),
  'a time of day as "HH:MM", from "00:00" to "23:59"',
  "(?:[01][0-9]|2[0-3]):[0-5][0-9]",
)

const isTimezone = (value: string): boolean => {
  if (!/^[A-Za-z]/.test(value)) return false
  try {
    return new Intl.DateTimeFormat("en", { timeZone: value }).resolvedOptions().timeZone !== ""
  } catch {
    return false
  }
}

export const timezone = Schema.String.check(
  Schema.makeFilter(isTimezone, { expected: "the IANA name of a time zone, such as Europe/Madrid" }),
)

export const personalDataReason = (kind: string): string =>
  `a customer_id without personal data: this is ${kind}, and the service stores the id, repeats it on ` +
  "every event and may put it into webhook addresses (reference, 4.1)"

/** An id of somebody else's system; whatever it is, its length has a limit. */
export const externalId = text.check(Schema.isMaxLength(idCharactersMax, { expected: idRule }))

export const customerId = externalId.check(
  Schema.makeFilter((value: string) => {
    const verdict = judgeCustomerId(value)
    return verdict._tag === "Certain" ? `expected ${personalDataReason(verdict.kind)}` : undefined
  }),
)
