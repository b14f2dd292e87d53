/**
 * `nightjar query SQL`: SQL over the published tables, read-only and without access to any other file, or a
 * query that comes with the program (`@missing`). Text formats are streamed; Arrow and Parquet are for
 * programs and are written to a file or a pipe.
 */
import { existsSync } from "node:fs"
import { Effect, Option, Stdio, Stream } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import type { Connection } from "../../duckdb/DuckDb.ts"
import { outputFolder, switchFlag } from "../CommonFlags.ts"
import { refuse } from "../Failures.ts"
import { table } from "../../report/TextTable.ts"
import { Output, say, sayJson, writeOut } from "../Output.ts"
import { refusalOfFile } from "../OutputGuard.ts"
import { csvFormat, jsonFormat, tableFormat } from "../QueryFormats.ts"
import { savedQueries, sqlOf } from "../SavedQueries.ts"
import { Wiring } from "../Wiring.ts"

const formats = ["table", "csv", "json", "arrow", "parquet"] as const
type Format = (typeof formats)[number]

const streamText = Effect.fnUntraced(function* (
  connection: Connection,
  sql: string,
  format: Format,
  excelSafe: boolean,
) {
  const { out } = yield* Output
  const { columns, chunks } = yield* connection.stream(sql)
  const text =
    format === "csv"
      ? csvFormat(columns, excelSafe)
      : format === "json"
        ? jsonFormat(columns)
        : tableFormat(columns, out.width)
  yield* writeOut(
    Stream.make(text.begin).pipe(
      Stream.concat(Stream.map(chunks, text.chunk)),
      Stream.concat(Stream.suspend(() => Stream.make(text.end()))),
    ),
  )
})

const writeBytes = Effect.fnUntraced(function* (connection: Connection, sql: string, format: Format) {
  const stdio = yield* Stdio.Stdio
  if (yield* stdio.stdoutIsTerminal) return yield* refuse("terminal-refused", { format })
  const { queryArrow } = yield* Effect.promise(() => import("../../duckdb/QueryArrow.ts"))
  const arrow = yield* queryArrow(connection, sql)
  if (format === "arrow") return yield* writeOut(Stream.make(arrow))
  const { parquetOf } = yield* Effect.promise(() => import("../QueryParquet.ts"))
  yield* writeOut(Stream.make(parquetOf(arrow)))
})

const listSaved = Effect.fnUntraced(function* (json: boolean) {
  const saved = yield* savedQueries
  if (json) return yield* sayJson(saved)
  const { out } = yield* Output
  const rows = saved.map(({ name, description }) => [`@${name}`, description])
  yield* say(table(["query", "answers"], rows, { width: out.width }))
})

export const query = Command.make(
  "query",
  {
    sql: Argument.String("SQL").pipe(
      Argument.withDescription("One statement, in quotes, or @NAME of a saved query"),
      Argument.optional,
    ),
    list: switchFlag("list", "List the saved queries"),
    format: Flag.Literals("format", formats).pipe(
      Flag.withDescription("Output format"),
      Flag.withDefault("table" as const),
    ),
    json: switchFlag("json", "The same as --format json"),
    excelSafe: switchFlag("excel-safe", "In csv, put ' before texts that a spreadsheet would run"),
  },
  Effect.fn("Query.handle")(function* ({ sql: given, list, format: named, json, excelSafe }) {
    const format = json ? "json" : named
    if (list) return yield* listSaved(format === "json")
    if (Option.isNone(given) || /^[\s;]*$/.test(given.value)) return yield* refuse("query-missing")
    const sql = yield* sqlOf(given.value)
    if (excelSafe && format !== "csv") return yield* refuse("excel-safe-without-csv", { format })
    const output = yield* outputFolder
    const wiring = yield* Wiring
    const path = `${output}/nightjar.duckdb`
    const file = refusalOfFile(output)
    if (file !== undefined) return yield* file
    if (!existsSync(path)) return yield* refuse("nothing-published", { output })
    yield* Effect.gen(function* () {
      const { DuckDb } = yield* Effect.promise(() => import("../../duckdb/DuckDb.ts"))
      const database = yield* DuckDb
      const connection = yield* database.open({ path, access: "read-only", externalAccess: false })
      const isText = format === "table" || format === "csv" || format === "json"
      yield* isText ? streamText(connection, sql, format, excelSafe) : writeBytes(connection, sql, format)
    }).pipe(Effect.scoped, Effect.provide(wiring.database))
  }),
).pipe(
  Command.withDescription(
    "Runs SQL over the published tables (see `nightjar tables`).\n" +
      "The format table cuts a cell after 1,000 characters, the others cut nothing.",
  ),
  Command.withExamples([
    {
      command: 'nightjar query "SELECT outcome, count(*) AS tasks FROM tasks GROUP BY ALL"',
      description: "How the tasks of all runs ended",
    },
    { command: "nightjar query @missing", description: "Who is missing and why; --list names the others" },
  ]),
)
