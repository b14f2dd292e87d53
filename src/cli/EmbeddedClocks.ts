/**
 * The clocks of the embedded service: time continues from its newest event and never goes back, however
 * fast it runs. Rooms are loaded when a clock is made, as in `main.ts`.
 */
import { Clock, Effect, Layer } from "effect"
import type { Ledger } from "../ledger/Ledger.ts"

/** Time continues from the newest event of the embedded service and the ledger, and never goes back. */
const layer = (speed: number, journal: string | undefined) =>
  Layer.unwrap(
    Effect.gen(function* () {
      const { Ledger } = yield* Effect.promise(() => import("../ledger/Ledger.ts"))
      const { newestEventAt } = yield* Effect.promise(() => import("../sandbox/state/Journal.ts"))
      const { ScaledClock } = yield* Effect.promise(() => import("../base/ScaledClock.ts"))
      const now = yield* Clock.currentTimeMillis
      const happened = journal === undefined ? undefined : yield* newestEventAt(journal)
      const recorded = yield* newestFactAt(yield* Ledger)
      return ScaledClock.layer({ speed, originMs: Math.max(now, happened ?? 0, recorded) })
    }),
  )

const newestFactAt = Effect.fnUntraced(function* (known: Ledger["Service"]) {
  const runs = yield* known.runs
  const open = runs.filter((run, index) => run.ended === undefined || index === runs.length - 1)
  const facts = yield* Effect.forEach(open, ({ fact }) => known.facts(fact.run_id))
  const ends = runs.map(({ newest_at }) => newest_at)
  return Math.max(0, ...ends, ...facts.map((ofRun) => ofRun.at(-1)?.at ?? 0))
})

/** For the service as a server. */
const layerServer = (speed: number, journal: string | undefined) =>
  Layer.unwrap(
    Effect.gen(function* () {
      const { newestEventAt } = yield* Effect.promise(() => import("../sandbox/state/Journal.ts"))
      const { ScaledClock } = yield* Effect.promise(() => import("../base/ScaledClock.ts"))
      const now = yield* Clock.currentTimeMillis
      const happened = journal === undefined ? undefined : yield* newestEventAt(journal)
      return speed === 1 && (happened ?? 0) <= now
        ? Layer.empty
        : ScaledClock.layer({ speed, originMs: Math.max(now, happened ?? 0) })
    }),
  )

export const EmbeddedClock = { layer, layerServer }
