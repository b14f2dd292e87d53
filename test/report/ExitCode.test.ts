/** What a finished run answers its caller. */
import { describe, expect, it } from "vitest"
import type { Outcome } from "../../src/service/EndTable.ts"
import type { Fact } from "../../src/ledger/Fact.ts"
import { foldRun } from "../../src/ledger/FoldRun.ts"
import { exitCodeOf, hasLeftovers } from "../../src/report/Finish.ts"
import { executed, idOf, planned, run_id, settled, started } from "./Samples.ts"
import { anId } from "../harness/Id.ts"

const fold = (facts: ReadonlyArray<Fact>) => {
  const run = foldRun([started, ...facts].map((fact, seq) => ({ seq, at: seq, fact })))
  if (run === undefined) throw new Error("no beginning")
  return run
}
const told = (facts: ReadonlyArray<Fact>, after_export: "delete" | "keep" = "delete") => [
  exitCodeOf(fold(facts), after_export),
  hasLeftovers(fold(facts), after_export),
]
const ended = (...outcomes: ReadonlyArray<Outcome>) =>
  outcomes.flatMap((outcome, index) => [planned(`c${index}`), settled(`c${index}`, outcome, "R", "nobody")])

const succeeded = [planned("c"), ...executed("c", {}), settled("c", "succeeded", "COMPLETED", "nobody")]
const drained: Fact = {
  _tag: "AttemptDrained",
  run_id,
  task_id: anId(idOf("c")),
  attempt: 1,
  execution_id: anId("e-c"),
}
const exported = [...succeeded.slice(0, -1), drained, ...succeeded.slice(-1)]
const deletion = (outcome: "deleted" | "gone" | "pending"): Fact => ({
  _tag: "DeleteAnswered",
  run_id,
  task_id: anId(idOf("c")),
  execution_id: anId("e-c"),
  http_status: 204,
  outcome,
})

describe("the exit code", () => {
  it("is 0 if every task succeeded, or there was nothing to do [exit 0]", () => {
    expect([told([]), told(ended("succeeded", "succeeded"))]).toEqual([
      [0, false],
      [0, false],
    ])
  })

  it.each(["partial", "failed", "skipped"] as const)("is 3 if a task is %s [exit 3]", (outcome) => {
    expect(told(ended("succeeded", outcome))).toEqual([3, false])
  })

  it("is 4 if a rerun can finish something, and takes precedence over 3 [exit 4]", () => {
    expect(told(ended("succeeded", "unfinished"))).toEqual([4, false])
    expect(told(ended("failed", "unfinished", "skipped"))).toEqual([4, false])
    expect(told([...ended("failed"), planned("open")])).toEqual([4, true])
  })

  it("is 4 until every deletion is answered by 204 or 404, unless the job keeps executions [exit 4]", () => {
    expect([
      told(exported),
      told([...exported, deletion("pending")]),
      told([...exported, deletion("deleted")]),
      told([...exported, deletion("gone")]),
      told(exported, "keep"),
    ]).toEqual([
      [4, true],
      [4, true],
      [0, false],
      [0, false],
      [0, false],
    ])
  })

  it("waits for no deletion of what is kept at the service because it could not be read", () => {
    expect(told(succeeded)).toEqual([0, false])
  })
})

describe("what is left at the service", () => {
  it("is an execution without an end, and results that are still partial", () => {
    const open = [planned("c"), ...executed("c", {}).slice(0, 2)]
    expect(told([...open, settled("c", "unfinished", "NOT_STOPPABLE", "service")], "keep")).toEqual([4, true])
    const partial = [...succeeded.slice(0, -1), settled("c", "unfinished", "RESULTS_PARTIAL", "service")]
    expect(told(partial, "keep")).toEqual([4, true])
  })
})
