/**
 * `schedule JOB…`: prints or installs what starts these jobs every night. They are read as the timer will
 * read them, without the variables of this shell, so that a timer that would fail is refused now.
 */
import { isUtf8 } from "node:buffer"
import { existsSync, readFileSync, statSync } from "node:fs"
import { homedir } from "node:os"
import { basename, dirname, isAbsolute, join, relative, resolve } from "node:path"
import { Clock, ConfigProvider, Duration, Effect, Option, Stream, Struct } from "effect"
import { Command, Flag } from "effect/cli"
import { ChildProcess, ChildProcessSpawner } from "effect/process"
import { codeOf, durableFiles, readWithin } from "../../base/DurableFile.ts"
import { listed } from "../../base/Text.ts"
import { machineZone } from "../../base/Time.ts"
import { helped } from "../CommandRow.ts"
import {
  EnvFileFlag,
  jobArguments,
  jsonFlag,
  only,
  outputFolder,
  say,
  sayJson,
  switchFlag,
  warn,
} from "../Output.ts"
import { refuse, toolVersion } from "../Failures.ts"
import { loadJobs } from "../Jobs.ts"
import * as Timers from "../Timers.ts"
import { makeEnvironment, readEnvFile, referencesOf, variablesOf } from "../../jobs/EnvFile.ts"
import type { Job } from "../../jobs/Job.ts"
import { commandVariables, namedIn } from "../../jobs/Scalars.ts"

const commandTime = Duration.seconds(30)
/** No crontab that a person reads is longer. */
const bytesMax = 1_000_000

interface Called {
  readonly exit_code: number
  readonly stdout: string
  readonly stderr: string
}

/** Fails rather than lose a byte: what was read of a crontab is written back. */
const readAll = <E>(stream: Stream.Stream<Uint8Array, E>) => {
  const readable = Stream.mapError(stream, () => "it cannot be read")
  return readWithin(readable, bytesMax, `it prints more than ${bytesMax} bytes`)
}

const isWell = ({ exit_code }: Called): boolean => exit_code === 0

/** Fails with a reason if the command cannot be started, does not end, or does not end well. */
const call = (command: string, args: ReadonlyArray<string>, input = "", isFine = isWell) =>
  Effect.gen(function* () {
    const { spawn } = yield* ChildProcessSpawner.ChildProcessSpawner
    const stdin = Stream.make(new TextEncoder().encode(input))
    const child = ChildProcess.make(command, [...args], { stdin, forceKillAfter: "1 second" })
    const orUnstarted = Effect.mapError(() => "it cannot be started")
    const handle = yield* orUnstarted(spawn(child))
    const [out, err, exit_code] = yield* Effect.all(
      [readAll(handle.stdout), readAll(handle.stderr), orUnstarted(handle.exitCode)],
      { concurrency: "unbounded" },
    )
    if (!isUtf8(out)) return yield* Effect.fail("it prints what is not UTF-8")
    const called: Called = { exit_code, stdout: out.toString("utf8"), stderr: err.toString("utf8") }
    return isFine(called) ? called : yield* Effect.fail(whyOf(called))
  }).pipe(
    Effect.scoped,
    Effect.timeoutOrElse({
      duration: commandTime,
      orElse: () => Effect.fail(`it did not end within ${Duration.toSeconds(commandTime)} seconds`),
    }),
  )

const whyOf = ({ exit_code, stderr }: Called): string => {
  const said = stderr.trim().split("\n", 1)[0] ?? ""
  return said === "" ? `exit code ${exit_code}` : `exit code ${exit_code}: ${said}`
}

const unitsFolder = (): string =>
  join(process.env["XDG_CONFIG_HOME"] || join(homedir(), ".config"), "systemd/user")

export const installUnits = Effect.fnUntraced(function* (
  timer: Timers.Timer,
  files: ReadonlyArray<Timers.TimerFile>,
  folder: string,
) {
  const written = files.map(({ name, text }) => ({ path: join(folder, name), text }))
  const foreign = written.find(
    ({ path }) => existsSync(path) && !readFileSync(path, "utf8").startsWith(`${Timers.mark}\n`),
  )
  if (foreign !== undefined) return yield* refuse("timer-not-ours", { path: foreign.path })
  const durable = yield* durableFiles
  yield* Effect.try({
    try: () => {
      durable.makeFolder(folder, 0o700)
      for (const { path, text } of written) durable.replace(path, text, 0o600)
    },
    catch: (cause) => refuse("timer-unwritable", { path: folder, why: codeOf(cause) }),
  })
  yield* say(["Written:", ...written.map(({ path }) => `  ${path}`)].join("\n"))
  const unit = Timers.timerUnit(timer)
  for (const args of [["daemon-reload"], ["enable", "--now", unit]]) {
    const command = ["systemctl", "--user", ...args].join(" ")
    yield* call("systemctl", ["--user", ...args]).pipe(
      Effect.mapError((why) => refuse("timer-not-enabled", { command, why })),
    )
  }
  yield* say(
    [
      `${unit} is enabled. It runs while you are logged out only after \`loginctl enable-linger\`.`,
      `To undo: systemctl --user disable --now ${unit}, then delete the files above.`,
    ].join("\n"),
  )
})

export const installLines = Effect.fnUntraced(function* (timer: Timers.Timer, block: string) {
  const failed = (command: string) =>
    Effect.mapError((why: string) => refuse("crontab-unusable", { command, why }))
  // A user who has no crontab yet.
  const isNone = (called: Called) => !isWell(called) && /no crontab/i.test(called.stderr)
  const isKnown = (called: Called) => isWell(called) || isNone(called)
  const found = yield* call("crontab", ["-l"], "", isKnown).pipe(failed("crontab -l"))
  const name = Timers.timerName(timer)
  const crontab = Timers.withBlock(isNone(found) ? "" : found.stdout, name, block)
  if (crontab === undefined) return yield* refuse("timer-lines-damaged", { name })
  yield* call("crontab", ["-"], crontab).pipe(failed("crontab -"))
  yield* say(
    `The crontab now has the lines of ${name}:\n${block}` + "To undo: crontab -e, then delete these lines.",
  )
})

const namesTold = 10
/** Units are files, and a CronJob has 52 characters with its own prefix. */
const nameCharactersMax = { systemd: 200, cron: 200, kubernetes: 43 } as const

const credentialsVariable = "CREDENTIALS_DIRECTORY"
/** Stands for the folder that systemd makes when it starts the service. */
const credentialsFolder = "/run/credentials/nightjar"

type Kind = keyof typeof nameCharactersMax

const loadAs = Effect.fnUntraced(function* (kind: Kind, paths: ReadonlyArray<string>) {
  const asked = new Set<string>()
  const inside = kind === "kubernetes"
  const own = yield* ConfigProvider.ConfigProvider
  const ofTimer = kind === "systemd" ? { [credentialsVariable]: credentialsFolder } : {}
  const used = inside ? own : ConfigProvider.fromEnvRecord(ofTimer)
  const provider = ConfigProvider.make((names) => {
    asked.add(names.join("_"))
    return used.load(names)
  })
  const given = yield* EnvFileFlag
  const fileOf = (path: string) => Option.getOrElse(given, () => resolve(dirname(path), ".env"))
  const file = listed([...new Set(paths.map(fileOf))], namesTold)
  const jobs = yield* loadJobs(paths).pipe(
    Effect.provideService(ConfigProvider.ConfigProvider, provider),
    Effect.tapError(() => (inside ? Effect.void : warn("timer-environment", { file }))),
  )
  return { jobs, asked, fileOf }
})

/** A timer has only the variables of the file: one that the file lacks would fail every night. */
const requireVariables = Effect.fnUntraced(function* (job: Job, file: string) {
  const missing = referencesOf(job).flatMap((one) =>
    one._tag === "Env" && one.file === undefined ? [one.name] : [],
  )
  if (missing.length === 0) return
  const names = listed([...new Set(missing)], namesTold)
  return yield* refuse("timer-variables-missing", { file, names })
})

const timesOf = Effect.fnUntraced(function* (job: Job, at: string | undefined) {
  const { name, night, timezone } = job
  if (night !== undefined && at !== undefined)
    return yield* refuse("timer-time-twice", { name, starts: night.starts })
  const own = night !== undefined ? Timers.startsOf(night) : at === undefined ? [] : [at]
  const [starts] = own
  if (starts === undefined) return yield* refuse("timer-time-missing", { name })
  const times = Timers.withoutGap(own, timezone, yield* Clock.currentTimeMillis)
  return { name, times, timezone, waitMinutes: Timers.waitMinutesOf(starts, job) }
})

/** One timer starts all of its jobs at all of its times. */
const commonTimes = Effect.fnUntraced(function* (jobs: ReadonlyArray<Job>, at: string | undefined) {
  // `--at` is for the jobs without `night`, and one too many only where there are none.
  const isForOthers = jobs.some(({ night }) => night === undefined)
  const atOf = ({ night }: Job) => (isForOthers && night !== undefined ? undefined : at)
  const [first, ...others] = yield* Effect.forEach(jobs, (job) => timesOf(job, atOf(job)))
  if (first === undefined) return yield* Effect.die("a command line names at least one job")
  const timesText = ({ times, timezone }: typeof first) => JSON.stringify([times, timezone])
  const other = others.find((one) => timesText(one) !== timesText(first))
  if (other !== undefined)
    return yield* refuse("timer-nights-differ", { name: first.name, other: other.name })
  const { times, timezone } = first
  const waitMinutes = Math.max(...[first, ...others].map((one) => one.waitMinutes))
  return { times, timezone, waitMinutes, hasNight: at === undefined }
})

const timerOf = (
  output: string,
  jobs: ReadonlyArray<Job>,
  times: Pick<Timers.Timer, "times" | "timezone" | "waitMinutes" | "hasNight">,
): Timers.Timer => {
  const references = jobs.flatMap(referencesOf)
  const under = `${credentialsFolder}/`
  const credentials = references.flatMap((one) =>
    one._tag === "File" && one.path.startsWith(under) ? [one.path.slice(under.length)] : [],
  )
  const startsPrograms = [...references, ...jobs.flatMap(({ notify }) => notify)].some(
    ({ _tag }) => _tag === "Exec" || _tag === "Command",
  )
  // Where they differ, `run` finds the file beside each job.
  const [env_file, ...others] = new Set(jobs.map((job) => job.env_file && resolve(job.env_file)))
  return {
    ...times,
    jobs: jobs.map(({ name }) => name).toSorted(),
    job_paths: jobs.map(({ path }) => resolve(path)),
    output,
    env_file: others.length === 0 ? env_file : undefined,
    folder: process.cwd(),
    // Node would read the file of variables itself if no `--` stood before it.
    command: [process.execPath, "--", resolve(process.argv[1] ?? "")],
    path: startsPrograms ? process.env["PATH"] : undefined,
    credentials: [...new Set(credentials)],
    machine_zone: machineZone(),
  }
}

/** The files that a job reads, relative to a folder, itself first; a path outside it is refused. */
const filesOf = Effect.fnUntraced(function* (job: Job, folder: string) {
  const { service } = job
  const customers = job.assignments.map(({ source }) => source.replace(/(?::\d+)+$/, ""))
  const referenced = referencesOf(job).flatMap((one) => (one._tag === "File" ? [one.path] : []))
  const ofService = service._tag === "Embedded" ? [service.faults, service.reading] : []
  const paths = [job.path, ...customers, ...referenced, ...ofService.filter((path) => path !== undefined)]
  const files = new Set<string>()
  for (const path of paths) {
    const file = relative(folder, path)
    if (isAbsolute(path) || file.startsWith("..")) return yield* refuse("timer-file-outside", { path })
    files.add(file)
  }
  return [...files]
})

const clusterText = Effect.fnUntraced(function* (
  jobs: ReadonlyArray<Job>,
  timer: Timers.Timer,
  asked: ReadonlySet<string>,
) {
  const commands = jobs.flatMap(referencesOf).flatMap((one) => (one._tag === "Exec" ? [one.command] : []))
  const own = new Set([credentialsVariable, ...commandVariables])
  const names = [...asked, ...commands.flatMap(namedIn)].filter((name) => !own.has(name))
  const variables = new Set(jobs.flatMap((job) => [...variablesOf(job)]))
  for (const { env_file } of jobs) {
    const file = env_file === undefined ? undefined : yield* Effect.option(readEnvFile(env_file))
    const environment = makeEnvironment(file === undefined ? undefined : Option.getOrUndefined(file))
    for (const name of (yield* environment.lookUp(names)).keys()) variables.add(name)
  }
  const folder = dirname(jobs[0]?.path ?? "")
  const files = new Set((yield* Effect.forEach(jobs, (job) => filesOf(job, folder))).flat())
  const schemas = new Set(
    jobs.flatMap((job) => (job.schemas === undefined ? [] : [relative(folder, job.schemas)])),
  )
  const text = [...files, ...schemas].find((one) => !Timers.isWritable(one))
  if (text !== undefined) return yield* refuse("timer-text-unwritable", { text: JSON.stringify(text) })
  return Timers.kubernetesText({
    timer,
    variables: [...variables].toSorted(),
    jobs: jobs.map(({ path }) => relative(folder, path)),
    files: [...files],
    image: `nightjar:${toolVersion}`,
    schemas: [...schemas],
  })
})

/** What a crontab, a unit or the limits of a name do not allow is refused before anything is written. */
const requireWritable = Effect.fnUntraced(function* (kind: Kind, timer: Timers.Timer) {
  const { job_paths, output, env_file, folder, command, path, credentials } = timer
  const texts = [...job_paths, output, env_file, folder, ...command, path, homedir(), ...credentials]
  const text = texts.find((one) => one !== undefined && !Timers.isWritable(one))
  if (text !== undefined) return yield* refuse("timer-text-unwritable", { text: JSON.stringify(text) })
  const charactersMax = nameCharactersMax[kind]
  if (Timers.timerName(timer).length > charactersMax)
    return yield* refuse("timer-name-long", { jobs: listed(timer.jobs, namesTold), charactersMax })
})

const prepare = Effect.fnUntraced(function* (
  kind: Kind,
  { jobs, asked }: { readonly jobs: ReadonlyArray<Job>; readonly asked: ReadonlySet<string> },
  timer: Timers.Timer,
) {
  if (kind === "kubernetes") {
    const text = yield* clusterText(jobs, timer, asked)
    return { files: [{ name: `nightjar-${Timers.timerName(timer)}.yaml`, text }], install: undefined }
  }
  if (kind === "cron") {
    const text = Timers.cronBlock(timer, yield* Clock.currentTimeMillis)
    return { files: [{ name: "crontab", text }], install: installLines(timer, text) }
  }
  const envFileBytes = timer.env_file === undefined ? 0 : statSync(timer.env_file).size
  const files = Timers.systemdUnits(timer, { envFileBytes, home: homedir() })
  return { files, install: installUnits(timer, files, unitsFolder()) }
})

const textOf = (files: ReadonlyArray<Timers.TimerFile>): string =>
  files.map(({ name, text }) => (files.length === 1 ? text : `# ${name}\n${text}`).trimEnd()).join("\n\n")

export const schedule = Command.make(
  "schedule",
  {
    paths: jobArguments,
    systemd: switchFlag("systemd", "A timer and its services for systemd"),
    cron: switchFlag("cron", "Lines for cron"),
    kubernetes: switchFlag("kubernetes", "A CronJob for Kubernetes"),
    install: switchFlag("install", "Install it for this user, and say how to undo that"),
    at: Flag.String("at").pipe(
      Flag.withMetavar("HH:MM"),
      Flag.withDescription("When a job without `night` runs, in its time zone"),
      only(
        (time) => /^(?:[01][0-9]|2[0-3]):[0-5][0-9]$/.test(time),
        "a time of day as HH:MM, from 00:00 to 23:59",
      ),
      Flag.optional,
    ),
    json: jsonFlag,
  },
  Effect.fn("schedule.handle")(function* ({ paths, install, at, json, ...kinds }) {
    const [kind, ...others] = Struct.keys(kinds).filter((one) => kinds[one])
    if (kind === undefined || others.length > 0) return yield* refuse("timer-kind-missing")
    if (kind === "kubernetes" && install) return yield* refuse("timer-not-installable")
    // From its own folder on, so that a CronJob can tell what is beside the job.
    const inside = (path: string) => relative("", path) || basename(path)
    const loaded = yield* loadAs(kind, kind === "kubernetes" ? paths.map(inside) : paths)
    const { jobs, fileOf } = loaded
    const times = yield* commonTimes(jobs, Option.getOrUndefined(at))
    if (kind !== "kubernetes") yield* Effect.forEach(jobs, (job) => requireVariables(job, fileOf(job.path)))
    const timer = timerOf(resolve(yield* outputFolder), jobs, times)
    yield* requireWritable(kind, timer)
    const { files, install: installs } = yield* prepare(kind, loaded, timer)
    if (install && installs !== undefined) return yield* installs
    yield* json ? sayJson(files) : say(textOf(files))
  }),
).pipe(
  helped({
    more: `
      For systemd, cron or Kubernetes. The timer starts the jobs when their \`night\` starts, and again
      every two hours while it lasts, to finish what was interrupted. Each start waits for another process
      in the folder.`,
    examples: {
      "nightjar schedule jobs/nightly.yaml --systemd": "Units for systemd",
      "nightjar schedule jobs/nightly.yaml --cron --install": "Lines for cron, put into the crontab",
    },
  }),
)
