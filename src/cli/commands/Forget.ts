/**
 * `forget CUSTOMER`, with a receipt that does not say who it was. What the service still has is deleted there
 * first, while its ids are known here; whoever removes a customer gives up what is not proved to be here.
 */
import { existsSync } from "node:fs"
import { resolve } from "node:path"
import { Effect } from "effect"
import { given } from "../../base/Schemas.ts"
import { counted, sumOf } from "../../base/Text.ts"
import { command } from "../CommandRow.ts"
import { argument, jobFlags, note, say, switchFlag, warn } from "../Output.ts"
import { refuse } from "../Failures.ts"
import { checkJobs, loadJobs, readableJobs } from "../Jobs.ts"
import { holdOutput, inFolder, openedLedger, openedStoreWithKey, shareOf } from "../OutputFolder.ts"
import { keepUnpruned } from "../PruneJobs.ts"
import { rewriteReport } from "../RunReport.ts"
import { Wiring } from "../Wiring.ts"
import { checkWhole, forget as forgetIn, planForget } from "../../folder/Forget.ts"
import type { ForgetPlan, Remaining } from "../../folder/Forget.ts"
import { namesLeft } from "../../folder/Mentions.ts"
import { acquaintName, serviceNameOf, type Job } from "../../jobs/Job.ts"
import type { ForgetCounts } from "../../ledger/Fact.ts"
import type { RunStarted } from "../../ledger/RunFacts.ts"
import { mayBeTwo, remainsAny, remainsOf, type RunState } from "../../ledger/RunState.ts"
import { CustomerId, type RunId } from "../../service/Ids.ts"
import type { Store } from "../../tables/Manifest.ts"
import { deleteAll, dueDeletions, type DueDeletion } from "../../task/DeleteExecutions.ts"
import { revokeByHand } from "../../tokens/ExchangeTicket.ts"
import { TokenStore, listTokens } from "../../tokens/TokenStore.ts"

type Started = Pick<typeof RunStarted.Type, "run_id" | "job" | "job_path">

/** What one run did for the customer; `due`: the executions that the service may still have. */
const inRun = Effect.fnUntraced(function* (run_id: RunId, plan: ForgetPlan) {
  const state = yield* (yield* openedLedger).state(run_id)
  if (state === undefined) return []
  const proved = new Map(dueDeletions(state).map((due) => [due.execution_id, due]))
  const attempts = attemptsOf(state, plan)
  const due = attempts.flatMap((attempt): ReadonlyArray<DueDeletion> => {
    const { task_id, execution_id } = attempt
    if (execution_id === undefined || remainsAny(attempt, "nothing", "foreign")) return []
    return [proved.get(execution_id) ?? { task_id, execution_id, landed_sha256: "" }]
  })
  const run: Started = state.started
  return [{ run, state, attempts, due }]
})
type LeftInRun = Pick<Effect.Success<ReturnType<typeof inRun>>[number], "run" | "state" | "due">

export const remoteOf = Effect.fnUntraced(function* (output: string, plan: ForgetPlan) {
  const run_ids = new Set(plan.tasks.map(({ run_id }) => run_id))
  const all = (yield* Effect.forEach(run_ids, (run_id) => inRun(run_id, plan))).flat()
  const attempts = all.flatMap((run) => run.attempts)
  const gone = attempts.filter(({ deletion }) => deletion?.deleted_at !== undefined)
  const remaining = attempts.flatMap(stillThere)
  const created = attempts.filter(({ execution_id }) => execution_id !== undefined)
  const told = new Set([...remaining, ...created].map((one) => one.external_execution_id))
  return {
    runs: all.filter(({ due }) => due.length > 0),
    tokens: yield* unrevokedTokens(output, plan),
    /** Executions that the service no longer has, and those of them of which not all is proved to be here. */
    deleted: gone.length,
    given_up: gone.filter(({ deletion }) => deletion?.landed_sha256 === "").length,
    /** What may be there of which not all is known, and executions that were not deleted. */
    remaining: [...remaining, ...(yield* unprovenLogins(plan, told))],
    known: new Set<string>(attempts.map((one) => one.external_execution_id)),
    started: all.map(({ run }) => run),
  }
})
type Remote = Effect.Success<ReturnType<typeof remoteOf>>

const attemptsOf = ({ tasks }: RunState, plan: ForgetPlan) =>
  plan.tasks.flatMap(({ task_id }) => {
    const { attempts = [], planned } = tasks.get(task_id) ?? {}
    return attempts.map((attempt) => ({ task_id, planned, ...attempt }))
  })

/** Starts whose execution nobody knows, and executions that are still there; an orphan is beside its own. */
const stillThere = (attempt: ReturnType<typeof attemptsOf>[number]): ReadonlyArray<Remaining> => {
  const { external_execution_id, execution_id, planned } = attempt
  const of = {
    external_execution_id,
    ...given({ engine_reference: planned?.engine_reference }),
    sent_at: new Date(attempt.intended_at).toISOString(),
  }
  const orphan: ReadonlyArray<Remaining> = mayBeTwo(attempt) ? [{ kind: "possible_orphan", ...of }] : []
  const left = remainsOf(attempt)
  if (left === "nothing") return orphan
  if (execution_id === undefined || left === "foreign") return [{ kind: "unknown_start", ...of }, ...orphan]
  return [{ kind: left === "open" ? "open_execution" : "execution", ...of, execution_id }, ...orphan]
}

/** Logins that an account counts besides, also of runs whose facts were removed by age. */
const unprovenLogins = Effect.fnUntraced(function* ({ customer_id }: ForgetPlan, told: ReadonlySet<string>) {
  const ledger = yield* openedLedger
  const sent = (yield* ledger.accounts).flatMap((account) => account.sent)
  return sent.flatMap(
    ({ external_execution_id, engine_reference, at, ...login }): ReadonlyArray<Remaining> => {
      if (login.customer_id !== customer_id || external_execution_id === undefined) return []
      if (told.has(external_execution_id)) return []
      const sent_at = new Date(at).toISOString()
      return [{ kind: "unproven_login", external_execution_id, engine_reference, sent_at }]
    },
  )
})

/** With what an earlier part of the same removal found, and the ledger no longer says. */
const withRemaining = (plan: ForgetPlan, { remaining, known }: Remote): ForgetPlan => {
  const now = new Set([...known, ...remaining.map(({ external_execution_id }) => external_execution_id)])
  const before = (plan.remaining ?? []).filter((one) => !now.has(one.external_execution_id))
  return { ...plan, remaining: [...before, ...remaining] }
}

/** What a removal would leave there: what it deletes there first is not among it. */
const mayRemain = (plan: ForgetPlan, isHereOnly: boolean): ReadonlyArray<Remaining> =>
  (plan.remaining ?? []).filter(({ kind }) => isHereOnly || kind !== "execution")

const remainingTexts = {
  unproven_login: "a login whose end is unknown",
  unknown_start: "a start whose answer is not known",
  possible_orphan: "a possible second execution",
  open_execution: "an open execution",
  execution: "an execution that was not deleted",
} satisfies Readonly<Record<Remaining["kind"], string>>

/** For the service's support: afterwards, nothing here names them. */
const remainingText = (remaining: ReadonlyArray<Remaining>): ReadonlyArray<string> =>
  remaining.length === 0
    ? []
    : [
        "May remain at the service (note it now: the removal takes it out of this folder):",
        ...remaining.map(({ kind, external_execution_id, execution_id, engine_reference, sent_at }) => {
          const what = `  ${remainingTexts[kind]}: external id ${external_execution_id}`
          const execution = execution_id === undefined ? "" : `, execution ${execution_id}`
          const engine = engine_reference === undefined ? "" : `, ${engine_reference}`
          return `${what}${execution}${engine}, sent ${sent_at}`
        }),
      ]

/** Whose credentials the service may have. */
const unrevokedTokens = Effect.fnUntraced(function* (output: string, { customer_id }: ForgetPlan) {
  const path = `${output}/tokens.sqlite`
  if (!existsSync(path)) return []
  // Expired ones too: the service's clock decides, and this machine's may be wrong. A login that is refused
  // only locks its token.
  return (yield* listTokens(path)).filter(
    (token) => token.customer_id === customer_id && token.dropped?.reason !== "REVOKED",
  )
})

const leftOf = ({ runs, tokens }: Pick<Remote, "runs" | "tokens">): number =>
  sumOf(runs.map(({ due }) => due.length)) + tokens.length

const leftText = ({ runs, tokens }: Remote): string =>
  Object.entries({ execution: leftOf({ runs, tokens: [] }), token: tokens.length })
    .flatMap(([what, count]) => (count === 0 ? [] : [counted(count, what)]))
    .join(" and ")

/** The jobs of these runs, as far as their files are where they were, or where --job says. */
export const jobsOf = Effect.fnUntraced(function* (
  started: ReadonlyArray<Started>,
  given: ReadonlyArray<string>,
) {
  const named = yield* loadJobs(given, "rules")
  // The newest first: a job that was moved is where it was last started from.
  const paths = new Set(started.map(({ job_path }) => job_path).toReversed())
  const there = [...paths].filter((path) => existsSync(path))
  const standing = readableJobs(yield* checkJobs(there, "rules")).filter(
    ({ name }) => !named.some((job) => job.name === name),
  )
  const all = [...named, ...standing]
  const jobOf = (run: Started | undefined): Job | undefined => {
    const isTried = ({ name }: Job) => acquaintName(name) === run?.job
    return (
      all.find((one) => isTried(one) && resolve(one.path) === run?.job_path) ??
      all.find(({ name }) => name === run?.job) ??
      // Without its path, only who names the file says that it is the one that was tried.
      named.find(isTried)
    )
  }
  const found = new Set(started.map(jobOf))
  return { jobs: [...named, ...standing.filter((one) => found.has(one))], jobOf }
})
type JobsOf = Effect.Success<ReturnType<typeof jobsOf>>

/** Before anything is removed: without these jobs, nobody can ask the service. */
const requireJobs = Effect.fnUntraced(function* (remote: Remote, { jobs, jobOf }: JobsOf) {
  const missing = remote.runs.flatMap(({ run }) =>
    jobOf(run) === undefined ? [`${run.job} (${run.job_path})`] : [],
  )
  const isKeyMissing = remote.tokens.length > 0 && jobs.every(({ tokens_key }) => tokens_key === undefined)
  if (missing.length === 0 && !isKeyMissing) return
  const names = missing.length > 0 ? [...new Set(missing)].join(", ") : "the job with their key"
  return yield* refuse("forget-job-needed", { left: leftText(remote), jobs: names })
})

const deleteRemote = Effect.fnUntraced(function* (output: string, remote: Remote, { jobs, jobOf }: JobsOf) {
  const wiring = yield* Wiring
  for (const job of jobs) {
    const runs = remote.runs.filter(({ run }) => jobOf(run) === job)
    const hasTokens = remote.tokens.length > 0 && job.tokens_key !== undefined
    if (runs.length === 0 && !hasTokens) continue
    yield* Effect.provide(deleteFor(remote, runs, job), wiring.tokens(job, output))
  }
})

const deleteFor = Effect.fnUntraced(function* (remote: Remote, runs: ReadonlyArray<LeftInRun>, job: Job) {
  const here = serviceNameOf(job.service)
  for (const { state, due } of runs) yield* deleteAll({ run: state, here }, due, Infinity)
  const store = yield* TokenStore
  if (store._tag !== "Open") return
  for (const { name, service } of remote.tokens) {
    if (service !== store.service) continue
    // Like an execution that is not deleted, it stays and is told; a refused secret ends the command.
    yield* revokeByHand(store, name).pipe(
      Effect.catchTag(["NotSent", "AnswerLost", "Throttled", "UnexpectedAnswer"], (failure) =>
        Effect.logDebug(failure),
      ),
    )
  }
})

const tellNames = Effect.fnUntraced(function* (store: Store, customer_id: CustomerId) {
  const { jobs, jobPaths, folder, models } = yield* namesLeft(store, customer_id)
  for (const name of jobs) yield* warn("customer-in-job-name", { name })
  for (const path of jobPaths) yield* warn("customer-in-job-path", { path })
  if (folder !== undefined) yield* warn("customer-in-folder-name", { path: folder })
  for (const { job, name } of models) yield* warn("customer-in-model", { job, name })
})

const lookFor = Effect.fnUntraced(function* (output: string, customer_id: CustomerId) {
  const store = yield* openedStoreWithKey(output, shareOf(output))
  return yield* inFolder(
    output,
    Effect.gen(function* () {
      yield* checkWhole(store)
      const plan = yield* planForget(store, customer_id)
      if (plan === undefined) return yield* refuse("customer-unknown", { output })
      yield* tellNames(store, customer_id)
      const remote = yield* remoteOf(output, plan)
      return { store, plan: withRemaining(plan, remote), remote }
    }),
  )
})

/** Deletes at the service; what is left there afterwards ends the command, unless it may stay. */
const clearService = Effect.fnUntraced(function* (
  output: string,
  { plan, remote }: { readonly plan: ForgetPlan; readonly remote: Remote },
  given: ReadonlyArray<string>,
  isHereOnly: boolean,
) {
  const known = yield* jobsOf(remote.started, given)
  for (const job of known.jobs)
    if (job.assignments.some(({ customer_id }) => customer_id === plan.customer_id))
      yield* warn("customer-still-in-job", { path: job.path })
  if (isHereOnly || leftOf(remote) === 0) return { plan, remote }
  yield* requireJobs(remote, known)
  yield* deleteRemote(output, remote, known)
  const after = yield* inFolder(output, remoteOf(output, plan))
  if (leftOf(after) > 0) return yield* refuse("forget-pending", { left: leftText(after) })
  return { plan: withRemaining(plan, after), remote: after }
})

/** The counts are those of the receipt if a removal continues; the ledger knows only what came since then. */
const withCountsOf = ({ runs, tokens, ...remote }: Remote, counts: ForgetCounts): ForgetCounts => {
  const left = counts.left_at_service + runs.reduce((sum, { due }) => sum + due.length, 0)
  return {
    ...counts,
    deleted: counts.deleted + remote.deleted,
    given_up: counts.given_up + remote.given_up,
    left_at_service: counts.left_at_service > 0 ? left : left + tokens.length,
  }
}

const forgets = Effect.fnUntraced(function* (
  output: string,
  customer_id: CustomerId,
  jobs: ReadonlyArray<string>,
  hereOnly: boolean,
  isJson: boolean,
) {
  const found = yield* lookFor(output, customer_id)
  const { store } = found
  const { plan: cleared, remote } = yield* clearService(output, found, jobs, hereOnly)
  const { remaining: may_remain = [] } = cleared
  const counts = withCountsOf(remote, cleared.counts)
  const plan: ForgetPlan = { ...cleared, counts }
  // Before anything is removed here; beside JSON on stderr, which is there if the command is cut off.
  const text = remainingText(may_remain)
  if (text.length > 0) yield* (isJson ? note : say)(text.join("\n"))
  const share = shareOf(output)
  const rewrite = (run_id: RunId) => rewriteReport({ output, run_id, share })
  const result = yield* inFolder(output, forgetIn(store, plan, rewrite))
  return { receipt: plan.receipt, ...counts, ...result, may_remain }
})

const tokensToo = "executions or tokens"

const lines = (counts: ForgetCounts): ReadonlyArray<string> => [
  `  runs          ${counted(counts.runs, "run")}, ${counted(counts.facts, "fact")} of the ledger`,
  `  landing       ${counted(counts.bodies, "body", "bodies")}`,
  `  documents     ${counted(counts.documents, "document")}`,
  `  tables        ${counted(counts.rows, "row")}`,
  `  held back     ${counted(counts.held, "version")}`,
  `  token store   ${counted(counts.tokens, "token or ticket", "tokens and tickets")}`,
  `  recordings    ${counted(counts.recordings, "recording")}`,
]

const elsewhere =
  "Not touched: copies that `nightjar backup` made, files that were exported, the job's own files, and\n" +
  "what records of other customers say."

const foundLines = (
  { plan, remote }: Effect.Success<ReturnType<typeof lookFor>>,
  isHereOnly: boolean,
): ReadonlyArray<string> => [
  "This would be removed:",
  ...lines(plan.counts),
  ...(leftOf(remote) > 0 && !isHereOnly ? [`Deleted at the service first: ${leftText(remote)}.`] : []),
  ...remainingText(mayRemain(plan, isHereOnly)),
  elsewhere,
]

const removedLines = (result: Effect.Success<ReturnType<typeof forgets>>): ReadonlyArray<string> => {
  const { deleted, given_up, left_at_service, logins_kept } = result
  const told: ReadonlyArray<readonly [count: number, text: string]> = [
    [deleted, `The service no longer has ${counted(deleted, "execution")} of the customer.`],
    [
      given_up,
      `Of ${counted(given_up, "execution")} not everything was proved to be here: what is missing is lost.`,
    ],
    [left_at_service, `Left at the service: ${counted(left_at_service, "execution or token", tokensToo)}.`],
    [
      result.held,
      "What a gate holds back is derived again by the next run of its job, or by `nightjar accept`.",
    ],
    [
      logins_kept,
      `Still counted, by keyed fingerprint: ${counted(logins_kept, "rejected or unproven login")}.`,
    ],
  ]
  return [
    "Removed:",
    ...lines(result),
    ...told.flatMap(([count, text]) => (count > 0 ? [text] : [])),
    elsewhere,
    `Receipt: ${result.receipt}, without the customer's id; \`nightjar explain ${result.receipt}\` shows it.`,
  ]
}

export const forget = command("forget", {
  more: `
    Removes the customer from landing, documents, the tables of every version, the ledger, the token store,
    logs, summaries, reports and recordings. Executions and tokens at the service are deleted first, even
    those whose data is not proved to be complete here. What may remain there anyway (starts whose answer is
    unknown) is listed first, with external ids, engines and times, because afterwards nothing here records
    it. The receipt says what was removed, not whose it was. A rejected login stays rejected. If it is
    interrupted, the same command finishes it.`,
  examples: {
    "nightjar forget c-0001 --dry-run": "What would be removed",
    "nightjar forget c-0001 --yes": "Remove it",
  },
  flags: {
    customer: argument("CUSTOMER", "The customer's complete id"),
    yes: switchFlag("yes", "Remove it; without this, nothing is removed"),
    dryRun: switchFlag("dry-run", "Show what would be removed"),
    jobs: jobFlags,
    hereOnly: switchFlag("here-only", "Leave what is at the service"),
  },
  needs: "ledger",
  left: {
    kept: "What was removed stays removed, here and at the service; the rest is still there.",
    next:
      "Run the same command again: it finishes the removal. Until then, `nightjar verify` names one that " +
      "has begun.",
  },
  run: ({ customer, yes, dryRun, jobs, hereOnly }, output, isJson) =>
    Effect.gen(function* () {
      if (!yes && !dryRun) return yield* refuse("forget-unconfirmed")
      const customer_id = CustomerId.make(customer)
      yield* holdOutput(output, [shareOf(output)])
      yield* keepUnpruned(output)
      return dryRun
        ? { found: yield* lookFor(output, customer_id) }
        : { forgotten: yield* forgets(resolve(output), customer_id, jobs, hereOnly, isJson) }
    }).pipe(
      Effect.scoped,
      Effect.catchTag("FolderFailed", ({ message, because }) =>
        because === undefined ? refuse("forget-stopped", { why: message }) : refuse("forget-other"),
      ),
    ),
  json: ({ found, forgotten }, { hereOnly }) =>
    found === undefined
      ? forgotten
      : {
          ...found.plan.counts,
          at_service: leftOf(found.remote),
          may_remain: mayRemain(found.plan, hereOnly),
        },
  text: ({ found, forgotten }, _, { hereOnly }) =>
    found === undefined ? removedLines(forgotten) : foundLines(found, hereOnly),
})
