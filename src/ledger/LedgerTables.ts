/**
 * Each read and write of the ledger's tables: one statement or one transaction, durable on return. Every
 * fact that is read is checked against the chain (`LedgerKeys.ts`), archived ones against the hash of their
 * frame, and the key against its hash: a flipped bit must not decide whether a login is sent again.
 */
import type { DatabaseSync } from "node:sqlite"
import { Schema } from "effect"
import { sha256 } from "../base/Hashes.ts"
import { accountsIn } from "./AccountTables.ts"
import { FactsArchived, type Archive } from "./Fact.ts"
import type { Decided } from "./FactRows.ts"
import type { TaskKeys } from "./FactKeys.ts"
import {
  archivedFacts,
  factsAtOnce,
  forgetArchivedIds,
  giveBackStep,
  leaving,
  removeArchived,
} from "./LedgerArchive.ts"
import type { ArchivedId } from "./LedgerArchive.ts"
import { customersIn, documentsIn, ownerIn, tasksIn } from "./LedgerIds.ts"
import {
  Damage,
  beginning,
  chainFrom,
  columns,
  factOf,
  fingerprintKeyIn,
  linkOf,
  within,
} from "./LedgerKeys.ts"
import type { ChainedRow, NewFact, Row, StoredFact } from "./LedgerKeys.ts"
import { problemsIn } from "./LedgerProblems.ts"
import { archivings, differs, indexed, isChained, pruned, valueOf } from "./LedgerSchema.ts"
import { statesIn } from "./StateTables.ts"
import type { EngineReference, RunId } from "../service/Ids.ts"

// Removes a customer: in one transaction facts are replaced, later ones chained again and the receipt added;
// then the file is rewritten, so that no free page and no log holds what was replaced.

export interface Replacement {
  readonly seq: number
  /** The fields of the row that may change. */
  readonly row: Pick<ChainedRow, "tag" | "run_id" | "task_id" | "body">
}

/** In a transaction. `added` is the fact that goes to the end, if any. */
const replaceFacts = (
  database: DatabaseSync,
  replacements: ReadonlyArray<Replacement>,
  added: (sealed_from: number) => NewFact | undefined,
): void => {
  const last = database.prepare("SELECT max(seq) AS seq FROM facts").get()
  const end = Number(last?.["seq"] ?? 0)
  const first = replacements.reduce((least, { seq }) => Math.min(least, seq), end + 1)
  const replace = database.prepare(
    "UPDATE facts SET tag = ?, run_id = ?, task_id = ?, body = ? WHERE seq = ?",
  )
  for (const { seq, row } of replacements) replace.run(row.tag, row.run_id, row.task_id, row.body, seq)
  chainFrom(database, first)
  const fact = added(first)
  if (fact !== undefined) appendRows(database)([fact])
}

/** Rewrites the whole file; throws while another process reads it for longer than the connection waits. */
const scrub = (database: DatabaseSync): void => {
  checkpoint(database)
  database.exec("VACUUM")
  checkpoint(database)
}

const checkpoint = (database: DatabaseSync): void => {
  const answer = database.prepare("PRAGMA wal_checkpoint(TRUNCATE)").get()
  if (Number(answer?.["busy"] ?? 0) !== 0) throw new Error("another process is reading the ledger")
}

// Engine forms: not facts, but a cache that outlasts a run, each with a hash of what was written.

export interface CachedForm {
  readonly engine_reference: EngineReference
  /** Milliseconds since the epoch. */
  readonly fetched_at: number
  /** The detail view as JSON text. */
  readonly body: string
}

/** A cached form that has changed is not used: it is fetched again. */
const accessForms = (database: DatabaseSync) => ({
  cachedForm: (engine_reference: EngineReference): CachedForm | undefined => {
    const row = database
      .prepare("SELECT * FROM engine_forms WHERE engine_reference = ?")
      .get(engine_reference)
    if (row === undefined) return undefined
    const [fetched_at, body, hash] = [Number(row["fetched_at"]), String(row["body"]), row["sha256"]]
    const isWhole = hash instanceof Uint8Array && sha256(formText(fetched_at, body)).equals(hash)
    return isWhole ? { engine_reference, fetched_at, body } : undefined
  },
  cacheForm: ({ engine_reference, fetched_at, body }: CachedForm) => {
    const at = Math.trunc(fetched_at)
    database
      .prepare(
        `INSERT OR REPLACE INTO engine_forms (engine_reference, fetched_at, body, sha256)
          VALUES (?, ?, ?, ?)`,
      )
      .run(engine_reference, at, body, sha256(formText(at, body)))
  },
})
const formText = (fetched_at: number, body: string): string => `${fetched_at} ${body}`

const decodeArchived = Schema.decodeUnknownSync(Schema.fromJsonString(FactsArchived))

/** `before` is the hash of the fact before, which may be archived; both are NULL before there were any. */
const links = `chain, coalesce(
  (SELECT chain FROM facts AS last WHERE last.seq = facts.seq - 1),
  (SELECT chain FROM archived_links AS last WHERE last.seq = facts.seq - 1)) AS before`

/** Every row is checked. `folder` is that of the archive. */
const readersIn = (database: DatabaseSync, folder: string) => {
  const chained = isChained(database)
  const checked = (row: Row): ChainedRow => {
    const fact = factOf(row)
    if (chained && differs(row, fact)) throw new Damage(`fact ${fact.seq} has changed since it was written`)
    return fact
  }
  const select = (condition: string, limit = "") => {
    const sql = `SELECT ${columns}, ${links} FROM facts WHERE ${condition} ORDER BY seq ${limit}`
    const statement = database.prepare(sql)
    const all = (...given: ReadonlyArray<string | number>): ReadonlyArray<ChainedRow> =>
      statement.all(...given).map(checked)
    const each = function* (...given: ReadonlyArray<string | number>): Iterable<ChainedRow> {
      for (const row of statement.iterate(...given)) yield checked(row)
    }
    return Object.assign(all, { each })
  }
  const ofRun = select("run_id = ? AND seq > ?")
  // By their own index (`+`): the one of runs would read every fact of the run.
  const placeOf = select(`+run_id = ? AND ${archivings}`)
  const ofTask = select(`run_id = ? AND (task_id = ? OR ${archivings})`)
  /** With the run's archived facts, if it has some: one of its rows says where they are. */
  const whole = (rows: ReadonlyArray<ChainedRow>, after: number): ReadonlyArray<StoredFact> => {
    const archived = rows.find(({ tag }) => tag === "FactsArchived")
    if (archived === undefined) return rows
    const old = archivedFacts(folder, decodeArchived(archived.body), after)
    return [...old, ...rows].toSorted((one, other) => one.seq - other.seq)
  }
  return {
    select,
    placeOf,
    /** Of the facts of a run after this place; they are not in memory at once, unless they are archived. */
    foldOfRun: <A>(run_id: RunId, after: number, fold: (facts: Iterable<StoredFact>) => A): A =>
      again(() =>
        fold(
          placeOf(run_id).length > 0 ? whole(ofRun(run_id, after), after) : live(ofRun.each(run_id, after)),
        ),
      ),
    ofTask: ({ run_id, task_id }: TaskKeys): ReadonlyArray<StoredFact> => {
      const name = JSON.stringify(task_id)
      const isOfTask = ({ body }: StoredFact) => body.includes(name) && JSON.parse(body).task_id === task_id
      return again(() => whole(ofTask(run_id, task_id), 0)).filter(isOfTask)
    },
  }
}

/** Another process may archive a run after it was asked where its facts are. */
const live = function* (rows: Iterable<ChainedRow>): Iterable<StoredFact> {
  for (const row of rows) {
    if (row.tag === "FactsArchived") throw new Damage("the run was archived while it was read")
    yield row
  }
}

/** `folder` is that of the archive. */
export const accessLedger = (database: DatabaseSync, folder: string) => {
  const { select, placeOf, foldOfRun, ofTask } = readersIn(database, folder)
  const ofArchives = select(archivings)
  const archives = (): ReadonlyArray<Archive> =>
    ofArchives().map(({ seq, at, body }) => ({ seq, at, fact: decodeArchived(body) }))
  const accounts = accountsIn(database)
  const states = statesIn(database)
  const aboutCustomer = select(
    `task_id IN (SELECT value FROM json_each(?1)) OR tag = 'RunPublished'
      OR (run_id IS NULL AND ${valueOf("customer_id")} = ?2)
      OR (tag = 'TaskSettled' AND instr(json_extract(body, '$.message'), ?2) > 0)
      OR (tag = 'CredentialReleased' AND instr(json_extract(body, '$.because'), ?2) > 0)`,
  )
  return {
    ...accessForms(database),
    append: appending(database, accounts),
    foldOfRun,
    ofTask,
    ofNoRun: select("run_id IS NULL"),
    headers: select(`${indexed} AND tag IN ('RunStarted', 'RunResumed', 'RunEnded', 'OutcomePublished')`),
    accounts: accounts.all,
    accountsOf: accounts.ofLogin,
    pruned: select(pruned),
    archives,
    /** The next facts of a run, after this place, that may be archived. */
    toArchive: select(`${leaving} AND seq > ?2`, `LIMIT ${factsAtOnce}`),
    archived: archiving(database, states),
    isArchived: (run_id: RunId): boolean => placeOf(run_id).length > 0,
    states,
    giveBack: () => giveBackStep(database),
    runsWithDocument: documentsIn(database),
    ownerOf: ownerIn(database, ofTask),
    tasksNaming: tasksIn(database),
    customers: customersIn(database),
    /** Every fact that may be about these tasks, or name the customer elsewhere. */
    maybeAbout: (tasks: ReadonlyArray<string>, customer_id: string) =>
      aboutCustomer(JSON.stringify(tasks), customer_id),
    replace: (
      customer_id: string,
      replacements: ReadonlyArray<Replacement>,
      added: (sealed_from: number) => NewFact | undefined,
    ) =>
      within(database, () => {
        replaceFacts(database, replacements, added)
        accounts.withoutCustomer(customer_id)
        states.removeAll()
        forgetArchivedIds(database, customer_id)
      }),
    scrub: () => scrub(database),
    receipts: select("run_id IS NULL AND tag IN ('CustomerForgotten', 'ForgetFinished')"),
    fingerprintKey: () => fingerprintKeyIn(database),
    problems: () => [...problemsIn(database, folder, archives), ...accounts.problems()],
  }
}

/** Another process may have written a month of the archive again since the ledger was asked where it is. */
const again = <A>(read: () => A): A => {
  try {
    return read()
  } catch (cause) {
    if (!(cause instanceof Damage)) throw cause
    return read()
  }
}

/** Facts that were written to the archive leave the file, in the transaction that says where they are. */
const archiving =
  (database: DatabaseSync, states: ReturnType<typeof statesIn>) =>
  (
    row: NewFact & { readonly run_id: RunId },
    left: { readonly facts: number; readonly ids: ReadonlyArray<ArchivedId> },
  ): void =>
    within(database, () => {
      appendRows(database)([row])
      const last = database.prepare("SELECT max(seq) AS seq FROM facts").get()
      removeArchived(database, row.run_id, { ...left, archive: Number(last?.["seq"]) })
      states.remove(row.run_id)
    })

/**
 * The end of the chain, and what decides, are read in the transaction that extends it: another process may
 * have added facts. Answers the place of the first row.
 */
const appending = (database: DatabaseSync, accounts: ReturnType<typeof accountsIn>) => {
  // Nothing can be prepared to write in a ledger of an older version that is only read.
  let prepared: ReturnType<typeof appendRows> | undefined
  return (decisions: ReadonlyArray<Decided>) =>
    within(database, () => {
      const write = (prepared ??= appendRows(database))
      let first = 0
      const rows = decisions.flatMap((decide) => {
        const own = decide(accounts)
        if (own.length === 0) return []
        const place = write(own)
        first ||= place
        accounts.project(own)
        return own
      })
      return { first, rows }
    })
}

/** Answers the place of the first of them. */
const appendRows = (database: DatabaseSync) => {
  const tail = database.prepare("SELECT seq, chain FROM facts ORDER BY seq DESC LIMIT 1")
  const insert = database.prepare(`INSERT INTO facts (${columns}, chain) VALUES (?, ?, ?, ?, ?, ?, ?)`)
  return (rows: ReadonlyArray<NewFact>): number => {
    const last = tail.get()
    const first = Number(last?.["seq"] ?? 0) + 1
    let seq = first - 1
    let chain = String(last?.["chain"] ?? beginning)
    for (const row of rows) {
      seq += 1
      chain = linkOf(chain, { seq, ...row })
      insert.run(seq, row.at, row.tag, row.run_id, row.task_id, row.body, chain)
    }
    return first
  }
}
