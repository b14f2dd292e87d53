/**
 * Exit codes as a cron line sees them: the program itself in processes of its own. What a run answers when it is over
 * (0, 3 and 4) is told in `test/report`.
 */
import { spawn } from "node:child_process"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect } from "effect"
import { afterAll, describe, expect, it } from "vitest"
import { claimFolder } from "../../src/cli/OutputFolder.ts"
import { DurableFiles, machineCalls } from "../../src/base/DurableFile.ts"
import { lockFolder } from "../../src/base/FolderLock.ts"
import { program } from "../acceptance/BuiltCommand.ts"

const root = mkdtempSync(join(tmpdir(), "exit-codes-"))
const output = join(root, "output")
afterAll(() => rmSync(root, { recursive: true, force: true }))

/** Ends with the exit code; `seen` looks at what stderr has said so far and may send a signal. */
const nightjar = (
  args: ReadonlyArray<string>,
  more: Readonly<Record<string, string>> = {},
  seen?: (stderr: string, kill: (signal: NodeJS.Signals) => void) => void,
): Promise<{ readonly code: number | null; readonly stderr: string }> =>
  new Promise((resolve) => {
    const env = { ...process.env, NIGHTJAR_OUTPUT: output, DEMO_PASSWORD: "hunter22", ...more }
    const child = spawn(process.execPath, [program(), ...args], {
      cwd: root,
      env,
      stdio: ["ignore", "ignore", "pipe"],
    })
    let stderr = ""
    child.stderr.on("data", (chunk: Buffer) => {
      stderr += chunk.toString()
      seen?.(stderr, (signal) => child.kill(signal))
    })
    child.on("exit", (code) => resolve({ code, stderr }))
  })

const job = (name: string, service: string, username: string): string => {
  const path = join(root, `${name}.yaml`)
  writeFileSync(
    path,
    `name: ${name}
service: ${service}
engines: [sandbox-bank:website]
customers:
  - { id: k-1, parameters: { username: ${username}, password: "env:DEMO_PASSWORD" } }
`,
  )
  return path
}

describe("the program", () => {
  it("ends with 2 on wrong usage, and starts nothing [exit 2]", async () => {
    expect((await nightjar(["rnu"])).code).toBe(2)
    const path = job("Bad_Name", "sandbox", "ok")
    expect((await nightjar(["run", path])).code).toBe(2)
  })

  it("ends with 5 if another process is working in the output folder [exit 5]", async () => {
    const path = job("locked", "sandbox", "ok")
    expect(claimFolder(new DurableFiles(machineCalls), output, 0o700)).toBeUndefined()
    const held = Effect.andThen(
      lockFolder(join(output, "run.lock")),
      Effect.promise(() => nightjar(["run", path])),
    )
    expect((await Effect.runPromise(Effect.scoped(held))).code).toBe(5)
  })

  it("ends with 6 if the service cannot be reached or refuses the secret [exit 6]", async () => {
    const service =
      "{ base_url: http://127.0.0.1:9/api, flows_url: http://127.0.0.1:9/flows, app_secret: env:DEMO_PASSWORD }"
    const path = job("away", service, "ok")
    expect((await nightjar(["run", path], { NIGHTJAR_OUTPUT: join(root, "away") })).code).toBe(6)
  })

  it.each([
    ["SIGINT", 130],
    ["SIGTERM", 143],
  ] as const)("ends after %s and says that its state is saved [exit %i]", async (signal, code) => {
    const path = job(`cut-${code}`, "{ sandbox: { seed: 3, speed: 50 } }", "queue-3000+run-30+records-2")
    let sent = false
    const ended = await nightjar(["run", path], { NIGHTJAR_OUTPUT: join(root, signal) }, (stderr, kill) => {
      if (sent || !stderr.includes("executing")) return
      sent = true
      kill(signal)
    })
    expect(ended.code).toBe(code)
    expect(ended.stderr).toMatch(/interrupted: the state is saved/)
  })
})
