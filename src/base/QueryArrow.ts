/**
 * A query's result as an Arrow IPC stream, for readers that want types instead of text. DuckDB has no Arrow
 * output without an extension, so its values go through Arrow's builders, batch by batch. Integers, decimals,
 * dates and times keep their types and every digit (a HUGEINT, which is what sum() returns, is a
 * DECIMAL(38,0)); types without an Arrow equivalent here (structs, maps, intervals) become text.
 */
import * as duckdb from "@duckdb/node-api"
import * as arrow from "apache-arrow"
import { Effect, Stream } from "effect"
import { jsonValue, type Connection } from "./DuckDb.ts"
import { failureOf, type DuckDbFailed } from "./DuckDbFailed.ts"

type Value = duckdb.DuckDBValue
/** `stored`: the type in which a builder of Arrow takes every digit; the buffers are those of `type`. */
interface Column {
  readonly type: arrow.DataType
  readonly stored: arrow.DataType
  readonly itemOf: (value: Exclude<Value, null>) => unknown
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
  const children = arrows.map(({ type, stored, itemOf }, index) => {
    const builder = arrow.makeBuilder({ type: stored, nullValues: [null] })
    for (const value of chunk.getColumnValues(index)) builder.append(value === null ? null : itemOf(value))
    return retyped(builder.finish().flush(), type)
  })
  return new arrow.RecordBatch(
    schema,
    arrow.makeData({ type: new arrow.Struct(schema.fields), length: chunk.rowCount, children }),
  )
}

const retyped = (data: arrow.Data, type: arrow.DataType): arrow.Data => {
  const children = data.children.map((child, index) =>
    retyped(child, type.children?.[index]?.type ?? child.type),
  )
  return data.clone(type, data.offset, data.length, data.nullCount, data.buffers, children)
}

const column = (type: arrow.DataType, itemOf: Column["itemOf"], stored = type): Column => ({
  type,
  stored,
  itemOf,
})

const arrowOf = (type: duckdb.DuckDBType): Column => {
  switch (type.typeId) {
    case duckdb.DuckDBTypeId.DECIMAL:
      return decimal(type.width, type.scale)
    case duckdb.DuckDBTypeId.HUGEINT:
    case duckdb.DuckDBTypeId.UHUGEINT:
      return decimal(digitsMax, 0)
    case duckdb.DuckDBTypeId.LIST:
    case duckdb.DuckDBTypeId.ARRAY:
      return list(arrowOf(type.valueType))
    default:
      return plainColumns[type.typeId] ?? column(new arrow.Utf8(), textOf)
  }
}

const sameOf = (value: Value) => value
const daysOf = (value: Value) => (value instanceof duckdb.DuckDBDateValue ? value.days : 0)
const bytesOf = (value: Value) => (value instanceof duckdb.DuckDBBlobValue ? value.bytes : nothing)
const microsOf = (value: Value) =>
  value instanceof duckdb.DuckDBTimestampTZValue || value instanceof duckdb.DuckDBTimestampValue
    ? value.micros
    : 0n
const textOf = (value: Value) => {
  const json = jsonValue(value)
  return typeof json === "string" ? json : JSON.stringify(json)
}
const nothing = new Uint8Array(0)

const plainColumns: { readonly [Id in duckdb.DuckDBTypeId]?: Column } = {
  [duckdb.DuckDBTypeId.BOOLEAN]: column(new arrow.Bool(), sameOf),
  [duckdb.DuckDBTypeId.TINYINT]: column(new arrow.Int8(), sameOf),
  [duckdb.DuckDBTypeId.SMALLINT]: column(new arrow.Int16(), sameOf),
  [duckdb.DuckDBTypeId.INTEGER]: column(new arrow.Int32(), sameOf),
  [duckdb.DuckDBTypeId.BIGINT]: column(new arrow.Int64(), sameOf),
  [duckdb.DuckDBTypeId.UTINYINT]: column(new arrow.Uint8(), sameOf),
  [duckdb.DuckDBTypeId.USMALLINT]: column(new arrow.Uint16(), sameOf),
  [duckdb.DuckDBTypeId.UINTEGER]: column(new arrow.Uint32(), sameOf),
  [duckdb.DuckDBTypeId.UBIGINT]: column(new arrow.Uint64(), sameOf),
  [duckdb.DuckDBTypeId.FLOAT]: column(new arrow.Float32(), sameOf),
  [duckdb.DuckDBTypeId.DOUBLE]: column(new arrow.Float64(), sameOf),
  [duckdb.DuckDBTypeId.BLOB]: column(new arrow.Binary(), bytesOf),
  [duckdb.DuckDBTypeId.DATE]: column(new arrow.DateDay(), daysOf, new arrow.Int32()),
  [duckdb.DuckDBTypeId.TIMESTAMP]: column(new arrow.TimestampMicrosecond(), microsOf, new arrow.Int64()),
  [duckdb.DuckDBTypeId.TIMESTAMP_TZ]: column(
    new arrow.TimestampMicrosecond("UTC"),
    microsOf,
    new arrow.Int64(),
  ),
}

/** A decimal of 128 bits has no more. */
const digitsMax = 38
const hugeMax = 10n ** BigInt(digitsMax)

const scaledOf = (value: Value): bigint => {
  if (value instanceof duckdb.DuckDBDecimalValue) return value.value
  if (typeof value !== "bigint") return 0n
  if (value >= hugeMax || value <= -hugeMax)
    throw new RangeError(`an integer has more than ${digitsMax} digits; cast the column to VARCHAR`)
  return value
}

/** 128 bits, little-endian, two's complement, of the value scaled up to an integer. */
const decimal = (width: number, scale: number): Column =>
  column(new arrow.Decimal(scale, width, 128), (value) => {
    const scaled = scaledOf(value)
    const words = BigUint64Array.of(BigInt.asUintN(64, scaled), BigInt.asUintN(64, scaled >> 64n))
    return new Uint32Array(words.buffer)
  })

const list = ({ type, stored, itemOf }: Column): Column => {
  const listed = (item: arrow.DataType) => new arrow.List(new arrow.Field("item", item, true))
  const itemsOf = (value: Value) =>
    value instanceof duckdb.DuckDBListValue || value instanceof duckdb.DuckDBArrayValue
      ? value.items.map((item) => (item === null ? null : itemOf(item)))
      : []
  return column(listed(type), itemsOf, listed(stored))
}
