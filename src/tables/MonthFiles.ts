/**
 * Which files of a month become one: pure. A month is taken as a whole once its last day is old enough, so
 * that its files are written again once. Runs whose rows were derived with different texts of a schema stay
 * apart, and so does what is large already: only many small files cost more than what they hold.
 */
import type { RecordFamily } from "../records/RecordSchema.ts"
import { schemaVersionOf } from "./FileColumns.ts"
import { endOf, monthOf } from "./Manifest.ts"
import type { Manifest, ManifestFile } from "./Manifest.ts"

/** The rows that a run has in a file. */
export interface RunPart {
  readonly run_id: string
  readonly run_date: string
  readonly rows: number
}

/** One file to be written: of these runs, in this order, read from these files. */
export interface MonthFile {
  readonly table: string
  /** YYYY-MM, of `run_date`. */
  readonly month: string
  readonly parts: ReadonlyArray<RunPart>
  readonly sources: ReadonlyArray<ManifestFile>
}

/** A file that has reached this size is not written again. */
const sourceBytesMax = 32 * 1024 * 1024
/** The size that the files of a month are filled up to: each is read whole to be checked. */
const fileBytesMax = 64 * 1024 * 1024

export interface Choice {
  /** Milliseconds since the epoch: months that were over by then, in UTC. */
  readonly overBy: number
  /** Only files of these runs; of all runs if it is not given. */
  readonly runs?: ReadonlySet<string>
}

/** The files that are taken together or not at all: those of one run, or one that several runs share. */
interface Unit {
  readonly table: string
  readonly month: string
  readonly schema: number | undefined
  readonly parts: Array<RunPart>
  readonly sources: ReadonlyArray<ManifestFile>
}

export const sum = (values: ReadonlyArray<number>): number => values.reduce((total, each) => total + each, 0)

/** The runs of a version in the order of date and run. */
const inOrder = ({ runs }: Manifest) =>
  Object.entries(runs).toSorted(([id, { run_date }], [otherId, other]) =>
    `${run_date} ${id}` < `${other.run_date} ${otherId}` ? -1 : 1,
  )

/** What the runs of a version have in a file, in their order. */
export const partsOf = (manifest: Manifest, path: string): ReadonlyArray<RunPart> =>
  inOrder(manifest).flatMap(([run_id, { run_date, files }]) =>
    files.flatMap((file) => (file.path === path ? [{ run_id, run_date, rows: file.rows }] : [])),
  )

/** In the order of date and run. */
const unitsOf = (
  manifest: Manifest,
  families: ReadonlyArray<RecordFamily>,
  isChosen: (run_id: string) => boolean,
): ReadonlyArray<Unit> => {
  const units: Array<Unit> = []
  const shared = new Map<string, Unit>()
  const spoilt = new Set<Unit>()
  for (const [run_id, run] of inOrder(manifest))
    for (const [table, files] of Map.groupBy(run.files, (file) => file.table)) {
      const part = { run_id, run_date: run.run_date, rows: sum(files.map(({ rows }) => rows)) }
      const common = files.find(({ file_rows }) => file_rows !== undefined)
      const known = common && shared.get(common.path)
      const month = monthOf(run.run_date)
      const schema = schemaVersionOf(run, families, table)
      const unit: Unit = known ?? { table, month, schema, parts: [], sources: files }
      unit.parts.push(part)
      if (known === undefined) units.push(unit)
      if (common !== undefined) shared.set(common.path, unit)
      const fits = unit.month === month && unit.schema === schema
      if (!isChosen(run_id) || run.interim === true || !fits) spoilt.add(unit)
    }
  return units.filter((unit) => !spoilt.has(unit))
}

/** Bytes of its files, each once. */
const bytesOf = ({ sources }: Unit): number => sum(sources.map(({ bytes }) => bytes))

export const monthFiles = (
  manifest: Manifest,
  families: ReadonlyArray<RecordFamily>,
  { overBy, runs }: Choice,
): ReadonlyArray<MonthFile> => {
  const small = unitsOf(manifest, families, (run_id) => runs?.has(run_id) ?? true).filter(
    (unit) => endOf(unit.month).getTime() <= overBy && bytesOf(unit) < sourceBytesMax,
  )
  const groups = Map.groupBy(small, ({ table, month, schema }) => `${month} ${table} ${schema ?? ""}`)
  return [...groups.values()].flatMap((group) =>
    filled(group).flatMap((units): ReadonlyArray<MonthFile> => {
      const [first] = units
      const sources = units.flatMap((unit) => unit.sources)
      if (first === undefined || sources.length < 2) return []
      return [{ table: first.table, month: first.month, parts: units.flatMap(({ parts }) => parts), sources }]
    }),
  )
}

/** As many at a time as one file may hold. */
const filled = (units: ReadonlyArray<Unit>): ReadonlyArray<ReadonlyArray<Unit>> => {
  const files: Array<Array<Unit>> = []
  let room = 0
  for (const unit of units) {
    const bytes = bytesOf(unit)
    if (bytes > room) {
      files.push([])
      room = fileBytesMax
    }
    files.at(-1)?.push(unit)
    room -= bytes
  }
  return files
}
