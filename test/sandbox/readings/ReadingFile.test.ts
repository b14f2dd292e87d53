/** What a file of a reading may say, what is said of one that is wrong, and that it survives being written. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { describe, expect, it } from "@effect/vitest"
import { Effect, Result, Schema } from "effect"
import * as fc from "fast-check"
import {
  Reading,
  readingChoices,
  readingHelp,
  resolveReading,
  todaysReading,
} from "../../../src/sandbox/state/Reading.ts"
import { decodeReading, encodeReading, readReading } from "../../../src/sandbox/readings/SettingFiles.ts"

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
    const source = `heads: answers
optionals: nul
products_count: { text: true }
flow_api: null
messages:
`
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

  it("has a section and a sentence for each key", () => {
    expect(readingChoices.filter(({ section }) => !/^[0-9]/.test(section))).toEqual([])
    expect(readingChoices.filter(({ about }) => !about.endsWith("."))).toEqual([])
  })

  it("says the same after it is written", () => {
    fc.assert(
      fc.property(anyReading, (reading) => {
        expect(decodeReading("r.yaml", encodeReading(reading))).toEqual(Result.succeed(reading))
      }),
    )
    expect(encodeReading({ flow_session_ids: "any" })).toBe(
      [
        "# 4.10: Which session ids the flow API takes: ObjectIds only (any other answers",
        "# 422), or any text. (object_id | any)",
        "flow_session_ids: any",
        "",
      ].join("\n"),
    )
  })

  it("is described by the command's help with every key and every value", () => {
    const lines = new Set(readingHelp.split("\n"))
    expect(readingChoices.filter(({ key, values }) => !lines.has(`  ${key}: ${values.join(" | ")}`))).toEqual(
      [],
    )
    expect(readingHelp.split("\n").filter((line) => line.length > 108)).toEqual([])
  })

  it.effect("that cannot be read is named", () =>
    Effect.gen(function* () {
      const folder = mkdtempSync(join(tmpdir(), "nightjar-reading-"))
      const path = join(folder, "r.yaml")
      const failure = yield* Effect.flip(readReading(path))
      expect(failure.message).toBe(`${path}:1:1: the reading file cannot be read (there is no such file)`)
      writeFileSync(path, "flow_api: absent\n")
      expect(yield* readReading(path)).toEqual({ flow_api: "absent" })
      rmSync(folder, { recursive: true })
    }),
  )
})
