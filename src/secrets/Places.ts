/**
 * Which rule a place in an answer of the service has. Denied by default: a field that is not named here,
 * documented or not, is `free`.
 */
import { pathKeysMax } from "./JsonTokens.ts"
import type { Place } from "./KnownSecrets.ts"

/** Whatever stands in them is secret (2.6), known before or not. */
const secretFields: ReadonlySet<string> = new Set(["ticket", "session_token", "token_key"])

/** Sections 2.4 and 7: where the service repeats what it was sent, or talks about it. */
const echoing: ReadonlySet<string> = new Set(["input", "ctx", "msg", "message", "status_message", "detail"])

/** Codes and names of sections 2 and 3 that are compared with the reference's words, and counted families. */
const wordFields: ReadonlySet<string> = new Set([
  "status",
  "status_code",
  "status_reason",
  "authentication_status",
  "products_count",
  "features",
  "retrieved_features",
])

/** Requests are made with them, and states are told apart by them. */
const idFields: ReadonlySet<string> = new Set([
  "execution_id",
  "session_id",
  "external_execution_id",
  "app_id",
  "token_id",
])

type Path = ReadonlyArray<string>

/** The field that holds a secret, if the place is in one. */
export const isSecretPlace = (path: Path): boolean => path.some((key) => secretFields.has(key))

/**
 * Where a path is too long to be known whole, an echo is assumed. A key that only names the place is the
 * service's own word; keys below it may be echoes as well.
 */
export const placeOf = (path: Path, isKey: boolean): Place => {
  const inside = isKey ? path.slice(0, -1) : path
  if (path.length >= pathKeysMax - 1 || inside.some((key) => echoing.has(key))) return "echo"
  if (inside.some((key) => wordFields.has(key))) return "word"
  const last = inside.at(-1)
  return !isKey && last !== undefined && idFields.has(last) ? "id" : "free"
}

const dateTime = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}[\d:.]*(?:Z|[+-]\d{2}:?\d{2})?$/

/** A date in a field of dates: somebody's date of birth may stand in it by chance. */
export const isDate = (path: Path, text: string): boolean =>
  dateTime.test(text) && /^date(?:_|$)|_date$|_expires$|_at$/.test(path.at(-1) ?? "")
