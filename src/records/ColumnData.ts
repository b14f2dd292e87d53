/**
 * One column of cells -> the buffers of one Arrow column. A pure function per type, each a tight loop over
 * one kind of value: validity bits, values or offsets, text as UTF-8. Cells contain converted values; see
 * `Cell` for their units.
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
import { encodeTexts } from "./EncodedText.ts"

/** DuckDB's names. JSON is stored as text. */
export type ColumnType =
  | "VARCHAR"
  | "BOOLEAN"
  | "INTEGER"
  | "BIGINT"
  | "DOUBLE"
  | `DECIMAL(${number},${number})`
  | "DATE"
  | "TIMESTAMPTZ"
  | "VARCHAR[]"
  | "JSON"

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
