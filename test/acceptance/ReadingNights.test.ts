/**
 * Whole nights against services that read the reference in ways drawn from a seed, from outside: whatever the reading,
 * no rule of the service is broken, nothing is deleted that was not read, and files, ledger and tables agree.
 */
import { mkdirSync } from "node:fs"
import { join } from "node:path"
import { afterAll, describe, expect, it, vi } from "vitest"
import { stringify } from "yaml"
import { encodeReading } from "../../src/sandbox/readings/SettingFiles.ts"
import { seeded } from "../simulation/NightPlan.ts"
import { mixReadings } from "../simulation/ReadingMix.ts"
import { Workplace } from "./Nightjar.ts"
import type { Running } from "../harness/ProgramHere.ts"

vi.setConfig({ testTimeout: 180_000 })

const all = process.env["NIGHTJAR_ACCEPTANCE"] === "all"
/** The first few have several readings each. */
const seeds = all ? Array.from({ length: 24 }, (_, index) => index + 1) : [2, 5]

const servers: Array<Running> = []
const places: Array<Workplace> = []
afterAll(async () => {
  for (const server of servers) server.kill("SIGTERM")
  await Promise.all(servers.map(({ ended }) => ended))
  for (const place of places) place.remove()
})

const customers = [
  "ok+queue-5+run-20+records-5",
  "queue-5+run-20+records-3+noflow",
  "queue-5+run-20+records-3+unstarted",
  "queue-5+run-20+records-6+attach-2",
  "queue-5+run-20+partial+records-4",
  "queue-5+run-20+end-BLOCKED_USER",
  "queue-5+run-20+heal-1-NETWORK_ERROR",
  "queue-5+challenge-1234",
]

interface Seen {
  readonly execution_id: string
  readonly deleted_at: string | null
  readonly retrieved: Readonly<Record<string, number>> | null
  readonly delivered: Readonly<Record<string, number>>
}

/** A night, its verification and what the service saw. */
const nightOf = async (seed: number) => {
  const { reading, sources } = mixReadings(seeded(seed))
  const place = new Workplace()
  places.push(place)
  place.write("reading.yaml", encodeReading(reading))
  mkdirSync(join(place.folder, "schemas/results"), { recursive: true })
  for (const { name, ...row } of sources) place.write(`schemas/results/${name}.yaml`, stringify(row))
  const server = place.start("sandbox --port 0 --seed 7 --speed 60 --reading reading.yaml".split(" "))
  servers.push(server)
  const { base_url, flows_url } = JSON.parse(await server.firstLine) as Readonly<Record<string, string>>
  place.environment["SANDBOX_SECRET"] = "sandbox-app-1"
  const login = (words: string, index: number) =>
    `  - { id: c-${index}, parameters: { username: ${words}, password: env:LOGIN_PASSWORD } }\n`
  place.write(
    "job.yaml",
    `name: readings\nservice: { base_url: "${base_url}", flows_url: "${flows_url}", app_secret: env:SANDBOX_SECRET }\n` +
      "polling: { min: 200 millis, max: 500 millis }\nretry: { max_attempts: 2, base: 1 second, max: 1 second }\n" +
      "flow_results: { wait_final: 8 seconds }\nschemas: ./schemas\nengines:\n  - reference: sandbox-bank:website\n" +
      `customers:\n${customers.map(login).join("")}`,
  )
  const { code, stderr } = await place.nightjar("run", "job.yaml")
  const verified = await place.nightjar("verify", "--json")
  const truth = (await (await fetch(new URL("/admin/truth", base_url))).json()) as {
    readonly executions: { readonly rows: ReadonlyArray<Seen> }
    readonly rule_breaks: { readonly rows: ReadonlyArray<unknown> }
  }
  const deleted = await place.rows("SELECT execution_id, proof IS NOT NULL AS proven FROM ops.deletions")
  return { code, stderr, problems: JSON.parse(verified.stdout) as unknown, truth, deleted }
}

describe("a run under a random reading of the reference", () => {
  it.concurrent.each(seeds)("from seed %i breaks no rule and deletes nothing unread", async (seed) => {
    const { code, stderr, problems, truth, deleted } = await nightOf(seed)
    const unread = truth.executions.rows.filter(
      ({ deleted_at, retrieved, delivered }) =>
        deleted_at !== null &&
        Object.entries(retrieved ?? {}).some(([family, count]) => (delivered[family] ?? 0) < count),
    )
    expect({ stderr, problems, breaks: truth.rule_breaks.rows, unread }).toEqual({
      stderr: expect.not.stringContaining("defect"),
      problems: [],
      breaks: [],
      unread: [],
    })
    expect([0, 3, 4]).toContain(code)
    const gone = truth.executions.rows.filter(({ deleted_at }) => deleted_at !== null)
    expect(
      deleted.toSorted((a, b) => (String(a["execution_id"]) < String(b["execution_id"]) ? -1 : 1)),
    ).toEqual(
      gone
        .map(({ execution_id }) => ({ execution_id, proven: true }))
        .toSorted((a, b) => (a.execution_id < b.execution_id ? -1 : 1)),
    )
  })
})
