/**
 * Which files of a month become one: pure. A month is taken as a whole once its last day is old enough, so
 * that its files are written again once. Runs whose rows were derived with different texts of a schema stay
 * apart, and so does what is large already: only many small files cost more than what they hold.
 */
import type { RecordFamily } from "../records/RecordSchema.ts"
import { schemaVersionOf } from "./FileColumns.ts"
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

export const monthOf = (run_date: string): string => run_date.slice(0, "YYYY-MM".length)

const endOf = (month: string): Date => {
  const [year = 0, number = 0] = month.split("-").map(Number)
  return new Date(Date.UTC(year, number, 1))
}

const dayMs = 86_400_000

/** The month's first and last day, as the name of a folder. */
const daysOf = (month: string): string =>
  `${month}-01=${new Date(endOf(month).getTime() - dayMs).toISOString().slice(0, "YYYY-MM-DD".length)}`

/**
 * A glob for `run_date=*` finds it, but with two equals signs it is no Hive partition: DuckDB then takes
 * `run_date` from the rows of all files. As a partition it could have only one date.
 */
export const monthPath = (
  { table, month }: Pick<MonthFile, "table" | "month">,
  version: number,
  taken: Set<string>,
): string => {
  for (let part = 1; ; part += 1) {
    const ending = part === 1 ? "" : `-${part}`
    const path = `tables/${table}/run_date=${daysOf(month)}/${month}-v${version}${ending}.parquet`
    if (taken.has(path)) continue
    taken.add(path)
    return path
  }
}

/** Its table and version, if the path is one of `monthPath`. */
export const monthPathOf = (
  path: string,
): { readonly table: string; readonly version: number } | undefined => {
  const pattern =
    /^tables\/([a-z_0-9]+)\/run_date=\d{4}-\d\d-01=\d{4}-\d\d-\d\d\/\d{4}-\d\d-v(\d+)(?:-\d+)?\.parquet$/
  const [, table, version] = pattern.exec(path) ?? []
  return table === undefined ? undefined : { table, version: Number(version) }
}

const sum = (values: ReadonlyArray<number>): number => values.reduce((total, each) => total + each, 0)

/** In the order of date and run. */
const unitsOf = (
  manifest: Manifest,
  families: ReadonlyArray<RecordFamily>,
  isChosen: (run_id: string) => boolean,
): ReadonlyArray<Unit> => {
  const units: Array<Unit> = []
  const shared = new Map<string, Unit>()
  const spoilt = new Set<Unit>()
  const runs = Object.entries(manifest.runs).map(([run_id, run]) => ({ run_id, ...run }))
  runs.sort((one, other) => {
    const [key, otherKey] = [`${one.run_date} ${one.run_id}`, `${other.run_date} ${other.run_id}`]
    return key < otherKey ? -1 : 1
  })
  for (const { run_id, ...run } of runs)
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
