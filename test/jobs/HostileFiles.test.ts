/** A sample of `npm run hostile`, and files that are large in one way, each refused at its place. */
import * as NodeServices from "@effect/platform-node/NodeServices"
import { describe, expect, it } from "@effect/vitest"
import { Effect, FileSystem, Result } from "effect"
import { DuckDb } from "../../src/base/DuckDb.ts"
import { readParquetRows } from "../../src/jobs/ParquetRows.ts"
import { judgeFiles } from "./HostileFiles.ts"
import { load } from "./loading.ts"
import { effect } from "../harness/Steps.ts"

const head = "name: a\nservice: sandbox\nengines: [sandbox-bank:website]\n"
const numbered = (count: number, line: (index: number) => string) =>
  Array.from({ length: count }, (_, index) => line(index)).join("")

const shapes: ReadonlyArray<readonly [string, string, string]> = [
  ["brackets a million deep", `x: ${"[".repeat(1e6)}`, "4:70: this is nested too deeply"],
  ["lists in lists on one line", `x: ${"- ".repeat(1e5)}`, "4:4: this is not allowed here"],
  ["mappings in mappings", `x: ${"{a: ".repeat(1e5)}`, "4:265: this is nested too deeply"],
  ["a hundred thousand closing brackets", `x: ${"}".repeat(1e5)}`, "4:4: this is not allowed here"],
  [
    "a value without end",
    `x: "${"word\n  ".repeat(3e5)}`,
    "4:4: this is longer than 1000000 characters; is a quote missing?",
  ],
  ["many documents", "---\n".repeat(1e5), "5:4: a file must contain a single document"],
  ["directives", "%X\n".repeat(1e5), "17:1: this is not allowed here"],
  [
    "an alias of aliases of aliases",
    `a: &a0 [x]\n${numbered(30, (i) => `b${i}: &a${i + 1} [${`*a${i}, `.repeat(10)}]\n`)}`,
    "4:9: up to here the file has more than 500000 values, counting what aliases (*) stand for",
  ],
  [
    "an alias of nothing",
    "deadline: *nobody",
    "4:11: this alias (*) has no anchor (&) before it; quote a value that begins with *",
  ],
  ["five thousand keys", numbered(5e3, (i) => `k${i}: 1\n`), "4:1: this key is unknown"],
  ["one key a thousand times", `x:\n${"  a: 1\n".repeat(1_000)}`, "4:1: unknown key"],
]

describe("hostile files", () => {
  it.layer(NodeServices.layer, { excludeTestServices: true })((it) => {
    effect(
      "of 48 kinds get an answer: no defect, no hang, a place for every problem, and no secret",
      function* () {
        const { counts, violations } = yield* judgeFiles(1, 48)
        expect(violations).toEqual([])
        expect(Object.values(counts).every((count) => count > 4)).toBe(true)
      },
    )

    effect.each(shapes)("a job file with %s is refused at its place", function* ([, source, message]) {
      const { errors } = yield* load(source.startsWith("%") ? source : head + source)
      expect(errors[0]?.slice("job.yaml:".length, "job.yaml:".length + message.length)).toBe(message)
      expect(errors.length).toBeLessThanOrEqual(1_001)
    })

    effect("of a list of a thousand customers, each is read with its place", function* () {
      const customers = (count: number) =>
        numbered(
          count,
          (i) => `  - id: c-${i}\n    parameters: { username: u, password: "p: ${i}" } # note\n\n`,
        )
      const valid = yield* load(`${head}customers:\n${customers(1_000)}  - { id: c-7 }\n`)
      expect(valid.errors).toEqual([
        "job.yaml:3005:11: this customer is already on `sandbox-bank:website`, at job.yaml:26:9",
      ])
      const { job } = yield* load(`${head}customers:\n${customers(1_000)}`)
      const bound = (job as { assignments: ReadonlyArray<unknown> }).assignments
      expect([bound.length, bound[999]]).toEqual([
        1_000,
        {
          customer_id: "c-999",
          engine_reference: "sandbox-bank:website",
          features: [],
          configurations: {},
          hooks_extra_data: {},
          source: "job.yaml:3002:9",
          login: {
            _tag: "Parameters",
            parameters: {
              username: { _tag: "Literal", value: { literal: "u" } },
              password: { _tag: "Literal", value: { literal: "p: 999" } },
            },
            tokenized_access: false,
          },
        },
      ])
    })

    effect("a file of customers that is endless in one way is refused", function* () {
      const files = {
        "first.csv": "a".repeat(1_500_000),
        "cells.csv": `customer_id\n${"a,".repeat(5_000)}\n`,
        "short.csv": `customer_id,b\n${"a\n".repeat(5_000)}`,
        "line.ndjson": `{"customer_id":"${"a".repeat(1_500_000)}"}`,
        "deep.ndjson": `{"customer_id":"a","b":${"[".repeat(100)}${"]".repeat(100)}}\n`,
        "fields.ndjson": JSON.stringify({
          customer_id: "a",
          ...Object.fromEntries(Array.from({ length: 2_000 }, (_, i) => [`k${i}`, 1])),
        }),
      }
      const customers = Object.keys(files).map((name) => `  - from: ${name}\n`)
      const first = yield* Effect.forEach(customers, (line) =>
        Effect.map(load(`${head}customers:\n${line}`, { files }), ({ errors }) => [errors[0], errors.length]),
      )
      expect(first).toEqual([
        ["first.csv:1:1: the first line has no end", 1],
        ["cells.csv:2:1: this row has more than 1000 cells", 1],
        ["short.csv:2:1: this row has 1 cell, but the header has 2", 1_001],
        ["line.ndjson:1:1: a line is longer than 1000000 characters", 1],
        ["deep.ndjson:1:1: this line is nested too deeply", 1],
        ["fields.ndjson:1:1: this line has more than 1000 fields", 1],
      ])
    })

    it.effect(
      "a Parquet file that expands to more than it should is refused, and its name is not a pattern",
      () =>
        Effect.gen(function* () {
          const bounds = { rowsMax: 1_000, columnsMax: 10, bytesMax: 1_000_000 }
          const columns = Array.from({ length: 11 }, (_, index) => `${index} AS c${index}`).join(", ")
          const written: Readonly<Record<string, string>> = {
            "a[1]*?.parquet": "SELECT 'right' AS customer_id",
            "a1x.parquet": "SELECT 'wrong' AS customer_id",
            "rows.parquet": "SELECT 'c' AS customer_id FROM range(200000)",
            "columns.parquet": `SELECT ${columns}`,
            "values.parquet": "SELECT repeat('a', 10000) AS customer_id FROM range(1000)",
            "list.parquet": "SELECT 'c' AS customer_id, range(300000) AS list",
          }
          const files = yield* FileSystem.FileSystem
          const folder = yield* files.makeTempDirectoryScoped()
          const database = yield* DuckDb
          const connection = yield* database.open({ path: ":memory:", access: "read-write" })
          for (const [index, sql] of Object.values(written).entries())
            yield* connection.run(`COPY (${sql}) TO '${folder}/${index}' (FORMAT parquet)`)
          const read = yield* Effect.forEach(Object.keys(written), (name, index) =>
            Effect.andThen(
              files.rename(`${folder}/${index}`, `${folder}/${name}`),
              Effect.result(readParquetRows(`${folder}/${name}`, bounds)),
            ),
          )
          expect(read).toEqual([
            Result.succeed({ columns: ["customer_id"], rows: [["right"]] }),
            Result.succeed({ columns: ["customer_id"], rows: [["wrong"]] }),
            Result.fail("the file has more than 1000 rows"),
            Result.fail("the file has more than 10 columns"),
            Result.fail("the file contains more than 1 MB of values"),
            Result.fail("the file contains more than 1 MB of values"),
          ])
        }).pipe(Effect.provide(DuckDb.layer)),
    )
  })
})
