/**
 * A secret that the service repeats must not reach this machine's disk or terminal. Every string, number and
 * key of an answer is cleaned, except its records. Only the tokens concerned are rewritten: every other byte
 * stays, including numbers, duplicate keys and white space; a body without secrets is returned as it came. A
 * body that is not JSON is searched as text.
 */
import { isUtf8 } from "node:buffer"
import { measureLargeBody } from "../service/BodyBounds.ts"
import { secretCharactersMax } from "../service/TextBounds.ts"
import { jsonTokens, stringValue, valueEnd } from "./JsonTokens.ts"
import type { JsonToken } from "./JsonTokens.ts"
import { blanked, makeKnownSecrets } from "./KnownSecrets.ts"
import type { KnownSecrets, Place } from "./KnownSecrets.ts"
import { isDate, placeOf, spots } from "./Places.ts"
import type { Spot } from "./Places.ts"

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
  const cleaners = [...issuedIn(text, records), known]
  const pieces: Array<string> = []
  let copied = 0
  let keys = 0
  for (const token of jsonTokens(text, spots, records)) {
    const source = text.slice(token.from, token.to)
    const cleaned = token.around.isSecret
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

/** A JSON string whose escapes stood for characters of more than a byte keeps them as escapes. */
const inOneByteEach = (source: string): string =>
  source.replaceAll(/[^\0-\u00ff]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`)

const numbered = (key: string, count: number): string => `${key.slice(0, -1)} ${count}"`

/** The name of a secret field, or an escape of one of its characters. */
const issuing = /"(?:ticket|session_token|token_key)"|\\u00[567]/

/** What this answer issues; it may repeat it elsewhere before it is registered. */
const issuedIn = (text: string, records: string | undefined): ReadonlyArray<KnownSecrets> => {
  if (!issuing.test(text)) return []
  const values = new Set<string>()
  for (const { from, to, around, isKey } of jsonTokens(text, spots, records)) {
    if (isKey || !around.isSecret) continue
    const value = readText(text.slice(from, to))
    // A value longer than any ticket is blanked in its own field.
    if (value.length >= ticketMin && value.length <= secretCharactersMax) values.add(value)
    if (values.size === issuedMax) break
  }
  const issued = makeKnownSecrets()
  issued.hold([...values], "process")
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
