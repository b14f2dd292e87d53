/**
 * A secret that the service repeats must not reach this machine's disk or terminal. Every string, number and
 * key of an answer is cleaned, except its records; every other byte stays, and a body without secrets is
 * returned as it came. A body that is not JSON is searched as text.
 */
import { isUtf8 } from "node:buffer"
import { blanked, makeKnownSecrets, type Grade, type KnownSecrets, type Place } from "./KnownSecrets.ts"
import { measureLargeBody, secretCharactersMax } from "../service/BodyBounds.ts"

// The strings, numbers and words of a JSON text with their places, without parsing it into values, so that
// one token can be replaced while all others keep their spelling. Depth takes no stack.

interface JsonToken<Around> {
  readonly from: number
  readonly to: number
  /** What the keys around it say; a key is in the object that it belongs to. */
  readonly around: Around
  readonly isKey: boolean
}

/** What is known at the top, and what a key adds for everything below it. Lists add nothing. */
interface Surroundings<Around> {
  readonly top: Around
  readonly below: (around: Around, key: string) => Around
}

/** Where the string that begins at `from` ends, quote included; by hand, since a pattern overflows. */
const stringEnd = (text: string, from: number): number => {
  for (let at = from + 1; at < text.length; at++) {
    const unit = text.charCodeAt(at)
    if (unit === backslash) at++
    else if (unit === quote) return at + 1
  }
  return text.length
}

const quote = 0x22
const backslash = 0x5c
const marks: ReadonlySet<number> = new Set(Buffer.from(',:"[]{}'))
/** What ends a number or a word. */
const endsWord = (unit: number): boolean => unit <= 0x20 || marks.has(unit)

/** The value of a JSON string; only escapes need a parser. */
const stringValue = (source: string): string =>
  source.includes("\\") ? String(JSON.parse(source)) : source.slice(1, -1)

/** Where the string, number or word at `from` ends; `from` if there is none. */
const valueEnd = (text: string, from: number): number => {
  if (text.charCodeAt(from) === quote) return stringEnd(text, from)
  let at = from
  while (at < text.length && !endsWord(text.charCodeAt(at))) at++
  return at
}

/** Where the outermost object's member ends whose value begins after `from`: at a comma or the end. */
const memberEnd = (text: string, from: number): number => {
  let depth = 0
  let at = from
  for (; at < text.length; at = text[at] === '"' ? stringEnd(text, at) : at + 1) {
    const character = text[at]
    if (depth === 0 && character === ",") break
    if (character === "{" || character === "[") depth += 1
    else if (character === "}" || character === "]") depth -= 1
  }
  return at
}

interface Level<Around> {
  readonly outer: Level<Around> | undefined
  readonly around: Around
  readonly isObject: boolean
}

/** All tokens except one top-level key, `skipped`, and those of its values, which may be most of the text. */
export function* jsonTokens<Around>(
  text: string,
  { top, below }: Surroundings<Around>,
  skipped?: string,
): Generator<JsonToken<Around>> {
  let level: Level<Around> | undefined
  /** The object whose key comes next, if one does. */
  let awaiting: Level<Around> | undefined
  let around = top
  for (let at = 0; at < text.length;) {
    const character = text[at]
    const to = valueEnd(text, at)
    if (to > at && awaiting !== undefined) {
      const key = stringValue(text.slice(at, to))
      around = below(awaiting.around, key)
      const isSkipped = awaiting.outer === undefined && key === skipped
      if (!isSkipped) yield { from: at, to, around: awaiting.around, isKey: true }
      awaiting = undefined
      at = isSkipped ? memberEnd(text, to) : to
      continue
    }
    if (to > at) yield { from: at, to, around, isKey: false }
    else if (character === "{" || character === "[") {
      level = { outer: level, around, isObject: character === "{" }
      awaiting = character === "{" ? level : undefined
    } else if (character === "}" || character === "]") {
      around = level?.around ?? top
      level = level?.outer
    } else if (character === ",") awaiting = level?.isObject === true ? level : undefined
    at = Math.max(to, at + 1)
  }
}

// The rule for each place in an answer of the service. A field that is not named here, documented or not, is
// `free`.

/** Everything in them is secret (2.6), known before or not. */
const secretFields: ReadonlySet<string> = new Set(["ticket", "session_token", "token_key"])

/** 2.4 and 7: what is repeated of a refused login value, which the job may no longer have. */
const refusals: ReadonlySet<string> = new Set(["parameters_errors", "payload_errors"])
const repeated: ReadonlySet<string> = new Set(["input", "ctx"])

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
interface Spot {
  /** What kind of secret one of them names. */
  readonly secret: Grade | undefined
  /** Whether one of them names refused login values. */
  readonly isRefusal: boolean
  readonly place: Place
  /** The innermost. */
  readonly key: string
}

const secretBelow = ({ secret, isRefusal }: Spot, key: string): Grade | undefined => {
  if (secretFields.has(key)) return "process"
  return isRefusal && repeated.has(key) ? (secret ?? "login") : secret
}

const placeBelow = (place: Place, key: string): Place => {
  if (place === "echo" || echoing.has(key)) return "echo"
  if (place === "word" || wordFields.has(key)) return "word"
  return idFields.has(key) ? "id" : "free"
}

const spots: Surroundings<Spot> = {
  top: { secret: undefined, isRefusal: false, place: "free", key: "" },
  below: (around, key) => ({
    secret: secretBelow(around, key),
    isRefusal: around.isRefusal || refusals.has(key),
    place: placeBelow(around.place, key),
    key,
  }),
}

/** A key is not an id, wherever it is. */
const placeOf = ({ around, isKey }: JsonToken<Spot>): Place =>
  isKey && around.place === "id" ? "free" : around.place

const dateTime = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}[\d:.]*(?:Z|[+-]\d{2}:?\d{2})?$/

/** A date in a date field: it may be somebody's date of birth by chance. */
const isDate = ({ around, isKey }: JsonToken<Spot>, text: string): boolean =>
  !isKey && dateTime.test(text) && /^date(?:_|$)|_date$|_expires$|_at$/.test(around.key)

export interface Cleaning {
  /** The top-level field of records, in which nothing is ever blanked; `body`: the whole body is records. */
  readonly records?: string | undefined
  /** One rule for all of it, if the answer does not belong to a login: an engine's form. */
  readonly place?: Place
  /** The text of the bytes, if it was parsed already: a large body is not read twice. */
  readonly text?: string | undefined
}

/** Shorter ones are words; they are blanked in their own field and nowhere else. */
const ticketMin = 8
/** An answer issues one or two; the spellings of many would fill memory and take minutes. */
const issuedMax = 16

/** What some servers begin a text with, though JSON has no such mark. */
const byteOrderMark = Buffer.from("\ufeff")
const beginsWithMark = (bytes: Uint8Array): boolean => byteOrderMark.every((byte, at) => bytes[at] === byte)

export const cleanBody = (bytes: Uint8Array, known: KnownSecrets, cleaning: Cleaning = {}): Uint8Array => {
  const mark = beginsWithMark(bytes) ? byteOrderMark.length : 0
  const json = readJson(bytes.subarray(mark), cleaning.text)
  if (json === undefined) return cleanText(bytes, known)
  if (cleaning.records === "body") return bytes
  const kept = cleanJson(json, known, cleaning)
  if (kept === json.text) return bytes
  const rest = Buffer.from(kept, json.encoding)
  return mark === 0 ? rest : Buffer.concat([bytes.subarray(0, mark), rest])
}

/** Valid JSON whose text represents its bytes one to one. */
interface JsonBody {
  readonly text: string
  /** Bytes that are not UTF-8 are read one by one: what makes JSON of them is ASCII. */
  readonly encoding: "utf8" | "latin1"
}

const readJson = (bytes: Uint8Array, parsed: string | undefined): JsonBody | undefined => {
  const encoding = isUtf8(bytes) ? "utf8" : "latin1"
  if (parsed !== undefined && encoding === "utf8") return { text: parsed, encoding }
  // What must not be parsed is searched as text.
  if (measureLargeBody(bytes).broken !== undefined) return undefined
  try {
    const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString(encoding)
    JSON.parse(text)
    return { text, encoding }
  } catch {
    return undefined
  }
}

/** The text itself if there is no secret in it. */
const cleanJson = (
  { text, encoding }: JsonBody,
  known: KnownSecrets,
  { records, place }: Cleaning,
): string => {
  const isIssuing = issuing.test(text)
  if (!isIssuing && !known.mayConcern(withoutEscapes(text))) return text
  const cleaners = isIssuing ? [...issuedIn(text, records), known] : [known]
  const pieces: Array<string> = []
  let copied = 0
  let keys = 0
  for (const token of jsonTokens(text, spots, records)) {
    const source = text.slice(token.from, token.to)
    const cleaned =
      token.around.secret !== undefined
        ? JSON.stringify(blanked)
        : cleanToken(token, source, cleaners, place ?? placeOf(token))
    if (cleaned === source) continue
    const kept = encoding === "latin1" ? inOneByteEach(cleaned) : cleaned
    // Two blanked keys of one map must not become equal: the second would hide the first one's count.
    if (token.isKey) keys += 1
    pieces.push(text.slice(copied, token.from), token.isKey && keys > 1 ? numbered(kept, keys) : kept)
    copied = token.to
  }
  return copied === 0 ? text : pieces.join("") + text.slice(copied)
}

const escapes = /\\(?:u([0-9A-Fa-f]{4})|(.))/g

/** A JSON text with its strings as they read: no JSON any more, only to be searched. */
const withoutEscapes = (text: string): string =>
  text.includes("\\")
    ? text.replaceAll(escapes, (_, code?: string, unit = "") =>
        code === undefined ? (controls[unit] ?? unit) : String.fromCharCode(Number.parseInt(code, 16)),
      )
    : text

const controls: Readonly<Record<string, string>> = { b: "\b", f: "\f", n: "\n", r: "\r", t: "\t" }

/** A JSON string whose escapes stood for characters of more than a byte keeps them as escapes. */
const inOneByteEach = (source: string): string =>
  source.replaceAll(/[^\0-\u00ff]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`)

const numbered = (key: string, count: number): string => `${key.slice(0, -1)} ${count}"`

/** The name of a secret field, or an escape of one of its characters. */
const issuing = /"(?:ticket|session_token|token_key|input|ctx)"|\\u00[567]/

/** What this answer issues or repeats; it may do so elsewhere, too, and nobody has registered it. */
const issuedIn = (text: string, records: string | undefined): ReadonlyArray<KnownSecrets> => {
  const values = new Map<string, Grade>()
  for (const { from, to, around, isKey } of jsonTokens(text, spots, records)) {
    if (isKey || around.secret === undefined) continue
    const value = readText(text.slice(from, to))
    const least = around.secret === "process" ? ticketMin : 1
    // A value longer than any ticket is blanked in its own field.
    if (value.length >= least && value.length <= secretCharactersMax) values.set(value, around.secret)
    if (values.size === issuedMax) break
  }
  const issued = makeKnownSecrets()
  for (const [value, grade] of values) issued.hold(value, grade)
  return [issued]
}

const isText = (source: string): boolean => source[0] === '"'
/** A string's value; a number or a word as it is written. */
const readText = (source: string): string => (isText(source) ? stringValue(source) : source)

const cleanToken = (
  token: JsonToken<Spot>,
  source: string,
  cleaners: ReadonlyArray<KnownSecrets>,
  place: Place,
): string => {
  if (!isText(source))
    return cleaners.some((known) => known.isSecretNumber(source, place)) ? JSON.stringify(blanked) : source
  const value = stringValue(source)
  if (place !== "echo" && isDate(token, value)) return source
  const kept = cleaners.reduce((text, known) => known.clean(text, place), value)
  return kept === value ? source : JSON.stringify(kept)
}

const secretField = /"(?:ticket|session_token|token_key)"\s{0,64}:\s{0,64}/g

/** Blanks their values, each found by hand: a pattern over a value of some megabytes overflows the stack. */
const withoutSecretFields = (text: string): string => {
  const pieces: Array<string> = []
  let copied = 0
  for (const { 0: field, index } of text.matchAll(secretField)) {
    const from = index + field.length
    const to = valueEnd(text, from)
    if (to === from) continue
    pieces.push(text.slice(copied, from), JSON.stringify(blanked))
    copied = to
  }
  return pieces.join("") + text.slice(copied)
}

/** Bytes are searched as Latin-1, so that those around an occurrence stay unchanged, UTF-8 or not. */
const cleanText = (bytes: Uint8Array, known: KnownSecrets): Uint8Array => {
  const text = Buffer.from(bytes).toString("latin1")
  const kept = known.clean(withoutSecretFields(text), "echo")
  return kept === text ? bytes : Buffer.from(kept, "latin1")
}

// Cleans values that this program writes itself: facts, summaries, reports. Every string and key is cleaned,
// except those under keys that the caller keeps.

const none: ReadonlySet<string> = new Set()

export const cleanValue = (
  value: unknown,
  known: KnownSecrets,
  place: Place,
  keptKeys: ReadonlySet<string> = none,
): unknown => {
  if (typeof value === "string") return known.clean(value, place)
  if (Array.isArray(value)) return value.map((item) => cleanValue(item, known, place, keptKeys))
  if (typeof value !== "object" || value === null) return value
  let blankedKeys = 0
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]): [string, unknown] => {
      if (keptKeys.has(key)) return [key, inner]
      const clean = known.clean(key, place)
      if (clean !== key) blankedKeys += 1
      const named = clean !== key && blankedKeys > 1 ? `${clean} ${blankedKeys}` : clean
      return [named, cleanValue(inner, known, place, keptKeys)]
    }),
  )
}
