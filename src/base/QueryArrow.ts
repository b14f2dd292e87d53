/**
 * A query's result as an Arrow IPC stream, for readers that want types instead of text. DuckDB has no Arrow
 * output without an extension, so its vectors are copied into Arrow's buffers, batch by batch. Integers,
 * decimals, dates and times keep their types and every digit (a HUGEINT, which is what sum() returns, is a
 * DECIMAL(38,0)); types without an Arrow equivalent here (structs, maps, intervals) become text.
 */
import {
  DuckDBArrayValue,
  DuckDBBlobValue,
  DuckDBDateValue,
  DuckDBDecimalValue,
  DuckDBListValue,
  DuckDBTimestampTZValue,
  DuckDBTimestampValue,
  DuckDBTypeId,
} from "@duckdb/node-api"
import type { DuckDBDataChunk, DuckDBType, DuckDBValue } from "@duckdb/node-api"
import {
  Binary,
  Bool,
  BufferType,
  Data,
  DateDay,
  Decimal,
  Field,
  Float32,
  Float64,
  Int16,
  Int32,
  Int64,
  Int8,
  List,
  makeData,
  RecordBatch,
  Schema,
  Struct,
  Table,
  tableToIPC,
  TimestampMicrosecond,
  Uint16,
  Uint32,
  Uint64,
  Uint8,
  Utf8,
} from "apache-arrow"
import type { DataType } from "apache-arrow"
import { Effect, Stream } from "effect"
import { jsonValue, type Connection } from "./DuckDb.ts"
import { failureOf, type DuckDbFailed } from "./DuckDbFailed.ts"

type Values = ReadonlyArray<DuckDBValue>
interface Arrow {
  readonly type: DataType
  readonly fill: (values: Values) => Data
}

/** Runs a query and returns its result as one Arrow IPC stream; a batch holds at most 2,048 rows. */
export const queryArrow = (connection: Connection, sql: string): Effect.Effect<Uint8Array, DuckDbFailed> =>
  Effect.scoped(
    Effect.gen(function* () {
      const { columns, vectorTypes, chunks } = yield* connection.streamVectors(sql)
      const arrows = vectorTypes.map(arrowOf)
      const schema = new Schema(
        columns.map(({ name }, index) => new Field(name, arrows[index]?.type ?? new Utf8(), true)),
      )
      const batches = yield* Stream.runCollect(
        Stream.mapEffect(chunks, (chunk) =>
          Effect.try({
            try: () => batchOf(schema, arrows, chunk),
            catch: (cause) => failureOf(sql, cause),
          }),
        ),
      )
      return tableToIPC(new Table(schema, batches), "stream")
    }),
  )

const batchOf = (schema: Schema, arrows: ReadonlyArray<Arrow>, chunk: DuckDBDataChunk): RecordBatch => {
  const children = arrows.map((arrow, index) => arrow.fill(chunk.getColumnValues(index)))
  return new RecordBatch(
    schema,
    makeData({ type: new Struct(schema.fields), length: chunk.rowCount, children }),
  )
}

const arrowOf = (type: DuckDBType): Arrow => {
  switch (type.typeId) {
    case DuckDBTypeId.BOOLEAN:
      return { type: new Bool(), fill: fillBool }
    case DuckDBTypeId.DECIMAL:
      return decimalArrow(type.width, type.scale)
    case DuckDBTypeId.HUGEINT:
    case DuckDBTypeId.UHUGEINT:
      return decimalArrow(digitsMax, 0)
    case DuckDBTypeId.LIST:
    case DuckDBTypeId.ARRAY:
      return listArrow(arrowOf(type.valueType))
    case DuckDBTypeId.BLOB:
      return { type: new Binary(), fill: (values) => fillBytes(new Binary(), values, blobBytes) }
    default: {
      const text = { type: new Utf8(), fill: (values: Values) => fillBytes(new Utf8(), values, textBytes) }
      return numericArrow[type.typeId]?.() ?? text
    }
  }
}

const numericArrow: { readonly [Id in DuckDBTypeId]?: () => Arrow } = {
  [DuckDBTypeId.TINYINT]: () => numbers(new Int8(), Int8Array),
  [DuckDBTypeId.SMALLINT]: () => numbers(new Int16(), Int16Array),
  [DuckDBTypeId.INTEGER]: () => numbers(new Int32(), Int32Array),
  [DuckDBTypeId.UTINYINT]: () => numbers(new Uint8(), Uint8Array),
  [DuckDBTypeId.USMALLINT]: () => numbers(new Uint16(), Uint16Array),
  [DuckDBTypeId.UINTEGER]: () => numbers(new Uint32(), Uint32Array),
  [DuckDBTypeId.FLOAT]: () => numbers(new Float32(), Float32Array),
  [DuckDBTypeId.DOUBLE]: () => numbers(new Float64(), Float64Array),
  [DuckDBTypeId.DATE]: () => numbers(new DateDay(), Int32Array),
  [DuckDBTypeId.BIGINT]: () => bigints(new Int64(), BigInt64Array),
  [DuckDBTypeId.UBIGINT]: () => bigints(new Uint64(), BigUint64Array),
  [DuckDBTypeId.TIMESTAMP]: () => bigints(new TimestampMicrosecond(), BigInt64Array),
  [DuckDBTypeId.TIMESTAMP_TZ]: () => bigints(new TimestampMicrosecond("UTC"), BigInt64Array),
}

/** Arrow's validity: one bit per value, absent if no value is NULL. */
const validity = (values: Values): { nullCount: number; nullBitmap: Uint8Array | null } => {
  const nullCount = values.reduce<number>((count, value) => (value === null ? count + 1 : count), 0)
  return { nullCount, nullBitmap: nullCount === 0 ? null : bits(values, (value) => value !== null) }
}

/** `makeData` has no overload for a type chosen at run time; the buffers are the same. */
const dataOf = (type: DataType, values: Values, data: ArrayBufferView, valueOffsets?: Int32Array): Data => {
  const { nullCount, nullBitmap } = validity(values)
  return new Data<DataType>(type, 0, values.length, nullCount, {
    [BufferType.DATA]: data,
    ...(nullBitmap === null ? {} : { [BufferType.VALIDITY]: nullBitmap }),
    ...(valueOffsets === undefined ? {} : { [BufferType.OFFSET]: valueOffsets }),
  })
}

const bits = (values: Values, isSet: (value: DuckDBValue) => boolean): Uint8Array => {
  const packed = new Uint8Array(Math.ceil(values.length / 64) * 8)
  values.forEach((value, index) => {
    if (isSet(value)) packed[index >> 3] = (packed[index >> 3] ?? 0) | (1 << (index & 7))
  })
  return packed
}

const fillBool = (values: Values): Data =>
  dataOf(
    new Bool(),
    values,
    bits(values, (value) => value === true),
  )

/** A column of fixed width: its buffer, and what a value is in it. */
const filled = <Item extends number | bigint>(
  type: DataType,
  Buffer: new (length: number) => ArrayBufferView & { [index: number]: Item },
  itemOf: (value: DuckDBValue) => Item,
): Arrow => ({
  type,
  fill: (values) => {
    const data = new Buffer(values.length)
    values.forEach((value, index) => {
      data[index] = itemOf(value)
    })
    return dataOf(type, values, data)
  },
})

const numbers = (type: DataType, Buffer: Parameters<typeof filled<number>>[1]): Arrow =>
  filled(type, Buffer, (value) => (value instanceof DuckDBDateValue ? value.days : Number(value)))

const bigints = (type: DataType, Buffer: Parameters<typeof filled<bigint>>[1]): Arrow =>
  filled(type, Buffer, integerOf)

const integerOf = (value: DuckDBValue): bigint => {
  if (typeof value === "bigint") return value
  return value instanceof DuckDBTimestampTZValue || value instanceof DuckDBTimestampValue ? value.micros : 0n
}

/** A decimal of 128 bits has no more. */
const digitsMax = 38
const hugeMax = 10n ** BigInt(digitsMax)

const scaledOf = (value: DuckDBValue): bigint => {
  if (value instanceof DuckDBDecimalValue) return value.value
  if (typeof value !== "bigint") return 0n
  if (value >= hugeMax || value <= -hugeMax)
    throw new RangeError(`an integer has more than ${digitsMax} digits; cast the column to VARCHAR`)
  return value
}

/** 128 bits, little-endian, two's complement, of the value scaled up to an integer. */
const decimalArrow = (width: number, scale: number): Arrow => {
  const type = new Decimal(scale, width, 128)
  const fill = (values: Values): Data => {
    const words = new BigUint64Array(values.length * 2)
    values.forEach((value, index) => {
      const scaled = scaledOf(value)
      words[index * 2] = BigInt.asUintN(64, scaled)
      words[index * 2 + 1] = BigInt.asUintN(64, scaled >> 64n)
    })
    return dataOf(type, values, new Uint32Array(words.buffer))
  }
  return { type, fill }
}

const listArrow = (item: Arrow): Arrow => {
  const type = new List(new Field("item", item.type, true))
  const fill = (values: Values): Data => {
    const valueOffsets = new Int32Array(values.length + 1)
    const items: Array<DuckDBValue> = []
    values.forEach((value, index) => {
      if (value instanceof DuckDBListValue || value instanceof DuckDBArrayValue) {
        for (const child of value.items) items.push(child)
      }
      valueOffsets[index + 1] = items.length
    })
    return makeData({
      type,
      length: values.length,
      ...validity(values),
      valueOffsets,
      child: item.fill(items),
    })
  }
  return { type, fill }
}

const encoder = new TextEncoder()
const nothing = new Uint8Array(0)

const textBytes = (value: DuckDBValue): Uint8Array => {
  const json = jsonValue(value)
  if (json === null) return nothing
  return encoder.encode(typeof json === "string" ? json : JSON.stringify(json))
}

const blobBytes = (value: DuckDBValue): Uint8Array =>
  value instanceof DuckDBBlobValue ? value.bytes : nothing

const fillBytes = (
  type: Utf8 | Binary,
  values: Values,
  bytesOf: (value: DuckDBValue) => Uint8Array,
): Data => {
  const pieces = values.map(bytesOf)
  const valueOffsets = new Int32Array(values.length + 1)
  pieces.forEach((piece, index) => {
    valueOffsets[index + 1] = (valueOffsets[index] ?? 0) + piece.length
  })
  const data = new Uint8Array(valueOffsets[values.length] ?? 0)
  pieces.forEach((piece, index) => data.set(piece, valueOffsets[index] ?? 0))
  return dataOf(type, values, data, valueOffsets)
}
