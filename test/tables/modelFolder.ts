/**
 * What an output folder should have after each edit, from what was told to it: the runs of its version and of those
 * that are kept, each with the schemas that its rows were derived with; and the runs of the ledger, with those that a
 * gate holds back. `moments` tells from that what its tables have.
 */
import { moments, type Moment, type ToldRun } from "./model.ts"
import { feedsUnder, kinds, toldOf, type Derivation, type Night, type Schemas } from "./modelNights.ts"

/** A run as a version has it. */
export interface Entry {
  readonly run: Night
  readonly derived: Derivation
  /** Of a run that went on: the tasks that are in the tables. */
  readonly over?: ReadonlySet<string>
}

export interface FolderVersion {
  readonly version: number
  readonly runs: ReadonlyMap<string, Entry>
  readonly schemas: Derivation
  /** It is not kept once another one takes its place. */
  readonly isInterim: boolean
  /** A rollback put it there: whose rows it has, and the version that the next publication goes on from. */
  readonly returned?: { readonly to: number; readonly from: number }
}

/** What the ledger knows of a run. */
export interface Known {
  readonly run: Night
  readonly sequence: number
  readonly state: "open" | "published" | "held"
  /** It was published before a gate held it back. */
  readonly wasPublished?: true
}

/** Versions that a publication leaves to be put back. */
const keptMax = 3

export class ModelFolder {
  current: FolderVersion
  kept: ReadonlyArray<FolderVersion> = []
  readonly known = new Map<string, Known>()
  /** Those in the folder that a job has its schemas in. */
  schemas: Schemas
  /** A schema that called the amount a number is kept. */
  #keepsNumber = false

  constructor(schemas: Schemas) {
    this.schemas = schemas
    this.current = { version: 0, runs: new Map(), schemas: this.derivation(), isInterim: false }
  }

  /** As what is derived now is derived; the schemas are kept from then on. */
  derivation(): Derivation {
    const derived = { ...this.schemas, takesNumbers: this.#keepsNumber }
    if (this.schemas.amount !== undefined && this.schemas.amount !== "VARCHAR") this.#keepsNumber = true
    return derived
  }

  /** What the next publication goes on from, without what a gate has held back since. */
  get newest(): FolderVersion {
    const { returned } = this.current
    const newest = this.kept.find(({ version }) => version === returned?.from)
    if (newest === undefined) return this.current
    const held = [...newest.runs.keys()].filter((run_id) => this.known.get(run_id)?.state === "held")
    const runs = held.reduce((left, run_id) => this.withoutInterim(left, run_id), newest.runs)
    return { ...newest, runs }
  }

  /** Without what was published of a run that went on; with what it had before. */
  withoutInterim(all: FolderVersion["runs"], run_id: string): FolderVersion["runs"] {
    if (all.get(run_id)?.over === undefined) return all
    const runs = new Map(all)
    runs.delete(run_id)
    const before = this.kept
      .flatMap((one) => one.runs.get(run_id) ?? [])
      .findLast((one) => one.over === undefined)
    if (before !== undefined) runs.set(run_id, before)
    return runs
  }

  /** The runs that a version with this one contains too, because a gate held them back. */
  heldBefore({ run, sequence }: Known): ReadonlyArray<Known> {
    return [...this.known.values()].filter(
      (one) =>
        one.state === "held" &&
        run.kind !== "part" &&
        one.run.job === run.job &&
        one.run.date <= run.date &&
        one.sequence < sequence,
    )
  }

  /** Takes the place of the current version. A version of a publication leaves only some to be put back. */
  replace(next: FolderVersion, { isInstead = false, trims = false } = {}): void {
    const { current } = this
    const isKept = !isInstead && current.version > 0 && current.returned === undefined && !current.isInterim
    const kept = isKept ? [...this.kept, current] : this.kept
    const stays = trims ? kept.slice(-keptMax) : kept
    this.kept = kept.filter((one) => stays.includes(one) || one.version === next.returned?.from)
    this.current = next
  }

  /** A version that is published: what it goes on from, with these runs derived now. */
  publish(version: number, runs: ReadonlyArray<Night>, base = this.newest): void {
    const derived = this.derivation()
    const all = new Map(base.runs)
    for (const run of runs) all.set(run.run_id, { run, derived })
    this.replace({ version, runs: all, schemas: derived, isInterim: false }, { trims: true })
  }

  tell(run_id: string, more: Partial<Known>): void {
    const before = this.known.get(run_id)
    if (before !== undefined) this.known.set(run_id, { ...before, ...more })
  }

  /** Nothing is left of the customer, in any version. A night stays a night, whoever it had. */
  forget(customer: string): void {
    const less = (run: Night): Night => ({
      ...run,
      tasks: run.tasks.filter((task) => task.customer !== customer),
    })
    const of = (version: FolderVersion): FolderVersion => ({
      ...version,
      runs: new Map([...version.runs].map(([id, entry]) => [id, { ...entry, run: less(entry.run) }])),
    })
    this.current = of(this.current)
    this.kept = this.kept.map(of)
    for (const [id, one] of this.known) this.known.set(id, { ...one, run: less(one.run) })
  }

  sequenceOf = ({ run_id }: { readonly run_id: string }): number => this.known.get(run_id)?.sequence ?? 0

  /** The runs of the current version, in the order in which they began. */
  entries(): ReadonlyArray<Entry> {
    return [...this.current.runs.values()].toSorted(
      (one, other) => this.sequenceOf(one.run) - this.sequenceOf(other.run),
    )
  }

  moments(): ReadonlyArray<Moment<ToldRun>> {
    const { schemas } = this.current
    const told = this.entries().map(({ run, derived, over }) => toldOf(run, derived, schemas, over))
    return moments(told, kinds, feedsUnder(schemas))
  }
}
