/**
 * When the machine has to start jobs of one night, and with what: templates for systemd, cron and Kubernetes,
 * and what fills them. The times are the night's start and further moments in it at which `run` resumes what
 * was interrupted. Pure.
 */
import { posix } from "node:path"
import { listed, shellWord } from "../base/Text.ts"
import type { Job } from "../jobs/Job.ts"
import { localTime, nextTimeOfDay } from "../task/ChooseRun.ts"

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
  /** Whether the jobs say when their night is: otherwise a run has the date of the calendar. */
  readonly hasNight: boolean
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

export const waitMinutesOf = (
  starts: string,
  { night, deadline }: Pick<Job, "night" | "deadline">,
): number => {
  const until = night?.until ?? deadline
  return until === undefined ? waitMinutesDefault : lengthOf(starts, until)
}

/** The start of a night and every two hours after it, as long as an hour of the night is left. */
export const startsOf = ({ starts, until }: NonNullable<Job["night"]>): ReadonlyArray<string> => {
  const first = minutesOf(starts)
  const further = Math.max(0, Math.floor((lengthOf(starts, until) - leftMinutesMin) / everyMinutes))
  return Array.from({ length: further + 1 }, (_, index) => timeOf(first + index * everyMinutes))
}

const dayMs = dayMinutes * 60_000
/** On fewer days of a year a time is only a clock change. */
const daysMin = 7

/**
 * The times of day in another zone at which this zone's clocks show `time`, in the year from now: two where
 * they do not change their clocks on the same days.
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

/**
 * The first start, and one an hour later if the clocks skip it on a day of the year: on that day systemd and
 * Kubernetes do not start it at all, and it may be the only one.
 */
export const withoutGap = (
  [first = "", ...further]: ReadonlyArray<string>,
  zone: string | undefined,
  now: number,
): ReadonlyArray<string> => {
  for (let at = now; at < now + 366 * dayMs;) {
    at = nextTimeOfDay(at, first, zone)
    if (localTime(at, zone) !== first) return [first, timeOf(minutesOf(first) + 60), ...further]
  }
  return [first, ...further]
}

/** One field of hours for all times with the same minute: `30 0,2,4,22`. */
export const cronFields = (times: ReadonlyArray<string>): ReadonlyArray<string> => {
  const byMinute = Map.groupBy(new Set(times), (time) => minutesOf(time) % 60)
  return [...byMinute].map(([minute, same]) => {
    const hours = same.map((time) => Math.floor(minutesOf(time) / 60)).toSorted((a, b) => a - b)
    return `${minute} ${hours.join(",")} * * *`
  })
}

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

type Holes = Readonly<Record<string, string | ReadonlyArray<string> | undefined>>

/** A line stands once for each text of a list, and not at all for none. */
const fill = (template: string, holes: Holes): string =>
  template
    .split("\n")
    .flatMap((line) => {
      const names = [...line.matchAll(/\{(\w+)\}/g)].map(([, name = ""]) => name)
      const list = names.find((name) => typeof holes[name] !== "string")
      const withHoles = (text: string, one: string) =>
        text.replaceAll(/\{(\w+)\}/g, (_, name: string) => (name === list ? one : String(holes[name])))
      const values = list === undefined ? [""] : (holes[list] ?? [])
      return (typeof values === "string" ? [values] : values).map((one) => withHoles(line, one))
    })
    .join("\n")

// cron knows one zone, the machine's, and no exit codes: what a line prints is mailed. So a run that needs
// nobody prints nothing.

const beginning = (name: string): string => `# nightjar ${name}: begin (written by \`nightjar schedule\`)`
const end = (name: string): string => `# nightjar ${name}: end`

const cronTemplate = `{begin}
# {times} in {zone}.
# {further}
# cron knows only the machine's zone, {otherZone}: these are its hours in summer and winter.
# {otherHalf}
# Exit codes 0 and 3 print nothing, so cron mails only failures.
{fields} {command}
{end}
`

const lateRun = "In the other half of the year, the first of them is a late run of the night before."
/** A run has the date of the calendar then, and the first one on it is the day's. */
const earlyRun =
  "Without `night`, the first of them on a date is its run: for half of the year an hour early or late."

/** An exit code of 3 is no failure; a `%` would end the command. */
const commandOf = (timer: Timer): string => {
  const { command, env_file, folder, output, path } = timer
  const words = [...command, ...argumentsOf(timer, env_file)].map(shellWord)
  // What a run prints is beside the output folder: that one may not exist yet.
  const log = shellWord(`${output}.log`)
  const failed = `echo "nightjar: ${runsText(timer)} ended with exit code $?, see "${log}`
  const started = `${path === undefined ? "" : `PATH=${shellWord(path)} `}${words.join(" ")} >>${log} 2>&1`
  const guarded = `{ ${started} || case $? in 3) ;; *) ${failed} ;; esac; }`
  return `umask 077 && cd ${shellWord(folder)} && ${guarded}`.replaceAll("%", "\\%")
}

export const cronBlock = (timer: Timer, now: number): string => {
  const { times, timezone: from, machine_zone: to } = timer
  const isElsewhere = from !== undefined && from !== to
  // Several times where the zones of job and machine change their clocks on different days.
  const here = isElsewhere ? times.flatMap((time) => timesElsewhere(time, { from, to, now })) : times
  return fill(cronTemplate, {
    begin: beginning(timerName(timer)),
    times: times.join(", "),
    zone: from ?? to,
    further:
      times.length > 1
        ? ["After the first of them, a run finishes what was cut off, and otherwise does nothing."]
        : [],
    otherZone: isElsewhere ? [to] : [],
    otherHalf: isElsewhere ? [timer.hasNight ? lateRun : earlyRun] : [],
    fields: cronFields(here),
    command: commandOf(timer),
    end: end(timerName(timer)),
  })
}

/** Undefined if the end of the timer's lines is missing: it is unknown which are ours. */
export const withBlock = (crontab: string, name: string, block: string): string | undefined => {
  const lines = crontab.split("\n")
  const first = lines.indexOf(beginning(name))
  const last = lines.indexOf(end(name))
  if (first === -1 && last === -1) {
    const above = crontab === "" || crontab.endsWith("\n") ? crontab : `${crontab}\n`
    return `${above}${block}`
  }
  if (first === -1 || last < first) return undefined
  return [...lines.slice(0, first), ...block.split("\n").slice(0, -1), ...lines.slice(last + 1)].join("\n")
}

export interface TimerFile {
  readonly name: string
  readonly text: string
}

/** The first line of each of our files: only files that begin with it are replaced. */
export const mark = "# Written by `nightjar schedule`; changes are lost when it writes the file again."

const timerTemplate = `${mark}
[Unit]
Description=Nightjar: when it starts {runs}

[Timer]
# {further}
OnCalendar=*-*-* {times}
# If the machine was off, the night starts as soon as it is on again.
Persistent=true

[Install]
WantedBy=timers.target
`

const serviceTemplate = `${mark}
[Unit]
Description=Nightjar: {runs}
OnFailure={alarm}

[Service]
Type=oneshot
WorkingDirectory={folder}
ExecStart={start}
# 3: the run is over, and its summary says who has to act. Anything else but 0 raises the alarm:
# 4 leaves work for the next start, 5 is a night that did not happen, 1, 2 and 6 need you.
SuccessExitStatus=3
# A run that is told to stop saves its state within 20 seconds; the next start resumes it.
TimeoutStopSec=30
UMask=0077
Environment={environment}
LoadCredential={credentials}
`

const alarmTemplate = `${mark}
[Unit]
Description=Nightjar: the alarm of {runs}

[Service]
Type=oneshot
# An error in the journal. Run here what reaches you: a mail, a message, a pager.
ExecStart=/usr/bin/systemd-cat -p err -t nightjar echo {says}
`

/** systemd gives a service no more than this for all its credentials together. */
const credentialBytesMax = 1_000_000

const quoted = (plain: string): string =>
  /^[A-Za-z0-9_\-.,:/@=+%$]+$/.test(plain)
    ? plain
    : `"${plain.replaceAll("\\", "\\\\").replaceAll('"', '\\"')}"`
const specifiers = (text: string): string => text.replaceAll("%", "%%")
/**
 * A word of a command line: systemd expands % and $, and reads quotes and backslashes; in an assignment a $
 * is a $.
 */
const word = (text: string): string => quoted(specifiers(text).replaceAll("$", "$$$$"))

export interface Surroundings {
  readonly envFileBytes: number
  readonly home: string
}

export const timerUnit = (timer: Timer): string => `nightjar-${timerName(timer)}.timer`

/** Exit code 3 is a run that is over: no failure of the machine. */
export const systemdUnits = (
  timer: Timer,
  { envFileBytes, home }: Surroundings,
): ReadonlyArray<TimerFile> => {
  const { folder, command, path, credentials, env_file, times, timezone } = timer
  const runs = runsText(timer)
  const service = `nightjar-${timerName(timer)}.service`
  const alarm = `nightjar-${timerName(timer)}-alarm.service`
  // The file of variables is a credential too, if it is small enough: the service may then run as anybody.
  const isCredential = env_file !== undefined && envFileBytes <= credentialBytesMax
  const variables = env_file === undefined ? [] : ["--env-file", isCredential ? "%d/env" : word(env_file)]
  const start = [...[...command, ...argumentsOf(timer, undefined)].map(word), ...variables]
  const files = {
    [timerUnit(timer)]: fill(timerTemplate, {
      runs,
      further:
        times.length > 1
          ? ["The night, and further starts in it: they finish what was cut off, and otherwise do nothing."]
          : [],
      times: times.map((time) => `${time}:00${timezone === undefined ? "" : ` ${timezone}`}`),
    }),
    [service]: fill(serviceTemplate, {
      runs,
      alarm,
      folder: specifiers(folder),
      start: start.join(" "),
      environment: path === undefined ? [] : [quoted(specifiers(`PATH=${path}`))],
      credentials: [
        ...(isCredential ? [`env:${specifiers(env_file)}`] : []),
        ...credentials.map((name) => specifiers(`${name}:${home}/.config/credstore/${name}`)),
      ],
    }),
    [alarm]: fill(alarmTemplate, {
      runs,
      says: word(`nightjar: ${runs} failed; journalctl --user -u ${service} says why`),
    }),
  }
  return Object.entries(files).map(([name, text]) => ({ name, text }))
}

export interface ClusterJob {
  readonly timer: Timer
  readonly variables: ReadonlyArray<string>
  /** The job files, relative to the folder of the first. */
  readonly jobs: ReadonlyArray<string>
  /** All files that the jobs read, relative to that folder; the job files among them. */
  readonly files: ReadonlyArray<string>
  readonly image: string
  /** Folders of the jobs' own schemas, relative to that folder. */
  readonly schemas: ReadonlyArray<string>
}

const jobFolder = "/etc/nightjar"
const outputVolume = "/var/lib/nightjar"

/**
 * First the commands that create the two Secrets: values of variables, and the files that the jobs read. All
 * starts of a night have the same minute, and none begins later than the next one is due.
 */
const clusterTemplate = `# From the job's folder, before the first run:
#   kubectl create secret generic {name}-files {from}
#   kubectl create secret generic {name}-variables --from-env-file={envFile}
# kubectl takes each line of that file as it is, quotation marks included.{ifVariables}
# The job has schemas of its own: mount the folder {schemas}.
# The volume has to be a disk, not a network file system: the ledger is a database.
apiVersion: v1
kind: PersistentVolumeClaim
metadata: { name: "{name}-output" }
spec: { accessModes: [ReadWriteOnce], resources: { requests: { storage: 20Gi } } }
---
apiVersion: batch/v1
kind: CronJob
metadata: { name: "{name}" }
spec:
  schedule: "{schedule}"
  timeZone: "{zone}"
  concurrencyPolicy: Forbid
  startingDeadlineSeconds: 7200
  successfulJobsHistoryLimit: 3
  failedJobsHistoryLimit: 7
  jobTemplate:
    spec:
      # \`run\` knows what is left to do; a Pod that is started again at once would not.
      backoffLimit: 0
      template:
        spec:
          restartPolicy: Never
          terminationGracePeriodSeconds: 30
          # The user of the image.
          securityContext:
            runAsNonRoot: true
            runAsUser: 10001
            runAsGroup: 10001
            fsGroup: 10001
            fsGroupChangePolicy: OnRootMismatch
            seccompProfile: { type: RuntimeDefault }
          containers:
            - name: nightjar
              image: "{image}"
              command:
                - sh
                - -c
                - |
                  {script}
              env:
                - { name: TZ, value: "{zone}" }
                - { name: {variables}, valueFrom: { secretKeyRef: { name: {secret}, key: {variables} } } }
              securityContext:
                allowPrivilegeEscalation: false
                readOnlyRootFilesystem: true
                capabilities: { drop: [ALL] }
              volumeMounts:
                - { name: job, mountPath: ${jobFolder}, readOnly: true }
                - { name: output, mountPath: ${outputVolume} }
                - { name: tmp, mountPath: /tmp }
          volumes:
            # For its owner only: 0400.
            - { name: job, secret: { secretName: "{name}-files", defaultMode: 256, items: {items} } }
            - { name: output, persistentVolumeClaim: { claimName: "{name}-output" } }
            - { name: tmp, emptyDir: {} }
`

/** Passes a signal on, and makes exit code 3 that of a job that did its work. */
const scriptTemplate = `trap 'kill "$pid"' TERM INT
{command} & pid=$!
wait "$pid"; code=$?
if [ "$code" -gt 128 ] && kill -0 "$pid" 2>/dev/null; then wait "$pid"; code=$?; fi
# 3: the run is over, and its summary says who has to act.
case $code in 3) exit 0 ;; *) exit "$code" ;; esac
`

/** Each file with its key in a Secret, which has fewer characters than a path. */
const keysOf = (files: ReadonlyArray<string>) => {
  const keys = new Set<string>()
  return files.map((path) => {
    const plain = path.replaceAll(/[^-._a-zA-Z0-9]/g, "_")
    let key = plain
    for (let number = 2; keys.has(key); number++) key = `${plain}-${number}`
    keys.add(key)
    return { key, path }
  })
}

export const kubernetesText = ({ timer, variables, jobs, files, image, schemas }: ClusterJob): string => {
  const items = keysOf(files)
  const job_paths = jobs.map((job) => `${jobFolder}/${job}`)
  const inside = argumentsOf({ ...timer, job_paths, output: `${outputVolume}/output` }, undefined)
  const script = fill(scriptTemplate, { command: ["nightjar", ...inside].map(shellWord).join(" ") })
  const hasVariables = variables.length > 0
  return fill(clusterTemplate, {
    name: `nightjar-${timerName(timer)}`,
    from: items.map(({ key, path }) => `--from-file=${shellWord(`${key}=${path}`)}`).join(" "),
    envFile: hasVariables ? [shellWord(timer.env_file ?? ".env")] : [],
    ifVariables: hasVariables ? [""] : [],
    schemas: schemas.map((folder) => `${folder} too, as ${posix.join(jobFolder, folder)}`),
    schedule: cronFields(timer.times).join(),
    zone: timer.timezone ?? timer.machine_zone,
    image,
    // Kubernetes puts the value of a variable where a command says $(NAME).
    script: script.split("$(").join("$$(").trimEnd().split("\n"),
    secret: `nightjar-${timerName(timer)}-variables`,
    // JSON is YAML, too.
    variables: variables.map((name) => JSON.stringify(name)),
    items: JSON.stringify(items),
  })
}
