/**
 * Combines the nightly Parquet files of each table by month: for `compact`, for `prune`, and at the end of
 * each night of a job whose `retain` asks for it. At night it waits for nobody, and a failure costs a
 * warning.
 */
import { Clock, Duration, Effect } from "effect"
import { bytesText } from "../base/BytesText.ts"
import { counted } from "../base/Counted.ts"
import type { Job } from "../jobs/Job.ts"
import { Ledger } from "../ledger/Ledger.ts"
import type { Compacted } from "../tables/Compact.ts"
import { openedStore } from "./LookAtFolder.ts"
import { note, warn } from "./Output.ts"

/** After a year without it, the first night must not spend its morning on it. */
const monthsAtNightMax = 3

/** The folder is already held. Undefined if the job does not ask for it. */
export const compactJob = Effect.fnUntraced(function* (
  output: string,
  { name, retain, share }: Job,
  { isDry, monthsMax }: { readonly isDry: boolean; readonly monthsMax: number },
) {
  if (retain?.compact === undefined) return undefined
  const { compact } = yield* Effect.promise(() => import("../tables/Compact.ts"))
  const ledger = yield* Ledger
  const own = (yield* ledger.runs).filter(({ fact }) => fact.job === name)
  const runs = new Set<string>(own.map(({ fact }) => fact.run_id))
  const overBy = (yield* Clock.currentTimeMillis) - Duration.toMillis(retain.compact)
  return yield* compact(yield* openedStore(output, share), { overBy, runs, isDry, monthsMax })
})

const months = ({ tables }: Compacted): string => {
  const all = [...new Set(tables.map(({ month }) => month))].toSorted()
  return all.length < 2 ? (all[0] ?? "") : `${all[0]} to ${all.at(-1)}`
}

/** What became of how many files, or what would. */
export const compactedText = (done: Compacted): string => {
  const sum = (values: ReadonlyArray<number>) => values.reduce((total, each) => total + each, 0)
  const before = done.tables.map((one) => one.before)
  const after = done.tables.flatMap((one) => one.after ?? [])
  const told = (sizes: typeof before) => {
    const bytes = sum(sizes.map((one) => one.bytes))
    return `${counted(sum(sizes.map(({ files }) => files)), "file")} (${bytesText(bytes)})`
  }
  return after.length === 0
    ? `${months(done)}: ${told(before)} would become ${counted(before.length, "file")}.`
    : `Compacted ${months(done)}: from ${told(before)} to ${told(after)}.`
}

/** Never fails. */
export const compactAfterNight = Effect.fnUntraced(function* (output: string, job: Job) {
  yield* compactJob(output, job, { isDry: false, monthsMax: monthsAtNightMax }).pipe(
    Effect.matchEffect({
      onSuccess: (done) => {
        const [left] = done?.left ?? []
        if (left !== undefined) return warn("compact-failed", { why: left.reason })
        return done === undefined || done.tables.length === 0 ? Effect.void : note(compactedText(done))
      },
      onFailure: ({ message }) => warn("compact-failed", { why: message }),
    }),
  )
})
