/**
 * Rows in, Arrow columns out: a `TableSpec` says what a published table is, a `TableBuilder` fills its
 * buffers by hand, because Arrow's own builders are many times slower. A cell that does not fit its column is
 * a defect of the program and throws: what comes from outside was checked before it became a cell.
 */
import { counted } from "../base/Text.ts"
import { Data, Field, RecordBatch, Schema, Struct, Table, makeData } from "apache-arrow"
import { columnData, type Cell, type ColumnType } from "./ColumnData.ts"

export type { Cell, ColumnType }

/** Equal values of one kind have one pseudonym, and values of different kinds never do. */
export type Kind =
  | "customer_id"
  | "session_id"
  | "value"
  | "record_id"
  | "content_id"
  | "locking_hash"
  | "landed_sha256"
  | "consent"

/**
 * What becomes of a column where the tables have pseudonyms. own: our words, and those of the catalogue.
 * clear: words and ids of the service, in which a customer's id is replaced wherever it is, and that of a
 * session that the job names. session: the column for the latter. task: the id of the task, which contains
 * the customer's. withheld: NULL, because a source or the service writes there what it likes. Any other is a
 * pseudonym of this kind.
 */
export type Treatment = "own" | "clear" | "session" | "task" | "withheld" | Exclude<Kind, "session_id">

export interface ColumnSpec {
  readonly name: string
  readonly type: ColumnType
  readonly treatment: Treatment
  /** Becomes the COMMENT in the database. */
  readonly comment: string
  readonly nullable: boolean
  /** For VARCHAR: see `repeating`. */
  readonly repeats?: true
  /** All values that a row may have, where they are ours: the service's own may grow any day. */
  readonly values?: ReadonlyArray<string>
}

export interface TableSpec {
  readonly name: string
  readonly comment: string
  /** These columns identify a row; none of them repeats together. Empty if there is no key. */
  readonly key: ReadonlyArray<string>
  readonly columns: ReadonlyArray<ColumnSpec>
}

/** A column in short form: `column("name", "VARCHAR", "clear", "what it holds")` is nullable. */
export const column = (
  name: string,
  type: ColumnType,
  treatment: Treatment,
  comment: string,
): ColumnSpec => ({ name, type, treatment, comment, nullable: true })

export const text = (name: string, treatment: Treatment, comment: string): ColumnSpec =>
  column(name, "VARCHAR", treatment, comment)
/** No time names a customer. */
export const time = (name: string, comment: string): ColumnSpec => column(name, "TIMESTAMPTZ", "own", comment)

/** A column with words of ours. */
export const own = (name: string, type: ColumnType, comment: string): ColumnSpec =>
  column(name, type, "own", comment)

/** It is never NULL. */
export const required = (spec: ColumnSpec): ColumnSpec => ({ ...spec, nullable: false })
/** It has few different values, as run and engine have: dictionary encoded in Arrow and in Parquet. */
export const repeating = (spec: ColumnSpec): ColumnSpec => ({ ...spec, repeats: true })

/** Of each column, its cells: as many in each. */
type CellColumns = ReadonlyArray<ReadonlyArray<Cell>>

/** A table as others may see it, and what its cells become before they leave their builder. */
export type Disguise = (spec: TableSpec) => {
  /** The same columns in the same order. */
  readonly spec: TableSpec
  readonly mask: (columns: CellColumns) => CellColumns
}

const referenceBytes = 8
const unitBytes = 2

const textUnitsOf = (cells: ReadonlyArray<Cell>): number => {
  let units = 0
  for (let i = 0; i < cells.length; i++) {
    const cell = cells[i]!
    if (typeof cell === "string") units += cell.length
    else if (Array.isArray(cell)) for (const text of cell) units += text.length
  }
  return units
}

/** Rows of one table: cells first, then Arrow bytes, which take less room, until they are taken. */
export class TableBuilder {
  readonly spec: TableSpec
  readonly #mask: (columns: CellColumns) => CellColumns
  // Row by row: with a long list for each column, the garbage collector has to know each new text.
  #shared: Array<ReadonlyArray<Cell>> = []
  #own: Array<ReadonlyArray<Cell>> = []
  /** UTF-16 units of text in the own cells of each row. */
  #units: Array<number> = []
  #openUnits = 0
  #batches: Array<RecordBatch> = []
  #encodedRows = 0
  #encodedBytes = 0

  constructor(spec: TableSpec, disguise?: Disguise) {
    const shown = disguise?.(spec)
    this.spec = shown?.spec ?? spec
    this.#mask = shown?.mask ?? ((columns) => columns)
  }

  /** Rows that are cells still, and UTF-16 units of text in them, without what they share with other rows. */
  get openRows(): number {
    return this.#units.length
  }
  get openUnits(): number {
    return this.#openUnits
  }

  /** Rows that are batches, and their bytes. */
  get encodedRows(): number {
    return this.#encodedRows
  }
  get encodedBytes(): number {
    return this.#encodedBytes
  }

  /** About as many bytes as all rows take: of cells, a reference for each, and their text. */
  get size(): number {
    const cells = this.openRows * this.spec.columns.length
    return this.#encodedBytes + cells * referenceBytes + this.#openUnits * unitBytes
  }

  /** One row: a cell per column, in the order of the specification. */
  append(cells: ReadonlyArray<Cell>): void {
    this.appendAfter([], cells)
  }

  /**
   * One row whose first cells are those of other rows as well; both lists are the builder's from then on.
   * Returns the UTF-16 units of text in its own cells.
   */
  appendAfter(shared: ReadonlyArray<Cell>, cells: ReadonlyArray<Cell>): number {
    const given = shared.length + cells.length
    const { columns, name } = this.spec
    if (given !== columns.length) {
      throw new Error(`${name}: a row of ${counted(given, "cell")} for ${counted(columns.length, "column")}`)
    }
    const units = textUnitsOf(cells)
    this.#shared.push(shared)
    this.#own.push(cells)
    this.#units.push(units)
    this.#openUnits += units
    return units
  }

  /** Returns what removes every row appended from here on; valid until rows are encoded. */
  mark(): () => void {
    const [rows, units] = [this.openRows, this.#openUnits]
    return () => {
      for (const list of [this.#shared, this.#own, this.#units]) list.length = rows
      this.#openUnits = units
    }
  }

  /** One row by column name; a missing column is NULL. For tables with few rows. */
  appendRow(row: Readonly<Record<string, Cell | undefined>>): void {
    for (const name of Object.keys(row)) {
      if (!this.spec.columns.some((each) => each.name === name)) {
        throw new Error(`${this.spec.name} has no column ${name}`)
      }
    }
    this.append(this.spec.columns.map((each) => row[each.name] ?? null))
  }

  /** How many of the first open rows have at most this many UTF-16 units of text; at least one. */
  rowsWithin(textUnitsMax: number): number {
    if (this.#openUnits <= textUnitsMax) return this.openRows
    let units = 0
    return Math.max(
      1,
      this.#units.findIndex((each) => (units += each) > textUnitsMax),
    )
  }

  /** All batches as one Arrow table; the builder keeps the open rows. */
  takeEncoded(): Table {
    const batches = this.#batches
    this.#batches = []
    this.#encodedRows = 0
    this.#encodedBytes = 0
    return new Table(batches)
  }

  /** The first open rows, as many as given, become one batch. */
  encode(rows: number): void {
    const { columns } = this.spec
    const data: Array<Data> = []
    const fields: Array<Field> = []
    const shown = this.#mask(this.#remove(rows))
    for (let i = 0; i < columns.length; i++) {
      const spec = columns[i]!
      const filled = columnData(spec, shown[i]!, i)
      if (filled.nullCount > 0 && !spec.nullable) {
        throw new Error(`${this.spec.name}.${spec.name} is required and got a NULL`)
      }
      data.push(filled)
      fields.push(new Field(spec.name, filled.type, spec.nullable))
    }
    const struct = makeData({ type: new Struct(fields), length: rows, nullCount: 0, children: data })
    this.#batches.push(new RecordBatch(new Schema(fields), struct))
    this.#encodedRows += rows
    this.#encodedBytes += struct.byteLength
  }

  /** Takes the first open rows out; returns their cells by column. */
  #remove(rows: number): CellColumns {
    const columns = this.spec.columns.map(() => new Array<Cell>(rows))
    for (let row = 0; row < rows; row++) {
      const [shared, own] = [this.#shared[row]!, this.#own[row]!]
      const first = shared.length
      for (let i = 0; i < first; i++) columns[i]![row] = shared[i]!
      for (let i = 0; i < own.length; i++) columns[first + i]![row] = own[i]!
      this.#openUnits -= this.#units[row]!
    }
    this.#shared = this.#shared.slice(rows)
    this.#own = this.#own.slice(rows)
    this.#units = this.#units.slice(rows)
    return columns
  }
}
