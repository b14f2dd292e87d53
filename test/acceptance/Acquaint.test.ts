/**
 * Day one at a service that reads the reference in its own way, from outside: `acquaint` runs one customer, and with
 * the files that it wrote a night then runs without a loss. What really happened is told by the service itself.
 */
import { mkdirSync, readdirSync, readFileSync, statSync } from "node:fs"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest"
import { Workplace } from "./Nightjar.ts"
import type { Running } from "../harness/ProgramHere.ts"

// Processes on a busy machine take their time; how long is nothing that these checks judge.
vi.setConfig({ testTimeout: 180_000, hookTimeout: 180_000 })

const servers: Array<Running> = []
const places: Array<Workplace> = []
afterAll(async () => {
  for (const server of servers) server.kill("SIGTERM")
  await Promise.all(servers.map(({ ended }) => ended))
  for (const place of places) place.remove()
})

interface Seen {
  readonly execution_id: string
  readonly customer_id: string
  readonly deleted_at: string | null
  readonly retrieved: Readonly<Record<string, number>> | null
}
/** Newest first. */
interface Truth {
  readonly executions: { readonly rows: ReadonlyArray<Seen> }
  readonly rule_breaks: { readonly rows: ReadonlyArray<unknown> }
  readonly refused_starts: { readonly total: number }
}
interface Told {
  readonly exit_code: number
  readonly outcome: string
  readonly execution_id: string
  readonly observed: ReadonlyArray<{ readonly key: string; readonly value: string }>
  readonly misfits: ReadonlyArray<unknown>
  readonly files: { readonly reading: string; readonly sources: ReadonlyArray<string> }
}

const password = "correct horse"
const login = (id: string, words: string) =>
  `  - { id: ${id}, parameters: { username: ${words}, password: env:LOGIN_PASSWORD } }\n`
const usual = "queue-60+run-30+records-8+attach-1"

const kind = (family: string) =>
  `path: /executions/results/{execution_id}/${family}/v1/records\nfamilies: ["${family}:*"]\nfinal: is_final\n`

/** A service of this reading, and a job against it in a place of its own. */
const setUp = async (reading: string, kinds: ReadonlyArray<string>) => {
  const place = new Workplace()
  places.push(place)
  place.write("service.yaml", reading)
  const server = place.start("sandbox --port 0 --seed 7 --speed 60 --reading service.yaml".split(" "))
  servers.push(server)
  const { base_url, flows_url } = JSON.parse(await server.firstLine) as Readonly<Record<string, string>>
  mkdirSync(join(place.folder, "own/results"), { recursive: true })
  for (const family of kinds) place.write(`own/results/${family}.yaml`, kind(family))
  place.environment["SANDBOX_SECRET"] = "sandbox-app-1"
  const job = (schemas: string | undefined) =>
    `name: first\nservice: { base_url: "${base_url}", flows_url: "${flows_url}", app_secret: env:SANDBOX_SECRET }\n` +
    "polling: { min: 200 millis, max: 500 millis }\nflow_results: { wait_final: 30 seconds }\n" +
    `${schemas === undefined ? "" : `schemas: ${schemas}\n`}record_schemas: []\nengines:\n  - reference: sandbox-bank:website\n` +
    "    features: [accounts_read, cards_read, customer_information_read]\ncustomers:\n" +
    login("c-1", usual) +
    login("c-2", usual) +
    login("c-3", "queue-2+run-2+end-INCORRECT_CREDENTIALS")
  const truth = async () => (await (await fetch(new URL("/admin/truth", base_url))).json()) as Truth
  return { place, job, truth }
}

const folderOf = ({ output }: Workplace) => join(output, "acquaint/c-1.sandbox-bank_website")
const modesIn = (folder: string): ReadonlyArray<string> =>
  readdirSync(folder, { recursive: true, withFileTypes: true }).map((entry) => {
    const mode = statSync(join(entry.parentPath, entry.name)).mode & 0o777
    return `${entry.isDirectory() ? "folder" : "file"} ${mode.toString(8)}`
  })

/** What needs an engineer's word before anything is deleted is in `cli/acquaint/Judge`. */
const reading =
  "flow_api: absent\nresult_kinds: present\nmessages: absent_when_empty\nhead: not_allowed\ndates: naive\n"
const kinds = ["account", "financial_card", "customer_information", "weather"]

/** Acquaint, then a night with what it wrote; the customer whose login is wrong has no part in the night. */
const lived = async () => {
  const { place, job, truth } = await setUp(reading, kinds)
  place.write("job.yaml", job("./own"))
  const told = (await place.json("acquaint", "job.yaml", "--customer", "c-1")) as Told
  const afterwards = await truth()
  place.write("night.yaml", job(`${folderOf(place)}/schemas`).replace(/ {2}- \{ id: c-3.*\n/, ""))
  const { code } = await place.nightjar("run", "night.yaml")
  return { place, told, afterwards, night: await truth(), code }
}

describe("a service that has no flow API, and the job says how each kind is read", () => {
  let scene: Awaited<ReturnType<typeof lived>>
  beforeAll(async () => {
    scene = await lived()
  })

  it("is logged into once, keeps the execution, and fits a reading that names each peculiarity that a run can see", () => {
    const { told, afterwards } = scene
    const kept = afterwards.executions.rows.map((row) => [row.customer_id, row.execution_id, row.deleted_at])
    const seen = Object.fromEntries(told.observed.map(({ key, value }) => [key, value]))
    expect({
      kept,
      refused: afterwards.refused_starts.total,
      breaks: afterwards.rule_breaks.rows,
      exit_code: told.exit_code,
      misfits: told.misfits,
      seen,
    }).toEqual({
      kept: [["c-1", told.execution_id, null]],
      refused: 0,
      breaks: [],
      exit_code: 0,
      misfits: [],
      seen: {
        ...seen,
        flow_api: "absent",
        result_kinds: "present",
        messages: "absent_when_empty",
        head: "not_allowed",
        dates: "naive",
      },
    })
  })

  it("is recorded for its owner only, without secrets and values, and as a reading of the embedded service", async () => {
    const { place } = scene
    const folder = folderOf(place)
    expect(new Set(modesIn(join(folder, "..")))).toEqual(new Set(["folder 700", "file 600"]))
    const texts = ["calls.ndjson", "report.md", "reading.yaml"].map((name) =>
      readFileSync(join(folder, name), "utf8"),
    )
    expect(texts.join("")).not.toMatch(
      new RegExp(`${password}|sandbox-app-1|ES\\d{2}|@example|${usual.slice(0, 8)}`),
    )
    expect(readdirSync(join(folder, "schemas/results")).toSorted()).toEqual(
      ["account", "customer_information", "financial_card", "flow_results"].map((name) => `${name}.yaml`),
    )
    const copy = place.start(["sandbox", "--port", "0", "--reading", join(folder, "reading.yaml")])
    servers.push(copy)
    expect(JSON.parse(await copy.firstLine)).toHaveProperty("base_url")
  })

  it("loses nothing in a run with the written sources, and nothing is deleted unread", async () => {
    const { place, told, night, code } = scene
    const own = night.executions.rows.filter(({ execution_id }) => execution_id !== told.execution_id)
    const run_id = String(
      (await place.rows("SELECT max(run_id) AS id FROM ops.runs WHERE job = 'first'"))[0]?.["id"],
    )
    const rows = await place.rows(
      `SELECT family, count(*) AS records FROM (
         SELECT sub_family AS family FROM nights.other_records WHERE run_id = '${run_id}'
         UNION ALL SELECT 'customer_information:user_profile' FROM nights.customer_profiles WHERE run_id = '${run_id}')
       GROUP BY ALL`,
    )
    const retrieved = new Map<string, number>()
    for (const execution of own)
      for (const [family, count] of Object.entries(execution.retrieved ?? {}))
        retrieved.set(family, (retrieved.get(family) ?? 0) + count)
    expect({
      code,
      breaks: night.rule_breaks.rows,
      deleted: own.map(({ customer_id, deleted_at }) => [customer_id, deleted_at !== null]).toSorted(),
      kept: night.executions.rows.find(({ execution_id }) => execution_id === told.execution_id)?.deleted_at,
      records: Object.fromEntries(rows.map((row) => [row["family"], Number(row["records"])])),
    }).toEqual({
      code: 0,
      breaks: [],
      deleted: [
        ["c-1", true],
        ["c-2", true],
      ],
      kept: null,
      records: Object.fromEntries(retrieved),
    })
  })
})

it("`acquaint` never sends a rejected login again, names whom it can run, and deletes with `--delete` once all is read", async () => {
  const { place, job, truth } = await setUp("", [])
  place.write("job.yaml", job(undefined))
  const several = await place.nightjar("acquaint", "job.yaml")
  const unknown = await place.nightjar("acquaint", "job.yaml", "--customer", "c-4")
  const first = await place.nightjar("acquaint", "job.yaml", "--customer", "c-3")
  const second = await place.nightjar("acquaint", "job.yaml", "--customer", "c-3")
  const { executions } = await truth()
  expect({
    codes: [several, unknown, first, second].map(({ code }) => code),
    executions: executions.rows.map(({ customer_id }) => customer_id),
  }).toEqual({ codes: [2, 2, 3, 3], executions: ["c-3"] })
  expect(several.stderr).toContain("3 customers (c-1, c-2, c-3) [names-ambiguous]")
  expect(unknown.stderr).toContain("did you mean `c-1`?")
  expect(first.stdout).toContain(
    "INCORRECT_CREDENTIALS: The source refused the credentials. Ask the customer for the correct ones.",
  )
  expect(second.stderr).toContain("c-3 on sandbox-bank:website was not started: INCORRECT_CREDENTIALS")
  const { code, stdout } = await place.nightjar("acquaint", "job.yaml", "--customer", "c-1", "--delete")
  const [newest] = (await truth()).executions.rows
  expect([code, newest?.customer_id, newest?.deleted_at === null]).toEqual([0, "c-1", false])
  expect(stdout).toContain("was deleted at the service: everything in it was read.")
})
