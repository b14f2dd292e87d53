/** What a file of faults may say, and what is said of one that is wrong. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { describe, expect, it } from "@effect/vitest"
import { Effect, Result } from "effect"
import { Faults, endpointNames, faultHelp } from "../../../src/sandbox/faults/Faults.ts"
import { decodeFaults, readFaults } from "../../../src/sandbox/readings/SettingFiles.ts"

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
    expect(decodeFaults("f.yaml", source)).toEqual(
      Result.succeed({
        seed: 7,
        faults: [
          { on: "startExecution", rate: 0.05, status: 503, retry_after: "30 seconds" },
          {
            on: ["readExecution", "showEngine"],
            engine: "sandbox-bank:website",
            first: 3,
            delay: "2 seconds",
            cut: 0.5,
          },
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
    ["faults:\n\t- on: x\n", ["2:1: tabs are not allowed for indentation; use spaces"]],
  ])("with other content is refused: %j", (source, problems) => {
    expect(told(source)).toEqual(problems)
  })

  it.effect("that does not exist is an error with its name", () =>
    Effect.gen(function* () {
      const folder = mkdtempSync(join(tmpdir(), "faults-"))
      const path = join(folder, "none.yaml")
      const failure = yield* Effect.flip(readFaults(path))
      expect(failure.message).toBe(`${path}:1:1: the faults file cannot be read (there is no such file)`)
      writeFileSync(path, "faults: []\n")
      expect(yield* readFaults(path)).toEqual({ faults: [] })
      rmSync(folder, { recursive: true })
    }),
  )

  it("is described by the command's help with every endpoint and every key", () => {
    const item = Faults.fields.faults.value
    const words = new Set(faultHelp.match(/[A-Za-z_]+/g))
    expect(endpointNames.filter((name) => !words.has(name))).toEqual([])
    expect(Object.keys(item.fields).filter((key) => !words.has(key))).toEqual([])
  })
})
