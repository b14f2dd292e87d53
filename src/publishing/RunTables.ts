/**
 * The builders of all tables of one run, what was found in each session, and what had to be left out.
 * Everything added since a mark can be removed again.
 */
import { dateCell } from "../records/Cells.ts"
import { TableBuilder } from "../records/Columns.ts"
import type { Cell, Disguise, TableSpec } from "../records/Columns.ts"
import { makeNormaliser } from "../records/Normalise.ts"
import type { Flushed, Normaliser } from "../records/Normalise.ts"
import type { RecordFamily } from "../records/RecordSchema.ts"
import type { SessionFindings } from "./DeriveSession.ts"
import type { TableRow } from "./ExecutionRows.ts"
import { LeftOut } from "./LeftOut.ts"

const systemRowsMax = 122_880

/** All tables of a run while they are filled. */
export class RunTables {
  readonly normaliser: Normaliser
  readonly #builders: ReadonlyMap<string, TableBuilder>
  readonly rows: Record<string, number> = {}
  readonly found = new Map<string, SessionFindings>()
  readonly leftOut = new LeftOut()
  #pending = 0

  /** `run_date` is in every row, whoever makes it. */
  readonly #run_date: Cell

  constructor(
    families: ReadonlyArray<RecordFamily>,
    specs: ReadonlyArray<TableSpec>,
    run_date: string,
    disguise?: Disguise,
  ) {
    this.#run_date = dateCell(run_date) ?? null
    this.normaliser = makeNormaliser(families, disguise)
    this.#builders = new Map(specs.map((spec) => [spec.name, new TableBuilder(spec, disguise)]))
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
    const marks = [...this.#builders.values()].map((builder) => [builder, builder.rows] as const)
    const takeBackRecords = this.normaliser.mark(undefined)
    const [found, pending] = [this.found.size, this.#pending]
    return () => {
      for (const [builder, before] of marks) builder.cutTo(before)
      takeBackRecords()
      for (const key of [...this.found.keys()].slice(found)) this.found.delete(key)
      this.#pending = pending
    }
  }

  /** Rows of tables that were not requested are dropped. */
  add(rows: ReadonlyArray<TableRow>): void {
    for (const [table, row] of rows) {
      const builder = this.#builders.get(table)
      if (builder === undefined) continue
      builder.appendRow({ run_date: this.#run_date, ...row })
      this.#pending += 1
    }
  }

  get isFull(): boolean {
    return this.normaliser.isFull || this.#pending >= systemRowsMax
  }

  /** Consumed as it is read; the rest stays. */
  *flush(): Generator<Flushed, void> {
    this.#pending = 0
    for (const flushed of this.#flushAll()) {
      const { spec, rows } = flushed
      this.rows[spec.name] = (this.rows[spec.name] ?? 0) + rows
      yield flushed
    }
  }

  *#flushAll(): Generator<Flushed, void> {
    for (const builder of this.#builders.values()) {
      const { rows, spec } = builder
      if (rows > 0) yield { spec, rows, table: builder.finish() }
    }
    yield* this.normaliser.flush()
  }
}
