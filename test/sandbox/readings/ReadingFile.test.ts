/** What a file of a reading may say, what is said of one that is wrong, and that it survives being written. */
import { writeFileSync } from "node:fs"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { describe, expect, it } from "@effect/vitest"
import { Effect, Result, Schema } from "effect"
import * as fc from "fast-check"
import { renderProblem } from "../../../src/base/DurableFile.ts"
import { checkJobs } from "../../../src/cli/Jobs.ts"
import { decodeReading, encodeReading, readFaults } from "../../../src/sandbox/readings/SettingFiles.ts"
import { readReading } from "../../../src/sandbox/readings/SettingFiles.ts"
import type { FaultsInvalid, ReadingInvalid } from "../../../src/sandbox/readings/SettingFiles.ts"
import { Reading, readingChoices, readingHelp, resolveReading } from "../../../src/sandbox/state/Reading.ts"
import { todaysReading } from "../../../src/sandbox/state/Reading.ts"
import { folder } from "../../harness/Folder.ts"
import { effect } from "../../harness/Steps.ts"

const told = (source: string): ReadonlyArray<string> =>
  Result.match(decodeReading("r.yaml", source), {
    onSuccess: () => [],
    onFailure: (problems) => problems.map(({ line, column, message }) => `${line}:${column}: ${message}`),
  })

const decodePart = Schema.decodeUnknownSync(Reading)
const anyReading = fc
  .record(Object.fromEntries(readingChoices.map(({ key, values }) => [key, fc.constantFrom(...values)])), {
    requiredKeys: [],
  })
  .map((values) => decodePart({ ...values }))

describe("a file of a reading", () => {
  it("says how the service behaves, and leaves the rest as it is today", () => {
    const source = '# day one\nconflict_external_id: null\noptionals: "null"\nhead: not_allowed\n'
    expect(decodeReading("r.yaml", source)).toEqual(
      Result.succeed({ conflict_external_id: "null", optionals: "null", head: "not_allowed" }),
    )
    expect(decodeReading("r.yaml", "")).toEqual(Result.succeed({}))
    expect(resolveReading({ head: "not_allowed" })).toEqual({ ...todaysReading, head: "not_allowed" })
  })

  it("with several mistakes gets all of them reported, each with its place and the nearest word", () => {
    const source =
      "heads: answers\noptionals: nul\nproducts_count: { text: true }\nflow_api: null\nmessages:\n"
    expect(told(source)).toEqual([
      "1:1: unknown key `heads`; did you mean `head`?",
      "2:12: `optionals` cannot be `nul`; did you mean `null`?",
      "3:17: expected `shown` or `absent` or `null` or `text` or `float` or `list`",
      "4:11: expected `present` or `absent` or `forbidden`",
      "5:10: expected `shown` or `absent_when_empty`",
    ])
    expect(told("- head")).toEqual(["1:1: expected a mapping"])
    expect(told("head: [")).toHaveLength(1)
  })

  it("says the same after it is written", () => {
    fc.assert(
      fc.property(anyReading, (reading) => {
        expect(decodeReading("r.yaml", encodeReading(reading))).toEqual(Result.succeed(reading))
      }),
    )
    expect(encodeReading({ flow_session_ids: "any" })).toBe(
      "# 4.10: Which session ids the flow API takes: ObjectIds only (any other answers\n" +
        "# 422), or any text. (object_id | any)\nflow_session_ids: any\n",
    )
  })

  it("is described by the command's help with every key and every value", () => {
    const lines = new Set(readingHelp.split("\n"))
    expect(readingChoices.filter(({ key, values }) => !lines.has(`  ${key}: ${values.join(" | ")}`))).toEqual(
      [],
    )
    expect(readingHelp.split("\n").filter((line) => line.length > 108)).toEqual([])
  })
})

// Faults and readings as a user gives them: by a job's `service`, or by the command's flag.

const jobWith = (kind: string) => `name: small
service: { sandbox: { ${kind}: ${kind}.yaml } }
engines: [sandbox-bank:website]
customers: [{ id: c-1, parameters: { username: ok, password: "env:PW" } }]
`
interface SettingFile extends Record<"kind" | "wrong" | "right", string> {
  readonly read: (path: string) => Effect.Effect<unknown, FaultsInvalid | ReadingInvalid>
  readonly problems: ReadonlyArray<string>
  readonly content: unknown
}
const settings: ReadonlyArray<SettingFile> = [
  {
    kind: "faults",
    read: readFaults,
    wrong: "faults:\n  - { on: strtExecution, status: 503, frist: 1 }\n",
    problems: [
      "2:11: there is no endpoint `strtExecution`; did you mean `startExecution`?",
      "2:39: unknown key `frist`; did you mean `first`?",
    ],
    right: "faults: [{ on: startExecution, status: 503, first: 1 }]\n",
    content: { faults: [{ on: "startExecution", status: 503, first: 1 }] },
  },
  {
    kind: "reading",
    read: readReading,
    wrong: "flow_ap: absent\nhead: never\n",
    problems: [
      "1:1: unknown key `flow_ap`; did you mean `flow_api`?",
      "2:7: `head` cannot be `never`; known names: answers, not_allowed",
    ],
    right: "flow_api: absent\n",
    content: { flow_api: "absent" },
  },
]

describe.each(settings)("a file of $kind", ({ kind, read, wrong, problems, right, content }) => {
  effect("is read as it is, or refused with what is wrong, by the command and with a job", function* () {
    const root = yield* folder
    const path = `${root}/${kind}.yaml`
    const job = `${root}/job.yaml`
    writeFileSync(job, jobWith(kind))
    const checked = Effect.map(checkJobs([job]), ([one]) => one).pipe(
      Effect.provide(NodeServices.layer),
      Effect.orDie,
    )
    const refused = (problemsOf: ReadonlyArray<string>) =>
      Effect.gen(function* () {
        const expected = problemsOf.map((problem) => `${path}:${problem}`)
        const failure = yield* Effect.flip(Effect.asVoid(read(path)))
        expect(failure.message.split("\n")).toEqual(expected)
        const { job: valid, errors } = (yield* checked) ?? {}
        expect([valid, errors?.map(renderProblem)]).toEqual([undefined, expected])
      })
    yield* refused([`1:1: the ${kind} file cannot be read (there is no such file)`])
    writeFileSync(path, wrong)
    yield* refused(problems)
    writeFileSync(path, right)
    const { job: valid, errors } = (yield* checked) ?? {}
    expect([yield* read(path), valid?.name, errors]).toEqual([content, "small", []])
    const service = { _tag: "Embedded", seed: 1, speed: 1, faults: undefined, reading: undefined }
    expect(valid?.service).toEqual({ ...service, [kind]: path })
  })
})
