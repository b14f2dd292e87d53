/**
 * Keeps time from running back over a restart: reads leave no event, but what they told must not become
 * untrue. The journal always holds a time that is later than any that was told.
 */
import { Clock, Effect } from "effect"
import type { SandboxCore } from "../core/SandboxCore.ts"

/** How far ahead time is kept, and the most that a quick restart skips. */
const aheadMs = 1_000

/** Writes at most one line for each second of the service's time; undefined without a journal. */
export const timeKeeperOf = ({ journal }: Pick<SandboxCore, "journal">): Effect.Effect<void> | undefined => {
  if (journal === undefined) return undefined
  let keptUntil = Number.NEGATIVE_INFINITY
  return Effect.map(Clock.currentTimeMillis, (now) => {
    if (now < keptUntil) return
    keptUntil = now + aheadMs
    journal.append([{ _tag: "TimeKept", at: keptUntil }])
  })
}
