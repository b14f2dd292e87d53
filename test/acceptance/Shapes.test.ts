/**
 * A night on a service whose answers are odd but legal: ids that no path should hold, unknown fields and values
 * everywhere, nulls, lists and maps, numbers beyond 2^53, duplicates, documents under odd keys. Then what the contract
 * promises of views and queries is checked on what that night published; what becomes of each record and document is in
 * `test/records` and `test/task`, that every table has its columns, keys and rows in `test/tables`, and that no secret is
 * left in `test/canaries`.
 */
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest"
import { ended, FakeService, profileOf, resultsBody, type Script } from "./FakeService.ts"
import { jobText, login, Workplace } from "./Nightjar.ts"
import type { Ended } from "../harness/ProgramHere.ts"
import {
  firstColumns,
  lastColumns,
  promisedLists,
  promisedRecords,
  promisedTables,
} from "./PromisedTables.ts"
import { linesOf, readPage } from "../report/ReadPage.ts"

// Processes on a busy machine take their time; how long is nothing that these checks judge.
vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 })

const oddIds: ReadonlyArray<string> = [
  "a/b c%2F?#&=+",
  "ñandú-日本-🦜",
  "x".repeat(200),
  "'; DROP TABLE tasks; --",
  "../../../etc/passwd",
  "=cmd|' /C calc'!A0",
  "..x",
  'quo"te\\back',
]

const address = { title: null, street: "Calle 1", city: "Soria", country: "ES", zip_code: "42001", floor: 3 }
const number = (value: string) => ({ type: "es:dni", value, validated: true, issued_by: "somebody" })
const degree = {
  product: "academic_data",
  sub_family: "academic_data:higher_master",
  fetch_date: "2026-11-20T23:04:00+01:00",
  qualification_name: "Máster",
  institution_name: "U",
  institution_country: "ES",
  completion_status: "a status of tomorrow",
  total_credits: "60.5",
  grade_average: "8.123456789",
}
const school = {
  product: "academic_data",
  sub_family: "academic_data:secondary_general",
  qualification_name: "Bachillerato",
  fields_after_national_registry_id: [1, { two: 2 }],
}
const account = { product: "accounts", sub_family: "financial_account:checking", iban: "ES00", balance: 1 }

const full = profileOf("full", {
  name_extra: "Surname",
  birth_date: "1980-02-29",
  number_of_children: 2,
  emails: ["a@example.org", "b@example.org"],
  phones: ["+34 600"],
  addresses: [address, { street: "Calle 2" }],
  identification_numbers: [
    number("00000000T"),
    { ...number("x"), type: "xx:new", valid_until: "2030-01-01" },
  ],
  civil_status: "it_is_complicated",
  favourite_colours: ["blue", null],
})

const raw = (data: string): Script => ({
  results: () => ({
    status: 200,
    text: `{"data":${data},"retrieved_features":["customer_information_read","feature_of_tomorrow"],"is_closed":true}`,
  }),
})
const data = (value: unknown, fields: Readonly<Record<string, unknown>> = {}): Script => ({
  results: () => resultsBody(value, fields),
})

const scripts: Readonly<Record<string, Script>> = {
  full: data({ person: { profile: full }, studies: [degree, [school]], money: { a: { b: [account] } } }),
  twice: data([account, account, { ...account }]),
  none: data({}, { retrieved_features: [], consent: {} }),
  null: data(null, { consent: null, cursor: null }),
  exact: raw(
    '[{"product":"accounts","sub_family":"financial_account:checking","id":12345678901234567890,"n":1.10}]',
  ),
  broken: data([{ ...full, type: 7, fetch_date: "yesterday" }, profileOf("broken")]),
  consent: data([], {
    session_status: "A_STATUS_OF_TOMORROW",
    where: "es-public-administration:bye:completed",
    consent: {
      accepted_date: "2026-11-20T22:00:00Z",
      accepted_features: ["labor_check", "new"],
      user_ip: "10.0.0.1",
      accepted_documents: {
        "terms/1": {
          version: "3",
          hash: "ab",
          sign_date: "2026-11-20T22:00:01Z",
          signature_metadata: { a: 1 },
        },
      },
    },
  }),
  documents: {
    ...data({
      report: { attachment_id: "doc-1", pdfAttachments: ["doc-2", "../evil", "gone", "doc 4"] },
      ATTACHMENT: "doc-1",
      notes: "doc-9",
    }),
    attachment: (id) =>
      id === "doc-1" || id === "doc-2"
        ? { status: 200, text: `%PDF ${id}`, headers: { "content-type": "application/pdf" } }
        : undefined,
  },
  counted: {
    state: (execution) =>
      ended(execution, "COMPLETED", "COMPLETED", {
        products_count: { "financial_account:checking@accounts": 2, odd_key: 3, "a:b:c@d@e": 1 },
        end_hook: "a_hook_of_tomorrow",
        warnings_count: 9007199254740991,
        new_object: { kept: true },
        features: [{ code: "feature_of_tomorrow", status_reason: "FEATURE_SOMETHING_ELSE" }],
        messages: [{ date: "x", type: "omen", id: "m.2", loc: ["data", 3], message: 'a, "b"\nc' }],
        parameters_errors: [
          { loc: ["username", 0], msg: "bad", type: "value_error", input: "correct horse" },
        ],
        configurations_errors: null,
      }),
    ...data({ list: [account, account] }),
  },
  ...Object.fromEntries(
    oddIds.map((id, index): [string, Script] => [
      id,
      {
        ids: () => ({ execution_id: `e:${index}:${id}`, session_id: `s/${index}/${id}` }),
        ...data([profileOf("odd", { alias: id })]),
      },
    ]),
  ),
}

const place = new Workplace()
let fake: FakeService
let night: Ended
beforeAll(async () => {
  fake = await FakeService.listen()
  for (const [id, script] of Object.entries(scripts)) fake.scripts.set(id, script)
  const customers = Object.keys(scripts).map((id) => login(JSON.stringify(id).slice(1, -1), "who"))
  // One login for all would run one after the other: each has its own.
  const own = customers.map((line, index) => line.replace('"who"', `"user-${index}"`))
  place.write(
    "job.yaml",
    jobText(fake, { name: "shapes", customers: `customers:\n${own.join("\n")}\n`, rest: "" }),
  )
  night = await place.nightjar("run", "job.yaml")
})
afterAll(async () => {
  await fake.close()
  place.remove()
})

describe("a run with odd shapes", () => {
  it("keeps only what was counted but did not arrive: odd shapes affect no task, and no request breaks a rule", async () => {
    expect([night.code, fake.breaches]).toEqual([3, []])
    const kept = await place.rows("SELECT execution_id FROM ops.executions WHERE customer_id = 'counted'")
    expect(fake.executions.map(({ execution_id }) => ({ execution_id }))).toEqual(kept)
    expect(await place.nightjar("verify")).toMatchObject({ code: 0, stderr: "" })
  })

  it("keeps every id as it is, in tables and in requests, and names no file after one", async () => {
    const rows = await place.rows(
      "SELECT customer_id, session_id FROM nights.customer_profiles WHERE alias IS NOT NULL ORDER BY session_id",
    )
    const expected = oddIds.map((id, index) => ({ customer_id: id, session_id: `s/${index}/${id}` }))
    expect(rows).toEqual(expected.toSorted((a, b) => (a.session_id < b.session_id ? -1 : 1)))
    const names = readdirSync(place.output, { recursive: true, encoding: "utf8" })
    const isNamed = (name: string) => oddIds.some((id) => name.includes(id)) || /doc-\d/.test(name)
    expect(names.filter(isNamed)).toEqual([])
  })
})

/** Every table and view that somebody reads. */
const relations = async () =>
  (
    await place.rows(
      `SELECT schema_name, table_name, comment FROM duckdb_tables()
       UNION ALL SELECT schema_name, view_name, comment FROM duckdb_views() WHERE NOT internal ORDER BY 1, 2`,
    )
  ).flatMap(({ schema_name, table_name, comment }) => {
    const of = `${String(schema_name)}.${String(table_name)}`
    return schema_name === "store" ? [] : [{ schema: String(schema_name), of, comment }]
  })

describe("the tables", () => {
  it("of `main` are what is promised and nothing else; `history` and `nights` have the records alone; comments name keys", async () => {
    const found = Map.groupBy(await relations(), ({ schema }) => schema)
    const namesOf = (schema: string) => found.get(schema)?.map(({ of }) => of)
    const promisedOf = (schema: string) =>
      Object.keys(promisedTables).filter((of) => of.startsWith(`${schema}.`))
    expect([...found.keys()].toSorted()).toEqual(["history", "main", "nights", "ops"])
    for (const schema of ["main", "history", "nights"])
      expect(namesOf(schema)).toEqual(promisedOf(schema).toSorted())
    const keyless = [...found.values()]
      .flat()
      .filter(({ comment }) => !/\bKey: [a-z_, ]+\./.test(String(comment)))
    // Versions have no key, and of a session that was only read the engine is NULL.
    expect(keyless.map(({ of }) => of).filter((of) => !of.startsWith("history."))).toEqual([
      "main.consents",
      "main.coverage",
      "main.documents",
      "ops.rejected_records",
    ])
  })

  it("of records begin with what they are found by, and a list adds `position`", async () => {
    const namesOf = async (table: string) =>
      (await place.rows(`DESCRIBE ${table}`)).map(({ column_name }) => String(column_name))
    for (const [schema, first] of Object.entries(firstColumns)) {
      for (const table of Object.keys(promisedRecords))
        expect([table, (await namesOf(`${schema}.${table}`)).slice(0, first.length)]).toEqual([table, first])
      for (const table of Object.keys(promisedLists))
        expect([table, (await namesOf(`${schema}.${table}`)).slice(0, first.length + 1)]).toEqual([
          table,
          [...first, "position"],
        ])
    }
    for (const [table, own] of Object.entries(promisedRecords)) {
      const names = await namesOf(table)
      const start = firstColumns.main.length
      expect([table, names.slice(start, start + own.length)]).toEqual([table, own])
      const last = lastColumns.filter((name) => names.includes(name))
      expect([table, names.slice(-last.length)]).toEqual([table, last])
    }
  })

  it("of `main` and `history` have each record that the only night read, also of an answer with missing ones", async () => {
    const read = (schema: string, table: string) =>
      place.rows(`SELECT customer_id, record_id FROM ${schema}.${table} ORDER BY ALL`)
    for (const table of [...Object.keys(promisedRecords), ...Object.keys(promisedLists)]) {
      const night = await read("nights", table)
      expect([table, night.length]).not.toEqual([table, 0])
      expect([table, await read("main", table), await read("history", table)]).toEqual([table, night, night])
    }
    expect(
      await place.rows("SELECT count(*)::INT AS n FROM main.other_records WHERE customer_id = 'counted'"),
    ).toEqual([{ n: 2 }])
    expect(await place.rows("SELECT customer_id FROM emails ORDER BY position")).toEqual([
      { customer_id: "full" },
      { customer_id: "full" },
    ])
  })
})

describe("`query`", () => {
  const sql = "SELECT customer_id, attempts FROM ops.tasks WHERE customer_id IN ('full', 'none') ORDER BY 1"
  it("prints every format", async () => {
    const [table, csv, json, arrow, parquet, xlsx] = await Promise.all(
      ["table", "csv", "json", "arrow", "parquet", "xlsx"].map((format) =>
        place.nightjar("query", sql, "--format", format),
      ),
    )
    expect([table, csv, json, arrow, parquet, xlsx].map((one) => [one?.code, one?.stderr])).toEqual(
      Array.from({ length: 6 }, () => [0, ""]),
    )
    expect(table?.stdout).toMatch(/customer_id\s.*attempts[\s\S]*full\s/)
    expect(csv?.stdout).toBe("customer_id,attempts\r\nfull,1\r\nnone,1\r\n")
    expect(JSON.parse(json?.stdout ?? "")).toEqual([
      { customer_id: "full", attempts: 1 },
      { customer_id: "none", attempts: 1 },
    ])
    expect(arrow?.stdout).toContain("customer_id")
    expect(parquet?.stdout).toMatch(/^PAR1[\s\S]*PAR1$/)
    expect(xlsx?.stdout).toMatch(/^PK[\s\S]*xl\/worksheets\/sheet1\.xml/)
  })

  it("has a page of all tables, with the first rows of each that is true now", async () => {
    const shown = join(place.folder, "tables.html")
    const ended = await Promise.all([
      place.nightjar("tables", "--html", shown),
      place.nightjar("tables", "--html", "-"),
      place.nightjar("tables", "--html", place.output),
      place.nightjar("tables", "--html", join(place.output, "tables.html")),
      place.nightjar("tables", "runs", "--html", shown),
    ])
    const [written, ...refused] = ended
    expect([written?.code, written?.stdout]).toEqual([0, "tables.html\n"])
    expect(
      refused.map(({ code, stdout, stderr }) => [code, stdout, /\[[a-z-]+\]/.exec(stderr)?.[0]]),
    ).toEqual([
      [2, "", "[page-unwritable]"],
      [2, "", "[page-unwritable]"],
      [2, "", "[page-unwritable]"],
      [2, "", "[page-of-all-tables]"],
    ])
    const names = (await relations()).map(({ of }) => of.replace(/^main\./, ""))
    const lines = linesOf(readPage(readFileSync(shown, "utf8")))
    const headings = lines.flatMap((line) => (line.startsWith("### ") ? [line.slice("### ".length)] : []))
    expect(headings.toSorted()).toEqual([...names, "changes (macro)"].toSorted())
    const emails = await place.rows("SELECT email FROM emails ORDER BY ALL LIMIT 3")
    const cells = emails.map(({ email }) => lines.some((line) => line.includes(` | ${String(email)} | `)))
    expect(cells).toEqual(emails.map(() => true))
  })

  it("takes `--excel-safe` for CSV only", async () => {
    const phone = ["query", "SELECT '+34600123123' AS phone", "--excel-safe"]
    const safe = await place.nightjar(...phone, "--format", "csv")
    const { code, stdout } = await place.nightjar(...phone)
    expect([safe.stdout, code, stdout]).toEqual(["phone\r\n'+34600123123\r\n", 2, ""])
  })

  it("only reads, one statement, and exits 2 on wrong SQL", async () => {
    const [write, wrong, two] = await Promise.all([
      place.nightjar("query", "DELETE FROM ops.tasks"),
      place.nightjar("query", "SELEC 1"),
      place.nightjar("query", "SELECT 1; SELECT 2; -- two"),
    ])
    expect([write.code, wrong.code, write.stdout, wrong.stdout]).toEqual([2, 2, "", ""])
    expect([two.code, two.stdout, two.stderr]).toEqual([
      2,
      "",
      expect.stringMatching(/2 statements were given, and a query is one statement \[query-several\]\n/),
    ])
    const over = `COPY (SELECT 1) TO '${place.output}/nightjar.duckdb' (USE_TMP_FILE false)`
    expect(await place.nightjar("query", over)).toMatchObject({ code: 2, stdout: "" })
    expect((await place.rows("SELECT count(*) > 0 AS some FROM ops.tasks"))[0]).toEqual({ some: true })
  })
})
