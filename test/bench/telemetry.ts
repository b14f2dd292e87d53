/**
 * What telemetry costs: pairs of nights at the same time, one with logs, metrics and traces sent to a collector and
 * one without, so that whatever else the machine does disturbs both alike. Judged by the median of the pairs' CPU time.
 */
import { mkdtempSync, rmSync } from "node:fs"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { median, type BenchOptions, type Benchmark, type Figure, type Measured } from "./Figure.ts"
import { installedCommand } from "./MeasuredProcess.ts"
import { measureNight, sizeOf } from "./night.ts"
import type { NightSize } from "./NightJob.ts"

/** What the project promises, of a night of this size: a small one is mostly start-up. */
const percentMax = 3
const customers = 1_000
const pairsOf = ({ sample, pairs }: BenchOptions): number =>
  pairs === undefined ? (sample ? 1 : 5) : Number(pairs)

/** Takes everything at once: only what sending costs is measured. */
const startCollector = async () => {
  let takenBytes = 0
  const server = createServer((asked, answer) => {
    asked.on("data", (chunk: Buffer) => (takenBytes += chunk.length))
    asked.on("end", () => answer.end("{}"))
  })
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done))
  const stop = (): void => {
    server.closeAllConnections()
    server.close()
  }
  const otlp = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return { otlp, takenBytes: () => takenBytes, stop }
}

interface Pair {
  readonly withoutMs: number
  readonly withMs: number
  readonly requests: number
  readonly sentBytes: number
}

const measurePair = async (command: string, folder: string, size: NightSize) => {
  const collector = await startCollector()
  try {
    const [without, withIt] = await Promise.all([
      measureNight(command, join(folder, "without"), size),
      measureNight(command, join(folder, "with"), { ...size, otlp: collector.otlp }),
    ])
    const complaints = [...without.complaints, ...withIt.complaints]
    if (without.measured === undefined || withIt.measured === undefined) return { complaints }
    const pair: Pair = {
      withoutMs: without.measured.cpuMs,
      withMs: withIt.measured.cpuMs,
      requests: withIt.measured.requests,
      sentBytes: collector.takenBytes(),
    }
    const silent = pair.sentBytes === 0 ? ["the collector received nothing"] : []
    return { pair, complaints: [...complaints, ...silent] }
  } finally {
    collector.stop()
  }
}

const figuresOf = (pairs: ReadonlyArray<Pair>, isJudged: boolean): ReadonlyArray<Figure> => {
  const percents = pairs.map(({ withMs, withoutMs }) => (withMs / withoutMs - 1) * 100)
  const of = (value: (pair: Pair) => number): number => median(pairs.map(value))
  const limit = isJudged ? { limit: { is: "at most", value: percentMax } as const } : {}
  return [
    { name: "CPU time that telemetry adds", value: median(percents), unit: "%", ...limit },
    { name: "in the pair where it added least", value: Math.min(...percents), unit: "%" },
    { name: "in the pair where it added most", value: Math.max(...percents), unit: "%" },
    {
      name: "CPU time with telemetry",
      value: of(({ withMs }) => withMs),
      unit: "ms",
      peer: { name: "without", value: of(({ withoutMs }) => withoutMs) },
    },
    {
      name: "added per request to the service",
      value: of(({ withMs, withoutMs, requests }) => ((withMs - withoutMs) * 1_000) / requests),
      unit: "µs",
    },
    { name: "sent to the collector", value: of(({ sentBytes }) => sentBytes / 1_000), unit: "kB" },
    { name: "pairs", value: pairs.length, unit: "pairs" },
  ]
}

const measurePairs = async (folder: string, options: BenchOptions): Promise<Measured> => {
  const command = await installedCommand()
  const asked = options.customers ?? (options.sample ? undefined : String(customers))
  const size = sizeOf({ ...options, customers: asked })
  const measured: Array<Pair> = []
  const complaints: Array<string> = []
  for (let n = 1; n <= pairsOf(options); n++) {
    const one = await measurePair(command, join(folder, String(n)), size)
    if (one.pair !== undefined) measured.push(one.pair)
    complaints.push(...one.complaints.map((complaint) => `pair ${n}: ${complaint}`))
  }
  if (measured.length === 0) return { figures: [], complaints }
  return { figures: figuresOf(measured, size.customers >= customers), complaints }
}

export const telemetry: Benchmark = {
  name: "telemetry",
  about: "the CPU time of nights with telemetry beside that of the same nights without",
  run: async (options) => {
    const folder = mkdtempSync(join(tmpdir(), "telemetry-"))
    try {
      return await measurePairs(folder, options)
    } finally {
      rmSync(folder, { recursive: true, force: true })
    }
  },
}
