/**
 * The rule for each place in an answer of the service. A field that is not named here, documented or not, is
 * `free`.
 */
import type { JsonToken, Surroundings } from "./JsonTokens.ts"
import type { Place } from "./KnownSecrets.ts"

/** Everything in them is secret (2.6), known before or not. */
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

/** Requests are made with them, and they tell states apart. */
const idFields: ReadonlySet<string> = new Set([
  "execution_id",
  "session_id",
  "external_execution_id",
  "app_id",
  "token_id",
])

/** What the keys around a token say. */
export interface Spot {
  /** Whether one of them names a secret. */
  readonly isSecret: boolean
  readonly place: Place
  /** The innermost. */
  readonly key: string
}

const placeBelow = (place: Place, key: string): Place => {
  if (place === "echo" || echoing.has(key)) return "echo"
  if (place === "word" || wordFields.has(key)) return "word"
  return idFields.has(key) ? "id" : "free"
}

export const spots: Surroundings<Spot> = {
  top: { isSecret: false, place: "free", key: "" },
  below: ({ isSecret, place }, key) => ({
    isSecret: isSecret || secretFields.has(key),
    place: placeBelow(place, key),
    key,
  }),
}

/** A key is not an id, wherever it is. */
export const placeOf = ({ around, isKey }: JsonToken<Spot>): Place =>
  isKey && around.place === "id" ? "free" : around.place

const dateTime = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}[\d:.]*(?:Z|[+-]\d{2}:?\d{2})?$/

/** A date in a date field: it may be somebody's date of birth by chance. */
export const isDate = ({ around, isKey }: JsonToken<Spot>, text: string): boolean =>
  !isKey && dateTime.test(text) && /^date(?:_|$)|_date$|_expires$|_at$/.test(around.key)
