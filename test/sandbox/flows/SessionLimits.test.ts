/** Section 8 is one rule: sessions behind executions are read under the limit and the lock of any other. */
import { expect } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { Sandbox } from "../../../src/sandbox/server/Sandbox.ts"
import { ofTheService } from "../server/BothWays.ts"
import { Caller, textField } from "../server/Caller.ts"

/** Reads the session of one execution after each of these waits. */
const readAfter = (words: string, seconds: ReadonlyArray<number>) =>
  Effect.gen(function* () {
    const caller = yield* Caller
    const session = textField(yield* caller.start(`queue-0+run-0+${words}`), "session_id")
    const statuses: Array<number> = []
    for (const wait of seconds) {
      yield* TestClock.adjust(`${wait} seconds`)
      statuses.push((yield* caller.results(session)).status)
    }
    const [seen] = (yield* (yield* Sandbox).truth).executions
    return { statuses, seen }
  })

ofTheService("the session of an execution", (told) => {
  told(
    "[readFlowResults 429] [flow-error 4] [limit 1] can be read once in five seconds",
    Effect.gen(function* () {
      const { statuses } = yield* readAfter("ok", [0, 0, 4.999, 0.001, 5, 2.5, 2.5])
      expect(statuses).toEqual([200, 429, 429, 200, 200, 429, 200])
    }),
  )

  told(
    "[readFlowResults 504] [flow-error 5] [limit 2] is locked for a while, and a read then counts as a request",
    Effect.gen(function* () {
      const { statuses, seen } = yield* readAfter("locked-30", [0, 4, 1, 20, 5, 3, 2])
      expect(statuses).toEqual([504, 429, 504, 504, 200, 429, 200])
      const start = seen?.started_at ?? 0
      expect(seen?.results_locked_at.map((at) => at - start)).toEqual([0, 5_000, 25_000])
      expect(seen?.results_reads.map(({ at }) => at - start)).toEqual([30_000, 35_000])
      const { ruleBreaks } = yield* (yield* Sandbox).truth
      expect(ruleBreaks.map(({ rule, at }) => [rule, at - start])).toEqual([
        ["results_read_too_soon", 4_000],
        ["results_read_too_soon", 33_000],
      ])
    }),
  )

  told(
    "[readFlowResults 504] holds its lock for a millisecond per record that is read",
    Effect.gen(function* () {
      expect((yield* readAfter("records-8000", [0, 7, 1, 5])).statuses).toEqual([200, 504, 429, 200])
    }),
  )
})
