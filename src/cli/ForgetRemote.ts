/**
 * What the service still has of a customer who is removed: executions and stored tokens. They are deleted
 * there first, while their ids are known here. The rule for deletions, that everything is proved to be here
 * before, does not hold: whoever removes a customer gives up what is not.
 */
import { Clock, Effect } from "effect"
import { existsSync } from "node:fs"
import { counted } from "../foundation/Counted.ts"
import type { RunId } from "../contract/Ids.ts"
import type { DueDeletion } from "../execution/DeleteExecutions.ts"
import type { Job } from "../jobs/Job.ts"
import type { ForgetPlan } from "../keeping/ForgetPlan.ts"
import type { RunState } from "../ledger/RunState.ts"
import type { StoredToken } from "../tokens/StoredToken.ts"
import { refuse } from "./Failures.ts"
import { checkJobs, loadJobs } from "./Jobs.ts"
import { openedLedger } from "./LedgerOf.ts"
import { Wiring } from "./Wiring.ts"

interface LeftInRun {
  readonly run_id: RunId
  readonly job: string
  readonly due: ReadonlyArray<DueDeletion>
}

export interface Remote {
  /** Runs with executions that the service may still have. */
  readonly runs: ReadonlyArray<LeftInRun>
  readonly tokens: ReadonlyArray<StoredToken>
  /** Executions that the service no longer has, and those of them of which not all is proved to be here. */
  readonly deleted: number
  readonly given_up: number
  /** Where each job that asked for the customer was last started from. */
  readonly paths: ReadonlyMap<string, string>
}

/** Needs the ledger. */
export const remoteOf = Effect.fnUntraced(function* (output: string, plan: ForgetPlan) {
  const { dueDeletions } = yield* Effect.promise(() => import("../execution/DeleteExecutions.ts"))
  const ledger = yield* openedLedger
  const runs: Array<LeftInRun> = []
  const paths = new Map<string, string>()
  let [deleted, given_up] = [0, 0]
  for (const run_id of new Set(plan.tasks.map((task) => task.run_id))) {
    const state = yield* ledger.state(run_id)
    if (state === undefined) continue
    paths.set(state.started.job, state.started.job_path)
    const proved = new Map(dueDeletions(state).map((due) => [due.execution_id, due]))
    const attempts = attemptsOf(state, plan)
    const gone = attempts.filter(({ deletion }) => deletion?.deleted_at !== undefined)
    deleted += gone.length
    given_up += gone.filter(({ deletion }) => deletion?.landed_sha256 === "").length
    const due = attempts.flatMap(({ task_id, execution_id, deletion, disowned }) =>
      execution_id === undefined || disowned === true || deletion?.deleted_at !== undefined
        ? []
        : [proved.get(execution_id) ?? { task_id, execution_id, landed_sha256: "" }],
    )
    if (due.length > 0) runs.push({ run_id, job: state.started.job, due })
  }
  return {
    runs,
    tokens: yield* activeTokens(output, plan),
    deleted,
    given_up,
    paths,
  } satisfies Remote as Remote
})

const attemptsOf = ({ tasks }: RunState, plan: ForgetPlan) =>
  plan.tasks.flatMap(({ task_id }) =>
    (tasks.get(task_id)?.attempts ?? []).map((attempt) => ({ task_id, ...attempt })),
  )

const activeTokens = Effect.fnUntraced(function* (output: string, { customer_id }: ForgetPlan) {
  const path = `${output}/tokens.sqlite`
  if (!existsSync(path)) return []
  const { listTokens } = yield* Effect.promise(() => import("../tokens/TokenStore.ts"))
  const now = yield* Clock.currentTimeMillis
  return (yield* listTokens(path)).filter(
    (token) => token.customer_id === customer_id && token.dropped === undefined && token.expires_at > now,
  )
})

export const leftOf = ({ runs, tokens }: Remote): number =>
  runs.reduce((sum, { due }) => sum + due.length, tokens.length)

export const leftText = (remote: Remote): string => {
  const executions = remote.runs.reduce((sum, { due }) => sum + due.length, 0)
  const parts = [
    ...(executions === 0 ? [] : [counted(executions, "execution")]),
    ...(remote.tokens.length === 0 ? [] : [counted(remote.tokens.length, "token")]),
  ]
  return parts.join(" and ")
}

/** The jobs that asked for the customer, as far as their files are where they were, or where --job says. */
export const jobsOf = Effect.fnUntraced(function* ({ paths }: Remote, given: ReadonlyArray<string>) {
  const named = yield* loadJobs(given)
  const others = [...paths].filter(([name]) => !named.some((job) => job.name === name))
  const standing = others.map(([, path]) => path).filter((path) => existsSync(path))
  const found = (yield* checkJobs(standing)).flatMap(({ job }) => (job === undefined ? [] : [job]))
  return [...named, ...found.filter(({ name }) => paths.has(name))]
})

/** Before anything is removed: without these jobs, nobody can ask the service. */
export const requireJobs = Effect.fnUntraced(function* (remote: Remote, jobs: ReadonlyArray<Job>) {
  const missing = [...new Set(remote.runs.map(({ job }) => job))].filter(
    (name) => !jobs.some((job) => job.name === name),
  )
  const isKeyMissing = remote.tokens.length > 0 && jobs.every(({ tokens_key }) => tokens_key === undefined)
  if (missing.length === 0 && !isKeyMissing) return
  const names = missing.length > 0 ? missing.join(", ") : "the job with their key"
  return yield* refuse("forget-job-needed", { left: leftText(remote), jobs: names })
})

/** Deletes at the service of each job what its runs left there. The folder is held. */
export const deleteRemote = Effect.fnUntraced(function* (
  output: string,
  remote: Remote,
  jobs: ReadonlyArray<Job>,
) {
  const wiring = yield* Wiring
  for (const job of jobs) {
    const runs = remote.runs.filter((run) => run.job === job.name)
    const hasTokens = remote.tokens.length > 0 && job.tokens_key !== undefined
    if (runs.length === 0 && !hasTokens) continue
    yield* Effect.provide(deleteFor(remote, runs), wiring.tokens(job, output))
  }
})

const deleteFor = Effect.fnUntraced(function* (remote: Remote, runs: ReadonlyArray<LeftInRun>) {
  const { deleteAll } = yield* Effect.promise(() => import("../execution/DeleteExecutions.ts"))
  const { TokenStore } = yield* Effect.promise(() => import("../tokens/TokenStore.ts"))
  const { revokeByHand } = yield* Effect.promise(() => import("../tokens/ByHand.ts"))
  for (const { run_id, due } of runs) yield* deleteAll(run_id, due, Infinity)
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
