/**
 * `npm run simulate -- --seeds N [--from K] [--step S] [--json]`: whole nights in virtual time under faults, on all cores. Prints
 * what is wrong with each failing seed and the command that replays it alone, and exits 1 if there is one.
 */
import { availableParallelism } from "node:os"
import { fileURLToPath } from "node:url"
import { parseArgs } from "node:util"
import { isMainThread, parentPort, Worker, workerData } from "node:worker_threads"
import { families } from "../records/families.ts"
import type { RecordFamily } from "../../src/records/RecordSchema.ts"
import { figuresLine } from "../promises/Figure.ts"
import { promisesObserved, violationsOf } from "./Invariants.ts"
import { neighbourApplication } from "./Neighbour.ts"
import { planNight } from "./SeveralJobs.ts"
import { runSimulatedNight, type NightOutcome } from "./SimulatedNight.ts"

/** What a night was made of, counted. */
const nothing = {
  executions: 0,
  requests: 0,
  processes: 0,
  virtualHours: 0,
  /** Challenges that somebody could answer, all of the neighbour: a night has nobody. */
  challenges: 0,
  tokens: 0,
  tokenRuns: 0,
  deliveries: 0,
  neighbourRuns: 0,
  /** Nights of several jobs, and those whose tables were compared with theirs one after the other. */
  several: 0,
  compared: 0,
}
type Counts = typeof nothing

interface Told {
  readonly seed: number
  readonly complaints: ReadonlyArray<string>
  /** The promises that this night broke; all of them where it stopped before its end. */
  readonly broken: ReadonlyArray<number>
  readonly summary: string
  readonly counts: Counts
}

const countsOf = (night: NightOutcome): Counts => {
  const { executions, tokens, deliveries } = night.truth
  const phases = executions.flatMap((execution) => execution.phases)
  return {
    executions: executions.length,
    requests: night.requests,
    processes: night.processes,
    virtualHours: night.virtualHours,
    challenges: phases.filter(({ challenge }) => challenge !== undefined).length,
    tokens: tokens.length,
    tokenRuns: tokens.reduce((sum, { runs }) => sum + runs.length, 0),
    deliveries: deliveries.length,
    neighbourRuns: executions.filter(({ application }) => application === neighbourApplication).length,
    several: night.plan.jobs.length > 1 ? 1 : 0,
    compared: night.inARow === undefined ? 0 : 1,
  }
}

/** What the workers share: the seeds, and how many of them are taken. */
interface Share {
  readonly from: number
  readonly seeds: number
  /** From one seed to the next. */
  readonly step: number
  readonly taken: Int32Array
}

const violationsShownMax = 10

const simulate = (seed: number, families: ReadonlyArray<RecordFamily>): Told => {
  try {
    const night = runSimulatedNight(planNight(seed), families)
    const { exitCodes, processes, requests, eventsHash } = night
    const violations = violationsOf(night)
    return {
      seed,
      broken: violations.map(({ promise }) => promise),
      complaints: violations
        .slice(0, violationsShownMax)
        .map(({ promise, what }) => `promise ${promise}: ${what}`),
      summary: `exit ${exitCodes.join(",")}, ${processes} processes, ${requests} requests, hash ${eventsHash}`,
      counts: countsOf(night),
    }
  } catch (error) {
    const complaint = error instanceof Error ? (error.stack ?? error.message) : JSON.stringify(error)
    return {
      seed,
      complaints: [complaint],
      broken: promisesObserved,
      summary: "stopped",
      counts: nothing,
    }
  }
}

const runAll = async (
  from: number,
  seeds: number,
  { verbose, json, step }: { verbose: boolean; json: boolean; step: number },
) => {
  const startedAt = performance.now()
  let failed = 0
  const failedOf = new Map(promisesObserved.map((promise) => [promise, 0]))
  const totals: Counts = { ...nothing }
  const hear = (told: Told) => {
    for (const what of Object.keys(totals) as ReadonlyArray<keyof Counts>) totals[what] += told.counts[what]
    if (told.complaints.length > 0) failed += 1
    for (const promise of new Set(told.broken)) failedOf.set(promise, (failedOf.get(promise) ?? 0) + 1)
    if (verbose || told.complaints.length > 0) console.log(`seed ${told.seed}: ${told.summary}`)
    for (const complaint of told.complaints) console.log(`  ${complaint}`)
    if (told.complaints.length > 0)
      console.log(`  npm run simulate -- --seeds 1 --from ${told.seed} --verbose`)
  }
  const workers = Math.min(seeds, availableParallelism())
  // Each worker takes the next seed: nights differ in length.
  const taken = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT))
  await Promise.all(
    Array.from({ length: workers }, () => {
      const worker = new Worker(fileURLToPath(import.meta.url), {
        workerData: { from, seeds, step, taken } satisfies Share,
      })
      worker.on("message", hear)
      return new Promise<void>((resolve, reject) => worker.on("exit", () => resolve()).on("error", reject))
    }),
  )
  const seconds = (performance.now() - startedAt) / 1_000
  console.log(
    `${seeds} nights from seed ${from}: ${totals.executions} executions, ${totals.requests} requests, ` +
      `${totals.processes} processes, ${totals.virtualHours.toFixed(0)} virtual hours in ${seconds.toFixed(1)} s`,
  )
  console.log(
    `${totals.tokens} tokens, ${totals.tokenRuns} runs with them; ${totals.deliveries} webhook deliveries; ` +
      `${totals.neighbourRuns} runs of another application, ${totals.challenges} challenges with somebody to answer; ` +
      `${totals.several} nights of several jobs, ${totals.compared} compared with the same jobs in a row`,
  )
  console.log(`${seeds - failed} passed, ${failed} failed`)
  const byPromise = Object.fromEntries(
    [...failedOf].map(([promise, failures]) => [promise, { tried: seeds, failed: failures }]),
  )
  if (json) console.log(figuresLine([{ of: "simulated nights", tried: seeds, failed, byPromise }]))
  process.exitCode = failed > 0 ? 1 : 0
}

if (isMainThread) {
  const { values } = parseArgs({
    options: {
      seeds: { type: "string", default: "100" },
      from: { type: "string", default: "1" },
      /** Every so manieth seed: from 3 in steps of 5, all nights have several jobs. */
      step: { type: "string", default: "1" },
      verbose: { type: "boolean", default: false },
      /** The last line is the figures, for `npm run promises`. */
      json: { type: "boolean", default: false },
    },
  })
  await runAll(Number(values.from), Number(values.seeds), { ...values, step: Number(values.step) })
} else {
  const { from, seeds, step, taken } = workerData as Share
  for (let next = Atomics.add(taken, 0, 1); next < seeds; next = Atomics.add(taken, 0, 1))
    parentPort?.postMessage(simulate(from + next * step, families))
}
