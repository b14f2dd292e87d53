/**
 * Legal lives of tasks as facts, in the order in which the executor writes them: what any process may find in
 * the ledger once it is cut off anywhere in them. Facts of one transaction are one step.
 */
import * as fc from "fast-check"
import type { Fact, Recorded } from "../../src/ledger/Fact.ts"
import { foldRun } from "../../src/ledger/FoldRun.ts"
import type { RunState } from "../../src/ledger/RunState.ts"
import { anId } from "../harness/Id.ts"
import { aFact } from "../harness/Facts.ts"

export const run_id = anId("job.2026-11-21")
export const task_id = anId(`${run_id}/c-1/bank:website`)
const task = { run_id, task_id }

export const begun: ReadonlyArray<Fact> = [
  { _tag: "RunStarted", run_id, job: "job", job_path: "j", run_date: "2026-11-21", tool_version: "0" },
  aFact("TaskPlanned", { ...task, customer_id: "c-1", engine_reference: "bank:website", fingerprint: "f-1" }),
]

export const recorded = (facts: ReadonlyArray<Fact>): ReadonlyArray<Recorded> =>
  facts.map((fact, index) => ({ seq: index + 1, at: 1_000 * (index + 1), fact }))

export const fold = (facts: ReadonlyArray<Fact>): RunState => {
  const run = foldRun(recorded([...begun, ...facts]))
  if (run === undefined) throw new Error("no beginning")
  return run
}

export const intended = (attempt: number, probe = false): Fact =>
  aFact("StartIntended", {
    ...task,
    attempt,
    external_execution_id: `x-${attempt}`,
    fingerprint: "f-1",
    probe,
  })
type Answer = Extract<Fact, { _tag: "StartAnswered" }>["answer"]
export const answered = (attempt: number, answer: Answer, status_reason?: string): Fact =>
  aFact("StartAnswered", {
    ...task,
    attempt,
    answer,
    status_reason,
    ...(answer === "accepted" || answer === "adopted"
      ? { execution_id: anId(`e-${attempt}`), session_id: anId(`s-${attempt}`) }
      : {}),
  })
export const observed = (attempt: number, status_reason = "RUNNING"): Fact => ({
  _tag: "AttemptObserved",
  ...task,
  attempt,
  execution_id: anId(`e-${attempt}`),
  status_code: "ONGOING",
  status_reason,
})
export const landed = { segment: "segment-000001.njl", offset: 0, bytes: 2, sha256: "ab" }
export const closed = (attempt: number, status_code = "COMPLETED", status_reason = status_code): Fact =>
  aFact("AttemptClosed", {
    ...task,
    attempt,
    execution_id: `e-${attempt}`,
    session_id: `s-${attempt}`,
    status_code,
    status_reason,
    landed,
  })
export const drained = (attempt: number): Fact =>
  aFact("AttemptDrained", { ...task, attempt, execution_id: `e-${attempt}` })
export const settled = (
  outcome: Extract<Fact, { _tag: "TaskSettled" }>["outcome"],
  reason: Extract<Fact, { _tag: "TaskSettled" }>["reason"],
): Fact => ({ _tag: "TaskSettled", ...task, outcome, reason, who_acts: "service" })

const transient = fc.constantFrom<Answer>("not_created", "foreign")

/** The starts of one attempt: deferrals, a loss, its probe, and how it ended. */
const startOf = (attempt: number, ending: fc.Arbitrary<Answer>): fc.Arbitrary<ReadonlyArray<Fact>> =>
  fc
    .record({
      before: fc.array(transient, { maxLength: 2 }),
      lost: fc.boolean(),
      onProbe: fc.array(transient, { maxLength: 2 }),
      last: ending,
    })
    .map(({ before, lost, onProbe, last }) => {
      const send = (probe: boolean) => (answer: Answer) => [
        intended(attempt, probe),
        answered(attempt, answer),
      ]
      return lost
        ? [...before.flatMap(send(false)), ...send(false)("lost"), ...[...onProbe, last].flatMap(send(true))]
        : [...before.flatMap(send(false)), ...send(false)(last)]
    })

const executionOf = (attempt: number, status_code: string, status_reason: string) =>
  fc
    .tuple(
      startOf(attempt, fc.constantFrom<Answer>("accepted", "adopted")),
      fc.array(fc.constantFrom("ACCEPTED", "RUNNING", "ASYNC_WAIT"), { maxLength: 3 }),
    )
    .map(([start, looks]) => [
      ...start,
      ...looks.map((reason) => observed(attempt, reason)),
      closed(attempt, status_code, status_reason),
      drained(attempt),
    ])

const lastOf = (attempt: number): fc.Arbitrary<ReadonlyArray<Fact>> =>
  fc.oneof(
    executionOf(attempt, "COMPLETED", "COMPLETED").map((facts) => [
      ...facts,
      settled("succeeded", "COMPLETED"),
    ]),
    executionOf(attempt, "TEMPORARY_ERROR", "OUT_OF_SERVICE").map((facts) => [
      ...facts,
      settled("unfinished", "OUT_OF_SERVICE"),
    ]),
    startOf(attempt, fc.constant<Answer>("refused")).map((facts) => [
      ...facts,
      settled("failed", "UNEXPECTED_ANSWER"),
    ]),
    fc.constant([
      intended(attempt),
      answered(attempt, "lost"),
      intended(attempt, true),
      answered(attempt, "lost"),
      settled("unfinished", "START_UNKNOWN"),
    ]),
  )

/** The whole life of a task: some failed tries, and a last one. */
export const lives: fc.Arbitrary<ReadonlyArray<Fact>> = fc
  .nat(2)
  .chain((tries) =>
    fc
      .tuple(
        ...Array.from({ length: tries }, (_, index) =>
          executionOf(index + 1, "TEMPORARY_ERROR", "OUT_OF_SERVICE"),
        ),
        lastOf(tries + 1),
      )
      .map((parts) => parts.flat()),
  )
