/**
 * A fact as a row of the ledger, and the rows that are written together: those of one append, and of all
 * appends that arrive at once.
 */
import type { DatabaseSync } from "node:sqlite"
import { Clock, Deferred, Effect, Schema } from "effect"
import { isoTime } from "../base/Text.ts"
import { Fact, type Recorded } from "./Fact.ts"
import { attempt, isOfFile, ledgerFailed, unknownFact } from "./LedgerKeys.ts"
import type { LedgerFailed, NewFact, StoredFact } from "./LedgerKeys.ts"
import type { KnownAccounts } from "./Accounts.ts"
import { cleanValue } from "../privacy/CleanBody.ts"
import type { KnownSecrets } from "../privacy/KnownSecrets.ts"

// Which parts of a fact may contain a secret that the service repeated: everything except the fields named
// here. Those are our own ids and words, and the ids that are needed to resume a run and to call the service.

/** A field that is not listed here is cleaned; `test/ledger/CleanFact.test.ts` checks all of them. */
export const keptFields: ReadonlySet<string> = new Set([
  // ids
  "run_id",
  "parent",
  "part",
  "ahead",
  "task_id",
  "customer_id",
  "engine_reference",
  "external_execution_id",
  "execution_id",
  "session_id",
  "asked_as",
  "attachment_id",
  "fingerprint",
  "account",
  "login",
  "password",
  "token_id",
  "name",
  // text of this program, or names from the job
  "_tag",
  "job",
  "job_path",
  "service",
  "run_date",
  "missed",
  "tool_version",
  "worker",
  "answer",
  "kind",
  "outcome",
  "who_acts",
  "why",
  "basis",
  "status",
  "source",
  "sources",
  // paths of landed bodies and documents
  "landed",
  "landed_sha256",
  "sha256",
  "path",
])

/** As programs read it, in `explain --json` and in the log of its run. */
export const factJson = ({ _tag: fact, ...fields }: Fact, at: number) => ({
  at: isoTime(at),
  fact,
  ...fields,
})
export const logLine = (fact: Fact, at: number): string => `${JSON.stringify(factJson(fact, at))}\n`

export const cleanFact = (fact: Fact, known: KnownSecrets): Fact =>
  cleanValue(fact, known, "own", keptFields) as Fact

const decodeFact = Schema.decodeUnknownSync(Fact)
const encodeFact = Schema.encodeSync(Fact)

/**
 * Every row is as it was written, so one that cannot be decoded was written by another version. One by one,
 * as they are taken: a large run need not be in memory at once.
 */
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

/** A fact that is not written yet, as it will stand in the ledger. */
interface NewRow extends NewFact {
  readonly fact: Fact
}

export const rowOf = (fact: Fact, at: number): NewFact => ({
  at,
  tag: fact._tag,
  run_id: "run_id" in fact ? (fact.run_id ?? null) : null,
  task_id: "task_id" in fact ? (fact.task_id ?? null) : null,
  body: JSON.stringify(encodeFact(fact)),
})

/** Facts to write, and what the caller is told: decided in the transaction that writes them. */
export type Decision<A> = (accounts: KnownAccounts) => {
  readonly facts: ReadonlyArray<Fact>
  readonly answer: A
}

export type Decided = (accounts: KnownAccounts) => ReadonlyArray<NewRow>

/**
 * A sync costs a hundred times as much as the rows, and blocks this process meanwhile. So the first append
 * lets every other fiber that is ready go first, and writes their facts with its own. It cannot be
 * interrupted: others wait for it.
 */
export const groupCommit = (write: (decided: ReadonlyArray<Decided>) => void, known: KnownSecrets) => {
  let open:
    | { readonly all: Array<Decided>; readonly written: Deferred.Deferred<void, LedgerFailed> }
    | undefined
  const commit = Effect.fnUntraced(function* (group: NonNullable<typeof open>) {
    yield* Effect.yieldNow
    open = undefined
    yield* Deferred.done(group.written, yield* Effect.exit(attempt(() => write(group.all))))
  })
  const join = Effect.fnUntraced(function* (decided: Decided) {
    const joined = open
    const group = joined ?? { all: [], written: Deferred.makeUnsafe<void, LedgerFailed>() }
    open = group
    group.all.push(decided)
    if (joined === undefined) yield* commit(group)
    yield* Deferred.await(group.written)
  })
  const rowsAt = (facts: ReadonlyArray<Fact>, at: number): ReadonlyArray<NewRow> =>
    facts.map((given) => {
      const fact = cleanFact(given, known)
      return { fact, ...rowOf(fact, at) }
    })
  /** A defect in it is its caller's alone. */
  const decide = Effect.fnUntraced(function* <A>(decision: Decision<A>) {
    const at = Math.trunc(yield* Clock.currentTimeMillis)
    let answered: Effect.Effect<A, LedgerFailed> = Effect.die("a decision was never asked for")
    yield* join((accounts) => {
      try {
        const { facts, answer } = decision(accounts)
        const rows = rowsAt(facts, at)
        answered = Effect.succeed(answer)
        return rows
      } catch (cause) {
        // What cannot be written as a fact is a defect of ours: no disk is to blame, and no damage.
        answered = isOfFile(cause) ? Effect.fail(ledgerFailed(cause)) : Effect.die(cause)
        return []
      }
    })
    return yield* answered
  }, Effect.uninterruptible)
  return {
    append: (facts: ReadonlyArray<Fact>) =>
      facts.length === 0 ? Effect.void : decide(() => ({ facts, answer: undefined })),
    decide,
  }
}
