import { Effect } from "effect"
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { mkdirSync, readFileSync, readdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { Ajv2020 } from "ajv/dist/2020.js"
import { describe, expect, it } from "vitest"
import { parse } from "yaml"
import { checkJobs } from "../../src/cli/Jobs.ts"
import { readingsOf } from "../../src/cli/ReadingsOfJob.ts"
import type { Job } from "../../src/jobs/Job.ts"
import { renderProblem } from "../../src/base/DurableFile.ts"
import { sha256Hex } from "../../src/base/Hashes.ts"
import { parseRecordSchema, programTables, recordJsonSchema } from "../../src/records/RecordSchema.ts"
import type { RecordSchemaInvalid } from "../../src/records/RecordSchema.ts"
import { otherRecordsTable, recordTables, rejectedRecordsTable } from "../../src/records/RecordTables.ts"
import {
  keptOf,
  listedSchemas,
  readOwnSchemas,
  schemasOfTables,
  schemasWithKept,
  type NamedSchemas,
  type Readings,
  type SchemaFolders,
  type SchemasInForce,
} from "../../src/records/SchemasInForce.ts"
import { dimensions } from "../../src/tables/Dimensions.ts"
import { systemTables } from "../../src/tables/SystemTables.ts"
import { readingsFolder, schemasFolder } from "./families.ts"
import { freshFolders } from "../harness/Folder.ts"

const aFolder = freshFolders()

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
  it("are refused with file, line and column", () => {
    expect(wrong(good)).toBe("accepted")
    expect(wrong(good.replace("VARCHAR", "TEXT"))).toMatch(/^f\.yaml:7:18: .*expected one of VARCHAR/s)
    for (const shape of ["1,0", "4,4", "38,38", "18, 2"])
      expect(wrong(good.replace("VARCHAR", `"DECIMAL(${shape})"`))).toBe("accepted")
    for (const shape of ["40,2", "39,2", "0,0", "4,5", "18"])
      expect(wrong(good.replace("VARCHAR", `"DECIMAL(${shape})"`))).toMatch(/^f\.yaml:7:18: /)
    expect(wrong(good.replace("comment: Plate.", "commment: Plate."))).toMatch(
      /^f\.yaml:7:\d+: (`comment` is missing|unknown key `commment`.*)\n/,
    )
    expect(wrong(good.replace("plate:", "Plate:"))).toMatch(/^f\.yaml:7:\d+: expected a name in snake_case$/)
    expect(wrong(good.replace("plate:", "constructor:"))).toMatch(
      /^f\.yaml:7:\d+: expected a name in snake_case$/,
    )
    expect(wrong(good.replace("plate:", "run_id:"))).toMatch(/^f\.yaml:7:\d+: run_id is a column that every/)
    for (const name of ["valid_from", "valid_to", "ended_by", "since_sequence", "as_of", "age_days"])
      expect(wrong(good.replace("plate:", `${name}:`))).toBe(
        `f.yaml:7:${name.length + 5}: ${name} is a column that every record table has`,
      )
    expect(wrong(good.replace("table: cars", "table: [cars"))).toMatch(/^f\.yaml:2:\d+: /)
    expect(wrong(`${good}children:\n  tyres: { comment: Tyres. }\n`)).toMatch(
      /^f\.yaml:9:\d+: expected either columns or item$/,
    )
    expect(
      wrong(`${good}children:\n  tyres: { comment: T., columns: { Size: { type: DATE, comment: S. } } }\n`),
    ).toBe("f.yaml:9:42: expected a name in snake_case")
    expect(
      wrong(`${good}children:\n  tyres: { comment: T., item: { name: extra, type: DATE, comment: S. } }\n`),
    ).toBe("f.yaml:9:31: extra is a column that every record table has")
    expect(wrong(`${good}children:\n  plate: { comment: P., columns: {} }\n`)).toBe(
      "f.yaml:9:10: plate is already a column",
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
      /^f\.yaml:\d+:\d+: this is nested too deeply; the file was read no further$/,
    )
    expect(wrong("columns: &a { x: *a }")).toBe(
      "f.yaml:1:18: this is nested too deeply, or an alias (*) contains itself",
    )
  })

  it("may not take the name of a table that every output folder has", () => {
    const own = [...systemTables, ...dimensions, otherRecordsTable, rejectedRecordsTable, { name: "changes" }]
    expect(programTables).toEqual([...new Set(own.map(({ name }) => name))].toSorted())
    for (const name of programTables) {
      const told = `${name} is a table of every output folder; choose another name`
      expect(wrong(good.replace("table: cars", `table: ${name}`))).toBe(`f.yaml:1:8: ${told}`)
      const child = "{ comment: C., item: { name: value, type: DATE, comment: V. } }"
      expect(wrong(`${good}children:\n  ${name}: ${child}\n`)).toBe(`f.yaml:9:${name.length + 5}: ${told}`)
      expect(wrong(`${good}children:\n  ${name}: ${child.replace("{", `{ table: mine,`)}\n`)).toBe("accepted")
    }
    const named = "{ table: documents, comment: C., item: { name: value, type: DATE, comment: V. } }"
    expect(wrong(`${good}children:\n  papers: ${named}\n`)).toMatch(/^f\.yaml:9:20: documents is a table of /)
  })

  it("are written as their page shows", () => {
    const page = readFileSync(join(schemasFolder, "../records.md"), "utf8")
    const [, example = ""] = /```yaml\n(.*?)```/s.exec(page) ?? []
    expect(wrong(example)).toBe("accepted")
  })

  it("are described for editors by a JSON Schema that accepts every file of the program, and no other key", () => {
    const undescribed: Array<string> = []
    const look = (value: unknown): void => {
      if (typeof value !== "object" || value === null) return
      const { properties = {} } = value as { readonly properties?: Readonly<Record<string, unknown>> }
      for (const [key, each] of Object.entries(properties)) {
        const { description = "" } = each as { readonly description?: string }
        if (description.length < 10) undescribed.push(key)
      }
      Object.values(value).forEach(look)
    }
    look(recordJsonSchema())
    expect(undescribed).toEqual([])
    const accepts = new Ajv2020().compile(recordJsonSchema())
    const files = [schemasFolder, readingsFolder].flatMap((folder) =>
      readdirSync(folder).map((name) => readFileSync(join(folder, name), "utf8")),
    )
    expect([...files, good].filter((text) => !accepts(parse(text)))).toEqual([])
    expect(accepts(parse(good.replace("columns:", "mode: freeze\ncolumns:")))).toBe(true)
    expect(accepts(parse(good.replace("columns:", "mode: strict\ncolumns:")))).toBe(false)
    expect(accepts(parse(good.replace("comment: Plate.", "commment: Plate.")))).toBe(false)
  })

  it("of a job are checked with it, before anything is started", async () => {
    const folder = aFolder()
    const job = `name: small
service: sandbox
schemas: ./own
engines: [sandbox-bank:website]
customers: [{ id: c-1, parameters: { username: ok, password: "env:PW" } }]
`
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
    expect(await check()).toEqual([undefined, ["/own/records/cars.yml:7:10: expected a name in snake_case"]])
  })
})

/** A schema of one table with one column `v` and a list `parts` with one column `w`. */
const schemaOf = (
  table: string,
  {
    product = table,
    kinds = [table],
    type = "VARCHAR",
    parts = "VARCHAR",
  }: {
    readonly product?: string
    readonly kinds?: ReadonlyArray<string>
    readonly type?: string
    readonly parts?: string
  } = {},
): string => `table: ${table}
comment: They.
product: ${product}
sub_families: [${kinds.join(", ")}]
features: [${table}_read]
columns:
  v: { type: "${type}", comment: V. }
children:
  parts: { comment: Parts., table: ${table}_parts, columns: { w: { type: "${parts}", comment: W. } } }
`

type Files = Readonly<Record<string, string>>

/** As a job has them that publishes at once. */
const schemasForJob = (folders: SchemaFolders, readings?: Readings, named: NamedSchemas = {}) =>
  Effect.flatMap(listedSchemas(folders, readings), (listed) => schemasWithKept(listed, folders.kept, named))

/** What is in force with these files in the folders `package`, `own` and `kept`. */
const inForceWith = async (
  files: Files,
  read: (folders: SchemaFolders) => ReturnType<typeof schemasForJob>,
) => {
  const folder = aFolder()
  for (const name of ["package", "own"]) mkdirSync(join(folder, name))
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(join(folder, path, ".."), { recursive: true })
    writeFileSync(join(folder, path), text)
  }
  const folders = { package: join(folder, "package"), own: join(folder, "own"), kept: join(folder, "kept") }
  const shown = ({ families: all, texts, gone }: SchemasInForce) => ({
    families: all.map(({ table, subFamilies, columns, children }) =>
      [
        `${table} of ${subFamilies.join(" and ")}:`,
        ...columns.map(({ type, takesNumbers }) => `${type}${takesNumbers === true ? " or number" : ""}`),
        ...children.flatMap((child) => [
          `${child.table}:`,
          ...child.columns.map(
            ({ type, takesNumbers }) => `${type}${takesNumbers === true ? " or number" : ""}`,
          ),
        ]),
      ].join(" "),
    ),
    texts: Object.fromEntries(
      [...texts].map(([table, text]) => [table, Object.keys(files).find((path) => files[path] === text)]),
    ),
    gone,
  })
  return await Effect.runPromise(
    read(folders).pipe(
      Effect.map(shown),
      Effect.catch(({ message }: RecordSchemaInvalid) => Effect.succeed(message.replaceAll(folder, ""))),
      Effect.provide(NodeFileSystem.layer),
    ),
  )
}
const forJob = (files: Files) => inForceWith(files, schemasForJob)
const ofTables = (
  files: Files,
  versions: NamedSchemas["schemas"],
  schema_files: NamedSchemas["schema_files"] = {},
) =>
  inForceWith(files, (folders) =>
    schemasOfTables(folders, { ...(versions && { schemas: versions }), schema_files }),
  )
const plainly = (table: string, type = "VARCHAR") => `${table} of ${table}: ${type} ${table}_parts: VARCHAR`

describe("in force are", () => {
  const cars = { "package/cars.yaml": schemaOf("cars") }

  it("the schemas of the program, but for those that the job replaces or adds, by their files' names", async () => {
    const files = {
      ...cars,
      "package/vans.yaml": schemaOf("vans"),
      "own/a.yaml": schemaOf("vans", { type: "DATE" }),
      "own/d.yml": schemaOf("bikes"),
      "own/notes.txt": "not a schema",
    }
    expect(await forJob(files)).toEqual({
      families: [plainly("vans", "DATE"), plainly("cars"), plainly("bikes")],
      texts: { vans: "own/a.yaml", cars: "package/cars.yaml", bikes: "own/d.yml" },
      gone: [],
    })
    expect(await inForceWith(cars, (folders) => schemasForJob({ ...folders, own: undefined }))).toEqual({
      families: [plainly("cars")],
      texts: { cars: "package/cars.yaml" },
      gone: [],
    })
    const absent = inForceWith(cars, (folders) => schemasForJob({ ...folders, own: `${folders.own}/none` }))
    expect(await absent).toMatchObject({ families: [plainly("cars")] })
  })

  it("none if two of them claim one table or one kind of record", async () => {
    const own = { "own/trucks.yaml": schemaOf("trucks", { product: "cars", kinds: ["cars"] }) }
    expect(await forJob({ ...cars, ...own })).toBe(
      "/own/trucks.yaml:1:1: cars / cars belongs to /package/cars.yaml already",
    )
    const twice = { "own/a.yaml": schemaOf("vans"), "own/b.yml": schemaOf("vans") }
    const told = ["table vans", "table vans_parts", "vans / vans"].map(
      (what) => `/own/b.yml:1:1: ${what} belongs to /own/a.yaml already`,
    )
    expect(await forJob({ ...cars, ...twice })).toBe(told.join("\n"))
    // Asked of the job's own alone, before anything else is read.
    const alone = inForceWith(twice, ({ own: folder = "" }) =>
      Effect.as(readOwnSchemas(folder), { families: [], texts: new Map(), gone: [] }),
    )
    expect(await alone).toBe(told.join("\n"))
  })

  it("also the newest kept ones of tables whose file is gone, without what others claim by now", async () => {
    const kept = {
      "kept/boats.v9.yaml": schemaOf("boats", { type: "DATE" }),
      "kept/boats.v10.yaml": schemaOf("boats", { kinds: ["boats", "rafts"] }),
      "kept/boats.v2.yaml": schemaOf("boats", { type: "BOOLEAN" }),
      "kept/boats.v0.yaml": "not one of ours",
      "kept/cars.v1.yaml": schemaOf("cars"),
      "kept/vans_parts.v1.yaml": schemaOf("vans_parts"),
    }
    const files = { ...cars, ...kept, "package/vans.yaml": schemaOf("vans") }
    expect(await forJob(files)).toEqual({
      families: [plainly("cars"), plainly("vans"), "boats of boats and rafts: VARCHAR boats_parts: VARCHAR"],
      texts: { cars: "package/cars.yaml", vans: "package/vans.yaml", boats: "kept/boats.v10.yaml" },
      gone: ["boats"],
    })
    // Another product may have a kind of the same name; a list whose table is taken has none of its own.
    const rafts = { "package/rafts.yaml": schemaOf("rafts", { product: "boats" }) }
    const others = { "package/others.yaml": schemaOf("others", { kinds: ["boats"] }) }
    const taken = { "package/boats_parts.yaml": schemaOf("boats_parts") }
    expect(await forJob({ ...kept, ...rafts, ...others, ...taken })).toMatchObject({
      families: [
        plainly("boats_parts"),
        "others of boats: VARCHAR others_parts: VARCHAR",
        plainly("rafts"),
        "boats of boats: VARCHAR",
        plainly("cars"),
        plainly("vans_parts"),
      ],
      gone: ["boats", "cars", "vans_parts"],
    })
  })

  it("of those kept ones the text in force rather than the newest, and never one that was changed", async () => {
    const kept = {
      "kept/boats.v1.yaml": schemaOf("boats", { type: "DATE" }),
      "kept/boats.v2.yaml": schemaOf("boats", { type: "BOOLEAN" }),
      "kept/boats.v3.yaml": schemaOf("boats"),
    }
    const textInForce = async (named: NamedSchemas) => {
      const found = await inForceWith({ ...cars, ...kept }, (folders) =>
        schemasForJob(folders, undefined, named),
      )
      return typeof found === "string" ? found : found.texts["boats"]
    }
    expect(await textInForce({})).toBe("kept/boats.v3.yaml")
    expect(await textInForce({ schemas: { boats: 2 } })).toBe("kept/boats.v2.yaml")
    expect(await textInForce({ schemas: { boats: 1 } })).toBe("kept/boats.v1.yaml")
    const changed = {
      "boats.v1.yaml": "of another text",
      "boats.v3.yaml": sha256Hex(kept["kept/boats.v3.yaml"]),
    }
    expect(await textInForce({ schemas: { boats: 1 }, schema_files: changed })).toBe("kept/boats.v3.yaml")
    // Broken in whatever way: only one of which no hash is known is read and complained of.
    const broken = { ...cars, "kept/boats.v1.yaml": "table: [" }
    const of = (schema_files: Files) =>
      inForceWith(broken, (folders) => schemasForJob(folders, undefined, { schema_files }))
    expect(await of({ "boats.v1.yaml": changed["boats.v1.yaml"] })).toMatchObject({
      families: [plainly("cars")],
    })
    expect(await of({})).toMatch(/^\/kept\/boats\.v1\.yaml:1:/)
  })

  it("with texts that take numbers where an earlier schema of the same table had numbers", async () => {
    const numbers = ["INTEGER", "BIGINT", "DOUBLE", "DECIMAL(9,2)"]
    const widenedBy = async (own: object, type: string, parts = "VARCHAR") => {
      const kept = {
        "kept/cars.v1.yaml": schemaOf("cars", { type, parts }),
        "kept/cars.v2.yaml": schemaOf("cars"),
      }
      const found = await forJob({ "package/cars.yaml": schemaOf("cars", own), ...kept })
      return typeof found === "string" ? found : found.families
    }
    for (const type of numbers) {
      expect(await widenedBy({}, type)).toEqual(["cars of cars: VARCHAR or number cars_parts: VARCHAR"])
      expect(await widenedBy({}, "DATE", type)).toEqual([
        "cars of cars: VARCHAR cars_parts: VARCHAR or number",
      ])
      expect(await widenedBy({ type: "JSON" }, type)).toEqual([plainly("cars", "JSON")])
    }
    expect(await widenedBy({}, "BOOLEAN", "DATE")).toEqual([plainly("cars")])
    const ofOthers = { "kept/vans.v1.yaml": schemaOf("vans", { type: "BIGINT", parts: "BIGINT" }) }
    expect(
      await forJob({ ...cars, "package/vans.yaml": schemaOf("vans", { type: "BIGINT" }), ...ofOthers }),
    ).toMatchObject({ families: [plainly("cars"), plainly("vans", "BIGINT").replace(/R$/, "R or number")] })
  })

  it("of published tables the schemas that they were published with, or what comes nearest", async () => {
    const kept = {
      "kept/cars.v1.yaml": schemaOf("cars", { type: "DATE" }),
      "kept/cars.v2.yaml": schemaOf("cars", { type: "BOOLEAN" }),
      "kept/vans.v1.yaml": schemaOf("vans"),
    }
    const files = {
      ...cars,
      ...kept,
      "package/bikes.yaml": schemaOf("bikes"),
      "own/own.yaml": schemaOf("own"),
    }
    const found = async (versions: Readonly<Record<string, number>> | undefined) => {
      const all = await ofTables(files, versions)
      return typeof all === "string" ? all : { families: all.families, gone: all.gone }
    }
    const date = plainly("cars", "DATE")
    expect(await found({ cars: 1, vans: 1 })).toEqual({ families: [date, plainly("vans")], gone: [] })
    expect(await found({})).toEqual({ families: [], gone: [] })
    // Before schemas were kept: those of the program, and the newest kept ones of other tables.
    expect(await found(undefined)).toEqual({
      families: [plainly("bikes"), plainly("cars"), plainly("vans")],
      gone: ["vans"],
    })
    // A lost file: another one that is kept of the table, else the program's; no other table.
    expect(await found({ cars: 7, vans: 1 })).toEqual({
      families: [plainly("vans"), plainly("cars", "BOOLEAN")],
      gone: ["cars"],
    })
    expect(await found({ cars: 1, bikes: 1, boats: 1 })).toEqual({
      families: [date, plainly("bikes")],
      gone: ["bikes"],
    })
  })

  it("told from other files of the output folder by their names", () => {
    expect(["cars.v12.yaml", "cars.v0.yaml", "Cars.v1.yaml", "cars.v1.yml", "cars.yaml"].map(keptOf)).toEqual(
      [{ table: "cars", version: 12 }, undefined, undefined, undefined, undefined],
    )
  })
})

describe("our own readings", () => {
  const reading = (...of: Parameters<typeof schemaOf>) => `${schemaOf(...of)}assumed: true\n`
  const both = reading("vans", { kinds: ["vans", "trucks"] })
  const shipped = {
    "package/cars.yaml": schemaOf("cars"),
    "readings/vans.yaml": both,
    "readings/boats.yaml": reading("boats"),
  }
  const fed = (...codes: ReadonlyArray<string>): Readings => ({ _tag: "Fed", features: new Set(codes) })
  const any: Readings = { _tag: "Fed", features: undefined }
  const named = (...tables: ReadonlyArray<string>): Readings => ({ _tag: "Named", tables })
  const found = async (readings: Readings | undefined, files: Files = {}) => {
    const all = await inForceWith({ ...shipped, ...files }, (folders) => schemasForJob(folders, readings))
    if (typeof all === "string") return all
    const tables = all.families.map((text) => text.replace(/:.*/s, "").replace(/^(\w+) of \1$/, "$1"))
    return { tables, gone: all.gone }
  }
  const vans = "vans of vans and trucks"

  it("are those that a job's features feed, or that it names; none without a word", async () => {
    expect(await found(undefined)).toEqual({ tables: ["cars"], gone: [] })
    expect(await found(any)).toEqual({ tables: ["cars", "boats", vans], gone: [] })
    expect(await found(fed("vans_read", "other"))).toEqual({ tables: ["cars", vans], gone: [] })
    expect(await found(named("boats"))).toEqual({ tables: ["cars", "boats"], gone: [] })
  })

  it("leave to a job's own schemas the table, the list and the kinds of records that these claim", async () => {
    const trucks = { "own/trucks.yaml": schemaOf("trucks", { product: "vans", kinds: ["trucks"] }) }
    for (const readings of [any, named("vans", "boats")]) {
      expect(await found(readings, trucks)).toEqual({ tables: ["cars", "trucks", "boats", "vans"], gone: [] })
      const ours = { "own/vans.yaml": schemaOf("vans", { kinds: ["vans"] }) }
      expect(await found(readings, ours)).toEqual({ tables: ["cars", "vans", "boats"], gone: [] })
      const all = { "own/fleet.yaml": schemaOf("fleet", { product: "vans", kinds: ["vans", "trucks"] }) }
      expect(await found(readings, all)).toEqual({
        tables: ["cars", "fleet of vans and trucks", "boats"],
        gone: [],
      })
    }
    const parts = { "own/vans_parts.yaml": schemaOf("vans_parts") }
    expect(await inForceWith({ ...shipped, ...parts }, (all) => schemasForJob(all, any))).toMatchObject({
      families: expect.arrayContaining(["vans of vans and trucks: VARCHAR"]) as unknown,
    })
  })

  it("leave to a schema that only the output folder has what it has, unless the job names them", async () => {
    const fleet = { "kept/fleet.v1.yaml": schemaOf("fleet", { product: "vans", kinds: ["trucks"] }) }
    expect(await found(any, fleet)).toEqual({
      tables: ["cars", "fleet of trucks", "boats", "vans"],
      gone: ["fleet"],
    })
    expect(await found(named("vans"), fleet)).toEqual({
      tables: ["cars", vans, "fleet of "],
      gone: ["fleet"],
    })
    // One of which nothing is left has no table.
    const whole = { "kept/fleet.v1.yaml": schemaOf("fleet", { product: "vans", kinds: ["vans", "trucks"] }) }
    expect(await found(any, whole)).toEqual({
      tables: ["cars", "fleet of vans and trucks", "boats"],
      gone: ["fleet"],
    })
    const another = { "kept/vans.v1.yaml": schemaOf("vans", { kinds: ["trucks"] }) }
    expect(await found(any, another)).toEqual({ tables: ["cars", "vans of trucks", "boats"], gone: ["vans"] })
    expect(await found(named("vans"), another)).toEqual({ tables: ["cars", vans], gone: [] })
  })

  it("stay in force once they were, and are not gone while the program has them", async () => {
    const kept = { "kept/vans.v1.yaml": reading("vans", { kinds: ["trucks"] }) }
    expect(await found(undefined, kept)).toEqual({ tables: ["cars", "vans of trucks"], gone: [] })
    // The program's has changed since.
    expect(await found(any, kept)).toEqual({ tables: ["cars", "boats", vans], gone: [] })
    const old = { "kept/rafts.v1.yaml": reading("rafts") }
    expect(await found(undefined, old)).toEqual({ tables: ["cars", "rafts"], gone: ["rafts"] })
  })

  it("of published tables have what they had then: the order of the versions is that of the claims", async () => {
    const kept = {
      "kept/vans.v1.yaml": both,
      "kept/fleet.v1.yaml": schemaOf("fleet", { product: "vans", kinds: ["trucks"] }),
    }
    const first = async (versions: Readonly<Record<string, number>>) => {
      const all = await ofTables({ ...shipped, ...kept }, versions)
      return typeof all === "string" ? all : all.families.map((text) => text.replace(/:.*/s, ""))
    }
    expect(await first({ fleet: 1, vans: 1 })).toEqual(["fleet of trucks", "vans of vans"])
    expect(await first({ vans: 1, fleet: 1 })).toEqual(["vans of vans and trucks", "fleet of "])
    // A kept file is lost: the program still has one.
    expect(await first({ boats: 1, fleet: 1 })).toEqual(["fleet of trucks", "boats of boats"])
  })

  it("are a job's by its service, its features and its pseudonyms", () => {
    const embedded = { _tag: "Embedded", seed: 7, speed: 1, faults: undefined } as const
    const asking = (...codes: ReadonlyArray<string>) => {
      const features = codes.map((code) => ({ code }))
      return { engine_reference: "cloud-hosting:api", features } as unknown as Job["assignments"][number]
    }
    const job = { service: embedded, assignments: [asking("a", "b"), asking("b", "c")], sessions: [] }
    const { pseudonyms } = { pseudonyms: {} } as { readonly pseudonyms: NonNullable<Job["pseudonyms"]> }
    const remote = { ...job, service: { _tag: "Remote" } as Job["service"] }
    const none = named()
    expect(readingsOf(job)).toEqual(fed("a", "b", "c"))
    expect([readingsOf(remote), readingsOf({ ...job, pseudonyms })]).toEqual([none, none])
    // What the engine reads by itself.
    const usual = { assignments: [asking("a"), asking()] }
    expect(readingsOf({ ...job, ...usual })).toEqual(
      fed("a", "cloud_resource_read", "supplier_invoices_read"),
    )
    expect(readingsOf({ ...remote, ...usual, record_schemas: "all" })).toEqual(any)
    const sessions = [{}] as unknown as Job["sessions"]
    expect(readingsOf({ ...job, assignments: [], sessions })).toEqual(any)
    for (const one of [job, remote, { ...job, pseudonyms }]) {
      expect(readingsOf({ ...one, record_schemas: ["cards"] })).toEqual(named("cards"))
      expect(readingsOf({ ...one, record_schemas: [] })).toEqual(none)
      expect(readingsOf({ ...one, record_schemas: "all" })).toEqual(fed("a", "b", "c"))
    }
  })

  it("say in the comments of their tables that they are assumed", () => {
    const parsed = Effect.runSync(parseRecordSchema("f.yaml", both))
    const comments = recordTables([parsed]).map(({ comment }) => comment)
    const told = "Our own reading: the reference does not show this shape."
    expect(comments.slice(0, 2)).toEqual([`They. ${told}`, `Parts. ${told}`])
    expect(comments.slice(2).join()).not.toContain(told)
  })
})
