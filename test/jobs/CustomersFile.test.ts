import { chmodSync, chownSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { describe, expect, it } from "@effect/vitest"
import { Effect, FileSystem, Layer } from "effect"
import * as NodeServices from "@effect/platform-node/NodeServices"
import * as fc from "fast-check"
import { DuckDb } from "../../src/base/DuckDb.ts"
import { CsvReader, type CsvRow } from "../../src/jobs/Csv.ts"
import { checkLoginsFile } from "../../src/jobs/EnvFile.ts"
import { makeFindings } from "../../src/jobs/Problem.ts"
import { env, jobFrom, literal, load, notWhole, parametersLogin, plainEngine, smallJob } from "./loading.ts"
import { effect, withLayer } from "../harness/Steps.ts"

const inFiles = withLayer(Layer.merge(NodeServices.layer, DuckDb.layer))

const readCsv = (chunks: ReadonlyArray<string>) => {
  const rows: Array<CsvRow> = []
  const errors: Array<string> = []
  const reader = new CsvReader(
    (row) => rows.push(row),
    ({ line, column }, message) => errors.push(`${line}:${column}: ${message}`),
  )
  chunks.forEach((chunk) => reader.push(chunk))
  reader.end()
  return { rows, errors, cells: rows.map((row) => row.cells) }
}

describe("a CSV text", () => {
  it("has its rows, lines and columns, whatever its line ends and quotes", () => {
    const text = 'customer_id,note\r\nc-1,"a ""b"",\nc"\r\n\r\n"c-2",plain "x"\rc-3,\nc-4,"last"'
    expect(readCsv([text])).toMatchObject({
      rows: [
        { line: 1, columns: [1, 13], cells: ["customer_id", "note"] },
        { line: 2, columns: [1, 5], cells: ["c-1", 'a "b",\nc'] },
        { line: 5, columns: [1, 7], cells: ["c-2", 'plain "x"'] },
        { line: 6, columns: [1, 5], cells: ["c-3", ""] },
        { line: 7, columns: [1, 5], cells: ["c-4", "last"] },
      ],
      errors: [],
    })
  })

  it("may be separated by semicolons, as its header shows", () => {
    expect(readCsv(["customer_id;pin\nc-1;0,5\n"]).cells).toEqual([
      ["customer_id", "pin"],
      ["c-1", "0,5"],
    ])
  })

  it("is refused with its place if a quote is never closed, or closed too early", () => {
    expect(readCsv(['a,b\nc,"d\ne\n']).errors).toEqual(["2:3: this quote is never closed"])
    expect(readCsv(['a,b\n"c"d,e\n']).errors).toEqual(["2:4: text after a closing quote"])
    expect(readCsv([`a,b\nc,"${"d".repeat(1_000_001)}`]).errors).toEqual([
      "2:3: this cell is longer than 1,000,000 characters; is a closing quote missing?",
    ])
  })

  it("returns any cells that were quoted into it, in whatever pieces it arrives", () => {
    const cell = fc.string({
      unit: fc.constantFrom("a", '"', ",", ";", "\n", "\r", " ", "é", "0"),
      maxLength: 6,
    })
    const table = fc.array(fc.tuple(cell, cell, cell), { maxLength: 5 })
    const quoted = (text: string) => `"${text.replaceAll('"', '""')}"`
    fc.assert(
      fc.property(
        table,
        fc.constantFrom("\n", "\r\n", "\r"),
        fc.integer({ min: 1, max: 9 }),
        (rows, end, size) => {
          const lines = [["x", "y", "z"], ...rows].map((cells) => cells.map(quoted).join(",") + end)
          const text = lines.join("")
          const chunks = text.match(new RegExp(`[^]{1,${size}}`, "g")) ?? []
          expect(readCsv(chunks)).toEqual(readCsv([text]))
          expect(readCsv(chunks).cells).toEqual([["x", "y", "z"], ...rows])
        },
      ),
    )
  })
})

/** The bytes of a Parquet file with these rows. */
const parquetOf = Effect.fnUntraced(function* (columns: string, rows: string) {
  const files = yield* FileSystem.FileSystem
  const path = `${yield* files.makeTempDirectoryScoped()}/made.parquet`
  const connection = yield* (yield* DuckDb).open({ path: ":memory:", access: "read-write" })
  yield* connection.run(`COPY (SELECT * FROM (VALUES ${rows}) t(${columns})) TO '${path}'`)
  return yield* files.readFile(path)
})

describe("customers from a file", () => {
  const assignment = (customer_id: string, engine_reference: string, parameters: object, source: string) => ({
    customer_id,
    engine_reference,
    ...plainEngine,
    login: parametersLogin({ ...parameters }),
    source,
  })

  effect(
    "run on their row's engine, otherwise on every engine of the job, with values and references",
    function* () {
      const csv =
        "\uFEFFcustomer_id,engine_reference,username,pin\r\n007,,env:USER7,0123\r\n65e0,tax:website,,\r\n"
      const ndjson = [
        '{"customer_id":007}',
        '{"customer_id":65e0,"engine_reference":"tax:website"}',
        "",
        '{"customer_id":7,"username":"env:USER7","pin":12345678901234567890,"n":5,"no":null}',
      ].join("\n")
      const fromCsv = yield* load(jobFrom("c.csv", "[username]"), { files: { "c.csv": csv } })
      expect(fromCsv).toMatchObject({ errors: [], warnings: [] })
      expect(fromCsv.job).toMatchObject({
        assignments: [
          assignment("007", "bank:website", { username: env("USER7"), pin: literal("0123") }, "c.csv:2"),
          assignment("65e0", "tax:website", {}, "c.csv:3"),
        ],
      })
      const broken = yield* load(jobFrom("c.ndjson", "[username]"), { files: { "c.ndjson": ndjson } })
      expect(broken.errors).toEqual(["c.ndjson:1:1: this line is not a JSON object"])
      const twice = '{"customer_id":7,"pin":1,"pin":1}\n{"customer_id":8,"pin":1,"pin":2}'
      const unclear = yield* load(jobFrom("c.ndjson"), { files: { "c.ndjson": twice } })
      expect(unclear.errors).toEqual([
        "c.ndjson:2:1: this line names one of its fields twice, with different values",
      ])
      const good = ndjson.slice(ndjson.indexOf("\n"))
      const fromNdjson = yield* load(jobFrom("c.ndjson", "[username]"), { files: { "c.ndjson": good } })
      const parameters = { username: env("USER7"), pin: literal("12345678901234567890"), n: literal("5") }
      expect(fromNdjson.job).toMatchObject({
        assignments: [
          assignment("65e0", "tax:website", {}, "c.ndjson:2"),
          assignment("7", "bank:website", parameters, "c.ndjson:4"),
        ],
      })
    },
  )

  inFiles.effect("come from Parquet with ids as text, in the order of the file", function* () {
    const rows = "(1234567890123456789, 'tax:website', 'env:A', 5), (7, NULL, NULL, NULL)"
    const bytes = yield* parquetOf("customer_id, engine_reference, username, n", rows)
    const { job } = yield* load(jobFrom("c.parquet", "[username]"), { files: { "c.parquet": bytes } })
    expect(job).toMatchObject({
      assignments: [
        assignment(
          "1234567890123456789",
          "tax:website",
          { username: env("A"), n: literal("5") },
          "c.parquet:1",
        ),
        assignment("7", "bank:website", {}, "c.parquet:2"),
      ],
    })
    const { errors } = yield* load(jobFrom("c.parquet"), { files: { "c.parquet": bytes.slice(8) } })
    expect(errors).toEqual(["c.parquet:1:1: the file cannot be read as Parquet"])
  })

  inFiles.effect("[decision no number] have no value where a data frame has NaN in Parquet", function* () {
    const rows = ["'c-1', 'nan'::DOUBLE, '-inf'::FLOAT", "'c-2', 0.1, 1e300::DOUBLE", "'c-3', NULL, 'nan'"]
    const bytes = yield* parquetOf("customer_id, pin, n", rows.map((row) => `(${row})`).join(", "))
    const { job, errors } = yield* load(jobFrom("c.parquet"), { files: { "c.parquet": bytes } })
    const both = { pin: literal("0.1"), n: literal("1e+300") }
    expect({ errors, job }).toMatchObject({
      errors: [],
      job: {
        assignments: [
          assignment("c-1", "bank:website", {}, "c.parquet:1"),
          assignment("c-2", "bank:website", both, "c.parquet:2"),
          assignment("c-3", "bank:website", {}, "c.parquet:3"),
        ],
      },
    })
    const unnamed = yield* parquetOf("customer_id, pin", "(1::DOUBLE, 'x'), ('nan'::DOUBLE, 'y')")
    expect((yield* load(jobFrom("c.parquet"), { files: { "c.parquet": unnamed } })).errors).toEqual([
      "c.parquet:2:1: `customer_id` is empty or missing",
    ])
  })

  inFiles.effect(
    "have the texts of a CSV file from every format; what is no text in Parquet is refused [decision plain cells] [decision nested cells]",
    function* () {
      const texts = ["1001", "true", "1.5", "0.1", "12345678901234567890", "1.50", "José"]
      const columns = texts.map((_, column) => `p${column}`)
      const types = ["DOUBLE", "BOOLEAN", "DOUBLE", "FLOAT", "UBIGINT", "DECIMAL(4,2)", "VARCHAR"]
      const cast = texts.map((text, column) => `CAST('${text}' AS ${types[column]})`)
      const written: Readonly<Record<string, string | Uint8Array>> = {
        "c.csv": `customer_id,${columns.join(",")}\n1001,${texts.join(",")}\n`,
        "c.ndjson": `{"customer_id":1001,${texts
          .map((text, column) => `"p${column}":${text === "José" ? '"José"' : text}`)
          .join(",")}}\n`,
        "c.parquet": yield* parquetOf(
          `customer_id, ${columns.join(", ")}`,
          `(1001.0::DOUBLE, ${cast.join(", ")})`,
        ),
        "bytes.parquet": yield* parquetOf(
          `customer_id, ${columns.join(", ")}`,
          `(encode('1001'), ${cast.slice(0, -1).join(", ")}, encode('José'))`,
        ),
      }
      const parameters = Object.fromEntries(columns.map((name, column) => [name, literal(texts[column])]))
      for (const [name, content] of Object.entries(written)) {
        const { job, errors } = yield* load(jobFrom(name), { files: { [name]: content } })
        const line = name.endsWith("csv") ? 2 : 1
        expect({ errors, job }).toMatchObject({
          errors: [],
          job: { assignments: [assignment("1001", "bank:website", parameters, `${name}:${line}`)] },
        })
      }
      const said = (name: string) =>
        `in this row, \`${name}\` is a list, a structure or bytes that are not UTF-8: write it as text`
      const rows =
        "('a', [1], NULL, 'x'), ('b', NULL, '\\xFF'::BLOB, NULL), ('c', NULL, 'ok'::BLOB, NULL), ('d', NULL, '\\xFE'::BLOB, NULL)"
      const bytes = yield* parquetOf("customer_id, list, pin, username", rows)
      const { errors } = yield* load(jobFrom("c.parquet"), { files: { "c.parquet": bytes } })
      expect(errors).toEqual([
        `c.parquet:1:2: ${said("list")}`,
        `c.parquet:2:3: ${said("pin")} (and 1 more in this file)`,
      ])
    },
  )

  const withColumns = (file: string, more = "features_column: wants, token_column: ticket") =>
    `${smallJob}tokens: { key: env:KEY }\ncustomers:\n  - { from: ${file}, ${more} }\n`
  inFiles.effect(
    "have features as words or as a list, in every format; the name of a token is one text",
    function* () {
      const rows = "('c-1', ['accounts_read', 'cards_read'], 'my bank, 2'), ('c-2', NULL, NULL)"
      const written: Readonly<Record<string, string | Uint8Array>> = {
        "c.csv": 'customer_id,wants,ticket\nc-1,"accounts_read, cards_read","my bank, 2"\nc-2,,\n',
        "c.ndjson":
          '{"customer_id":"c-1","wants":["accounts_read","cards_read"],"ticket":"my bank, 2"}\n' +
          '{"customer_id":"c-2","wants":null,"ticket":""}\n',
        "c.parquet": yield* parquetOf("customer_id, wants, ticket", rows),
      }
      for (const [name, content] of Object.entries(written)) {
        expect(yield* load(withColumns(name), { files: { [name]: content } })).toMatchObject({
          errors: [],
          warnings: [],
          job: {
            assignments: [
              {
                customer_id: "c-1",
                features: [{ code: "accounts_read" }, { code: "cards_read" }],
                login: { _tag: "Token", name: "my bank, 2" },
              },
              { customer_id: "c-2", features: [], login: parametersLogin({}) },
            ],
          },
        })
      }
    },
  )

  effect("are refused if a column means two things, or a row lists a feature twice", function* () {
    const errorsOf = (more: string, csv: string) =>
      Effect.map(load(withColumns("c.csv", more), { files: { "c.csv": csv } }), ({ errors, warnings }) => [
        ...errors,
        ...warnings,
      ])
    const twice = "the job already uses this column for something else"
    expect([
      yield* errorsOf("features_column: customer_id", "customer_id,username\nc-1,u\n"),
      yield* errorsOf("token_column: wants, features_column: wants", "customer_id,wants\nc-1,cards_read\n"),
      yield* errorsOf("features_column: wants", "customer_id,wants\nc-1,cards_read cards_read\n"),
      yield* errorsOf("features_column: wants", "customer_id,wants\nc-1,card_read\nc-2,card_read\n"),
      yield* errorsOf("features_column: pin", "customer_id,pin\nc-1,hunter2\nc-2,cards_read\nc-3,s3cret\n"),
      yield* errorsOf("features_column: wants", "customer_id,wants\nc-1,cards_read\n"),
    ]).toEqual([
      [`c.csv:1:1: ${twice}`],
      [`c.csv:1:13: ${twice}`],
      ["c.csv:2:1: this row lists a feature twice"],
      [
        "c.csv:2:1: `card_read` is not a feature that the reference lists; did you mean `cards_read`? " +
          "(and 1 more in this file)",
      ],
      ["c.csv:2:1: this row has a feature that the reference does not list (and 1 more in this file)"],
      [],
    ])
  })

  effect("are refused with line and column, and without their values", function* () {
    const cases: ReadonlyArray<readonly [string | Uint8Array, ReadonlyArray<string>]> = [
      ["customerid,pin\nc-1,hunter2\n", ["c.csv:1:1: there is no column `customer_id`; is it `customerid`?"]],
      ["customer_id,pin,pin\nc-1,1,2\n", ["c.csv:1:17: a column of this name already exists"]],
      ["customer_id,,x\n", ["c.csv:1:13: this column has no name"]],
      ["", ["c.csv:1:1: the file is empty"]],
      [
        new Uint8Array([0x63, 0xe9, 0x0a, 0x0a]),
        ["c.csv:1:1: the file is not UTF-8; export it again as UTF-8"],
      ],
      [
        "customer_id,pin,user\n,hunter2,x\nc-2,hunter2\nc-3,env:hunter2!,x\nc-4,1,2\nc-4,1,2\n",
        [
          "c.csv:2:1: `customer_id` is empty or missing",
          `c.csv:2:2: ${notWhole} (and 3 more in this file)`,
          "c.csv:3:1: this row has 2 cells, but the header has 3",
          "c.csv:6:1: this customer is already on `bank:website`, at c.csv:5:1",
        ],
      ],
    ]
    for (const [content, expected] of cases) {
      const references = String(content).includes("env:") ? "[pin]" : undefined
      const { errors, shown } = yield* load(jobFrom("c.csv", references), { files: { "c.csv": content } })
      expect(errors).toEqual(expected)
      expect(shown).not.toContain("hunter2")
    }
    expect((yield* load(jobFrom("none.csv"))).errors).toEqual(["job.yaml:5:11: there is no file `none.csv`"])
  })

  const errorsOf = (csv: string) =>
    Effect.map(load(jobFrom("c.csv"), { files: { "c.csv": csv } }), ({ errors }) => errors)

  effect(
    "[decision header again] are refused if a row repeats the header: two exports were put together",
    function* () {
      const row = (line: number) =>
        `c.csv:${line}:1: this row repeats the header, as if two exports had been put together: remove it if ` +
        "both belong in this file"
      const header = "customer_id,username\n"
      expect(yield* errorsOf(`${header}c-1,u\n${header}c-2,v\n`)).toEqual([row(3)])
      expect(yield* errorsOf(`\uFEFF${header}c-1,u\n\uFEFF${header}c-2,v\n${header}`)).toEqual([
        `${row(3)} (and 1 more in this file)`,
      ])
    },
  )

  effect("say which separator theirs seems to be, if it is none that is read", function* () {
    const told = (by: string) => [
      `c.csv:1:1: the columns seem to be separated by ${by}: export the file again with commas or semicolons`,
    ]
    expect(yield* errorsOf("customer_id\tusername\nc-1\tu\n")).toEqual(told("tabs"))
    expect(yield* errorsOf('"customer_id"|"username"\n"c-1"|"u"\n')).toEqual(told("`|`"))
  })

  effect("load at once even if there are 20,000 of them on each engine", function* () {
    const rows = Array.from({ length: 20_000 }, (_, index) => `c-${index},user,"pa,ss"`)
    const csv = ["customer_id,username,password", ...rows].join("\n")
    const { job } = yield* load(jobFrom("c.csv"), { files: { "c.csv": csv } })
    expect(job).toHaveProperty(["assignments", "19999", "source"], "c.csv:20001")
  })
})

describe("a file with logins in it", () => {
  const remote = `name: small
service: { base_url: https://service.example/api, flows_url: https://service.example/flows, app_secret: env:APP }
engines: [bank:website]
`
  const asReferences = "{ from: FILE, references: [username, password] }"
  const logins = {
    "c.csv": "customer_id,username,password\nc-1,me,env:P\n",
    "c.ndjson": '{"customer_id":"c-1","pin":7}\n',
  }
  /** What loading says of a file of this mode. */
  const told = (
    file: string,
    text: string,
    mode: number,
    { service = remote, from = "{ from: FILE, references: [password] }" } = {},
  ) =>
    Effect.map(
      load(`${service}tokens: { key: env:KEY }\ncustomers: [${from.replace("FILE", file)}]\n`, {
        files: { [file]: text },
        modes: { [file]: mode },
      }),
      ({ errors }) => errors,
    )
  const refused = (file: string, mode: string) => [
    `${file}:1:1: other users can read or change this file of logins (mode ${mode}), so it is not used: run \`chmod 600 ${file}\``,
  ]

  effect(
    "[promise 12 logins] is refused like `.env` if others can read or change it, whatever its format",
    function* () {
      for (const mode of ["0644", "0640", "0604", "0620", "0666"])
        expect(yield* told("c.csv", logins["c.csv"], Number.parseInt(mode, 8))).toEqual(
          refused("c.csv", mode),
        )
      expect(yield* told("c.ndjson", logins["c.ndjson"], 0o644, { from: "{ from: FILE }" })).toEqual(
        refused("c.ndjson", "0644"),
      )
      for (const mode of [0o600, 0o400, 0o700])
        expect(yield* told("c.csv", logins["c.csv"], mode)).toEqual([])
    },
  )

  it.skipIf(process.geteuid?.() !== 0)(
    "of somebody else may be read through our own group alone",
    async () => {
      const folder = mkdtempSync(join(tmpdir(), "logins-"))
      const path = join(folder, "c.csv")
      writeFileSync(path, logins["c.csv"])
      const told = async (uid: number, gid: number, mode: number) => {
        chownSync(path, uid, gid)
        chmodSync(path, mode)
        const findings = makeFindings()
        await Effect.runPromise(checkLoginsFile(path, findings))
        return findings.errors().length
      }
      const [own, group] = [0, process.getegid?.() ?? 0]
      expect([
        await told(12_345, group, 0o440),
        await told(12_345, group, 0o640),
        await told(12_345, group, 0o660),
        await told(12_345, group, 0o644),
        await told(12_345, 12_345, 0o640),
        await told(own, group, 0o640),
      ]).toEqual([0, 0, 1, 1, 1, 1])
      rmSync(folder, { recursive: true })
    },
  )

  effect(
    "is any whose cells are no references; one without them, or for the embedded service, may be open",
    function* () {
      const open = (text: string, more = {}) => told("c.csv", text, 0o644, more)
      const references = "customer_id,username,password\nc-1,env:U,file:p\n"
      expect(yield* open(references, { from: asReferences })).toEqual([])
      expect(yield* open("customer_id,username,password\n", {})).not.toContain("chmod")
      expect(
        yield* open("customer_id,ticket\nc-1,mine\n", { from: "{ from: FILE, token_column: ticket }" }),
      ).toEqual([])
      expect(yield* open(logins["c.csv"], { service: smallJob })).toEqual([])
    },
  )
})
