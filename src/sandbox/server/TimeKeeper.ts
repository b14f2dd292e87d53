/**
 * Keeps time from running backwards over a restart: reads create no event, but what they said must not
 * become untrue. The journal always holds a time that is later than any that was shown.
 */
import { Clock, Effect } from "effect"
import type { SandboxCore } from "../core/SandboxCore.ts"

/** How far ahead time is recorded, and the most that a quick restart skips. */
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
