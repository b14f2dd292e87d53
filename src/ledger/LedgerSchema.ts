/**
 * The tables of the ledger's file: how they are made, how those of older versions become the same, and what a
 * row of a fact looks like.
 */
import type { DatabaseSync } from "node:sqlite"
import { sha256 } from "../base/Sha256.ts"
import { makeAccounts } from "./AccountTables.ts"
import { beginning, linkOf } from "./FactChain.ts"
import type { ChainedRow } from "./FactChain.ts"
import { keyIn, writeKey } from "./LedgerKeys.ts"
import { markFormat } from "./LedgerVersion.ts"
import { within } from "./Transaction.ts"

/**
 * The few facts that are read across all runs. SQLite uses a partial index only if the query repeats its
 * condition.
 */
export const indexed =
  "tag IN ('RunStarted', 'RunResumed', 'RunEnded', 'OutcomePublished', " +
  "'CredentialRejected', 'CredentialReleased')"
/** Accounts whose rejections no longer count. */
export const accepted = "tag = 'LoginAccepted'"
export const pruned = "tag IN ('LandingPruned', 'AttachmentsPruned')"
/** Which runs have downloaded a document. */
export const downloaded = "tag = 'AttachmentRead'"
export const documentOf = "json_extract(body, '$.sha256')"
/** Where the facts of runs that are over for long have gone (`LedgerArchive.ts`). */
export const archivings = "tag = 'FactsArchived'"
/** What is asked across all runs: it is never archived. */
export const acrossRuns = `(${indexed} OR ${accepted} OR ${pruned} OR ${archivings})`
/** Which attempt an execution id belongs to. */
export const started = "tag = 'StartAnswered'"
export const executionIdOf = "json_extract(body, '$.execution_id')"
export const sessionIdOf = "json_extract(body, '$.session_id')"
/** Which runs know a customer. */
export const planned = "tag = 'TaskPlanned'"
export const customerIdOf = "json_extract(body, '$.customer_id')"

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
  CREATE INDEX IF NOT EXISTS facts_by_document ON facts (${documentOf}) WHERE ${downloaded};
  CREATE INDEX IF NOT EXISTS facts_by_execution ON facts (${executionIdOf}) WHERE ${started};
  CREATE INDEX IF NOT EXISTS facts_by_session ON facts (${sessionIdOf}) WHERE ${started};
  CREATE INDEX IF NOT EXISTS facts_by_customer ON facts (${customerIdOf}) WHERE ${planned};
  CREATE INDEX IF NOT EXISTS facts_by_pulled_session ON facts (${sessionIdOf}) WHERE ${planned};
  CREATE INDEX IF NOT EXISTS facts_of_archives ON facts (seq) WHERE ${archivings};
  CREATE TABLE IF NOT EXISTS archived_links (seq INTEGER PRIMARY KEY, chain TEXT NOT NULL) STRICT;
  CREATE TABLE IF NOT EXISTS archived_ids (
    kind INTEGER NOT NULL, id TEXT NOT NULL, archive INTEGER NOT NULL, task TEXT NOT NULL,
    PRIMARY KEY (kind, id, archive, task)
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE IF NOT EXISTS engine_forms (
    engine_reference TEXT PRIMARY KEY, fetched_at INTEGER NOT NULL, body TEXT NOT NULL, sha256 BLOB
  ) STRICT;
  CREATE TABLE IF NOT EXISTS keys (name TEXT PRIMARY KEY, value BLOB NOT NULL) STRICT;
`

/** Creates what is missing, and upgrades what an older version created: all of it or nothing. */
export const makeTables = (database: DatabaseSync): void =>
  within(database, () => {
    database.exec(tables)
    upgrade(database)
    makeAccounts(database)
    markFormat(database)
  })

/** Not in a ledger of an older version that is only read. */
export const hasArchive = (database: DatabaseSync): boolean =>
  database.prepare("SELECT 1 FROM sqlite_schema WHERE name = 'archived_links'").get() !== undefined

const hasColumn = (database: DatabaseSync, table: string, column: string): boolean =>
  database.prepare("SELECT 1 FROM pragma_table_info(?) WHERE name = ?").get(table, column) !== undefined
export const hasChain = (database: DatabaseSync): boolean => hasColumn(database, "facts", "chain")

/**
 * Facts of versions without a chain are chained as they are found: from then on, changes are noticed. The
 * same for the key.
 */
const upgrade = (database: DatabaseSync) => {
  if (!hasChain(database)) database.exec("ALTER TABLE facts ADD COLUMN chain TEXT")
  if (!hasColumn(database, "engine_forms", "sha256"))
    database.exec("ALTER TABLE engine_forms ADD COLUMN sha256 BLOB")
  const last = database
    .prepare("SELECT seq, chain FROM facts WHERE chain IS NOT NULL ORDER BY seq DESC")
    .get()
  const after = Number(last?.["seq"] ?? 0)
  let before = { seq: after, chain: String(last?.["chain"] ?? beginning) }
  const set = database.prepare("UPDATE facts SET chain = ? WHERE seq = ?")
  for (const row of database.prepare(`SELECT ${columns} FROM facts WHERE seq > ? ORDER BY seq`).all(after)) {
    const fact = factOf(row)
    const chain = linkOf(fact.seq === before.seq + 1 ? before.chain : beginning, fact)
    set.run(chain, fact.seq)
    before = { seq: fact.seq, chain }
  }
  const key = keyIn(database, "fingerprint")
  if (key !== undefined) writeKey(database, "fingerprint.sha256", sha256(key))
}

export type Row = Readonly<Record<string, unknown>>
export const columns = "seq, at, tag, run_id, task_id, body"

const maybeText = (value: unknown): string | null => (value === null ? null : String(value))
export const factOf = (row: Row): ChainedRow => ({
  seq: Number(row["seq"]),
  at: Number(row["at"]),
  tag: String(row["tag"]),
  run_id: maybeText(row["run_id"]),
  task_id: maybeText(row["task_id"]),
  body: String(row["body"]),
})

/** Whether every fact in the file must be chained: not yet in a file of an older version. */
export const isChained = (database: DatabaseSync): boolean => {
  if (!hasChain(database)) return false
  const last = database.prepare("SELECT chain FROM facts ORDER BY seq DESC LIMIT 1").get()
  return last === undefined || last["chain"] !== null
}

export const differs = (row: Row, fact: ChainedRow): boolean =>
  row["chain"] !== linkOf(String(row["before"] ?? beginning), fact)
