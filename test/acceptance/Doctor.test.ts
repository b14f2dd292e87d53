/**
 * `nightjar doctor` against a service whose clock and subscriptions are scripted, and over folders that are not in
 * order: every line that is not ok, whole, and the exit code.
 */
import { spawn } from "node:child_process"
import { chmodSync, globSync, mkdirSync, readdirSync, readFileSync } from "node:fs"
import { createServer, type Server } from "node:http"
import type { AddressInfo } from "node:net"
import { join, relative } from "node:path"
import { text } from "node:stream/consumers"
import { fileURLToPath } from "node:url"
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest"
import { nightsThatFit } from "../../src/cli/commands/Doctor.ts"
import { plantedVariable } from "../conformance/PlantText.ts"
import { command, program } from "./BuiltCommand.ts"
import { Workplace } from "./Nightjar.ts"

vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 })

const root = fileURLToPath(new URL("../../", import.meta.url))

let place: Workplace
let server: Server
let secondsAhead: number
let subscriptions: unknown
const asked: Array<string> = []

beforeEach(async () => {
  place = new Workplace()
  secondsAhead = 0
  subscriptions = []
  asked.length = 0
  server = createServer((request, response) => {
    asked.push(`${request.method} ${request.url}`)
    const date = new Date(Date.now() + secondsAhead * 1_000).toUTCString()
    const body = request.url === "/flows/hooks/list" ? subscriptions : []
    response.writeHead(body === undefined ? 404 : 200, { "content-type": "application/json", date })
    response.end(JSON.stringify(body ?? {}))
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  const address = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  place.write(
    "job.yaml",
    `name: small\nservice: { base_url: "${address}/api", flows_url: "${address}/flows", app_secret: env:APP }\n` +
      "engines: [sandbox-bank:website]\ncustomers: [{ id: c-1, parameters: { username: env:U } }]\n",
  )
  place.write(".env", "APP=an-app-secret\nU=somebody\n")
  chmodSync(join(place.folder, ".env"), 0o600)
})
afterEach(async () => {
  await new Promise((resolve) => server.close(resolve))
  place.remove()
})

interface Line {
  readonly what: string
  readonly verdict: string
  readonly says: string
  readonly id?: string
}
const doctor = async () => {
  const { code, stdout } = await place.nightjar("doctor", "job.yaml", "--json")
  const lines = JSON.parse(stdout) as ReadonlyArray<Line>
  return {
    code,
    ofJob: lines.filter(({ what }) => what.startsWith("job.yaml")).map(({ what, says }) => [what, says]),
    others: lines.filter(({ verdict }) => verdict !== "ok"),
  }
}

describe("`doctor`", () => {
  it("takes secrets from the file beside the job, and asks the service only what changes nothing", async () => {
    const host = `127.0.0.1:${(server.address() as AddressInfo).port}`
    expect(await doctor()).toEqual({
      code: 0,
      ofJob: [
        ["job.yaml: secrets", "2 references resolved, also from .env"],
        ["job.yaml: service", `${host} answers and takes the application secret`],
        ["job.yaml: clock", "agrees with the service's"],
        ["job.yaml: flow events", "none is subscribed"],
      ],
      others: [],
    })
    expect(asked).toEqual(["GET /api/config/engines/list", "GET /flows/hooks/list"])
  })

  it("names a clock that differs from the service's, and subscriptions that are switched off", async () => {
    const plainly = (lines: ReadonlyArray<Line>) =>
      lines.map((line) => ({ ...line, says: line.says.replace(/\d+/, "N") }))
    const clock = (way: string) => ({
      what: "job.yaml: clock",
      verdict: "warning",
      says: `this machine's clock is N seconds ${way} the service's`,
      id: "clock-differs",
    })
    secondsAhead = -90
    expect(plainly((await doctor()).others)).toEqual([clock("ahead of")])
    secondsAhead = 90
    subscriptions = [
      { event: "es-public-administration:ended", base_url: "https://x.example/", enabled: false },
      { event: "es-public-administration:started", base_url: "https://x.example/", enabled: true },
    ]
    const { code, others } = await doctor()
    expect(code).toBe(0)
    expect(Math.abs(Number(/\d+/.exec(others[0]?.says ?? "")?.[0]) - 90)).toBeLessThanOrEqual(10)
    expect(plainly(others)).toEqual([
      clock("behind"),
      {
        what: "job.yaml: flow events",
        verdict: "warning",
        says: "subscribed at the service, but switched off: es-public-administration:ended",
        id: "hooks-disabled",
      },
    ])
    subscriptions = undefined
    expect((await doctor()).ofJob.at(-1)).toEqual([
      "job.yaml: flow events",
      "the service does not list subscriptions",
    ])
  })

  it("warns of a TZ that is no time zone", async () => {
    const { stdout } = await place.spawned(["doctor", "--json"], { TZ: "Mars/Olympus" })
    const lines = JSON.parse(stdout) as ReadonlyArray<Line>
    expect(lines.filter(({ what }) => what === "time zone")).toEqual([
      {
        what: "time zone",
        verdict: "warning",
        says: "the variable TZ names no known time zone, so times are in UTC",
        id: "zone-unknown",
      },
    ])
  })

  it("names private files that other users can read, and fails", async () => {
    mkdirSync(join(place.output, "landing"), { recursive: true, mode: 0o755 })
    chmodSync(place.output, 0o700)
    place.write(
      "output/.nightjar",
      "nightjar output folder\nNightjar writes everything else in this folder.\n",
    )
    const { code, others } = await doctor()
    expect([code, others.filter(({ id }) => id === "files-open-to-others")]).toEqual([
      2,
      [
        {
          what: "private files",
          verdict: "failed",
          says: "other users can read private files in output: landing (0755)",
          id: "files-open-to-others",
        },
      ],
    ])
  })
})

describe("`doctor --canary`", () => {
  const said = async (from: string, environment: Readonly<Record<string, string>> = {}) => {
    const temporary = join(place.folder, "temporary")
    mkdirSync(temporary)
    const child = spawn(process.execPath, [from, "doctor", "--canary", "--json"], {
      cwd: place.folder,
      // A setting that would send the night to another service, and a folder that it has to leave empty.
      env: { ...process.env, NIGHTJAR_BASE_URL: "http://127.0.0.1:9/api", TMPDIR: temporary, ...environment },
    })
    const [code, stdout] = await Promise.all([
      new Promise<number | null>((resolve) => child.on("close", resolve)),
      text(child.stdout),
    ])
    const lines = (JSON.parse(stdout) as ReadonlyArray<Line>).filter(({ what }) => what === "canary")
    return { code, lines, left: readdirSync(temporary) }
  }

  it("plants secrets in a night of its own, finds none of them, and leaves nothing [doctor canary] [doctor canary search]", async () => {
    const { lines, ...end } = await said(program())
    expect([end, lines.map((line) => ({ ...line, says: line.says.replaceAll(/[\d.]+/g, "N") }))]).toEqual([
      { code: 0, left: [] },
      [
        {
          what: "canary",
          verdict: "ok",
          says:
            "N secrets planted in a test night whose service repeated one of them; none was found in N files, " +
            "N tables and the output (N MB searched)",
        },
      ],
    ])
    expect(asked).toEqual([])
  })

  it("fails and names what got out, and where, if nothing is blanked any more", async () => {
    // In what is built: from the sources, the two processes take twice as long.
    const changes = globSync(join(command, "../*.js")).flatMap((path) => {
      const [replace, by] = /if\(isPublic\(\w+\)\)(return \w+)/.exec(readFileSync(path, "utf8")) ?? []
      return replace === undefined ? [] : [{ in: relative(root, path), replace, by }]
    })
    expect(changes).toHaveLength(1)
    const { lines, ...end } = await said(command, {
      [plantedVariable]: JSON.stringify(changes),
      NODE_OPTIONS: `--import=${new URL("../conformance/PlantedSource.ts", import.meta.url).href}`,
    })
    expect([end, lines.map(({ what, verdict, id }) => ({ what, verdict, id }))]).toEqual([
      { code: 2, left: [] },
      [{ what: "canary", verdict: "failed", id: "canary-found" }],
    ])
    const places = (lines[0]?.says ?? "").replaceAll(/\d+/g, "N").split("; ")
    expect(places).toEqual(
      expect.arrayContaining([
        "secrets leaked in a test run: a password that the service repeats in " +
          "output/landing/canary.N-N-N/segment-N.njl",
        "a password that the service repeats in the table ops.execution_errors",
      ]),
    )
  })
})

describe("the nights that still fit on the disk", () => {
  it("are measured from nights that landed something: twice their bodies, and the database once more", () => {
    const landed = [100, 0, 300]
    expect(nightsThatFit({ freeBytes: 5_000, databaseBytes: 1_000, landed })).toBe(10)
    expect(nightsThatFit({ freeBytes: 500, databaseBytes: 1_000, landed })).toBe(0)
    expect(nightsThatFit({ freeBytes: 500, databaseBytes: 0, landed: [0] })).toBeUndefined()
  })
})
