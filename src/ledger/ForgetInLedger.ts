/**
 * Removes a customer from the ledger's file: in one transaction the facts about the customer are replaced,
 * every later fact is chained again and the receipt is added; afterwards the file is rewritten, so that no
 * free page and no log still holds what was replaced.
 */
import type { DatabaseSync } from "node:sqlite"
import { beginning, linkOf } from "./FactChain.ts"
import type { ChainedRow } from "./FactChain.ts"
import { columns, factOf } from "./LedgerSchema.ts"

export interface Replacement {
  readonly seq: number
  /** The fields of the row that may change. */
  readonly row: Pick<ChainedRow, "tag" | "run_id" | "task_id" | "body">
}

/** Rows that are held in memory at once. */
const rowsAtOnce = 10_000

/** In a transaction. `added` is the fact that goes to the end, if any. */
export const replaceFacts = (
  database: DatabaseSync,
  replacements: ReadonlyArray<Replacement>,
  added: (sealed_from: number) => Omit<ChainedRow, "seq"> | undefined,
): void => {
  const last = database.prepare("SELECT max(seq) AS seq FROM facts").get()
  const end = Number(last?.["seq"] ?? 0)
  const first = replacements.reduce((least, { seq }) => Math.min(least, seq), end + 1)
  const replace = database.prepare(
    "UPDATE facts SET tag = ?, run_id = ?, task_id = ?, body = ? WHERE seq = ?",
  )
  for (const { seq, row } of replacements) replace.run(row.tag, row.run_id, row.task_id, row.body, seq)
  const chain = sealFrom(database, first)
  const fact = added(first)
  if (fact === undefined) return
  const seq = end + 1
  database
    .prepare(`INSERT INTO facts (${columns}, chain) VALUES (?, ?, ?, ?, ?, ?, ?)`)
    .run(seq, fact.at, fact.tag, fact.run_id, fact.task_id, fact.body, linkOf(chain, { seq, ...fact }))
}

/** Chains every fact from this place on again; returns the last hash. */
const sealFrom = (database: DatabaseSync, first: number): string => {
  const before = database.prepare("SELECT chain FROM facts WHERE seq = ?")
  // The hash of an archived fact stays as it was: nothing else refers to it.
  const archived = database.prepare("SELECT chain FROM archived_links WHERE seq = ?")
  const some = database.prepare(
    `SELECT ${columns} FROM facts WHERE seq >= ? ORDER BY seq LIMIT ${rowsAtOnce}`,
  )
  const seal = database.prepare("UPDATE facts SET chain = ? WHERE seq = ?")
  const seqBefore = first - 1
  const known = before.get(seqBefore) ?? archived.get(seqBefore)
  let last = { seq: seqBefore, chain: String(known?.["chain"] ?? beginning) }
  for (let rows = some.all(first); rows.length > 0; rows = some.all(last.seq + 1))
    for (const row of rows.map(factOf)) {
      const link = row.seq === last.seq + 1 ? undefined : archived.get(row.seq - 1)
      const chain = linkOf(String(link?.["chain"] ?? last.chain), row)
      seal.run(chain, row.seq)
      last = { seq: row.seq, chain }
    }
  return last.chain
}

/** Rewrites the whole file; throws while another process reads it for longer than the connection waits. */
export const scrub = (database: DatabaseSync): void => {
  checkpoint(database)
  database.exec("VACUUM")
  checkpoint(database)
}

const checkpoint = (database: DatabaseSync): void => {
  const answer = database.prepare("PRAGMA wal_checkpoint(TRUNCATE)").get()
  if (Number(answer?.["busy"] ?? 0) !== 0) throw new Error("another process is reading the ledger")
}
