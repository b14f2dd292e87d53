/** What others are told of a run: in words that name nobody, and by the whole program to a real server. */
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { readdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import { eventsOf, noticeOf } from "../../src/report/Notice.ts"
import type { News } from "../../src/report/Changes.ts"
import { summarise } from "../../src/report/Summary.ts"
import { ending, news, planned, run_id, runOf, settled } from "./Samples.ts"
import { plainEnvironment } from "../harness/Environment.ts"
import { sharedFolder } from "../harness/Folder.ts"
import { startHere } from "../harness/ProgramHere.ts"

const root = sharedFolder()
const origin = { host: "etl-1", job: "nightly", run_date: "2026-11-21" }

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
    const fresh = ["MARIA_GARCIA_BLOCKED", "MARIA_LOCKED"].map((reason): News => ({
      ...news(reason, "failed"),
      who_acts: "engineer",
    }))
    const one = ending(3, { summary, news: fresh })
    const notice = noticeOf(eventsOf(one), one, origin)
    expect(notice.events).toEqual(["new_trouble"])
    expect(notice.new).toEqual(notice.troubles)
    expect(notice.troubles).toEqual([
      {
        reason: "UNLISTED",
        outcome: "failed",
        who_acts: "engineer",
        count: 2,
        what_to_do:
          "Find out what it means. If `nightjar credentials list` names the login, `release` allows it again.",
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
      return noticeOf(["failed"], ending(4, { summary }), origin).what_to_do
    }
    const rest = "`nightjar status` and the run's report.html show the rest."
    expect([told("DEADLINE_REACHED"), told("MARIA_LOCKED")]).toEqual([
      "This command collects what is still at the service and runs again what did not finish:\n" +
        `  nightjar rerun ${run_id} --only DEADLINE_REACHED\n${rest}`,
      rest,
    ])
  })
})

describe("the key of a notice", () => {
  const keyOf = (exit_code: number, run_date: string, ...fresh: ReadonlyArray<News>) => {
    const one = ending(exit_code, { news: fresh })
    return noticeOf(eventsOf(one), one, { ...origin, run_date }).key
  }

  it("is the same for the same night, events and new trouble, and for nothing else", () => {
    expect(keyOf(6, "2026-11-21")).toBe("nightjar/nightly.2026-11-21/failed")
    expect(keyOf(6, "2026-11-22")).toBe("nightjar/nightly.2026-11-22/failed")
    const [one, more] = [news("TIMEOUT", "failed"), news("TIMEOUT", "failed", 2)]
    const [key, ...others] = [
      keyOf(3, "2026-11-21", one),
      keyOf(3, "2026-11-21", more),
      keyOf(3, "2026-11-22", one),
      keyOf(4, "2026-11-21", one),
      keyOf(3, "2026-11-21", news("BLOCKED_USER", "failed")),
    ]
    expect(keyOf(3, "2026-11-21", one)).toBe(key)
    expect(key).toMatch(/^nightjar\/nightly\.2026-11-21\/new_trouble\/[0-9a-f]{12}$/)
    expect(new Set([key, ...others]).size).toBe(5)
  })
})

it("the text of a notice names no more than ten reasons and has no control character, whatever the service invents", () => {
  const words = ["TIMEOUT", "FAILED", "BLOCKED_USER", "CAPTCHA", "INCORRECT_CREDENTIALS", "PARTIAL"]
  const outcomes = ["failed", "partial", "skipped"] as const
  const fresh = [
    ...outcomes.flatMap((outcome) => words.map((word) => news(word, outcome))),
    ...Array.from({ length: 5_000 }, (_, index) => news(`\u001b[2J\nMARIA_${index}`, "failed")),
  ]
  const one = ending(3, { news: fresh })
  const place = { ...origin, host: "etl\n-1\u001b", report: "/data/\u001b[2J\nKey: forged" }
  const { text, new: reasons } = noticeOf(eventsOf(one), one, place)
  const told = reasons.find(({ reason }) => reason === "UNLISTED")
  expect({ ...told, what_to_do: "" }).toEqual({
    reason: "UNLISTED",
    outcome: "failed",
    who_acts: "customer",
    count: told?.count,
    what_to_do: "",
  })
  expect(told?.count).toBeGreaterThanOrEqual(5_000)
  expect(reasons.length).toBeLessThanOrEqual(19)
  const lines = text.split("\n")
  expect(lines.filter((line) => line.startsWith("New: ")).length).toBe(10)
  expect(lines.slice(-3)).toEqual([
    "Host: etl?-1?",
    "Report: /data/?[2J?Key: forged",
    expect.stringMatching(/^Key: nightjar\/nightly\.2026-11-21\/new_trouble\/[0-9a-f]{12}$/) as unknown,
  ])
  expect(/MARIA|[^\P{Cc}\n]/u.test(text)).toBe(false)
})

it("receivers of a run hear when it begins, that it is late, and how it ended; their addresses are kept nowhere", async () => {
  const received: Array<{ readonly asked: string; readonly body: string }> = []
  const server = createServer((request, response) => {
    let body = ""
    request.on("data", (chunk) => (body += String(chunk)))
    request.on("end", () => {
      received.push({ asked: `${request.method} ${request.url}`, body })
      response.end("noted")
    })
  })
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done))
  const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  // The run's clock is 2,000 times as fast as this machine's.
  const soon = new Date(Date.now() + 120 * 60_000).toISOString().slice(11, 16)
  writeFileSync(
    join(root, "late.yaml"),
    `name: late
service: { sandbox: { seed: 3, speed: 2000 } }
engines: [sandbox-bank:website]
record_schemas: []
timezone: UTC
deadline: "${soon}"
notify: [{ url: env:GOOD }, { ping: env:WATCHDOG }]
customers: [{ id: customer-0, parameters: { username: ok+queue-20000+run-5, password: env:PASSWORD } }]
`,
  )
  const GOOD = `${base}/hook-secret-9f?key=k1`
  const environment = { ...plainEnvironment, GOOD, WATCHDOG: `${base}/ping-secret-3c`, PASSWORD: "pppp" }
  const args = ["run", "late.yaml", "--output", "late", "--no-progress"]
  const { code, stdout, stderr } = await startHere(args, { folder: root, environment }).ended
  server.closeAllConnections()
  server.close()
  expect([code, stderr]).toEqual([4, ""])
  const [run_id = ""] = readdirSync(join(root, "late/runs"))
  const told = received.flatMap(({ asked, body }) =>
    asked.endsWith("?key=k1") ? [JSON.parse(body) as unknown] : [asked],
  )
  expect(told).toMatchObject([
    "POST /ping-secret-3c/start",
    { events: ["late"], run_id, tasks: 1, meaning: expect.stringContaining(`T${soon}:00`) as unknown },
    ...told.slice(2),
  ])
  expect(told.slice(2)).toContain("POST /ping-secret-3c/fail")
  const report = join(root, "late/runs", run_id, "report.html")
  expect(told.slice(2)).toContainEqual(expect.objectContaining({ events: ["failed"], exit_code: 4, report }))
  expect(told).toHaveLength(4)
  expect(received.filter(({ body }) => /customer-\d|pppp/.test(body))).toEqual([])
  const written = readdirSync(join(root, "late"), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => readFileSync(join(entry.parentPath, entry.name), "latin1"))
  expect([...written, stdout].filter((text) => /hook-secret-9f|ping-secret-3c/.test(text))).toEqual([])
})
