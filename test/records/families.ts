/** The families of the repository, whole example records, and a way to read rows back as an analyst would. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import { DuckDBInstance, DuckDBTimestampTZValue } from "@duckdb/node-api"
import type { Table } from "apache-arrow"
import { Effect } from "effect"
import type { TableBuilder, TableSpec } from "../../src/records/Columns.ts"
import { parseBody, type Counts } from "../../src/records/FindRecords.ts"
import { flushAll } from "../../src/records/Flush.ts"
import { flowResultsSource, recordsIn } from "../../src/service/FlowResults.ts"
import { readRecordSchemas } from "../../src/records/RecordSchema.ts"
import type { Lineage } from "../../src/records/CompileFamily.ts"
import type { Normaliser } from "../../src/records/Normalise.ts"
import { parquetBytes } from "../../src/records/Flush.ts"
import { anId } from "../harness/Id.ts"

export const schemasFolder = new URL("../../schemas/records", import.meta.url).pathname

/** Our own readings of what the reference does not show. */
export const readingsFolder = new URL("../../schemas/readings", import.meta.url).pathname

export const families = (
  await Effect.runPromise(readRecordSchemas(schemasFolder).pipe(Effect.provide(NodeFileSystem.layer)))
).map(({ family }) => family)

export const lineage: Lineage = {
  run_id: anId("nightly.2026-11-20"),
  run_date: "2026-11-20",
  task_id: anId("nightly.2026-11-20/c-0001/es-tax-agency:website"),
  execution_id: anId("e-1"),
  session_id: anId("s-1"),
  customer_id: anId("c-0001"),
  engine_reference: anId("es-tax-agency:website"),
}

export const profile = {
  product: "customer_information",
  sub_family: "customer_information:user_profile",
  fetch_date: "2026-11-20T03:04:05.123456+01:00",
  type: "person",
  name: "María",
  name_extra: "Núñez",
  alias: null,
  identification_numbers: [
    { type: "es:dni", value: "00000000T", validated: true, country: "ES", valid_until: "2031-05-01" },
    { type: "xx:new", value: "1", validated: false, issued_by: { office: 3 } },
  ],
  birth_date: "1980-02-29",
  birth_country: "ES",
  nationality_country: "ES",
  residence_country: "ES",
  gender: "female",
  civil_status: "complicated",
  number_of_children: 2,
  emails: ["a@example.org", "b@example.org"],
  phones: [],
  addresses: [{ street: "Calle Mayor 1", country: "ES" }],
  language: "es",
  member_since: "2011-02-03",
  loyalty_points: 9,
}

export const degree = {
  product: "academic_data",
  sub_family: "academic_data:higher_master",
  fetch_date: "2026-11-20T03:04:05Z",
  qualification_name: "Máster",
  institution_name: "Universidad",
  institution_country: "ES",
  completion_status: "completed",
  total_credits: "60.50",
  grade_average: "8.733333333333333",
}

// Otherwise times would be shown in the zone in which the tests run.
DuckDBTimestampTZValue.timezoneOffsetInMinutes = 0

/** Rows as the database shows them after Parquet, with their types. */
export const readBack = async (spec: TableSpec, table: Table, query = "FROM t") => {
  const folder = mkdtempSync(join(tmpdir(), "records-"))
  const instance = await DuckDBInstance.create(":memory:")
  const connection = await instance.connect()
  try {
    const path = join(folder, "t.parquet")
    writeFileSync(path, parquetBytes(spec, table, { run_id: "nightly.2026-11-20", schema_version: "1" }))
    await connection.run("SET TimeZone = 'UTC'")
    await connection.run(`CREATE VIEW t AS FROM read_parquet('${path}')`)
    const rows = (await connection.runAndReadAll(query)).getRowObjectsJson()
    const described = (await connection.runAndReadAll("DESCRIBE t")).getRowObjectsJson()
    const ranges = await connection.runAndReadAll(
      `SELECT path_in_schema AS name FROM parquet_metadata('${path}') WHERE stats_min_value IS NOT NULL`,
    )
    const metadata = await connection.runAndReadAll(
      `SELECT decode(key) AS key, decode(value) AS value FROM parquet_kv_metadata('${path}')`,
    )
    return {
      rows,
      types: Object.fromEntries(described.map((each) => [each["column_name"], each["column_type"]])),
      /** The columns whose smallest and largest value a reader knows without reading them. */
      ranges: ranges.getRowObjectsJson().map((each) => each["name"]),
      metadata: Object.fromEntries(metadata.getRowObjectsJson().map((each) => [each["key"], each["value"]])),
    }
  } finally {
    connection.closeSync()
    instance.closeSync()
    rmSync(folder, { recursive: true })
  }
}

/** All rows so far; consumed as it is read. */
export const flushOf = (normaliser: Normaliser) => flushAll(normaliser.tables().values())

/** The bytes of one landed body, read and added. */
export const addBody = (normaliser: Normaliser, bytes: Uint8Array): Counts => {
  const parsed = parseBody(bytes)
  return parsed._tag === "ReadableBody"
    ? normaliser.add(lineage, recordsIn(flowResultsSource, parsed.value))
    : normaliser.refuse(lineage, parsed.reason)
}

export const rowsHeld = ({ openRows, encodedRows }: TableBuilder): number => openRows + encodedRows

/** All rows as one Arrow table; the builder is empty afterwards. */
export const finished = (builder: TableBuilder): Table => {
  if (builder.openRows > 0 || builder.encodedRows === 0) builder.encode(builder.openRows)
  return builder.takeEncoded()
}

/** All rows of a normaliser, by table, as plain objects; only for columns that Arrow shows plainly. */
export const flushedRows = (normaliser: Normaliser): Record<string, ReadonlyArray<Record<string, unknown>>> =>
  Object.fromEntries(
    flushOf(normaliser).map(({ spec, table }) => [
      spec.name,
      table.toArray().map((row) => (row as { toJSON: () => Record<string, unknown> }).toJSON()),
    ]),
  )
