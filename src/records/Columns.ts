/**
 * Rows in, Arrow columns out. Every published table is built here: a `TableSpec` defines names, types and
 * comments, a `TableBuilder` collects rows of converted cells and returns them as one Arrow table. Buffers
 * are filled by hand, because Arrow's own builders are many times slower. A cell that does not fit its
 * column is a defect of the program and throws; anything from outside was checked before it became a cell.
 */
import { counted } from "../foundation/Counted.ts"
import { Data, Field, RecordBatch, Schema, Struct, Table, makeData } from "apache-arrow"
import { columnData } from "./ColumnData.ts"
import type { Cell, ColumnType } from "./ColumnData.ts"

export type { Cell, ColumnType }

export interface ColumnSpec {
  readonly name: string
  readonly type: ColumnType
  /** Becomes the COMMENT in the database. */
  readonly comment: string
  readonly nullable: boolean
  /** For VARCHAR with few different values (run, engine): dictionary encoded in Arrow and in Parquet. */
  readonly repeats?: true
  /** All values that a row may have, where they are ours: the service's own may grow any day. */
  readonly values?: ReadonlyArray<string>
}

export interface TableSpec {
  readonly name: string
  readonly comment: string
  readonly columns: ReadonlyArray<ColumnSpec>
}

/** A column in short form: `column("name", "VARCHAR", "what it holds")` is nullable. */
export const column = (name: string, type: ColumnType, comment: string): ColumnSpec => ({
  name,
  type,
  comment,
  nullable: true,
})

/** A column that is never NULL. */
export const required = (name: string, type: ColumnType, comment: string): ColumnSpec => ({
  name,
  type,
  comment,
  nullable: false,
})

/** Of each column, its cells: as many in each. */
type CellColumns = ReadonlyArray<ReadonlyArray<Cell>>

/** A table as others may see it, and what its cells become before they leave their builder. */
export type Disguise = (spec: TableSpec) => {
  /** The same columns in the same order. */
  readonly spec: TableSpec
  readonly mask: (columns: CellColumns) => CellColumns
}

/** Collects rows of one table. Memory grows with the rows until they are returned. */
export class TableBuilder {
  readonly spec: TableSpec
  readonly #mask: (columns: CellColumns) => CellColumns
  #cells: Array<Array<Cell>>
  #rows = 0

  constructor(spec: TableSpec, disguise?: Disguise) {
    const shown = disguise?.(spec)
    this.spec = shown?.spec ?? spec
    this.#mask = shown?.mask ?? ((columns) => columns)
    this.#cells = spec.columns.map(() => [])
  }

  /** Rows appended since the last `finish`. */
  get rows(): number {
    return this.#rows
  }

  /** One row: a cell per column, in the order of the specification. */
  append(cells: ReadonlyArray<Cell>): void {
    this.appendAfter([], cells)
  }

  /** One row whose first cells are shared with other rows, which saves a copy per row. */
  appendAfter(shared: ReadonlyArray<Cell>, cells: ReadonlyArray<Cell>): void {
    const columns = this.#cells
    const first = shared.length
    if (first + cells.length !== columns.length) {
      const given = first + cells.length
      throw new Error(
        `${this.spec.name}: a row of ${counted(given, "cell")} for ${counted(columns.length, "column")}`,
      )
    }
    for (let i = 0; i < first; i++) columns[i]!.push(shared[i]!)
    for (let i = 0; i < cells.length; i++) columns[first + i]!.push(cells[i]!)
    this.#rows++
  }

  /** Removes every row after the first `count`. */
  cutTo(rows: number): void {
    for (const cells of this.#cells) cells.length = Math.min(cells.length, rows)
    this.#rows = Math.min(this.#rows, rows)
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

  /** How many of the first rows have at most this many UTF-16 units of text; at least one. */
  rowsWithin(textUnitsMax: number): number {
    let units = 0
    for (let row = 0; row < this.#rows; row++) {
      for (const cells of this.#cells) {
        const cell = cells[row]
        if (typeof cell === "string") units += cell.length
      }
      if (units > textUnitsMax) return Math.max(1, row)
    }
    return this.#rows
  }

  /** The rows so far as one Arrow table of one batch; the builder is empty afterwards. */
  finish(): Table {
    return this.take(this.#rows)
  }

  /** The first rows, as many as given, as one Arrow table of one batch; the builder keeps the others. */
  take(rows: number): Table {
    const { columns } = this.spec
    const data: Array<Data> = []
    const fields: Array<Field> = []
    const taken = rows === this.#rows ? this.#cells : this.#cells.map((cells) => cells.slice(0, rows))
    const shown = this.#mask(taken)
    for (let i = 0; i < columns.length; i++) {
      const spec = columns[i]!
      const filled = columnData(spec, shown[i]!)
      if (filled.nullCount > 0 && !spec.nullable) {
        throw new Error(`${this.spec.name}.${spec.name} is required and got a NULL`)
      }
      data.push(filled)
      fields.push(new Field(spec.name, filled.type, spec.nullable))
    }
    const schema = new Schema(fields)
    const struct = makeData({ type: new Struct(fields), length: rows, nullCount: 0, children: data })
    this.#cells = this.#cells.map((cells) => cells.slice(rows))
    this.#rows -= rows
    return new Table(schema, new RecordBatch(schema, struct))
  }
}
