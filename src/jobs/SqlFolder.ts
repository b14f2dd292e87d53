/**
 * A folder of SQL files that a job names: its models, or the tests of its gates. They are read with the job,
 * so that a run uses one text of each, and a folder that is missing stops the job before anything starts.
 */
import { isAbsolute, join } from "node:path"
import { Effect, FileSystem, Result } from "effect"
import { readTextFile } from "../base/DurableFile.ts"
import type { Place } from "../base/DurableFile.ts"
import type { SqlFile } from "./Job.ts"
import type { Findings } from "./Problem.ts"

/** Far more than a person writes; stops a wrong folder. */
const filesMax = 200
const bytesMax = 1_000_000

const namePattern = /^[a-z][a-z0-9_]{0,62}$/
const nameRule = "a-z, 0-9 and _, starting with a letter, at most 63 characters"

/** Where the folder is named in the job file, and where problems of it go. */
export interface SqlFolderAt {
  readonly findings: Findings
  /** The job file's. */
  readonly folder: string
  readonly place: Place
}

const readSqlFile = Effect.fnUntraced(function* (findings: Findings, file: string, name: string) {
  const start: Place = { file, line: 1, column: 1 }
  if (!namePattern.test(name)) {
    findings.error(start, `the name of a file of SQL is ${nameRule}`)
    return []
  }
  const read = yield* Effect.result(readTextFile(file, bytesMax))
  if (Result.isFailure(read)) {
    findings.error(start, `this file of SQL cannot be read (${read.failure})`)
    return []
  }
  return [{ name, sql: read.success }]
})

/** In the order of their names; none after an error. */
export const readSqlFolder = Effect.fnUntraced(function* (
  { findings, folder, place }: SqlFolderAt,
  written: string | undefined,
) {
  if (written === undefined) return []
  const path = isAbsolute(written) ? written : join(folder, written)
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
