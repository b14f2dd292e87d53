/**
 * Jobs that are given together, as a real process: killed in the middle and given again, both finish, in one
 * ledger and one set of tables.
 */
import { spawn } from "node:child_process"
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import { command as main } from "../acceptance/BuiltCommand.ts"
import { plainEnvironment } from "../harness/Environment.ts"
import { startHere } from "../harness/ProgramHere.ts"
import { sharedFolder } from "../harness/Folder.ts"

const root = sharedFolder()
const env = { ...plainEnvironment, NIGHTJAR_OUTPUT: join(root, "output"), LOGIN_PASSWORD: "correct horse" }

const job = (name: string): string => {
  const path = `${name}.yaml`
  const text = `name: ${name}
service: { sandbox: { seed: 3, speed: 3000 } }
engines: [sandbox-bank:website]
record_schemas: []
customers:
  - { id: ${name}-1, parameters: { username: ok+queue-1200+run-900+x-${name}, password: env:LOGIN_PASSWORD } }
`
  writeFileSync(join(root, path), text)
  return path
}

const nightjar = (...args: ReadonlyArray<string>) => startHere(args, { environment: env, folder: root }).ended

/** Kills the run as soon as this much of its progress was told. */
const killedAfter = (told: RegExp, ...args: ReadonlyArray<string>) =>
  new Promise<void>((resolve) => {
    const run = spawn(process.execPath, [main, ...args], { cwd: root, env })
    let text = ""
    run.stderr.on("data", (chunk: Buffer) => {
      text += chunk.toString()
      if (told.test(text)) run.kill("SIGKILL")
    })
    run.on("close", () => resolve())
  })

describe("two jobs that share nothing", () => {
  it("go on side by side, and after a kill both are finished by the next run", async () => {
    const jobs = [job("a"), job("b")]
    await killedAfter(/executing.*\n[^]*executing/, "run", ...jobs)
    const { code, stdout, stderr } = await nightjar("run", "--json", ...jobs, "./a.yaml")
    expect(stderr.split("\n").slice(0, 2)).toEqual([
      "warning: the job file a.yaml is given more than once [job-given-twice]",
      // The kill may come before the other one has started: whichever is under way goes first.
      expect.stringMatching(/^Side by side: (a, b|b, a)\.$/),
    ])
    expect({ code, told: JSON.parse(stdout) as unknown }).toMatchObject({
      code: 0,
      told: [
        { run_id: expect.stringMatching(/^a\./) as unknown, executions: 1 },
        { run_id: expect.stringMatching(/^b\./) as unknown, executions: 1 },
      ],
    })
    const sql = "SELECT job, exit_code FROM ops.runs ORDER BY ALL"
    expect((await nightjar("query", sql, "--format", "csv")).stdout).toBe("job,exit_code\r\na,0\r\nb,0\r\n")
  })
})
