/**
 * What in the ledger's file and its archive has changed since it was written: SQLite's own check, every
 * link of the chain, every archived frame, the key. Reads everything.
 */
import type { DatabaseSync } from "node:sqlite"
import { wordsOf } from "../base/Text.ts"
import type { Archive } from "./Fact.ts"
import { factsIn, idsIn, readFrame } from "./LedgerArchive.ts"
import { beginning, columns, factOf, keyDamage, keyDiffers, keyIn } from "./LedgerKeys.ts"
import type { StoredFact } from "./LedgerKeys.ts"
import { differs, isChained } from "./LedgerSchema.ts"

const problemsTold = 5

/** What stands where a fact about a removed customer stood names the receipt of the removal. */
const withoutReceipt = `
  SELECT 1 FROM facts WHERE tag = 'FactForgotten' AND json_extract(body, '$.receipt') NOT IN
    (SELECT json_extract(body, '$.receipt') FROM facts WHERE tag = 'CustomerForgotten') LIMIT 1`

/** Places of facts, both included. */
interface Span {
  readonly from: number
  readonly to: number
}

/** What is asked of every part of the archive. */
interface Look {
  readonly database: DatabaseSync
  readonly problems: Array<string>
}

/** Empty if nothing has changed. `folder` is that of the archive. */
export const problemsIn = (
  database: DatabaseSync,
  folder: string,
  archives: () => ReadonlyArray<Archive>,
): ReadonlyArray<string> => {
  const found = database.prepare(`PRAGMA integrity_check(${problemsTold})`).all()
  const problems = found.map((row) => String(row["integrity_check"])).filter((says) => says !== "ok")
  const key = keyIn(database, "fingerprint")
  if (key !== undefined && keyDiffers(database, key)) problems.push(keyDamage)
  if (!isChained(database)) return problems
  if (database.prepare(withoutReceipt).get() !== undefined)
    problems.push("facts were replaced, and the receipt that says why is missing")
  const look = { database, problems }
  const unreadable: Array<string> = []
  const spans = archivedSpans(look, folder, archives, unreadable)
  chainProblems(look, spans, unreadable.length === 0)
  return [...new Set([...problems, ...unreadable])]
}

/** In order. Each frame is read whole; one that cannot be read is a problem. */
const archivedSpans = (
  { database, problems }: Look,
  folder: string,
  archives: () => ReadonlyArray<Archive>,
  unreadable: Array<string>,
): ReadonlyArray<Span> => {
  const spans: Array<Span> = []
  try {
    const ids = idsCheck(database)
    for (const { seq, fact } of archives())
      for (const frame of fact.frames)
        try {
          const facts = factsIn(readFrame(folder, fact.file, frame))
          for (const one of facts) addTo(spans, one.seq)
          if (!ids.isWhole(seq, fact.run_id, facts))
            problems.push(`the ids of the archived run ${fact.run_id} have changed since they were written`)
        } catch (cause) {
          unreadable.push(`${fact.run_id}: ${wordsOf(cause)}`)
          if (unreadable.length >= problemsTold) return spans
        }
    if (unreadable.length === 0 && ids.hasMore())
      problems.push("there are ids of archived facts that do not exist")
  } catch (cause) {
    // Where a run's facts are is damaged itself: the chain tells which fact.
    unreadable.push(wordsOf(cause))
  }
  return spans.toSorted((one, other) => one.from - other.from)
}

const addTo = (spans: Array<Span>, seq: number): void => {
  const last = spans.at(-1)
  if (last?.to === seq - 1) spans[spans.length - 1] = { from: last.from, to: seq }
  else spans.push({ from: seq, to: seq })
}

/** Every id of an archived fact is in the ledger, and no other. */
const idsCheck = (database: DatabaseSync) => {
  const find = database.prepare(
    "SELECT 1 FROM archived_ids WHERE kind = ? AND id = ? AND archive = ? AND task = ?",
  )
  const seen = new Set<string>()
  let before = 0
  let met = 0
  return {
    isWhole: (archive: number, run_id: string, facts: ReadonlyArray<StoredFact>): boolean => {
      // An id may be in several facts of one run.
      if (archive !== before) {
        seen.clear()
        before = archive
      }
      return facts
        .flatMap((fact) => idsIn(run_id, fact))
        .every(({ kind, id, task }) => {
          const one = JSON.stringify([kind, id, task])
          if (seen.has(one)) return true
          seen.add(one)
          met += 1
          return find.get(kind, id, archive, task) !== undefined
        })
    },
    hasMore: (): boolean =>
      Number(database.prepare("SELECT count(*) AS n FROM archived_ids").get()?.["n"] ?? 0) !== met,
  }
}

/** Every fact is in the ledger or in the archive, once, and each link fits the one before it. */
const chainProblems = (
  { database, problems }: Look,
  spans: ReadonlyArray<Span>,
  isArchiveWhole: boolean,
): void => {
  const link = database.prepare("SELECT chain FROM archived_links WHERE seq = ?")
  const all = database.prepare(`SELECT ${columns}, chain FROM facts NOT INDEXED ORDER BY seq`)
  let before = { seq: 0, chain: beginning }
  let at = 0
  /** The first place from `from` to `to` that is not archived; what is archived twice counts as it is. */
  const uncovered = (from: number, to: number): number | undefined => {
    let seq = from
    for (; seq <= to; at += 1) {
      const span = spans[at]
      if (span === undefined || span.from !== seq) return seq
      seq = span.to + 1
    }
    return seq === to + 1 ? undefined : seq - 1
  }
  for (const row of all.iterate()) {
    const fact = factOf(row)
    const isNext = fact.seq === before.seq + 1
    const missing = isNext || !isArchiveWhole ? undefined : uncovered(before.seq + 1, fact.seq - 1)
    if (missing !== undefined) problems.push(`fact ${missing} is missing`)
    const linked = isNext ? before.chain : (link.get(fact.seq - 1)?.["chain"] ?? beginning)
    if (missing === undefined && differs({ ...row, before: linked }, fact))
      problems.push(`fact ${fact.seq} has changed since it was written`)
    if (problems.length >= problemsTold) return
    before = { seq: fact.seq, chain: String(row["chain"]) }
  }
  if (isArchiveWhole && at < spans.length && problems.length === 0)
    problems.push(`fact ${spans[at]?.from} is in the archive more than once, or in the ledger too`)
}
