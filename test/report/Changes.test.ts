/** What a run changed since the one before: new trouble, old trouble, and what is mended. */
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { outcomes } from "../../src/service/EndTable.ts"
import { foldRun, type RunHeader } from "../../src/ledger/FoldRun.ts"
import {
  changesBetween,
  compareRun,
  hasRecovered,
  runsBefore,
  standingsAfter,
} from "../../src/report/Changes.ts"
import type { Standing, Standings } from "../../src/report/Changes.ts"
import type { Reason } from "../../src/service/Ends.ts"
import type { Fact } from "../../src/ledger/Fact.ts"
import { anId } from "../harness/Id.ts"
import { runStarted } from "../harness/Facts.ts"
import { said } from "../service/Said.ts"

const standing = fc.record({
  outcome: fc.constantFrom(...outcomes),
  reason: fc.constantFrom("TIMEOUT", "FAILED", "COMPLETED"),
  who_acts: fc.constant("engineer" as const),
})
const standings = fc
  .dictionary(fc.constantFrom("a/e", "b/e", "c/e", "d/e", "session/s"), standing)
  .map((each): Standings => new Map(Object.entries(each)))

const good: Standing = { outcome: "succeeded", reason: "COMPLETED", who_acts: "nobody" }
const failed = (reason: Reason): Standing => ({ outcome: "failed", reason, who_acts: "engineer" })

describe("changes between two nights", () => {
  it("are new trouble, the same trouble as before, and trouble that is mended", () => {
    const before = new Map([
      ["same", failed("TIMEOUT")],
      ["other reason", failed("TIMEOUT")],
      ["mended", failed("FAILED")],
      ["gone", failed("FAILED")],
      ["well", good],
      ["fell ill", good],
    ])
    const now = new Map([
      ["same", failed("TIMEOUT")],
      ["other reason", failed("FAILED")],
      ["mended", good],
      ["well", good],
      ["fell ill", failed("FAILED")],
      ["newcomer", failed("FAILED")],
      ["healthy newcomer", good],
    ])
    expect([...changesBetween(before, now)]).toEqual([
      ["same", "still"],
      ["other reason", "new"],
      ["mended", "mended"],
      ["fell ill", "new"],
      ["newcomer", "new"],
    ])
  })

  it("name each subject in trouble exactly once, and no healthy one but as mended", () => {
    fc.assert(
      fc.property(standings, standings, (before, now) => {
        const changes = changesBetween(before, now)
        const troubled = [...now].flatMap(([subject, { outcome }]) =>
          outcome === "succeeded" ? [] : [subject],
        )
        const told = [...changes].flatMap(([subject, change]) => (change === "mended" ? [] : [subject]))
        expect(told).toEqual(troubled)
        const mended = [...now].flatMap(([subject, { outcome }]) => {
          const earlier = before.get(subject)?.outcome ?? "succeeded"
          return outcome === "succeeded" && earlier !== "succeeded" ? [[subject, "mended"]] : []
        })
        expect([...changes].filter(([, change]) => change === "mended")).toEqual(mended)
      }),
    )
  })
})

const header = (run_id: string, end: number | undefined, parent?: string, job = "job"): RunHeader => ({
  seq: 1,
  at: 0,
  newest_at: 0,
  fact: runStarted(run_id, { job, parent }),
  ended: end === undefined ? undefined : { at: 0, exit_code: end, leftovers: false, kept: 0 },
})
const idsBefore = (run_id: string, headers: ReadonlyArray<RunHeader>) =>
  runsBefore(headers, run_id).map(({ fact }) => fact.run_id)

describe("the runs that a run is compared with", () => {
  it("reach back to the last complete one of the same job, with its reruns", () => {
    const headers = [
      header("old", 0),
      header("night", 3),
      header("other", 3, undefined, "another"),
      header("night.2", 3, "night"),
      header("night.3", 0, "night.2"),
      header("now", undefined),
      header("later", 0),
    ]
    expect(idsBefore("now", headers)).toEqual(["night", "night.2", "night.3"])
    expect(idsBefore("night.2", headers)).toEqual(["night"])
    expect([idsBefore("old", headers), idsBefore("unknown", headers)]).toEqual([[], []])
  })

  it("leave out nights that the service kept from beginning, and go past those that were cut off", () => {
    const headers = [
      header("whole", 3),
      header("cut off", undefined),
      header("unserved", 6),
      header("now", 0),
    ]
    expect(idsBefore("now", headers)).toEqual(["whole", "cut off"])
  })

  it("are eight at most", () => {
    const reruns = Array.from({ length: 20 }, (_, index) => header(`r${index}`, 3, "night"))
    expect(idsBefore("now", [header("night", 3), ...reruns, header("now", 0)])).toEqual(
      reruns.slice(-8).map(({ fact }) => fact.run_id),
    )
  })
})

const stateOf = (run_id: string, ends: Readonly<Record<string, string | undefined>>) => {
  const facts: ReadonlyArray<Fact> = [
    header(run_id, 0).fact,
    ...Object.keys(ends).map((customer): Fact => ({
      _tag: "TaskPlanned",
      run_id: anId(run_id),
      task_id: anId(`${run_id}/${customer}/e`),
      customer_id: anId(customer),
      engine_reference: anId("e"),
      features: [],
    })),
    ...Object.entries(ends).flatMap(([customer, reason]): ReadonlyArray<Fact> =>
      reason === undefined
        ? []
        : [
            {
              _tag: "TaskSettled",
              run_id: anId(run_id),
              task_id: anId(`${run_id}/${customer}/e`),
              outcome: reason === "COMPLETED" ? "succeeded" : "failed",
              reason: said(reason),
              who_acts: "engineer",
            },
          ],
    ),
  ]
  const state = foldRun(facts.map((fact, seq) => ({ seq, at: seq, fact })))
  if (state === undefined) throw new Error("the facts hold no beginning")
  return state
}

it("how everybody stood before a run is the newest verdict of each; a task that was never settled says nothing", () => {
  const runs = [
    stateOf("night", { a: "FAILED", b: "TIMEOUT", c: "COMPLETED" }),
    stateOf("night.2", { a: "COMPLETED", b: undefined }),
  ]
  const stood = [...standingsAfter(runs)].map(([subject, { outcome, reason, who_acts }]) => [
    subject,
    { outcome, reason, who_acts },
  ])
  expect(stood).toEqual([
    ["a/e", { outcome: "succeeded", reason: "COMPLETED", who_acts: "engineer" }],
    ["b/e", { outcome: "failed", reason: "TIMEOUT", who_acts: "engineer" }],
    ["c/e", { outcome: "succeeded", reason: "COMPLETED", who_acts: "engineer" }],
  ])
  const { since, changes } = compareRun(stateOf("now", { a: "COMPLETED", b: "TIMEOUT", c: "FAILED" }), runs)
  expect([since, Object.fromEntries(changes)]).toEqual(["night.2", { "b/e": "still", "c/e": "new" }])
})

describe("a job has recovered", () => {
  const well = { a: "COMPLETED", b: "COMPLETED" }
  const ill = stateOf("night", { a: "FAILED", b: "TIMEOUT" })
  const rerun = (ends: Readonly<Record<string, string>>) => {
    const state = stateOf("night.2", ends)
    return { ...state, started: { ...state.started, parent: "night" } }
  }

  it("once everybody is well after trouble, be it of customers or of a night that did not happen", () => {
    expect([
      hasRecovered(stateOf("now", well), [ill], header("night", 3)),
      hasRecovered(stateOf("now", well), [stateOf("night", well)], header("unserved", 6)),
      hasRecovered(stateOf("now", { a: "COMPLETED" }), [ill], header("night", 0)),
    ]).toEqual([true, true, true])
  })

  it("not in a first run, not from health, and not while somebody is left out of a rerun", () => {
    expect([
      hasRecovered(stateOf("now", well), [], undefined),
      hasRecovered(stateOf("now", well), [stateOf("night", well)], header("night", 0)),
      hasRecovered(rerun({ a: "COMPLETED" }), [ill], header("night", 3)),
      hasRecovered(rerun(well), [ill], header("night", 3)),
    ]).toEqual([false, false, false, true])
  })
})
