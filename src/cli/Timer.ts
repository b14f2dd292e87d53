/**
 * When the machine has to start jobs of one night, and with what: pure. Every kind of timer (systemd, cron,
 * Kubernetes) is written from this one value. The times are the night of the jobs: its start, and further
 * moments within it at which `run` finishes what was cut off, and does nothing if nothing is left. Each start
 * waits for the folder for as long as the night lasts.
 */
import { listed } from "../base/Counted.ts"
import { localTime, nextTimeOfDay } from "../task/LocalTime.ts"

export interface Timer {
  /** Names of the jobs, in alphabetical order. */
  readonly jobs: ReadonlyArray<string>
  /** All paths are absolute. */
  readonly job_paths: ReadonlyArray<string>
  readonly output: string
  readonly env_file: string | undefined
  readonly folder: string
  /** What starts the program: Node and its file, or one command. */
  readonly command: ReadonlyArray<string>
  /** PATH, if a job has commands to run, for its secrets or to notify somebody. */
  readonly path: string | undefined
  /** Names under `${CREDENTIALS_DIRECTORY}` that the jobs read. */
  readonly credentials: ReadonlyArray<string>
  /** Local times of day, `HH:MM`; the first is the start of the night. */
  readonly times: ReadonlyArray<string>
  /** For how long a start waits for another process in the folder. */
  readonly waitMinutes: number
  /** The IANA zone of the jobs, if they have one, and the machine's. */
  readonly timezone: string | undefined
  readonly machine_zone: string
}

/** No job's name has a full stop, so no two timers have the same name. */
export const timerName = ({ jobs }: Pick<Timer, "jobs">): string => jobs.join(".")

const jobsTold = 5
export const runsText = ({ jobs }: Pick<Timer, "jobs">): string =>
  `the ${jobs.length === 1 ? "run" : "runs"} of ${listed(jobs, jobsTold)}`

/** No crontab holds a line break and no unit a last backslash or space, however they are written. */
export const isWritable = (text: string): boolean => !/[\p{Cc}\p{Zl}\p{Zp}]|^\s|[\s\\]$/u.test(text)

const dayMinutes = 24 * 60
/** For a job that does not say when its night ends. */
const waitMinutesDefault = 8 * 60
/** How long after one start the next one follows. */
const everyMinutes = 120
/** A start with less time than this before the end of the night could finish little. */
const leftMinutesMin = 60

const minutesOf = (time: string): number => {
  const [hours = 0, minutes = 0] = time.split(":").map(Number)
  return hours * 60 + minutes
}

const timeOf = (minutes: number): string => {
  const ofDay = minutes % dayMinutes
  return [Math.floor(ofDay / 60), ofDay % 60].map((part) => String(part).padStart(2, "0")).join(":")
}

/** In minutes; a night that ends when it starts is a whole day. */
const lengthOf = (starts: string, until: string): number =>
  (minutesOf(until) - minutesOf(starts) + dayMinutes) % dayMinutes || dayMinutes

/** How long a night that begins at `starts` lasts, in minutes. */
export const waitMinutesOf = (
  starts: string,
  {
    night,
    deadline,
  }: { readonly night?: { readonly until: string } | undefined; readonly deadline?: string | undefined },
): number => {
  const until = night?.until ?? deadline
  return until === undefined ? waitMinutesDefault : lengthOf(starts, until)
}

/** The start of a night and every two hours after it, as long as an hour of the night is left. */
export const startsOf = ({
  starts,
  until,
}: {
  readonly starts: string
  readonly until: string
}): ReadonlyArray<string> => {
  const first = minutesOf(starts)
  const further = Math.max(0, Math.floor((lengthOf(starts, until) - leftMinutesMin) / everyMinutes))
  return Array.from({ length: further + 1 }, (_, index) => timeOf(first + index * everyMinutes))
}

const dayMs = dayMinutes * 60_000
/** On fewer days of a year a time is only a clock change. */
const daysMin = 7

/**
 * The times of day of another zone at which a zone's clocks show `time`, in the year from now: two where the
 * zones do not change their clocks on the same days.
 */
export const timesElsewhere = (
  time: string,
  { from, to, now }: { readonly from: string | undefined; readonly to: string; readonly now: number },
): ReadonlyArray<string> => {
  const days = new Map<string, number>()
  for (let at = now; at < now + 366 * dayMs;) {
    at = nextTimeOfDay(at, time, from)
    const there = localTime(at, to)
    days.set(there, (days.get(there) ?? 0) + 1)
  }
  return [...days]
    .filter(([, count]) => count >= daysMin)
    .map(([there]) => there)
    .toSorted()
}

/** One field of hours for all times with the same minute: `30 0,2,4,22`. */
export const cronFields = (times: ReadonlyArray<string>): ReadonlyArray<string> => {
  const byMinute = Map.groupBy(new Set(times), (time) => minutesOf(time) % 60)
  return [...byMinute].map(([minute, same]) => {
    const hours = same.map((time) => Math.floor(minutesOf(time) / 60)).toSorted((a, b) => a - b)
    return `${minute} ${hours.join(",")} * * *`
  })
}

/** The arguments of the program. */
export const argumentsOf = (
  { job_paths, output, waitMinutes }: Pick<Timer, "job_paths" | "output" | "waitMinutes">,
  env_file: string | undefined,
): ReadonlyArray<string> => [
  "run",
  ...job_paths,
  "--wait",
  `${waitMinutes} minutes`,
  "--output",
  output,
  ...(env_file === undefined ? [] : ["--env-file", env_file]),
  "--no-progress",
]
