/** The server as a real process: killed while executions are in flight, and started again on its file and port. */
import { spawn, type ChildProcess } from "node:child_process"
import { statSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { afterEach, describe, expect, it } from "vitest"
import { sharedFolder } from "../../harness/Folder.ts"
import { command as main } from "../../acceptance/BuiltCommand.ts"

const root = sharedFolder()
const state = join(root, "state.ndjson")

const running: Array<ChildProcess> = []
afterEach(() => running.splice(0).forEach((child) => child.kill("SIGKILL")))

interface Service {
  readonly port: string
  readonly kill: () => Promise<void>
}
interface Ended {
  readonly code: number | null
  readonly stderr: string
}

const command = [process.execPath, main, "sandbox"]

/** Serving, or already over. */
const launch = (...args: ReadonlyArray<string>): Promise<Service | Ended> => launchBy([...command, ...args])
const launchBy = ([file = "", ...args]: ReadonlyArray<string>): Promise<Service | Ended> => {
  const child = spawn(file, args, { env: { ...process.env, NO_COLOR: "1" } })
  running.push(child)
  let stderr = ""
  child.stderr.on("data", (bytes: Buffer) => (stderr += bytes.toString()))
  const ended = new Promise<Ended>((resolve) => child.once("close", (code) => resolve({ code, stderr })))
  const answers = new Promise<Service>((resolve) =>
    child.stdout.once("data", (bytes: Buffer) => {
      const { base_url } = JSON.parse(bytes.toString()) as { readonly base_url: string }
      const kill = async () => {
        child.kill("SIGKILL")
        await ended
      }
      resolve({ port: new URL(base_url).port, kill })
    }),
  )
  return Promise.race([answers, ended])
}
const serving = async (...args: ReadonlyArray<string>): Promise<Service> => {
  const launched = await launch(...args)
  if ("code" in launched) throw new Error(launched.stderr)
  return launched
}

const call = async ({ port }: Service, path: string, body?: unknown) => {
  const headers = { "X-APP-SECRET": "sandbox-app-1", "content-type": "application/json" }
  const response = await fetch(`http://127.0.0.1:${port}${path}`, {
    headers,
    ...(body === undefined ? {} : { method: "POST", body: JSON.stringify(body) }),
  })
  const text = await response.text()
  const answer = (text.startsWith("{") ? JSON.parse(text) : {}) as Readonly<Record<string, unknown>>
  return { status: response.status, body: answer }
}
const start = (service: Service, username: string, customer_id: string) =>
  call(service, "/api/executions/init/v1/parametrized", {
    engine_reference: "sandbox-bank:website",
    customer_id,
    parameters: { username, password: "password-1" },
  })

describe("a server with a state file", () => {
  it("continues where kill -9 ended it: executions, conflicts, sessions, and its time", async () => {
    const options = ["--state", state, "--speed", "3000", "--seed", "7"]
    const first = await serving("--port", "0", ...options)
    const open = await start(first, "queue-100000+run-1", "c-open")
    const over = await start(first, "queue-0+run-0", "c-over")
    await start(first, "queue-0+run-1", "c-blink")
    expect([open.status, over.status]).toEqual([202, 202])
    const told = await call(first, `/api/executions/handler/v1/${String(open.body["execution_id"])}`)
    await first.kill()
    expect(statSync(state).mode & 0o777).toBe(0o600)

    const second = await serving("--port", first.port, ...options)
    expect(second.port).toBe(first.port)
    const again = await call(second, `/api/executions/handler/v1/${String(open.body["execution_id"])}`)
    expect(again.status).toBe(202)
    expect(Number(again.body["total_elapsed_time"])).toBeGreaterThan(Number(told.body["total_elapsed_time"]))
    const conflict = await start(second, "ok", "c-open")
    expect([conflict.status, conflict.body["execution_id"]]).toEqual([409, open.body["execution_id"]])
    const results = `/flows/es-public-administration/v1/manager/${String(over.body["session_id"])}/results`
    expect((await call(second, results)).status).toBe(200)
    const truth = await call(second, "/admin/truth")
    expect(truth.body["executions"]).toMatchObject({ total: 3 })
  }, 60_000)

  it("keeps a second server away from its file, and no other", async () => {
    const first = await serving("--port", "0", "--state", state)
    const second = await launch("--port", "0", "--state", state)
    expect(second).toEqual({
      code: 5,
      stderr:
        `nightjar: another process is using the state file ${state} [journal-locked]\n` +
        "Nothing was started. Wait until it ends, or give --state another file.\n",
    })
    expect((await call(first, "/admin/truth")).status).toBe(200)
    expect("port" in (await launch("--port", "0", "--state", `${state}.other`))).toBe(true)
  }, 60_000)

  it("is not started on a wrong file of faults", async () => {
    const faults = join(root, "faults.yaml")
    writeFileSync(faults, "faults:\n  - { on: startExecution, statsu: 503 }\n")
    expect(await launch("--port", "0", "--faults", faults)).toEqual({
      code: 2,
      stderr:
        `${faults}:2:27: unknown key \`statsu\`; did you mean \`status\`?\n` +
        "nightjar: 1 problem in the faults file [faults-invalid]\n" +
        "Nothing was started. Correct the file. `nightjar sandbox --help` describes its keys.\n",
    })
  }, 60_000)
})
