/**
 * Engine forms made to burn time, by the real command against a service on the loopback interface: signals are
 * heard meanwhile, other engines' customers are planned, and nothing of it is left once the service is healed.
 */
import { spawn } from "node:child_process"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { engineDetails } from "../client/Examples.ts"
import { command as main } from "../acceptance/BuiltCommand.ts"
import { plainEnvironment } from "../harness/Environment.ts"

const root = mkdtempSync(join(tmpdir(), "forms-"))

const paramsForm = (properties: unknown, rest: object = {}) => ({
  type: "object",
  format: "cg-params",
  properties,
  ...rest,
})
const many = (amount: number, make: (index: number) => unknown) =>
  Object.fromEntries(Array.from({ length: amount }, (_, index) => [`f${index}`, make(index)]))
/** Half a minute to compile, within every bound that is counted beforehand. */
const slow = paramsForm(many(1_600, (at) => ({ pattern: `^(?:[a-z]|\\p{Lu}){1,900}${at}$` })))
const itself = paramsForm({ username: { $ref: "#/$defs/A" } }, { $defs: { A: { $ref: "#/$defs/A" } } })
const good = paramsForm({ username: { type: "string" } })

/** What the service answers for each engine; an engine may be healed. */
const forms = new Map<string, unknown>()
const requests: Array<string> = []
let heard: (url: string) => void = () => undefined
const service = createServer((request, response) => {
  const url = decodeURIComponent(request.url ?? "")
  requests.push(`${request.method} ${url}`)
  response.setHeader("content-type", "application/json")
  const reference = /\/config\/engines\/(\w+:\w+)$/.exec(url)?.[1]
  const parameters = reference === undefined ? undefined : forms.get(reference)
  response.statusCode = parameters === undefined && reference !== undefined ? 404 : 200
  response.on("finish", () => heard(url))
  response.end(JSON.stringify(parameters === undefined ? [] : { ...engineDetails, reference, parameters }))
})

beforeAll(async () => {
  await new Promise<void>((resolve) => service.listen(0, "127.0.0.1", resolve))
})
afterAll(() => {
  service.close()
  rmSync(root, { recursive: true, force: true })
})

const writeJob = (name: string, engines: ReadonlyArray<string>) => {
  const { port } = service.address() as AddressInfo
  const urls = `base_url: "http://127.0.0.1:${port}/api", flows_url: "http://127.0.0.1:${port}/flows"`
  writeFileSync(
    join(root, `${name}.yaml`),
    `name: ${name}
service: { ${urls}, app_secret: "env:APP" }
engines: [${engines.map((engine) => `"${engine}"`).join(", ")}]
customers:
  - { id: k-1, parameters: { username: "env:USERNAME" } }
`,
  )
  return `${name}.yaml`
}

const start = (...args: ReadonlyArray<string>) => {
  const child = spawn(process.execPath, [main, ...args, "--output", join(root, "output")], {
    cwd: root,
    env: { ...plainEnvironment, APP: "app-secret", USERNAME: "a".repeat(60), NO_COLOR: "1" },
  })
  let stdout = ""
  child.stdout.on("data", (chunk: Buffer) => (stdout += chunk.toString()))
  const ended = new Promise<{ code: number | null; stdout: string }>((resolve) =>
    child.on("close", (code) => resolve({ code, stdout })),
  )
  return { child, ended }
}

interface Preview {
  readonly tasks: ReadonlyArray<{ readonly engine_reference: string }>
  readonly settled: ReadonlyArray<{ readonly engine_reference: string; readonly reason: string }>
}
const planOf = async (job: string) => {
  const { stdout } = await start("plan", job, "--json").ended
  const [preview] = JSON.parse(stdout) as ReadonlyArray<Preview>
  return {
    tasks: preview?.tasks.map(({ engine_reference }) => engine_reference),
    settled: preview?.settled.map(({ engine_reference, reason }) => `${engine_reference} ${reason}`),
  }
}

describe("hostile forms", () => {
  it("do not prevent a plan from ending at once on SIGTERM", async () => {
    const engines = ["slow:a", "slow:b", "slow:c", "slow:d"]
    for (const engine of engines) forms.set(engine, slow)
    const job = writeJob("slow", engines)
    const { child, ended } = start("plan", job)
    let signalledAt = 0
    const answered = new Set<string>()
    heard = (url) => {
      answered.add(url)
      if (answered.size < engines.length) return
      signalledAt = performance.now()
      child.kill("SIGTERM")
    }
    expect((await ended).code).toBe(143)
    expect(performance.now() - signalledAt).toBeLessThan(10_000)
    heard = () => undefined
  })

  it("settle only their engine's tasks, send no login, and are forgotten once the service has recovered", async () => {
    forms.set("itself:api", itself).set("good:api", good)
    const both = writeJob("both", ["itself:api", "good:api"])
    expect(await planOf(both)).toEqual({ tasks: ["good:api"], settled: ["itself:api ANSWER_UNUSABLE"] })

    requests.length = 0
    const { code, stdout } = await start("run", writeJob("alone", ["itself:api"]), "--json", "--no-progress")
      .ended
    expect([code, stdout.includes("ANSWER_UNUSABLE")]).toEqual([3, true])
    expect(requests.filter((request) => !request.startsWith("GET "))).toEqual([])

    forms.set("itself:api", good)
    expect(await planOf(both)).toEqual({ tasks: ["itself:api", "good:api"], settled: [] })
  })
})
