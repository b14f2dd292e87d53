/**
 * The commands beside a night, against the fake and the embedded service: what they print, their JSON, their exit
 * codes, and that none of them starts anything.
 */
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest"
import { FakeService } from "./FakeService.ts"
import { jobText, login, Workplace } from "./Nightjar.ts"
import type { Running } from "../harness/ProgramHere.ts"

// Processes on a busy machine take their time; how long is nothing that these checks judge.
vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 })

const place = new Workplace()
let fake: FakeService
beforeAll(async () => {
  fake = await FakeService.listen()
  place.environment["NIGHTJAR_BASE_URL"] = fake.base_url
  place.environment["NIGHTJAR_FLOWS_URL"] = fake.flows_url
  place.environment["NIGHTJAR_APP_SECRET"] = "fake-secret-1"
  const customers = [
    login("one"),
    login("two").replace(" }", ", pin: 1 }"),
    '  - { id: always, parameters: { username: u, password: pppp }, engines: ["fake-always:website"] }',
    '  - { id: nobody, parameters: { username: u, password: pppp }, engines: ["not/../there:website"] }',
  ]
  place.write(
    "job.yaml",
    jobText(fake, { name: "commands", customers: `customers:\n${customers.join("\n")}\n` }),
  )
})
afterAll(async () => {
  await fake.close()
  place.remove()
})

describe.concurrent("a read-only command", () => {
  it("`plan` names tasks, what is skipped and why, and an expected duration; exit 0; nothing is started", async () => {
    const plan = (await place.json("plan", "job.yaml")) as ReadonlyArray<Record<string, unknown>>
    expect(plan).toMatchObject([
      {
        job: "commands",
        tasks: [{ customer_id: "one", starts: true }, { customer_id: "two" }],
        settled: [
          {
            customer_id: "always",
            outcome: "skipped",
            reason: "CUSTOMER_INTERVENTION_REQUIRED",
            who_acts: "engineer",
          },
          { customer_id: "nobody", outcome: "skipped", reason: "ENGINE_UNKNOWN", who_acts: "engineer" },
        ],
        expected_ms: expect.any(Number),
      },
    ])
    expect([fake.starts, fake.breaches]).toEqual([[], []])
  })

  it("`engines list` and `engines show` print the catalogue and a form", async () => {
    const [list, shown, unknown] = await Promise.all([
      place.json("engines", "list"),
      place.nightjar("engines", "show", "fake-odd:api"),
      place.nightjar("engines", "show", "not-there:website"),
    ])
    const references = (list as ReadonlyArray<{ reference: string }>).map(({ reference }) => reference)
    expect(references).toContain("fake-bank:website")
    expect([shown.code, shown.stdout.includes("nif"), shown.stdout.includes("pin")]).toEqual([0, true, true])
    expect([unknown.code, unknown.stdout]).toEqual([2, ""])
  })

  it("`doctor` checks machine, settings, service and folder, and fails if the secret is wrong", async () => {
    const [well, wrong] = await Promise.all([
      place.nightjar("doctor", "job.yaml"),
      place.start(["doctor", "job.yaml"], { NIGHTJAR_APP_SECRET: "wrong" }).ended,
    ])
    expect([well.code, wrong.code === 0, /fake-secret-1|wrong\b.*secret: wrong/.test(well.stdout)]).toEqual([
      0,
      false,
      false,
    ])
  })

  it("`init` writes a commented job file that is valid, and overwrites nothing", async () => {
    const first = await place.spawned("init", "mine")
    const second = await place.spawned("init", "mine")
    const text = readFileSync(join(place.folder, "jobs/mine.yaml"), "utf8")
    expect([first.code, second.code, text.includes("#"), text.includes("name: mine")]).toEqual([
      0,
      2,
      true,
      true,
    ])
    const { code, stderr } = await place.nightjar("validate", "jobs/mine.yaml")
    expect([code, stderr.split("\n").filter((line) => !line.startsWith("warning: ") && line !== "")]).toEqual(
      [0, []],
    )
  })

  it("exits 2 and names the nearest word on wrong usage", async () => {
    const [word, flag, none] = await Promise.all([
      place.nightjar("plna", "job.yaml"),
      place.nightjar("run", "job.yaml", "--jsno"),
      place.nightjar("run"),
    ])
    expect([word, flag, none].map(({ code, stdout }) => [code, stdout])).toEqual([
      [2, ""],
      [2, ""],
      [2, ""],
    ])
    expect([word.stderr.includes("plan"), flag.stderr.includes("--json")]).toEqual([true, true])
  })

  it("says that there is no run yet if one is needed", async () => {
    const asked = await Promise.all(
      [
        ["status"],
        ["query", "SELECT 1 FROM ops.tasks"],
        ["infer"],
        ["explain", "x"],
        ["rerun", "--dry-run"],
        ["credentials", "list"],
      ].map((args) => place.nightjar(...args, "--output", "empty")),
    )
    expect(asked.map(({ code, stderr }) => [code, /defect/.test(stderr)])).toEqual([
      [2, false],
      [2, false],
      [2, false],
      [2, false],
      [2, false],
      [0, false],
    ])
  })
})

describe("`nightjar sandbox`", () => {
  let server: Running
  let urls: { readonly base_url: string; readonly flows_url: string }
  beforeAll(async () => {
    server = place.start(["sandbox", "--port", "0", "--speed", "50"])
    const line = await server.firstLine
    urls = JSON.parse(line) as typeof urls
  })
  afterAll(async () => {
    server.kill("SIGTERM")
    await server.ended
  })
  const call = async (method: string, path: string, body?: unknown, secret = "sandbox-app-1") => {
    const answer = await fetch(path.startsWith("http") ? path : `${urls.base_url}${path}`, {
      method,
      headers: { "x-app-secret": secret, "content-type": "application/json" },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
    const text = await answer.text()
    return {
      status: answer.status,
      body: (text === "" ? undefined : JSON.parse(text)) as Record<string, unknown>,
    }
  }
  const start = (
    username: string,
    more: Readonly<Record<string, unknown>> = {},
    engine = "sandbox-bank:website",
  ) =>
    call("POST", "/executions/init/v1/parametrized", {
      engine_reference: engine,
      customer_id: `c-${username}`,
      parameters: { username, password: "pass" },
      ...more,
    })
  const closed = async (execution_id: unknown) => {
    for (;;) {
      const state = await call("GET", `/executions/handler/v1/${String(execution_id)}`)
      if (state.status !== 202) return state
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
  }

  it("prints one JSON line with both URLs, /api and /flows on the same port", () => {
    expect([new URL(urls.base_url).pathname, new URL(urls.flows_url).pathname]).toEqual(["/api", "/flows"])
    expect(new URL(urls.base_url).host).toBe(new URL(urls.flows_url).host)
  })

  it("has its engines, and refuses wrong secrets", async () => {
    const list: unknown = (await call("GET", "/config/engines/list")).body
    const engines: ReadonlyArray<Record<string, unknown>> = Array.isArray(list) ? list : []
    const of = (reference: string) => engines.find((one) => one["reference"] === reference)
    expect([
      of("sandbox-bank:website")?.["main_category"],
      of("sandbox-tax:website")?.["main_category"],
    ]).toEqual(["financial", "public"])
    const details = await call("GET", "/config/engines/sandbox-bank:website")
    const features = details.body["features"] as ReadonlyArray<{ code: string }>
    expect(features.map(({ code }) => code).toSorted()).toEqual(
      expect.arrayContaining(["accounts_read", "cards_read", "customer_information_read"]),
    )
    expect(features.some(({ code }) => code === "cloud_resource_read")).toBe(false)
    expect((await call("GET", "/config/engines/sandbox-maintenance:website")).status).toBe(503)
    expect(
      (await call("GET", "/config/engines/sandbox-always:website")).body["action_required_frequency"],
    ).toBe("always")
    for (const secret of ["wrong", ""])
      expect([401, 403]).toContain((await call("GET", "/config/engines/list", undefined, secret)).status)
  })

  it("does what `username` says: times, ends, records; HEAD answers with GET's status", async () => {
    const accepted = await start("queue-1+run-2+records-4")
    expect([accepted.status, accepted.body["status_reason"]]).toEqual([202, "ACCEPTED"])
    const done = await closed(accepted.body["execution_id"])
    expect([done.status, done.body["status_code"], done.body["authentication_status"]]).toEqual([
      200,
      "COMPLETED",
      "AUTH_OK",
    ])
    const counts = Object.values(done.body["products_count"] as Record<string, number>)
    expect(counts.reduce((sum, count) => sum + count, 0)).toBe(4)
    const path = `/executions/handler/v1/${String(accepted.body["execution_id"])}`
    expect((await call("HEAD", path)).status).toBe(200)
    const results = await call(
      "GET",
      `${urls.flows_url}/es-public-administration/v1/manager/${String(done.body["session_id"])}/results`,
    )
    expect([results.status, results.body["is_closed"]]).toEqual([200, true])
    expect((await call("DELETE", `${path}/delete`)).status).toBe(204)
    expect((await call("GET", path)).status).toBe(404)
    const blocked = await closed((await start("queue-1+run-2+end-BLOCKED_USER")).body["execution_id"])
    expect([blocked.body["status_code"], blocked.body["status_reason"]]).toEqual([
      "AUTH_ERROR",
      "BLOCKED_USER",
    ])
    const half = await closed((await start("queue-1+run-2+partial")).body["execution_id"])
    expect(half.body["status_code"]).toBe("PARTIAL")
  })

  it("keeps its rules of conflict, challenge and applications", async () => {
    const open = await start("queue-1000+run-2", { external_execution_id: "x-1" })
    expect(open.status).toBe(202)
    const again = await start("queue-1000+run-2")
    expect([again.status, again.body["execution_id"]]).toEqual([409, open.body["execution_id"]])
    expect((await start("queue-1000+run-2", { external_execution_id: "x-2" })).status).toBe(202)
    const path = `/executions/handler/v1/${String(open.body["execution_id"])}`
    expect((await call("GET", path, undefined, "sandbox-app-2")).status).toBe(404)
    expect((await call("DELETE", `${path}/abort`)).status).toBe(204)
    expect((await call("DELETE", `${path}/abort`)).status).toBe(304)
    expect((await start("ok", {}, "sandbox-always:website")).status).toBe(400)
    const person = await start("queue-0+run-1+challenge-1234", {
      base_configurations: { customer_interaction_available: true },
    })
    const asked = await closed(person.body["execution_id"])
    expect([asked.status, asked.body["form_schema"]]).toEqual([423, expect.anything()])
    const answered = await call("PUT", `/executions/handler/v1/${String(person.body["execution_id"])}`, {
      code: "1234",
    })
    expect(answered.status).toBe(202)
    expect((await closed(person.body["execution_id"])).body["status_code"]).toBe("COMPLETED")
    const tokenized = { base_configurations: { tokenized_access: true } }
    expect((await start("ok+queue-0+run-1", tokenized)).body["ticket"]).toEqual(expect.any(String))
    const forbidden = await call(
      "POST",
      "/executions/init/v1/parametrized",
      {
        engine_reference: "sandbox-bank:website",
        customer_id: "c",
        parameters: { username: "ok", password: "pass" },
        ...tokenized,
      },
      "sandbox-app-2",
    )
    expect([forbidden.status, forbidden.body["status_reason"]]).toEqual([400, "T10N_FORBIDDEN"])
  })
})
