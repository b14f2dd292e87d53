/**
 * The models of jobs: their own queries as views or tables in every version. They are kept under
 * `published/models/`, so that a rebuild and the runs of other jobs contain them too. One that cannot be made
 * costs itself and a warning.
 */
import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { Duration, Effect, Result, Schema } from "effect"
import type { Place, Problem } from "../base/DurableFile.ts"
import { withinMachineTime } from "../base/Time.ts"
import { DuckDb, type Connection } from "../base/DuckDb.ts"
import { identifier, literal } from "../base/DuckDbFailed.ts"
import type { SqlFile } from "../jobs/Job.ts"
import type { FailedModel } from "../ledger/RunFacts.ts"
import { asSubquery, inMemory, modelsIn, openClosedOff } from "./BuildDatabase.ts"
import { namesInMain, operatorTables, type DictionaryTable } from "./DataDictionary.ts"
import { emptyStatements } from "./EmptyDatabase.ts"
import { fileStep, filesBelow, makeFoldersOf, type Store } from "./Manifest.ts"
import { inDatabase } from "./Publisher.ts"
import { keptTables } from "./RecordStore.ts"

const Kept = Schema.fromJsonString(Schema.Array(Schema.Struct({ name: Schema.String, sql: Schema.String })))
const decodeKept = Schema.decodeUnknownOption(Kept)

const madeWithin = Duration.minutes(10)

const folderOf = ({ layout }: Pick<Store, "layout">) => join(layout.root, "published/models")

/** What the job has now replaces what was kept of it; a job's name is a-z, 0-9 and hyphens. */
export const keepModels = (store: Store, job: string, models: ReadonlyArray<SqlFile>) =>
  fileStep(() => {
    const path = join(folderOf(store), `${job}.json`)
    const kept = models.map(({ name, sql }) => ({ name, sql }))
    const text = `${JSON.stringify(kept, null, 1)}\n`
    if (existsSync(path) ? readFileSync(path, "utf8") === text : models.length === 0) return
    makeFoldersOf(store, path)
    store.files.replace(path, text, store.modes.file)
  })

const ending = ".json"

/** Of all jobs, each with its job. */
export const keptModels = (store: Store) =>
  fileStep(() =>
    filesBelow(folderOf(store))
      .filter((name) => name.endsWith(ending))
      .flatMap((name) => {
        const decoded = decodeKept(readFileSync(join(folderOf(store), name), "utf8"))
        const job = name.slice(0, -ending.length)
        return decoded._tag === "Some" ? decoded.value.map((model) => ({ job, ...model })) : []
      }),
  )

const isTable = (sql: string): boolean => /^--\s*materialized:\s*table\s*$/i.test(sql.split("\n", 1)[0] ?? "")

/** The comment lines that a model begins with, but for the one that makes it a table. */
const commentOf = (sql: string): string => {
  const lines = sql.split("\n").slice(isTable(sql) ? 1 : 0)
  const end = lines.findIndex((line) => !line.startsWith("--"))
  const comments = lines.slice(0, end === -1 ? lines.length : end)
  return comments
    .map((line) => line.replace(/^--\s?/, "").trim())
    .join(" ")
    .trim()
}

const makeModel = (connection: Connection, { name, sql }: SqlFile) => {
  const kind = isTable(sql) ? "TABLE" : "VIEW"
  const comment = commentOf(sql)
  return Effect.gen(function* () {
    const query = yield* asSubquery(connection, sql)
    yield* connection.run(`CREATE OR REPLACE ${kind} ${identifier(name)} AS SELECT * FROM ${query} AS m`)
    if (comment !== "") yield* connection.run(`COMMENT ON ${kind} ${identifier(name)} IS ${literal(comment)}`)
  }).pipe(withinMachineTime(madeWithin))
}

/**
 * In the order of their references: what fails is tried again once another was made, so that the last round
 * makes nothing, and its errors are those that are told.
 */
const makeAll = Effect.fnUntraced(function* (connection: Connection, models: ReadonlyArray<SqlFile>) {
  let open = models
  for (;;) {
    const failed: Array<FailedModel> = []
    const left: Array<SqlFile> = []
    for (const model of open) {
      const made = yield* Effect.result(makeModel(connection, model))
      if (made._tag === "Success") continue
      left.push(model)
      failed.push({ name: model.name, why: made.failure.message.split("\n", 1)[0] ?? "" })
    }
    if (left.length === 0 || left.length === open.length) return failed
    open = left
  }
})

const taken = "a table or view of this name already exists"

/** Makes all models in a finished database that is not in place yet; returns those that could not be made. */
export const makeModels = Effect.fn("Publishing.makeModels")(function* (store: Store) {
  const kept = yield* keptModels(store)
  if (kept.length === 0) return []
  const names = namesInMain(store.families)
  const free: Array<SqlFile> = []
  const failed: Array<FailedModel> = []
  for (const model of kept) {
    if (names.has(model.name)) failed.push({ name: model.name, why: taken })
    else free.push(model)
    names.add(model.name)
  }
  const connection = yield* openClosedOff(store.layout.build, "read-write")
  return [...failed, ...(yield* makeAll(connection, free))] as ReadonlyArray<FailedModel>
}, inDatabase)

/** What the published database has beside our own tables: its models, described as it describes them. */
export const publishedModels = Effect.fn("Publishing.publishedModels")(function* (
  path: string,
  families: Store["families"],
) {
  const duckdb = yield* DuckDb
  const connection = yield* duckdb.open({ path, access: "read-only", files: "none" })
  return yield* Effect.forEach(yield* modelsIn(connection, families), ({ name, kind, comment }) =>
    Effect.map(connection.columnTypes(`SELECT * FROM ${identifier(name)}`), (columns): DictionaryTable => ({
      schema: "main",
      name,
      kind,
      comment: comment === null ? "A model of a job." : String(comment),
      columns: columns.map((one) => ({ name: one.name, type: one.type, comment: "" })),
    })),
  )
}, Effect.scoped)

// SQL of a job that was written for tables up to version 0.17, when all stood in `main` with the rows of
// every run. It is tried with the job's files: nothing of the job is started then.

/** What a table of an earlier version is called now; undefined if it had no such table. */
const nameNow = (name: string, families: Store["families"]): string | undefined => {
  if (name === "coverage_current") return "coverage"
  const records = new Set(
    keptTables(families).flatMap((one) => [one, ...one.children].map((each) => each.name)),
  )
  const [, table = name, kind] = /^(.+)_(latest|history)$/.exec(name) ?? []
  if (kind !== undefined && records.has(table)) return kind === "latest" ? table : `history.${table}`
  if (records.has(name)) return `nights.${name}`
  return operatorTables().some((one) => one.name === name) ? `ops.${name}` : undefined
}

interface Advice {
  /** The name of the table or the column that is not there. */
  readonly missing: string
  readonly instead: string
}

/** What to read instead, if that is why a statement cannot be bound. */
const adviceOn = (why: string, sql: string, families: Store["families"]): Advice | undefined => {
  const [, missing] = /Table with name "?(\w+)"? does not exist/.exec(why) ?? []
  if (missing !== undefined) {
    const now = nameNow(missing, families)
    return now === undefined ? undefined : { missing, instead: `\`${missing}\` is \`${now}\` now` }
  }
  const [, column] = /column "?(?:\w+\.)?"?(run_id|run_date|task_id)\b/i.exec(why) ?? []
  if (column === undefined) return undefined
  const ofRuns = [...sql.matchAll(/\b(?:from|join)\s+"?(\w+)\b(?!"?\s*[.(])/gi)].flatMap(([, name = ""]) => {
    const now = nameNow(name, families)
    return now === undefined ? [] : [`\`${now}\``]
  })
  const rows = ofRuns.length === 0 ? "`nights` and `ops`" : [...new Set(ofRuns)].join(", ")
  return {
    missing: column,
    instead: `what is true now has no \`${column}\`: the rows of each run are in ${rows}`,
  }
}

/** Where a statement first names it, outside of its comments; its beginning if it does not. */
const placeIn = ({ sql, path = "" }: SqlFile, name: string): Place => {
  const blanked = sql.replaceAll(/--.*|\/\*[^]*?\*\//g, (comment) => comment.replaceAll(/[^\n]/g, " "))
  const before = sql.slice(0, Math.max(0, blanked.search(new RegExp(`\\b${name}\\b`, "i"))))
  return { file: path, line: before.split("\n").length, column: before.length - before.lastIndexOf("\n") }
}

/** Models and tests of gates that read tables by names, or columns, of an earlier version; each once. */
export const outdatedSql = Effect.fn("Publishing.outdatedSql")(function* (
  { families }: Pick<Store, "families">,
  models: ReadonlyArray<SqlFile>,
  tests: ReadonlyArray<SqlFile>,
) {
  const connection = yield* inMemory
  yield* connection.run(emptyStatements({ families }))
  const whyOf = new Map((yield* makeAll(connection, models)).map(({ name, why }) => [name, why]))
  const failed = models.map((file) => ({ file, why: whyOf.get(file.name) }))
  for (const file of tests) {
    const bound = yield* Effect.result(connection.columnTypes(file.sql.trimEnd().replace(/;+$/, "")))
    failed.push({ file, why: Result.isFailure(bound) ? bound.failure.message : undefined })
  }
  return failed.flatMap(({ file, why }): ReadonlyArray<Problem> => {
    const advice = why === undefined ? undefined : adviceOn(why, file.sql, families)
    if (advice === undefined) return []
    return [{ ...placeIn(file, advice.missing), message: `${advice.instead} (\`nightjar help tables\`)` }]
  })
}, inDatabase)
