/** A family of papers with a list, and an empty database with the tables that its Parquet files have. */
import { Effect } from "effect"
import type { Connection } from "../../src/base/DuckDb.ts"
import { column } from "../../src/records/Columns.ts"
import type { RecordFamily } from "../../src/records/RecordSchema.ts"
import { recordTables } from "../../src/records/RecordTables.ts"
import { emptyStatements } from "../../src/tables/EmptyDatabase.ts"
import { keptTables } from "../../src/tables/RecordStore.ts"

const declare = (name: string, type: "VARCHAR" | "TIMESTAMPTZ" | "DECIMAL(9,2)") => ({
  ...column(name, type, "clear", name),
  required: false,
  identifies: false,
})

/** Two features feed it: it is answered if both succeed, or if one does and there are records. */
const family: RecordFamily = {
  table: "papers",
  comment: "Papers.",
  product: "paper",
  subFamilies: ["paper:id"],
  features: ["paper_a", "paper_b"],
  key: ["type"],
  fetched: ["fetch_date"],
  mode: "evolve",
  columns: [
    declare("fetch_date", "TIMESTAMPTZ"),
    declare("type", "VARCHAR"),
    declare("name", "VARCHAR"),
    declare("amount", "DECIMAL(9,2)"),
  ],
  children: [
    {
      field: "lines",
      table: "lines",
      comment: "Lines.",
      required: false,
      items: "objects",
      columns: [declare("line", "VARCHAR")],
    },
  ],
}
export const families = [family]
export const tables = keptTables(families)

/** An empty database, and the rows that Parquet files would have. */
export const begin = Effect.fnUntraced(function* (connection: Connection) {
  yield* connection.run(
    [
      emptyStatements({ families }),
      "CREATE SCHEMA files",
      ...recordTables(families).map(
        (spec) =>
          `CREATE TABLE files.${spec.name} (${spec.columns.map((each) => `${each.name} ${each.type}`).join(", ")})`,
      ),
    ].join(";\n"),
  )
})
