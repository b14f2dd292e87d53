/**
 * `nightjar query SQL`: SQL over the published tables, read-only and without access to any other file, or a
 * query that comes with the program (`@missing`). Text formats and workbooks are streamed; what a terminal
 * cannot show is written to a file or a pipe.
 */
import { Effect, Option, Stdio, Stream } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import type { Connection } from "../../base/DuckDb.ts"
import { counted } from "../../base/Text.ts"
import { outputFolder, switchFlag } from "../CommonFlags.ts"
import { refuse } from "../Failures.ts"
import { table } from "../../report/TextTable.ts"
import { Output, say, sayJson, warn, writeOut } from "../Output.ts"
import { refusalOfFile } from "../RunFolder.ts"
import { withPublished } from "../PublishedDatabase.ts"
import { csvFormat, jsonFormat, savedQueries, sqlOf, tableFormat, parquetOf } from "../QueryFormats.ts"

const formats = ["table", "csv", "json", "arrow", "parquet", "xlsx"] as const
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
  if (format === "xlsx") return yield* writeWorkbook(connection, sql)
  const { queryArrow } = yield* Effect.promise(() => import("../../base/QueryArrow.ts"))
  const arrow = yield* queryArrow(connection, sql)
  if (format === "arrow") return yield* writeOut(Stream.make(arrow))
  yield* writeOut(Stream.make(yield* Effect.promise(() => parquetOf(arrow))))
})

const writeWorkbook = Effect.fnUntraced(function* (connection: Connection, sql: string) {
  const { xlsxOf, columnsMax } = yield* Effect.promise(() => import("../QueryXlsx.ts"))
  const { DuckDbFailed, failureOf } = yield* Effect.promise(() => import("../../base/DuckDbFailed.ts"))
  const { columns, chunks } = yield* connection.stream(sql)
  if (columns.length > columnsMax) return yield* refuse("workbook-too-wide", { columnsMax })
  let cut = 0
  const workbook = xlsxOf(columns, Stream.toAsyncIterable(chunks), () => void cut++)
  yield* writeOut(
    Stream.fromReadableStream({
      evaluate: () => workbook,
      onError: (cause) => (cause instanceof DuckDbFailed ? cause : failureOf(sql, cause)),
    }),
  )
  if (cut > 0) yield* warn("cells-cut", { cells: counted(cut, "cell") })
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
      Flag.withDescription("Format"),
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
    const file = refusalOfFile(output)
    if (file !== undefined) return yield* file
    const isText = format === "table" || format === "csv" || format === "json"
    const printed = yield* withPublished(
      output,
      Effect.fnUntraced(function* (connection) {
        const given = yield* connection.statements(sql)
        // Of several, only the last one's result would be printed.
        if (given > 1) return yield* refuse("query-several", { given: counted(given, "statement") })
        yield* isText ? streamText(connection, sql, format, excelSafe) : writeBytes(connection, sql, format)
        return true
      }),
    )
    if (printed === undefined) return yield* refuse("nothing-published", { output })
  }),
).pipe(
  Command.withShortDescription("Runs SQL over the published tables (see `nightjar tables`)"),
  Command.withDescription(
    "Runs SQL over the published tables (see `nightjar tables`)\n\n" +
      "Format table cuts a cell after 1,000 characters, and xlsx after 32,767, as many\n" +
      "as Excel takes; the others cut nothing. Times in xlsx are UTC.",
  ),
  Command.withExamples([
    {
      command: 'nightjar query "SELECT outcome, count(*) AS tasks FROM tasks GROUP BY ALL"',
      description: "How the tasks of all runs ended",
    },
    {
      command: "nightjar query @missing --format xlsx > missing.xlsx",
      description: "The same as a workbook for Excel",
    },
    { command: "nightjar query @missing", description: "Who is missing and why; --list names the others" },
  ]),
)
