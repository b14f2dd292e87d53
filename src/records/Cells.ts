/**
 * A JSON value -> the cell of a column, or `undefined` if it does not fit the column's type. Strict: nothing
 * is rounded, guessed or coerced, with one exception that the reference requires: a DECIMAL is a number or a
 * string that spells one. A value outside an enumeration is a string like any other and is accepted.
 */
import type { Cell, ColumnType } from "./ColumnData.ts"
import { decimalShape } from "./ColumnData.ts"
import { ExactNumber, scaledDecimal } from "./ExactNumber.ts"
import { jsonText } from "./JsonText.ts"

/** Never called with null or undefined: those are NULL, or a missing field. */
export type Convert = (value: unknown) => Cell | undefined

const two = (text: string, at: number): number => {
  const tens = text.charCodeAt(at) - 48
  const units = text.charCodeAt(at + 1) - 48
  return tens >= 0 && tens <= 9 && units >= 0 && units <= 9 ? tens * 10 + units : -1
}

const monthDays = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]

/** Days since the epoch for the `YYYY-MM-DD` at the start of a text; undefined if it is not a valid date. */
const daysAt = (text: string): number | undefined => {
  const century = two(text, 0)
  const rest = two(text, 2)
  const month = two(text, 5)
  const day = two(text, 8)
  if (century < 0 || rest < 0 || text[4] !== "-" || text[7] !== "-") return undefined
  const year = century * 100 + rest
  if (year < 1 || month < 1 || month > 12 || day < 1) return undefined
  const leap = year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0)
  if (day > monthDays[month - 1]! + (leap && month === 2 ? 1 : 0)) return undefined
  // Counted from the first of March of year 0, so that the leap day ends a year.
  const shifted = month <= 2 ? year - 1 : year
  const dayOfYear = Math.floor((153 * (month + (month > 2 ? -3 : 9)) + 2) / 5) + day - 1
  const leapDays = Math.floor(shifted / 4) - Math.floor(shifted / 100) + Math.floor(shifted / 400)
  return shifted * 365 + leapDays + dayOfYear - 719_468
}

/** A DATE: exactly `YYYY-MM-DD`, from year 1 to 9999. */
export const dateCell: Convert = (value) =>
  typeof value === "string" && value.length === 10 ? daysAt(value) : undefined

/** Up to here, in the year 2255, the microseconds of a number of milliseconds are exact. */
const exactSeconds = 9_000_000_000

const timePart = /^[Tt ](\d{2}):(\d{2})(?::(\d{2})(?:[.,](\d{1,9}))?)?(?:[Zz]|([+-])(\d{2})(?::?(\d{2}))?)?$/

/**
 * A TIMESTAMPTZ: date and time as in ISO 8601, with a zone or without; without one it is UTC. Digits below
 * the microsecond, which the database cannot store, are cut off.
 */
export const timestampCell: Convert = (value) => {
  if (typeof value !== "string" || value.length < 16) return undefined
  const days = daysAt(value)
  if (days === undefined) return undefined
  const time = timePart.exec(value.slice(10))
  if (time === null) return undefined
  const [hours, minutes, seconds] = [Number(time[1]), Number(time[2]), Number(time[3] ?? 0)]
  const [zoneHours, zoneMinutes] = [Number(time[6] ?? 0), Number(time[7] ?? 0)]
  if (hours > 23 || minutes > 59 || seconds > 59 || zoneHours > 23 || zoneMinutes > 59) return undefined
  const zone = (zoneHours * 60 + zoneMinutes) * (time[5] === "-" ? -1 : 1)
  const wholeSeconds = days * 86_400 + hours * 3600 + (minutes - zone) * 60 + seconds
  const fraction = time[4]
  if (fraction === undefined) return wholeSeconds * 1000
  const micros = Number(fraction.slice(0, 6).padEnd(6, "0"))
  return micros % 1000 === 0 && Math.abs(wholeSeconds) < exactSeconds
    ? wholeSeconds * 1000 + micros / 1000
    : BigInt(wholeSeconds) * 1_000_000n + BigInt(micros)
}

const textCell: Convert = (value) => (typeof value === "string" ? value : undefined)
const textOrNumberCell: Convert = (value) =>
  typeof value === "number" ? String(value) : value instanceof ExactNumber ? value.text : textCell(value)
const booleanCell: Convert = (value) => (typeof value === "boolean" ? value : undefined)
const integerCell: Convert = (value) =>
  typeof value === "number" && (value | 0) === value ? value : undefined

const bigintCell: Convert = (value) => {
  if (typeof value === "number") return Number.isSafeInteger(value) ? value : wholeNumber(String(value))
  return value instanceof ExactNumber ? wholeNumber(value.text) : undefined
}

const wholeNumber = (text: string): bigint | undefined => {
  const whole = scaledDecimal(text, 19, 0)
  return whole !== undefined && BigInt.asIntN(64, whole) === whole ? whole : undefined
}

const doubleCell: Convert = (value) => {
  const number = value instanceof ExactNumber ? Number(value.text) : value
  return typeof number === "number" && Number.isFinite(number) ? number : undefined
}

const decimalCell = (type: ColumnType): Convert => {
  const { precision, scale } = decimalShape(type)!
  return (value) => {
    if (typeof value === "string") return scaledDecimal(value, precision, scale)
    if (typeof value === "number") return scaledDecimal(String(value), precision, scale)
    return value instanceof ExactNumber ? scaledDecimal(value.text, precision, scale) : undefined
  }
}

const textsCell: Convert = (value) =>
  Array.isArray(value) && value.every((each) => typeof each === "string") ? value : undefined

export const converter = (type: ColumnType, takesNumbers = false): Convert => {
  switch (type) {
    case "VARCHAR":
      return takesNumbers ? textOrNumberCell : textCell
    case "BOOLEAN":
      return booleanCell
    case "INTEGER":
      return integerCell
    case "BIGINT":
      return bigintCell
    case "DOUBLE":
      return doubleCell
    case "DATE":
      return dateCell
    case "TIMESTAMPTZ":
      return timestampCell
    case "VARCHAR[]":
      return textsCell
    case "JSON":
      return jsonText
    default:
      return decimalCell(type)
  }
}

const kindOf = (value: unknown): string => {
  if (value === null || value === undefined) return "nothing"
  if (Array.isArray(value)) return "list"
  return value instanceof ExactNumber ? "number" : typeof value === "string" ? "text" : typeof value
}

/** The kinds of JSON value that a type can have: a string may still not be a DATE. */
const kindsOf = (type: ColumnType | "object" | "list"): ReadonlyArray<string> => {
  if (type === "DATE" || type === "TIMESTAMPTZ") return ["text"]
  if (type === "INTEGER" || type === "BIGINT" || type === "DOUBLE") return ["number"]
  return type.startsWith("DECIMAL") ? ["text", "number"] : []
}

/** Why a value was refused; never the value itself, which is personal data. */
export const misfitReason = (type: ColumnType | "object" | "list", value: unknown): string => {
  if (value === null || value === undefined) return "required, and missing"
  const kind = kindOf(value)
  return `expected ${type}, got ${kindsOf(type).includes(kind) ? "another " : ""}${kind}`
}
