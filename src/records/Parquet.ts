/**
 * One Arrow table -> the bytes of one Parquet file: zstd, statistics, one row group per 122,880 rows, and
 * the run and schema version it belongs to in the file's metadata. DuckDB reads back exactly the declared
 * types, except JSON, which Parquet stores as text.
 */
import { tableToIPC, type Table } from "apache-arrow"
import {
  Compression,
  EnabledStatistics,
  Table as WasmTable,
  WriterPropertiesBuilder,
  writeParquet,
} from "parquet-wasm"
import type { TableSpec } from "./Columns.ts"
import { rowGroupRows } from "./Flush.ts"

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
