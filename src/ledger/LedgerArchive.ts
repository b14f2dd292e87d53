/**
 * The ledger's side of the archive: which facts of a run leave, and what stays of them. Whatever is asked
 * across all runs stays: beginnings and ends, rejected logins, what was removed. Of what leaves, the ids
 * stay with their tasks, and the hash that the next fact continues from.
 */
import type { DatabaseSync } from "node:sqlite"
import type { RunId } from "../service/Ids.ts"
import type { StoredFact } from "./ArchiveFiles.ts"
import { acrossRuns } from "./LedgerSchema.ts"

/** Facts that are compressed together, and held in memory at once. */
export const factsAtOnce = 10_000

/** The facts of a run that leave the ledger's file. */
export const leaving = `run_id = ?1 AND NOT ${acrossRuns}`

/** What an id in `archived_ids` names. */
export const kinds = { customer: 1, remote: 2, document: 3 } as const

export interface ArchivedId {
  readonly kind: number
  readonly id: string
  /** Without the run's id, if it begins with it; then it begins with a slash. */
  readonly task: string
}

const text = (value: unknown): ReadonlyArray<string> => (typeof value === "string" ? [value] : [])

/**
 * The ids by which a fact is found once it is archived: those that the ledger's indexes have of the
 * others.
 */
export const idsIn = (run_id: string, { body }: StoredFact): ReadonlyArray<ArchivedId> => {
  if (!/"_tag":"(?:TaskPlanned|StartAnswered|AttachmentRead)"/.test(body)) return []
  const fact: Readonly<Record<string, unknown>> = JSON.parse(body)
  const [task_id = ""] = text(fact["task_id"])
  const task = task_id.startsWith(`${run_id}/`) ? task_id.slice(run_id.length) : task_id
  const named = (kind: number, ...fields: ReadonlyArray<string>) =>
    fields.flatMap((field) => text(fact[field]).map((id) => ({ kind, id, task })))
  switch (fact["_tag"]) {
    case "TaskPlanned":
      return [...named(kinds.customer, "customer_id"), ...named(kinds.remote, "session_id")]
    case "StartAnswered":
      return named(kinds.remote, "execution_id", "session_id")
    case "AttachmentRead":
      return named(kinds.document, "sha256")
    default:
      return []
  }
}

/**
 * In a transaction, after the fact with the place `archive` says where the facts are. Throws if others
 * leave than those that were written to the archive.
 */
export const removeArchived = (
  database: DatabaseSync,
  run_id: RunId,
  {
    archive,
    facts,
    ids,
  }: { readonly archive: number; readonly facts: number; readonly ids: ReadonlyArray<ArchivedId> },
): void => {
  database
    .prepare(
      `INSERT OR REPLACE INTO archived_links SELECT seq, chain FROM facts WHERE ${leaving} AND seq + 1 NOT IN
        (SELECT seq FROM facts WHERE ${leaving})`,
    )
    .run(run_id)
  const { changes } = database.prepare(`DELETE FROM facts WHERE ${leaving}`).run(run_id)
  if (Number(changes) !== facts) throw new Error("the run went on while its facts were archived")
  database.exec("DELETE FROM archived_links WHERE seq + 1 NOT IN (SELECT seq FROM facts)")
  const insert = database.prepare("INSERT OR IGNORE INTO archived_ids VALUES (?, ?, ?, ?)")
  for (const { kind, id, task } of ids) insert.run(kind, id, archive, task)
}

/** The ids of a customer's tasks go; those of the others stay. */
export const forgetArchivedIds = (database: DatabaseSync, customer_id: string): void => {
  database
    .prepare(
      `DELETE FROM archived_ids WHERE (archive, task) IN
        (SELECT archive, task FROM archived_ids WHERE kind = ${kinds.customer} AND id = ?)`,
    )
    .run(customer_id)
}

/** Free pages that stay in the file: the next nights fill them. */
const keptPages = (pages: number): number => Math.max(4_096, Math.floor(pages / 8))
/** About 8 MB at once. */
const pagesAtOnce = 2_000

const number = (database: DatabaseSync, pragma: string): number =>
  Number(Object.values(database.prepare(`PRAGMA ${pragma}`).get() ?? {})[0] ?? 0)

/**
 * One step of giving free pages back to the disk; true while there are more. A file that an older version
 * made is written again once, when most of it is free; from then on it goes by steps.
 */
export const giveBackStep = (database: DatabaseSync): boolean => {
  const [free, pages] = [number(database, "freelist_count"), number(database, "page_count")]
  const surplus = free - keptPages(pages)
  if (surplus <= 0) return false
  if (number(database, "auto_vacuum") !== 2) {
    if (free > pages / 2) database.exec("PRAGMA auto_vacuum = INCREMENTAL; VACUUM")
    return false
  }
  database.exec(`PRAGMA incremental_vacuum(${Math.min(surplus, pagesAtOnce)})`)
  return surplus > pagesAtOnce
}
