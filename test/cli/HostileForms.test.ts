/**
 * Engine forms made to burn time, by the real command against a service on the loopback interface: signals are heard
 * meanwhile. What such a form does to its own engine's tasks is in `test/task` and `test/hostile`.
 */
import { spawn } from "node:child_process"
import { writeFileSync } from "node:fs"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { join } from "node:path"
import { afterAll, expect, it } from "vitest"
import { engineDetails } from "../client/Examples.ts"
import { command } from "../acceptance/BuiltCommand.ts"
import { plainEnvironment } from "../harness/Environment.ts"
import { sharedFolder } from "../harness/Folder.ts"

const root = sharedFolder()
const engines = ["slow:a", "slow:b", "slow:c", "slow:d"]
/** Half a minute to compile, within every bound that is counted beforehand. */
const slow = Object.fromEntries(
  Array.from({ length: 1_600 }, (_, at) => [`f${at}`, { pattern: `^(?:[a-z]|\\p{Lu}){1,900}${at}$` }]),
)

let heard: (url: string) => void = () => undefined
const service = createServer((request, response) => {
  const url = decodeURIComponent(request.url ?? "")
  response.setHeader("content-type", "application/json")
  response.on("finish", () => heard(url))
  const [, reference] = /\/config\/engines\/(\w+:\w+)$/.exec(url) ?? []
  const parameters = { type: "object", format: "cg-params", properties: slow }
  response.end(JSON.stringify(reference === undefined ? [] : { ...engineDetails, reference, parameters }))
})
afterAll(() => void service.close())

it("hostile forms do not prevent a plan from ending at once on SIGTERM", async () => {
  await new Promise<void>((resolve) => service.listen(0, "127.0.0.1", resolve))
  const origin = `http://127.0.0.1:${(service.address() as AddressInfo).port}`
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
