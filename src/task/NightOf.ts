/**
 * Which night a moment belongs to, and how long that night may start executions: pure. A job with `night` has
 * one run for each night. The night keeps its date after midnight and until the next one starts, so that a
 * late run never takes the place of the run of the following evening.
 */
import type { Job } from "../jobs/Job.ts"
import { lastTimeOfDay, localDate, nextTimeOfDay } from "./LocalTime.ts"

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
  const own = nextTimeOfDay(startsAt, deadline ?? night.until, timezone)
  return own <= run.now && run.now < nextStartsAt ? nextStartsAt : own
}

/**
 * Until when a start of these jobs that finds the folder in use may wait for it: until the last of them would
 * start nothing more. Later it would be another night's run.
 */
export const startsPossibleUntil = (jobs: ReadonlyArray<JobTimes>, now: number): number =>
  Math.max(...jobs.map((job) => deadlineOf(job, { started_at: now, now }) ?? Infinity))

/** How long starts are possible in a run that begins when its night does, in milliseconds. */
export const windowOf = (job: JobTimes, started_at: number): number => {
  const beganAt = job.night === undefined ? started_at : nightOf(started_at, job.night, job.timezone).startsAt
  return (deadlineOf(job, { started_at, now: started_at }) ?? Infinity) - beganAt
}

const dayMs = 24 * 60 * 60_000
const missedMax = 31

/** The dates between those of two runs, each of which should have had its own; the newest ones if many. */
export const missedBetween = (before: string, run_date: string): ReadonlyArray<string> => {
  const [from, to] = [Date.parse(before), Date.parse(run_date)]
  const days = Math.min(Math.round((to - from) / dayMs) - 1, missedMax)
  return Array.from({ length: Math.max(0, days) }, (_, index) =>
    new Date(to - (days - index) * dayMs).toISOString().slice(0, 10),
  )
}
