/**
 * Whom a removal is about, and what is here of the customer: found through the ledger, and kept in a file of
 * its own before anything is removed, because the ledger is cleaned first and the rest is found by these ids.
 * A removal that was cut off continues with that file, joined with what has come since. It is removed last.
 */
import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { Effect, Random, Schema } from "effect"
import { CustomerId, EngineReference, ExecutionId, RunId, SessionId, TaskId } from "../service/Ids.ts"
import type { Fact } from "../ledger/Fact.ts"
import { ForgetCounts } from "../ledger/ForgetFacts.ts"
import { Ledger } from "../ledger/Ledger.ts"
import type { TaskOfRun } from "../ledger/LedgerIds.ts"
import type { Forgotten } from "../ledger/WithoutCustomer.ts"
import { countFrames } from "../landing/BlankFrames.ts"
import type { BodyMeta } from "../landing/Landing.ts"
import { countRowsOfCustomer } from "../tables/ForgetRows.ts"
import { countHeld } from "../tables/HeldRuns.ts"
import type { Store } from "../tables/Store.ts"
import { countTokensOf } from "../tokens/ForgetTokens.ts"
import { recordingsOf, runsIn } from "./ForgetFiles.ts"
import { ForgetFailed, step } from "./ForgetFailed.ts"

export const remainingKinds = [
  "unproven_login",
  "unknown_start",
  "possible_orphan",
  "open_execution",
  "execution",
] as const
/** What the service may still have, and nobody could ask for any more once it is removed here. */
const Remaining = Schema.Struct({
  kind: Schema.Literals(remainingKinds),
  external_execution_id: Schema.String,
  execution_id: Schema.optionalKey(ExecutionId),
  engine_reference: Schema.optionalKey(EngineReference),
  sent_at: Schema.String,
})
export type Remaining = typeof Remaining.Type

const ForgetPlan = Schema.Struct({
  receipt: Schema.String,
  customer_id: CustomerId,
  tasks: Schema.Array(Schema.Struct({ run_id: RunId, task_id: TaskId })),
  executions: Schema.Array(ExecutionId),
  sessions: Schema.Array(SessionId),
  /** SHA-256 of downloaded documents; one that another customer has too is kept. */
  documents: Schema.Array(Schema.String),
  counts: ForgetCounts,
  /** Kept here until the removal is over: a removal that was cut off names them again. */
  remaining: Schema.optionalKey(Schema.Array(Remaining)),
})
export type ForgetPlan = typeof ForgetPlan.Type

const decode = Schema.decodeUnknownOption(Schema.fromJsonString(ForgetPlan))

/** The removal that was cut off; undefined if there is none. */
export const unfinishedPlan = ({ layout }: Pick<Store, "layout">) =>
  step((): ForgetPlan | undefined => {
    if (!existsSync(layout.forgetting)) return undefined
    const decoded = decode(readFileSync(layout.forgetting, "utf8"))
    // It is replaced atomically, so a crash never leaves half of it.
    if (decoded._tag === "None") throw new Error(`${layout.forgetting} cannot be read`)
    return decoded.value
  })

export const keepPlan = ({ layout, files }: Store, plan: ForgetPlan) =>
  step(() => files.replace(layout.forgetting, `${JSON.stringify(plan)}\n`, 0o600))

export const forgottenOf = ({
  customer_id,
  tasks,
  executions,
}: Pick<ForgetPlan, "customer_id" | "tasks" | "executions">): Forgotten => ({
  customer_id,
  tasks: new Set(tasks.map(({ task_id }) => task_id)),
  executions: new Set(executions),
})

/** Whether a landed body is the customer's. */
export const isBodyOf =
  ({ customer_id, tasks }: Forgotten) =>
  (meta: BodyMeta): boolean =>
    meta.customer_id === customer_id || tasks.has(meta.task_id)

/** Everything that is here of a customer; undefined if nothing is. Changes nothing. */
export const planForget = Effect.fn("Keeping.planForget")(function* (store: Store, customer_id: CustomerId) {
  const before = yield* unfinishedPlan(store)
  if (before !== undefined && before.customer_id !== customer_id)
    return yield* new ForgetFailed({ message: "", isOther: true })
  const ledger = yield* Ledger
  const about = yield* factsAbout(customer_id)
  const found = idsIn(about)
  const ids = before === undefined ? found : joinIds(before, found)
  const receipt = before?.receipt ?? (yield* newReceipt)
  const byHand = (yield* ledger.byHand).filter(
    ({ fact }) => "customer_id" in fact && fact.customer_id === customer_id,
  )
  const logins = (yield* ledger.accounts)
    .flatMap(({ rejected, sent }) => [...rejected, ...sent])
    .filter((login) => login.customer_id === customer_id)
  const counts: ForgetCounts = {
    ...(yield* countFiles(store, { customer_id, ...ids })),
    runs: new Set(ids.tasks.map(({ run_id }) => run_id)).size,
    facts: about.reduce((sum, { facts }) => sum + facts.length, byHand.length),
    documents: (yield* theirDocuments(store, ids)).length,
    held: 0,
    deleted: 0,
    given_up: 0,
    left_at_service: 0,
    logins_kept: logins.length,
  }
  if (before !== undefined) {
    const { counts: found, remaining = [] } = before
    return { ...ids, receipt, customer_id, counts: found, remaining }
  }
  const isNothing = Object.values(counts).every((count) => count === 0)
  if (isNothing) return undefined
  const held = yield* step(() => countHeld(store))
  return { ...ids, receipt, customer_id, counts: { ...counts, held } }
})

/** The documents that go with the customer: they are here, and no task of another one names them. */
const theirDocuments = Effect.fnUntraced(function* (
  { layout }: Store,
  { documents, tasks }: Pick<ForgetPlan, "documents" | "tasks">,
) {
  const ledger = yield* Ledger
  const own = new Set<string>(tasks.map(({ task_id }) => task_id))
  const theirs: Array<string> = []
  for (const sha256 of documents) {
    if (!existsSync(join(layout.root, "attachments", sha256))) continue
    const runs = yield* ledger.runsWithDocument(sha256)
    const states = yield* Effect.forEach(runs, (run_id) => ledger.state(RunId.make(run_id)))
    const isShared = states.some((state) =>
      [...(state?.tasks ?? [])].some(
        ([task_id, { attachments }]) => !own.has(task_id) && attachments.some((one) => one.sha256 === sha256),
      ),
    )
    if (!isShared) theirs.push(sha256)
  }
  return theirs
})

interface TaskFacts extends TaskOfRun {
  readonly facts: ReadonlyArray<Fact>
}

/** The tasks that were planned for this customer: an id of the service that reads the same is not meant. */
const factsAbout = Effect.fnUntraced(function* (customer_id: CustomerId) {
  const ledger = yield* Ledger
  const found: Array<TaskFacts> = []
  for (const task of yield* ledger.tasksNaming(customer_id)) {
    const facts = (yield* ledger.factsOfTask(task)).map(({ fact }) => fact)
    const isTheirs = facts.some((fact) => fact._tag === "TaskPlanned" && fact.customer_id === customer_id)
    if (isTheirs) found.push({ ...task, facts })
  }
  return found as ReadonlyArray<TaskFacts>
})

type Ids = Pick<ForgetPlan, "tasks" | "executions" | "sessions" | "documents">

const idsIn = (about: ReadonlyArray<TaskFacts>): Ids => {
  const facts = about.flatMap((task) => task.facts)
  return {
    tasks: about.map(({ run_id, task_id }) => ({ run_id, task_id })),
    executions: unique(facts.map((fact) => ("execution_id" in fact ? fact.execution_id : undefined))),
    sessions: unique(facts.map((fact) => ("session_id" in fact ? fact.session_id : undefined))),
    documents: unique(facts.map((fact) => (fact._tag === "AttachmentRead" ? fact.sha256 : undefined))),
  }
}

const unique = <Id>(ids: ReadonlyArray<Id | undefined>): ReadonlyArray<Id> => [
  ...new Set(ids.flatMap((id) => (id === undefined ? [] : [id]))),
]

const joinIds = (before: Ids, now: Ids): Ids => ({
  tasks: [...new Map([...before.tasks, ...now.tasks].map((task) => [task.task_id, task])).values()],
  executions: [...new Set([...before.executions, ...now.executions])],
  sessions: [...new Set([...before.sessions, ...now.sessions])],
  documents: [...new Set([...before.documents, ...now.documents])],
})

const receiptParts = 4

/** Random, so nothing about the customer is in it: it is filed with the request for the removal. */
const newReceipt = Effect.map(
  Effect.replicateEffect(Random.nextIntBetween(0, 0xffff_ffff), receiptParts),
  (parts) => `forgotten-${parts.map((part) => part.toString(16).padStart(8, "0")).join("")}`,
)

const countFiles = Effect.fnUntraced(function* (store: Store, ids: Ids & Pick<ForgetPlan, "customer_id">) {
  const forgotten = forgottenOf(ids)
  const { root } = store.layout
  const landing = join(root, "landing")
  const bodies = yield* step(() =>
    runsIn(landing).reduce((sum, run_id) => sum + countFrames(landing, run_id, isBodyOf(forgotten)), 0),
  )
  const tokens = yield* countTokensOf(join(root, "tokens.sqlite"), ids.customer_id)
  const recordings = yield* step(() => recordingsOf(root, ids.customer_id).length)
  return { bodies, tokens, recordings, rows: yield* countRowsOfCustomer(store, forgotten) }
})
