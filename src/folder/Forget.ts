/**
 * Removes a customer from the output folder. The ledger comes first, in one transaction with the receipt:
 * from then on nothing refers to the rest, so that every later step may be cut off and repeated, and runs and
 * readers find a whole folder in between. What is needed to find the rest is in a file that goes last.
 */
import { existsSync, readFileSync, readdirSync, statSync } from "node:fs"
import { join } from "node:path"
import { Effect, Random, Schema, Struct } from "effect"
import { folderName, jsonIn } from "../base/Text.ts"
import { FolderFailed, folderFailed, removeAll, step } from "./FolderFailed.ts"
import { mentions, mentionsIn, type Named } from "./Mentions.ts"
import { forgetNamed } from "./NamedDocuments.ts"
import { blankFrames, countFrames } from "../landing/BlankFrames.ts"
import { LandingDamaged, type BodyMeta } from "../landing/Landing.ts"
import { ForgetCounts, type Fact } from "../ledger/Fact.ts"
import type { Forgotten } from "../ledger/ForgetCustomer.ts"
import { logLine } from "../ledger/FactRows.ts"
import { Ledger } from "../ledger/Ledger.ts"
import type { TaskKeys } from "../ledger/FactKeys.ts"
import { removeCopies } from "../ledger/LedgerSchema.ts"
import { isRunId } from "../ledger/RunState.ts"
import { nightAround } from "../ledger/WholeNight.ts"
import { summarise } from "../report/Summary.ts"
import { CustomerId, EngineReference, ExecutionId, RunId, SessionId, TaskId } from "../service/Ids.ts"
import { recover } from "../tables/Version.ts"
import { countRowsOfCustomer, forgetRows, unreadableFiles } from "../tables/ForgetRows.ts"
import { countHeld } from "../tables/HeldRuns.ts"
import type { Store } from "../tables/Manifest.ts"
import { countTokensOf, forgetTokensOf } from "../tokens/TokenTables.ts"

/** A step that may find damage, which hides whose data is where. */
const landingStep = <A>(work: () => A) =>
  Effect.try({
    try: work,
    catch: (cause) => (cause instanceof LandingDamaged ? cause : folderFailed(cause)),
  })

// A customer leaves the files that are neither ledger, landing nor tables: documents, logs, summaries,
// reports, recordings, and the journal of the embedded service. Each step may be repeated.

/** The runs that have a folder below this one. */
const runsIn = (folder: string): ReadonlyArray<RunId> =>
  existsSync(folder)
    ? readdirSync(folder)
        .filter((name) => isRunId(name))
        .map((name) => RunId.make(name))
    : []

/** The ledger is clean already: a document that it still knows is another customer's too. */
const forgetDocuments = Effect.fnUntraced(function* (
  { layout, files }: Store,
  documents: ReadonlyArray<string>,
) {
  const ledger = yield* Ledger
  const theirs: Array<string> = []
  for (const sha256 of documents) {
    const path = join(layout.root, "attachments", sha256)
    if (existsSync(path) && (yield* ledger.runsWithDocument(sha256)).length === 0) theirs.push(path)
  }
  yield* step(() => removeAll(files, theirs))
})

const reportNames: ReadonlyArray<string> = ["report.html", "worklist.csv"]

/** The files of a run's report that name the customer, until it is written again. */
interface OldReport {
  readonly run_id: RunId
  readonly paths: ReadonlyArray<string>
}

/**
 * Cleans `runs/` but for the reports that it returns: a removal that is cut off finds them again. Logs and
 * summaries are made again from the ledger; whatever else names the customer is removed.
 */
const forgetInRuns = Effect.fnUntraced(function* ({ layout, files }: Store, named: Named) {
  const reports: Array<OldReport> = []
  for (const run_id of runsIn(join(layout.root, "runs"))) {
    const pathOf = (name: string) => join(layout.root, "runs", run_id, name)
    const found = yield* step(() =>
      readdirSync(pathOf("")).filter((name) => mentionsIn(named, readFileSync(pathOf(name), "utf8"))),
    )
    if (found.length === 0) continue
    const texts = yield* textsOf(run_id)
    yield* step(() => {
      for (const [name, text] of Object.entries(texts))
        if (found.includes(name)) files.replace(pathOf(name), text, statSync(pathOf(name)).mode & 0o777)
    })
    const ofReport = found.filter((name) => reportNames.includes(name))
    const kept = new Set([...Object.keys(texts), ...ofReport])
    yield* step(() => removeAll(files, found.filter((name) => !kept.has(name)).map(pathOf)))
    if (ofReport.length > 0) reports.push({ run_id, paths: ofReport.map(pathOf) })
  }
  return reports as ReadonlyArray<OldReport>
})

/** By name, what the ledger says of a run in its files; nothing if it does not know the run. */
const textsOf = Effect.fnUntraced(function* (run_id: RunId) {
  const ledger = yield* Ledger
  const state = yield* ledger.state(run_id)
  if (state === undefined) return {}
  const log = (yield* ledger.facts(run_id)).map(({ fact, at }) => logLine(fact, at))
  const summary = summarise(state, yield* nightAround(ledger, state, ledger.state))
  return { "log.ndjson": log.join(""), "summary.json": `${JSON.stringify(summary, null, 2)}\n` }
})

/** The folders of recordings of this customer, below the output folder: their calls name nobody. */
const recordingsOf = (root: string, customer_id: CustomerId): ReadonlyArray<string> => {
  const folder = join(root, "acquaint")
  if (!existsSync(folder)) return []
  return readdirSync(folder)
    .filter((name) => name.startsWith(`${folderName(customer_id)}.`))
    .map((name) => join(folder, name))
    .filter((path) => isReportOn(join(path, "report.md"), customer_id))
}

/** `c-1.x` is another customer than `c-1`: its report says so. A recording that was cut off has none. */
const isReportOn = (report: string, customer_id: CustomerId): boolean => {
  const plain = (text: string) => folderName(text.replaceAll("\\", ""))
  return !existsSync(report) || plain(readFileSync(report, "utf8")).startsWith(plain(`# ${customer_id} on `))
}

const forgetRecordings = ({ layout, files }: Store, customer_id: CustomerId) =>
  step(() => {
    const paths = recordingsOf(layout.root, customer_id)
    if (paths.length > 0) removeAll(files, paths)
  })

/**
 * The embedded service in this folder forgets the customer's executions. Its time must not go back, so the
 * newest time of the journal stays in it.
 */
const forgetInJournal = ({ layout, files }: Store, named: Named) =>
  step(() => {
    const path = join(layout.root, "sandbox.ndjson")
    if (!existsSync(path)) return
    const lines = readFileSync(path, "utf8")
      .split("\n")
      .filter((line) => line !== "")
    const kept = lines.filter((line, index) => {
      const event = jsonIn(line)
      // The journal cuts off a last line that a killed process left torn; nothing may come after it.
      if (event === undefined) return index < lines.length - 1 && !mentionsIn(named, line)
      return !mentions(named, event)
    })
    if (kept.length === lines.length) return
    const at = lines.reduce((newest, line) => Math.max(newest, timeOf(jsonIn(line))), 0)
    files.replace(path, `${[...kept, JSON.stringify({ _tag: "TimeKept", at })].join("\n")}\n`, 0o600)
  })

const timeOf = (event: unknown): number =>
  typeof event === "object" && event !== null && "at" in event ? Number(event.at) : 0

// Whom a removal is about, and what is here of the customer: found through the ledger, and kept in a file of
// its own before anything is removed, because the ledger is cleaned first and the rest is found by these ids.
// A removal that was cut off continues with that file, joined with what has come since. It is removed last.

/** What the service may still have, and nobody could ask for any more once it is removed here. */
const Remaining = Schema.Struct({
  kind: Schema.Literals([
    "unproven_login",
    "unknown_start",
    "possible_orphan",
    "open_execution",
    "execution",
  ]),
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

/** What an earlier removal was about, unless it is over; it may not have removed anything yet. */
const keptPlan = ({ layout }: Pick<Store, "layout">) =>
  step((): ForgetPlan | undefined => {
    if (!existsSync(layout.forgetting)) return undefined
    const decoded = decode(readFileSync(layout.forgetting, "utf8"))
    // It is replaced atomically, so a crash never leaves half of it.
    if (decoded._tag === "None") throw new Error(`${layout.forgetting} cannot be read`)
    return decoded.value
  })

const keepPlan = ({ layout, files }: Store, plan: ForgetPlan) =>
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
const isBodyOf =
  ({ customer_id, tasks }: Forgotten) =>
  (meta: BodyMeta): boolean =>
    meta.customer_id === customer_id || tasks.has(meta.task_id)

/** The removal that was cut off with what its receipt says; before there is a receipt, nothing is removed. */
const unfinished = Effect.fnUntraced(function* (store: Store) {
  const ledger = yield* Ledger
  const plan = yield* keptPlan(store)
  const receipt = (yield* ledger.receipts)
    .map(({ fact }) => fact)
    .find((fact) => fact._tag === "CustomerForgotten" && fact.receipt === plan?.receipt)
  if (plan === undefined || receipt?._tag !== "CustomerForgotten") return undefined
  return { plan, counts: Struct.pick(receipt, Struct.keys(ForgetCounts.fields)) }
})

/** Everything that is here of a customer; undefined if nothing is. Changes nothing. */
export const planForget = Effect.fn("Keeping.planForget")(function* (store: Store, customer_id: CustomerId) {
  const before = yield* unfinished(store)
  if (before !== undefined && before.plan.customer_id !== customer_id)
    return yield* new FolderFailed({ message: "", because: "other_removal" })
  const about = yield* factsAbout(customer_id)
  const found = idsIn(about)
  if (before !== undefined) {
    const { plan, counts } = before
    // The ledger has only what has come since; what the receipt counts may be here or gone.
    const since = yield* countsOf(store, { customer_id, ...found }, about, runsOf(found))
    return { ...plan, ...joinIds(plan, found), counts: sumOf(counts, { ...since, tokens: 0, recordings: 0 }) }
  }
  const counts = yield* countsOf(store, { customer_id, ...found }, about)
  if (Object.values(counts).every((count) => count === 0)) return undefined
  const held = yield* step(() => countHeld(store))
  return { ...found, receipt: yield* newReceipt, customer_id, counts: { ...counts, held } }
})

const runsOf = ({ tasks }: Ids): ReadonlySet<string> => new Set(tasks.map(({ run_id }) => run_id))

const sumOf = (counts: ForgetCounts, more: ForgetCounts): ForgetCounts =>
  Object.fromEntries(
    Struct.keys(counts).map((name) => [name, counts[name] + more[name]] as const),
  ) as ForgetCounts

/** Of the files, those of these runs. */
const countsOf = Effect.fnUntraced(function* (
  store: Store,
  ids: Ids & Pick<ForgetPlan, "customer_id">,
  about: ReadonlyArray<TaskFacts>,
  runs?: ReadonlySet<string>,
) {
  const ledger = yield* Ledger
  const { customer_id } = ids
  const byHand = (yield* ledger.byHand).filter(
    ({ fact }) => "customer_id" in fact && fact.customer_id === customer_id,
  )
  const logins = (yield* ledger.accounts)
    .flatMap(({ rejected, sent }) => [...rejected, ...sent])
    .filter((login) => login.customer_id === customer_id)
  const { root } = store.layout
  const isMeant = (run_id: string) => runs?.has(run_id) ?? true
  const counts: ForgetCounts = {
    bodies: yield* countBodies(join(root, "landing"), ids, isMeant),
    tokens: yield* countTokensOf(join(root, "tokens.sqlite"), customer_id),
    recordings: yield* step(() => recordingsOf(root, customer_id).length),
    rows: yield* countRowsOfCustomer(store, forgottenOf(ids), isMeant),
    runs: runsOf(ids).size,
    facts: about.reduce((sum, { facts }) => sum + facts.length, byHand.length),
    documents: (yield* theirDocuments(store, ids)).length,
    held: 0,
    deleted: 0,
    given_up: 0,
    left_at_service: 0,
    logins_kept: logins.length,
  }
  return counts
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

interface TaskFacts extends TaskKeys {
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

const countBodies = (
  landing: string,
  ids: Ids & Pick<ForgetPlan, "customer_id">,
  isMeant: (run_id: string) => boolean,
) =>
  landingStep(() =>
    runsIn(landing)
      .filter(isMeant)
      .reduce((sum, run_id) => sum + countFrames(landing, run_id, isBodyOf(forgottenOf(ids))), 0),
  )

/** Before anything is removed: in a damaged folder nobody can say what is whose. */
export const checkWhole = Effect.fn("Keeping.checkWhole")(function* (store: Store) {
  const ledger = yield* Ledger
  const [damage] = yield* ledger.problems
  if (damage !== undefined) return yield* new FolderFailed({ message: `ledger.sqlite: ${damage}` })
  // A publication, or a removal, that was cut off while it moved files: its files are not missing.
  yield* recover(store)
  const [path] = yield* unreadableFiles(store)
  if (path !== undefined) return yield* new FolderFailed({ message: `${path} is missing or damaged` })
})

const namedIn = ({ customer_id, tasks, executions, sessions }: ForgetPlan): Named => ({
  customer_id,
  tasks: new Set(tasks.map(({ task_id }) => task_id)),
  ids: [...executions, ...sessions],
})

/**
 * The caller holds the folder, and nothing copies it. `writeReport` writes the report of a run again, and
 * returns whether it did. Returns the version of the tables.
 */
export const forget = Effect.fn("Keeping.forget")(function* <E, R>(
  store: Store,
  plan: ForgetPlan,
  writeReport: (run_id: RunId) => Effect.Effect<boolean, E, R>,
) {
  const ledger = yield* Ledger
  const { root } = store.layout
  const { receipt, counts, customer_id } = plan
  const forgotten = forgottenOf(plan)
  yield* keepPlan(store, plan)
  yield* ledger.forget(forgotten, { receipt, ...counts })
  yield* step(() => removeCopies(store.files, root))
  const landing = join(root, "landing")
  for (const run_id of runsIn(landing))
    yield* landingStep(() => blankFrames(store.files, landing, run_id, isBodyOf(forgotten)))
  yield* forgetDocuments(store, plan.documents)
  yield* step(() => forgetNamed(store, customer_id))
  const version = yield* forgetRows(store, forgotten)
  yield* forgetTokensOf(join(root, "tokens.sqlite"), customer_id)
  for (const { run_id, paths } of yield* forgetInRuns(store, namedIn(plan)))
    if (!(yield* writeReport(run_id))) yield* step(() => removeAll(store.files, paths))
  yield* forgetRecordings(store, customer_id)
  yield* forgetInJournal(store, namedIn(plan))
  const isFinished = (yield* ledger.receipts).some(
    ({ fact }) => fact._tag === "ForgetFinished" && fact.receipt === receipt,
  )
  if (!isFinished) yield* ledger.append([{ _tag: "ForgetFinished", receipt }])
  yield* step(() => {
    store.files.remove(store.layout.forgetting)
    store.files.syncFolder(root)
  })
  return { version }
})
