/**
 * `nightjar schedule JOB`: prints or installs what starts this job every night: systemd units, lines for
 * cron, or a CronJob for Kubernetes. The job is read as the timer will read it, without the variables of this
 * shell, so that a timer that would fail is refused now.
 */
import { statSync } from "node:fs"
import { basename, dirname, isAbsolute, relative, resolve } from "node:path"
import { Clock, ConfigProvider, Effect, Option } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { listed } from "../../foundation/Counted.ts"
import { machineZone } from "../../foundation/MachineZone.ts"
import type { Job } from "../../jobs/Job.ts"
import type { Timer } from "../../timers/Timer.ts"
import type { TimerFile } from "../../timers/Systemd.ts"
import { EnvFileFlag, jsonFlag, outputFolder, switchFlag } from "../CommonFlags.ts"
import { refuse } from "../Failures.ts"
import { loadJobs } from "../Jobs.ts"
import { say, sayJson, warn } from "../Output.ts"
import { toolVersion } from "../Version.ts"

const credentialsVariable = "CREDENTIALS_DIRECTORY"
/** Stands for the folder that systemd makes when it starts the service. */
const credentialsFolder = "/run/credentials/nightjar"

type Kind = "systemd" | "cron" | "kubernetes"

const kindOf = (flags: Readonly<Record<Kind, boolean>>): Kind | undefined => {
  const given = (["systemd", "cron", "kubernetes"] as const).filter((kind) => flags[kind])
  return given.length === 1 ? given[0] : undefined
}

/** The variables that a timer of this kind starts with. */
const environmentOf = (kind: Kind) => (kind === "systemd" ? { [credentialsVariable]: credentialsFolder } : {})

const sourcesOf = (job: Job) =>
  Effect.map(
    Effect.promise(() => import("../../jobs/EnvFile.ts")),
    ({ referencesOf }) => referencesOf(job),
  )

/** The job as the timer will load it, and the variables that it asked for. */
const loadAs = Effect.fnUntraced(function* (kind: Kind, path: string) {
  const asked = new Set<string>()
  const inside = kind === "kubernetes"
  const own = yield* ConfigProvider.ConfigProvider
  const used = inside ? own : ConfigProvider.fromEnvRecord(environmentOf(kind))
  const provider = ConfigProvider.make((names) => {
    asked.add(names.join("_"))
    return used.load(names)
  })
  const file = Option.getOrElse(yield* EnvFileFlag, () => resolve(dirname(path), ".env"))
  const [job] = yield* loadJobs([path]).pipe(
    Effect.provideService(ConfigProvider.ConfigProvider, provider),
    Effect.tapError(() => (inside ? Effect.void : warn("timer-environment", { file }))),
  )
  if (job === undefined) return yield* Effect.die("a job that was loaded is one job")
  return { job, asked, file }
})

/** A timer has only the variables of the file: one that the file lacks would fail every night. */
const requireVariables = Effect.fnUntraced(function* (job: Job, file: string) {
  const missing = (yield* sourcesOf(job)).flatMap((one) =>
    one._tag === "Env" && one.file === undefined ? [one.name] : [],
  )
  if (missing.length === 0) return
  const names = listed([...new Set(missing)], 10)
  return yield* refuse("timer-variables-missing", { file, names })
})

const timesOf = Effect.fnUntraced(function* ({ name, night }: Job, at: string | undefined) {
  const { startsOf } = yield* Effect.promise(() => import("../../timers/Timer.ts"))
  if (night !== undefined) {
    if (at !== undefined) return yield* refuse("timer-time-twice", { name, starts: night.starts })
    return startsOf(night)
  }
  if (at === undefined) return yield* refuse("timer-time-missing", { name })
  return [at]
})

const timerOf = Effect.fnUntraced(function* (job: Job, times: ReadonlyArray<string>) {
  const output = resolve(yield* outputFolder)
  const references = yield* sourcesOf(job)
  const under = `${credentialsFolder}/`
  const credentials = references.flatMap((one) =>
    one._tag === "File" && one.path.startsWith(under) ? [one.path.slice(under.length)] : [],
  )
  const startsPrograms = [...references, ...job.notify].some(
    ({ _tag }) => _tag === "Exec" || _tag === "Command",
  )
  return {
    job: job.name,
    job_path: resolve(job.path),
    output,
    env_file: job.env_file === undefined ? undefined : resolve(job.env_file),
    folder: process.cwd(),
    command: [process.execPath, resolve(process.argv[1] ?? "")],
    path: startsPrograms ? process.env["PATH"] : undefined,
    credentials: [...new Set(credentials)],
    times,
    timezone: job.timezone,
    machine_zone: machineZone(),
  } satisfies Timer as Timer
})

/** The files that a job reads, relative to its folder, itself first; a path outside it is refused. */
const filesOf = Effect.fnUntraced(function* (job: Job) {
  const folder = dirname(job.path)
  const { service } = job
  const customers = job.assignments.map(({ source }) => source.replace(/(?::\d+)+$/, ""))
  const referenced = (yield* sourcesOf(job)).flatMap((one) => (one._tag === "File" ? [one.path] : []))
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

const clusterText = Effect.fnUntraced(function* (job: Job, timer: Timer, asked: ReadonlySet<string>) {
  const { kubernetesText } = yield* Effect.promise(() => import("../../timers/Kubernetes.ts"))
  const { makeEnvironment, readEnvFile, variablesOf } = yield* Effect.promise(
    () => import("../../jobs/EnvFile.ts"),
  )
  const file = job.env_file === undefined ? undefined : yield* Effect.option(readEnvFile(job.env_file))
  const environment = makeEnvironment(file === undefined ? undefined : Option.getOrUndefined(file))
  const set = yield* environment.lookUp([...asked].filter((name) => name !== credentialsVariable))
  return kubernetesText({
    timer,
    variables: [...new Set([...set.keys(), ...variablesOf(job)])].toSorted(),
    files: yield* filesOf(job),
    image: `nightjar:${toolVersion}`,
    schemas: job.schemas === undefined ? undefined : relative(dirname(job.path), job.schemas),
  })
})

/** What is printed, as files; and for a user's own machine, what installs them. */
const prepare = Effect.fnUntraced(function* (
  kind: Kind,
  { job, asked }: { readonly job: Job; readonly asked: ReadonlySet<string> },
  timer: Timer,
) {
  if (kind === "kubernetes") {
    const text = yield* clusterText(job, timer, asked)
    return { files: [{ name: `nightjar-${job.name}.yaml`, text }], install: undefined }
  }
  const { installLines, installUnits, userFolders } = yield* Effect.promise(
    () => import("../InstallTimer.ts"),
  )
  if (kind === "cron") {
    const { cronBlock } = yield* Effect.promise(() => import("../../timers/Crontab.ts"))
    const text = cronBlock(timer, yield* Clock.currentTimeMillis)
    return { files: [{ name: "crontab", text }], install: installLines(timer, text) }
  }
  const { systemdUnits } = yield* Effect.promise(() => import("../../timers/Systemd.ts"))
  const { home, units } = userFolders(process.env)
  const envFileBytes = timer.env_file === undefined ? 0 : statSync(timer.env_file).size
  const files = systemdUnits(timer, { envFileBytes, home })
  return { files, install: installUnits(timer, files, units) }
})

const textOf = (files: ReadonlyArray<TimerFile>): string =>
  files.length === 1
    ? files.map(({ text }) => text.trimEnd()).join("")
    : files.map(({ name, text }) => `# ${name}\n${text}`.trimEnd()).join("\n\n")

export const schedule = Command.make(
  "schedule",
  {
    path: Argument.String("JOB").pipe(Argument.withDescription("A job file, such as jobs/demo.yaml")),
    systemd: switchFlag("systemd", "A timer and its services for systemd"),
    cron: switchFlag("cron", "Lines for cron"),
    kubernetes: switchFlag("kubernetes", "A CronJob for Kubernetes"),
    install: switchFlag("install", "Install it for this user, and say how to undo that"),
    at: Flag.String("at").pipe(
      Flag.withMetavar("HH:MM"),
      Flag.withDescription("When a job without `night` runs, in its time zone"),
      Flag.filter(
        (time) => /^(?:[01][0-9]|2[0-3]):[0-5][0-9]$/.test(time),
        () => "a time of day as HH:MM, from 00:00 to 23:59",
      ),
      Flag.optional,
    ),
    json: jsonFlag,
  },
  Effect.fn("Schedule.handle")(function* ({ path, install, at, json, ...kinds }) {
    const kind = kindOf(kinds)
    if (kind === undefined) return yield* refuse("timer-kind-missing")
    if (kind === "kubernetes" && install) return yield* refuse("timer-not-installable")
    // From its own folder on, so that a CronJob can tell what is beside the job.
    const loaded = yield* loadAs(kind, kind === "kubernetes" ? relative("", path) || basename(path) : path)
    const times = yield* timesOf(loaded.job, Option.getOrUndefined(at))
    if (kind !== "kubernetes") yield* requireVariables(loaded.job, loaded.file)
    const prepared = yield* prepare(kind, loaded, yield* timerOf(loaded.job, times))
    if (install && prepared.install !== undefined) return yield* prepared.install
    yield* json ? sayJson(prepared.files) : say(textOf(prepared.files))
  }),
).pipe(
  Command.withShortDescription("Prints or installs the timer of a job"),
  Command.withDescription(
    "Prints a timer for systemd, cron or Kubernetes. It starts the job when its\n  " +
      "`night` starts, and every two hours of it to finish what was interrupted.",
  ),
  Command.withExamples([
    { command: "nightjar schedule jobs/nightly.yaml --systemd", description: "Units for systemd" },
    {
      command: "nightjar schedule jobs/nightly.yaml --cron --install",
      description: "Lines for cron, put into the crontab",
    },
  ]),
)
