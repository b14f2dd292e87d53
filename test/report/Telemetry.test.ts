/** What a run sends to a collector, by the whole program: the whole story, valid, and no secret or customer in it. */
import { readdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest"
import { Collector, valuesOf, type Metric, type Span } from "./Collector.ts"
import { metricTable } from "../../src/report/Spans.ts"
import { plainEnvironment } from "../harness/Environment.ts"
import { startHere } from "../harness/ProgramHere.ts"
import { sharedFolder } from "../harness/Folder.ts"

vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 })

const root = sharedFolder()

// What the environment says counts for nothing.
const misleading = { OTEL_RESOURCE_ATTRIBUTES: "host.name=canary-host,=,%", OTEL_SERVICE_NAME: "canary-name" }
const ours = Object.fromEntries(Object.keys(misleading).map((name) => [name, process.env[name]]))
beforeAll(() => void Object.assign(process.env, misleading))
afterAll(() => {
  for (const [name, value] of Object.entries(ours))
    if (value === undefined) delete process.env[name]
    else process.env[name] = value
})

const nightjar = async (job: string, otlp: string) => {
  const begun = performance.now()
  const environment = {
    ...plainEnvironment,
    ...misleading,
    COLLECTOR: otlp,
    COLLECTOR_HEADERS: "authorization=Bearer%20collector-canary-5x,x-team=night",
    PASSWORD: "password-canary-8q+Z",
  }
  const args = ["run", job, "--output", `${job}.out`, "--no-progress"]
  // What is said once the services of the night close, they say on the streams of the process.
  const heard = vi.spyOn(process.stderr, "write").mockReturnValue(true)
  const { code, stderr } = await startHere(args, { environment, folder: root }).ended
  const said = heard.mock.calls.map(([text]) => String(text)).join("")
  heard.mockRestore()
  return { status: code, stderr: stderr + said, seconds: (performance.now() - begun) / 1_000 }
}

const jobFile = (name: string, telemetry: string): string => {
  writeFileSync(
    join(root, `${name}.yaml`),
    `name: ${name}
service: { sandbox: { seed: 3, speed: 20000 } }
engines: [sandbox-bank:website]
record_schemas: []
telemetry: ${telemetry}
customers:
  - { id: customer-canary-0, parameters: { username: ok+records-3+user-canary-1, password: "env:PASSWORD" } }
  - { id: customer-canary-1, parameters: { username: end-INCORRECT_CREDENTIALS, password: "env:PASSWORD" } }
  - { id: customer-canary-2, parameters: { username: heal-1-NETWORK_ERROR+records-2, password: "env:PASSWORD" } }
`,
  )
  return `${name}.yaml`
}

const collector = new Collector()
let endpoint = ""
beforeAll(async () => {
  endpoint = await collector.listen()
})
afterAll(() => collector.close())

const everything = "{ otlp: env:COLLECTOR, headers: env:COLLECTOR_HEADERS, prometheus: ./all.prom }"
/** The newest state of a metric. */
const metricOf = (name: string): Metric | undefined => collector.metrics.findLast((one) => one.name === name)
const parentOf = ({ parentSpanId }: Span) => collector.spans.find(({ spanId }) => spanId === parentSpanId)

describe("a run with a collector", () => {
  let run: Awaited<ReturnType<typeof nightjar>>
  beforeAll(async () => {
    run = await nightjar(jobFile("whole", everything), endpoint)
  })

  it("ends as it would without, and everything that was sent is OTLP [exit telemetry]", () => {
    expect({ status: run.status, stderr: run.stderr, refused: collector.refused }).toEqual({
      status: 3,
      stderr: "",
      refused: [],
    })
  })

  it("tells one trace from the run over tasks and attempts to requests [exit telemetry]", () => {
    const { spans } = collector
    expect(new Set(spans.map(({ traceId }) => traceId)).size).toBe(1)
    const named = (name: string) => spans.filter((span) => span.name === name)
    expect(
      named("nightjar.run").map((span) => [parentOf(span)?.name, valuesOf(span.attributes), span.status]),
    ).toEqual([
      [
        "nightjar.night",
        {
          "nightjar.job": "whole",
          "nightjar.run.id": expect.stringMatching(/^whole\.\d{4}-\d\d-\d\d$/),
          "nightjar.run.date": expect.stringMatching(/^\d{4}-\d\d-\d\d$/),
          "nightjar.run.exit_code": 3,
          "error.type": "EXIT_3",
        },
        { code: 2, message: "EXIT_3" },
      ],
    ])
    const tasks = named("nightjar.task").map((span) => [parentOf(span)?.name, valuesOf(span.attributes)])
    const engine = { "nightjar.engine": "sandbox-bank:website" }
    const fine = {
      ...engine,
      "nightjar.outcome": "succeeded",
      "nightjar.reason": "COMPLETED",
      "nightjar.who_acts": "nobody",
    }
    const refused = {
      ...engine,
      "nightjar.outcome": "failed",
      "nightjar.reason": "INCORRECT_CREDENTIALS",
      "nightjar.who_acts": "customer",
      "error.type": "INCORRECT_CREDENTIALS",
    }
    expect(tasks).toHaveLength(3)
    expect(tasks).toEqual(
      expect.arrayContaining([
        ["nightjar.run", fine],
        ["nightjar.run", refused],
      ]),
    )
    const attempts = named("nightjar.attempt").map((span) => {
      const values = valuesOf(span.attributes)
      return `${parentOf(span)?.name} ${values["nightjar.attempt.number"]} ${values["nightjar.reason"]}`
    })
    expect(attempts.toSorted()).toEqual([
      "nightjar.task 1 COMPLETED",
      "nightjar.task 1 INCORRECT_CREDENTIALS",
      "nightjar.task 1 NETWORK_ERROR",
      "nightjar.task 2 COMPLETED",
    ])
    const requests = spans.filter(({ kind }) => kind === 3)
    const under = (name: string) => [
      ...new Set(requests.filter((one) => one.name === name).map((one) => parentOf(one)?.name)),
    ]
    expect({
      start: under("POST /api/executions/init/v1/parametrized"),
      read: under("GET /api/executions/handler/v1/{execution_id}"),
      results: under("GET /flows/es-public-administration/v1/manager/{session_id}/results"),
      deletion: under("DELETE /api/executions/handler/v1/{execution_id}/delete"),
      engines: under("GET /api/config/engines/{engine_reference}"),
    }).toEqual({
      start: ["nightjar.attempt"],
      read: ["nightjar.attempt"],
      results: ["nightjar.attempt"],
      deletion: ["nightjar.attempt"],
      engines: ["nightjar.night"],
    })
  })

  it("sends only metrics of the table, with their units and attributes, and counts every task [exit telemetry metrics]", () => {
    const names = new Set(collector.metrics.map(({ name }) => name))
    for (const name of names) {
      const row = Object.entries(metricTable).find(([listed]) => listed === name)?.[1]
      const sent = metricOf(name)
      expect({ unit: sent?.unit, description: sent?.description }, name).toEqual({
        unit: row?.unit,
        description: row?.about,
      })
      const points = (sent?.sum ?? sent?.gauge ?? sent?.histogram)?.dataPoints ?? []
      const keys = new Set(points.flatMap(({ attributes }) => attributes.map(({ key }) => key)))
      const listed: ReadonlyArray<string> = [...(row?.attributes ?? []), "nightjar.job"]
      expect(
        [...keys].filter((key) => !listed.includes(key)),
        name,
      ).toEqual([])
    }
    const tasks = metricOf("nightjar.tasks")?.sum?.dataPoints.map(({ attributes, asDouble }) => [
      valuesOf(attributes)["nightjar.reason"],
      asDouble,
    ])
    expect(tasks?.toSorted()).toEqual([
      ["COMPLETED", 2],
      ["INCORRECT_CREDENTIALS", 1],
    ])
    const active = metricOf("nightjar.attempts.active")?.gauge?.dataPoints.map(({ asDouble }) => asDouble)
    expect(active).toEqual([0])
    const requests = metricOf("http.client.request.duration")?.histogram?.dataPoints ?? []
    const counted = requests.reduce((sum, point) => sum + Number(point.count), 0)
    expect(counted).toBe(collector.spans.filter(({ kind }) => kind === 3).length)
  })

  it("sends what a person on call reads, in the spans that it belongs to [exit telemetry]", () => {
    const told = collector.logs.map(({ severityText, body }) => `${severityText} ${body.stringValue}`)
    expect(told.toSorted()).toEqual([
      "Info A task ended: succeeded, COMPLETED.",
      "Info A task ended: succeeded, COMPLETED.",
      "Info The run started.",
      "Info Version 1 of the tables was published.",
      "Warn A source rejected a login: it is not sent again.",
      "Warn A task ended: failed, INCORRECT_CREDENTIALS.",
      "Warn The run ended with exit code 3.",
    ])
    const spanIds = new Set(collector.spans.map(({ spanId }) => spanId))
    expect(collector.logs.filter(({ spanId }) => spanId === undefined || !spanIds.has(spanId))).toEqual([])
  })

  it("names no customer, no secret, no id of the service and nothing of the environment [exit telemetry canary]", () => {
    const bodies = collector.raw.map((one) => one.split("\n").slice(2).join("\n")).join("\n")
    expect(bodies.length).toBeGreaterThan(1_000)
    expect(/canary/i.exec(bodies)?.[0]).toBe(undefined)
    const headers = collector.raw.map((one) => one.split("\n")[1] ?? "")
    expect(headers.every((one) => one.includes("Bearer collector-canary-5x"))).toBe(true)
    const log = readFileSync(join(root, "whole.yaml.out/runs", runIn("whole"), "log.ndjson"), "utf8")
    const ids = [...log.matchAll(/"(?:execution_id|session_id|external_execution_id)":"([^"]+)"/g)].map(
      ([, id = ""]) => id,
    )
    expect(ids.length).toBeGreaterThan(8)
    expect(ids.filter((id) => bodies.includes(id))).toEqual([])
  })

  it("leaves the same metrics as a file, for its folder and for a textfile collector [exit telemetry metrics]", () => {
    const kept = readFileSync(join(root, "whole.yaml.out/runs", runIn("whole"), "metrics.prom"), "utf8")
    expect(readFileSync(join(root, "all.prom"), "utf8")).toBe(kept)
    const tasks = kept.split("\n").filter((line) => line.includes("nightjar_tasks_total"))
    const labels = (outcome: string, reason: string, who: string) =>
      `{nightjar_engine="sandbox-bank:website",nightjar_outcome="${outcome}",nightjar_reason="${reason}",` +
      `nightjar_who_acts="${who}",nightjar_job="whole"}`
    expect(tasks.toSorted()).toEqual([
      "# HELP nightjar_tasks_total Tasks that ended; one that is resumed or read again may end more than once.",
      "# TYPE nightjar_tasks_total counter",
      `nightjar_tasks_total${labels("failed", "INCORRECT_CREDENTIALS", "customer")} 1`,
      `nightjar_tasks_total${labels("succeeded", "COMPLETED", "nobody")} 2`,
    ])
    expect(/canary/i.exec(kept)?.[0]).toBe(undefined)
  })
})

/** The one run of a job. */
const runIn = (job: string): string => readdirSync(join(root, `${job}.yaml.out/runs`))[0] ?? ""

it("a job that says so names customers, tasks, executions and sessions in spans and logs, and never in metrics [exit telemetry canary]", async () => {
  const named = new Collector()
  const to = await named.listen()
  await nightjar(jobFile("named", `{ otlp: "${to}", customer_ids: true }`), to)
  named.close()
  const ids = new Set(named.spans.map(({ attributes }) => valuesOf(attributes)["nightjar.customer.id"]))
  expect([...ids].filter((id) => id !== undefined).toSorted()).toEqual([
    "customer-canary-0",
    "customer-canary-1",
    "customer-canary-2",
  ])
  const attempt = named.spans.find(({ name }) => name === "nightjar.attempt")
  expect(Object.keys(valuesOf(attempt?.attributes ?? []))).toEqual(
    expect.arrayContaining(["nightjar.execution.id", "nightjar.session.id"]),
  )
  expect(named.logs.map(({ attributes }) => valuesOf(attributes)["nightjar.task.id"])).toContain(
    `${runIn("named")}/customer-canary-1/sandbox-bank:website`,
  )
  expect(JSON.stringify(named.metrics).includes("canary")).toBe(false)
  expect(/password-canary|user-canary/.exec(named.raw.join("\n"))?.[0]).toBe(undefined)
})

it("a collector that never answers costs a line and some seconds, and no exit code [exit telemetry dead]", async () => {
  const dead = new Collector()
  dead.hangs = true
  const to = await dead.listen()
  const { status, stderr, seconds } = await nightjar(jobFile("dead", "{ otlp: env:COLLECTOR }"), to)
  dead.close()
  expect(status).toBe(3)
  expect(stderr).toMatch(
    new RegExp(
      "^warning: the telemetry of the run is incomplete: the collector did not take everything: " +
        "(?:it did not answer within 5 seconds|the run ended before it answered) \\[telemetry-incomplete\\]\\n$",
    ),
  )
  const log = readFileSync(join(root, "dead.yaml.out/runs", runIn("dead"), "log.ndjson"), "utf8")
  expect(log.includes("RunEnded")).toBe(true)
  expect(seconds).toBeLessThan(60)
})
