/**
 * The builders of all tables of one run, what was found in each session, and what had to be left out.
 * Everything added since a mark can be removed again.
 */
import { dateCell } from "../records/ColumnData.ts"
import { TableBuilder, type Cell, type Disguise, type TableSpec } from "../records/Columns.ts"
import { flushAll, flushFull, markAll, type Flushed } from "../records/Flush.ts"
import { Normaliser } from "../records/Normalise.ts"
import type { RecordFamily } from "../records/RecordSchema.ts"
import type { SessionFindings } from "./DeriveSession.ts"
import { LeftOut } from "./LeftOut.ts"
import type { TableRow } from "./ExecutionRows.ts"

/** All tables of a run while they are filled. */
export class RunTables {
  readonly normaliser: Normaliser
  readonly #builders: ReadonlyMap<string, TableBuilder>
  /** Those of the records too. */
  readonly #all: ReadonlyArray<TableBuilder>
  readonly rows: Record<string, number> = {}
  readonly found = new Map<string, SessionFindings>()
  readonly leftOut = new LeftOut()
  /** `run_date` is in every row, whoever makes it. */
  readonly #run_date: Cell

  constructor(
    families: ReadonlyArray<RecordFamily>,
    specs: ReadonlyArray<TableSpec>,
    run_date: string,
    disguise?: Disguise,
  ) {
    this.#run_date = dateCell(run_date) ?? null
    this.normaliser = new Normaliser(families, disguise)
    this.#builders = new Map(specs.map((spec) => [spec.name, new TableBuilder(spec, disguise)]))
    this.#all = [...this.#builders.values(), ...this.normaliser.tables().values()]
  }

  /** For rows that replace others: if these cannot be built either, there are none. */
  addIfPossible(rows: ReadonlyArray<TableRow>): void {
    const takeBack = this.mark()
    try {
      this.add(rows)
    } catch {
      takeBack()
    }
  }

  /** Returns what removes everything added from here on; valid until the next `flush`. */
  mark(): () => void {
    const takeBackRows = markAll(this.#builders.values())
    const takeBackRecords = this.normaliser.mark(undefined)
    const found = this.found.size
    return () => {
      takeBackRows()
      takeBackRecords()
      for (const key of [...this.found.keys()].slice(found)) this.found.delete(key)
    }
  }

  /** Rows of tables that were not requested are dropped. */
  add(rows: ReadonlyArray<TableRow>): void {
    for (const [table, row] of rows) {
      const builder = this.#builders.get(table)
      if (builder === undefined) continue
      builder.appendRow({ run_date: this.#run_date, ...row })
    }
  }

  /** What has to leave memory now; consumed as it is read. */
  flushFull(): Generator<Flushed, void> {
    return this.#counted(flushFull(this.#all))
  }

  /** Everything that is left; consumed as it is read. */
  flush(): Generator<Flushed, void> {
    return this.#counted(flushAll(this.#all))
  }

  *#counted(all: Generator<Flushed, void>): Generator<Flushed, void> {
    for (const flushed of all) {
      const { spec, rows } = flushed
      this.rows[spec.name] = (this.rows[spec.name] ?? 0) + rows
      yield flushed
    }
  }
}
