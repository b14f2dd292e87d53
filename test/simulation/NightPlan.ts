/**
 * What a simulated night is made of, drawn from its seed: the job, the storms on the network, when the pipeline is
 * killed, when `run` is called again, and who else is about.
 */
import type { Job } from "../../src/jobs/Job.ts"
import type { FaultRates } from "./FaultyNetwork.ts"
import { familyOf } from "../../src/sandbox/executions/PlanResults.ts"
import { Reading, todaysReading } from "../../src/sandbox/state/Reading.ts"
import { builtInSources, type ResultsSource } from "../../src/service/FlowResults.ts"
import { features } from "../../src/service/Vocabulary.ts"
import { requestsAtOnceMax } from "../../src/client/ServicePaced.ts"
import { makeJob, pick } from "./SimulatedJob.ts"

const hour = 3_600_000
const dayMs = 24 * hour
/** Pipelines that one plan may need: crashes, and further runs for what stayed unfinished. */
export const processesMax = 40

/** A small generator of numbers in [0, 1): the same seed, the same night. */
export const seeded = (seed: number): (() => number) => {
  let state = (seed ^ 0x9e3779b9) >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
}

export interface NightPlan {
  readonly seed: number
  /** In the order in which they are given; most nights have one. */
  readonly jobs: ReadonlyArray<Job>
  /** Several jobs, each in a command of its own, and not side by side. */
  readonly isInARow: boolean
  /** Nothing happens to it that would not happen to its jobs one after the other: their tables are compared. */
  readonly isEven: boolean
  /** How many requests may be under way at once. */
  readonly requestsAtOnce: number
  readonly rates: FaultRates
  /** How many events the pipeline lives before each crash, or how many requests it sends. */
  readonly crashes: ReadonlyArray<number>
  readonly crashesCount?: "requests"
  /** When `run` is called, after the beginning, and whether with `--new`. */
  readonly nights: ReadonlyArray<{ readonly atMs: number; readonly further: boolean }>
  /** Wrong wall clocks of the pipeline's processes, in milliseconds. */
  readonly clockOffsets: ReadonlyArray<number>
  /** How much another application does at the same service. */
  readonly neighbourDeeds: number
  /** Whether the pipeline listens for webhooks, and how they fare; undefined without them. */
  readonly webhooks: { readonly lossRate: number; readonly forgeries: number } | undefined
  /** The job has a key: tickets are asked for and tokens kept; one may be revoked between two nights. */
  readonly tokens: boolean
  /** How the service reads what the reference leaves open. */
  readonly reading: Reading
  /** How often a night is taken up again that ended with something left; whatever is left then stays. */
  readonly exitsMax: number
}

type Nights = NightPlan["nights"]
const first = { atMs: 0, further: false }

const plainNights = (later: number): Nights =>
  later < 0.15
    ? [first, { atMs: dayMs, further: false }]
    : later < 0.3
      ? [first, { atMs: hour, further: true }]
      : [first]

/** Nights that use the tokens of the first one, and some after the 90 days of a token's life. */
const tokenNights = (later: number): Nights => [
  first,
  { atMs: dayMs, further: false },
  ...(later < 0.3 ? [{ atMs: 2 * dayMs, further: false }] : []),
  ...(later < 0.15 ? [{ atMs: 91 * dayMs, further: false }] : []),
]

interface ReadingMix {
  readonly reading: Reading
  readonly sources: ReadonlyArray<ResultsSource>
}

const choices = Object.entries(Reading.fields).map(([key, field]) => [key, field.schema.literals] as const)

/** The groups under which the embedded service serves its own kinds of results. */
const groups = [
  ...new Set(
    features.flatMap((code) => familyOf(code)?.kinds.map((kind) => kind.split(":")[0] ?? kind) ?? []),
  ),
]

const kindSource = (group: string): ResultsSource => ({
  name: group,
  enabled: true,
  api: "base_url",
  path: `/executions/results/{execution_id}/${group}/v1/records`,
  families: [`${group}:*`],
  records: ["records"],
  final: "is_final",
  counts: "sub_family",
  nothing: [404],
  attachments: false,
})

/**
 * How the service reads the places where the reference leaves room, and which endpoints the job's results are read from, so
 * that no promise can rest on one reading: some nights have today's reading, some one of their own, and the others several
 * at once.
 */
const mixReadings = (random: () => number): ReadingMix => {
  const kind = random()
  const rate = kind < 0.3 ? 0 : kind < 0.6 ? 0.06 : 0.25
  const drawn = choices.flatMap(([key, values]) => (random() < rate ? [[key, pick(random, values)]] : []))
  const reading: Reading = Object.fromEntries(drawn)
  const { result_kinds, products_count, flow_api } = { ...todaysReading, ...reading }
  const kinds = result_kinds === "present" && random() < 0.7 ? groups.map(kindSource) : []
  // What an engineer would decide who was told that this service counts nothing.
  const counts = products_count !== "shown" && random() < 0.4 ? "none" : "sub_family"
  const enabled = flow_api === "present" || random() < 0.5
  const builtIn = builtInSources.map((source) =>
    source.name === "flow_results" ? { ...source, counts, enabled } : source,
  )
  return { reading, sources: [...builtIn, ...kinds] as ReadonlyArray<ResultsSource> }
}

/** A night of one job. */
export const planOneJob = (seed: number): NightPlan => {
  const random = seeded(seed)
  const storm = random()
  const rate = (most: number) => (storm < 0.25 ? 0 : random() ** 2 * most * (storm < 0.9 ? 1 : 4))
  const rates: FaultRates = {
    refused: rate(0.05),
    lostBefore: rate(0.04),
    lostAfter: rate(0.04),
    throttled: rate(0.05),
    absurd: rate(0.01),
    unavailable: rate(0.05),
    errorBefore: rate(0.03),
    errorAfter: rate(0.03),
    cutBody: rate(0.03),
    dripping: rate(0.02),
  }
  const crashes = Array.from({ length: Math.floor(random() * 6) }, () => Math.floor(random() ** 2 * 60_000))
  const clockOffsets = Array.from({ length: processesMax }, () =>
    random() < 0.05 ? Math.trunc((random() - 0.5) * 60_000) : 0,
  )
  // Every twentieth night is a large one, of some hundred executions; the small ones try more moments in the same time.
  const customers = seed % 20 === 0 ? 60 + Math.floor(random() * 90) : 3 + Math.floor(random() ** 2 * 30)
  const tokens = random() < 0.35
  const { reading, sources } = mixReadings(seeded(seed ^ 0x7f4a7c15))
  const job = { ...makeJob(random, customers, tokens), sources }
  const nights = tokens ? tokenNights(random()) : plainNights(random())
  const neighbourDeeds = random() < 0.5 ? Math.floor(random() * 150) : 0
  const webhooks =
    random() < 0.4
      ? { lossRate: random() ** 2 * 0.5, forgeries: random() < 0.5 ? Math.floor(random() * 400) : 0 }
      : undefined
  return {
    seed,
    jobs: [job],
    isInARow: false,
    isEven: false,
    requestsAtOnce: requestsAtOnceMax,
    rates,
    crashes,
    nights,
    clockOffsets,
    neighbourDeeds,
    webhooks,
    tokens,
    reading,
    exitsMax: seed % 4 === 0 ? 3 : 2,
  }
}
