/**
 * Engine forms made to burn time or to show a login, against a service on the loopback interface: signals are heard
 * meanwhile, and the login is not shown. What such a form does to its own engine's tasks is in `test/task` and `test/hostile`.
 */
import { spawn } from "node:child_process"
import { existsSync, writeFileSync } from "node:fs"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { join } from "node:path"
import { afterAll, beforeAll, expect, it } from "vitest"
import { engineDetails } from "../client/Examples.ts"
import { command } from "../acceptance/BuiltCommand.ts"
import { plainEnvironment } from "../harness/Environment.ts"
import { sharedFolder } from "../harness/Folder.ts"
import { startHere } from "../harness/ProgramHere.ts"

const root = sharedFolder()
const engines = ["slow:a", "slow:b", "slow:c", "slow:d"]
/** Half a minute to compile, within every bound that is counted beforehand. */
const slow = Object.fromEntries(
  Array.from({ length: 1_600 }, (_, at) => [`f${at}`, { pattern: `^(?:[a-z]|\\p{Lu}){1,900}${at}$` }]),
)
/** Of somebody who logged in here, as choices of the form. */
const showing = {
  branch: { type: "string", enum: ["north-7", "kept-in-env-7", "kept-in-file-7", "written-7"] },
}

let heard: (url: string) => void = () => undefined
const service = createServer((request, response) => {
  const url = decodeURIComponent(request.url ?? "")
  response.setHeader("content-type", "application/json")
  response.on("finish", () => heard(url))
  const [, reference] = /\/config\/engines\/(\w+:\w+)$/.exec(url) ?? []
  const properties = reference === "shows:logins" ? showing : slow
  const parameters = { type: "object", format: "cg-params", properties }
  response.end(JSON.stringify(reference === undefined ? [] : { ...engineDetails, reference, parameters }))
})
let origin = ""
beforeAll(async () => {
  await new Promise<void>((resolve) => service.listen(0, "127.0.0.1", resolve))
  origin = `http://127.0.0.1:${(service.address() as AddressInfo).port}`
})
afterAll(() => void service.close())

it("[promise 12 engine forms] `engines show` blanks every login of its job but those that only a command knows", async () => {
  writeFileSync(join(root, "pin.txt"), "kept-in-file-7\n", { mode: 0o600 })
  writeFileSync(
    join(root, "shows.yaml"),
    `name: shows
service: { base_url: "${origin}/api", flows_url: "${origin}/flows", app_secret: env:APP }
engines: ["shows:logins"]
customers:
  - id: k-1
    parameters: { branch: north-7, user: env:USER_NAME, pin: file:pin.txt, password: written-7, code: env:NOT_SET,
      key: "exec:touch ${root}/was-run" }
`,
  )
  const { ended } = startHere(["engines", "show", "shows:logins", "--job", "shows.yaml"], {
    folder: root,
    environment: { APP: "app-secret", USER_NAME: "kept-in-env-7" },
  })
  const { code, stdout, stderr } = await ended
  expect([code, /branch .*$/m.exec(stdout)?.[0], existsSync(join(root, "was-run"))]).toEqual([
    0,
    expect.stringMatching(/^branch +string +north-7\|\[blanked\]\|\[blanked\]\|\[blanked\]$/),
    false,
  ])
  expect(stdout + stderr).not.toMatch(/kept-in|written-7/)
})

it("hostile forms do not prevent a plan from ending at once on SIGTERM", async () => {
  writeFileSync(
    join(root, "slow.yaml"),
    `name: slow
service: { base_url: "${origin}/api", flows_url: "${origin}/flows", app_secret: env:APP }
engines: [${engines.map((engine) => `"${engine}"`).join(", ")}]
customers: [{ id: k-1, parameters: { username: env:USERNAME } }]
`,
  )
  const child = spawn(process.execPath, [command, "plan", "slow.yaml", "--output", "output"], {
    cwd: root,
    env: { ...plainEnvironment, APP: "app-secret", USERNAME: "a".repeat(60) },
  })
  const ended = new Promise<number | null>((resolve) => child.on("close", resolve))
  let signalledAt = 0
  const answered = new Set<string>()
  heard = (url) => {
    answered.add(url)
    if (answered.size < engines.length) return
    signalledAt = performance.now()
    child.kill("SIGTERM")
  }
  expect(await ended).toBe(143)
  expect(performance.now() - signalledAt).toBeLessThan(10_000)
})
