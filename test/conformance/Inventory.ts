/**
 * The inventory: every row of the reference that can be pointed at, by its id, with its section and what the
 * reference says, and every row of what the product promises its users. It is written down by hand in
 * `inventory/*.yaml` and derives from no code, so that the code can be compared with it.
 */
import { readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { Schema } from "effect"
import { parse } from "yaml"

/**
 * `own`: no rows of the reference, but what this repository's contract adds, as its own choice. `pipeline`:
 * what the product promises its users.
 */
export const inventoryParts = ["resources", "states", "endpoints", "rules", "own", "pipeline"] as const
export type InventoryPart = (typeof inventoryParts)[number]

export interface Row {
  readonly id: string
  readonly section: string
  readonly says: string
  readonly part: InventoryPart
}

/** What the reference leaves open, what the embedded service chose, and what the client does about it. */
export const Silence = Schema.Struct({
  section: Schema.String,
  open: Schema.String,
  service: Schema.String,
  client: Schema.String,
})
export type Silence = typeof Silence.Type

const pathOf = (part: string) => fileURLToPath(new URL(`./inventory/${part}.yaml`, import.meta.url))
const read = (part: string): unknown => parse(readFileSync(pathOf(part), "utf8"), { uniqueKeys: true })

const Rows = Schema.Record(Schema.String, Schema.Record(Schema.String, Schema.String))
const decodeRows = Schema.decodeUnknownSync(Rows)

const rowsOf = (part: InventoryPart): ReadonlyArray<Row> =>
  Object.entries(decodeRows(read(part))).flatMap(([section, rows]) =>
    Object.entries(rows).map(([id, says]) => ({ id, section, says, part })),
  )

const rankOf = ({ part }: Row): number => (part === "pipeline" ? 1 : 0)

/** Sections in the reference's order, the pipeline's after them; within one, the order of the files. */
const bySection = (a: Row, b: Row): number => {
  const [left, right] = [a, b].map(({ section }) => section.split(".").map(Number))
  if (a.part === "pipeline" || b.part === "pipeline") return rankOf(a) - rankOf(b)
  return (left?.[0] ?? 0) - (right?.[0] ?? 0) || (left?.[1] ?? 0) - (right?.[1] ?? 0)
}

export const readInventory = (): ReadonlyArray<Row> => inventoryParts.flatMap(rowsOf).toSorted(bySection)

export const readSilences = (): ReadonlyArray<Silence> =>
  Schema.decodeUnknownSync(Schema.Array(Silence))(read("not-shown"))

/** Method and path of each endpoint, as `POST {base_url}/executions/init/v1/parametrized`. */
export const readPaths = (): Readonly<Record<string, string>> =>
  Schema.decodeUnknownSync(Schema.Record(Schema.String, Schema.String))(read("paths"))
