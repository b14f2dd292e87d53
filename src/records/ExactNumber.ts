/**
 * Numbers of a body that are more precise than a double become an `ExactNumber`, which `JSON.stringify`
 * writes back digit by digit. That depends on the value alone, so that equal records stay equal.
 */
import { Predicate } from "effect"
import { BoundBroken, bodyBounds, cutText, idCharactersMax } from "../service/BodyBounds.ts"

// In Node since version 21; TypeScript's library does not name it yet.
const rawJson: unknown = Reflect.get(JSON, "rawJSON")

export class ExactNumber {
  /** The number as written in the body. */
  readonly text: string

  constructor(text: string) {
    this.text = text
  }

  toJSON(): unknown {
    return typeof rawJson === "function" ? rawJson(this.text) : this.text
  }
}

/** `digits` times ten to the power of `exponent`; no zero at either end of `digits`, zero is "0". */
interface DecimalParts {
  readonly negative: boolean
  readonly digits: string
  readonly exponent: number
}

export type Json = Readonly<Record<string, unknown>>

export const isObject = (value: unknown): value is Json =>
  Predicate.isObject(value) && !(value instanceof ExactNumber)

const decimalText = /^([+-]?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d{1,9}))?$/

/** Undefined if the text is not a decimal number. */
const decimalParts = (text: string): DecimalParts | undefined => {
  const match = decimalText.exec(text)
  if (match === null) return undefined
  const fraction = match[3] ?? ""
  const all = match[2]! + fraction
  let start = 0
  while (start < all.length - 1 && all.charCodeAt(start) === 48) start++
  let end = all.length
  while (end > start + 1 && all.charCodeAt(end - 1) === 48) end--
  const digits = all.slice(start, end)
  if (digits === "0") return { negative: false, digits, exponent: 0 }
  return {
    negative: match[1] === "-",
    digits,
    exponent: Number(match[4] ?? 0) - fraction.length + (all.length - end),
  }
}

/** One text per value: 1.50 and 1.5 and 15e-1 have the same. */
export const decimalIdentity = (text: string): string => {
  const parts = decimalParts(text)
  if (parts === undefined) return text
  return `${parts.negative ? "-" : ""}${parts.digits}e${parts.exponent}`
}

/** The number token of a JSON text as a plain number, if that loses nothing. */
export const exactNumber = (text: string): number | ExactNumber => {
  const value = Number(text)
  // Fifteen significant digits always survive a double; longer numbers, or those with an exponent, have to
  // be compared.
  if (text.length <= 15 && !/[eE]/.test(text)) return value
  return decimalIdentity(text) === decimalIdentity(String(value)) ? value : new ExactNumber(text)
}

/** How many digits of a double are compared. */
const doubleDigitsMax = 100

/**
 * A number token as a double; undefined if its digits are not the double's own, to the last one written. So
 * 0.1 and 0.10000000000000001 are the same, and neither 9007199254740993 nor 1e-400 is one.
 */
export const exactDouble = (text: string): number | undefined => {
  const value = Number(text)
  const written = decimalParts(text)?.digits.length ?? 0
  if (written < 1 || written > doubleDigitsMax) return undefined
  return decimalIdentity(value.toPrecision(written)) === decimalIdentity(text) ? value : undefined
}

/** A number scaled to an integer: undefined if it has more digits than the type holds. Nothing is rounded. */
export const scaledDecimal = (text: string, precision: number, scale: number): bigint | undefined => {
  const parts = decimalParts(text)
  if (parts === undefined) return undefined
  if (parts.digits === "0") return 0n
  const zeros = parts.exponent + scale
  if (zeros < 0 || parts.digits.length + zeros > precision) return undefined
  const scaled = BigInt(parts.digits + "0".repeat(zeros))
  return parts.negative ? -scaled : scaled
}

// A value -> JSON text that the database accepts, whatever the value contains: exact numbers digit by digit,
// halves of surrogate pairs replaced by U+FFFD (the database refuses a JSON text with one), and any nesting.

const wellFormed = (json: string): string =>
  json.includes("\\ud")
    ? json.replace(/\\(?:\\|ud[89a-f][0-9a-f]{2})/g, (escape) => (escape === "\\\\" ? escape : "\\ufffd"))
    : json

export const jsonText = (value: unknown): string => {
  try {
    return wellFormed(JSON.stringify(value) ?? "null")
  } catch (cause) {
    // Native writing recurses; a value that overflows it is written with a stack of our own.
    if (cause instanceof RangeError) return wellFormed(deepJsonText(value))
    throw cause
  }
}

interface Frame {
  readonly value: object
  /** Undefined for a list. */
  readonly keys: ReadonlyArray<string> | undefined
  next: number
}

const deepJsonText = (root: unknown): string => {
  const out: Array<string> = []
  const frames: Array<Frame> = []
  const write = (value: unknown): void => {
    if (typeof value !== "object" || value === null || value instanceof ExactNumber) {
      out.push(JSON.stringify(value) ?? "null")
    } else {
      const isList = Array.isArray(value)
      out.push(isList ? "[" : "{")
      frames.push({ value, keys: isList ? undefined : Object.keys(value), next: 0 })
    }
  }
  write(root)
  for (let frame = frames.at(-1); frame !== undefined; frame = frames.at(-1)) {
    const { value, keys } = frame
    const length = keys === undefined ? (value as ReadonlyArray<unknown>).length : keys.length
    if (frame.next === length) {
      out.push(keys === undefined ? "]" : "}")
      frames.pop()
      continue
    }
    if (frame.next > 0) out.push(",")
    const at = frame.next++
    if (keys === undefined) write((value as ReadonlyArray<unknown>)[at])
    else {
      const key = keys[at]!
      out.push(JSON.stringify(key), ":")
      write((value as Json)[key])
    }
  }
  return out.join("")
}

// Official documents are identifiers under undocumented keys that contain `attachment` (decision 10). Only a
// harmless alphabet is ever requested; everything else is listed separately, never dropped.

export interface AttachmentIds {
  /** In the order of the body, each once. */
  readonly requestable: ReadonlyArray<string>
  /** Counted as identifiers, but never put into a URL. One that is no text has the name of its key. */
  readonly refused: ReadonlyArray<string>
  /** Requestable, and said beside it to be a page or JSON. */
  readonly textual: ReadonlySet<string>
}

const harmless = /^[A-Za-z0-9_-]{1,128}$/
const isTextual = (value: unknown): boolean =>
  typeof value === "string" && value.length <= idCharactersMax && /[./+](?:x?html?|json)$/i.test(value)
/** A document for which no text stands; other numbers under such keys are sizes, counts and the like. */
const isNamedOtherwise = (key: string, id: unknown): boolean =>
  typeof id === "number" || id instanceof ExactNumber
    ? /ids?$/i.test(key)
    : isObject(id) && Object.keys(id).length > 0 && !Object.keys(id).some(isAttachmentKey)
/** Shorter keys need no look. */
const isAttachmentKey = (key: string): boolean => key.length >= 10 && key.toLowerCase().includes("attachment")

/** A value under a key that names documents, the object that has it, and the record around that. */
interface Naming {
  readonly key: string
  readonly id: unknown
  readonly holder: Json
  readonly record: Json | undefined
}

/** Visits what names documents, in the order of the body. */
export const eachNaming = (data: unknown, visit: (naming: Naming) => void): void => {
  // Children are pushed in reverse so that they are visited in the order of the body.
  const pending: Array<readonly [value: unknown, record: Json | undefined]> = [[data, undefined]]
  for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
    const [value, around] = next
    if (Array.isArray(value)) {
      for (let i = value.length - 1; i >= 0; i--) pending.push([value[i], around])
    } else if (isObject(value)) {
      const { product, sub_family } = value
      const record = typeof product === "string" && typeof sub_family === "string" ? value : around
      const keys = Object.keys(value)
      for (const key of keys.filter(isAttachmentKey))
        for (const id of [value[key]].flat()) visit({ key, id, holder: value, record })
      for (let i = keys.length - 1; i >= 0; i--) pending.push([value[keys[i]!], record])
    }
  }
}

export const attachmentIds = (data: unknown): AttachmentIds => {
  const requestable = new Set<string>()
  const refused = new Set<string>()
  const textual = new Set<string>()
  eachNaming(data, ({ key, id, holder }) => {
    if (typeof id === "string" && harmless.test(id)) {
      requestable.add(id)
      if (Object.values(holder).some(isTextual)) textual.add(id)
    } else if (typeof id === "string" || isNamedOtherwise(key, id))
      refused.add(cutText(typeof id === "string" ? id : key, idCharactersMax))
    if (requestable.size + refused.size > bodyBounds.documentsMax)
      throw new BoundBroken(`it names more than ${bodyBounds.documentsMax} documents`)
  })
  return { requestable: [...requestable], refused: [...refused], textual }
}
