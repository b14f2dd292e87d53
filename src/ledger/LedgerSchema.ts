/**
 * The tables of the ledger's file: how they are made, how those of older versions become the same, and what a
 * row of a fact looks like.
 */
import { chmodSync, existsSync, readdirSync } from "node:fs"
import { dirname, join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import { Clock, Effect } from "effect"
import { durableFiles, type DurableFiles } from "../base/DurableFile.ts"
import { copyDatabase } from "../base/FolderLock.ts"
import { sha256 } from "../base/Hashes.ts"
import { dayOf } from "../base/Time.ts"
import { makeAccounts } from "./AccountTables.ts"
import {
  LedgerFailed,
  beginning,
  chainFrom,
  keyIn,
  hasTable,
  ledgerFailed,
  linkOf,
  markFormat,
  olderFormat,
  refuseNewer,
  within,
  writeKey,
} from "./LedgerKeys.ts"
import type { ChainedRow, Row } from "./LedgerKeys.ts"
import { stateTable } from "./StateTables.ts"

/** Facts read across all runs. SQLite uses a partial index only if the query repeats its condition. */
export const indexed =
  "tag IN ('RunStarted', 'RunResumed', 'RunEnded', 'OutcomePublished', " +
  "'CredentialRejected', 'CredentialReleased')"
/** Accounts whose rejections no longer count. */
const accepted = "tag = 'LoginAccepted'"
export const pruned = "tag IN ('LandingPruned', 'AttachmentsPruned')"
/** Where the facts of runs that are over for long have gone (`LedgerArchive.ts`). */
export const archivings = "tag = 'FactsArchived'"
/** What is asked across all runs: it is never archived. */
export const acrossRuns = `(${indexed} OR ${accepted} OR ${pruned} OR ${archivings})`

/** The ids by which tasks are found: by index, or in `archived_ids` once the fact is in the archive. */
export const kinds = { customer: 1, remote: 2, document: 3 } as const
export const idFields = [
  { kind: kinds.customer, tag: "TaskPlanned", field: "customer_id", index: "facts_by_customer" },
  { kind: kinds.remote, tag: "TaskPlanned", field: "session_id", index: "facts_by_pulled_session" },
  { kind: kinds.remote, tag: "StartAnswered", field: "execution_id", index: "facts_by_execution" },
  { kind: kinds.remote, tag: "StartAnswered", field: "session_id", index: "facts_by_session" },
  { kind: kinds.document, tag: "AttachmentRead", field: "sha256", index: "facts_by_document" },
] as const
export const valueOf = (field: string): string => `json_extract(body, '$.${field}')`

const idIndexes = idFields.map(
  ({ index, field, tag }) =>
    `CREATE INDEX IF NOT EXISTS ${index} ON facts (${valueOf(field)}) WHERE tag = '${tag}';`,
)

const tables = `
  CREATE TABLE IF NOT EXISTS facts (
    seq INTEGER PRIMARY KEY,
    at INTEGER NOT NULL,
    tag TEXT NOT NULL,
    run_id TEXT,
    task_id TEXT,
    body TEXT NOT NULL,
    chain TEXT
  ) STRICT;
  CREATE INDEX IF NOT EXISTS facts_by_run ON facts (run_id, seq);
  CREATE INDEX IF NOT EXISTS facts_by_tag ON facts (tag, seq) WHERE ${indexed};
  CREATE INDEX IF NOT EXISTS facts_of_acceptance ON facts (seq) WHERE ${accepted};
  CREATE INDEX IF NOT EXISTS facts_of_pruning ON facts (seq) WHERE ${pruned};
  ${idIndexes.join("\n  ")}
  CREATE INDEX IF NOT EXISTS facts_of_archives ON facts (seq) WHERE ${archivings};
  CREATE TABLE IF NOT EXISTS engine_forms (
    engine_reference TEXT PRIMARY KEY, fetched_at INTEGER NOT NULL, body TEXT NOT NULL, sha256 BLOB
  ) STRICT;
  CREATE TABLE IF NOT EXISTS keys (name TEXT PRIMARY KEY, value BLOB NOT NULL) STRICT;
`

/** In the file, or beside it for one connection. */
const archiveTables = (schema: "main" | "temp"): string => `
  CREATE TABLE IF NOT EXISTS ${schema}.archived_links (seq INTEGER PRIMARY KEY, chain TEXT NOT NULL) STRICT;
  CREATE TABLE IF NOT EXISTS ${schema}.archived_ids (
    kind INTEGER NOT NULL, id TEXT NOT NULL, archive INTEGER NOT NULL, task TEXT NOT NULL,
    PRIMARY KEY (kind, id, archive, task)
  ) STRICT, WITHOUT ROWID;
`

/** Creates what is missing, and upgrades what an older version created: all of it or nothing. */
export const makeTables = (database: DatabaseSync): void =>
  within(database, () => {
    database.exec(tables + archiveTables("main") + stateTable("main"))
    upgrade(database)
    makeAccounts(database, "main")
    markFormat(database)
  })

/**
 * A ledger of an older version that is only read stays as it is. What it lacks is made beside it, for this
 * connection: SQLite finds a temporary table before one of the file.
 */
const makeBeside = (database: DatabaseSync): void => {
  database.exec("PRAGMA temp_store = MEMORY")
  if (!hasTable(database, "archived_links")) database.exec(archiveTables("temp"))
  if (!hasTable(database, "run_states")) database.exec(stateTable("temp"))
  if (!hasChain(database)) database.exec("CREATE TEMP VIEW facts AS SELECT *, NULL AS chain FROM main.facts")
  makeAccounts(database, "temp")
}

const hasColumn = (database: DatabaseSync, table: string, column: string): boolean =>
  database.prepare("SELECT 1 FROM pragma_table_info(?) WHERE name = ?").get(table, column) !== undefined
const hasChain = (database: DatabaseSync): boolean => hasColumn(database, "facts", "chain")

/** Facts of versions without a chain are chained as they are found, and the key gets its hash. */
const upgrade = (database: DatabaseSync) => {
  if (!hasChain(database)) database.exec("ALTER TABLE facts ADD COLUMN chain TEXT")
  if (!hasColumn(database, "engine_forms", "sha256"))
    database.exec("ALTER TABLE engine_forms ADD COLUMN sha256 BLOB")
  const last = database
    .prepare("SELECT seq FROM facts WHERE chain IS NOT NULL ORDER BY seq DESC LIMIT 1")
    .get()
  chainFrom(database, Number(last?.["seq"] ?? 0) + 1)
  const key = keyIn(database, "fingerprint")
  if (key !== undefined) writeKey(database, "fingerprint.sha256", sha256(key))
}

/** Whether every fact in the file must be chained: not yet in a file of an older version. */
export const isChained = (database: DatabaseSync): boolean => {
  const last = database.prepare("SELECT chain FROM facts ORDER BY seq DESC LIMIT 1").get()
  return last === undefined || last["chain"] !== null
}

export const differs = (row: Row, fact: ChainedRow): boolean =>
  row["chain"] !== linkOf(String(row["before"] ?? beginning), fact)

// A ledger of an older format is copied before this version writes in it for the first time: the way back.
// The copy is whole, synced and beside it, or the ledger stays as it was. What is cut off starts over.

/** `ledger.format-1.2026-11-23.sqlite`: the format that it has, and the day in UTC. */
const copyPattern = /^ledger\.format-(\d+)\.\d{4}-\d\d-\d\d\.sqlite(?:\.tmp)?$/
const fileMode = 0o600

/** The copies in an output folder, whole or cut off. */
const copiesIn = (folder: string): ReadonlyArray<string> =>
  existsSync(folder) ? readdirSync(folder).filter((name) => copyPattern.test(name)) : []

const formatIn = (name: string): number => Number(copyPattern.exec(name)?.[1])

export interface LedgerCopy {
  /** The format of the copy. */
  readonly format: number
  readonly path: string
}

/** Undefined if the ledger has this version's format, or nothing is in it yet. */
export const copyIfOlder = Effect.fnUntraced(function* (path: string) {
  if (path === ":memory:" || !existsSync(path)) return undefined
  const files = yield* durableFiles
  const format = yield* Effect.try({ try: () => formatAt(path), catch: ledgerFailed })
  if (format === undefined) return undefined
  const folder = dirname(path)
  const day = dayOf(yield* Clock.currentTimeMillis)
  const name = `ledger.format-${format}.${day}.sqlite`
  const [copy, building] = [join(folder, name), join(folder, `${name}.tmp`)]
  const made = Effect.gen(function* () {
    yield* Effect.try(() => {
      files.remove(building)
      copyDatabase(path, building, fileMode)
    })
    yield* files.settle(building, fileMode)
    yield* Effect.try(() => {
      files.rename(building, copy)
      files.syncFolder(folder)
      const others = copiesIn(folder).filter((one) => one !== name && formatIn(one) === format)
      for (const one of others) files.remove(join(folder, one))
    })
  })
  yield* made.pipe(
    Effect.onError(() => Effect.ignore(Effect.try(() => files.remove(building)))),
    Effect.mapError((cause) => {
      const why = "cause" in cause && cause.cause instanceof Error ? cause.cause.message : cause.message
      const what = `it has the older format ${format}, and no copy of it could be made before it is changed`
      return new LedgerFailed({ message: `${what}: ${why}; it is as it was` })
    }),
  )
  return { format, path: copy } satisfies LedgerCopy as LedgerCopy
})

const formatAt = (path: string): number | undefined => {
  const database = new DatabaseSync(path, { readOnly: true, timeout: 10_000 })
  try {
    return olderFormat(database)
  } finally {
    database.close()
  }
}

/** They hold what the ledger said, also about a customer who is removed. */
export const removeCopies = (files: DurableFiles, folder: string): void => {
  const names = copiesIn(folder)
  for (const name of names) files.remove(join(folder, name))
  if (names.length > 0) files.syncFolder(folder)
}

// Who opens the file for writing makes the tables that are missing, and brings older ones to this format.

/** `path` may be ":memory:"; a read-only ledger must already exist. */
export const openLedger = (options: { readonly path: string; readonly readOnly?: boolean }): DatabaseSync => {
  const database = new DatabaseSync(options.path, { readOnly: options.readOnly ?? false, timeout: 10_000 })
  try {
    refuseNewer(database)
    if (options.readOnly === true) {
      if (hasTable(database, "facts")) makeBeside(database)
      return database
    }
    if (options.path !== ":memory:") chmodSync(options.path, 0o600)
    // Before the first page is written; an older file is left as it is.
    database.exec("PRAGMA auto_vacuum = INCREMENTAL; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;")
    makeTables(database)
    return database
  } catch (cause) {
    database.close()
    throw cause
  }
}
