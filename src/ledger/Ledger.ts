/**
 * What was decided and what happened, append-only, in SQLite: the source of resume. A fact that `append`
 * has acknowledged survives a crash; facts are never changed. Besides the facts, it holds two small things
 * that outlast a run: cached engine forms and the key for the credential fingerprints.
 */
import { Clock, Context, Deferred, Effect, Layer, Schema } from "effect"
import { chmodSync } from "node:fs"
import { DatabaseSync } from "node:sqlite"
import type { CustomerId, EngineReference, ExecutionId, RunId, TaskId } from "../contract/Ids.ts"
import { KnownSecrets } from "../secrets/KnownSecrets.ts"
import { cleanFact } from "./CleanFact.ts"
import { Fact } from "./Fact.ts"
import type { Recorded } from "./Fact.ts"
import { foldHeaders, foldPruned } from "./FoldLedger.ts"
import type { RunHeader } from "./FoldLedger.ts"
import { foldRejections } from "./Rejections.ts"
import type { Rejections } from "./Rejections.ts"
import { foldRun } from "./FoldRun.ts"
import { withoutCustomer } from "./WithoutCustomer.ts"
import type { Forgotten } from "./WithoutCustomer.ts"
import type { CustomerForgotten } from "./ForgetFacts.ts"
import { markFormat, NewerLedger, refuseNewer, unknownFact } from "./LedgerVersion.ts"
import { accessLedger, isDamage, makeTables } from "./LedgerTables.ts"
import type { CachedForm } from "./LedgerForms.ts"
import type { NewFact, StoredFact, TaskOfRun } from "./LedgerTables.ts"
import type { Pruned } from "./PruneFacts.ts"
import { runsBesideMax } from "./RunId.ts"
import type { RunState } from "./RunState.ts"

/** The ledger could not be read or written; nothing may be started or deleted without it. */
export class LedgerFailed extends Schema.TaggedError<LedgerFailed>()("LedgerFailed", {
  message: Schema.String,
  /** The content of the file has changed since it was written: neither waiting nor free space helps. */
  damaged: Schema.optionalKey(Schema.Boolean),
  /** A newer version of the program wrote it: this one, or `unknown`. */
  written_by: Schema.optionalKey(Schema.String),
}) {}

/** An attempt whose start was answered with an execution id. */
export interface ExecutionClaim {
  readonly execution_id: ExecutionId
  readonly task_id: TaskId
  readonly attempt: number
}

export class Ledger extends Context.Service<
  Ledger,
  {
    /**
     * Writes facts in one transaction; durable on return. Appends that arrive together share a transaction
     * and its sync: either all of them are written or none.
     */
    readonly append: (facts: ReadonlyArray<Fact>) => Effect.Effect<void, LedgerFailed>
    /**
     * Whether an execution id is this attempt's: it belongs to the first attempt that claims it, in whatever
     * run, until the execution is deleted. The claim is durable with the attempt's `StartAnswered`.
     */
    readonly claim: (claim: ExecutionClaim) => Effect.Effect<boolean, LedgerFailed>
    /** All facts of a run, in order. */
    readonly facts: (run_id: RunId) => Effect.Effect<ReadonlyArray<Recorded>, LedgerFailed>
    /**
     * The state of a run; undefined if the ledger does not contain its beginning. The state of the most
     * recent run is kept, and those of runs that go on: only facts since then are read, whoever wrote them.
     */
    readonly state: (run_id: RunId) => Effect.Effect<RunState | undefined, LedgerFailed>
    /** The tasks of a customer, an execution or a session, over all runs, in no order. */
    readonly tasksNaming: (id: string) => Effect.Effect<ReadonlyArray<TaskOfRun>, LedgerFailed>
    /** All facts of one task, in order. */
    readonly factsOfTask: (task: TaskOfRun) => Effect.Effect<ReadonlyArray<Recorded>, LedgerFailed>
    /** Every customer for whom a run has planned a task, in the order of their ids. */
    readonly customers: Effect.Effect<ReadonlyArray<CustomerId>, LedgerFailed>
    /** Facts that belong to no run: manual actions, in order. */
    readonly byHand: Effect.Effect<ReadonlyArray<Recorded>, LedgerFailed>
    /** The beginning and the end of every run, oldest first. */
    readonly runs: Effect.Effect<ReadonlyArray<RunHeader>, LedgerFailed>
    /** Rejected credentials that have not been released since, by fingerprint. */
    readonly rejections: Effect.Effect<Rejections, LedgerFailed>
    readonly cachedForm: (
      engine_reference: EngineReference,
    ) => Effect.Effect<CachedForm | undefined, LedgerFailed>
    readonly cacheForm: (form: CachedForm) => Effect.Effect<void, LedgerFailed>
    /** 32 random bytes, created once per output folder: fingerprints mean nothing elsewhere. */
    readonly fingerprintKey: Effect.Effect<Uint8Array, LedgerFailed>
    /** What was removed here by age. */
    readonly pruned: Effect.Effect<Pruned, LedgerFailed>
    /**
     * Replaces all facts about a customer and adds the receipt, unless it is there already; returns how many
     * facts were replaced. On return, nothing of the old facts is in the file or in its log.
     */
    readonly forget: (
      forgotten: Forgotten,
      receipt: Omit<CustomerForgotten, "_tag" | "sealed_from">,
    ) => Effect.Effect<number, LedgerFailed>
    /** The receipts of removals, and which of them are finished, in order. */
    readonly receipts: Effect.Effect<ReadonlyArray<Recorded>, LedgerFailed>
    /** The runs that have downloaded the document with this SHA-256. */
    readonly runsWithDocument: (sha256: string) => Effect.Effect<ReadonlyArray<string>, LedgerFailed>
    /** Checks the whole file: what in it has changed since it was written. Empty if nothing has. */
    readonly problems: Effect.Effect<ReadonlyArray<string>, LedgerFailed>
  }
>()("nightjar/ledger/Ledger") {
  /** Opens (and creates, unless `readOnly`) the ledger file; ":memory:" means what SQLite means by it. */
  static readonly layer = (options: { readonly path: string; readonly readOnly?: boolean }) =>
    Layer.effect(
      Ledger,
      Effect.flatMap(
        Effect.acquireRelease(
          attempt(() => openLedger(options)),
          (database) => Effect.sync(() => database.close()),
        ),
        (database) => Effect.flatMap(KnownSecrets, (known) => attempt(() => makeLedger(database, known))),
      ),
    )

  /** A ledger over a database that outlives the layer, for simulated crashes. */
  static readonly layerOver = (database: DatabaseSync) =>
    Layer.effect(
      Ledger,
      Effect.map(KnownSecrets, (known) => makeLedger(database, known)),
    )
}

const attempt = <A>(read: () => A) =>
  Effect.try({
    try: read,
    catch: (cause) => {
      const message = cause instanceof Error ? cause.message : String(cause)
      if (cause instanceof NewerLedger) return new LedgerFailed({ message, written_by: cause.written_by })
      return new LedgerFailed(isDamage(cause) ? { message, damaged: true } : { message })
    },
  })

/** `path` may be ":memory:"; a read-only ledger must already exist. */
export const openLedger = (options: { readonly path: string; readonly readOnly?: boolean }): DatabaseSync => {
  const database = new DatabaseSync(options.path, { readOnly: options.readOnly ?? false, timeout: 10_000 })
  try {
    refuseNewer(database)
    if (options.readOnly === true) return database
    if (options.path !== ":memory:") chmodSync(options.path, 0o600)
    database.exec("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;")
    makeTables(database)
    markFormat(database)
    return database
  } catch (cause) {
    database.close()
    throw cause
  }
}

const decodeFact = Schema.decodeUnknownSync(Fact)
const encodeFact = Schema.encodeSync(Fact)

/** Every row is as it was written, so one that cannot be decoded was written by another version. */
const readerOf =
  (database: DatabaseSync) =>
  (rows: ReadonlyArray<StoredFact>): ReadonlyArray<Recorded> =>
    rows.map(({ seq, at, body }) => {
      try {
        return { seq, at, fact: decodeFact(JSON.parse(body)) }
      } catch {
        throw unknownFact(database, seq)
      }
    })

const rowOf = (fact: Fact, at: number): NewFact => ({
  at,
  tag: fact._tag,
  run_id: "run_id" in fact ? (fact.run_id ?? null) : null,
  task_id: "task_id" in fact ? (fact.task_id ?? null) : null,
  body: JSON.stringify(encodeFact(fact)),
})

type AttemptOf = Pick<ExecutionClaim, "task_id" | "attempt">
const isSameAttempt = (one: AttemptOf, other: AttemptOf): boolean =>
  one.task_id === other.task_id && one.attempt === other.attempt

const makeLedger = (database: DatabaseSync, known: KnownSecrets): Ledger["Service"] => {
  const tables = accessLedger(database)
  const read = readerOf(database)
  // A claim becomes a fact a moment later; until then only this process can know about it.
  const claimed = new Map<string, ExecutionClaim>()
  // In the order in which they were last asked for.
  const carried = new Map<RunId, RunState>()
  return Ledger.of({
    append: groupCommit(tables.append, known),
    claim: (claim) =>
      attempt(() => {
        const owner = tables.ownerOf(claim.execution_id)
        const known = claimed.get(claim.execution_id) ?? owner
        const isFree = known === undefined || (owner?.isDeleted === true && isSameAttempt(known, owner))
        if (!isFree) return isSameAttempt(known, claim)
        claimed.set(claim.execution_id, claim)
        return true
      }),
    facts: (run_id) => attempt(() => read(tables.ofRun(run_id, 0))),
    state: (run_id) =>
      attempt(() => {
        const before = carried.get(run_id)
        const state = foldRun(read(tables.ofRun(run_id, before?.newest ?? 0)), before)
        carried.delete(run_id)
        for (const [other, { ended }] of carried)
          if (ended !== undefined || carried.size >= runsBesideMax) carried.delete(other)
        if (state !== undefined) carried.set(run_id, state)
        return state
      }),
    tasksNaming: (id) => attempt(() => tables.tasksNaming(id)),
    factsOfTask: ({ run_id, task_id }) => attempt(() => read(tables.ofTask(run_id, task_id))),
    customers: attempt(() => tables.customers()),
    byHand: attempt(() => read(tables.ofNoRun())),
    runs: attempt(() => foldHeaders(read(tables.headers()))),
    rejections: attempt(() => foldRejections(read(tables.rejections()))),
    cachedForm: (engine_reference) => attempt(() => tables.cachedForm(engine_reference)),
    cacheForm: (form) => attempt(() => tables.cacheForm(form)),
    fingerprintKey: attempt(() => tables.fingerprintKey()),
    pruned: attempt(() => foldPruned(read(tables.pruned()))),
    runsWithDocument: (sha256) => attempt(() => tables.runsWithDocument(sha256)),
    receipts: attempt(() => read(tables.receipts())),
    forget: Effect.fnUntraced(function* (forgotten, receipt) {
      const at = Math.trunc(yield* Clock.currentTimeMillis)
      return yield* attempt(() => {
        carried.clear()
        return forgetIn(tables, read, forgotten, { at, receipt })
      })
    }),
    problems: attempt(() => tables.problems()),
  })
}

/**
 * A sync costs a hundred times as much as the rows, and blocks this process meanwhile. So the first append
 * lets every other fiber that is ready go first, and writes their facts with its own. It cannot be
 * interrupted: others wait for it.
 */
const groupCommit = (
  write: (rows: ReadonlyArray<NewFact>) => void,
  known: KnownSecrets,
): Ledger["Service"]["append"] => {
  let open:
    | { readonly rows: Array<NewFact>; readonly written: Deferred.Deferred<void, LedgerFailed> }
    | undefined
  const commit = Effect.fnUntraced(function* (group: NonNullable<typeof open>) {
    yield* Effect.yieldNow
    open = undefined
    yield* Deferred.done(group.written, yield* Effect.exit(attempt(() => write(group.rows))))
  })
  return Effect.fnUntraced(function* (facts) {
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

const forgetIn = (
  tables: ReturnType<typeof accessLedger>,
  read: ReturnType<typeof readerOf>,
  forgotten: Forgotten,
  { at, receipt }: { readonly at: number; readonly receipt: Omit<CustomerForgotten, "_tag" | "sealed_from"> },
): number => {
  const rejected = new Set([...foldRejections(read(tables.rejections())).values()].map(({ seq }) => seq))
  const replacements = read(tables.maybeAbout([...forgotten.tasks], forgotten.customer_id)).flatMap(
    (recorded) => {
      const how = { receipt: receipt.receipt, staysRejected: rejected.has(recorded.seq) }
      const fact = withoutCustomer(recorded.fact, forgotten, how)
      return fact === recorded.fact ? [] : [{ seq: recorded.seq, row: rowOf(fact, recorded.at) }]
    },
  )
  const isKnown = read(tables.receipts()).some(
    ({ fact }) => fact._tag === "CustomerForgotten" && fact.receipt === receipt.receipt,
  )
  if (replacements.length > 0 || !isKnown)
    tables.replace(replacements, (sealed_from) =>
      isKnown ? undefined : rowOf({ _tag: "CustomerForgotten", sealed_from, ...receipt }, at),
    )
  tables.scrub()
  return replacements.length
}

/** Writes facts to the current ledger. */
export const append = (...facts: ReadonlyArray<Fact>) =>
  Effect.flatMap(Ledger, (ledger) => ledger.append(facts))
