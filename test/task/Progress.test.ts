/** What a night tells while it runs: each task from its start to its verdict, and what it waits for meanwhile. */
import { describe, expect } from "@effect/vitest"
import type { ProgressEvent } from "../../src/task/Progress.ts"
import { idOf, night, second, type NightEnd } from "./ScriptedNight.ts"
import { accepted, completed, conflict, state } from "./ScriptedService.ts"
import { effect } from "../harness/Steps.ts"

const task_id = idOf("c-1")
const settled = { _tag: "Settled", task_id, outcome: "succeeded", reason: "COMPLETED" } as const
/** Without the moments, of which each lies ahead of the one before. */
const withoutTimes = (told: ReadonlyArray<ProgressEvent>) =>
  told.map((event) => (event._tag === "Waiting" ? { ...event, until: 0 } : event))
const timesIn = (told: ReadonlyArray<ProgressEvent>) =>
  told.flatMap((event) => (event._tag === "Waiting" ? [event.until] : []))

/** The last start came when the first wait was over, and within a second of it. */
const expectStartAfterWait = ({ timesOf }: NightEnd, told: ReadonlyArray<ProgressEvent>): void => {
  const next = timesOf("start").at(-1) ?? 0
  const [until = 0] = timesIn(told)
  expect(next - until).toBeGreaterThanOrEqual(0)
  expect(next - until).toBeLessThan(second)
}

describe("a run reports", () => {
  effect("when a task starts, closes, waits for another try and is settled", function* () {
    const told: Array<ProgressEvent> = []
    const end = yield* night({
      told,
      script: {
        start: (_, times) => accepted(`${times}`),
        state: (id) => (id === "e-1" ? state("TEMPORARY_ERROR", "OUT_OF_SERVICE") : completed),
      },
    })
    expect(withoutTimes(told)).toEqual([
      { _tag: "Started", task_id },
      { _tag: "Closed", task_id, status_reason: "OUT_OF_SERVICE" },
      { _tag: "Waiting", task_id, why: "OUT_OF_SERVICE", until: 0 },
      { _tag: "Started", task_id },
      { _tag: "Closed", task_id, status_reason: "COMPLETED" },
      settled,
    ])
    expectStartAfterWait(end, told)
    // The ledger has the same of the wait.
    const waits = end.facts.flatMap((fact) => (fact._tag === "TaskWaits" ? fact : []))
    expect(waits).toMatchObject([{ reason: "OUT_OF_SERVICE" }])
    expect(waits.map(({ until }) => Date.parse(until))).toEqual(timesIn(told).map(Math.trunc))
  })

  effect("that a task waits while somebody else's run is open, and until when", function* () {
    const told: Array<ProgressEvent> = []
    const end = yield* night({
      told,
      script: { start: (_, times) => (times === 1 ? conflict("theirs", "x") : accepted("1")) },
    })
    expect(withoutTimes(told)).toEqual([
      { _tag: "Started", task_id },
      { _tag: "Waiting", task_id, why: "ALREADY_EXECUTING", until: 0 },
      { _tag: "Started", task_id },
      { _tag: "Closed", task_id, status_reason: "COMPLETED" },
      settled,
    ])
    expectStartAfterWait(end, told)
  })
})
