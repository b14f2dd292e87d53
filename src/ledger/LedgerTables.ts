/**
 * Each read and write of the ledger's tables: one statement or one transaction, durable on return. Every
 * fact that is read is checked against the chain (`FactChain.ts`), archived ones against the hash of their
 * frame, and the key against its hash: a flipped bit must not decide whether a login is sent again.
 */
import type { DatabaseSync } from "node:sqlite"
import { Schema } from "effect"
import type { RunId } from "../service/Ids.ts"
import { accountsIn, hasAccounts, readAccounts } from "./AccountTables.ts"
import { FactsArchived } from "./ArchiveFact.ts"
import type { Archive } from "./ArchiveFact.ts"
import { archivedFacts } from "./ArchiveFiles.ts"
import type { StoredFact } from "./ArchiveFiles.ts"
import { beginning, linkOf } from "./FactChain.ts"
import type { ChainedRow, NewFact } from "./FactChain.ts"
import { replaceFacts, scrub } from "./ForgetInLedger.ts"
import type { Replacement } from "./ForgetInLedger.ts"
import { factsAtOnce, forgetArchivedIds, giveBackStep, leaving, removeArchived } from "./LedgerArchive.ts"
import type { ArchivedId } from "./LedgerArchive.ts"
import { accessForms } from "./LedgerForms.ts"
import { customersIn, documentsIn, ownerIn, tasksIn } from "./LedgerIds.ts"
import type { TaskOfRun } from "./LedgerIds.ts"
import { Damage, fingerprintKeyIn } from "./LedgerKeys.ts"
import { problemsIn } from "./LedgerProblems.ts"
import {
  archivings,
  columns,
  customerIdOf,
  differs,
  factOf,
  hasArchive,
  hasChain,
  indexed,
  isChained,
  pruned,
} from "./LedgerSchema.ts"
import type { Row } from "./LedgerSchema.ts"
import { within } from "./Transaction.ts"

const decodeArchived = Schema.decodeUnknownSync(Schema.fromJsonString(FactsArchived))

/** `before` is the hash of the fact before, which may be archived; both are NULL before there were any. */
const linksIn = (database: DatabaseSync): string => {
  if (!isChained(database)) return "NULL AS chain, NULL AS before"
  const last = "SELECT chain FROM facts AS last WHERE last.seq = facts.seq - 1"
  if (!hasArchive(database)) return `chain, (${last}) AS before`
  const archived = "SELECT chain FROM archived_links AS last WHERE last.seq = facts.seq - 1"
  return `chain, coalesce((${last}), (${archived})) AS before`
}

/** Every row is checked. `folder` is that of the archive. */
const readersIn = (database: DatabaseSync, folder: string) => {
  const chained = isChained(database)
  const links = linksIn(database)
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
  const placeOf = select(`run_id = ? AND ${archivings}`)
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
    ofTags: (...tags: ReadonlyArray<string>) =>
      select(`${indexed} AND tag IN (${tags.map((tag) => `'${tag}'`).join(", ")})`),
    /** The facts of a run that come after the one with this `seq`. */
    ofRun: (run_id: RunId, after: number) => again(() => whole(ofRun(run_id, after), after)),
    /** What `fold` makes of them; they are not in memory at once, unless they are archived. */
    foldOfRun: <A>(run_id: RunId, after: number, fold: (facts: Iterable<StoredFact>) => A): A =>
      again(() =>
        fold(
          placeOf(run_id).length > 0 ? whole(ofRun(run_id, after), after) : live(ofRun.each(run_id, after)),
        ),
      ),
    ofTask: ({ run_id, task_id }: TaskOfRun): ReadonlyArray<StoredFact> => {
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
  const { select, ofTags, ofRun, foldOfRun, ofTask } = readersIn(database, folder)
  const ofArchives = select(archivings)
  const archives = (): ReadonlyArray<Archive> =>
    ofArchives().map(({ seq, at, body }) => ({ seq, at, fact: decodeArchived(body) }))
  const accounts = readAccounts(database)
  const aboutCustomer = select(
    `task_id IN (SELECT value FROM json_each(?1)) OR tag = 'RunPublished'
      OR (run_id IS NULL AND ${customerIdOf} = ?2)
      OR (tag = 'TaskSettled' AND instr(json_extract(body, '$.message'), ?2) > 0)
      OR (tag = 'CredentialReleased' AND instr(json_extract(body, '$.because'), ?2) > 0)`,
  )
  return {
    ...accessForms(database),
    append: appending(database),
    ofRun,
    foldOfRun,
    ofTask,
    ofNoRun: select("run_id IS NULL"),
    headers: ofTags("RunStarted", "RunResumed", "RunEnded", "OutcomePublished"),
    accounts: accounts.all,
    accountsOf: accounts.ofLogin,
    pruned: select(pruned),
    archives,
    /** The next facts of a run, after this place, that may be archived. */
    toArchive: select(`${leaving} AND seq > ?2`, `LIMIT ${factsAtOnce}`),
    archived: archiving(database),
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
  (database: DatabaseSync) =>
  (
    row: NewFact & { readonly run_id: RunId },
    left: { readonly facts: number; readonly ids: ReadonlyArray<ArchivedId> },
  ): void =>
    within(database, () => {
      appendRows(database)([row])
      const last = database.prepare("SELECT max(seq) AS seq FROM facts").get()
      removeArchived(database, row.run_id, { ...left, archive: Number(last?.["seq"]) })
    })

/** The end of the chain is read in the transaction that extends it: another process may have added facts. */
const appending = (database: DatabaseSync) => {
  // Only a ledger of an older version that was opened for reading.
  if (!hasChain(database) || !hasAccounts(database))
    return () => {
      throw new Error("it was opened read-only")
    }
  const write = appendRows(database)
  const { project } = accountsIn(database)
  return (rows: ReadonlyArray<NewFact>) =>
    within(database, () => {
      write(rows)
      project(rows)
    })
}

const appendRows = (database: DatabaseSync) => {
  const tail = database.prepare("SELECT seq, chain FROM facts ORDER BY seq DESC LIMIT 1")
  const insert = database.prepare(`INSERT INTO facts (${columns}, chain) VALUES (?, ?, ?, ?, ?, ?, ?)`)
  return (rows: ReadonlyArray<NewFact>): void => {
    const last = tail.get()
    let seq = Number(last?.["seq"] ?? 0)
    let chain = String(last?.["chain"] ?? beginning)
    for (const row of rows) {
      seq += 1
      chain = linkOf(chain, { seq, ...row })
      insert.run(seq, row.at, row.tag, row.run_id, row.task_id, row.body, chain)
    }
  }
}
