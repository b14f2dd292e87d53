/** Who comes first after a night that was too short: whoever the deadline kept waiting longest. */
import { describe, expect, it } from "vitest"
import { own } from "../../src/ends/Ends.ts"
import type { Fact } from "../../src/ledger/Fact.ts"
import { foldRun } from "../../src/ledger/FoldRun.ts"
import type { RunState } from "../../src/ledger/RunState.ts"
import { carriedOver, inLine } from "../../src/planning/CarriedOver.ts"
import { anId } from "../harness/Id.ts"

type End = Parameters<typeof own>[0] | "succeeded" | "aborted" | "open"

/** A run in which these customers were in line, in this order. */
const runOf = (run: string, ends: Readonly<Record<string, End>>): RunState => {
  const run_id = anId(run)
  const facts: Array<Fact> = [
    {
      _tag: "RunStarted",
      run_id,
      job: "job",
      job_path: "job.yaml",
      run_date: "2026-11-20",
      tool_version: "0",
    },
  ]
  for (const [customer, end] of Object.entries(ends)) {
    const task = { run_id, task_id: anId(`${run}/${customer}/bank`) }
    const execution_id = anId(`e-${run}-${customer}`)
    const one = { ...task, attempt: 1 }
    const access = { customer_id: anId(customer), engine_reference: anId("bank") }
    facts.push({ _tag: "TaskPlanned", ...task, ...access, features: [] })
    if (end === "open") continue
    if (end === "aborted") {
      facts.push({ _tag: "StartIntended", ...one, external_execution_id: "x", probe: false })
      facts.push({ _tag: "StartAnswered", ...one, answer: "accepted", execution_id })
      facts.push({ _tag: "AbortIntended", ...one, execution_id, why: "deadline" })
      facts.push({ _tag: "TaskSettled", ...task, ...own("NOT_STOPPABLE") })
    } else if (end === "succeeded")
      facts.push({
        _tag: "TaskSettled",
        ...task,
        outcome: "succeeded",
        reason: "COMPLETED",
        who_acts: "nobody",
      })
    else facts.push({ _tag: "TaskSettled", ...task, ...own(end) })
  }
  const state = foldRun(facts.map((fact, index) => ({ fact, seq: index + 1, at: index, night: undefined })))
  if (state === undefined) throw new Error("no run")
  return state
}
const carried = (...runs: ReadonlyArray<Readonly<Record<string, End>>>) =>
  carriedOver(runs.map((ends, index) => runOf(`job.${index}`, ends))).join(" ")

describe("what a night leaves to the next one", () => {
  it("is what its deadline stopped or never started, in the order of its line", () => {
    expect(
      carried({
        c: "DEADLINE_REACHED",
        b: "succeeded",
        a: "aborted",
        d: "RUN_DRAINED",
        e: "ENGINE_UNAVAILABLE",
        f: "open",
      }),
    ).toBe("c/bank a/bank d/bank")
  })

  it("is no longer what a later run finished, and waits longest from the oldest run", () => {
    expect(
      carried(
        { a: "DEADLINE_REACHED", b: "DEADLINE_REACHED", c: "DEADLINE_REACHED" },
        { c: "succeeded" },
        { d: "DEADLINE_REACHED", b: "DEADLINE_REACHED" },
      ),
    ).toBe("a/bank d/bank b/bank")
  })
})

describe("the line of the next night", () => {
  it("has those first, in their order, and the others as the job names them", () => {
    const line = (first: ReadonlyArray<string>) => inLine(["a", "b", "c", "d"], (one) => one, first).join(" ")
    expect([line([]), line(["c"]), line(["d", "gone", "b"])]).toEqual(["a b c d", "c a b d", "d b a c"])
  })
})
