/**
 * A job file from outside: every way to be right reaches the service as it was meant, whatever the customers, ids and
 * secrets are written in. What is wrong in one is told in `test/jobs`.
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
    parameters: { username: "exec:printf who", password: "exec:cat ${place.folder}/secrets/a.txt" }
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
    NIGHTJAR_OUTPUT: join(place.folder, "elsewhere"),
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
    planned = await place.start(["plan", "every.yaml", "--json"], environment()).ended
    requestsOfPlan = fake.seen.filter(({ method }) => method !== "GET").length
    night = await place.start(["run", "every.yaml"], environment()).ended
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
    const { stdout } = await place.start(["runs", "--json"], environment()).ended
    expect(JSON.parse(stdout)).toMatchObject([{ run_id: `every-form.${date}`, run_date: date }])
  })
})
