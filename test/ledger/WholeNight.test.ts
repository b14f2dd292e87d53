/** What all runs of one night together answer: the newest run of a task decides about it, and nothing is forgotten. */
import { describe, expect, it } from "@effect/vitest"
import type { Fact } from "../../src/ledger/Fact.ts"
import { foldRun } from "../../src/ledger/FoldRun.ts"
import { Ledger } from "../../src/ledger/Ledger.ts"
import type { RunState } from "../../src/ledger/RunState.ts"
import {
  deliveredInNight,
  newestTasks,
  nightAround,
  nightExitCode,
  runsOfNight,
} from "../../src/ledger/WholeNight.ts"
import { anId } from "../harness/Id.ts"
import { withLayer } from "../harness/Steps.ts"
import { factsOf, idOf, type Told } from "./ToldRuns.ts"

const night = (...told: ReadonlyArray<Told>): ReadonlyArray<RunState> =>
  told.flatMap((one, index) => {
    const facts = factsOf(index + 1, one)
    return foldRun(facts.map((fact, seq) => ({ seq: index * 100 + seq, at: seq, fact }))) ?? []
  })
const codeOf = (...told: ReadonlyArray<Told>) => nightExitCode(night(...told))

const succeeded: Told = { tasks: { "c-1": "succeeded" }, exit_code: 0 }
const failed: Told = { tasks: { "c-1": "failed" }, exit_code: 3 }

describe("the exit code of a night", () => {
  it("is that of its run if there is only one, and none before each of several has ended", () => {
    expect([0, 3, 4, 6].map((exit_code) => codeOf({ ...failed, exit_code }))).toEqual([0, 3, 4, 6])
    expect(codeOf({ tasks: { "c-1": "succeeded" } })).toBeUndefined()
    expect(codeOf(succeeded, { tasks: { "c-1": "succeeded" } })).toBeUndefined()
    expect(codeOf({ tasks: { "c-1": "succeeded" } }, succeeded)).toBeUndefined()
  })

  it("is decided by the newest run of each task, in either direction", () => {
    const first: Told = { tasks: { "c-1": "failed", "c-2": "unfinished" }, exit_code: 4 }
    const second: Told = { tasks: { "c-2": "succeeded" }, exit_code: 0 }
    expect([codeOf(first, second), codeOf(first, second, succeeded)]).toEqual([3, 0])
    expect(codeOf(succeeded, failed)).toBe(3)
  })

  it("is 4 as long as a task is unfinished or in progress, or a run has something left at the service", () => {
    for (const outcome of ["unfinished", undefined] as const)
      expect(codeOf({ tasks: { "c-1": "failed", "c-2": outcome }, exit_code: 4 }, succeeded)).toBe(4)
    expect(codeOf({ ...succeeded, exit_code: 4, leftovers: true }, succeeded)).toBe(4)
    expect(codeOf({ ...failed, exit_code: 3, leftovers: true }, succeeded)).toBe(4)
  })

  it("is 3 while a version is held back and nothing else is left, or a body is missing that no later run has read again", () => {
    const held: Told = { ...succeeded, exit_code: 3, leftovers: true, isHeld: true }
    expect([codeOf(held, succeeded), codeOf(succeeded, held)]).toEqual([3, 3])
    expect(codeOf({ ...held, exit_code: 4 }, succeeded)).toBe(4)
    const both: Told = { tasks: { "c-1": "succeeded", "c-2": "succeeded" }, exit_code: 3 }
    expect(codeOf({ ...both, left_out: ["c-2"] }, succeeded)).toBe(3)
    expect(codeOf({ ...both, left_out: ["c-1"] }, succeeded)).toBe(0)
  })

  it("is 0 if each of its runs ended with 0 in spite of trouble that is not new", () => {
    const old: Told = { ...failed, exit_code: 0 }
    expect([codeOf(old, old), codeOf(old, failed), codeOf(failed, old)]).toEqual([0, 3, 3])
  })

  it("is 3 while data is too old by the newest publication, and no longer once a later one says otherwise", () => {
    const tooOld: Told = { ...succeeded, exit_code: 3, isTooOld: true }
    const fresh: Told = { ...succeeded, isTooOld: false }
    expect([codeOf(tooOld, succeeded), codeOf(fresh, tooOld), codeOf(tooOld, fresh)]).toEqual([3, 3, 0])
  })

  it("is that of its newest run if none of them had a task", () => {
    expect([codeOf({ exit_code: 6 }, { exit_code: 0 }), codeOf({ exit_code: 0 }, { exit_code: 6 })]).toEqual([
      0, 6,
    ])
  })
})

describe("the features that are in the tables", () => {
  const runOf = (
    number: number,
    tasks: Readonly<Record<string, ReadonlyArray<string>>>,
    ...delivered: ReadonlyArray<readonly [customer: string, features: ReadonlyArray<string>]>
  ): ReadonlyArray<Fact> => {
    const run_id = idOf(number)
    const task_id = (customer: string) => anId(`${run_id}/${customer}/bank`)
    return [
      ...factsOf(number, {}),
      ...Object.entries(tasks).map(([customer, features]): Fact => ({
        _tag: "TaskPlanned",
        run_id,
        task_id: task_id(customer),
        customer_id: anId(customer),
        engine_reference: anId("bank"),
        features,
      })),
      ...(delivered.length === 0
        ? []
        : [
            {
              _tag: "RunPublished",
              run_id,
              version: number,
              receipts: [],
              delivered: delivered.map(([customer, features]) => ({ task_id: task_id(customer), features })),
            } as const,
          ]),
    ]
  }
  const held = (number: number): Fact => ({
    _tag: "RunHeld",
    run_id: idOf(number),
    database: "held",
    gates: [],
  })
  const deliveredIn = (...runs: ReadonlyArray<ReadonlyArray<Fact>>) =>
    [
      ...deliveredInNight(
        runs.flatMap((facts) => foldRun(facts.map((fact, seq) => ({ seq, at: seq, fact }))) ?? []),
      ),
    ].map(([subject, features]) => [subject, [...features]])

  it("are those of each task, by its subject; none of a task or a run that delivered nothing", () => {
    expect(deliveredIn(runOf(1, { "c-1": ["a", "b"], "c-2": ["a"] }, ["c-1", ["a"]]))).toEqual([
      ["c-1/bank", ["a"]],
      ["c-2/bank", []],
    ])
    expect(deliveredIn(runOf(1, { "c-1": ["a"] }))).toEqual([["c-1/bank", []]])
  })

  it("are as the later run left what it asked for again; the others stay", () => {
    const first = runOf(1, { "c-1": ["a", "b", "c"] }, ["c-1", ["a", "b"]])
    expect(deliveredIn(first, runOf(2, { "c-1": ["b", "c"] }, ["c-1", ["c"]]))).toEqual([
      ["c-1/bank", ["a", "c"]],
    ])
    expect(deliveredIn(first, runOf(2, { "c-1": ["b"] }))).toEqual([["c-1/bank", ["a"]]])
  })

  it("are not those of a version that is held back", () => {
    const run = runOf(1, { "c-1": ["a"] }, ["c-1", ["a"]])
    expect([deliveredIn([...run, held(1)]), deliveredIn(run)]).toEqual([
      [["c-1/bank", []]],
      [["c-1/bank", ["a"]]],
    ])
  })
})

it("the newest run of a task is the one that counts, whatever order the customers have in it", () => {
  const runs = night(
    { tasks: { "c-1": "failed", "c-2": "failed" } },
    { tasks: { "c-2": "partial", "c-1": "succeeded" } },
  )
  const outcomes = [...newestTasks(runs)].map(([subject, { planned, settled }]) => [
    subject,
    planned.run_id,
    settled?.fact.outcome,
  ])
  expect(outcomes).toEqual([
    ["c-1/bank", idOf(2), "succeeded"],
    ["c-2/bank", idOf(2), "partial"],
  ])
})

const { effect } = withLayer(Ledger.layer({ path: ":memory:" }))

effect(
  "the runs of a night are those of the same job and date, oldest first, with all their facts",
  function* () {
    const ledger = yield* Ledger
    yield* ledger.append(factsOf(1, failed))
    const alone = yield* ledger.state(idOf(1))
    if (alone === undefined) throw new Error("no such run")
    expect(yield* nightAround(ledger, alone, ledger.state)).toEqual([alone])
    yield* ledger.append(factsOf(2, { job: "other" }))
    yield* ledger.append(factsOf(3, { run_date: "2026-11-22" }))
    yield* ledger.append(factsOf(4, succeeded))
    const of = runsOfNight(yield* ledger.runs, { job: "job", run_date: "2026-11-21" })
    expect(of.map(({ fact }) => fact.run_id)).toEqual([idOf(1), idOf(4)])
    const around = yield* nightAround(ledger, alone, ledger.state)
    expect(around.map(({ started, ended }) => [started.run_id, ended?.exit_code])).toEqual([
      [idOf(1), 3],
      [idOf(4), 0],
    ])
  },
)
