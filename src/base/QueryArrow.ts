/**
 * A query's result as an Arrow IPC stream, for readers that want types instead of text. DuckDB has no Arrow
 * output without an extension, so its vectors are copied into Arrow's buffers, batch by batch. Integers,
 * decimals, dates and times keep their types and every digit (a HUGEINT, which is what sum() returns, is a
 * DECIMAL(38,0)); types without an Arrow equivalent here (structs, maps, intervals) become text.
 */
import * as duckdb from "@duckdb/node-api"
import * as arrow from "apache-arrow"
import { Effect, Stream } from "effect"
import { jsonValue, type Connection } from "./DuckDb.ts"
import { failureOf, type DuckDbFailed } from "./DuckDbFailed.ts"

type Values = ReadonlyArray<duckdb.DuckDBValue>
interface Column {
  readonly type: arrow.DataType
  readonly fill: (values: Values) => arrow.Data
}

/** Runs a query and returns its result as one Arrow IPC stream; a batch holds at most 2,048 rows. */
export const queryArrow = (connection: Connection, sql: string): Effect.Effect<Uint8Array, DuckDbFailed> =>
  Effect.scoped(
    Effect.gen(function* () {
      const { columns, vectorTypes, chunks } = yield* connection.streamVectors(sql)
      const arrows = vectorTypes.map(arrowOf)
      const schema = new arrow.Schema(
        columns.map(
          ({ name }, index) => new arrow.Field(name, arrows[index]?.type ?? new arrow.Utf8(), true),
        ),
      )
      const batches = yield* Stream.runCollect(
        Stream.mapEffect(chunks, (chunk) =>
          Effect.try({
            try: () => batchOf(schema, arrows, chunk),
            catch: (cause) => failureOf(sql, cause),
          }),
        ),
      )
      return arrow.tableToIPC(new arrow.Table(schema, batches), "stream")
    }),
  )

const batchOf = (
  schema: arrow.Schema,
  arrows: ReadonlyArray<Column>,
  chunk: duckdb.DuckDBDataChunk,
): arrow.RecordBatch => {
  const children = arrows.map((column, index) => column.fill(chunk.getColumnValues(index)))
  return new arrow.RecordBatch(
    schema,
    arrow.makeData({ type: new arrow.Struct(schema.fields), length: chunk.rowCount, children }),
  )
}

const arrowOf = (type: duckdb.DuckDBType): Column => {
  switch (type.typeId) {
    case duckdb.DuckDBTypeId.BOOLEAN:
      return { type: new arrow.Bool(), fill: fillBool }
    case duckdb.DuckDBTypeId.DECIMAL:
      return decimalArrow(type.width, type.scale)
    case duckdb.DuckDBTypeId.HUGEINT:
    case duckdb.DuckDBTypeId.UHUGEINT:
      return decimalArrow(digitsMax, 0)
    case duckdb.DuckDBTypeId.LIST:
    case duckdb.DuckDBTypeId.ARRAY:
      return listArrow(arrowOf(type.valueType))
    case duckdb.DuckDBTypeId.BLOB:
      return { type: new arrow.Binary(), fill: (values) => fillBytes(new arrow.Binary(), values, blobBytes) }
    default: {
      const text = {
        type: new arrow.Utf8(),
        fill: (values: Values) => fillBytes(new arrow.Utf8(), values, textBytes),
      }
      return numericArrow[type.typeId]?.() ?? text
    }
  }
}

const numericArrow: { readonly [Id in duckdb.DuckDBTypeId]?: () => Column } = {
  [duckdb.DuckDBTypeId.TINYINT]: () => numbers(new arrow.Int8(), Int8Array),
  [duckdb.DuckDBTypeId.SMALLINT]: () => numbers(new arrow.Int16(), Int16Array),
  [duckdb.DuckDBTypeId.INTEGER]: () => numbers(new arrow.Int32(), Int32Array),
  [duckdb.DuckDBTypeId.UTINYINT]: () => numbers(new arrow.Uint8(), Uint8Array),
  [duckdb.DuckDBTypeId.USMALLINT]: () => numbers(new arrow.Uint16(), Uint16Array),
  [duckdb.DuckDBTypeId.UINTEGER]: () => numbers(new arrow.Uint32(), Uint32Array),
  [duckdb.DuckDBTypeId.FLOAT]: () => numbers(new arrow.Float32(), Float32Array),
  [duckdb.DuckDBTypeId.DOUBLE]: () => numbers(new arrow.Float64(), Float64Array),
  [duckdb.DuckDBTypeId.DATE]: () => numbers(new arrow.DateDay(), Int32Array),
  [duckdb.DuckDBTypeId.BIGINT]: () => bigints(new arrow.Int64(), BigInt64Array),
  [duckdb.DuckDBTypeId.UBIGINT]: () => bigints(new arrow.Uint64(), BigUint64Array),
  [duckdb.DuckDBTypeId.TIMESTAMP]: () => bigints(new arrow.TimestampMicrosecond(), BigInt64Array),
  [duckdb.DuckDBTypeId.TIMESTAMP_TZ]: () => bigints(new arrow.TimestampMicrosecond("UTC"), BigInt64Array),
}

/** Arrow's validity: one bit per value, absent if no value is NULL. */
const validity = (values: Values): { nullCount: number; nullBitmap: Uint8Array | null } => {
  const nullCount = values.reduce<number>((count, value) => (value === null ? count + 1 : count), 0)
  return { nullCount, nullBitmap: nullCount === 0 ? null : bits(values, (value) => value !== null) }
}

/** `makeData` has no overload for a type chosen at run time; the buffers are the same. */
const dataOf = (
  type: arrow.DataType,
  values: Values,
  data: ArrayBufferView,
  valueOffsets?: Int32Array,
): arrow.Data => {
  const { nullCount, nullBitmap } = validity(values)
  return new arrow.Data<arrow.DataType>(type, 0, values.length, nullCount, {
    [arrow.BufferType.DATA]: data,
    ...(nullBitmap === null ? {} : { [arrow.BufferType.VALIDITY]: nullBitmap }),
    ...(valueOffsets === undefined ? {} : { [arrow.BufferType.OFFSET]: valueOffsets }),
  })
}

const bits = (values: Values, isSet: (value: duckdb.DuckDBValue) => boolean): Uint8Array => {
  const packed = new Uint8Array(Math.ceil(values.length / 64) * 8)
  values.forEach((value, index) => {
    if (isSet(value)) packed[index >> 3] = (packed[index >> 3] ?? 0) | (1 << (index & 7))
  })
  return packed
}

const fillBool = (values: Values): arrow.Data =>
  dataOf(
    new arrow.Bool(),
    values,
    bits(values, (value) => value === true),
  )

/** A column of fixed width: its buffer, and what a value is in it. */
const filled = <Item extends number | bigint>(
  type: arrow.DataType,
  Buffer: new (length: number) => ArrayBufferView & { [index: number]: Item },
  itemOf: (value: duckdb.DuckDBValue) => Item,
): Column => ({
  type,
  fill: (values) => {
    const data = new Buffer(values.length)
    values.forEach((value, index) => {
      data[index] = itemOf(value)
    })
    return dataOf(type, values, data)
  },
})

const numbers = (type: arrow.DataType, Buffer: Parameters<typeof filled<number>>[1]): Column =>
  filled(type, Buffer, (value) => (value instanceof duckdb.DuckDBDateValue ? value.days : Number(value)))

const bigints = (type: arrow.DataType, Buffer: Parameters<typeof filled<bigint>>[1]): Column =>
  filled(type, Buffer, integerOf)

const integerOf = (value: duckdb.DuckDBValue): bigint => {
  if (typeof value === "bigint") return value
  return value instanceof duckdb.DuckDBTimestampTZValue || value instanceof duckdb.DuckDBTimestampValue
    ? value.micros
    : 0n
}

/** A decimal of 128 bits has no more. */
const digitsMax = 38
const hugeMax = 10n ** BigInt(digitsMax)

const scaledOf = (value: duckdb.DuckDBValue): bigint => {
  if (value instanceof duckdb.DuckDBDecimalValue) return value.value
  if (typeof value !== "bigint") return 0n
  if (value >= hugeMax || value <= -hugeMax)
    throw new RangeError(`an integer has more than ${digitsMax} digits; cast the column to VARCHAR`)
  return value
}

/** 128 bits, little-endian, two's complement, of the value scaled up to an integer. */
const decimalArrow = (width: number, scale: number): Column => {
  const type = new arrow.Decimal(scale, width, 128)
  const fill = (values: Values): arrow.Data => {
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

const listArrow = (item: Column): Column => {
  const type = new arrow.List(new arrow.Field("item", item.type, true))
  const fill = (values: Values): arrow.Data => {
    const valueOffsets = new Int32Array(values.length + 1)
    const items: Array<duckdb.DuckDBValue> = []
    values.forEach((value, index) => {
      if (value instanceof duckdb.DuckDBListValue || value instanceof duckdb.DuckDBArrayValue) {
        for (const child of value.items) items.push(child)
      }
      valueOffsets[index + 1] = items.length
    })
    return arrow.makeData({
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

const textBytes = (value: duckdb.DuckDBValue): Uint8Array => {
  const json = jsonValue(value)
  if (json === null) return nothing
  return encoder.encode(typeof json === "string" ? json : JSON.stringify(json))
}

const blobBytes = (value: duckdb.DuckDBValue): Uint8Array =>
  value instanceof duckdb.DuckDBBlobValue ? value.bytes : nothing

const fillBytes = (
  type: arrow.Utf8 | arrow.Binary,
  values: Values,
  bytesOf: (value: duckdb.DuckDBValue) => Uint8Array,
): arrow.Data => {
  const pieces = values.map(bytesOf)
  const valueOffsets = new Int32Array(values.length + 1)
  pieces.forEach((piece, index) => {
    valueOffsets[index + 1] = (valueOffsets[index] ?? 0) + piece.length
  })
  const data = new Uint8Array(valueOffsets[values.length] ?? 0)
  pieces.forEach((piece, index) => data.set(piece, valueOffsets[index] ?? 0))
  return dataOf(type, values, data, valueOffsets)
}
