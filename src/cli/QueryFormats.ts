/**
 * Query results as text, chunk by chunk: an aligned table, CSV with every value as it is (or, if asked for,
 * with none that a spreadsheet takes for a formula), JSON. At most one chunk of rows is in memory.
 */
import { readFileSync, readdirSync } from "node:fs"
import { join } from "node:path"
import { Effect } from "effect"
import type { Column, Json, QueryResult } from "../base/DuckDb.ts"
import { suggestion } from "../base/Text.ts"
import { refuse } from "./Failures.ts"
import { Wiring } from "./Wiring.ts"
import { csvLine, harmless, table } from "../report/TextTable.ts"

interface TextFormat {
  readonly begin: string
  readonly chunk: (rows: QueryResult["rows"]) => string
  readonly end: () => string
}

/** A cell in text formats; NULL is empty. */
export const asText = (cell: Json): string =>
  cell === null ? "" : typeof cell === "object" ? JSON.stringify(cell) : String(cell)

export const numeric = /^(?:U?(?:TINY|SMALL|BIG|HUGE)?INT(?:EGER)?|FLOAT|DOUBLE|DECIMAL\(.*\))$/

/** `excelSafe`: an apostrophe stands before texts that a spreadsheet would run, `+34600123123` too. */
export const csvFormat = (columns: ReadonlyArray<Column>, excelSafe: boolean): TextFormat => {
  const text = excelSafe ? harmless : (each: string) => each
  const isNumber = columns.map(({ type }) => numeric.test(type))
  const cellText = (cell: Json, index: number) =>
    typeof cell === "number" || isNumber[index] === true ? asText(cell) : text(asText(cell))
  return {
    begin: csvLine(columns.map(({ name }) => text(name))),
    chunk: (rows) => rows.map((row) => csvLine(row.map(cellText))).join(""),
    end: () => "",
  }
}

export const jsonFormat = (columns: ReadonlyArray<Column>): TextFormat => {
  let first = true
  return {
    begin: "[",
    chunk: (rows) =>
      rows
        .map((row) => {
          const object = Object.fromEntries(columns.map(({ name }, index) => [name, row[index] ?? null]))
          const text = `${first ? "\n" : ",\n"}  ${JSON.stringify(object)}`
          first = false
          return text
        })
        .join(""),
    end: () => (first ? "]\n" : "\n]\n"),
  }
}

/** Aligned within each chunk of 2,048 rows, so that a result of any size can be shown. */
export const tableFormat = (columns: ReadonlyArray<Column>, width: number): TextFormat => {
  const header = columns.map(({ name }) => name)
  const right = new Set(columns.flatMap(({ type }, index) => (numeric.test(type) ? [index] : [])))
  let count = 0
  return {
    begin: "",
    chunk: (rows) => {
      const cells = rows.map((row) => row.map(asText))
      const text = `${table(header, cells, { width, right })}\n`
      const shown = count === 0 ? text : text.slice(text.indexOf("\n") + 1)
      count += rows.length
      return shown
    },
    end: () =>
      count === 0
        ? `${table(header, [], { width })}\n(no rows)\n`
        : `(${count} ${count === 1 ? "row" : "rows"})\n`,
  }
}

// The queries that come with the program: one SQL file each, in `schemas/queries`, whose first line says in
// a comment what it answers. `nightjar query @NAME` runs one.

interface SavedQuery {
  readonly name: string
  readonly description: string
  readonly sql: string
}

/** In the order of their names. */
export const readSavedQueries = (packageFolder: string): ReadonlyArray<SavedQuery> => {
  const folder = join(packageFolder, "schemas/queries")
  return readdirSync(folder)
    .filter((file) => file.endsWith(".sql"))
    .toSorted()
    .map((file) => {
      const text = readFileSync(join(folder, file), "utf8")
      const [first = "", ...rest] = text.split("\n")
      const description = first.replace(/^--\s*/, "")
      return { name: file.slice(0, -".sql".length), description, sql: rest.join("\n") }
    })
}

export const savedQueries = Effect.map(Wiring, ({ packageFolder }) => readSavedQueries(packageFolder))

/** `@missing` -> its SQL; any other text is SQL already. */
export const sqlOf = Effect.fnUntraced(function* (text: string) {
  if (!text.startsWith("@")) return text
  const saved = yield* savedQueries
  const found = saved.find(({ name }) => `@${name}` === text)
  if (found !== undefined) return found.sql
  const names = saved.map(({ name }) => `@${name}`)
  return yield* refuse("saved-query-unknown", { suggestion: suggestion(text, names) })
})

/**
 * An Arrow IPC stream as the bytes of one Parquet file, zstd; the writer costs more to load than most
 * queries.
 */
export const parquetOf = async (arrow: Uint8Array): Promise<Uint8Array> => {
  const { Compression, Table, WriterPropertiesBuilder, writeParquet } = await import("parquet-wasm")
  return writeParquet(
    Table.fromIPCStream(arrow),
    new WriterPropertiesBuilder().setCompression(Compression.ZSTD).setCreatedBy("nightjar").build(),
  )
}
