/**
 * What the service echoes of a login must not reach the disk (architecture, decision 3). Outside `data`,
 * texts and validation details lose every occurrence of a login parameter; tickets and keys are always
 * blanked. Only the tokens concerned are rewritten: every other byte stays, numbers, duplicate keys and white
 * space included, and a body that holds nothing secret is returned as it came. A body that is no JSON is
 * searched as text.
 */
import { Redacted } from "effect"
import { measureLargeBody } from "../contract/BodyBounds.ts"
import type { BodyMeta } from "./Landing.ts"
import { jsonTokens, pathKeysMax, valueEnd } from "./JsonTokens.ts"

export const blanked = "[blanked]"

/** Shorter values would blank half of any text: they count only as a whole string or number. */
const partCharactersMin = 4
const alwaysBlanked: ReadonlySet<string> = new Set(["ticket", "session_token", "token_key"])
/** Sections 2.4 and 7: where the service repeats what it was sent, or talks about it. */
const echoing: ReadonlySet<string> = new Set(["input", "ctx", "msg", "message", "status_message", "detail"])

interface Needles {
  readonly whole: ReadonlySet<string>
  /** Longest first, so that a value within another does not leave the other's rest. */
  readonly parts: ReadonlyArray<string>
}

/**
 * `secrets` are the values of the login parameters. Recognised anywhere in a text: the value itself, and its
 * forms in JSON, URL, base64 and hexadecimal spelling. `records` is the top-level field that holds records,
 * of which nothing is ever blanked; `body` where the whole body does.
 */
export const blank = (
  bytes: Uint8Array,
  kind: BodyMeta["kind"],
  secrets: ReadonlyArray<string | Redacted.Redacted<string>>,
  records = "data",
): Uint8Array => {
  const needles = needlesOf(
    secrets.map((secret) => (typeof secret === "string" ? secret : Redacted.value(secret))),
  )
  const text = jsonText(bytes)
  if (text === undefined) return blankText(bytes, needles)
  // The profile is record data from its first byte to its last.
  return kind === "profile" || records === "body" ? bytes : blankJson(bytes, text, needles, records)
}

const needlesOf = (secrets: ReadonlyArray<string>): Needles => {
  const values = secrets.filter((secret) => secret !== "")
  const parts = values.filter((value) => value.length >= partCharactersMin).flatMap(formsOf)
  return {
    whole: new Set(values),
    parts: [...new Set(parts)].toSorted((one, other) => other.length - one.length),
  }
}

const formsOf = (value: string): ReadonlyArray<string> => {
  const bytes = Buffer.from(value)
  const url = encodeURIComponent(value.toWellFormed())
  const base64 = bytes.toString("base64")
  const hex = bytes.toString("hex")
  return [
    value,
    JSON.stringify(value).slice(1, -1),
    url,
    url.replaceAll("%20", "+"),
    url.replace(/%[0-9A-F]{2}/g, (escaped) => escaped.toLowerCase()),
    new URLSearchParams({ "": value }).toString().slice(1),
    base64,
    base64.replace(/=+$/, ""),
    bytes.toString("base64url"),
    hex,
    hex.toUpperCase(),
  ]
}

const jsonText = (bytes: Uint8Array): string | undefined => {
  // What must not be parsed is searched as text.
  if (measureLargeBody(bytes).broken !== undefined) return undefined
  try {
    const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes)
    JSON.parse(text)
    return text
  } catch {
    return undefined
  }
}

const blankJson = (bytes: Uint8Array, text: string, needles: Needles, records: string): Uint8Array => {
  const pieces: Array<string> = []
  let copied = 0
  for (const token of jsonTokens(text, records)) {
    if (token.path[0] === records) continue
    const source = text.slice(token.from, token.to)
    const kept = isSecretPlace(token.path)
      ? token.isKey
        ? source
        : JSON.stringify(blanked)
      : isEchoing(token)
        ? blankToken(source, needles)
        : source
    if (kept === source) continue
    pieces.push(text.slice(copied, token.from), kept)
    copied = token.to
  }
  return copied === 0 ? bytes : Buffer.from(pieces.join("") + text.slice(copied))
}

const isSecretPlace = (path: ReadonlyArray<string>): boolean => path.some((key) => alwaysBlanked.has(key))

/**
 * Where a path is too long to be known whole, an echo is assumed. A key that only names the place is the
 * service's own word; keys below it may be echoes as well.
 */
const isEchoing = (token: { readonly path: ReadonlyArray<string>; readonly isKey: boolean }): boolean =>
  token.path.length >= pathKeysMax - 1 ||
  (token.isKey ? token.path.slice(0, -1) : token.path).some((key) => echoing.has(key))

const blankToken = (source: string, needles: Needles): string => {
  if (!source.startsWith('"')) return needles.whole.has(source) ? JSON.stringify(blanked) : source
  const value: unknown = JSON.parse(source)
  if (typeof value !== "string") return source
  const kept = needles.whole.has(value) ? blanked : withoutParts(value, needles.parts)
  return kept === value ? source : JSON.stringify(kept)
}

const withoutParts = (text: string, parts: ReadonlyArray<string>): string =>
  parts.reduce((kept, part) => kept.replaceAll(part, blanked), text)

const secretField = /"(?:ticket|session_token|token_key)"\s{0,64}:\s{0,64}/g

/** Their values go, each found by hand: a pattern over a value of some megabytes overflows the stack. */
const withoutSecretFields = (text: string): string => {
  const pieces: Array<string> = []
  let copied = 0
  for (const { 0: field, index } of text.matchAll(secretField)) {
    const from = index + field.length
    if (from < copied) continue
    const to = valueEnd(text, from)
    if (to === from) continue
    pieces.push(text.slice(copied, from), JSON.stringify(blanked))
    copied = to
  }
  return copied === 0 ? text : pieces.join("") + text.slice(copied)
}

/** Bytes are searched as Latin-1, so that those around an occurrence stay what they are, UTF-8 or not. */
const blankText = (bytes: Uint8Array, needles: Needles): Uint8Array => {
  const text = Buffer.from(bytes).toString("latin1")
  const parts = needles.parts.flatMap((part) => [Buffer.from(part).toString("latin1"), part])
  const kept = withoutParts(withoutSecretFields(text), parts)
  return kept === text ? bytes : Buffer.from(kept, "latin1")
}
