/**
 * The embedded service over HTTP, as any developer starts it, and the program's own night, with a job of the demo set
 * pointed at an address of ours.
 */
import { copyFileSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { createServer } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { stringify } from "yaml"
import type { Reading } from "../../src/sandbox/state/Reading.ts"
import { encodeReading } from "../../src/sandbox/readings/SettingFiles.ts"
import { plainEnvironment } from "../harness/Environment.ts"
import { startHere } from "../harness/ProgramHere.ts"
import { isObject } from "../project/schemaNodes.ts"

const root = fileURLToPath(new URL("../../", import.meta.url))
const secret = "sandbox-app-1"

export interface ServiceUnderTest {
  readonly origin: string
  readonly stop: () => void
}

export const startService = async (
  speed: number,
  faults: object,
  reading: Reading = {},
): Promise<ServiceUnderTest> => {
  const folder = mkdtempSync(join(tmpdir(), "conformance-service-"))
  const file = join(folder, "faults.yaml")
  writeFileSync(file, stringify(faults))
  const readingFile = join(folder, "reading.yaml")
  writeFileSync(readingFile, encodeReading(reading))
  const files = ["--faults", file, "--reading", readingFile]
  const server = startHere(["sandbox", "--port", "0", "--seed", "7", "--speed", String(speed), ...files])
  const said = await server.firstLine
  if (said === "") throw new Error(`no service: ${(await server.ended).stderr}`)
  const address: unknown = JSON.parse(said)
  const base_url = isObject(address) ? String(address["base_url"]) : ""
  const stop = async () => {
    server.kill("SIGTERM")
    await server.ended
    rmSync(folder, { recursive: true, force: true, maxRetries: 5 })
  }
  return { origin: new URL(base_url).origin, stop: () => void stop() }
}

/** What makes a night of a demo's size pass in seconds on the machine's own clock. */
const quick = (max_wait: string) => ({
  execution: { execution_timeout: "10 minutes", max_wait },
  polling: { min: "200 millis", max: "1 second" },
  retry: { max_attempts: 3, base: "1 second", max: "2 seconds" },
  flow_results: { enabled: true, min_interval: "5 seconds", wait_final: "20 seconds", attachments: true },
})

export interface Night {
  /** A file of `jobs/` that runs on the embedded service. */
  readonly job: string
  readonly further?: boolean
  /** Listens for the service's events while it runs. */
  readonly webhooks?: boolean
  /** The first of its customers only. */
  readonly customersMax?: number
}

/** The first items of a block list; the text of the others is left out. */
const firstItems = (block: string, countMax: number): string => {
  const [head = "", ...items] = block.split(/^(?= {2}- )/m)
  return [head, ...items.slice(0, countMax)].join("")
}

/** The job's own text, as ids like 5e55 are what is written, with a service at `origin` and a quicker pace. */
const writeJob = (folder: string, origin: string, { job, customersMax }: Night): string => {
  const changed = {
    // A whole demo has a customer on an engine in maintenance, who waits as long as the job lets it.
    ...quick(customersMax === undefined ? "15 seconds" : "2 minutes"),
    service: {
      base_url: `${origin}/api`,
      flows_url: `${origin}/flows`,
      app_secret: "env:NIGHTJAR_APP_SECRET",
    },
  }
  const kept = readFileSync(join(root, "jobs", job), "utf8")
    .split(/^(?=[a-z_]+:)/m)
    .filter((block) => !Object.keys(changed).some((key) => block.startsWith(`${key}:`)))
    .map((block) =>
      block.startsWith("customers:") && customersMax !== undefined ? firstItems(block, customersMax) : block,
    )
  for (const name of readdirSync(join(root, "jobs")).filter((one) => one.endsWith(".txt"))) {
    copyFileSync(join(root, "jobs", name), join(folder, name))
  }
  const path = join(folder, job)
  writeFileSync(path, `${kept.join("")}\n${stringify(changed)}`)
  return path
}

export interface NightEnd extends Night {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

const freePort = async (): Promise<number> => {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  const address = server.address()
  await new Promise((resolve) => server.close(resolve))
  return typeof address === "object" && address !== null ? address.port : 0
}

/** By the service's own interface, which is no part of the document: not through the proxy. */
const subscribe = async (service: string): Promise<ReadonlyArray<string>> => {
  const port = await freePort()
  const { ok } = await fetch(`${service}/sandbox/hooks`, {
    method: "PUT",
    headers: { "X-APP-SECRET": secret, "Content-Type": "application/json" },
    body: JSON.stringify({ url: `http://127.0.0.1:${port}/` }),
  })
  if (!ok) throw new Error("the service takes no subscription")
  return ["--webhooks", String(port)]
}

/**
 * One after the other in one output folder, as a machine runs them, all calls going to `origin`.
 *
 * @param service the address of the service itself
 */
export const runNights = async (
  origin: string,
  nights: ReadonlyArray<Night>,
  service: string,
): Promise<ReadonlyArray<NightEnd>> => {
  const folder = mkdtempSync(join(tmpdir(), "conformance-"))
  const ends: Array<NightEnd> = []
  try {
    for (const night of nights) {
      const output = ["--output", join(folder, "output"), "--no-progress"]
      const further = night.further === true ? ["--new"] : []
      const listening = night.webhooks === true ? await subscribe(service) : []
      const args = ["run", ...further, ...listening, writeJob(folder, origin, night), ...output]
      const environment = { ...plainEnvironment, NO_COLOR: "1", NIGHTJAR_APP_SECRET: secret }
      const { code, stdout, stderr } = await startHere(args, { environment }).ended
      ends.push({ ...night, code, stdout, stderr })
    }
    return ends
  } finally {
    rmSync(folder, { recursive: true, force: true, maxRetries: 5 })
  }
}
