/**
 * One column of cells -> the buffers of one Arrow column: a pure function per type, each a tight loop over
 * one kind of value. See `Cell` for the units.
 */
import {
  Bool,
  Data,
  DateDay,
  Decimal,
  Dictionary,
  Field,
  Float64,
  Int32,
  Int64,
  List,
  TimestampMicrosecond,
  Utf8,
  Vector,
  makeData,
} from "apache-arrow"
import { ExactNumber, exactDouble, jsonText, scaledDecimal } from "./ExactNumber.ts"
import { BoundBroken } from "../service/BodyBounds.ts"

// Many strings -> one UTF-8 buffer and its offsets, in one native call per column: the offsets follow from
// the strings' lengths, which for ASCII are already byte lengths.

/** One entry more than strings. A column stays under 2 GB: its writer flushes long before. */
export const encodeTexts = (
  texts: ReadonlyArray<string>,
): { readonly bytes: Uint8Array; readonly offsets: Int32Array } => {
  const offsets = new Int32Array(texts.length + 1)
  let units = 0
  for (let i = 0; i < texts.length; i++) {
    units += texts[i]!.length
    offsets[i + 1] = units
  }
  const joined = texts.join("")
  let bytes: Uint8Array = Buffer.from(joined, "utf8")
  if (bytes.length === units) return { bytes, offsets }
  let position = 0
  for (let i = 0; i < texts.length; i++) {
    // Half of a pair counts as the three bytes of U+FFFD, which replaces it.
    position += Buffer.byteLength(texts[i]!)
    offsets[i + 1] = position
  }
  // Two halves of a pair in neighbouring strings must not be joined into one character.
  if (bytes.length !== position)
    bytes = Buffer.from(texts.map((text) => text.toWellFormed()).join(""), "utf8")
  return { bytes, offsets }
}

/** DuckDB's names. JSON is stored as text. */
export const plainColumnTypes = [
  "VARCHAR",
  "BOOLEAN",
  "INTEGER",
  "BIGINT",
  "DOUBLE",
  "DATE",
  "TIMESTAMPTZ",
  "VARCHAR[]",
  "JSON",
] as const
type PlainType = (typeof plainColumnTypes)[number]
export type ColumnType = PlainType | `DECIMAL(${number},${number})`

/**
 * NULL, or by column type: VARCHAR and JSON string; BOOLEAN boolean; INTEGER and DOUBLE number; BIGINT
 * bigint or a safe integer; DECIMAL a bigint scaled by the type's scale; DATE days since the epoch;
 * TIMESTAMPTZ milliseconds since the epoch (fractions to the microsecond) or, exact for every year,
 * microseconds as a bigint; VARCHAR[] strings.
 */
export type Cell = null | string | number | boolean | bigint | ReadonlyArray<string>

interface Typed {
  readonly name: string
  readonly type: ColumnType
  readonly repeats?: true
}

type Cells = ReadonlyArray<Cell>

const misfit = (column: Typed, cell: Cell | undefined): never => {
  throw new TypeError(`column ${column.name} of type ${column.type} got a ${typeof cell}`)
}

interface Validity {
  readonly nullBitmap: Uint8Array | undefined
  readonly nullCount: number
}

const validityOf = (cells: Cells): Validity => {
  let nullCount = 0
  for (let i = 0; i < cells.length; i++) if (cells[i] === null) nullCount++
  if (nullCount === 0) return { nullBitmap: undefined, nullCount }
  const bits = new Uint8Array((cells.length + 7) >> 3)
  for (let i = 0; i < cells.length; i++) if (cells[i] !== null) bits[i >> 3]! |= 1 << (i & 7)
  return { nullBitmap: bits, nullCount }
}

const textData = (column: Typed, cells: Cells, validity: Validity): Data<Utf8> => {
  const texts: Array<string> = new Array<string>(cells.length)
  for (let i = 0; i < cells.length; i++) {
    const cell = cells[i]
    texts[i] = typeof cell === "string" ? cell : cell === null ? "" : misfit(column, cell)
  }
  const { bytes, offsets } = encodeTexts(texts)
  return makeData({ type: new Utf8(), length: cells.length, ...validity, valueOffsets: offsets, data: bytes })
}

const dictionaryData = (column: Typed, cells: Cells, validity: Validity, id: number): Data => {
  const indexOf = new Map<Cell, number>()
  const indices = new Int32Array(cells.length)
  let last: Cell | undefined
  let lastIndex = 0
  for (let i = 0; i < cells.length; i++) {
    const cell = cells[i]!
    if (cell === null) continue
    if (cell !== last) {
      lastIndex = indexOf.get(cell) ?? indexOf.size
      if (lastIndex === indexOf.size) indexOf.set(cell, lastIndex)
      last = cell
    }
    indices[i] = lastIndex
  }
  const words = [...indexOf.keys()]
  const dictionary = new Vector([textData(column, words, validityOf(words))])
  const type = new Dictionary(new Utf8(), new Int32(), id)
  return makeData({ type, length: cells.length, ...validity, data: indices, dictionary })
}

const listData = (column: Typed, cells: Cells, validity: Validity): Data => {
  const valueOffsets = new Int32Array(cells.length + 1)
  const texts: Array<string> = []
  for (let i = 0; i < cells.length; i++) {
    const cell = cells[i]
    if (Array.isArray(cell)) {
      for (const text of cell) texts.push(typeof text === "string" ? text : misfit(column, text))
    } else if (cell !== null) misfit(column, cell)
    valueOffsets[i + 1] = texts.length
  }
  const child = textData(column, texts, validityOf(texts))
  const type = new List(new Field("item", child.type, true))
  return makeData({ type, length: cells.length, ...validity, valueOffsets, child })
}

const boolData = (column: Typed, cells: Cells, validity: Validity): Data => {
  const bits = new Uint8Array((cells.length + 7) >> 3)
  for (let i = 0; i < cells.length; i++) {
    const cell = cells[i]
    if (cell === true) bits[i >> 3]! |= 1 << (i & 7)
    else if (cell !== false && cell !== null) misfit(column, cell)
  }
  return makeData({ type: new Bool(), length: cells.length, ...validity, data: bits })
}

/** 32-bit values: INTEGER and DATE. */
const int32s = (column: Typed, cells: Cells): Int32Array => {
  const values = new Int32Array(cells.length)
  for (let i = 0; i < cells.length; i++) {
    const cell = cells[i]
    if (cell === null) continue
    if (typeof cell !== "number" || (cell | 0) !== cell) return misfit(column, cell)
    values[i] = cell
  }
  return values
}

const doubles = (column: Typed, cells: Cells): Float64Array => {
  const values = new Float64Array(cells.length)
  for (let i = 0; i < cells.length; i++) {
    const cell = cells[i]
    if (typeof cell === "number") values[i] = cell
    else if (cell !== null) misfit(column, cell)
  }
  return values
}

/** 64-bit values: BIGINT, and TIMESTAMPTZ whose plain numbers are milliseconds. */
const int64s = (column: Typed, cells: Cells, perNumber: number): BigInt64Array => {
  const values = new BigInt64Array(cells.length)
  const halves = new Int32Array(values.buffer)
  for (let i = 0; i < cells.length; i++) {
    const cell = cells[i]
    if (typeof cell === "number" && Number.isFinite(cell)) {
      // Two halves instead of BigInt(): no allocation per cell. ToInt32 takes the low 32 bits of any exact
      // integer.
      const scaled = Math.round(cell * perNumber)
      halves[2 * i] = scaled | 0
      halves[2 * i + 1] = Math.floor(scaled / 4_294_967_296)
    } else if (typeof cell === "bigint") values[i] = cell
    else if (cell !== null) misfit(column, cell)
  }
  return values
}

/** Precision and scale of a DECIMAL type. */
export const decimalShape = (
  type: string,
): { readonly precision: number; readonly scale: number } | undefined => {
  const shape = /^DECIMAL\((\d{1,2}),\s?(\d{1,2})\)$/.exec(type)
  if (shape === null) return undefined
  const precision = Number(shape[1])
  const scale = Number(shape[2])
  return precision >= 1 && precision <= 38 && scale <= precision ? { precision, scale } : undefined
}

export const isNumberType = (type: string): boolean =>
  type === "INTEGER" || type === "BIGINT" || type === "DOUBLE" || decimalShape(type) !== undefined

const decimalData = (column: Typed, cells: Cells, validity: Validity): Data => {
  const shape = decimalShape(column.type)
  if (shape === undefined) return misfit(column, null)
  const words = new BigInt64Array(cells.length * 2)
  for (let i = 0; i < cells.length; i++) {
    const cell = cells[i]
    if (typeof cell === "bigint") {
      words[2 * i] = cell
      words[2 * i + 1] = cell >> 64n
    } else if (cell !== null) misfit(column, cell)
  }
  const type = new Decimal(shape.scale, shape.precision, 128)
  return makeData({ type, length: cells.length, ...validity, data: new Uint32Array(words.buffer) })
}

/** `id` names its dictionary, if it has one: one for each column of a table, the same in all batches. */
export const columnData = (column: Typed, cells: Cells, id: number): Data => {
  const validity = validityOf(cells)
  const { length } = cells
  switch (column.type) {
    case "VARCHAR":
      return column.repeats === true
        ? dictionaryData(column, cells, validity, id)
        : textData(column, cells, validity)
    case "JSON":
      return textData(column, cells, validity)
    case "VARCHAR[]":
      return listData(column, cells, validity)
    case "BOOLEAN":
      return boolData(column, cells, validity)
    case "INTEGER":
      return makeData({ type: new Int32(), length, ...validity, data: int32s(column, cells) })
    case "DATE":
      return makeData({ type: new DateDay(), length, ...validity, data: int32s(column, cells) })
    case "DOUBLE":
      return makeData({ type: new Float64(), length, ...validity, data: doubles(column, cells) })
    case "BIGINT":
      return makeData({ type: new Int64(), length, ...validity, data: int64s(column, cells, 1) })
    case "TIMESTAMPTZ":
      return makeData({
        type: new TimestampMicrosecond("UTC"),
        length,
        ...validity,
        data: int64s(column, cells, 1000),
      })
    default:
      return decimalData(column, cells, validity)
  }
}

// A JSON value -> a cell, or `undefined` if it does not fit. Nothing is rounded, guessed or coerced, except
// that a DECIMAL may be a string that spells one, as the reference requires, and that a time is cut to the
// microsecond.

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
 * A TIMESTAMPTZ: ISO 8601; without a zone it is UTC. Digits below the microsecond, which the database does
 * not have, are cut off: as a misfit, every record of a clock that counts nanoseconds would be refused.
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
  const number = value instanceof ExactNumber ? exactDouble(value.text) : value
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

const converters: Readonly<Record<PlainType, Convert>> = {
  VARCHAR: textCell,
  BOOLEAN: booleanCell,
  INTEGER: integerCell,
  BIGINT: bigintCell,
  DOUBLE: doubleCell,
  DATE: dateCell,
  TIMESTAMPTZ: timestampCell,
  "VARCHAR[]": textsCell,
  JSON: jsonText,
}

export const converter = (type: ColumnType, takesNumbers = false): Convert =>
  type === "VARCHAR" && takesNumbers ? textOrNumberCell : (converters[type as PlainType] ?? decimalCell(type))

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

// DuckDB keeps the texts of 2,048 rows of a column in memory. Texts beyond `shortUnits` fill a bucket that
// each row drains by that amount, so that no 2,048 rows have more than twice `bucketUnits`.

/** UTF-16 units. */
const shortUnits = 64 * 1024
const bucketUnits = 64 * 1024 * 1024

export class LongTexts {
  #levels = new Map<string, number>()

  /** Counts one row of a table and its text; throws if the text does not fit. */
  add(table: string, units: number): void {
    const before = this.#levels.get(table)
    if (before === undefined && units <= shortUnits) return
    const level = Math.max(0, (before ?? 0) - shortUnits)
    const filled = units > shortUnits ? level + units : level
    if (filled > bucketUnits) throw new BoundBroken(`${table} has no room left for its long texts`)
    this.#levels.set(table, filled)
  }

  /** Restores what was counted until now. */
  mark(): () => void {
    const levels = new Map(this.#levels)
    return () => {
      this.#levels = levels
    }
  }
}
