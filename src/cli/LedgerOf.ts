/**
 * The ledger of the output folder for commands that only read: whether there is one, which run is meant,
 * and its state.
 */
import { existsSync } from "node:fs"
import { Effect, Option } from "effect"
import { RunId } from "../service/Ids.ts"
import { suggestion } from "../base/Nearest.ts"
import type { Ledger } from "../ledger/Ledger.ts"
import { nightAround } from "../ledger/WholeNight.ts"
import { outputFolder } from "./CommonFlags.ts"
import { refuse } from "./Failures.ts"
import { lostLedger, refusalOfFile } from "./OutputGuard.ts"
import { Wiring } from "./Wiring.ts"

/** The service; its room is loaded when it is first needed. */
export const openedLedger = Effect.flatMap(
  Effect.promise(() => import("../ledger/Ledger.ts")),
  (room) => room.Ledger,
)

/**
 * A file is no output folder, and an empty ledger in place of a lost one would claim that nothing ever ran:
 * both are refused.
 */
export const refuseLostLedger = Effect.fnUntraced(function* (output: string) {
  const file = refusalOfFile(output)
  if (file !== undefined) return yield* file
  const found = lostLedger(output)
  if (found !== undefined) return yield* refuse("ledger-missing", { output, found })
})

export const hasLedger = Effect.flatMap(outputFolder, (output) =>
  Effect.as(refuseLostLedger(output), existsSync(`${output}/ledger.sqlite`)),
)

/** Exit code 2 if nothing ever ran, or if the ledger of what ran is lost. */
export const requireLedger = Effect.fnUntraced(function* (output: string) {
  yield* refuseLostLedger(output)
  if (existsSync(`${output}/ledger.sqlite`)) return
  return yield* refuse("nothing-ran", { output })
})

/** Runs a read of the ledger; exit code 2 if nothing ever ran. */
export const withLedger = Effect.fnUntraced(function* <A, E, R>(
  look: Effect.Effect<A, E, R | Ledger>,
  access: "read-only" | "read-write" = "read-only",
) {
  const output = yield* outputFolder
  const wiring = yield* Wiring
  yield* requireLedger(output)
  return yield* look.pipe(Effect.provide(wiring.ledger(output, access)))
})

/** Where each job of the output folder was last started from. */
export const knownJobPaths = Effect.gen(function* () {
  const runs = yield* withLedger(Effect.flatMap(openedLedger, (ledger) => ledger.runs))
  return [...new Map(runs.map(({ fact }) => [fact.job, fact.job_path])).values()]
})

/** The state of the named run, or else of the newest one. */
export const findRun = Effect.fnUntraced(function* (named: Option.Option<string>) {
  const ledger = yield* openedLedger
  const ids = (yield* ledger.runs).map(({ fact }) => fact.run_id)
  const run_id = Option.match(named, { onNone: () => ids.at(-1), onSome: RunId.make })
  if (run_id === undefined) return yield* refuse("nothing-ran", { output: yield* outputFolder })
  if (!ids.includes(run_id)) return yield* refuse("run-unknown", { suggestion: suggestion(run_id, ids) })
  const state = yield* ledger.state(run_id)
  return state ?? (yield* refuse("run-incomplete", { run_id }))
})

/** The same run, with all runs of its night. */
export const findNight = Effect.fnUntraced(function* (named: Option.Option<string>) {
  const state = yield* findRun(named)
  return { state, night: yield* nightAround(yield* openedLedger, state) }
})
