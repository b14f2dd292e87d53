/**
 * A campaign over many seeds on all cores, as a script runs it: what is wrong with each failing seed is printed with the
 * command that replays it alone, and there is one exit code, 1 if any failed.
 */
import { availableParallelism } from "node:os"
import { fileURLToPath } from "node:url"
import { isMainThread, parentPort, Worker, workerData } from "node:worker_threads"

interface Judged<Rule, Counts> {
  readonly complaints: ReadonlyArray<string>
  readonly broken: ReadonlyArray<Rule>
  readonly summary: string
  /** What it was made of; of all seeds together it is the sum. */
  readonly counts: Counts
}

interface Campaign<Rule, Counts> {
  /** The script's own URL: each worker runs it too, with the same arguments. */
  readonly script: string
  readonly from: number
  readonly seeds: number
  /** From one seed to the next. */
  readonly step: number
  readonly verbose: boolean
  readonly judge: (seed: number) => Judged<Rule, Counts>
  /** Every rule; those that count as broken by a seed that stopped before its end. */
  readonly rules: ReadonlyArray<Rule>
  readonly brokenByStop: ReadonlyArray<Rule>
  /** The arguments that replay a seed. */
  readonly replay: (seed: number) => string
}

const complaintsShownMax = 10

const judgeOne = <Rule, Counts>({ judge, brokenByStop }: Campaign<Rule, Counts>, seed: number) => {
  try {
    return judge(seed)
  } catch (error) {
    const complaint = error instanceof Error ? (error.stack ?? error.message) : JSON.stringify(error)
    return { complaints: [complaint], broken: brokenByStop, summary: "stopped", counts: {} }
  }
}

/** Of nothing, none fails: a count that cannot be read must not look like a campaign that passed. */
export const countOf = (name: string, value: string): number => {
  const count = Number(value)
  if (!Number.isSafeInteger(count) || count < 0) throw new Error(`--${name} is no count: ${value}`)
  return count
}

/** Undefined in a worker: it has told its seeds, and its script has nothing more to do. */
export const trySeeds = async <Rule, Counts extends Readonly<Record<string, number>>>(
  campaign: Campaign<Rule, Counts>,
) => {
  const { script, from, seeds, step, verbose, rules, replay } = campaign
  if (!isMainThread) {
    // Each worker takes the next seed: they differ in length.
    for (let next = Atomics.add(workerData, 0, 1); next < seeds; next = Atomics.add(workerData, 0, 1)) {
      const seed = from + next * step
      parentPort?.postMessage({ seed, ...judgeOne(campaign, seed) })
    }
    return undefined
  }
  const startedAt = performance.now()
  let failed = 0
  const failedOf = new Map(rules.map((rule) => [rule, 0]))
  const totals: Record<string, number> = {}
  const hear = ({ seed, complaints, broken, summary, counts }: Judged<Rule, Counts> & { seed: number }) => {
    for (const [what, count] of Object.entries(counts)) totals[what] = (totals[what] ?? 0) + count
    for (const rule of new Set(broken)) failedOf.set(rule, (failedOf.get(rule) ?? 0) + 1)
    const isWrong = complaints.length > 0
    if (isWrong) failed += 1
    if (verbose || isWrong) console.log(`seed ${seed}: ${summary}`)
    for (const complaint of verbose ? complaints : complaints.slice(0, complaintsShownMax))
      console.log(`  ${complaint}`)
    if (isWrong) console.log(`  ${replay(seed)} --verbose`)
  }
  const taken = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT))
  await Promise.all(
    Array.from({ length: Math.min(seeds, availableParallelism()) }, () => {
      const worker = new Worker(fileURLToPath(script), { workerData: taken, argv: process.argv.slice(2) })
      worker.on("message", hear)
      return new Promise<void>((resolve, reject) => worker.on("exit", () => resolve()).on("error", reject))
    }),
  )
  process.exitCode = failed > 0 ? 1 : 0
  const total = (what: keyof Counts & string): number => totals[what] ?? 0
  return { failed, failedOf, total, seconds: (performance.now() - startedAt) / 1_000 }
}
