/**
 * The Delta log of one table on disk, `tables/<table>/_delta_log/`: how it is read, continued and kept short.
 * Each commit is a file of its own that appears whole. Every so often a checkpoint in Parquet says what all
 * commits before it add up to, and the oldest of both are removed: ten years of nights take as many files as
 * one. A log that cannot be read begins anew, because all of it can be derived again.
 */
import { existsSync, readdirSync, readFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { Effect } from "effect"
import type { Scope } from "effect"
import type { Connection } from "../base/DuckDb.ts"
import { literal } from "../base/DuckDbFailed.ts"
import type { DuckDbFailed } from "../base/DuckDbFailed.ts"
import { actionsIn, checkpointOf, commitText, replay } from "./DeltaActions.ts"
import type { Action, DeltaState } from "./DeltaActions.ts"
import type { Layout } from "./Manifest.ts"
import { fileStep } from "./OutputFiles.ts"
import { temporary } from "./Store.ts"
import type { Store } from "./Store.ts"

/** Readers replay this many commits at most. */
const checkpointEvery = 20
/** This many states before the current one can be asked for, as far as their files still exist. */
const commitsKept = 100

export const logFolder = ({ tables }: Pick<Layout, "tables">, table: string): string =>
  join(tables, table, "_delta_log")

const commitPattern = /^(\d{20})\.json$/
const checkpointPattern = /^(\d{20})\.checkpoint\.parquet$/
const pointerName = "_last_checkpoint"

/** Whether a path below the output folder is one of a log. */
export const isOfLog = (path: string): boolean => {
  const [, name = ""] = /^tables\/[a-z_0-9]+\/_delta_log\/([^/]+)$/.exec(path) ?? []
  return commitPattern.test(name) || checkpointPattern.test(name) || name === pointerName
}

/** The tables that have a log, whatever is in it. */
export const tablesWithLog = (layout: Layout): ReadonlyArray<string> =>
  existsSync(layout.tables)
    ? readdirSync(layout.tables).filter((table) => existsSync(logFolder(layout, table)))
    : []

const nameOf = (version: number, ending: "json" | "checkpoint.parquet"): string =>
  `${String(version).padStart(20, "0")}.${ending}`

const versionsIn = (folder: string, pattern: RegExp): ReadonlyArray<number> =>
  existsSync(folder)
    ? readdirSync(folder)
        .flatMap((name) => pattern.exec(name)?.[1] ?? [])
        .map(Number)
        .toSorted((one, other) => one - other)
    : []

/** For a connection that is opened only when a file has to be read or written by DuckDB. */
export type Opened = Effect.Effect<Connection, DuckDbFailed, Scope.Scope>

/** Undefined if there is no log, or none that can be read and continued. */
export const readLog = Effect.fnUntraced(function* (folder: string, opened: Opened) {
  const commits = yield* fileStep(() => versionsIn(folder, commitPattern))
  const checkpoint = (yield* fileStep(() => versionsIn(folder, checkpointPattern))).at(-1)
  const first = checkpoint === undefined ? 0 : checkpoint + 1
  const later = commits.filter((version) => version >= first)
  if (later.some((version, index) => version !== first + index)) return undefined
  const before = checkpoint === undefined ? [] : yield* readCheckpoint(folder, checkpoint, opened)
  if (before === undefined) return undefined
  const after: Array<Action> = []
  for (const version of later) {
    const actions = yield* fileStep(() => readCommit(folder, version))
    if (actions === undefined) return undefined
    after.push(...actions)
  }
  return replay(later.at(-1) ?? first - 1, [...before, ...after])
})

const parsed = (text: string): unknown => {
  try {
    // What a checkpoint has no value for is null there and absent in a commit.
    return JSON.parse(text, (_, value: unknown) => value ?? undefined)
  } catch {
    return undefined
  }
}

const readCommit = (folder: string, version: number): ReadonlyArray<Action> | undefined =>
  actionsIn(
    readFileSync(join(folder, nameOf(version, "json")), "utf8")
      .split("\n")
      .filter((line) => line !== "")
      .map(parsed),
  )

/** The columns that every reader expects of a checkpoint, by the protocol's names. */
const settings = "MAP(VARCHAR, VARCHAR)"
const checkpointColumns = `{
  protocol: 'STRUCT(minReaderVersion INTEGER, minWriterVersion INTEGER)',
  metaData: 'STRUCT(id VARCHAR, name VARCHAR, description VARCHAR,
    format STRUCT(provider VARCHAR, options ${settings}), schemaString VARCHAR,
    partitionColumns VARCHAR[], configuration ${settings}, createdTime BIGINT)',
  "add": 'STRUCT(path VARCHAR, partitionValues ${settings}, size BIGINT, modificationTime BIGINT,
    dataChange BOOLEAN, stats VARCHAR)',
  remove: 'STRUCT(path VARCHAR, deletionTimestamp BIGINT, dataChange BOOLEAN)'
}`

const readCheckpoint = Effect.fnUntraced(
  function* (folder: string, version: number, opened: Opened) {
    const connection = yield* opened
    const path = literal(join(folder, nameOf(version, "checkpoint.parquet")))
    const rows = yield* connection.rows(
      `SELECT to_json(c)::VARCHAR AS action FROM read_parquet(${path}) AS c`,
    )
    return actionsIn(rows.map(({ action }) => parsed(String(action))))
  },
  // It is not Parquet any more.
  Effect.orElseSucceed(() => undefined),
)

/** What the log says after a commit of these actions, which is on disk when this returns. */
export const appendCommit = Effect.fnUntraced(function* (
  { files, modes }: Store,
  folder: string,
  state: DeltaState | undefined,
  actions: ReadonlyArray<Action>,
) {
  const version = state === undefined ? 0 : state.version + 1
  yield* fileStep(() => {
    // What cannot be continued must not be mixed with what begins here.
    if (state === undefined) files.remove(folder)
    files.makeFolder(folder, modes.folder)
    const path = join(folder, nameOf(version, "json"))
    files.replace(path, commitText(actions), modes.file, temporary(path))
  })
  return replay(version, state === undefined ? actions : [...checkpointOf(state), ...actions])
})

/** Writes a checkpoint if one is due, and removes what is too old. May be cut off and repeated anywhere. */
export const shorten = Effect.fnUntraced(function* (
  store: Store,
  folder: string,
  state: DeltaState,
  opened: Opened,
) {
  const { files } = store
  const newest = (yield* fileStep(() => versionsIn(folder, checkpointPattern))).at(-1) ?? 0
  if (state.version - newest >= checkpointEvery) yield* writeCheckpoint(store, folder, state, opened)
  yield* fileStep(() => {
    const checkpoints = versionsIn(folder, checkpointPattern)
    const first = checkpoints.findLast((version) => version <= state.version - commitsKept) ?? 0
    const old = [
      ...versionsIn(folder, commitPattern).map((version) => ({ version, ending: "json" }) as const),
      ...checkpoints.map((version) => ({ version, ending: "checkpoint.parquet" }) as const),
    ].filter(({ version }) => version < first)
    for (const { version, ending } of old) files.remove(join(folder, nameOf(version, ending)))
    if (old.length > 0) files.syncFolder(folder)
  })
})

const writeCheckpoint = Effect.fnUntraced(function* (
  { files, modes }: Store,
  folder: string,
  state: DeltaState,
  opened: Opened,
) {
  const connection = yield* opened
  const actions = checkpointOf(state)
  const path = join(folder, nameOf(state.version, "checkpoint.parquet"))
  const building = temporary(path)
  const source = temporary(join(folder, "checkpoint"))
  yield* fileStep(() => files.write(source, commitText(actions), modes.file))
  yield* connection.run(
    `COPY (SELECT * FROM read_json(${literal(source)}, format = 'newline_delimited',
        columns = ${checkpointColumns}))
      TO ${literal(building)} (FORMAT parquet, COMPRESSION zstd)`,
  )
  yield* files.settle(building, modes.file)
  yield* fileStep(() => {
    files.rename(building, path)
    files.syncFolder(dirname(path))
    const pointer = join(folder, pointerName)
    const text = JSON.stringify({ version: state.version, size: actions.length })
    files.replace(pointer, `${text}\n`, modes.file, temporary(pointer))
    files.remove(source)
  })
})

/** Removes a log with everything in it; false if there was none. */
export const removeLog = ({ files }: Store, folder: string) =>
  fileStep(() => {
    if (!existsSync(folder)) return false
    files.remove(folder)
    files.syncFolder(dirname(folder))
    return true
  })
