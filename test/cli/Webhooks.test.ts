/** `--webhooks` and flow sessions by the whole program: what it says, when it refuses, what a night leaves. */
import { cpSync, readFileSync, writeFileSync } from "node:fs"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { beforeAll, describe, expect, it } from "vitest"
import { readingTables } from "../../src/jobs/Settings.ts"
import { plainEnvironment } from "../harness/Environment.ts"
import { startHere } from "../harness/ProgramHere.ts"
import { sharedFolder } from "../harness/Folder.ts"

const checkout = fileURLToPath(new URL("../../", import.meta.url))
const root = sharedFolder()
beforeAll(() => {
  cpSync(join(checkout, "jobs"), join(root, "jobs"), { recursive: true })
  writeFileSync(join(root, "small.yaml"), small)
})

const small = `name: small
service: { sandbox: { seed: 3, speed: 300 } }
engines: [sandbox-bank:website]
record_schemas: []
customers:
  - { id: k-1, parameters: { username: ok+queue-20+run-40+records-3, password: file:jobs/demo-password.txt } }
  - { id: k-2, parameters: { username: end-BLOCKED_USER+queue-9+run-9, password: file:jobs/demo-password.txt } }
`

const nightjar = (output: string, ...args: ReadonlyArray<string>) =>
  startHere([...args, "--no-progress"], {
    environment: { ...plainEnvironment, NIGHTJAR_OUTPUT: join(root, output) },
    folder: root,
  }).ended
const rows = async (output: string, sql: string) => {
  const { stdout, stderr } = await nightjar(output, "query", sql, "--format", "json")
  expect(stderr).toBe("")
  return JSON.parse(stdout) as ReadonlyArray<Readonly<Record<string, unknown>>>
}
const journal = (output: string): ReadonlyArray<Readonly<Record<string, unknown>>> =>
  readFileSync(join(root, output, "sandbox.ndjson"), "utf8")
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line) as Readonly<Record<string, unknown>>)

describe("run --webhooks", () => {
  it("subscribes the embedded service, says where it listens, with no warning where only this machine can reach it, and ends as the logins of its job say [webhooks here]", async () => {
    const { code, stdout, stderr } = await nightjar(
      "hooked",
      "run",
      "small.yaml",
      "--webhooks",
      "localhost:0",
    )
    expect([code, stdout.includes("2 tasks: 1 succeeded, 1 failed")]).toEqual([3, true])
    expect(stderr).toMatch(/^webhooks: events are received at http:\/\/localhost:\d+\/\n$/)
    const delivered = journal("hooked").filter(({ _tag }) => _tag === "HookDelivered")
    const events = delivered.map(({ event }) => event)
    for (const event of ["started", "auth_ended", "ended"]) expect(events).toContain(event)
    const outcomes = "SELECT customer_id, reason FROM ops.tasks ORDER BY 1"
    expect((await rows("hooked", outcomes)).map((row) => Object.values(row).join(" "))).toEqual([
      "k-1 COMPLETED",
      "k-2 BLOCKED_USER",
    ])
    const ends = "SELECT count_if(end_hook IS NULL OR end_hook = 'skipped') AS n FROM ops.executions"
    expect(await rows("hooked", ends)).toEqual([{ n: 0 }])
  }, 60_000)

  it("refuses a port that is taken or none, before anything is started", async () => {
    const server = createServer()
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
    const { port } = server.address() as AddressInfo
    expect(await nightjar("taken", "run", "small.yaml", "--webhooks", String(port))).toEqual({
      code: 2,
      stdout: "",
      stderr:
        `nightjar: events cannot be received: --webhooks 127.0.0.1:${port}: another program already listens there [webhooks-unavailable]\n` +
        "Nothing was started. Give another port; 0 takes any free port.\n",
    })
    await new Promise((resolve) => server.close(resolve))
    for (const command of ["run small.yaml", "rerun"]) {
      const { code, stderr } = await nightjar("hooked", ...command.split(" "), "--webhooks", "70000")
      expect([command, code]).toEqual([command, 2])
      expect(stderr).toMatch(/--webhooks takes \[HOST:\]PORT/)
    }
  }, 60_000)
})

it("a job of flow sessions only is pulled until everything is final: consents, documents, records, and no execution", async () => {
  const asked = ["run", "jobs/sessions.yaml", "--webhooks", "0.0.0.0:0"]
  const { code, stdout, stderr } = await nightjar("sessions", ...asked)
  expect([code, stdout.includes("8 tasks: 8 succeeded\n0 executions")]).toEqual([0, true])
  // Others can reach it there.
  expect(stderr).toMatch(
    /^webhooks: events are received at http:\/\/127\.0\.0\.1:\d+\/\nwarning: .*not authenticated \[webhooks-exposed\]\n$/,
  )
  // Which families a session may bring is not known before, so each of our readings has its table.
  const read = readingTables.map((table) => `(SELECT count(*) FROM ${table})`).join(" + ")
  const tables = `SELECT
      (SELECT count(*) FROM ops.tasks WHERE engine_reference IS NULL AND execution_id IS NULL) AS tasks,
      (SELECT count(*) FROM ops.executions) + (SELECT count(*) FROM ops.deletions) AS executions,
      (SELECT count(*) FROM ops.sessions WHERE is_closed) AS sessions,
      (SELECT count(*) FROM ops.sessions WHERE customer_id IS NULL) AS anonymous,
      (SELECT count(*) FROM ops.consents) AS consents,
      (SELECT count(*) FROM ops.consent_documents WHERE version IS NOT NULL) AS documents,
      (SELECT count(*) FROM ops.attachments WHERE status <> 'downloaded') AS missing,
      (SELECT count_if(status = 'downloaded') FROM ops.attachments) AS downloaded,
      (SELECT sum(records) FROM ops.sessions) = (SELECT count(*) FROM nights.customer_profiles)
        + (SELECT count(*) FROM nights.higher_education) + (SELECT count(*) FROM nights.secondary_education)
        + ${read} AND (SELECT count(*) FROM nights.other_records) + (SELECT count(*) FROM ops.rejected_records) = 0
        AS everywhere`
  const expected = { tasks: 8, executions: 0, sessions: 8, anonymous: 2, consents: 7, documents: 14 }
  expect(await rows("sessions", tables)).toEqual([
    { ...expected, missing: 0, downloaded: 10, everywhere: true },
  ])
}, 60_000)
