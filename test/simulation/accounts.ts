/**
 * `npm run accounts -- --seeds N [--from K] [--nights M] [--verbose] [--json]`: campaigns of thirty virtual nights with
 * hostile start answers over shared accounts, on all cores. Prints what is wrong with each failing seed and the
 * command that replays it alone, and exits 1 if there is one.
 */
import { availableParallelism } from "node:os"
import { fileURLToPath } from "node:url"
import { parseArgs } from "node:util"
import { isMainThread, parentPort, Worker, workerData } from "node:worker_threads"
import { rules, complaintsOf, type Complaint } from "./AccountsJudge.ts"
import { runAccountNights, type AccountsOutcome } from "./AccountNights.ts"
import { figuresLine } from "../promises/Figure.ts"
import { planAccounts } from "./AccountsPlan.ts"

const nothing = { accounts: 0, starts: 0, logins: 0, processes: 0, storms: 0, held: 0 }
type Counts = typeof nothing

interface Told {
  readonly seed: number
  readonly complaints: ReadonlyArray<Complaint>
  readonly stopped: string | undefined
  readonly summary: string
  readonly seconds: number
  readonly counts: Counts
}

/** What the workers share: the seeds, and how many of them are taken. */
interface Share {
  readonly from: number
  readonly seeds: number
  readonly nights: number
  readonly taken: Int32Array
}

const complaintsShownMax = 8

const countsOf = ({ plan, starts, logins, processes, ends }: AccountsOutcome): Counts => ({
  accounts: new Set(starts.map(({ account }) => account)).size,
  starts: starts.length,
  logins: logins.length,
  processes: processes.length,
  storms: plan.storms.length,
  held: ends.filter(({ reason }) => reason === "LOGIN_UNPROVEN").length,
})

const judged = (seed: number, nights: number): Told => {
  const startedAt = performance.now()
  const seconds = () => (performance.now() - startedAt) / 1_000
  try {
    const outcome = runAccountNights(planAccounts(seed, nights))
    const complaints = complaintsOf(outcome)
    const counts = countsOf(outcome)
    const { accounts, starts, logins } = counts
    const summary = `${accounts} accounts, ${starts} starts, ${logins} logins, hash ${outcome.eventsHash}`
    return { seed, complaints, stopped: undefined, summary, seconds: seconds(), counts }
  } catch (error) {
    const stopped = error instanceof Error ? (error.stack ?? error.message) : JSON.stringify(error)
    return { seed, complaints: [], stopped, summary: "stopped", seconds: seconds(), counts: nothing }
  }
}

const tell = ({ seed, complaints, stopped, summary, seconds }: Told, nights: number, verbose: boolean) => {
  const isWrong = complaints.length > 0 || stopped !== undefined
  if (verbose || isWrong) console.log(`seed ${seed}: ${summary}, ${seconds.toFixed(1)} s`)
  for (const { rule, what } of verbose ? complaints : complaints.slice(0, complaintsShownMax))
    console.log(`  ${rule}: ${what}`)
  if (stopped !== undefined) console.log(`  ${stopped}`)
  if (isWrong) {
    const ofNights = nights === 30 ? "" : ` --nights ${nights}`
    console.log(`  npm run accounts -- --seeds 1 --from ${seed}${ofNights} --verbose`)
  }
}

const runAll = async (
  { from, seeds, nights }: Omit<Share, "taken">,
  { verbose, json }: { readonly verbose: boolean; readonly json: boolean },
) => {
  const startedAt = performance.now()
  let failed = 0
  const failedOf = new Map<string, number>(rules.map((rule) => [rule, 0]))
  const totals: Counts = { ...nothing }
  const hear = (told: Told) => {
    tell(told, nights, verbose)
    for (const what of Object.keys(totals) as ReadonlyArray<keyof Counts>) totals[what] += told.counts[what]
    if (told.complaints.length > 0 || told.stopped !== undefined) failed += 1
    for (const rule of new Set(told.complaints.map((one) => one.rule)))
      failedOf.set(rule, (failedOf.get(rule) ?? 0) + 1)
  }
  const taken = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT))
  await Promise.all(
    Array.from({ length: Math.min(seeds, availableParallelism()) }, () => {
      const share: Share = { from, seeds, nights, taken }
      const worker = new Worker(fileURLToPath(import.meta.url), { workerData: share })
      worker.on("message", hear)
      return new Promise<void>((resolve, reject) => worker.on("exit", () => resolve()).on("error", reject))
    }),
  )
  const seconds = (performance.now() - startedAt) / 1_000
  console.log(
    `${seeds} campaigns of ${nights} nights from seed ${from} in ${seconds.toFixed(1)} s: ` +
      `${totals.accounts} accounts, ${totals.starts} starts, ${totals.logins} logins, ${totals.processes} processes, ${totals.storms} storms, ` +
      `${totals.held} tasks held`,
  )
  for (const [rule, count] of failedOf) console.log(`  ${rule}: ${count} of ${seeds}`)
  console.log(`${seeds - failed} passed, ${failed} failed`)
  if (json) console.log(figuresLine([{ of: "nights of shared accounts", tried: seeds * nights, failed }]))
  process.exitCode = failed > 0 ? 1 : 0
}

if (isMainThread) {
  const { values } = parseArgs({
    options: {
      seeds: { type: "string", default: "100" },
      from: { type: "string", default: "1" },
      nights: { type: "string", default: "30" },
      verbose: { type: "boolean", default: false },
      /** The last line is the figures, for `npm run promises`. */
      json: { type: "boolean", default: false },
    },
  })
  const asked = { from: Number(values.from), seeds: Number(values.seeds), nights: Number(values.nights) }
  await runAll(asked, values)
} else {
  const { from, seeds, nights, taken } = workerData as Share
  for (let next = Atomics.add(taken, 0, 1); next < seeds; next = Atomics.add(taken, 0, 1))
    parentPort?.postMessage(judged(from + next, nights))
}
