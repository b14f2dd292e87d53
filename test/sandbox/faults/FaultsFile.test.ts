/** What a file of faults may say, and what is said of one that is wrong. */
import { describe, expect, it } from "@effect/vitest"
import { Result } from "effect"
import * as fc from "fast-check"
import { Faults, emptyTally, endpointNames, faultHelp } from "../../../src/sandbox/faults/Faults.ts"
import { judgeCall } from "../../../src/sandbox/faults/Faults.ts"
import type { JudgedCall } from "../../../src/sandbox/faults/Faults.ts"
import { decodeFaults } from "../../../src/sandbox/readings/SettingFiles.ts"

const told = (source: string): ReadonlyArray<string> =>
  Result.match(decodeFaults("f.yaml", source), {
    onSuccess: () => [],
    onFailure: (problems) => problems.map(({ line, column, message }) => `${line}:${column}: ${message}`),
  })

describe("a file of faults", () => {
  it("says what happens to which calls, and when", () => {
    const source = `
seed: 7
faults:
  - on: startExecution      # a comment
    rate: 0.05
    status: 503
    retry_after: 30 seconds
  - { on: [readExecution, showEngine], engine: sandbox-bank:website, first: 3, delay: 2 seconds, cut: 0.5 }
  - { on: "*", customer: c-1, script: [2, 5], body: "<html>" }
`
    const bank = "sandbox-bank:website"
    expect(decodeFaults("f.yaml", source)).toEqual(
      Result.succeed({
        seed: 7,
        faults: [
          { on: "startExecution", rate: 0.05, status: 503, retry_after: "30 seconds" },
          { on: ["readExecution", "showEngine"], engine: bank, first: 3, delay: "2 seconds", cut: 0.5 },
          { on: "*", customer: "c-1", script: [2, 5], body: "<html>" },
        ],
      }),
    )
  })

  it("with several mistakes gets all of them reported, each with its place and the nearest word", () => {
    const source = `sead: 7
faults:
  - on: startExecutio
    rate: 2
    status: 99
  - { on: "*", delay: soon }
  - on: readFlowResults
    cut: 0.5
    reset: after
  - { on: readFlowResults, cut: 0.1, retry_after: 3 seconds }
  - { on: readFlowResults }
  - { rate: 0.5, hang: true }
  - { on: "*", customer: 0042, hang: true, script: [] }
  - { on: "*", hang: true, delay: 1 second }
  - { on: "*", hang: true, first: 1, rate: 0.5 }
  - { on: "*", resett: before }
`
    expect(told(source)).toEqual([
      "1:1: unknown key `sead`; did you mean `seed`?",
      "3:9: there is no endpoint `startExecutio`; did you mean `startExecution`?",
      "4:11: expected a number from 0 to 1",
      "5:13: expected a status from 200 to 599",
      "6:23: expected a duration of at most 1 hour: a number and a unit (millis, seconds, minutes, hours)",
      "7:5: `reset`, `cut` exclude each other: write a fault for each",
      "10:51: `retry_after` has a meaning only with `status`",
      "11:5: this does not say what happens: one of `status`, `reset`, `cut`, `malformed`, `hang`, `delay` is missing",
      "12:5: `on` is missing",
      "13:26: expected a string (quote it if YAML reads it as something else)",
      "13:52: expected a list with at least one item",
      "14:5: `delay` never ends with `hang`: remove one of them",
      "15:5: `rate`, `first` exclude each other; without any, it is every call",
      "16:16: unknown key `resett`; did you mean `reset`?",
    ])
  })

  it.each([
    ["", ["1:1: expected a mapping"]],
    ["[]", ["1:1: expected a mapping"]],
    ["seed: 1\n", ["1:1: `faults` is missing"]],
    ["faults: {}\n", ["1:9: expected a list"]],
    [
      "faults:\n\t- on: x\n",
      ["2:1: tabs are not allowed for indentation; use spaces; the file was read no further"],
    ],
  ])("with other content is refused: %j", (source, problems) => {
    expect(told(source)).toEqual(problems)
  })

  it("is described by the command's help with every endpoint and every key", () => {
    const item = Faults.fields.faults.value
    const words = new Set(faultHelp.match(/[A-Za-z_]+/g))
    expect(endpointNames.filter((name) => !words.has(name))).toEqual([])
    expect(Object.keys(item.fields).filter((key) => !words.has(key))).toEqual([])
  })
})

// Which calls go wrong: pure, seeded, and independent of the order in which customers call.

const own = { endpoint: "readExecution", engine: "e", application: "a" } as const
const read = (customer: string): JudgedCall => ({ ...own, customer })
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
    expect(Math.abs(share - 0.1)).toBeLessThan(0.02)
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
