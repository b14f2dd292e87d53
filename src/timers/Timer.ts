/**
 * When the machine has to start a job, and with what: pure. Every kind of timer (systemd, cron, Kubernetes)
 * is written from this one value. The times are the job's night: its start, and further moments within it at
 * which `run` finishes what was cut off, and does nothing if nothing is left.
 */
import { localTime, nextTimeOfDay } from "../planning/LocalTime.ts"

export interface Timer {
  /** The job's name. */
  readonly job: string
  /** All paths are absolute. */
  readonly job_path: string
  readonly output: string
  readonly env_file: string | undefined
  readonly folder: string
  /** What starts the program: Node and its file, or one command. */
  readonly command: ReadonlyArray<string>
  /** PATH, if the job has commands to run, for its secrets or to notify somebody. */
  readonly path: string | undefined
  /** Names under `${CREDENTIALS_DIRECTORY}` that the job reads. */
  readonly credentials: ReadonlyArray<string>
  /** Local times of day, `HH:MM`; the first is the start of the night. */
  readonly times: ReadonlyArray<string>
  /** The job's own IANA zone, if it has one, and the machine's. */
  readonly timezone: string | undefined
  readonly machine_zone: string
}

const dayMinutes = 24 * 60
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

/** The start of a night and every two hours after it, as long as an hour of the night is left. */
export const startsOf = ({
  starts,
  until,
}: {
  readonly starts: string
  readonly until: string
}): ReadonlyArray<string> => {
  const first = minutesOf(starts)
  // A night that ends when it starts is a whole day.
  const length = (minutesOf(until) - first + dayMinutes) % dayMinutes || dayMinutes
  const further = Math.max(0, Math.floor((length - leftMinutesMin) / everyMinutes))
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
  { job_path, output }: Pick<Timer, "job_path" | "output">,
  env_file: string | undefined,
): ReadonlyArray<string> => [
  "run",
  job_path,
  "--output",
  output,
  ...(env_file === undefined ? [] : ["--env-file", env_file]),
  "--no-progress",
]
