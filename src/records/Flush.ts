/**
 * When rows leave memory, and as what: those of a table once they fill a row group or have too much text,
 * those of the largest tables while all together take too much room. It follows from the rows alone, never
 * from time: the same rows give the same files, and a table with few rows is one file.
 */
import { tableToIPC, type Table } from "apache-arrow"
import { Compression, EnabledStatistics, WriterPropertiesBuilder, writeParquet } from "parquet-wasm"
import { Table as WasmTable } from "parquet-wasm"
import type { TableBuilder, TableSpec } from "./Columns.ts"

export interface Flushed {
  readonly spec: TableSpec
  readonly rows: number
  readonly table: Table
}

/** What DuckDB reads and compresses at once. */
const rowGroupRows = 122_880
/**
 * Bytes of one table, which is in memory several times while it is written. With more, a million records took
 * a tenth more memory; wide tables get smaller row groups by it.
 */
const tableBytesMax = 12 * 1024 * 1024
/** Of all tables together, as `TableBuilder.size` counts. */
const sizeMax = 64 * 1024 * 1024
/** Rows, and UTF-16 units of text, that become a batch: cells take more room than its bytes. */
const batchRows = 16_384
const batchUnits = 4 * 1024 * 1024

type Builders = Iterable<TableBuilder>

const take = (builder: TableBuilder): Flushed => {
  const { spec, encodedRows } = builder
  return { spec, rows: encodedRows, table: builder.takeEncoded() }
}

const isDue = ({ openRows, openUnits }: TableBuilder): boolean =>
  openRows >= batchRows || openUnits >= batchUnits

/** Encodes rows while there are enough of them, or all of them, and returns the tables that are full. */
function* encode(builder: TableBuilder, isLast: boolean): Generator<Flushed, void> {
  while (isDue(builder) || (isLast && builder.openRows > 0)) {
    const left = rowGroupRows - builder.encodedRows
    builder.encode(Math.min(batchRows, left, builder.rowsWithin(batchUnits)))
    if (builder.encodedRows === rowGroupRows || builder.encodedBytes >= tableBytesMax) yield take(builder)
  }
}

/** What has to leave memory now; tables that are not full keep their rows. Consumed as it is read. */
export function* flushFull(builders: Builders): Generator<Flushed, void> {
  const all = [...builders]
  for (const builder of all) yield* encode(builder, false)
  const sizeOf = () => all.reduce((sum, { size }) => sum + size, 0)
  while (sizeOf() > sizeMax) {
    const largest = all.reduce((one, other) => (other.size > one.size ? other : one))
    yield* flushAll([largest])
  }
}

/** All rows that are left. Consumed as it is read, so that they are never all in memory twice. */
export function* flushAll(builders: Builders): Generator<Flushed, void> {
  for (const builder of builders) {
    yield* encode(builder, true)
    if (builder.encodedRows > 0) yield take(builder)
  }
}

/** Returns what removes every row added from here on; valid until rows are flushed. */
export const markAll = (builders: Builders): (() => void) => {
  const marks = Array.from(builders, (builder) => builder.mark())
  return () => {
    for (const takeBack of marks) takeBack()
  }
}

// A table as the bytes of one file. DuckDB reads back exactly the declared types, except JSON, which Parquet
// stores as text.

// Larger pages and batches than the defaults: a third of the time at the same size.
const writeBatchRows = 65_536
const pageBytes = 8 * 1024 * 1024

/** `metadata` becomes the file's key-value metadata: run and schema version. */
export const parquetBytes = (
  spec: TableSpec,
  table: Table,
  metadata: Readonly<Record<string, string>>,
): Uint8Array => {
  let builder = new WriterPropertiesBuilder()
    .setCompression(Compression.ZSTD)
    .setStatisticsEnabled(EnabledStatistics.Chunk)
    .setWriteBatchSize(writeBatchRows)
    .setDataPageSizeLimit(pageBytes)
    .setMaxRowGroupSize(rowGroupRows)
    .setDictionaryEnabled(false)
    .setKeyValueMetadata(new Map(Object.entries(metadata)))
    .setCreatedBy("nightjar")
  for (const each of spec.columns) {
    // A dictionary of values that are nearly all different costs time and saves nothing.
    if (each.repeats === true) builder = builder.setColumnDictionaryEnabled(each.name, true)
    // The smallest and the largest JSON help no reader, and the writer keeps a whole copy of both.
    if (each.type === "JSON") builder = builder.setColumnStatisticsEnabled(each.name, EnabledStatistics.None)
  }
  // Table and properties are consumed by the writer: there is nothing left to free.
  return writeParquet(WasmTable.fromIPCStream(tableToIPC(table, "stream")), builder.build())
}
