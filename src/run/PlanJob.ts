/**
 * From a job to the executor's input: secrets resolved, forms fetched, tasks decided by the planning room,
 * and the means to start each one when its turn comes.
 */
import { Clock, Duration, Effect, Redacted } from "effect"
import { given } from "../base/Schemas.ts"
import { FormCache, type Away, type EngineFinding } from "../client/EngineForms.ts"
import { serviceNameOf, subjectsOf, type Assignment, type Job, type JobFeature } from "../jobs/Job.ts"
import { AccountBook } from "../ledger/Accounts.ts"
import type { Fact } from "../ledger/Fact.ts"
import { Ledger } from "../ledger/Ledger.ts"
import { mayRun, runsLearntFrom, subjectOf } from "../ledger/RunState.ts"
import type { RunState, TaskState, Waits } from "../ledger/RunState.ts"
import { deliveredInNight, newestTasks, statesOf } from "../ledger/WholeNight.ts"
import { loginKeysOf, type LoginKeys } from "../privacy/Fingerprint.ts"
import { KnownSecrets } from "../privacy/KnownSecrets.ts"
import { beforeStart, own, type Reason } from "../service/Ends.ts"
import { builtInSources } from "../service/FlowResults.ts"
import { planLooks } from "../client/Polling.ts"
import { accessKey, accessOf, sessionKey } from "../service/Ids.ts"
import type { Access, EngineReference, RunId, TaskId } from "../service/Ids.ts"
import {
  assignmentsBehind,
  checkedLogins,
  fitAssignments,
  fitTask,
  holdsSecret,
  refitTask,
  resolveReferences,
  seeEngine,
} from "../task/Assignment.ts"
import type { Grounds, Task } from "../task/Assignment.ts"
import { carriedOver, holdLogins, holdPasswords, inLine, namedInOrder, planTasks } from "../task/Plan.ts"
import type { Plan, SessionTask } from "../task/Plan.ts"
import {
  expectedDuration,
  expectedDurations,
  middleOf,
  neededBefore,
  tailsOf,
  takesOf,
} from "../task/Expectations.ts"
import { longerFirst } from "../task/Schedule.ts"
import type { Expectations } from "../task/Expectations.ts"
import { deadlineOf, windowOf } from "../task/ChooseRun.ts"
import type { Prepared, Rules, TaskWork } from "../task/Work.ts"
import { loginOf, parametersBehind, readShelf, tokenOf, withNewToken } from "../tokens/TokenLogin.ts"
import { TokenStore, type TokenStoreState } from "../tokens/TokenStore.ts"

// What a rerun asks for: pure. Of each task the features that are not in the tables after its night, as the
// job names them now; of one that is resumed, what it asked for before.

/** Which features are asked for, by subject, as `subjectOf` names it; other subjects are not asked for. */
export type Asked = ReadonlyMap<string, (code: string) => boolean>

export const askedAgain = (night: ReadonlyArray<RunState>, subjects: Iterable<string>): Asked => {
  const delivered = deliveredInNight(night)
  return new Map(
    [...subjects].map((subject) => [subject, (code) => delivered.get(subject)?.has(code) !== true]),
  )
}

export const askedBy = ({ tasks }: RunState): Asked =>
  new Map(
    [...tasks.values()].map((task) => {
      const { features } = task.planned
      return [subjectOf(task), (code) => features.length === 0 || features.includes(code)]
    }),
  )

/** No feature at all would mean the engine's defaults: then all are asked for. */
const wantedOf = (
  features: ReadonlyArray<JobFeature>,
  isAsked: (code: string) => boolean,
): ReadonlyArray<JobFeature> => {
  const wanted = features.filter(({ code }) => isAsked(code))
  return wanted.length === 0 ? features : wanted
}

/** The assignments that are asked for, and which of them lack features that the job names. */
export const narrowed = (assignments: ReadonlyArray<Assignment>, asked: Asked | undefined) => {
  const partly = new Set<string>()
  if (asked === undefined) return { assignments, partly }
  const wanted = assignments.flatMap((one) => {
    const isAsked = asked.get(accessKey(one))
    if (isAsked === undefined) return []
    const features = wantedOf(one.features, isAsked)
    if (features.length < one.features.length) partly.add(accessKey(one))
    return [{ ...one, features }]
  })
  return { assignments: wanted, partly }
}

// What the last nights of a job say about the next one: how long executions take, and what the deadline kept
// from being finished. However many nights there are, only the last few are read.

const nightsMax = 3

interface Learnt {
  /** An engine that never ran gives no estimate, and may still be started. */
  readonly expectations: Expectations
  /** Customers and engines that come first, the next one first. */
  readonly carried: ReadonlyArray<string>
  /** What the service asked starts to wait that were not sent again, by customer and engine. */
  readonly asked: ReadonlyMap<string, Waits>
}

const learn = Effect.fnUntraced(function* (job: Job, run_id: RunId) {
  const ledger = yield* Ledger
  const earlier = (yield* ledger.runs).filter(
    ({ fact }) => fact.job === job.name && fact.run_id !== run_id && fact.part === undefined,
  )
  const dates = [...new Set(earlier.map(({ fact }) => fact.run_date))].slice(-nightsMax)
  const newest = earlier.filter(({ fact }) => dates.includes(fact.run_date)).slice(-runsLearntFrom)
  const runs = yield* statesOf(ledger, newest)
  return {
    expectations: expectedDurations(runs, job.execution.max_wait, job.polling),
    carried: carriedOver(runs),
    asked: new Map(runs.flatMap(({ tasks }) => [...tasks.values()].flatMap(askedOf))),
  } satisfies Learnt as Learnt
})

const askedOf = (task: TaskState) =>
  task.waits?.isAsked === true ? [[subjectOf(task), task.waits] as const] : []

/** What the last nights say about an engine; nothing if they never ran it. */
export const timesOf = (
  { expectations: { byEngine } }: Learnt,
  engine_reference: EngineReference,
  { job, windowMs }: { readonly job: Pick<Job, "on_deadline">; readonly windowMs: number },
): { readonly needs?: Duration.Duration } => {
  const sorted = job.on_deadline === "carry" ? (byEngine.get(engine_reference) ?? []) : []
  return given({ needs: neededBefore(sorted, windowMs) })
}

/**
 * Tasks in the order in which they start: what the deadline stopped before, then the longest tails, so that
 * nothing long is left alone at the end of a night. Of those alike, and where nothing is known, as they were.
 */
export const inStartOrder = <Task extends Access & LoginKeys & { readonly task_id: TaskId }>(
  tasks: ReadonlyArray<Task>,
  { expectations, carried }: Learnt,
) => {
  const first = new Set(carried)
  const timed = tasks.map((task) => ({ ...task, takesMs: takesOf(expectations, task) }))
  const tails = tailsOf(
    timed.map((task) => ({ ...task, account: task.account?.account })),
    middleOf(expectations.all) ?? 0,
  )
  const tailOf = (task: Task): number =>
    first.has(accessKey(task)) ? Infinity : (tails.get(task.task_id) ?? 0)
  return timed
    .map((task) => ({ ...task, tailMs: tailOf(task) }))
    .toSorted((one, other) => longerFirst(one.tailMs, other.tailMs))
}

/** When to look at executions, by engine, and for a customer with a past there by that, too. */
export const looksOf = (
  { expectations }: Learnt,
  { polling }: Pick<Job, "polling">,
): ((task: Access) => ReadonlyArray<number>) => {
  const { ends } = expectations
  const byEngine = new Map<string, ReadonlyArray<number>>()
  return (task) => {
    const { engine_reference } = task
    const own = ends.get(accessKey(task))
    const all = ends.get(engine_reference) ?? []
    if (own !== undefined && own.length >= ownMin) return planLooks(polling, all, own)
    const known = byEngine.get(engine_reference) ?? planLooks(polling, all)
    byEngine.set(engine_reference, known)
    return known
  }
}
/** As many ends of a customer on an engine say more than those of the others. */
const ownMin = 3

export interface JobPlan {
  readonly job: Job
  readonly plan: Plan
  readonly grounds: Grounds
  /** Customers and engines that are asked for fewer features than the job names. */
  readonly partly: ReadonlySet<string>
  readonly learnt: Learnt
  readonly unasked: ReadonlyArray<Unasked>
}

/** An engine of which a preview could not learn whether it can be used, and when its form was read. */
export interface Unasked {
  readonly engine_reference: string
  readonly why: string
  /** Milliseconds since the epoch. */
  readonly fetched_at: number
}

const unaskedIn = (found: ReadonlyMap<string, EngineFinding>): ReadonlyArray<Unasked> =>
  [...found].flatMap(([engine_reference, finding]) =>
    finding._tag === "Known" && finding.unasked ? [{ engine_reference, ...finding.unasked }] : [],
  )

/** Plans what a job names: all of it, or what is asked for again. A preview also asks for each engine. */
export const planJob = Effect.fn("PlanJob.planJob")(function* (
  job: Job,
  run_id: RunId,
  asked: Asked | undefined,
  by: "findAll" | "previewAll" = "findAll",
) {
  const ledger = yield* Ledger
  const forms = yield* FormCache
  const learnt = yield* learn(job, run_id)
  const key = yield* ledger.fingerprintKey
  const inOrder = namedInOrder(job, { key, run_id })
  const { assignments: chosen, partly } = narrowed(inOrder.assignments, asked)
  const assignments = inLine(chosen, accessKey, learnt.carried)
  const sessions = inOrder.sessions.filter((one) => asked === undefined || asked.has(sessionKey(one)))
  const known = yield* KnownSecrets
  holdLogins(known, job, assignments)
  const resolved = yield* resolveReferences(assignmentsBehind(job, assignments))
  const found = yield* forms[by](assignments.map(({ engine_reference }) => engine_reference))
  holdPasswords(known, assignments, found)
  const logins = yield* checkedLogins(job, assignments, found, resolved)
  const { engines, fitted } = yield* fitAssignments(assignments, logins, found)
  const grounds: Grounds = {
    run_id,
    key,
    accounts: new AccountBook(yield* ledger.accounts),
    moment: { now: yield* Clock.currentTimeMillis },
    // Without any experience: the longest that an execution may work.
    expected: (engine) => expectedDuration(learnt.expectations, engine, job.execution.execution_timeout),
    tokens: yield* readShelf(yield* TokenStore),
  }
  const plan = planTasks({ fitted, sessions, engines, grounds })
  return { job, plan, grounds, learnt, partly, unasked: unaskedIn(found) } satisfies JobPlan as JobPlan
})

/** What a plan adds to the ledger: new tasks, and verdicts on tasks that have nothing in progress. */
export const planningFacts = ({ plan }: JobPlan, known: RunState | undefined): ReadonlyArray<Fact> => {
  const { run_id } = plan
  const facts: Array<Fact> = []
  for (const task of [...plan.tasks, ...plan.settled]) {
    const { task_id, fingerprint } = task
    if (known?.tasks.has(task_id) === true) continue
    const outside = "outside" in task ? task.outside : []
    const features = [...task.features.map(({ code }) => code), ...outside]
    const about = { ...accessOf(task), features, ...given({ fingerprint }) }
    facts.push({ _tag: "TaskPlanned", run_id, task_id, ...about })
  }
  for (const { task_id, session_id, customer_id } of plan.sessions) {
    if (known?.tasks.has(task_id) === true) continue
    const about = { session_id, features: [], ...given({ customer_id }) }
    facts.push({ _tag: "TaskPlanned", run_id, task_id, ...about })
  }
  for (const verdict of plan.settled)
    if (isIdle(known?.tasks.get(verdict.task_id))) {
      const { task_id, outcome, reason, who_acts, message } = verdict
      facts.push({ _tag: "TaskSettled", run_id, task_id, outcome, reason, who_acts, message })
    }
  return facts
}

/** Tasks of a run that are not over, and that the job no longer names. */
export const removedTasks = (job: Job, { tasks }: RunState): ReadonlyArray<TaskState> => {
  const named = subjectsOf(job)
  return [...tasks.values()].filter((task) => !named.has(subjectOf(task)) && isOpen(task))
}

/** Verdicts on those of them that are still to be started. */
export const removedFacts = (job: Job, run: RunState): ReadonlyArray<Fact> => {
  const { run_id } = run.started
  const idle = removedTasks(job, run).filter(isIdle)
  return idle.map(({ planned: { task_id } }) => ({
    _tag: "TaskSettled",
    run_id,
    task_id,
    ...own("NOT_IN_JOB"),
  }))
}

const isOpen = ({ settled }: TaskState): boolean =>
  settled === undefined || settled.fact.outcome === "unfinished"

/** What the job names and no run of its date has, parts included: it came after the run was planned. */
export const subjectsAfter = Effect.fnUntraced(function* (job: Job, { started }: RunState) {
  const ledger = yield* Ledger
  const ofDate = (yield* ledger.runs).filter(
    ({ fact }) => fact.job === started.job && fact.run_date === started.run_date,
  )
  const known = newestTasks(yield* statesOf(ledger, ofDate))
  return new Set([...subjectsOf(job)].filter((subject) => !known.has(subject)))
})

/** Where results are read from, unless the run already knows. */
export const sourceFacts = (job: Job, run_id: RunId, known: RunState | undefined): ReadonlyArray<Fact> => {
  const before = (known?.sources ?? builtInSources).filter(({ enabled }) => enabled)
  const now = job.sources.filter(({ enabled }) => enabled)
  return JSON.stringify(before) === JSON.stringify(now)
    ? []
    : [{ _tag: "ResultsSourcesSet", run_id, sources: job.sources }]
}

/** Nothing of it is at the service or waits for a verdict: it can be given one without a start. */
export const isIdle = (task: TaskState | undefined): boolean => {
  if (task === undefined) return true
  if (task.settled === undefined) return task.attempts.length === 0
  const { outcome, reason } = task.settled.fact
  if (outcome !== "unfinished" || reason === "RESULTS_PARTIAL") return false
  return !task.attempts.some(mayRun)
}

/** Every task of the run, with the means to start it if the plan has them. */
export const worksOf = Effect.fnUntraced(function* (planned: JobPlan, run: RunState) {
  const forms = yield* FormCache
  const store = yield* TokenStore
  const known = yield* KnownSecrets
  const tasks = new Map(planned.plan.tasks.map((task) => [task.task_id, task]))
  const windowMs = windowOf(planned.job, run.started_at)
  const works: Array<TaskWork> = []
  const looks = looksOf(planned.learnt, planned.job)
  for (const { planned: about } of run.tasks.values()) {
    const { task_id, customer_id, engine_reference } = about
    if (customer_id === undefined || engine_reference === undefined) continue
    // A customer that the job no longer names is still distinguished by its id.
    known.name([customer_id, engine_reference])
    const task = tasks.get(task_id)
    const subject = { task_id, customer_id, engine_reference }
    if (task === undefined) {
      works.push({ ...subject, looks: looks(subject), fingerprint: undefined, prepare: undefined })
      continue
    }
    const prepare = prepareTask(planned, task, forms, store)
    const times = timesOf(planned.learnt, engine_reference, { job: planned.job, windowMs })
    const asked = given({ asked: planned.learnt.asked.get(accessKey(subject)) })
    works.push({ ...subject, ...times, ...asked, looks: looks(subject), ...loginKeysOf(task), prepare })
  }
  return inStartOrder(works, planned.learnt)
})

/** An engine that was away is checked again before its task starts; then its form may finally be known. */
const prepareTask = (
  planned: JobPlan,
  task: Task,
  forms: FormCache["Service"],
  store: TokenStoreState,
): TaskWork["prepare"] => {
  let current = task
  return Effect.gen(function* () {
    const tokens = yield* readShelf(store, current)
    if (current.availability === "ready") {
      current = withNewToken(current, tokens)
      return yield* readyCall(planned, current, store)
    }
    const seen = yield* fitTask(current).pipe(
      Effect.provideService(FormCache, forms),
      Effect.orElseSucceed(() => seeEngine({ _tag: "Unavailable" }, undefined)),
    )
    const decision = refitTask(current, seen, { ...planned.grounds, tokens })
    if (decision._tag === "Settled") {
      const { outcome, reason, who_acts } = decision.verdict
      return { _tag: "Verdict", verdict: { outcome, reason, who_acts } } satisfies Prepared
    }
    if (decision.task.availability === "unavailable") {
      const { finding } = seen
      const isAway = finding._tag === "Known" || finding._tag === "Unavailable"
      const { detail, retry_after }: Away = isAway ? finding : {}
      return { _tag: "Unavailable", ...given({ detail, retry_after }) } satisfies Prepared as Prepared
    }
    current = decision.task
    return yield* readyCall(planned, current, store)
  })
}

const never = (reason: Reason): Prepared => ({ _tag: "Verdict", verdict: beforeStart(reason) })

const readyCall = Effect.fnUntraced(function* ({ job, partly }: JobPlan, task: Task, store: TokenStoreState) {
  const login = yield* loginOf(task, store)
  if (login === undefined) return never("TOKEN_UNREADABLE")
  const { configurations, hooks_extra_data } = task.start
  // The values of logins are compared when a plan is made; the key of a stored token is known only here.
  if (login._tag === "Token" && holdsSecret(hooks_extra_data, [Redacted.value(login.token_key)]))
    return never("BAD_CONFIGURATIONS")
  const call = {
    ...accessOf(task),
    login,
    configurations,
    hooks_extra_data,
    base_configurations: {
      customer_interaction_available: false,
      // Section 4.1: whole seconds.
      execution_timeout: Math.round(Duration.toSeconds(job.execution.execution_timeout)),
      unlock_protected_data: job.execution.unlock_protected_data,
      tokenized_access:
        task.start.login._tag === "Parameters" &&
        task.start.login.tokenized_access &&
        // A new token covers only the features that were asked for with it.
        !partly.has(accessKey(task)),
    },
    features: task.features.map(({ code, configurations: settings }) =>
      settings === undefined ? code : { code, configurations: settings },
    ),
  } as const
  const behind = parametersBehind(task)
  return {
    _tag: "Ready",
    keys: loginKeysOf(task),
    ...tokenOf(task),
    ...(task.outside.length === 0 ? {} : { outside: task.outside }),
    call,
    ...given({ withParameters: behind && { ...call, login: behind } }),
  } satisfies Prepared
})

export const sessionsToPull = (run: RunState): ReadonlyArray<SessionTask> =>
  [...run.tasks.values()].flatMap(({ planned: { task_id, session_id, customer_id } }) =>
    session_id === undefined ? [] : [{ task_id, session_id, customer_id }],
  )

/** The deadline belongs to the run, whenever it is resumed. */
export const rulesOf = (job: Job, started_at: number, now: number): Rules => ({
  limits: job.concurrency,
  polling: job.polling,
  retry: job.retry,
  max_wait: job.execution.max_wait,
  service: serviceNameOf(job.service),
  sources: job.sources,
  flow_results: job.flow_results,
  deadlineAt: deadlineOf(job, { started_at, now }),
})
