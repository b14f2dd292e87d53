/** The server as a real process: one at a time has a state file, and none starts on a wrong file of faults. */
import { spawn, type ChildProcess } from "node:child_process"
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { afterEach, describe, expect, it } from "vitest"
import { sharedFolder } from "../../harness/Folder.ts"
import { command as main } from "../../acceptance/BuiltCommand.ts"

const root = sharedFolder()
const state = join(root, "state.ndjson")

const running: Array<ChildProcess> = []
afterEach(() => running.splice(0).forEach((child) => child.kill("SIGKILL")))

interface Service {
  readonly base_url: string
}
interface Ended {
  readonly code: number | null
  readonly stderr: string
}

/** Serving, or already over. */
const launch = (...args: ReadonlyArray<string>): Promise<Service | Ended> => {
  const child = spawn(process.execPath, [main, "sandbox", ...args], {
    env: { ...process.env, NO_COLOR: "1" },
  })
  running.push(child)
  let stderr = ""
  child.stderr.on("data", (bytes: Buffer) => (stderr += bytes.toString()))
  const ended = new Promise<Ended>((resolve) => child.once("close", (code) => resolve({ code, stderr })))
  const answers = new Promise<Service>((resolve) =>
    child.stdout.once("data", (bytes: Buffer) => resolve(JSON.parse(bytes.toString()) as Service)),
  )
  return Promise.race([answers, ended])
}

describe("a server with a state file", () => {
  it("keeps a second server away from its file, and no other", async () => {
    const first = await launch("--port", "0", "--state", state)
    if ("code" in first) throw new Error(first.stderr)
    const second = await launch("--port", "0", "--state", state)
    expect(second).toEqual({
      code: 5,
      stderr:
        `nightjar: another process is using the state file ${state} [journal-locked]\n` +
        "Nothing was started. Wait until it ends, or give --state another file.\n",
    })
    expect((await fetch(new URL("/admin/truth", first.base_url))).status).toBe(200)
    expect("base_url" in (await launch("--port", "0", "--state", `${state}.other`))).toBe(true)
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
