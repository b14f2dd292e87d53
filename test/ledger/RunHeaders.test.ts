/** When a run counts as over: the tables must say it before anybody relies on it. */
import { expect } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import type { Fact } from "../../src/ledger/Fact.ts"
import { Ledger } from "../../src/ledger/Ledger.ts"
import { anId, type AnyId } from "../harness/Id.ts"
import { withLayer } from "../harness/Steps.ts"
import { aFact, runStarted } from "../harness/Facts.ts"

const { effect } = withLayer(Ledger.layer({ path: ":memory:" }))

effect(
  "the tasks of a customer, an execution or a session are found by its id, with their facts",
  function* () {
    const ledger = yield* Ledger
    const planned = (run: AnyId, more: { readonly customer_id?: AnyId; readonly session_id?: AnyId }) =>
      ({ _tag: "TaskPlanned", run_id: run, task_id: anId(`${run}/t`), features: [], ...more }) as const
    const [first, second] = [anId("nightly.2026-11-20"), anId("nightly.2026-11-21")]
    yield* ledger.append([
      runStarted(first),
      planned(first, { customer_id: anId("c-1") }),
      runStarted(second),
      planned(second, { customer_id: anId("c-1"), session_id: anId("s-1") }),
      aFact("StartAnswered", {
        run_id: second,
        task_id: `${second}/t`,
        execution_id: "e-1",
        session_id: "s-2",
      }),
    ])
    const found = yield* Effect.forEach(["c-1", "e-1", "s-1", "s-2", "c-2"], (id) => ledger.tasksNaming(id))
    expect(found.map((tasks) => tasks.map(({ run_id }) => run_id).toSorted())).toEqual([
      [first, second],
      [second],
      [second],
      [second],
      [],
    ])
    const facts = yield* ledger.factsOfTask({ run_id: second, task_id: anId(`${second}/t`) })
    expect(facts.map(({ fact }) => fact._tag)).toEqual(["TaskPlanned", "StartAnswered"])
  },
)

effect(
  "a run is over once its end is published; one that is collected later ended when it did",
  function* () {
    const ledger = yield* Ledger
    const run_id = anId("nightly.2026-11-20")
    // Of a run without a beginning there is none.
    const header = Effect.map(ledger.runs, (runs) =>
      runs.flatMap(({ ended, newest_at }) => [ended, newest_at]),
    )
    yield* TestClock.setTime(1_000)
    const unknown = anId("nightly.2026-11-19")
    const later: ReadonlyArray<Fact> = [
      { _tag: "RunResumed", run_id: unknown },
      { _tag: "OutcomePublished", run_id: unknown },
    ]
    yield* ledger.append([runStarted(run_id), ...later])
    const end = (exit_code: number): ReadonlyArray<Fact> => [
      { _tag: "RunEnded", run_id, exit_code, leftovers: exit_code === 4 },
      { _tag: "OutcomePublished", run_id },
    ]
    yield* TestClock.setTime(12_000)
    yield* ledger.append(end(4).slice(0, 1))
    expect(yield* header).toEqual([undefined, 1_000])
    yield* ledger.append(end(4).slice(1))
    yield* TestClock.setTime(700_000_000)
    const published: Fact = { _tag: "RunPublished", run_id, version: 2, receipts: [] }
    yield* ledger.append([published, ...end(0)])
    const ended = { at: 12_000, exit_code: 0, leftovers: false, kept: 0 }
    expect(yield* header).toEqual([ended, 700_000_000])
    const state = yield* ledger.state(run_id)
    expect([state?.ended, state?.stages]).toEqual([ended, { collected: 700_000_000 }])
    yield* TestClock.setTime(800_000_000)
    yield* ledger.append([{ _tag: "RunResumed", run_id }])
    expect(yield* header).toEqual([undefined, 800_000_000])
    yield* ledger.append(end(3))
    expect(yield* header).toEqual([{ ...ended, at: 800_000_000, exit_code: 3 }, 800_000_000])
  },
)

effect("what was removed by age is known with its time, by run", function* () {
  const ledger = yield* Ledger
  const [first, second] = [anId("nightly.2026-11-20"), anId("nightly.2026-11-21")]
  yield* TestClock.setTime(1_000)
  yield* ledger.append([{ _tag: "LandingPruned", run_id: first, bytes: 1 }])
  yield* TestClock.setTime(2_000)
  yield* ledger.append([
    { _tag: "LandingPruned", run_id: second, bytes: 1 },
    { _tag: "AttachmentsPruned", run_id: first, bytes: 1 },
  ])
  expect(yield* ledger.pruned).toEqual({
    landing: new Map([
      [first, 1_000],
      [second, 2_000],
    ]),
    attachments: new Map([[first, 2_000]]),
  })
})

effect("the runs that have downloaded a document are found by its hash", function* () {
  const ledger = yield* Ledger
  const read = (run: string, sha256: string): Fact =>
    aFact("AttachmentRead", { run_id: run, task_id: `${run}/t`, attachment_id: "a-1", sha256 })
  yield* ledger.append([read("b", "aa"), read("a", "aa"), read("a", "aa"), read("c", "bb")])
  const found = yield* Effect.forEach(["aa", "bb", "cc"], (sha256) => ledger.runsWithDocument(sha256))
  expect(found).toEqual([["a", "b"], ["c"], []])
})
