import { Effect } from "effect"
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Ajv2020 } from "ajv/dist/2020.js"
import { describe, expect, it } from "vitest"
import { parse } from "yaml"
import { checkJobs } from "../../src/cli/Jobs.ts"
import { renderProblem } from "../../src/foundation/FileProblem.ts"
import { loadRecordSchemas } from "../../src/records/LoadRecordSchemas.ts"
import { recordJsonSchema } from "../../src/records/RecordJsonSchema.ts"
import { parseRecordSchema } from "../../src/records/RecordSchema.ts"
import { recordTables } from "../../src/records/RecordTables.ts"
import { families, schemasFolder } from "./families.ts"

const wrong = (text: string) =>
  Effect.runSync(
    parseRecordSchema("f.yaml", text).pipe(
      Effect.map(() => "accepted"),
      Effect.catch((error) => Effect.succeed(error.message)),
    ),
  )

const good = `table: cars
comment: Cars.
product: vehicles
sub_families: ["vehicles:car"]
features: [vehicles_data]
columns:
  plate: { type: VARCHAR, required: true, comment: Plate. }
`

describe("record schemas", () => {
  it("in the repository give the tables of the contract, children after parents, with comments", () => {
    const tables = recordTables(families)
    expect(tables.map(({ spec, features }) => [spec.name, features])).toEqual([
      ["customer_profiles", ["customer_information_read"]],
      ["identification_numbers", ["customer_information_read"]],
      ["emails", ["customer_information_read"]],
      ["phones", ["customer_information_read"]],
      ["addresses", ["customer_information_read"]],
      ["higher_education", ["academic_data"]],
      ["secondary_education", ["academic_data"]],
      ["other_records", undefined],
      ["rejected_records", undefined],
    ])
    expect(families.map(({ key, fetched, mode }) => [key, fetched, mode])).toEqual([
      [["type"], ["fetch_date"], "evolve"],
      [["qualification_name", "institution_name"], ["fetch_date"], "evolve"],
      [["qualification_name", "institution_name"], ["fetch_date"], "evolve"],
    ])
    // What a record may lack, or have in a form that does not fit, may be NULL in its table.
    expect(
      tables.slice(0, 7).map(({ spec }) =>
        spec.columns
          .slice(9)
          .filter(({ nullable }) => !nullable)
          .map(({ name }) => name)
          .join(" "),
      ),
    ).toEqual([
      "product sub_family fetch_date type",
      "position",
      "position",
      "position",
      "position",
      "product sub_family fetch_date qualification_name institution_name",
      "product sub_family",
    ])
    const lineage =
      "run_id run_date task_id execution_id session_id customer_id engine_reference record_id content_id"
    for (const { spec } of tables) {
      const names = spec.columns.map(({ name }) => name)
      expect(names.slice(0, 9).join(" ")).toBe(lineage)
      expect(new Set(names).size).toBe(names.length)
      expect(
        [spec.comment, ...spec.columns.map(({ comment }) => comment)].filter((text) => text === ""),
      ).toEqual([])
    }
    const columns = (table: string) =>
      tables
        .find(({ spec }) => spec.name === table)!
        .spec.columns.slice(9)
        .map(({ name }) => name)
        .join(" ")
    expect(columns("emails")).toBe("position email misfits extra")
    expect(columns("phones")).toBe("position phone misfits extra")
    expect(columns("identification_numbers")).toBe(
      "position type value validated country valid_until misfits extra",
    )
    expect(columns("other_records")).toBe("product sub_family fetch_date record")
    expect(columns("rejected_records")).toBe("product sub_family reason path record")
  })

  it("are refused with file, line and column", () => {
    expect(wrong(good)).toBe("accepted")
    expect(wrong(good.replace("VARCHAR", "TEXT"))).toMatch(/^f\.yaml:7:18: .*expected one of VARCHAR/s)
    expect(wrong(good.replace("VARCHAR", '"DECIMAL(40,2)"'))).toMatch(/^f\.yaml:7:18: /)
    expect(wrong(good.replace("comment: Plate.", "commment: Plate."))).toMatch(
      /^f\.yaml:7:\d+: (`comment` is missing|unknown key `commment`.*)\n/,
    )
    expect(wrong(good.replace("plate:", "Plate:"))).toMatch(/^f\.yaml:7:\d+: expected a name in snake_case$/)
    expect(wrong(good.replace("plate:", "constructor:"))).toMatch(
      /^f\.yaml:7:\d+: expected a name in snake_case$/,
    )
    expect(wrong(good.replace("plate:", "run_id:"))).toMatch(/^f\.yaml:7:\d+: run_id is a column that every/)
    expect(wrong(good.replace("table: cars", "table: [cars"))).toMatch(/^f\.yaml:2:\d+: /)
    expect(wrong(`${good}children:\n  tyres: { comment: Tyres. }\n`)).toMatch(
      /^f\.yaml:9:\d+: expected either columns or item$/,
    )
    expect(wrong(good.replace("columns:", "key: [plate, colour]\ncolumns:"))).toMatch(
      /^f\.yaml:6:14: colour is no column of this table$/,
    )
    expect(wrong(good.replace("columns:", "mode: strict\ncolumns:"))).toMatch(/^f\.yaml:6:7: /)
    expect(wrong(good.replace("plate:", "misfits:"))).toMatch(
      /^f\.yaml:7:\d+: misfits is a column that every/,
    )
    expect(wrong("")).toBe("f.yaml:1:1: expected a mapping")
    expect(wrong(`${good}features: ${"[".repeat(10_000)}`)).toMatch(
      /^f\.yaml:\d+:\d+: this is nested too deeply$/,
    )
    expect(wrong("columns: &a { x: *a }")).toBe(
      "f.yaml:1:18: this is nested too deeply, or an alias (*) contains itself",
    )
  })

  it("are written as their page shows", () => {
    const page = readFileSync(join(schemasFolder, "../records.md"), "utf8")
    const [, example = ""] = /```yaml\n(.*?)```/s.exec(page) ?? []
    expect(wrong(example)).toBe("accepted")
  })

  it("are described for editors by a JSON Schema that accepts every file of the program, and no other key", () => {
    const accepts = new Ajv2020().compile(recordJsonSchema())
    const files = readdirSync(schemasFolder).map((name) => readFileSync(join(schemasFolder, name), "utf8"))
    expect([...files, good].map((text) => accepts(parse(text)))).toEqual([true, true, true, true])
    expect(accepts(parse(good.replace("columns:", "mode: freeze\ncolumns:")))).toBe(true)
    expect(accepts(parse(good.replace("columns:", "mode: strict\ncolumns:")))).toBe(false)
    expect(accepts(parse(good.replace("comment: Plate.", "commment: Plate.")))).toBe(false)
  })

  it("may not claim one table or one sub_family twice", async () => {
    const folder = mkdtempSync(join(tmpdir(), "schemas-"))
    try {
      writeFileSync(join(folder, "a.yaml"), good)
      writeFileSync(join(folder, "b.yaml"), good.replace("vehicles:car", "vehicles:bus"))
      writeFileSync(join(folder, "c.yaml"), good.replace("table: cars", "table: other_records"))
      writeFileSync(join(folder, "notes.txt"), "not a schema")
      const message = await Effect.runPromise(
        loadRecordSchemas(folder).pipe(
          Effect.map(() => "accepted"),
          Effect.catch((error) => Effect.succeed(error.message)),
          Effect.provide(NodeFileSystem.layer),
        ),
      )
      expect(message.replaceAll(folder, "")).toBe(
        [
          "/b.yaml:1:1: table cars belongs to /a.yaml already",
          "/c.yaml:1:1: table other_records belongs to the program itself already",
          "/c.yaml:1:1: vehicles / vehicles:car belongs to /a.yaml already",
        ].join("\n"),
      )
    } finally {
      rmSync(folder, { recursive: true })
    }
  })

  it("of a job are checked with it, before anything is started", async () => {
    const folder = mkdtempSync(join(tmpdir(), "schemas-"))
    const job = `name: small
service: sandbox
schemas: ./own
engines: [sandbox-bank:website]
customers: [{ id: c-1, parameters: { username: ok, password: "env:PW" } }]
`
    try {
      mkdirSync(join(folder, "own/records"), { recursive: true })
      writeFileSync(join(folder, "job.yaml"), job)
      const check = async () => {
        const [one] = await Effect.runPromise(
          Effect.provide(checkJobs([join(folder, "job.yaml")]), NodeServices.layer),
        )
        return [
          one?.job?.schemas?.replace(folder, ""),
          one?.errors.map((error) => renderProblem(error).replaceAll(folder, "")),
        ]
      }
      expect(await check()).toEqual(["/own", []])
      writeFileSync(join(folder, "own/records/cars.yaml"), good)
      expect(await check()).toEqual(["/own", []])
      writeFileSync(join(folder, "own/records/cars.yml"), good)
      expect(await check()).toEqual([
        undefined,
        [
          "/own/records/cars.yml:1:1: table cars belongs to /own/records/cars.yaml already",
          "/own/records/cars.yml:1:1: vehicles / vehicles:car belongs to /own/records/cars.yaml already",
        ],
      ])
      writeFileSync(join(folder, "own/records/cars.yml"), good.replace("plate:", "Plate:"))
      expect(await check()).toEqual([
        undefined,
        ["/own/records/cars.yml:7:10: expected a name in snake_case"],
      ])
    } finally {
      rmSync(folder, { recursive: true })
    }
  })
})
