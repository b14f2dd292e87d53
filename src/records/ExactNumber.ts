/**
 * Numbers of a body whose decimal text is more precise than a double. They become an `ExactNumber`, which
 * `JSON.stringify` writes back digit by digit; every other number stays a plain number. Whether a number is
 * kept as text depends on its value alone, never on its neighbours, so that equal records stay equal.
 */

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

/**
 * A decimal number: `digits` times ten to the power of `exponent`; no zero at either end of `digits`, zero
 * is "0".
 */
interface DecimalParts {
  readonly negative: boolean
  readonly digits: string
  readonly exponent: number
}

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
