/** A run that was cut off, as `status` tells it: since when, what is in flight, and what the next run does. */
import { describe, expect, it } from "vitest"
import type { Fact } from "../../src/ledger/Fact.ts"
import { interruptedOf, tellInterrupted } from "../../src/report/RenderSummary.ts"
import { executed, idOf, planned, run_id, runOf, settled, startAt } from "./Samples.ts"
import { aFact } from "../harness/Facts.ts"

const attemptOf = (customer: string, engine?: string) => ({
  run_id,
  task_id: idOf(customer, engine),
  attempt: 1,
})
const sent = (customer: string, engine?: string): Fact =>
  aFact("StartIntended", { ...attemptOf(customer, engine), external_execution_id: `nj-${customer}` })
const open = (customer: string, engine?: string): ReadonlyArray<Fact> => [
  sent(customer, engine),
  aFact("StartAnswered", { ...attemptOf(customer, engine), execution_id: `e-${customer}` }),
]
const minute = 60_000
const at = (facts: ReadonlyArray<Fact>, { now = startAt + 10 * minute, superseded = false } = {}) =>
  interruptedOf(runOf(...facts), { last_at: startAt + 5 * minute, now, superseded })
const tell = (facts: ReadonlyArray<Fact>, when: Parameters<typeof at>[1] = {}) =>
  tellInterrupted(run_id, at(facts, when), when.now ?? startAt + 10 * minute)

/** Two executions open, one start without an answer, one result to be read, and the others. */
const cut = [
  ...["a", "c", "d", "e", "f"].map((id) => planned(id)),
  planned("b", "tax:website"),
  ...open("a"),
  ...open("b", "tax:website"),
  sent("c"),
  ...executed("d", { "accounts@x": 1 }),
  ...executed("f", {}),
  settled("f", "succeeded", "COMPLETED", "nobody"),
]

describe("a run that was cut off", () => {
  it("says since when, what is in flight, and what is left", () => {
    expect(at(cut)).toEqual({
      since: "2026-11-21T02:05:00.000Z",
      in_flight: [
        { engine_reference: "bank:website", tasks: 3 },
        { engine_reference: "tax:website", tasks: 1 },
      ],
      open_executions: [
        { task_id: idOf("a"), customer_id: "a", engine_reference: "bank:website", execution_id: "e-a" },
        {
          task_id: idOf("b", "tax:website"),
          customer_id: "b",
          engine_reference: "tax:website",
          execution_id: "e-b",
        },
      ],
      unanswered_starts: 1,
      waiting: 0,
      not_begun: 1,
      is_resumed: true,
    })
    expect(tell(cut)).toEqual([
      `${run_id} was interrupted: no process has worked on it since 2026-11-21T02:05:00.000Z (5 min 0 s ago).`,
      "In flight: 4 tasks (3 on bank:website, 1 on tax:website), " +
        "2 executions open at the service (e-a of a, e-b of b), 1 start without a known answer. " +
        "Also left: 1 task not begun.",
      "This command resumes it; after the job's deadline, it only collects what is in flight:",
    ])
  })

  it("has nothing in flight before its tasks were planned, nor while a task waits for another try", () => {
    expect(tell([])[1]).toBe("In flight: nothing.")
    const failed: ReadonlyArray<Fact> = [
      planned("a"),
      ...open("a"),
      aFact("AttemptClosed", {
        ...attemptOf("a"),
        execution_id: "e-a",
        status_code: "TEMPORARY_ERROR",
        status_reason: "PROXY_ERROR",
      }),
    ]
    expect(tell(failed)[1]).toBe("In flight: nothing. Also left: 1 task to be tried again.")
  })

  it("of an older night is only collected, and so is one that a newer run followed", () => {
    const collected =
      "It is too old to be resumed. This command collects what is in flight for the job's next run:"
    expect(tell(cut, { now: startAt + 21 * 60 * minute })[2]).toBe(collected)
    expect(tell(cut, { superseded: true })[2]).toBe(collected)
  })

  it("whose clock was ahead of this machine's does not say how long ago that was", () => {
    expect(tell(cut, { now: startAt })[0]).toBe(
      `${run_id} was interrupted: no process has worked on it since 2026-11-21T02:05:00.000Z.`,
    )
  })
})
