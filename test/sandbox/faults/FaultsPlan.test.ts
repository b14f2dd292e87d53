/** Which calls go wrong: pure, seeded, and independent of the order in which customers call. */
import { describe, expect, it } from "@effect/vitest"
import * as fc from "fast-check"
import { emptyTally, judgeCall } from "../../../src/sandbox/faults/Faults.ts"
import type { Faults, JudgedCall } from "../../../src/sandbox/faults/Faults.ts"

const read = (customer: string): JudgedCall => ({
  endpoint: "readExecution",
  customer,
  engine: "e",
  application: "a",
})
const struck = (faults: Faults, calls: ReadonlyArray<JudgedCall>) => {
  const tally = emptyTally()
  return calls.map((call) => judgeCall(faults, tally, call)?.status)
}
const times = (count: number) => Array.from({ length: count }, () => read("c-1"))

describe("the plan of faults", () => {
  it("applies to the calls that a script numbers, the first few, or all", () => {
    const plan = (when: object): Faults => ({ faults: [{ on: "*", status: 503, ...when }] })
    const pattern = (when: object) => struck(plan(when), times(6)).map((status) => (status === 503 ? 1 : 0))
    expect([pattern({ script: [2, 5] }), pattern({ first: 3 }), pattern({}), pattern({ rate: 0 })]).toEqual([
      [0, 1, 0, 0, 1, 0],
      [1, 1, 1, 0, 0, 0],
      [1, 1, 1, 1, 1, 1],
      [0, 0, 0, 0, 0, 0],
    ])
  })

  it("counts only the calls that a rule is about, and lets the first rule of the file win", () => {
    const faults: Faults = {
      faults: [
        { on: "startExecution", status: 500 },
        { on: ["readExecution", "readProfile"], customer: "c-2", script: [2], status: 501 },
        { on: "*", engine: "e", application: "a", script: [3, 4], status: 502 },
        { on: "*", engine: "other", status: 599 },
        { on: "*", application: "other", status: 599 },
      ],
    }
    const calls = [read("c-2"), read("c-1"), read("c-2"), read("c-1"), { endpoint: "startExecution" }]
    // The third call is the second of c-2 and the third of all: the rule that stands first takes it.
    expect(struck(faults, calls)).toEqual([undefined, undefined, 501, 502, 500])
  })

  it("applies to about the share of calls that the rate says, and to others with another seed", () => {
    const plan = (seed: number): Faults => ({ seed, faults: [{ on: "*", rate: 0.1, status: 503 }] })
    const strikes = (seed: number) => struck(plan(seed), times(10_000)).map((status) => status === 503)
    const share = strikes(7).filter(Boolean).length / 10_000
    expect(share).toBeGreaterThan(0.08)
    expect(share).toBeLessThan(0.12)
    expect(strikes(7)).toEqual(strikes(7))
    expect(strikes(7)).not.toEqual(strikes(8))
  })

  it("does the same to a customer whatever the others do meanwhile", () => {
    const faults: Faults = { seed: 3, faults: [{ on: "*", rate: 0.3, status: 503 }] }
    const ofOne = (calls: ReadonlyArray<string>) =>
      struck(faults, calls.map(read)).filter((_, index) => calls[index] === "c-1")
    fc.assert(
      fc.property(fc.array(fc.constantFrom("c-1", "c-2", "c-3"), { maxLength: 60 }), (calls) => {
        expect(ofOne(calls)).toEqual(ofOne(calls.filter((customer) => customer === "c-1")))
      }),
      { numRuns: 200 },
    )
  })
})
