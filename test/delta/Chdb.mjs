/**
 * Reads tables through their Delta logs with chdb, as `delta.ts` asks: each by delta-kernel-rs and, where it can, by
 * ClickHouse's own code, into one Parquet file each. A process of its own: what the reader may open lies in its working directory.
 */
import { createRequire } from "node:module"
import { join } from "node:path"

const [reader = "", answers = "", asks = "[]"] = process.argv.slice(2)
const { query } = createRequire(join(reader, "package.json"))("chdb")

for (const [index, { table, version, ways }] of JSON.parse(asks).entries())
  for (const way of ways) {
    const kernel = way === "kernel" ? 1 : 0
    const at = version === undefined ? "" : `, delta_lake_snapshot_version = ${version}`
    try {
      query(
        `SELECT * FROM deltaLakeLocal('${join(process.cwd(), "tables", table)}')
          INTO OUTFILE '${join(answers, `${index}.${way}.parquet`)}' FORMAT Parquet
          SETTINGS allow_experimental_delta_kernel_rs = ${kernel}${at}`,
        "CSV",
      )
    } catch (cause) {
      console.log(`${table}, by ${way}: ${String(cause).slice(0, 400)}`)
    }
  }
