/**
 * A night as its users run it: the bundled command in one process, `nightjar sandbox` in another, real HTTP between
 * them, default polling. CPU time is all that the command used, from its start to its end; it is far steadier than
 * wall time, which is mostly the executions' own. Then the same customers, as a script without any care reads them.
 */
import { mkdirSync, mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Schema } from "effect"
import type { BenchOptions, Benchmark, Figure } from "./Figure.ts"
import { installedCommand, startMeasured, type MeasuredEnd, type Usage } from "./MeasuredProcess.ts"
import { writeNightJob, type NightSize } from "./NightJob.ts"
import { complaintsAbout, readPublished, readServiceSaw, type ServiceSaw } from "./NightProof.ts"

const script = new URL("nightScript.js", import.meta.url).pathname

/** What the project promises of the whole night; a sample is mostly start-up, so only memory is judged there. */
const cpuLimitMs = 25
/** Of a machine that is not small: on such a one the heap is kept smaller. */
const memoryLimitMb = 600

const whole: NightSize = {
  customers: 2_000,
  inFlight: 1_000,
  queueSeconds: 40,
  runSeconds: 10,
  retry: "30 seconds",
}
/** Long enough for all to be in flight at once while something else runs beside it. */
const sample: NightSize = { customers: 12, inFlight: 12, queueSeconds: 3, runSeconds: 1, retry: "100 millis" }

export const sizeOf = (options: BenchOptions): NightSize => {
  const size = options.sample ? sample : whole
  const customers = options.customers === undefined ? size.customers : Number(options.customers)
  return { ...size, customers, inFlight: Math.min(size.inFlight, customers) }
}

const decodeAddress = Schema.decodeUnknownSync(
  Schema.fromJsonString(Schema.Struct({ base_url: Schema.String, flows_url: Schema.String })),
)

const startService = async (command: string, folder: string) => {
  const journal = join(folder, "journal.ndjson")
  const service = startMeasured(
    [command, "sandbox", "--port", "0", "--seed", "7", "--state", journal],
    join(folder, "service.usage"),
  )
  const { base_url, flows_url } = decodeAddress(await service.firstLine)
  const env = {
    NIGHTJAR_BASE_URL: base_url,
    NIGHTJAR_FLOWS_URL: flows_url,
    NIGHTJAR_APP_SECRET: "sandbox-app-1",
  }
  return { ...service, journal, env }
}

const total = (usage: ReadonlyArray<Usage>, of: (one: Usage) => number): number =>
  usage.reduce((sum, one) => sum + of(one), 0)

/** Work that came to its end against a service of its own, and what both saw and used. */
interface Work {
  readonly ended: MeasuredEnd
  readonly saw: ServiceSaw
  readonly requests: number
  /** Of the worker alone: all threads, user and system. */
  readonly cpuMs: number
}

const perExecution = ({ saw }: Work, value: number): number => value / saw.executions

const figuresOf = (size: NightSize, night: Work, bare: Work): ReadonlyArray<Figure> => {
  const { ended, saw, requests, cpuMs } = night
  const judged =
    size.customers === whole.customers ? { limit: { is: "at most", value: cpuLimitMs } as const } : {}
  const beside = (value: number) => ({ peer: { name: "a script without care", value } })
  return [
    {
      name: "pipeline's CPU per execution",
      value: perExecution(night, cpuMs),
      unit: "ms",
      ...beside(perExecution(bare, bare.cpuMs)),
      ...judged,
      aim: "1.5 x",
    },
    {
      name: "peak memory",
      value: total(ended.usage, ({ peak_mb }) => peak_mb),
      unit: "MB",
      limit: { is: "at most", value: memoryLimitMb },
    },
    {
      name: "requests per execution",
      value: perExecution(night, requests),
      unit: "requests",
      ...beside(perExecution(bare, bare.requests)),
    },
    { name: "pipeline's CPU per request", value: (cpuMs * 1_000) / requests, unit: "µs" },
    { name: "executions", value: saw.executions, unit: "executions" },
    { name: "in flight at once", value: saw.inFlightMost, unit: "executions" },
    // No peer: the script makes no second attempts, which take as long as the first.
    { name: "wall time", value: ended.elapsedMs / 1_000, unit: "s" },
  ]
}

/** `args` against a service of its own in `folder`; nothing was measured where a process was killed. */
const work = async (command: string, folder: string, args: ReadonlyArray<string>): Promise<Work | string> => {
  mkdirSync(folder, { recursive: true })
  const serving = await startService(command, folder)
  const ended = await startMeasured(args, join(folder, "work.usage"), serving.env).ended
  serving.stop()
  const service = await serving.ended
  if (ended.usage.length === 0 || service.usage.length === 0)
    return `a process was killed: exit ${ended.code}, ${ended.stderr}`
  const saw = readServiceSaw(serving.journal)
  if (saw.executions === 0) return `nothing was executed: exit ${ended.code}, ${ended.stderr}`
  const requests = total(service.usage, ({ answered }) => Object.values(answered).reduce((a, b) => a + b, 0))
  return { ended, saw, requests, cpuMs: total(ended.usage, ({ cpu_ms }) => cpu_ms) }
}

/** One night in `folder`. */
export const measureNight = async (
  command: string,
  folder: string,
  size: NightSize,
): Promise<{ readonly measured?: Work; readonly complaints: ReadonlyArray<string> }> => {
  const output = join(folder, "output")
  const job = join(folder, "job")
  mkdirSync(job, { recursive: true })
  const expected = writeNightJob(job, size)
  const run = [command, "run", join(job, "night.yaml"), "--output", output, "--no-progress"]
  const measured = await work(command, folder, run)
  if (typeof measured === "string") return { complaints: [measured] }
  const published = await readPublished(output)
  return { measured, complaints: complaintsAbout(expected, measured.ended.code, measured.saw, published) }
}

/** The same customers, after that night. */
const measureScript = (command: string, folder: string, { inFlight }: NightSize) => {
  const place = join(folder, "script")
  const customers = join(folder, "job", "customers.csv")
  return work(command, place, [script, customers, join(folder, "bodies.ndjson"), String(inFlight)])
}

export const night: Benchmark = {
  name: "night",
  about: "2,000 executions, 1,000 in flight, over real HTTP against `nightjar sandbox` in another process",
  run: async (options) => {
    const folder = process.env["BENCH_KEEP"] ?? mkdtempSync(join(tmpdir(), "night-"))
    try {
      const size = sizeOf(options)
      const command = await installedCommand()
      const { measured, complaints } = await measureNight(command, folder, size)
      if (measured === undefined) return { figures: [], complaints }
      const bare = await measureScript(command, folder, size)
      if (typeof bare === "string") return { figures: [], complaints: [...complaints, bare] }
      const { inFlightMost } = measured.saw
      const few = `only ${inFlightMost} of ${size.inFlight} were in flight at once`
      return {
        figures: figuresOf(size, measured, bare),
        complaints: [...complaints, ...(inFlightMost >= size.inFlight ? [] : [few])],
      }
    } finally {
      if (process.env["BENCH_KEEP"] === undefined) rmSync(folder, { recursive: true, force: true })
    }
  },
}
