/** What others are told of a run, by a real process to real servers: in full, in time, and nothing else. */
import { createServer, type IncomingMessage, type Server } from "node:http"
import type { AddressInfo } from "node:net"
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { hostname, tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest"
import { sha256Hex } from "../../src/base/Hashes.ts"
import { eventsOf, noticeOf } from "../../src/report/Notice.ts"
import { summarise } from "../../src/report/Summary.ts"
import { planned, run_id, runOf, settled } from "./Samples.ts"
import { plainEnvironment } from "../harness/Environment.ts"
import { startHere } from "../harness/ProgramHere.ts"

vi.setConfig({ testTimeout: 120_000, hookTimeout: 60_000 })

const root = mkdtempSync(join(tmpdir(), "notices-"))
/** `METHOD path body` of every request, in the order in which they arrived. */
const received: Array<{ readonly asked: string; readonly body: string }> = []
let server: Server
let base = ""

const bodyOf = async (request: IncomingMessage): Promise<string> => {
  let text = ""
  for await (const chunk of request) text += String(chunk)
  return text
}

beforeAll(async () => {
  server = createServer((request, response) => {
    void bodyOf(request).then((body) => {
      const { method = "", url = "" } = request
      received.push({ asked: `${method} ${url}`, body })
      if (url.startsWith("/slow")) return
      if (url.startsWith("/broken")) response.statusCode = 500
      if (url.startsWith("/moved")) response.writeHead(302, { location: "/elsewhere" })
      response.end("noted")
    })
  })
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done))
  base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
})
afterAll(() => {
  server.closeAllConnections()
  server.close()
  rmSync(root, { recursive: true, force: true })
})

const nightjar = async (...args: ReadonlyArray<string>) => {
  const {
    code: status,
    stdout,
    stderr,
  } = await startHere([...args, "--no-progress"], {
    folder: root,
    environment: {
      ...plainEnvironment,
      GOOD: `${base}/hook-secret-9f?key=k1`,
      CHAT: `${base}/chat`,
      WATCHDOG: `${base}/ping-secret-3c`,
      BROKEN: `${base}/broken`,
      MOVED: `${base}/moved`,
      SLOW: `${base}/slow`,
      DEAD: "http://127.0.0.1:1/dead-secret-77",
    },
  }).ended
  return { status, stdout, stderr }
}

const jobFile = (name: string, notify: string, usernames: ReadonlyArray<string>, more = ""): string => {
  const customers = usernames.map(
    (username, index) =>
      `  - { id: customer-${index}, parameters: { username: ${username}, password: pppp } }`,
  )
  writeFileSync(
    join(root, `${name}.yaml`),
    `name: ${name}
service: { sandbox: { seed: 3, speed: 2000 } }
engines: [sandbox-bank:website]
record_schemas: []
${more}notify:
${notify}
customers:
${customers.join("\n")}
`,
  )
  return `${name}.yaml`
}

const asked = () => received.map((one) => one.asked)
const notices = () =>
  received
    .filter((one) => one.asked.startsWith("POST /hook"))
    .map(({ body }) => JSON.parse(body) as Record<string, unknown>)

const origin = { host: "etl-1", job: "demo", run_date: "2026-11-21" }

describe("a notice", () => {
  it("names no customer and no reason that the table does not list [exit notify]", () => {
    const summary = summarise(
      runOf(
        planned("c-1"),
        planned("c-2"),
        settled("c-1", "failed", "MARIA_GARCIA_BLOCKED", "engineer", { message: "for maria@example.com" }),
        settled("c-2", "failed", "MARIA_LOCKED", "engineer"),
      ),
    )
    const news = ["MARIA_GARCIA_BLOCKED", "MARIA_LOCKED"].map(
      (reason) => ({ reason, outcome: "failed", who_acts: "engineer", count: 1 }) as const,
    )
    const ending = { job: "demo", exit_code: 3, summary, recovered: false, news }
    const notice = noticeOf(eventsOf(ending), ending, origin)
    expect(notice.events).toEqual(["new_trouble"])
    expect(notice.new).toEqual(notice.troubles)
    expect(notice.troubles).toEqual([
      {
        reason: "UNLISTED",
        outcome: "failed",
        who_acts: "engineer",
        count: 2,
        what_to_do: "Find out what it means; `nightjar credentials release` allows the login again.",
      },
    ])
    expect(/c-\d|bank:website|maria/i.test(JSON.stringify(notice))).toBe(false)
  })

  it("names the command that finishes the rest, unless a word of the service is in it", () => {
    const told = (reason: string) => {
      const left = settled("c-1", "unfinished", reason, "nobody")
      const facts = [
        planned("c-1"),
        left,
        { _tag: "RunEnded", run_id, exit_code: 4, leftovers: false } as const,
      ]
      const summary = summarise(runOf(...facts))
      const ending = { job: "demo", exit_code: 4, summary, recovered: false, news: [] }
      return noticeOf(["failed"], ending, origin).what_to_do
    }
    const rest = "`nightjar status` and the run's report.html show the rest."
    expect([told("DEADLINE_REACHED"), told("MARIA_LOCKED")]).toEqual([
      "This command collects what is still at the service and runs again what did not finish:\n" +
        `  nightjar rerun ${run_id} --only DEADLINE_REACHED\n${rest}`,
      rest,
    ])
  })
})

describe("receivers", () => {
  it("are told at once, each in its form, and dead ones cost a line and seconds", async () => {
    received.length = 0
    const path = jobFile(
      "many",
      `  - { url: "env:GOOD" }
  - { url: "env:CHAT", format: slack, on: [new_trouble] }
  - { ping: "env:WATCHDOG" }
  - { command: [sh, -c, "cat > ${root}/told.json"], on: [new_trouble] }
  - { url: "env:BROKEN" }
  - { url: "env:MOVED" }
  - { url: "env:SLOW" }
  - { url: "env:DEAD" }`,
      ["end-TIMEOUT+queue-1+run-2", "ok+queue-1+run-2"],
    )
    const { status, stdout, stderr } = await nightjar("run", path, "--output", "many")
    expect([status, stdout.includes("2 tasks: 1 succeeded, 1 failed")]).toEqual([3, true])
    const warning = (index: number, why: string) =>
      `warning: notify[${index}] of the job was not notified: ${why} [notice-undelivered]`
    expect(
      stderr
        .trim()
        .split("\n")
        .filter((line) => line.includes("was not notified"))
        .toSorted(),
    ).toEqual([
      warning(4, "it answered 500"),
      warning(5, "it redirects (302), which is not followed"),
      warning(6, "it did not answer within 5 seconds"),
      warning(7, "it cannot be reached"),
    ])
    expect(asked().toSorted()).toEqual([
      "POST /broken",
      "POST /broken",
      "POST /chat",
      "POST /hook-secret-9f?key=k1",
      "POST /moved",
      "POST /moved",
      "POST /ping-secret-3c/fail",
      "POST /ping-secret-3c/start",
      "POST /slow",
      "POST /slow",
    ])
    const [run_id = ""] = readdirSync(join(root, "many/runs"))
    const meaning =
      "the run has ended; some tasks need the customer or an engineer, and would fail again until then"
    const what_to_do =
      "People have to act before a command can finish the rest. After that, " +
      `\`nightjar rerun ${run_id} --output ${join(root, "many")}\` runs again what did not succeed. ` +
      "`nightjar status` and the run's report.html show the rest."
    const hash = sha256Hex(JSON.stringify([["TIMEOUT", "failed", "engineer", 1]])).slice(0, 12)
    const key = `nightjar/${run_id}/new_trouble/${hash}`
    const report = join(root, "many/runs", run_id, "report.html")
    const text = `${run_id} (new_trouble): exit code 3, ${meaning}.
2 tasks: 1 succeeded, 1 failed.
New: 1 TIMEOUT: action needed from an engineer.
1 TIMEOUT: action needed from an engineer.
${what_to_do}
Host: ${hostname()}
Report: ${report}
Key: ${key}`
    const trouble = {
      reason: "TIMEOUT",
      outcome: "failed",
      who_acts: "engineer",
      count: 1,
      what_to_do: "Raise `execution_timeout` or ask for fewer features, then rerun.",
    }
    const notice = {
      tool: "nightjar",
      events: ["new_trouble"],
      key,
      host: hostname(),
      job: "many",
      run_id,
      run_date: run_id.slice(5),
      exit_code: 3,
      message: null,
      meaning,
      tasks: 2,
      outcomes: { succeeded: 1, partial: 0, failed: 1, skipped: 0, unfinished: 0 },
      changes: null,
      new: [trouble],
      troubles: [trouble],
      open: null,
      report,
      what_to_do,
      text,
    }
    expect(notices()).toEqual([notice])
    expect(JSON.parse(received.find((one) => one.asked === "POST /chat")?.body ?? "")).toEqual({ text })
    expect(JSON.parse(readFileSync(join(root, "told.json"), "utf8"))).toEqual(notice)
    expect(received.filter(({ body }) => /customer-\d|pppp|sandbox-bank/.test(body))).toEqual([])
    const folder = join(root, "many")
    const written = readdirSync(folder, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => readFileSync(join(entry.parentPath, entry.name), "latin1"))
    const secrets = /hook-secret-9f|ping-secret-3c|dead-secret-77/
    expect([...written, stdout, stderr].filter((text) => secrets.test(text))).toEqual([])
  })

  it("hear that a run is late once its deadline has passed", async () => {
    received.length = 0
    // The run's clock is 2,000 times as fast as this machine's.
    const soon = new Date(Date.now() + 120 * 60_000).toISOString().slice(11, 16)
    const path = jobFile(
      "late",
      `  - { url: "env:GOOD", on: [late] }`,
      ["ok+queue-20000+run-5"],
      `timezone: UTC\ndeadline: "${soon}"\n`,
    )
    expect((await nightjar("run", path, "--output", "late")).status).toBe(4)
    expect(notices()).toMatchObject([
      { events: ["late"], job: "late", run_id: expect.stringMatching(/^late\./) as unknown, tasks: 1 },
    ])
    expect(String(notices()[0]?.["meaning"])).toMatch(new RegExp(`^the run has not ended by .*T${soon}:00`))
  })
})
