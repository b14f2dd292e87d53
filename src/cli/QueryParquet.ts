/**
 * An Arrow IPC stream as the bytes of one Parquet file, zstd. A module of its own because loading the writer
 * costs more than most queries.
 */
import { Compression, Table, WriterPropertiesBuilder, writeParquet } from "parquet-wasm"

export const parquetOf = (arrow: Uint8Array): Uint8Array =>
  writeParquet(
    Table.fromIPCStream(arrow),
    new WriterPropertiesBuilder().setCompression(Compression.ZSTD).setCreatedBy("nightjar").build(),
  )
