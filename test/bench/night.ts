/**
 * A night as its users run it: the bundled command in one process, `nightjar sandbox` in another, real HTTP between
 * them, default polling. CPU time is all that the command used, from its start to its end; it is far steadier than
 * wall time, which is mostly the executions' own.
 */
import { mkdirSync, mkdtempSync, rmSync } from "node:fs"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Schema } from "effect"
import { installCommand } from "../faults/NightjarCommand.ts"
import type { BenchOptions, Benchmark, Figure, Measured } from "./Figure.ts"
import { startMeasured } from "./MeasuredProcess.ts"
import type { MeasuredEnd, Usage } from "./MeasuredProcess.ts"
import { writeNightJob } from "./NightJob.ts"
import type { NightSize } from "./NightJob.ts"
import { complaintsAbout, readPublished, readServiceSaw } from "./NightProof.ts"
import type { ServiceSaw } from "./NightProof.ts"

/** What the project promises of the whole night; a sample is mostly start-up, so only memory is judged there. */
const cpuLimitMs = 25
const memoryLimitMb = 400

const whole: NightSize = {
  customers: 2_000,
  inFlight: 1_000,
  queueSeconds: 40,
  runSeconds: 10,
  retry: "30 seconds",
}
const sample: NightSize = { customers: 40, inFlight: 40, queueSeconds: 1, runSeconds: 1, retry: "100 millis" }

const sizeOf = (options: BenchOptions): NightSize => {
  const size = options.sample ? sample : whole
  const customers = options.customers === undefined ? size.customers : Number(options.customers)
  return { ...size, customers, inFlight: Math.min(size.inFlight, customers) }
}

/** Takes everything at once: only what sending costs is measured. */
const startCollector = async () => {
  const server = createServer((asked, answer) => asked.resume().on("end", () => answer.end("{}")))
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done))
  const stop = (): void => {
    server.closeAllConnections()
    server.close()
  }
  return { otlp: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, stop }
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

const figuresOf = (
  size: NightSize,
  night: MeasuredEnd,
  service: MeasuredEnd,
  saw: ServiceSaw,
): ReadonlyArray<Figure> => {
  const requests = total(service.usage, ({ answered }) => Object.values(answered).reduce((a, b) => a + b, 0))
  const cpuMs = total(night.usage, ({ cpu_ms }) => cpu_ms)
  const serviceMs = total(service.usage, ({ cpu_ms }) => cpu_ms)
  const judged =
    size.customers === whole.customers ? { limit: { is: "at most", value: cpuLimitMs } as const } : {}
  const each = { unit: "ms", peer: { name: "the service's own", value: serviceMs / saw.executions } }
  return [
    { name: "pipeline's CPU per execution", value: cpuMs / saw.executions, ...each, ...judged },
    {
      name: "peak memory",
      value: total(night.usage, ({ peak_mb }) => peak_mb),
      unit: "MB",
      limit: { is: "at most", value: memoryLimitMb },
    },
    { name: "requests per execution", value: requests / saw.executions, unit: "requests" },
    { name: "pipeline's CPU per request", value: (cpuMs * 1_000) / requests, unit: "µs" },
    { name: "executions", value: saw.executions, unit: "executions" },
    { name: "in flight at once", value: saw.inFlightMost, unit: "executions" },
    { name: "wall time", value: night.elapsedMs / 1_000, unit: "s" },
  ]
}

const measureNight = async (folder: string, size: NightSize): Promise<Measured> => {
  const command = await installCommand(join(folder, "command"))
  const output = join(folder, "output")
  const job = join(folder, "job")
  mkdirSync(job)
  const expected = writeNightJob(job, size)
  const service = await startService(command, folder)
  const run = [command, "run", join(job, "night.yaml"), "--output", output, "--no-progress"]
  const night = await startMeasured(run, join(folder, "night.usage"), service.env).ended
  service.stop()
  const served = await service.ended
  if (night.usage.length === 0 || served.usage.length === 0)
    return { figures: [], complaints: [`a process was killed: exit ${night.code}, ${night.stderr}`] }
  const saw = readServiceSaw(service.journal)
  if (saw.executions === 0)
    return { figures: [], complaints: [`nothing was executed: exit ${night.code}, ${night.stderr}`] }
  const published = await readPublished(output)
  return {
    figures: figuresOf(size, night, served, saw),
    complaints: complaintsAbout(expected, size.inFlight, night.code, saw, published),
  }
}

export const night: Benchmark = {
  name: "night",
  about: "2,000 executions, 1,000 in flight, over real HTTP against `nightjar sandbox` in another process",
  run: async (options) => {
    const folder = process.env["BENCH_KEEP"] ?? mkdtempSync(join(tmpdir(), "night-"))
    const collector = options.telemetry ? await startCollector() : undefined
    try {
      return await measureNight(folder, { ...sizeOf(options), ...(collector && { otlp: collector.otlp }) })
    } finally {
      collector?.stop()
      if (process.env["BENCH_KEEP"] === undefined) rmSync(folder, { recursive: true, force: true })
    }
  },
}
