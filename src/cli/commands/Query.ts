/**
 * `query SQL`: SQL over the published tables, read-only and without access to any other file. Text and
 * workbooks are streamed; what a terminal cannot show is written to a file or a pipe.
 */
import { join } from "node:path"
import { Effect, Option, Stdio, Stream } from "effect"
import { Command, Flag } from "effect/cli"
import type { CellValue, XlsxWriteStreamOptions } from "hucre/xlsx"
import type { Column, Connection, Json, QueryResult } from "../../base/DuckDb.ts"
import { counted, suggestion } from "../../base/Text.ts"
import { helped } from "../CommandRow.ts"
import {
  Output,
  optionalArgument,
  outputFolder,
  say,
  sayJson,
  switchFlag,
  warn,
  writeOut,
} from "../Output.ts"
import { refuse } from "../Failures.ts"
import { withPublished } from "../PublishedDatabase.ts"
import { refusalOfFile } from "../OutputFolder.ts"
import { Wiring } from "../Wiring.ts"
import { readShipped } from "./Help.ts"
import { csvLine, harmless, table } from "../../report/TextTable.ts"

/** Query results as text, chunk by chunk: at most two chunks of rows are in memory. */
interface TextFormat {
  readonly begin: string
  readonly chunk: (rows: QueryResult["rows"]) => string
  readonly end: () => string
}

/** A cell in text formats; NULL is empty. */
const asText = (cell: Json): string =>
  cell === null ? "" : typeof cell === "object" ? JSON.stringify(cell) : String(cell)

const numeric = /^(?:U?(?:TINY|SMALL|BIG|HUGE)?INT(?:EGER)?|FLOAT|DOUBLE|DECIMAL\(.*\))$/

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
  let before = ""
  const objectText = (row: QueryResult["rows"][number]): string => {
    const object = Object.fromEntries(columns.map(({ name }, index) => [name, row[index] ?? null]))
    const text = `${before}\n  ${JSON.stringify(object)}`
    before = ","
    return text
  }
  return {
    begin: "[",
    chunk: (rows) => rows.map(objectText).join(""),
    end: () => (before === "" ? "]\n" : "\n]\n"),
  }
}

/** As many as the largest chunk has; each file of a table that is read may give a chunk of its own. */
const alignedRows = 2048

/** Aligned within each 2,048 rows or more, so that a result of any size can be shown. */
export const tableFormat = (columns: ReadonlyArray<Column>, width: number): TextFormat => {
  const header = columns.map(({ name }) => name)
  const right = new Set(columns.flatMap(({ type }, index) => (numeric.test(type) ? [index] : [])))
  let [count, held]: [number, QueryResult["rows"]] = [0, []]
  const shown = () => {
    if (held.length === 0) return ""
    const cells = held.map((row) => row.map(asText))
    const text = `${table(header, cells, { width, right })}\n`
    const isFirst = count === held.length
    held = []
    return isFirst ? text : text.slice(text.indexOf("\n") + 1)
  }
  return {
    begin: "",
    chunk: (rows) => {
      count += rows.length
      held = [...held, ...rows]
      return held.length < alignedRows ? "" : shown()
    },
    end: () =>
      count === 0 ? `${table(header, [], { width })}\n(no rows)\n` : `${shown()}(${counted(count, "row")})\n`,
  }
}

/** The queries that come with the program: SQL files, whose first line says in a comment what it answers. */
export const readSavedQueries = (packageFolder: string) =>
  readShipped(join(packageFolder, "schemas/queries"), ".sql").map(({ name, text }) => {
    const [first = "", ...rest] = text.split("\n")
    return { name, description: first.replace(/^--\s*/, ""), sql: rest.join("\n") }
  })

const savedQueries = Effect.map(Wiring, ({ packageFolder }) => readSavedQueries(packageFolder))

/** `@missing` -> its SQL; any other text is SQL already. */
const sqlOf = Effect.fnUntraced(function* (text: string) {
  if (!text.startsWith("@")) return text
  const saved = yield* savedQueries
  const found = saved.find(({ name }) => `@${name}` === text)
  if (found !== undefined) return found.sql
  const names = saved.map(({ name }) => `@${name}`)
  return yield* refuse("saved-query-unknown", { suggestion: suggestion(text, names) })
})

/** An Arrow stream as one Parquet file, with zstd; the writer costs more to load than most queries. */
export const parquetOf = async (arrow: Uint8Array): Promise<Uint8Array> => {
  const { Compression, Table, WriterPropertiesBuilder, writeParquet } = await import("parquet-wasm")
  return writeParquet(
    Table.fromIPCStream(arrow),
    new WriterPropertiesBuilder().setCompression(Compression.ZSTD).setCreatedBy("nightjar").build(),
  )
}

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
  const { DuckDbFailed, failureOf } = yield* Effect.promise(() => import("../../base/DuckDbFailed.ts"))
  const { columns, chunks } = yield* connection.stream(sql)
  if (columns.length > columnsMax) return yield* refuse("workbook-too-wide", { columnsMax })
  let cut = 0
  const workbook = yield* Effect.promise(() =>
    xlsxOf(columns, Stream.toAsyncIterable(chunks), () => void cut++),
  )
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
    sql: optionalArgument("SQL", "One statement, in quotes, or @NAME of a saved query"),
    list: switchFlag("list", "List the saved queries"),
    format: Flag.Literals("format", formats).pipe(Flag.withDescription("Format"), Flag.optional),
    json: switchFlag("json", "The same as --format json"),
    excelSafe: switchFlag("excel-safe", "In csv, put ' before texts that a spreadsheet would run"),
  },
  Effect.fn("Query.handle")(function* ({ sql: given, list, format: named, json, excelSafe }) {
    const format = json ? "json" : Option.getOrElse(named, () => "table" as const)
    if (json && Option.isSome(named) && named.value !== format)
      return yield* refuse("query-formats", { format: named.value })
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
  helped({
    more: `
      \`--format table\` cuts a cell after 1,000 characters, and \`xlsx\` after 32,767, which is Excel's
      limit; the other formats cut nothing. Times in xlsx are UTC.`,
    examples: {
      'nightjar query "SELECT outcome, count(*) AS tasks FROM ops.tasks GROUP BY ALL"':
        "How the tasks of all runs ended",
      "nightjar query @missing --format xlsx > missing.xlsx": "The same as a workbook for Excel",
      "nightjar query @missing": "Who is missing and why; --list names the others",
    },
  }),
)

// A result as an Excel workbook, row by row. Texts are always text; so are numbers of more than 15 digits and
// times before March 1900, which Excel would change.

/** Excel's limits: characters of a cell, columns of a sheet. Further rows go to further sheets. */
const charactersMax = 32_767
export const columnsMax = 16_384

/** Digits beyond these are lost in Excel. */
const digitsMax = 15

const timeFormats = new Map([
  ["DATE", "yyyy-mm-dd"],
  ["TIMESTAMP", "yyyy-mm-dd hh:mm:ss"],
  ["TIMESTAMP WITH TIME ZONE", "yyyy-mm-dd hh:mm:ss"],
])

/** Excel counts the days before as if 1900 had been a leap year. */
const earliest = Date.UTC(1900, 2, 1)
const latest = Date.UTC(10_000, 0, 1)

/**
 * What XML cannot contain or a reader might drop, spelled `_xHHHH_` (ECMA-376, 22.9.2.19); so is an
 * underscore that would begin that.
 */
const unwritable = /_(?=x[0-9a-f]{4}_)|(?![\t\n\r])\p{Cc}|\p{Cs}|[\ufdd0-\ufdef\ufffd-\uffff]/giu

const escaped = (character: string): string =>
  `_x${character.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0")}_`

/** A result as the bytes of a workbook. `onCut` is called for each text that is longer than a cell can be. */
export const xlsxOf = async (
  columns: ReadonlyArray<Column>,
  chunks: AsyncIterable<QueryResult["rows"]>,
  onCut: () => void,
): Promise<ReadableStream<Uint8Array>> => {
  const { writeXlsxStream } = await import("hucre/xlsx")
  const textCell = (text: string): string => {
    const isLong = text.length > charactersMax
    if (isLong) onCut()
    return (isLong ? `${text.slice(0, charactersMax - 1)}…` : text).replace(unwritable, escaped)
  }
  const toCells = columns.map(({ type }): ((cell: Json) => CellValue) => {
    const toCell = numeric.test(type) ? numberCell : timeFormats.has(type) ? timeCell : asItIs
    return (cell) => {
      const value = cell === null ? null : toCell(cell)
      return typeof value === "string" ? textCell(value) : value
    }
  })
  async function* rows() {
    yield columns.map(({ name }) => textCell(name))
    for await (const chunk of chunks)
      for (const row of chunk) yield toCells.map((toCell, index) => toCell(row[index] ?? null))
  }
  return writeXlsxStream(rows(), {
    name: "result",
    columns: columns.map(({ type }) => columnOf(type)),
    freezePane: { rows: 1 },
    repeatHeaders: true,
  })
}

const columnOf = (type: string): NonNullable<XlsxWriteStreamOptions["columns"]>[number] => {
  const numFmt = timeFormats.get(type)
  return numFmt === undefined ? { width: 16 } : { width: 20, numFmt }
}

const asItIs = (cell: Json): CellValue => (typeof cell === "boolean" ? cell : asText(cell))

const numberCell = (cell: Json): CellValue => {
  const text = asText(cell)
  const number = Number(text)
  const [mantissa = ""] = text.toLowerCase().split("e")
  const digits = mantissa.replace(/[-.]/g, "").replace(/^0+|0+$/g, "")
  const isFraction = typeof cell === "number" && !Number.isInteger(cell)
  return Number.isFinite(number) && (isFraction || digits.length <= digitsMax) ? number : text
}

const timeCell = (cell: Json): CellValue => {
  const text = asText(cell)
  const time = new Date(/T.*[^Z]$/.test(text) ? `${text}Z` : text)
  return time.getTime() >= earliest && time.getTime() < latest ? time : text
}
