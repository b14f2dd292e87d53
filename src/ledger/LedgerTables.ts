/**
 * The tables of the ledger, and each read and write of them: one statement or one transaction, durable on
 * return. Every fact that is read is checked against the chain (`FactChain.ts`), and the key against its
 * hash: a flipped bit must not decide whether a login is sent again.
 */
import type { DatabaseSync } from "node:sqlite"
import { sha256 } from "../foundation/Sha256.ts"
import { CustomerId, RunId, TaskId } from "../contract/Ids.ts"
import type { ExecutionId } from "../contract/Ids.ts"
import { beginning, linkOf } from "./FactChain.ts"
import type { ChainedRow } from "./FactChain.ts"
import { replaceFacts, scrub } from "./ForgetInLedger.ts"
import type { Replacement } from "./ForgetInLedger.ts"
import { accessForms } from "./LedgerForms.ts"
import { Damage, fingerprintKeyIn, keyDamage, keyDiffers, keyIn, writeKey } from "./LedgerKeys.ts"
import { within } from "./Transaction.ts"

export type NewFact = Omit<ChainedRow, "seq">
export type StoredFact = Pick<ChainedRow, "seq" | "at" | "body">

/** SQLITE_CORRUPT and SQLITE_NOTADB: SQLite reports that the file is damaged. */
const damagedCodes: ReadonlySet<unknown> = new Set([11, 26])
export const isDamage = (cause: unknown): cause is Error =>
  cause instanceof Damage || (cause instanceof Error && "errcode" in cause && damagedCodes.has(cause.errcode))

/**
 * The few facts that are read across all runs. SQLite uses a partial index only if the query repeats its
 * condition.
 */
const indexed =
  "tag IN ('RunStarted', 'RunResumed', 'RunEnded', 'OutcomePublished', " +
  "'CredentialRejected', 'CredentialReleased')"
/** Accounts whose rejections no longer count. */
const accepted = "tag = 'LoginAccepted'"
const pruned = "tag IN ('LandingPruned', 'AttachmentsPruned')"
/** Which runs have downloaded a document. */
const downloaded = "tag = 'AttachmentRead'"
const documentOf = "json_extract(body, '$.sha256')"
/** Which attempt an execution id belongs to. */
const started = "tag = 'StartAnswered'"
const executionIdOf = "json_extract(body, '$.execution_id')"
const sessionIdOf = "json_extract(body, '$.session_id')"
/** Which runs know a customer. */
const planned = "tag = 'TaskPlanned'"
const customerIdOf = "json_extract(body, '$.customer_id')"

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
  CREATE TABLE IF NOT EXISTS engine_forms (
    engine_reference TEXT PRIMARY KEY, fetched_at INTEGER NOT NULL, body TEXT NOT NULL, sha256 BLOB
  ) STRICT;
  CREATE TABLE IF NOT EXISTS keys (name TEXT PRIMARY KEY, value BLOB NOT NULL) STRICT;
`

/** Creates what is missing, and upgrades what an older version created. */
export const makeTables = (database: DatabaseSync): void => {
  database.exec(tables)
  within(database, () => upgrade(database))
}

const hasColumn = (database: DatabaseSync, table: string, column: string): boolean =>
  database.prepare("SELECT 1 FROM pragma_table_info(?) WHERE name = ?").get(table, column) !== undefined
const hasChain = (database: DatabaseSync): boolean => hasColumn(database, "facts", "chain")

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

type Row = Readonly<Record<string, unknown>>
const columns = "seq, at, tag, run_id, task_id, body"

const maybeText = (value: unknown): string | null => (value === null ? null : String(value))
const factOf = (row: Row): ChainedRow => ({
  seq: Number(row["seq"]),
  at: Number(row["at"]),
  tag: String(row["tag"]),
  run_id: maybeText(row["run_id"]),
  task_id: maybeText(row["task_id"]),
  body: String(row["body"]),
})

/** Whether every fact in the file must be chained: not yet in a file of an older version. */
const isChained = (database: DatabaseSync): boolean => {
  if (!hasChain(database)) return false
  const last = database.prepare("SELECT chain FROM facts ORDER BY seq DESC LIMIT 1").get()
  return last === undefined || last["chain"] !== null
}

const differs = (row: Row, fact: ChainedRow): boolean =>
  row["chain"] !== linkOf(String(row["before"] ?? beginning), fact)

export const accessLedger = (database: DatabaseSync) => {
  const chained = isChained(database)
  const links = chained
    ? `chain, (SELECT chain FROM facts AS last WHERE last.seq = facts.seq - 1) AS before`
    : "NULL AS chain, NULL AS before"
  const select = (condition: string) =>
    database.prepare(`SELECT ${columns}, ${links} FROM facts WHERE ${condition} ORDER BY seq`)
  const ofRun = select("run_id = ? AND seq > ?")
  const ofTask = select("run_id = ? AND task_id = ?")
  const ofNoRun = select("run_id IS NULL")
  const ofTags = (...tags: ReadonlyArray<string>) =>
    select(`${indexed} AND tag IN (${tags.map((tag) => `'${tag}'`).join(", ")})`)
  const headers = ofTags("RunStarted", "RunResumed", "RunEnded", "OutcomePublished")
  const rejections = ofTags("CredentialRejected", "CredentialReleased")
  const acceptances = select(accepted)
  const ofPruning = select(pruned)
  const aboutCustomer = select(
    `task_id IN (SELECT value FROM json_each(?1)) OR tag = 'RunPublished'
      OR (run_id IS NULL AND ${customerIdOf} = ?2)
      OR (tag = 'TaskSettled' AND instr(json_extract(body, '$.message'), ?2) > 0)`,
  )
  const receipts = select("run_id IS NULL AND tag IN ('CustomerForgotten', 'ForgetFinished')")
  const ofDocument = database.prepare(
    `SELECT DISTINCT run_id FROM facts WHERE ${downloaded} AND ${documentOf} = ? ORDER BY run_id`,
  )
  const checked = (rows: ReadonlyArray<Row>): ReadonlyArray<StoredFact> =>
    rows.map((row) => {
      const fact = factOf(row)
      if (chained && differs(row, fact)) throw new Damage(`fact ${fact.seq} has changed since it was written`)
      return fact
    })
  return {
    ...accessForms(database),
    append: appending(database),
    /** The facts of a run that come after the one with this `seq`. */
    ofRun: (run_id: RunId, after: number) => checked(ofRun.all(run_id, after)),
    ofNoRun: () => checked(ofNoRun.all()),
    headers: () => checked(headers.all()),
    rejections: () =>
      checked([...rejections.all(), ...acceptances.all()]).toSorted((one, other) => one.seq - other.seq),
    pruned: () => checked(ofPruning.all()),
    /** The runs that have downloaded the document with this hash. */
    runsWithDocument: (sha256: string) => ofDocument.all(sha256).map((row) => String(row["run_id"])),
    ownerOf: ownerIn(database),
    tasksNaming: tasksIn(database),
    customers: customersIn(database),
    ofTask: (run_id: RunId, task_id: string) => checked(ofTask.all(run_id, task_id)),
    /** Every fact that may be about these tasks, or name the customer elsewhere. */
    maybeAbout: (tasks: ReadonlyArray<string>, customer_id: string) =>
      checked(aboutCustomer.all(JSON.stringify(tasks), customer_id)),
    replace: (
      replacements: ReadonlyArray<Replacement>,
      added: (sealed_from: number) => NewFact | undefined,
    ) => replaceFacts(database, columns, factOf, replacements, added),
    scrub: () => scrub(database),
    receipts: () => checked(receipts.all()),
    fingerprintKey: () => fingerprintKeyIn(database),
    problems: () => problemsIn(database),
  }
}

/** The end of the chain is read in the transaction that extends it: another process may have added facts. */
const appending = (database: DatabaseSync) => {
  // Only a ledger of an older version that was opened for reading.
  if (!hasChain(database))
    return () => {
      throw new Error("it was opened read-only")
    }
  const tail = database.prepare("SELECT seq, chain FROM facts ORDER BY seq DESC LIMIT 1")
  const insert = database.prepare(`INSERT INTO facts (${columns}, chain) VALUES (?, ?, ?, ?, ?, ?, ?)`)
  return (rows: ReadonlyArray<NewFact>) =>
    within(database, () => {
      const last = tail.get()
      let seq = Number(last?.["seq"] ?? 0)
      let chain = String(last?.["chain"] ?? beginning)
      for (const row of rows) {
        seq += 1
        chain = linkOf(chain, { seq, ...row })
        insert.run(seq, row.at, row.tag, row.run_id, row.task_id, row.body, chain)
      }
    })
}

export interface TaskOfRun {
  readonly run_id: RunId
  readonly task_id: TaskId
}

interface Owner {
  readonly task_id: TaskId
  readonly attempt: number
  /** The service has since deleted its execution, or no longer knows it: the id may come again. */
  readonly isDeleted: boolean
}

const ownerIn = (database: DatabaseSync) => {
  const owner = database.prepare(
    `SELECT seq, task_id, json_extract(body, '$.attempt') AS attempt FROM facts
      WHERE ${started} AND ${executionIdOf} = ? AND json_extract(body, '$.answer') IN ('accepted', 'adopted')
      ORDER BY seq DESC LIMIT 1`,
  )
  // No index: it is read only if an id appears a second time.
  const deletion = database.prepare(
    `SELECT 1 FROM facts WHERE seq > ? AND tag = 'DeleteAnswered' AND ${executionIdOf} = ?
      AND json_extract(body, '$.outcome') IN ('deleted', 'gone') LIMIT 1`,
  )
  return (execution_id: ExecutionId): Owner | undefined => {
    const row = owner.get(execution_id)
    if (row === undefined) return undefined
    const isDeleted = deletion.get(Number(row["seq"]), execution_id) !== undefined
    return { task_id: TaskId.make(String(row["task_id"])), attempt: Number(row["attempt"]), isDeleted }
  }
}

/** By index only, so that it costs the same after a thousand nights. */
const tasksIn = (database: DatabaseSync) => {
  const where = [
    `${planned} AND ${customerIdOf} = ?1`,
    `${planned} AND ${sessionIdOf} = ?1`,
    `${started} AND ${executionIdOf} = ?1`,
    `${started} AND ${sessionIdOf} = ?1`,
  ]
  const named = database.prepare(
    where.map((condition) => `SELECT run_id, task_id FROM facts WHERE ${condition}`).join(" UNION "),
  )
  return (id: string): ReadonlyArray<TaskOfRun> =>
    named.all(id).map((row) => ({
      run_id: RunId.make(String(row["run_id"])),
      task_id: TaskId.make(String(row["task_id"])),
    }))
}

/** From one id to the next in the index: it has an entry for every task of every run. */
const customersIn = (database: DatabaseSync) => {
  const next = (after: string) => `(SELECT min(${customerIdOf}) FROM facts WHERE ${planned}${after})`
  const all = database.prepare(`
    WITH RECURSIVE ids(id) AS (
      SELECT ${next("")} UNION ALL
      SELECT ${next(` AND ${customerIdOf} > ids.id`)} FROM ids WHERE ids.id IS NOT NULL
    ) SELECT id FROM ids WHERE id IS NOT NULL`)
  return (): ReadonlyArray<CustomerId> => all.all().map((row) => CustomerId.make(String(row["id"])))
}

const problemsTold = 5

/** What stands where a fact about a removed customer stood names the receipt of the removal. */
const withoutReceipt = `
  SELECT 1 FROM facts WHERE tag = 'FactForgotten' AND json_extract(body, '$.receipt') NOT IN
    (SELECT json_extract(body, '$.receipt') FROM facts WHERE tag = 'CustomerForgotten') LIMIT 1`

/** The whole file: SQLite's own check, every link of the chain, the key. */
const problemsIn = (database: DatabaseSync): ReadonlyArray<string> => {
  const found = database.prepare(`PRAGMA integrity_check(${problemsTold})`).all()
  const problems = found.map((row) => String(row["integrity_check"])).filter((says) => says !== "ok")
  const key = keyIn(database, "fingerprint")
  if (key !== undefined && keyDiffers(database, key)) problems.push(keyDamage)
  if (!isChained(database)) return problems
  if (database.prepare(withoutReceipt).get() !== undefined)
    problems.push("facts were replaced, and the receipt that says why is missing")
  let before = { seq: 0, chain: beginning }
  const all = database.prepare(`SELECT ${columns}, chain FROM facts NOT INDEXED ORDER BY seq`)
  for (const row of all.iterate()) {
    const fact = factOf(row)
    if (fact.seq !== before.seq + 1) problems.push(`fact ${before.seq + 1} is missing`)
    if (differs({ ...row, before: before.chain }, fact) && fact.seq === before.seq + 1)
      problems.push(`fact ${fact.seq} has changed since it was written`)
    if (problems.length >= problemsTold) break
    before = { seq: fact.seq, chain: String(row["chain"]) }
  }
  return problems
}
