/**
 * What a job asks of its tables: folders of SQL (models, tests of gates), and how old data may get. The SQL
 * is read with the job, so that a run uses one text of each. `tables/AskGates.ts` asks.
 */
import { Effect, FileSystem, Result } from "effect"
import { join } from "node:path"
import { readTextFile, topOf, type Place } from "../base/DurableFile.ts"
import { suggestion } from "../base/Text.ts"
import type { Freshness, SqlFile } from "./Job.ts"
import type { Context, Findings } from "./Problem.ts"
import { beside } from "./Scalars.ts"
import type { Settings } from "./Settings.ts"

/** Far more than a person writes; stops a wrong folder. */
const filesMax = 200
const bytesMax = 1_000_000

const namePattern = /^[a-z][a-z0-9_]{0,62}$/
const nameRule = "a-z, 0-9 and _, starting with a letter, at most 63 characters"

interface SqlFolderAt {
  readonly findings: Findings
  /** The job file's. */
  readonly folder: string
  readonly place: Place
}

const readSqlFile = Effect.fnUntraced(function* (findings: Findings, file: string, name: string) {
  const start = topOf(file)
  if (!namePattern.test(name)) {
    findings.error(start, `the name of a file of SQL is ${nameRule}`)
    return []
  }
  const read = yield* Effect.result(readTextFile(file, bytesMax))
  if (Result.isFailure(read)) {
    findings.error(start, `this file of SQL cannot be read (${read.failure})`)
    return []
  }
  return [{ name, sql: read.success, path: file }]
})

/** In the order of their names; none after an error. */
const readSqlFolder = Effect.fnUntraced(function* (
  { findings, folder, place }: SqlFolderAt,
  written: string | undefined,
) {
  if (written === undefined) return []
  const path = beside(folder, written)
  const files = yield* FileSystem.FileSystem
  const names = yield* Effect.orElseSucceed(files.readDirectory(path), () => undefined)
  if (names === undefined) {
    findings.error(place, "there is no such folder beside the job file")
    return []
  }
  const chosen = names.filter((name) => name.endsWith(".sql")).toSorted()
  if (chosen.length === 0) findings.warn(place, "the folder has no file whose name ends in .sql")
  if (chosen.length > filesMax) {
    findings.error(place, `the folder has more than ${filesMax} files of SQL`)
    return []
  }
  const read = yield* Effect.forEach(chosen, (name) =>
    readSqlFile(findings, join(path, name), name.slice(0, -".sql".length)),
  )
  return read.flat() satisfies ReadonlyArray<SqlFile> as ReadonlyArray<SqlFile>
})

/** The parts of a job that come from folders of SQL; without `gates` nothing is asked. */
export const readOwnSql = Effect.fnUntraced(function* (
  { document, findings }: Context,
  folder: string,
  { gates, models }: Pick<Settings, "gates" | "models">,
) {
  const at = (...path: ReadonlyArray<string>) => ({ findings, folder, place: document.place(path) })
  return {
    ...(gates && { gates: { ...gates, tests: yield* readSqlFolder(at("gates", "tests"), gates.tests) } }),
    ...(models === undefined ? {} : { models: yield* readSqlFolder(at("models"), models) }),
  }
})

type Limits = Omit<Freshness, "engines">

const isNothing = ({ warn_after, error_after }: Limits): boolean =>
  warn_after === undefined && error_after === undefined

const isTurned = ({ warn_after, error_after }: Limits): boolean =>
  warn_after !== undefined && error_after !== undefined && warn_after > error_after

export const readFreshness = (
  { document, findings }: Context,
  written: Settings["freshness"],
  used: ReadonlySet<string>,
): { readonly freshness?: Freshness } => {
  if (written === undefined) return {}
  const { engines: ofEngines = {}, ...ofJob } = written
  const place = document.place(["freshness"], "key")
  if (isNothing(ofJob) && Object.keys(ofEngines).length === 0)
    findings.error(
      place,
      "`freshness` needs `warn_after`, `error_after` or both, for the job or for an engine",
    )
  const turned = "`warn_after` must not be longer than `error_after`"
  if (isTurned(ofJob)) findings.error(place, turned)
  const engines = new Map<string, Limits>()
  for (const [engine, own] of Object.entries(ofEngines)) {
    const at = document.place(["freshness", "engines", engine], "key")
    const all = { ...ofJob, ...own }
    engines.set(engine, all)
    if (!used.has(engine))
      findings.error(at, `the job does not use the engine \`${engine}\`${suggestion(engine, [...used])}`)
    if (isNothing(own)) findings.error(at, "an engine needs `warn_after`, `error_after` or both here")
    else if (isTurned(all) && !isTurned(ofJob)) findings.error(at, turned)
  }
  return { freshness: engines.size === 0 ? ofJob : { ...ofJob, engines: Object.fromEntries(engines) } }
}
