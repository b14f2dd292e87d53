/**
 * Which run a command works on: pure. A run that was cut off is resumed, a finished one is not repeated,
 * and what older runs left at the service is collected first.
 */
import { DateTime, Option } from "effect"
import { given } from "../base/Schemas.ts"
import { dayMs, isoDay, sumOf } from "../base/Text.ts"
import type { Job } from "../jobs/Job.ts"
import type { RunHeader } from "../ledger/FoldRun.ts"
import { runsOfNight } from "../ledger/WholeNight.ts"
import { exitCodes } from "../messages/ExitCodes.ts"
import { RunId } from "../service/Ids.ts"

// Local dates and times of day: the date of a run and the instant of its deadline, in the job's time zone,
// across daylight saving changes. Pure; the caller passes the time.

/** If the zone is unknown or missing, the machine's is used. */
const zoned = (atMs: number, timezone: string | undefined): DateTime.Zoned => {
  const utc = DateTime.makeUnsafe(atMs)
  const zone = timezone === undefined ? Option.none() : DateTime.zoneMakeNamed(timezone)
  return DateTime.setZone(utc, Option.getOrElse(zone, DateTime.zoneMakeLocal))
}

/** `YYYY-MM-DD` in the zone. */
export const localDate = (atMs: number, timezone: string | undefined): string =>
  DateTime.formatIsoDate(zoned(atMs, timezone))

/** `HH:MM` in the zone. */
export const localTime = (atMs: number, timezone: string | undefined): string => {
  const { hour, minute } = DateTime.toParts(zoned(atMs, timezone))
  return [hour, minute].map((part) => String(part).padStart(2, "0")).join(":")
}

const atTimeOfDay = (day: DateTime.Zoned, days: number, timeOfDay: string): number => {
  const [hour = 0, minute = 0] = timeOfDay.split(":").map(Number)
  const at = DateTime.setParts(DateTime.add(day, { days }), { hour, minute, second: 0, millisecond: 0 })
  return DateTime.toEpochMillis(at)
}

/**
 * The first time after `atMs` at which the clocks of the zone show `HH:MM`; milliseconds since the epoch.
 * If they show it twice in a night, the first one is meant; if they skip it, the moment an hour later.
 */
export const nextTimeOfDay = (atMs: number, timeOfDay: string, timezone: string | undefined): number => {
  const today = zoned(atMs, timezone)
  for (let days = 0; ; days++) {
    const instant = atTimeOfDay(today, days, timeOfDay)
    if (instant > atMs) return instant
  }
}

/** The last time at or before `atMs` at which the clocks show `HH:MM`, by the same rules. */
export const lastTimeOfDay = (atMs: number, timeOfDay: string, timezone: string | undefined): number => {
  const today = zoned(atMs, timezone)
  for (let days = 0; ; days--) {
    const instant = atTimeOfDay(today, days, timeOfDay)
    if (instant <= atMs) return instant
  }
}

// Which night a moment belongs to, and how long that night may start executions: pure. A job with `night` has
// one run for each night. The night keeps its date after midnight and until the next one starts, so that a
// late run never takes the place of the run of the following evening.

/** What a job says about its times. */
export type JobTimes = Pick<Job, "night" | "deadline" | "timezone">

/** All times in milliseconds since the epoch. */
interface LogicalNight {
  /** `YYYY-MM-DD`: the local date on which the night started. */
  readonly date: string
  readonly startsAt: number
  readonly untilAt: number
  readonly nextStartsAt: number
}

const nightOf = (
  atMs: number,
  hours: NonNullable<Job["night"]>,
  timezone: string | undefined,
): LogicalNight => {
  const startsAt = lastTimeOfDay(atMs, hours.starts, timezone)
  return {
    date: localDate(startsAt, timezone),
    startsAt,
    untilAt: nextTimeOfDay(startsAt, hours.until, timezone),
    nextStartsAt: nextTimeOfDay(startsAt, hours.starts, timezone),
  }
}

/** The date of the run that a command means at this moment. */
export const runDateAt = (atMs: number, { night, timezone }: JobTimes): string =>
  night === undefined ? localDate(atMs, timezone) : nightOf(atMs, night, timezone).date

/** Until when a run that cannot reach the service waits for it; undefined if it does not wait. */
export const waitsUntil = (atMs: number, { night, timezone }: JobTimes): number | undefined => {
  const untilAt = night === undefined ? undefined : nightOf(atMs, night, timezone).untilAt
  return untilAt !== undefined && untilAt > atMs ? untilAt : undefined
}

/**
 * When a run stops starting executions; undefined if never. Without `deadline` it is the end of the night. A
 * run that is started or resumed later in its night goes on until the next night starts.
 */
export const deadlineOf = (
  { deadline, night, timezone }: JobTimes,
  run: { readonly started_at: number; readonly now: number },
): number | undefined => {
  if (night === undefined)
    return deadline === undefined ? undefined : nextTimeOfDay(run.started_at, deadline, timezone)
  const { startsAt, nextStartsAt } = nightOf(run.started_at, night, timezone)
  // Clocks that skip the end of a night put it an hour later, which may be in the next night.
  const own = Math.min(nextTimeOfDay(startsAt, deadline ?? night.until, timezone), nextStartsAt)
  return own <= run.now && run.now < nextStartsAt ? nextStartsAt : own
}

/** Until when they may wait for a folder that is in use: later it would be another night's run. */
export const startsPossibleUntil = (jobs: ReadonlyArray<JobTimes>, now: number): number =>
  Math.max(...jobs.map((job) => deadlineOf(job, { started_at: now, now }) ?? Infinity))

/** How long starts are possible in a run that begins when its night does, in milliseconds. */
export const windowOf = (job: JobTimes, started_at: number): number => {
  const beganAt = job.night === undefined ? started_at : nightOf(started_at, job.night, job.timezone).startsAt
  return (deadlineOf(job, { started_at, now: started_at }) ?? Infinity) - beganAt
}

const missedMax = 31

/** The dates between those of two runs, each of which should have had its own; the newest ones if many. */
export const missedBetween = (before: string, run_date: string): ReadonlyArray<string> => {
  const [from, to] = [Date.parse(before), Date.parse(run_date)]
  const days = Math.min(Math.round((to - from) / dayMs) - 1, missedMax)
  return Array.from({ length: Math.max(0, days) }, (_, index) => isoDay(to - (days - index) * dayMs))
}

/** For how long after their own run executions that are kept at the service are read again by later runs. */
const keptReadMaxMs = 30 * 24 * 60 * 60_000

/** An unfinished run younger than this is resumed, whatever its date. */
export const resumeAgeMaxMs = 20 * 60 * 60_000

type ChosenRun =
  | { readonly _tag: "New"; readonly run_id: RunId }
  | { readonly _tag: "Resume"; readonly run_id: RunId }
  /** The run of this date is finished, or its deadline has passed. */
  | { readonly _tag: "NothingToDo"; readonly run_id: RunId }

export interface RunChoice {
  /** The date of the run that is chosen if it is new. */
  readonly run_date: string
  readonly chosen: ChosenRun
  /** The run that its part of the job began with; undefined if it is of a night. */
  readonly part: string | undefined
  /** Runs that start nothing more but have something still at the service, oldest first. */
  readonly collect: ReadonlyArray<RunId>
}

/** Cut off, ended with tasks or deletions that another try can finish, or never begun at the service. */
const isUnfinished = ({ ended }: RunHeader): boolean =>
  ended === undefined || ended.exit_code === exitCodes.leftovers || ended.exit_code === exitCodes.refused

/**
 * Whether `run` may start tasks of an older run again. A job with `night` resumes the run of this night only.
 * Otherwise a run is resumed for some hours, but not after its deadline: nothing more of it would start. A
 * rerun is as old as the first run of its date, so that it never takes the place of the next night's run.
 */
export const isResumable = (
  job: JobTimes,
  { at, fact }: RunHeader,
  first: RunHeader | undefined,
  { run_date, now }: { readonly run_date: string; readonly now: number },
): boolean => {
  if (job.night !== undefined) return fact.run_date === run_date
  const begunAt = fact.parent === undefined ? at : (first?.at ?? at)
  return Math.abs(now - begunAt) < resumeAgeMaxMs && !isPastDeadline(job, at, now)
}

const isPastDeadline = (job: JobTimes, started_at: number, now: number): boolean => {
  const deadlineAt = deadlineOf(job, { started_at, now })
  return deadlineAt !== undefined && deadlineAt <= now
}

export interface Request {
  /** `--new` and `rerun`: another run in any case. */
  readonly further: boolean
  /** The run that it is a rerun of: it belongs to the same night, whenever it begins. */
  readonly parent: string | undefined
  /** What a rerun or a part is limited to, as `subjectOf` names it. */
  readonly only: ReadonlySet<string> | undefined
  /** A part of the job, with all features: a run of its own, which is not the night. */
  readonly isPart?: boolean | undefined
  /** How long the command waited for the folder (milliseconds): it means the night in which it was given. */
  readonly waitedMs?: number | undefined
}

interface ChooseFrom extends Omit<Request, "only" | "parent"> {
  readonly runs: ReadonlyArray<RunHeader>
  readonly job: JobTimes & Pick<Job, "name" | "replaces">
  readonly now: number
  readonly parent?: string | undefined
}

export const chooseRun = ({ runs, job, now, waitedMs = 0, ...request }: ChooseFrom): RunChoice => {
  const ofJob = runs.filter((run) => run.fact.job === job.name)
  const parent = ofJob.find(({ fact }) => fact.run_id === request.parent)?.fact
  const run_date = parent?.run_date ?? runDateAt(now - waitedMs, job)
  const nights = ofJob.filter((run) => run.fact.part === undefined)
  const parents = new Set(nights.flatMap((run) => run.fact.parent ?? []))
  // A date that only a clock that was ahead has reached is still to come: its run takes no night's place.
  const isTimely = (run: RunHeader) =>
    !ofJob.slice(ofJob.indexOf(run) + 1).some(({ at }) => isAhead(run, at)) &&
    isOfNight(job, run, { beganAt: firstOf(ofJob, run).at, now: now - waitedMs })
  const open = nights.findLast((run) => isUnfinished(run) && !parents.has(run.fact.run_id) && isTimely(run))
  const ofDate = ofJob.filter((run) => run.fact.run_date === run_date)
  const newest = nights.findLast((run) => run.fact.run_date === run_date && isTimely(run))
  if (request.isPart === true || parent?.part !== undefined) {
    // A night that goes on later finds its executions and its own plan as they were.
    const parts = ofJob.filter((run) => run.fact.part !== undefined && isToCollect(run, now))
    const run_id = nextRunId(job.name, run_date, ofDate, 2)
    const part = parent?.part ?? run_id
    return { run_date, part, chosen: { _tag: "New", run_id }, collect: parts.map(({ fact }) => fact.run_id) }
  }
  const chosen: ChosenRun = request.further
    ? { _tag: "New", run_id: nextRunId(job.name, run_date, ofDate) }
    : open !== undefined && isResumable(job, open, runsOfNight(ofJob, open.fact)[0], { run_date, now })
      ? { _tag: "Resume", run_id: open.fact.run_id }
      : newest !== undefined && isOver(job, newest, now)
        ? { _tag: "NothingToDo", run_id: newest.fact.run_id }
        : { _tag: "New", run_id: nextRunId(job.name, run_date, ofDate) }
  const startsNothing = (run: RunHeader) =>
    run.fact.run_id !== chosen.run_id || (chosen._tag === "NothingToDo" && isUnfinished(run))
  const collect = runs
    .filter((run) => isCollectedBy(job, run.fact.job) && startsNothing(run) && isToCollect(run, now))
    .map((run) => run.fact.run_id)
  return { run_date, part: undefined, chosen, collect }
}

/** Whether a job collects what runs of another one left: its own, and those of jobs that it replaces. */
export const isCollectedBy = ({ name, replaces = [] }: Pick<Job, "name" | "replaces">, of: string): boolean =>
  of === name || replaces.includes(of)

/** Finished, or nothing more of it can start. */
const isOver = (job: JobTimes, run: RunHeader, now: number): boolean =>
  !isUnfinished(run) || isPastDeadline(job, run.at, now)

/** The run that it repeats, if it is a rerun. */
const firstOf = (runs: ReadonlyArray<RunHeader>, run: RunHeader): RunHeader => {
  const parent = runs.find(({ fact }) => fact.run_id === run.fact.parent)
  return parent === undefined ? run : firstOf(runs, parent)
}

/**
 * A run that began before this night does may have its date: `night` or `timezone` was changed since. Nothing
 * more of it would start. If it is finished and began so late, it took place in the hours that were moved.
 */
const isOfNight = (
  { night, timezone }: JobTimes,
  run: RunHeader,
  { beganAt, now }: { readonly beganAt: number; readonly now: number },
): boolean =>
  night === undefined ||
  beganAt >= nightOf(now, night, timezone).startsAt - (isUnfinished(run) ? 0 : aheadMinMs)

/** Clocks of two machines, or of one that is set, differ by less. */
const aheadMinMs = 60 * 60_000

/** Whether it began later than then; that of an embedded service may go faster. */
export const isAhead = ({ at, fact }: Pick<RunHeader, "at" | "fact">, then: number): boolean =>
  fact.service !== "sandbox" && at - then > aheadMinMs

/** Runs that began later than now, the latest one last: the clock was wrong then, or is now. */
export const runsAhead = (runs: ReadonlyArray<RunHeader>, now: number): ReadonlyArray<RunHeader> =>
  runs.filter((run) => isAhead(run, now)).toSorted((one, other) => one.at - other.at)

/** Whether later runs still ask for what a run left at the service. */
export const isToCollect = ({ at, ended }: RunHeader, now: number): boolean =>
  ended === undefined || ended.leftovers || (ended.kept > 0 && now - at < keptReadMaxMs)

/** The next run finishes what a run left; after so long, more tries do not help. */
const stuckAfterMs = 3 * dayMs

/** Whether it still has something at the service, although it was collected days after it began. */
export const isStuck = ({ at, ended, newest_at }: RunHeader): boolean =>
  ended?.leftovers === true && newest_at - at > stuckAfterMs

/** What runs before a date keep or could not finish at the service, of those that the job collects. */
export const leftByEarlierRuns = (
  runs: ReadonlyArray<RunHeader>,
  job: Pick<Job, "name" | "replaces">,
  run_date: string,
) => {
  const before = runs.filter(({ fact }) => isCollectedBy(job, fact.job) && fact.run_date < run_date)
  const keeping = before.filter(({ ended }) => ended !== undefined && ended.kept > 0)
  const executions = sumOf(keeping.map(({ ended }) => ended?.kept ?? 0))
  const stuck = before.filter(isStuck)
  const oldestOf = ([oldest]: ReadonlyArray<RunHeader>) => oldest && { oldest: oldest.fact.run_id }
  const [kept, left] = [oldestOf(keeping), oldestOf(stuck)]
  return given({
    kept_before: kept && { executions, ...kept },
    stuck_before: left && { runs: stuck.length, ...left },
  })
}

/** `<job>.<date>`, then `.2`, `.3` …; the first one is the night's, whatever ran before it. */
export const nextRunId = (
  job: string,
  run_date: string,
  ofDate: ReadonlyArray<RunHeader>,
  from: 1 | 2 = 1,
): RunId => {
  const taken = new Set(ofDate.map((run) => run.fact.run_id))
  for (let number: number = from; ; number++) {
    const next = RunId.make(`${job}.${run_date}${number === 1 ? "" : `.${number}`}`)
    if (!taken.has(next)) return next
  }
}
