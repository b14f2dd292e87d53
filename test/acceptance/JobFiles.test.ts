/**
 * Job files from outside: every way to be wrong is told with its place and with the nearest right name, all at once;
 * every way to be right reaches the service as it was meant, whatever the customers, ids and secrets are written in.
 */
import { chmodSync, existsSync, mkdirSync } from "node:fs"
import { join } from "node:path"
import { DuckDBInstance } from "@duckdb/node-api"
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest"
import { FakeService } from "./FakeService.ts"
import { Workplace } from "./Nightjar.ts"
import type { Ended } from "../harness/ProgramHere.ts"

// Processes on a busy machine take their time; how long is nothing that these checks judge.
vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 })

const place = new Workplace()
afterAll(() => place.remove())

const top = "name: a\nservice: sandbox\nengines: [e:website]\ncustomers: [{ id: c, parameters: { u: x } }]\n"
const remote = (service: string) =>
  `name: a\nservice: ${service}\nengines: [e:website]\ncustomers: [{ id: c }]\n`

/** Name of the file, its text, and the places and words that must be told; no other error may be. */
const broken: ReadonlyArray<readonly [string, string, ReadonlyArray<RegExp>]> = [
  ["key", top.replace("engines", "engins"), [/^3:1: .*`?engines`?/, /^4:.*engines/]],
  ["nested", `${top}polling: { mim: 1 second }\n`, [/^5:12: .*`?min`?/]],
  [
    "service-key",
    remote("{ base_ur: https://a.example }"),
    [/^2:12: .*base_url/, /flows_url/, /app_secret/, /base_url/],
  ],
  ["name", top.replace("name: a", "name: Night_1"), [/^1:7: .*a-z/]],
  ["no-name", top.replace("name: a\n", ""), [/^1:1: .*name/]],
  [
    "literal",
    remote("{ base_url: https://a.example, flows_url: https://b.example, app_secret: s3cr3t-value }"),
    [/^2:\d+: .*env:/],
  ],
  [
    "plain-http",
    remote("{ base_url: http://a.example, flows_url: https://b.example, app_secret: env:X }"),
    [/^2:22: .*https/],
  ],
  ["interaction", `${top}execution: { customer_interaction_available: true }\n`, [/^5:46: .*false/]],
  ["timeout-short", `${top}execution: { execution_timeout: 59 seconds }\n`, [/^5:33: .*60 seconds/]],
  ["timeout-long", `${top}execution: { execution_timeout: 21 minutes }\n`, [/^5:33: .*1200 seconds/]],
  ["no-unit", `${top}polling: { min: 5 }\n`, [/^5:17: .*unit/]],
  ["after", `${top}after_export: remove\n`, [/^5:15: .*delete.*keep/]],
  ["share", `${top}output: { share: world }\n`, [/^5:18: .*none.*group/]],
  ["deadline", `${top}deadline: "25:00"\n`, [/^5:11: .*HH:MM/]],
  ["timezone", `${top}timezone: Mars/Olympus\n`, [/^5:11: .*time zone/]],
  ["count", `${top}concurrency: { max_in_flight: 0, per_engine: many }\n`, [/^5:31: /, /^5:46: /]],
  ["interval", `${top}flow_results: { min_interval: 1 second }\n`, [/^5:31: .*5 seconds/]],
  ["customer-twice", top.replace("[{", "[{ id: c, parameters: { u: y } }, {"), [/^4:\d+: .*already/]],
  ["engine-twice", top.replace("[e:website]", "[e:website, e:website]"), [/^3:22: .*already/]],
  ["no-engines", top.replace("engines: [e:website]\n", ""), [/^3:\d+: .*engines/]],
  ["customers-file", top.replace("{ id: c, parameters: { u: x } }", "from: nowhere.csv"), [/^4:\d+: /]],
  ["variable", top.replace("id: c,", "id: '${NOT_THERE}',"), [/^4:\d+: .*NOT_THERE/]],
  ["tab", "name: a\nservice:\n\tsandbox\n", [/^\d+:\d+: /]],
  ["unclosed", "name: a\nservice: {\n", [/^\d+:\d+: /]],
  ["token", top.replace("id: c,", "id: c, tokenized_access: true,"), [/^4:\d+: .*tokens/]],
  ["session-twice", `${top}sessions: [a1, { id: a1 }]\n`, [/^5:16: .*already/]],
  ["list", "- a\n- b\n", [/^1:1: .*mapping/]],
  ["empty", "", [/^1:1: /]],
  [
    "hook-secret",
    top.replace("[e:website]", "[{ reference: e:website, hooks_extra_data: { k: env:SECRET } }]"),
    [/^3:\d+: .*secret/],
  ],
  [
    "many",
    "name: A\nservice: sandbox\npoling: {}\ndeadline: x\nretry: { max_attempts: -1 }\noutput: { sahre: group }\nengines: [e:website]\ncustomers: []\n",
    [/^1:7: /, /^3:1: .*polling/, /^4:11: /, /^5:24: /, /^6:11: .*share/],
  ],
  ["csv", top.replace("{ id: c, parameters: { u: x } }", "from: bad.csv"), [/no-place/]],
]

describe("a broken job file", () => {
  let validated: Ended
  beforeAll(async () => {
    for (const [name, text] of broken) place.write(`${name}.yaml`, text)
    place.write("bad.csv", "customer,username\nc-1,u\n")
    validated = await place.nightjar("validate", ...broken.map(([name]) => `${name}.yaml`))
  })

  it("is exit code 2, with nothing on stdout and nothing else on stderr", () => {
    expect([validated.code, validated.stdout]).toEqual([2, ""])
    expect(
      validated.stderr
        .split("\n")
        .filter((line) => !/^(warning: )?[\w.-]+\.(yaml|csv):\d+:\d+: .|^$/.test(line)),
    ).toEqual([])
    expect(validated.stderr).not.toMatch(/s3cr3t-value/)
  })

  it.each(broken.filter(([name]) => name !== "csv"))(
    "`%s` is reported with its place and what is right",
    (name, _, expected) => {
      const lines = validated.stderr
        .split("\n")
        .filter((line) => line.startsWith(`${name}.yaml:`))
        .map((line) => line.slice(name.length + 6))
      const unmatched = expected.filter((one) => !lines.some((line) => one.test(line)))
      const unexpected = lines.filter((line) => !expected.some((one) => one.test(line)))
      expect({ unmatched, unexpected, lines }).toEqual({ unmatched: [], unexpected: [], lines: lines })
    },
  )

  it("points into the customers file if the error is there", () => {
    expect(validated.stderr).toMatch(/^bad\.csv:1:1: .*customer_id/m)
  })

  it("starts nothing: `run` and `plan` exit 2 and create no output folder", async () => {
    const [run, missing, plan] = await Promise.all([
      place.nightjar("run", "many.yaml"),
      place.nightjar("run", "not-there.yaml"),
      place.nightjar("plan", "many.yaml"),
    ])
    expect([run.code, missing.code, plan.code]).toEqual([2, 2, 2])
    expect(run.stderr.match(/^many\.yaml:\d+:\d+: /gm)?.length).toBe(5)
    expect([missing.stderr.includes("not-there.yaml:1:1: "), existsSync(place.output)]).toEqual([true, false])
  })
})

const parquet = async (path: string, sql: string) => {
  const instance = await DuckDBInstance.create(":memory:")
  const connection = await instance.connect()
  await connection.run(`COPY (${sql}) TO '${path}' (FORMAT parquet)`)
  connection.closeSync()
  instance.closeSync()
}

const everyForm = `# yaml-language-server: $schema=../schemas/job.schema.json
name: every-form
service:
  base_url: https://nowhere.example/api
  flows_url: https://nowhere.example/flows
  app_secret: file:not-there
execution:
  customer_interaction_available: false
  execution_timeout: 1.5 minutes
  unlock_protected_data: true
  max_wait: 0.5 hours
concurrency: { max_in_flight: 40, per_engine: 40 }
polling: { min: 100 millis, max: 1 second }
retry: { max_attempts: 1, base: 1 second, max: 1 minute }
flow_results: { enabled: true, min_interval: 5 seconds, wait_final: 1 minute, attachments: true }
timezone: Pacific/Kiritimati
after_export: delete
output: { share: none }
engines:
  - reference: fake-bank:website
    configurations: { branch: "12" }
    hooks_extra_data: { run: "{external_execution_id}", who: "\${WHO}" }
    features:
      - customer_information_read
      - code: accounts_read
        configurations: { from_date: 30 days ago }
customers:
  - id: 65e0
    parameters: { username: env:USER_A, password: file:secrets/a.txt }
  - id: 0042
    parameters: { username: "exec:printf who", password: exec:cat secrets/a.txt }
  - id: encrypted
    parameters: { username: "rsa::abc", password: "hybrid::x" }
    engines: [fake-bank:website]
  - id: two
    parameters: { username: two, password: env:LOGIN_PASSWORD }
    engines:
      - fake-bank:website
      - reference: fake-odd:api
        parameters: { nif: env:NIF, pin: file:secrets/pin }
        features: [cards_read]
  - { from: customers.csv, references: [password] }
  - { from: customers.ndjson, references: [password] }
  - { from: deep/customers.parquet, references: [password] }
`

describe("a job in every form", () => {
  let fake: FakeService
  let planned: Ended
  let night: Ended
  let requestsOfPlan = 0
  const environment = () => ({
    NIGHTJAR_BASE_URL: fake.base_url,
    NIGHTJAR_FLOWS_URL: fake.flows_url,
    NIGHTJAR_APP_SECRET: "fake-secret-1",
    NIGHTJAR_OUTPUT: "elsewhere",
    USER_A: "user a",
    WHO: "me",
    NIF: "00000000T",
    CSV_PASSWORD: "csv, horse",
  })
  beforeAll(async () => {
    fake = await FakeService.listen()
    mkdirSync(join(place.folder, "secrets"))
    mkdirSync(join(place.folder, "deep"))
    place.write("secrets/a.txt", "from file\n")
    place.write("secrets/pin", "1234\n")
    chmodSync(join(place.folder, "secrets/a.txt"), 0o600)
    chmodSync(join(place.folder, "secrets/pin"), 0o600)
    place.write(
      "customers.csv",
      '\uFEFFcustomer_id,engine_reference,username,password,nif,pin\r\n007,,"a ""quoted"" user",env:CSV_PASSWORD,,\r\ncsv-odd,fake-odd:api,,,12345678Z,0007\r\n',
    )
    place.write(
      "customers.ndjson",
      '{"customer_id":"nd-1","username":"n","password":"env:LOGIN_PASSWORD"}\n\n{"customer_id":"nd-2","engine_reference":"fake-odd:api","nif":"12345678Z","pin":77}\n',
    )
    await parquet(
      join(place.folder, "deep/customers.parquet"),
      "SELECT 'pq-1' AS customer_id, NULL::VARCHAR AS engine_reference, 'p' AS username, 'env:LOGIN_PASSWORD' AS password",
    )
    for (const file of ["customers.csv", "customers.ndjson", "deep/customers.parquet"])
      chmodSync(join(place.folder, file), 0o600)
    place.write("every.yaml", everyForm)
    planned = await place.spawn(["plan", "every.yaml", "--json"], environment()).ended
    requestsOfPlan = fake.seen.filter(({ method }) => method !== "GET").length
    night = await place.spawn(["run", "every.yaml"], environment()).ended
  })
  afterAll(() => fake.close())

  it("is planned without starting anything", () => {
    expect([planned.code, requestsOfPlan]).toEqual([0, 0])
    const [plan] = JSON.parse(planned.stdout) as ReadonlyArray<{ tasks: ReadonlyArray<{ task_id: string }> }>
    expect(plan?.tasks.length).toBe(10)
    expect(planned.stdout + planned.stderr).not.toMatch(/csv, horse|from file|correct horse/)
  })

  it("lets the environment override the file, and runs in the folder that the environment names", () => {
    expect([
      night.code,
      fake.breaches,
      existsSync(place.output),
      existsSync(join(place.folder, "elsewhere/nightjar.duckdb")),
    ]).toEqual([0, [], false, true])
    expect(night.stdout + night.stderr).not.toMatch(/csv, horse|from file|correct horse/)
  })

  it("sends every login as it was meant: ids as written, references resolved, values of the form's type", () => {
    const sent = Object.fromEntries(
      fake.starts.map(({ customer_id, engine_reference, parameters }) => [
        `${customer_id} ${engine_reference}`,
        parameters,
      ]),
    )
    expect(sent).toEqual({
      "65e0 fake-bank:website": { username: "user a", password: "from file" },
      "0042 fake-bank:website": { username: "who", password: "from file" },
      "encrypted fake-bank:website": { username: "rsa::abc", password: "hybrid::x" },
      "two fake-bank:website": { username: "two", password: "correct horse" },
      "two fake-odd:api": { nif: "00000000T", pin: 1234 },
      "007 fake-bank:website": { username: 'a "quoted" user', password: "csv, horse" },
      "csv-odd fake-odd:api": { nif: "12345678Z", pin: 7 },
      "nd-1 fake-bank:website": { username: "n", password: "correct horse" },
      "nd-2 fake-odd:api": { nif: "12345678Z", pin: 77 },
      "pq-1 fake-bank:website": { username: "p", password: "correct horse" },
    })
  })

  it("sends everything else in the job exactly as written", () => {
    const [start] = fake.startsOf("65e0")
    expect(start).toMatchObject({
      base_configurations: {
        customer_interaction_available: false,
        execution_timeout: 90,
        unlock_protected_data: true,
      },
      configurations: { branch: "12" },
      hooks_extra_data: { run: "{external_execution_id}", who: "me" },
      features: [
        "customer_information_read",
        { code: "accounts_read", configurations: { from_date: "30 days ago" } },
      ],
    })
    const odd = fake.startsOf("two").find(({ engine_reference }) => engine_reference === "fake-odd:api")
    expect(odd?.features).toEqual(["cards_read"])
    expect(new Set(fake.starts.map((one) => one.external_execution_id)).size).toBe(10)
  })

  it("dates its run in the job's time zone", async () => {
    const date = new Intl.DateTimeFormat("sv-SE", { timeZone: "Pacific/Kiritimati" }).format(fake.listening)
    const { stdout } = await place.spawn(["runs", "--json"], environment()).ended
    expect(JSON.parse(stdout)).toMatchObject([{ run_id: `every-form.${date}`, run_date: date }])
  })
})

describe("a login that the form refuses", () => {
  it("is never started: planned as failed, with the field named and no value shown", async () => {
    const fake = await FakeService.listen()
    place.write(
      "form.yaml",
      `name: form
service: { base_url: "${fake.base_url}", flows_url: "${fake.flows_url}", app_secret: env:FAKE_SECRET }
polling: { min: 100 millis, max: 1 second }
engines: [fake-odd:api]
customers:
  - { id: bad-nif, parameters: { nif: not-a-nif-value, pin: 1 } }
  - { id: bad-pin, parameters: { nif: 12345678Z, pin: twelve } }
  - { id: no-pin, parameters: { nif: 12345678Z } }
`,
    )
    const plan = await place.nightjar("plan", "form.yaml", "--output", "form")
    const run = await place.nightjar("run", "form.yaml", "--output", "form")
    const status = await place.nightjar("status", "--json", "--output", "form")
    expect([plan.code, run.code, fake.starts]).toEqual([0, 3, []])
    expect(plan.stdout).toMatch(/nif[\s\S]*pin/)
    expect(JSON.parse(status.stdout)).toMatchObject({
      tasks: ["bad-nif", "bad-pin", "no-pin"].map((customer_id) => ({
        customer_id,
        outcome: "failed",
        reason: "INCORRECT_PARAMETERS_FORMAT",
        who_acts: "engineer",
      })),
    })
    expect([plan, run, status].map(({ stdout, stderr }) => /not-a-nif-value/.test(stdout + stderr))).toEqual([
      false,
      false,
      false,
    ])
    await fake.close()
  })
})
