/**
 * Brings the Delta logs of all tables to what a manifest says, beside the Parquet files (`DeltaActions.ts`,
 * `DeltaLog.ts`). A job asks for them; from then on every version that is put into place continues those
 * that are there. They are derived, so nothing depends on them: what goes wrong with a log is told, and the
 * version stands.
 */
import { existsSync } from "node:fs"
import { join } from "node:path"
import { Clock, Effect } from "effect"
import { DuckDb } from "../base/DuckDb.ts"
import { literal } from "../base/DuckDbFailed.ts"
import type { DeltaNote } from "../ledger/RunFacts.ts"
import type { TableSpec } from "../records/Columns.ts"
import { publishedTables } from "./DataDictionary.ts"
import { filesForLogs, filesToAdd, hasColumnsOf, nextActions } from "./DeltaActions.ts"
import type { DeltaFile, NextCommit } from "./DeltaActions.ts"
import { appendCommit, logFolder, readLog, removeLog, shorten, tablesWithLog } from "./DeltaLog.ts"
import type { Opened } from "./DeltaLog.ts"
import { misfitOf } from "./FileColumns.ts"
import type { Manifest } from "./Manifest.ts"
import { fileStep } from "./OutputFiles.ts"
import type { Store } from "./Store.ts"

/** What has to be done with the log of a table. */
type Due =
  | { readonly _tag: "Nothing" }
  | { readonly _tag: "Commit"; readonly next: NextCommit }
  /** A file of it cannot be read as what the table is now: a log without it would lack rows. */
  | { readonly _tag: "LeaveOut"; readonly why: string }

interface Table {
  readonly store: Store
  readonly folder: string
  readonly spec: TableSpec
  readonly files: ReadonlyArray<DeltaFile>
}

const openedIn = Effect.gen(function* () {
  const duckdb = yield* DuckDb
  return yield* Effect.cached(duckdb.open({ path: ":memory:", access: "read-write", threads: 1 }))
})

/** Logs of tables that are no longer published: nothing keeps them true. */
const strayLogs = ({ layout, families }: Store) => {
  const published = new Set(publishedTables(families).map(({ name }) => name))
  return fileStep(() => tablesWithLog(layout).filter((table) => !published.has(table)))
}

/** The tables that have a log, or should have one because others do. */
const tablesDue = ({ layout, families, delta }: Store, manifest: Manifest) =>
  fileStep(() => {
    const logged = new Set(tablesWithLog(layout))
    if (delta !== true && logged.size === 0) return []
    const files = filesForLogs(manifest)
    return publishedTables(families)
      .filter(({ name }) => logged.has(name) || files.has(name))
      .map((spec) => ({
        spec,
        folder: logFolder(layout, spec.name),
        // A lost file is told by `verify`; a log that names it could not be read.
        files: (files.get(spec.name) ?? []).filter(({ path }) => existsSync(join(layout.root, path))),
      }))
  })

const dueOf = Effect.fnUntraced(function* (table: Table, opened: Opened) {
  const { store, folder, spec, files } = table
  const state = yield* readLog(folder, opened)
  const next: NextCommit = { state, spec, files }
  if (nextActions(next, { at: 0, version: 0, tool: "" }).length === 0)
    return { _tag: "Nothing" } satisfies Due as Due
  const isAsBefore = state !== undefined && hasColumnsOf(state, spec)
  for (const { path } of isAsBefore ? filesToAdd(next) : files) {
    const connection = yield* opened
    const source = `read_parquet(${literal(join(store.layout.root, path))}, hive_partitioning = false)`
    const why = misfitOf(spec, yield* connection.columnTypes(`SELECT * FROM ${source}`))
    if (why !== undefined) return { _tag: "LeaveOut", why: `${path}: ${why}` } satisfies Due as Due
  }
  return { _tag: "Commit", next } satisfies Due as Due
})

const bring = Effect.fnUntraced(function* (table: Table, version: number, opened: Opened) {
  const { store, folder } = table
  const due = yield* dueOf(table, opened)
  if (due._tag !== "Commit") return due
  const at = yield* Clock.currentTimeMillis
  const { state } = due.next
  const actions = nextActions(due.next, { at, version, tool: store.toolVersion })
  const after = yield* appendCommit(store, folder, state, actions)
  if (after !== undefined) yield* shorten(store, folder, after, opened)
  return due
})

export interface Brought {
  /** Tables whose log was continued or begun. */
  readonly written: ReadonlyArray<string>
  /** Tables whose log was removed. */
  readonly removed: ReadonlyArray<string>
  readonly notes: ReadonlyArray<DeltaNote>
}

const firstLine = ({ message }: { readonly message: string }): string => message.split("\n", 1)[0] ?? ""

/** Never fails: what could not be done is in the notes, and is done after the next version or by `repair`. */
export const bringDeltaLogs = Effect.fn("Publishing.bringDeltaLogs")(
  function* (store: Store, manifest: Manifest) {
    const { layout, delta } = store
    const unwanted = delta === false ? fileStep(() => tablesWithLog(layout)) : strayLogs(store)
    const removed = [...(yield* unwanted)]
    for (const table of removed) yield* removeLog(store, logFolder(layout, table))
    const written: Array<string> = []
    const notes: Array<DeltaNote> = []
    const opened = yield* openedIn
    for (const due of delta === false ? [] : yield* tablesDue(store, manifest)) {
      const table = due.spec.name
      const done = yield* Effect.result(bring({ store, ...due }, manifest.version, opened))
      if (done._tag === "Failure") notes.push({ table, why: firstLine(done.failure) })
      else if (done.success._tag === "Commit") written.push(table)
      else if (done.success._tag === "LeaveOut") {
        if (yield* removeLog(store, due.folder)) removed.push(table)
        notes.push({ table, why: done.success.why, is_left_out: true })
      }
    }
    return { written, removed, notes } satisfies Brought as Brought
  },
  Effect.scoped,
  Effect.catchTag("PublishFailed", ({ message }) =>
    Effect.succeed<Brought>({ written: [], removed: [], notes: [{ table: "tables", why: message }] }),
  ),
)

/** Tables whose log does not say what the manifest says, or cannot be read. */
export const differingDeltaLogs = Effect.fn("Publishing.differingDeltaLogs")(function* (
  store: Store,
  manifest: Manifest,
) {
  const differing = [...(yield* strayLogs(store))]
  const opened = yield* openedIn
  for (const due of yield* tablesDue(store, manifest)) {
    const found = yield* Effect.result(dueOf({ store, ...due }, opened))
    // A table that is left out has no log: what is still there is no longer true.
    const isWrong =
      found._tag === "Failure" ||
      found.success._tag === "Commit" ||
      (found.success._tag === "LeaveOut" && existsSync(due.folder))
    if (isWrong) differing.push(due.spec.name)
  }
  return differing as ReadonlyArray<string>
}, Effect.scoped)
