/** The server as a real process: killed while executions are in flight, and started again on its file and port. */
import { spawn } from "node:child_process"
import { once } from "node:events"
import { statSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { afterEach, describe, expect, it } from "vitest"
import { command as main } from "../../acceptance/BuiltCommand.ts"
import { sharedFolder } from "../../harness/Folder.ts"
import { startHere, type Running } from "../../harness/ProgramHere.ts"

const root = sharedFolder()
const state = join(root, "state.ndjson")

const running: Array<() => void> = []
afterEach(() => running.splice(0).forEach((kill) => kill()))

const originIn = (line: unknown): string => new URL(JSON.parse(String(line)).base_url).origin

/** A process that serves, to be killed. */
const serving = async (...args: ReadonlyArray<string>) => {
  const child = spawn(process.execPath, [main, "sandbox", ...args], { stdio: ["ignore", "pipe", "inherit"] })
  const kill = async () => {
    child.kill("SIGKILL")
    await once(child, "close")
  }
  running.push(() => child.kill("SIGKILL"))
  const [line] = await once(child.stdout, "data")
  return { origin: originIn(line), kill }
}
const here = (...args: ReadonlyArray<string>): Running => {
  const service = startHere(["sandbox", "--port", "0", ...args])
  running.push(() => service.kill("SIGTERM"))
  return service
}

const call = async (origin: string, path: string, body?: unknown) => {
  const headers = { "X-APP-SECRET": "sandbox-app-1", "content-type": "application/json" }
  const response = await fetch(origin + path, {
    headers,
    ...(body === undefined ? {} : { method: "POST", body: JSON.stringify(body) }),
  })
  const text = await response.text()
  const answer = (text.startsWith("{") ? JSON.parse(text) : {}) as Readonly<Record<string, unknown>>
  return { status: response.status, body: answer }
}
const start = (origin: string, username: string, customer_id: string) =>
  call(origin, "/api/executions/init/v1/parametrized", {
    engine_reference: "sandbox-bank:website",
    customer_id,
    parameters: { username, password: "password-1" },
  })

describe("a server with a state file", () => {
  it("continues where kill -9 ended it: executions, conflicts, sessions, and its time", async () => {
    const options = ["--state", state, "--speed", "3000", "--seed", "7"]
    const first = await serving("--port", "0", ...options)
    const { origin } = first
    const open = await start(origin, "queue-100000+run-1", "c-open")
    const over = await start(origin, "queue-0+run-0", "c-over")
    await start(origin, "queue-0+run-1", "c-blink")
    expect([open.status, over.status]).toEqual([202, 202])
    const told = await call(origin, `/api/executions/handler/v1/${String(open.body["execution_id"])}`)
    await first.kill()
    expect(statSync(state).mode & 0o777).toBe(0o600)

    const second = await serving("--port", new URL(origin).port, ...options)
    expect(second.origin).toBe(origin)
    const again = await call(origin, `/api/executions/handler/v1/${String(open.body["execution_id"])}`)
    expect(again.status).toBe(202)
    expect(Number(again.body["total_elapsed_time"])).toBeGreaterThan(Number(told.body["total_elapsed_time"]))
    const conflict = await start(origin, "ok", "c-open")
    expect([conflict.status, conflict.body["execution_id"]]).toEqual([409, open.body["execution_id"]])
    const results = `/flows/es-public-administration/v1/manager/${String(over.body["session_id"])}/results`
    expect((await call(origin, results)).status).toBe(200)
    const truth = await call(origin, "/admin/truth")
    expect(truth.body["executions"]).toMatchObject({ total: 3 })
  }, 60_000)

  it("keeps a second server away from its file", async () => {
    const first = originIn(await here("--state", state).firstLine)
    expect(await here("--state", state).ended).toMatchObject({
      code: 5,
      stderr:
        `nightjar: another process is using the state file ${state} [journal-locked]\n` +
        "Nothing was started. Wait until it ends, or give --state another file.\n",
    })
    expect((await call(first, "/admin/truth")).status).toBe(200)
  })

  it("is not started on a wrong file of faults", async () => {
    const faults = join(root, "faults.yaml")
    writeFileSync(faults, "faults:\n  - { on: startExecution, statsu: 503 }\n")
    expect(await here("--faults", faults).ended).toMatchObject({
      code: 2,
      stderr:
        `${faults}:2:27: unknown key \`statsu\`; did you mean \`status\`?\n` +
        "nightjar: 1 problem in the faults file [faults-invalid]\n" +
        "Nothing was started. Correct the file. `nightjar sandbox --help` describes its keys.\n",
    })
  })
})
