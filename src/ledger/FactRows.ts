/**
 * A fact as a row of the ledger, and the rows that are written together: those of one append, and of all
 * appends that arrive at once.
 */
import { Clock, Deferred, Effect, Schema } from "effect"
import type { DatabaseSync } from "node:sqlite"
import type { KnownSecrets } from "../privacy/KnownSecrets.ts"
import type { StoredFact } from "./ArchiveFiles.ts"
import { cleanFact } from "./CleanFact.ts"
import { Fact } from "./Fact.ts"
import type { Recorded } from "./Fact.ts"
import type { NewFact } from "./FactChain.ts"
import { attempt } from "./LedgerFailed.ts"
import type { LedgerFailed } from "./LedgerFailed.ts"
import { unknownFact } from "./LedgerVersion.ts"

const decodeFact = Schema.decodeUnknownSync(Fact)
const encodeFact = Schema.encodeSync(Fact)

/** Every row is as it was written, so one that cannot be decoded was written by another version. */
export const readerOf =
  (database: DatabaseSync) =>
  (rows: ReadonlyArray<StoredFact>): ReadonlyArray<Recorded> =>
    rows.map((row) => recorded(database, row))

/** One by one, as they are taken: a large run need not be in memory at once. */
export const eachOf = function* (database: DatabaseSync, rows: Iterable<StoredFact>): Iterable<Recorded> {
  for (const row of rows) yield recorded(database, row)
}

const recorded = (database: DatabaseSync, { seq, at, body }: StoredFact): Recorded => {
  try {
    return { seq, at, fact: decodeFact(JSON.parse(body)) }
  } catch {
    throw unknownFact(database, seq)
  }
}

export const rowOf = (fact: Fact, at: number): NewFact => ({
  at,
  tag: fact._tag,
  run_id: "run_id" in fact ? (fact.run_id ?? null) : null,
  task_id: "task_id" in fact ? (fact.task_id ?? null) : null,
  body: JSON.stringify(encodeFact(fact)),
})

/**
 * A sync costs a hundred times as much as the rows, and blocks this process meanwhile. So the first append
 * lets every other fiber that is ready go first, and writes their facts with its own. It cannot be
 * interrupted: others wait for it.
 */
export const groupCommit = (write: (rows: ReadonlyArray<NewFact>) => void, known: KnownSecrets) => {
  let open:
    | { readonly rows: Array<NewFact>; readonly written: Deferred.Deferred<void, LedgerFailed> }
    | undefined
  const commit = Effect.fnUntraced(function* (group: NonNullable<typeof open>) {
    yield* Effect.yieldNow
    open = undefined
    yield* Deferred.done(group.written, yield* Effect.exit(attempt(() => write(group.rows))))
  })
  return Effect.fnUntraced(function* (facts: ReadonlyArray<Fact>) {
    if (facts.length === 0) return
    const at = Math.trunc(yield* Clock.currentTimeMillis)
    const rows = yield* attempt(() => facts.map((fact) => rowOf(cleanFact(fact, known), at)))
    const joined = open
    const group = joined ?? { rows: [], written: Deferred.makeUnsafe<void, LedgerFailed>() }
    open = group
    group.rows.push(...rows)
    if (joined === undefined) yield* commit(group)
    yield* Deferred.await(group.written)
  }, Effect.uninterruptible)
}
