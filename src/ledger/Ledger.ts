/**
 * What was decided and what happened, append-only, in SQLite: the source of resume. A fact that `append`
 * has acknowledged survives a crash; facts are never changed. Besides the facts, it holds two small things
 * that outlast a run: cached engine forms and the key for the credential fingerprints.
 */
import { Clock, Context, Effect, Layer, type Scope } from "effect"
import { dirname, join } from "node:path"
import type { DatabaseSync } from "node:sqlite"
import type { CustomerId, EngineReference, ExecutionId, RunId, TaskId } from "../service/Ids.ts"
import { durableFiles, quietly } from "../base/DurableFile.ts"
import { refuseStrange } from "../base/HeldFolder.ts"
import { KnownSecrets } from "../privacy/KnownSecrets.ts"
import type { AccountKeys } from "../privacy/Fingerprint.ts"
import { isSameAttempt, type Account } from "./Accounts.ts"
import type { TaskKeys } from "./FactKeys.ts"
import { archiveName, idsIn, packedBytes, placeFor, writeFrames } from "./LedgerArchive.ts"
import type { ArchivedId } from "./LedgerArchive.ts"
import { eachOf, groupCommit, rowOf, type Decision } from "./FactRows.ts"
import type { CustomerForgotten, Fact, Pruned, Recorded } from "./Fact.ts"
import { foldHeaders, foldPruned, foldRun, type RunHeader } from "./FoldRun.ts"
import { forgetCustomer, type Forgotten, type LedgerPlace } from "./ForgetCustomer.ts"
import { copyIfOlder, openLedger, type LedgerCopy, type LedgerFile } from "./LedgerSchema.ts"
import { attempt, type LedgerFailed, type NewFact, type StoredFact } from "./LedgerKeys.ts"
import { accessLedger, type CachedForm } from "./LedgerTables.ts"
import type { RunStarted } from "./RunFacts.ts"
import { runsBesideMax, type RunBrief, type RunState } from "./RunState.ts"
import { factsUnkept } from "./StateTables.ts"

export { LedgerFailed } from "./LedgerKeys.ts"

/** An attempt whose start was answered with an execution id. */
export interface ExecutionClaim {
  readonly execution_id: ExecutionId
  readonly task_id: TaskId
  readonly attempt: number
}

type Answer<A> = Effect.Effect<A, LedgerFailed>

export class Ledger extends Context.Service<
  Ledger,
  {
    /** In one transaction, which appends that arrive together share; durable on return, all or none. */
    readonly append: (facts: ReadonlyArray<Fact>) => Answer<void>
    /**
     * The same, of facts that are decided in the transaction that writes them: nobody's come between what
     * the decision reads and what it writes.
     */
    readonly decide: <A>(decision: Decision<A>) => Answer<A>
    /**
     * Whether an execution id is this attempt's: it belongs to the first attempt that claims it, in whatever
     * run, until the execution is deleted. The claim is durable with the attempt's `StartAnswered`.
     */
    readonly claim: (claim: ExecutionClaim) => Answer<boolean>
    /** Until the scope ends, what is appended is told as it then stands, before its `append` returns. */
    readonly follow: (told: Follower) => Effect.Effect<void, never, Scope.Scope>
    /** All facts of a run, in order. */
    readonly facts: (run_id: RunId) => Answer<ReadonlyArray<Recorded>>
    /**
     * The state of a run; undefined if the ledger does not contain its beginning. The state of the most
     * recent run is kept, and those of runs that go on: only facts since then are read, whoever wrote them.
     */
    readonly state: (run_id: RunId) => Answer<RunState | undefined>
    /** The same for a summary: of a run that has ended, a sixth of it is read. */
    readonly brief: (run_id: RunId) => Answer<RunBrief | undefined>
    /** The tasks of a customer, an execution or a session, over all runs, in no order. */
    readonly tasksNaming: (id: string) => Answer<ReadonlyArray<TaskKeys>>
    /** All facts of one task, in order. */
    readonly factsOfTask: (task: TaskKeys) => Answer<ReadonlyArray<Recorded>>
    /** Every customer for whom a run has planned a task, in the order of their ids. */
    readonly customers: Answer<ReadonlyArray<CustomerId>>
    /** Facts that belong to no run: manual actions, in order. */
    readonly byHand: Answer<ReadonlyArray<Recorded>>
    /** The beginning and the end of every run, oldest first. */
    readonly runs: Answer<ReadonlyArray<RunHeader>>
    /** Every account that a login was sent to. */
    readonly accounts: Answer<ReadonlyArray<Account>>
    /** Those that a login opens, and those that may be the same user's (`AccountKeys.row`). */
    readonly accountsOf: (login: AccountKeys) => Answer<ReadonlyArray<Account>>
    readonly cachedForm: (engine_reference: EngineReference) => Answer<CachedForm | undefined>
    readonly cacheForm: (form: CachedForm) => Answer<void>
    /** 32 random bytes, created once per output folder: fingerprints mean nothing elsewhere. */
    readonly fingerprintKey: Answer<Uint8Array>
    /** What was removed here by age. */
    readonly pruned: Answer<Pruned>
    /**
     * Replaces all facts about a customer and adds the receipt, or corrects the one that is there; returns
     * how many facts were replaced. On return, nothing of the old facts is in the file or in its log.
     */
    readonly forget: (
      forgotten: Forgotten,
      receipt: Omit<CustomerForgotten, "_tag" | "sealed_from">,
    ) => Answer<number>
    /** The receipts of removals, and which of them are finished, in order. */
    readonly receipts: Answer<ReadonlyArray<Recorded>>
    /** The runs that have downloaded the document with this SHA-256. */
    readonly runsWithDocument: (sha256: string) => Answer<ReadonlyArray<RunId>>
    /** When the facts of a run were moved to the archive; every read of the run finds them there. */
    readonly archived: Answer<ReadonlyMap<string, number>>
    /** Undefined if no facts are left to move. Nobody else may write to this ledger meanwhile. */
    readonly archive: (run: typeof RunStarted.Type, isDry?: boolean) => Answer<ArchivedRun | undefined>
    /** Gives the room of removed facts back to the disk, some megabytes at a time, if there is much of it. */
    readonly giveBack: Answer<void>
    /** Checks the whole file: what in it has changed since it was written. Empty if nothing has. */
    readonly problems: Answer<ReadonlyArray<string>>
  }
>()("nightjar/ledger/Ledger") {
  /** `tell` is told of the copy that is made of an older file. */
  static readonly layer = (
    options: LedgerFile & { readonly tell?: (copy: LedgerCopy) => Effect.Effect<void> },
  ) =>
    Layer.effect(
      Ledger,
      Effect.gen(function* () {
        const copy = options.readOnly === true ? undefined : yield* copyIfOlder(options.path)
        const database = yield* Effect.acquireRelease(
          attempt(() => openLedger(options)),
          (opened) => Effect.sync(() => opened.close()),
        )
        if (copy !== undefined) yield* options.tell?.(copy) ?? Effect.void
        const folder = options.path === ":memory:" ? "" : join(dirname(options.path), archiveName)
        const tables = yield* attempt(() => accessLedger(database, folder))
        return yield* makeLedger(database, folder, tables)
      }),
    )

  /** Over a database that outlives the layer, for simulated crashes; without a folder, no archive. */
  static readonly layerOver = (database: DatabaseSync, archive = "") =>
    Layer.effect(
      Ledger,
      Effect.suspend(() => makeLedger(database, archive, accessLedger(database, archive))),
    )
}

type Follower = (recorded: Recorded) => void

/**
 * The states of runs: those asked for last are in memory, the others in the file. Only the facts since then
 * are folded; many of them at once, and what ends a run, are kept in the file: nobody folds them again.
 */
const statesOver = (database: DatabaseSync, tables: ReturnType<typeof accessLedger>) => {
  // In the order in which they were last asked for; `kept` is what the file has.
  const carried = new Map<RunId, { state: RunState; kept: RunState | undefined; unkept: number }>()
  const appended = new Map<RunId, number>()
  const of = (run_id: RunId): RunState | undefined => {
    const kept = carried.has(run_id) ? undefined : tables.states.read(run_id)
    const known = carried.get(run_id) ?? (kept && { state: kept, kept, unkept: 0 })
    const { state, folded } = tables.foldOfRun(run_id, known?.state.newest ?? 0, (facts) => {
      let count = 0
      const counted = Iterator.from(eachOf(database, facts)).map((fact) => {
        count += 1
        return fact
      })
      return { state: foldRun(counted, known?.state), folded: count }
    })
    carried.delete(run_id)
    for (const [other, one] of carried)
      if (one.state.ended !== undefined || carried.size >= runsBesideMax) carried.delete(other)
    if (state === undefined) return undefined
    const now = { state, kept: known?.kept, unkept: (known?.unkept ?? 0) + folded }
    carried.set(run_id, now)
    // One that has ended is read for days, and mostly by who cannot write: what is left to fold would stay.
    const enough = state.ended === undefined ? factsUnkept : 1
    if (now.unkept < enough || tables.isArchived(run_id)) return state
    // What could not be kept is folded again by whoever asks next; a ledger may be open for reading only.
    quietly(() => {
      tables.states.write(state, now.kept)
      carried.set(run_id, { state, kept: state, unkept: 0 })
    })
    return state
  }
  const briefOf = (run_id: RunId): RunBrief | undefined => {
    const kept = tables.states.readBrief(run_id)
    const isNewest =
      kept !== undefined && tables.foldOfRun(run_id, kept.newest, (facts) => [...facts].length === 0)
    return isNewest ? kept : of(run_id)
  }
  return {
    of,
    briefOf,
    /** A process that is killed leaves few facts to fold. */
    noteAppended: (rows: ReadonlyArray<NewFact>): void => {
      for (const { run_id } of rows) {
        if (run_id === null) continue
        const run = run_id as RunId
        const facts = (appended.get(run) ?? 0) + 1
        appended.set(run, facts % factsAppended)
        if (facts === factsAppended) quietly(() => of(run))
      }
    },
    clear: (): void => carried.clear(),
    problems: (): ReadonlyArray<string> =>
      tables.states.problems((run_id, newest) =>
        tables.foldOfRun(run_id, 0, (facts) =>
          foldRun(Iterator.from(eachOf(database, facts)).filter(({ seq }) => seq <= newest)),
        ),
      ),
  }
}
const factsAppended = 4 * factsUnkept

// Moves the facts of a run into the file of its month first, synced and read back; then one transaction says
// where they are and removes them. A crash in between leaves every fact in the ledger.

export interface ArchivedRun {
  readonly facts: number
  /** Of their text in the ledger, and in the archive. */
  readonly before: number
  readonly after: number
}

/** Undefined if there is nothing to move. `run_date` is the run's own; `isDry`: nothing is written. */
export const archiveRun = Effect.fnUntraced(function* (
  { tables, files, folder }: LedgerPlace,
  { run_id, run_date }: { readonly run_id: RunId; readonly run_date: string },
  isDry: boolean,
) {
  const at = Math.trunc(yield* Clock.currentTimeMillis)
  const archives = yield* attempt(() => tables.archives())
  const isDone = archives.some(({ fact }) => fact.run_id === run_id)
  const first = isDone ? [] : yield* attempt(() => tables.toArchive(run_id, 0))
  if (first.length === 0) return undefined
  const sum = { facts: 0, before: 0 }
  const ids: Array<ArchivedId> = []
  const pages = function* () {
    for (let facts = first; facts.length > 0; facts = nextOf(facts)) {
      sum.facts += facts.length
      for (const fact of facts) {
        sum.before += Buffer.byteLength(fact.body)
        ids.push(...idsIn(run_id, fact))
      }
      yield facts
    }
  }
  const nextOf = (facts: ReadonlyArray<StoredFact>) => tables.toArchive(run_id, facts.at(-1)?.seq ?? 0)
  if (isDry) {
    const after = [...pages()].reduce((bytes, facts) => bytes + packedBytes(facts), 0)
    return { ...sum, after } satisfies ArchivedRun
  }
  const place = placeFor(archives, run_date)
  const frames = yield* writeFrames(files, folder, place, pages())
  yield* attempt(() => {
    const row = rowOf({ _tag: "FactsArchived", run_id, file: place.file, frames }, at)
    tables.archived({ ...row, run_id }, { facts: sum.facts, ids })
  })
  const after = frames.reduce((bytes, one) => bytes + one.bytes, 0)
  return { ...sum, after } satisfies ArchivedRun
})

const makeLedger = Effect.fnUntraced(function* (
  database: DatabaseSync,
  folder: string,
  tables: ReturnType<typeof accessLedger>,
) {
  const known = yield* KnownSecrets
  const files = yield* durableFiles
  const read = (rows: Iterable<StoredFact>): ReadonlyArray<Recorded> => [...eachOf(database, rows)]
  // A claim becomes a fact a moment later; until then only this process can know about it.
  const claimed = new Map<string, ExecutionClaim>()
  const states = statesOver(database, tables)
  const followers = new Set<Follower>()
  return Ledger.of({
    ...groupCommit((decided) => {
      if (folder !== "") refuseStrange(folder, true)
      const { first, rows } = tables.append(decided)
      for (const told of followers)
        for (const [index, { at, fact }] of rows.entries()) told({ seq: first + index, at, fact })
      states.noteAppended(rows)
    }, known),
    follow: (told) =>
      Effect.acquireRelease(
        Effect.sync(() => void followers.add(told)),
        () => Effect.sync(() => void followers.delete(told)),
      ),
    claim: (claim) =>
      attempt(() => {
        const owner = tables.ownerOf(claim.execution_id)
        const known = claimed.get(claim.execution_id) ?? owner
        const isFree = known === undefined || (owner?.isDeleted === true && isSameAttempt(known, owner))
        if (!isFree) return isSameAttempt(known, claim)
        claimed.set(claim.execution_id, claim)
        return true
      }),
    facts: (run_id) => attempt(() => tables.foldOfRun(run_id, 0, read)),
    state: (run_id) => attempt(() => states.of(run_id)),
    brief: (run_id) => attempt(() => states.briefOf(run_id)),
    tasksNaming: (id) => attempt(() => tables.tasksNaming(id)),
    factsOfTask: (task) => attempt(() => read(tables.ofTask(task))),
    customers: attempt(() => tables.customers()),
    byHand: attempt(() => read(tables.ofNoRun())),
    runs: attempt(() => foldHeaders(read(tables.headers()))),
    accounts: attempt(() => tables.accounts()),
    accountsOf: (login) => attempt(() => tables.accountsOf(login)),
    cachedForm: (engine_reference) => attempt(() => tables.cachedForm(engine_reference)),
    cacheForm: (form) => attempt(() => tables.cacheForm(form)),
    fingerprintKey: attempt(() => tables.fingerprintKey()),
    pruned: attempt(() => foldPruned(read(tables.pruned()))),
    runsWithDocument: (sha256) => attempt(() => tables.runsWithDocument(sha256)),
    receipts: attempt(() => read(tables.receipts())),
    forget: Effect.fnUntraced(function* (forgotten, receipt) {
      const at = Math.trunc(yield* Clock.currentTimeMillis)
      states.clear()
      return yield* forgetCustomer({ tables, read, files, folder }, forgotten, { at, receipt })
    }),
    archived: attempt(
      () => new Map<string, number>(tables.archives().map(({ at, fact }) => [fact.run_id, at])),
    ),
    archive: (run, isDry = false) => archiveRun({ tables, files, folder }, run, isDry),
    giveBack: Effect.gen(function* () {
      while (yield* attempt(() => tables.giveBack())) yield* Effect.yieldNow
    }),
    problems: attempt(() => {
      const found = tables.problems()
      // Facts that changed are not folded.
      return found.length > 0 ? found : states.problems()
    }),
  })
})

/** The same ledger, whose facts are told once they are written, by whoever wrote them. */
export const telling = (
  ledger: Ledger["Service"],
  tell: (facts: ReadonlyArray<Fact>) => Effect.Effect<void>,
): Ledger["Service"] => ({
  ...ledger,
  append: (facts) =>
    Effect.andThen(
      ledger.append(facts),
      Effect.suspend(() => tell(facts)),
    ),
  decide: (decision) => {
    let facts: ReadonlyArray<Fact> = []
    const decided = ledger.decide((accounts) => {
      const own = decision(accounts)
      facts = own.facts
      return own
    })
    return Effect.tap(decided, () => tell(facts))
  },
})

/** Writes facts to the current ledger. */
export const append = (...facts: ReadonlyArray<Fact>) =>
  Effect.flatMap(Ledger, (ledger) => ledger.append(facts))
