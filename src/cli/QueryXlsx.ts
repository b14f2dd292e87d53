/**
 * A query result as an Excel workbook, row by row. Texts are always text, whatever they begin with; numbers
 * of more than 15 digits and times before March 1900 are texts too, since Excel would change them. A module
 * of its own because few queries need the writer.
 */
import { writeXlsxStream } from "hucre/xlsx"
import type { CellValue, XlsxWriteStreamOptions } from "hucre/xlsx"
import type { Column, Json, QueryResult } from "../base/DuckDb.ts"
import { asText, numeric } from "./QueryFormats.ts"

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
 * What XML cannot contain, or a reader might drop, in the spelling of ECMA-376 (22.9.2.19), `_xHHHH_`; so is
 * an underscore that would begin such a spelling.
 */
const unwritable = /_(?=x[0-9a-f]{4}_)|(?![\t\n\r])\p{Cc}|\p{Cs}|[\ufdd0-\ufdef\ufffd-\uffff]/giu

const escaped = (character: string): string =>
  `_x${character.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0")}_`

/** A result as the bytes of a workbook. `onCut` is called for each text that is longer than a cell can be. */
export const xlsxOf = (
  columns: ReadonlyArray<Column>,
  chunks: AsyncIterable<QueryResult["rows"]>,
  onCut: () => void,
): ReadableStream<Uint8Array> => {
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
