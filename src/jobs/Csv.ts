/**
 * Rows of a CSV text as it streams in (RFC 4180; LF, CRLF or CR), each cell a text with its place: `007`
 * stays `007`. The separator is a comma, or a semicolon if the header has no comma, as in much of Europe.
 */

export interface CsvRow {
  readonly line: number
  readonly cells: ReadonlyArray<string>
  /** For each cell, from 1. */
  readonly columns: ReadonlyArray<number>
}

/** An unclosed quote must not swallow a file. */
const cellLengthMax = 1_000_000
/** More columns than any login has parameters. */
export const cellsMax = 1_000

const quote = 34
const carriageReturn = 13
const lineFeed = 10

type OnRow = (row: CsvRow) => void
type OnError = (at: { readonly line: number; readonly column: number }, message: string) => void

/** Takes a text in pieces, cut anywhere; `end` reports what the last piece left open. */
export class CsvReader {
  private readonly onRow: OnRow
  private readonly onError: OnError
  private header = ""
  private separator = 0
  private state: "CellStart" | "Plain" | "Quoted" | "QuoteInQuoted" = "CellStart"
  private cell = ""
  private cells: Array<string> = []
  private columns: Array<number> = []
  private rowLine = 1
  private line = 1
  private column = 1
  private cellAt = { line: 1, column: 1 }
  private afterCarriageReturn = false
  private stopped = false

  constructor(onRow: OnRow, onError: OnError) {
    this.onRow = onRow
    this.onError = onError
  }

  push(chunk: string): void {
    if (this.separator !== 0) return this.read(chunk)
    if (this.stopped) return
    this.header += chunk
    if (/[\r\n]/.test(chunk)) this.start()
    else if (this.header.length > cellLengthMax)
      this.stop({ line: 1, column: 1 }, "the first line has no end")
  }

  end(): void {
    if (this.stopped) return
    if (this.separator === 0) this.start()
    if (this.stopped) return
    if (this.state === "Quoted") this.onError(this.cellAt, "this quote is never closed")
    else if (this.cells.length > 0 || this.state !== "CellStart") this.endRow()
  }

  private start(): void {
    const first = this.header.split(/[\r\n]/, 1)[0] ?? ""
    const other = /[,;]/.test(first) ? undefined : /[\t|]/.exec(first.trim())?.[0]
    if (other !== undefined)
      return this.stop(
        { line: 1, column: 1 },
        `the columns seem to be separated by ${other === "|" ? "`|`" : "tabs"}: export the file again with ` +
          "commas or semicolons",
      )
    this.separator = (first.includes(";") && !first.includes(",") ? ";" : ",").charCodeAt(0)
    this.read(this.header)
    this.header = ""
  }

  private read(chunk: string): void {
    for (let index = 0; index < chunk.length && !this.stopped; index++) {
      const code = chunk.charCodeAt(index)
      const pairedFeed = code === lineFeed && this.afterCarriageReturn
      this.afterCarriageReturn = code === carriageReturn
      // The line feed of a CRLF does not end a second line; inside quotes it is text.
      if (!pairedFeed || this.state === "Quoted") this.take(code, chunk.charAt(index))
      if (pairedFeed) continue
      if (code === lineFeed || code === carriageReturn) {
        this.line += 1
        this.column = 1
      } else this.column += 1
      if (this.cells.length === 0 && this.state === "CellStart") this.rowLine = this.line
    }
  }

  private take(code: number, character: string): void {
    const { state } = this
    if (state === "CellStart") this.cellAt = { line: this.line, column: this.column }
    if (state === "Quoted" && code === quote) this.state = "QuoteInQuoted"
    else if (state === "Quoted") this.add(character)
    else if (state === "CellStart" && code === quote) this.state = "Quoted"
    else if (state === "QuoteInQuoted" && code === quote) {
      this.add(character)
      this.state = "Quoted"
    } else if (code === this.separator) this.endCell()
    else if (code === lineFeed || code === carriageReturn) this.endRow()
    else {
      if (state === "QuoteInQuoted") {
        this.onError({ line: this.line, column: this.column }, "text after a closing quote")
      }
      this.state = "Plain"
      this.add(character)
    }
  }

  private add(character: string): void {
    this.cell += character
    if (this.cell.length <= cellLengthMax) return
    this.stop(this.cellAt, "this cell is longer than 1,000,000 characters; is a closing quote missing?")
  }

  private stop(at: { readonly line: number; readonly column: number }, message: string): void {
    this.onError(at, message)
    this.stopped = true
  }

  private endCell(): void {
    this.cells.push(this.cell)
    this.columns.push(this.cellAt.line === this.rowLine ? this.cellAt.column : 1)
    this.cell = ""
    this.state = "CellStart"
    if (this.cells.length > cellsMax)
      this.stop({ line: this.rowLine, column: 1 }, `this row has more than ${cellsMax} cells`)
  }

  private endRow(): void {
    this.endCell()
    if (this.stopped) return
    const { cells, columns } = this
    if (cells.length > 1 || cells[0] !== "") this.onRow({ line: this.rowLine, cells, columns })
    this.cells = []
    this.columns = []
  }
}
