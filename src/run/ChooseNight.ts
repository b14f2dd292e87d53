/**
 * What `run` does now, for `run` and `plan` alike: which run it begins or resumes, and what older runs left.
 * If a night was rerun in part, `run` goes on with the tasks that none of its runs has finished.
 */
import { Clock, Effect, Schema } from "effect"
import { given } from "../base/Schemas.ts"
import { RunId } from "../service/Ids.ts"
import { attemptsToReadAgain, next, type Act } from "../task/Next.ts"
import { serviceNameOf, subjectsOf, type Job } from "../jobs/Job.ts"
import { Ledger } from "../ledger/Ledger.ts"
import type { RunHeader } from "../ledger/FoldRun.ts"
import { verdictOfTask, type RunState, type TaskState } from "../ledger/RunState.ts"
import { isOfWholeJob, newestTasks, runsOfNight, statesOf } from "../ledger/WholeNight.ts"
import { chooseRun, isResumable, missedBetween, nextRunId } from "../task/ChooseRun.ts"
import type { Request, RunChoice } from "../task/ChooseRun.ts"
import { askedAgain, type Asked } from "./PlanJob.ts"

export interface NightChoice extends RunChoice {
  /** The run that a new one is a rerun of. */
  readonly parent: string | undefined
  /** What a new run is limited to. */
  readonly only: Asked | undefined
  /** Nights without a run since the one before, oldest first. */
  readonly missed: ReadonlyArray<string>
}

/** What `run` would start if it resumed the run of the task; a start that was lost is left to a person. */
const canStart = (job: Job, runs: ReadonlyArray<RunState>): ReadonlyArray<string> => {
  const named = subjectsOf(job)
  return [...newestTasks(runs)].flatMap(([subject, task]) =>
    named.has(subject) && next(task, "night")._tag === "Start" ? [subject] : [],
  )
}

/** What the collected runs still follow or read: it is not started again before its end is known. */
const stillFollowed = (collect: ReadonlyArray<RunId>, runs: ReadonlyArray<RunState>): ReadonlySet<string> => {
  const isFollowed = (task: TaskState) => {
    const { _tag } = next(task, "collect")
    return collect.includes(task.planned.run_id) && followed.has(_tag)
  }
  return new Set([...newestTasks(runs)].flatMap(([subject, task]) => (isFollowed(task) ? [subject] : [])))
}
/** When a run is collected, a start is a probe for what may be running. */
const followed: ReadonlySet<Act["_tag"]> = new Set(["Start", "Follow", "Read"])

/** What is read again when these runs are collected: it is started again only if that is not all. */
export const readFirst = Effect.fnUntraced(function* (job: Job, choice: NightChoice) {
  const { parent, collect } = choice
  // A night asks anew for what an older one left.
  if (parent === undefined) return new Set<string>()
  const isRead = (task: TaskState) =>
    collect.includes(task.planned.run_id) && attemptsToReadAgain(task).some(({ isEnd }) => isEnd)
  const tasks = [...newestTasks(yield* nightOf(job, choice))]
  return new Set(tasks.flatMap(([subject, task]) => (isRead(task) ? [subject] : [])))
})

const askedOf = (
  runs: ReadonlyArray<RunState>,
  subjects: Iterable<string>,
  collect: ReadonlyArray<RunId>,
): Asked => {
  const notYet = stillFollowed(collect, runs)
  return askedAgain(
    runs,
    [...subjects].filter((subject) => !notYet.has(subject)),
  )
}

/** The job names far fewer customers than the run before: an export that was cut off, or a mistake. */
export class TooFewCustomers extends Schema.TaggedError<TooFewCustomers>()("TooFewCustomers", {
  customers: Schema.Int,
  before: Schema.Int,
  run_id: RunId,
  share: Schema.Finite,
}) {}

const numberOfCustomers = (ids: Iterable<string | undefined>): number =>
  [...new Set(ids)].filter((id) => id !== undefined).length

/** Compared with the newest run that planned something; reruns and parts are not compared. */
const checkShare = Effect.fnUntraced(function* (job: Job, runs: ReadonlyArray<RunHeader>) {
  const { min_customers } = job
  const share = typeof min_customers === "object" ? min_customers.of_last_night : undefined
  if (share === undefined) return
  const ledger = yield* Ledger
  for (const { fact } of runs.toReversed()) {
    if (fact.job !== job.name || !isOfWholeJob(fact)) continue
    const tasks = [...((yield* ledger.state(fact.run_id))?.tasks.values() ?? [])]
    const before = numberOfCustomers(
      tasks.map(({ planned }) => (planned.session_id === undefined ? planned.customer_id : undefined)),
    )
    if (before === 0) continue
    const customers = numberOfCustomers(job.assignments.map(({ customer_id }) => customer_id))
    if (customers >= before * share) return
    return yield* new TooFewCustomers({ customers, before, run_id: fact.run_id, share })
  }
})

/** A job that this one replaces was last run at another service: what it left there is not to be had here. */
export class ReplacedElsewhere extends Schema.TaggedError<ReplacedElsewhere>()("ReplacedElsewhere", {
  job: Schema.String,
  run_id: RunId,
  there: Schema.String,
  here: Schema.String,
}) {}

/** Runs of earlier versions do not say where they were: they may be replaced. */
const checkReplaced = Effect.fnUntraced(function* (job: Job, runs: ReadonlyArray<RunHeader>) {
  const here = serviceNameOf(job.service)
  for (const replaced of job.replaces ?? []) {
    const last = runs.findLast(({ fact }) => fact.job === replaced)?.fact
    if (last?.service === undefined || last.service === here) continue
    const { run_id, service: there } = last
    return yield* new ReplacedElsewhere({ job: replaced, run_id, there, here })
  }
})

export const chooseNight = Effect.fn("ChooseNight.choose")(function* (job: Job, request: Request) {
  const ledger = yield* Ledger
  const runs = yield* ledger.runs
  yield* checkReplaced(job, runs)
  const now = yield* Clock.currentTimeMillis
  const { further, parent, isPart } = request
  const choice = chooseRun({ runs, job, now, ...request })
  if (isPart === true) {
    const only: Asked = new Map([...(request.only ?? [])].map((subject) => [subject, () => true]))
    return { ...choice, parent, only, missed: [] } satisfies NightChoice as NightChoice
  }
  const rest = further ? undefined : yield* restOfNight(job, choice, runs, now)
  if (rest !== undefined) return rest
  if (parent === undefined && choice.chosen._tag !== "NothingToDo") yield* checkShare(job, runs)
  const missed = parent === undefined ? missedNights(job, choice, runs) : []
  const only =
    request.only === undefined
      ? undefined
      : askedOf(yield* nightOf(job, choice), request.only, choice.collect)
  return { ...choice, parent, only, missed } satisfies NightChoice as NightChoice
})

/** The runs of the night that a rerun belongs to. */
const nightOf = Effect.fnUntraced(function* (
  job: Pick<Job, "name">,
  { run_date, part }: Pick<RunChoice, "run_date" | "part">,
) {
  const ledger = yield* Ledger
  return yield* statesOf(
    ledger,
    runsOfNight(yield* ledger.runs, { job: job.name, run_date, ...given({ part }) }),
  )
})

/** Collects older runs, and says what is then still asked for: what they read needs no login any more. */
export const collectBefore = Effect.fnUntraced(function* <A, E, R>(
  job: Job,
  choice: NightChoice,
  collecting: Effect.Effect<A, E, R>,
) {
  const read = yield* readFirst(job, choice)
  const collected = yield* collecting
  const { only, part } = choice
  if (only === undefined || read.size === 0) return { collected, only }
  const runs = yield* nightOf(job, choice)
  const newest = newestTasks(runs)
  const isOver = (subject: string) => {
    const task = newest.get(subject)
    return read.has(subject) && task !== undefined && verdictOfTask(task).outcome === "succeeded"
  }
  const left = [...only].filter(([subject]) => !isOver(subject))
  const subjects = left.map(([subject]) => subject)
  return { collected, only: part === undefined ? askedAgain(runs, subjects) : new Map(left) }
})

/** Only a job with `night` says that there is one each day; a rerun may be of an old one. */
const missedNights = (
  job: Job,
  { run_date, chosen }: RunChoice,
  runs: ReadonlyArray<RunHeader>,
): ReadonlyArray<string> => {
  const last = runs.findLast(({ fact }) => fact.job === job.name && isOfWholeJob(fact))
  return chosen._tag !== "New" || job.night === undefined || last === undefined
    ? []
    : missedBetween(last.fact.run_date, run_date)
}

/** A further run with the tasks of the night that none of its runs has finished, if the newest is a rerun. */
const restOfNight = Effect.fnUntraced(function* (
  job: Job,
  { run_date: today, chosen, collect }: RunChoice,
  runs: ReadonlyArray<RunHeader>,
  now: number,
) {
  if (chosen._tag === "Resume") return
  const ofJob = runs.filter(({ fact }) => fact.job === job.name)
  const newest = ofJob.findLast(({ fact }) => fact.part === undefined)
  if (newest?.fact.parent === undefined) return
  const { run_id: parent, run_date } = newest.fact
  const night = runsOfNight(ofJob, newest.fact)
  const isOfToday =
    job.night === undefined
      ? isResumable(job, newest, night[0], { run_date: today, now })
      : chosen.run_id === newest.fact.run_id
  if (!isOfToday) return
  const states = yield* statesOf(yield* Ledger, night)
  const only = askedOf(states, canStart(job, states), collect)
  if (only.size === 0) return
  const rest: NightChoice = {
    run_date,
    part: undefined,
    chosen: { _tag: "New", run_id: nextRunId(job.name, run_date, ofJob) },
    collect,
    parent,
    only,
    missed: [],
  }
  return rest
})
