/**
 * What `run` or `rerun` would do now, without doing it. Which run, its plan, and what becomes of each task
 * are the run's own decisions (`chooseNight`, `planJob`, `takeUp`): a preview says what they say, and
 * why the rest is not started.
 */
import { Clock, Effect } from "effect"
import { ends, own, rowOf, type Reason, type Verdict } from "../service/Ends.ts"
import { asksTooMuch, canBeSeen, lastStartAt, obstaclesOf, startsAt, takeUp, unseenOf } from "../task/Next.ts"
import type { Act, NotStarted as KeptBack, Obstacles } from "../task/Next.ts"
import type { Job } from "../jobs/Job.ts"
import { holdOf } from "../ledger/Accounts.ts"
import { Ledger } from "../ledger/Ledger.ts"
import { verdictOfTask, type RunState, type TaskState } from "../ledger/RunState.ts"
import { isOfWholeJob, newestTasks, nightAround, statesOf } from "../ledger/WholeNight.ts"
import type { Task, TaskVerdict } from "../task/Assignment.ts"
import type { Plan } from "../task/Plan.ts"
import { busyText, chanceOf, thirdText } from "../task/LoginHold.ts"
import { windowOf, type Request } from "../task/ChooseRun.ts"
import { leftElsewhere } from "../task/MovedService.ts"
import { conflictKeys } from "../service/Execution.ts"
import { loginKeysOf } from "../privacy/Fingerprint.ts"
import { accessKey } from "../service/Ids.ts"
import {
  askedBy,
  isIdle,
  planJob,
  removedTasks,
  rulesOf,
  subjectsAfter,
  timesOf,
  type JobPlan,
} from "./PlanJob.ts"
import { chooseNight, readFirst } from "./ChooseNight.ts"
import { followedIn, leftOpenBeside } from "./JobTurns.ts"

export type NotStarted = Pick<TaskVerdict, "task_id" | "customer_id" | "engine_reference" | "message"> &
  Verdict

/** Every task of a plan stands in one of these, unless it came after a night that is over. */
export interface Starts {
  readonly starting: ReadonlyArray<Task>
  /** Their end is in the run already. */
  readonly over: ReadonlyArray<Task>
  /** What they have open is followed, or their results are read, before anything else is known. */
  readonly followed: ReadonlyArray<Task>
  /** Those of them of which the service has nothing: their customer or login is in use there. */
  readonly waiting: ReadonlyArray<Task>
  readonly notStarted: ReadonlyArray<NotStarted>
}

const openText = (until: number): string =>
  `a login to this account may be open until ${new Date(until).toISOString()}; another one is sent then, ` +
  "if the run still has work"

const notStarted = (
  task: Task,
  reason: Reason,
  message: string = ends[reason].preview ?? ends[reason].means,
): NotStarted => {
  const { task_id, customer_id, engine_reference } = task
  return { task_id, customer_id, engine_reference, ...own(reason), message }
}

/** A task that did not finish and is not started again, as its run left it. */
const leftAs = (task: Task, past: TaskState | undefined): ReadonlyArray<NotStarted> => {
  if (past === undefined) return []
  const { outcome, reason, who_acts } = verdictOfTask(past)
  if (outcome !== "unfinished") return []
  const { task_id, customer_id, engine_reference } = task
  return [{ task_id, customer_id, engine_reference, outcome, reason, who_acts, message: rowOf(reason).means }]
}

const keysOf = (task: Task): ReadonlyArray<string> => conflictKeys({ ...task, account: task.account.account })

/** Nothing of the task is at the service. */
const notYet: ReadonlySet<(Act | KeptBack)["_tag"]> = new Set(["Start", "NotStarted"])

/** Pure. `run`: the run that is resumed. */
export const decideStarts = (
  planned: JobPlan,
  run: RunState | undefined,
  obstacles: Obstacles,
  {
    isWhole,
    first,
    read,
  }: {
    readonly isWhole: boolean
    /** Customers, logins and accounts that other runs have in use, whose end is waited for. */
    readonly first: ReadonlySet<string>
    /** Tasks whose executions they read again. */
    readonly read: ReadonlySet<string>
  },
): Starts => {
  const { job, plan, learnt } = planned
  const windowMs = windowOf(job, run?.started_at ?? obstacles.now)
  const starting: Array<Starting> = []
  const over: Array<Task> = []
  const followed: Array<Task> = []
  const waiting: Array<Task> = []
  const others: Array<NotStarted> = []
  for (const task of plan.tasks) {
    const times = timesOf(learnt, task.engine_reference, { job, windowMs })
    const asked = learnt.asked.get(accessKey(task))
    const work = { ...task, ...times, ...loginKeysOf(task), isPlanned: true }
    const past = run?.tasks.get(task.task_id)
    const act = takeUp(work, past, "night", obstacles)
    const until = startsAt({ asked }, past, obstacles.now)
    const isInUse = keysOf(task).some((key) => first.has(key))
    const isWaiting = isInUse && notYet.has(act._tag)
    if (isWaiting) waiting.push(task)
    const left = act._tag === "Done" ? leftAs(task, past) : []
    others.push(...left)
    if (act._tag === "Done") over.push(...(left.length === 0 ? [task] : []))
    else if (isWaiting || read.has(accessKey(task)) || !notYet.has(act._tag)) followed.push(task)
    else if (act._tag === "NotStarted") others.push(notStarted(task, act.reason))
    else if (until > lastStartAt({ ...job.execution, ...obstacles }, obstacles.now))
      others.push({ ...notStarted(task, "SERVICE_UNREACHABLE"), ...asksTooMuch(until) })
    else if (act._tag === "Start" && task.availability === "ready")
      starting.push({ task, attempt: act.attempt })
    else others.push(notStarted(task, "ENGINE_UNAVAILABLE"))
  }
  const { sent, kept } = withoutHeld(starting, planned, isWhole)
  return { starting: sent, over, followed, waiting, notStarted: [...plan.settled, ...others, ...kept] }
}

interface Starting {
  readonly task: Task
  /** It is not in its own way. */
  readonly attempt: number
}

/**
 * An account of which a login may be open gets none until that is over. A third login is sent if another
 * account shows that its engine is well, which one of them does first if all are third logins.
 */
const withoutHeld = (
  starting: ReadonlyArray<Starting>,
  { plan: { run_id }, grounds: { accounts, moment } }: JobPlan,
  isWhole: boolean,
) => {
  const judged = starting.map(({ task, attempt }) => {
    const self = { run_id, task_id: task.task_id, attempt }
    const hold = holdOf(accounts.of(task.account), task.account, { ...moment, self })
    return { task, hold, chance: hold?.why === "third" ? chanceOf(hold, { run_id, isWhole }) : undefined }
  })
  /** Who shows that an engine is well: any other account, or the third login that may go first. */
  const shows = judged.filter(({ hold, chance }) => hold === undefined || chance === "alone")
  const [sent, kept] = [new Array<Task>(), new Array<NotStarted>()]
  for (const { task, hold, chance } of judged) {
    const isBeside = ({ task: other }: { readonly task: Task }) =>
      other.engine_reference === task.engine_reference && other.account.account !== task.account.account
    const isSent =
      chance === undefined || chance === "alone" || (chance === "with_others" && shows.some(isBeside))
    if (hold?.why === "busy")
      kept.push(
        hold.isUnknown
          ? notStarted(task, "START_UNKNOWN", busyText(hold.until))
          : notStarted(task, "ALREADY_EXECUTING", openText(hold.until)),
      )
    else if (isSent) sent.push(task)
    else kept.push(notStarted(task, "START_UNKNOWN", thirdText))
  }
  return { sent, kept }
}

export const notInJob = { ...own("NOT_IN_JOB"), message: "the job no longer names it" }

/** What a resumed run has of customers and sessions that left the job: open, or not started any more. */
const leftTheJob = (job: Job, run: RunState | undefined) => {
  const tasks = run === undefined ? [] : removedTasks(job, run)
  const removed = tasks.filter(isIdle).map(({ planned }) => {
    const { task_id, customer_id, session_id = "", engine_reference = "(session)", features } = planned
    return { task_id, customer_id: customer_id ?? session_id, engine_reference, features, ...notInJob }
  })
  return { removed, leaving: tasks.length - removed.length }
}

/** Of a night that starts nothing more: what is not finished is left as it is, for its own reason. */
const startsOfNight = Effect.fnUntraced(function* (
  { tasks, settled }: Plan,
  run: RunState | undefined,
  added: ReadonlySet<string>,
) {
  const ledger = yield* Ledger
  const night = run === undefined ? [] : yield* nightAround(ledger, run, ledger.state)
  const newest = newestTasks(night)
  const left = tasks.flatMap((task) => leftAs(task, newest.get(accessKey(task))))
  const ids = new Set(left.map(({ task_id }) => task_id))
  const over = tasks.filter((task) => !ids.has(task.task_id) && !added.has(accessKey(task)))
  const starts: Starts = {
    starting: [],
    over,
    followed: [],
    waiting: [],
    notStarted: [...settled, ...left],
  }
  return starts
})

/** Calls the service for its engines and forms, and changes nothing. */
export const previewNight = Effect.fn("Preview.previewNight")(function* (job: Job, request: Request) {
  const ledger = yield* Ledger
  const choice = yield* chooseNight(job, request)
  const { chosen, collect, only } = choice
  const { run_id } = chosen
  const run = yield* ledger.state(run_id)
  // A rerun that is resumed keeps the tasks that it began with.
  const isRerun = chosen._tag === "Resume" && run?.started.parent !== undefined
  const isOver = chosen._tag === "NothingToDo"
  const by = isOver ? "findAll" : "previewAll"
  const planned = yield* planJob(job, run_id, isRerun ? askedBy(run) : only, by)
  const now = yield* Clock.currentTimeMillis
  const rules = rulesOf(job, run?.started_at ?? now, now)
  const unseen = [...(run?.tasks.values() ?? [])].flatMap((task) => unseenOf(task, now))
  const beside = yield* leftOpenBeside(run_id, collect)
  const isSeen = canBeSeen(rules.service)
  const open = [...beside.filter((one) => !isSeen(one)), ...unseen]
  const first = new Set([...(yield* followedIn(collect)), ...beside.filter(isSeen)].flatMap(conflictKeys))
  const read = yield* readFirst(job, choice)
  const isWhole = run === undefined ? only === undefined : isOfWholeJob(run.started)
  const added = isOver && run !== undefined ? yield* subjectsAfter(job, run) : new Set<string>()
  const starts: Starts = isOver
    ? yield* startsOfNight(planned.plan, run, added)
    : decideStarts(planned, run, obstaclesOf(open, rules.deadlineAt, now), { isWhole, first, read })
  const gone = yield* statesOf(
    ledger,
    (yield* ledger.runs).filter(({ fact }) => collect.includes(fact.run_id) || fact.run_id === run_id),
  )
  const elsewhere = gone.flatMap((one) => leftElsewhere(one, rules.service, job.after_export))
  const left = leftTheJob(job, chosen._tag === "Resume" ? run : undefined)
  const { deadlineAt } = rules
  return {
    ...planned,
    plan: isOver ? { ...planned.plan, sessions: [], conflicts: [] } : planned.plan,
    ...starts,
    ...left,
    added: added.size,
    chosen,
    collect,
    elsewhere,
    only,
    read,
    run,
    now,
    deadlineAt,
  }
})
