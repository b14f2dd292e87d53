/**
 * Query results as text, chunk by chunk: an aligned table, CSV with every value as it is (or, if asked for,
 * with none that a spreadsheet takes for a formula), JSON. At most one chunk of rows is in memory.
 */
import type { Column, QueryResult } from "../base/DuckDb.ts"
import type { Json } from "../base/JsonValue.ts"
import { csvLine, harmless } from "../report/CsvText.ts"
import { table } from "../report/TextTable.ts"

export interface TextFormat {
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
