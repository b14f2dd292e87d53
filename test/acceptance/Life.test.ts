/**
 * Nights over time, as processes: killed and taken up, repeated, forced, rerun, found by the next night, overlapping,
 * refused, interrupted, two in one command. The fake counts every start, so that none is ever made twice.
 */
import {
  appendFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  statSync,
} from "node:fs"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import { setTimeout as wait } from "node:timers/promises"
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest"
import { ended, FakeService, html, profileOf, resultsBody, working } from "./FakeService.ts"
import type { Script } from "./FakeService.ts"
import { jobText, login, Workplace } from "./Nightjar.ts"
import type { Running } from "../harness/ProgramHere.ts"

// Processes on a busy machine take their time; how long is nothing that these checks judge.
vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 })

/** Nights that take long, or that differ little from others here. */
/** A check that takes too long for every day: it is only there where NIGHTJAR_ACCEPTANCE=all asks for it. */
const slowly = (title: string, check: () => Promise<void>, timeoutMs?: number) => {
  if (process.env["NIGHTJAR_ACCEPTANCE"] === "all") it(title, check, timeoutMs)
}

interface Scene {
  readonly fake: FakeService
  readonly place: Workplace
}
const scenes: Array<Scene> = []
const scene = async (
  customers: Readonly<Record<string, Script>>,
  parts: {
    readonly name?: string
    readonly rest?: string
    readonly secret?: string
    readonly extra?: string
    readonly concurrency?: string
  } = {},
): Promise<Scene> => {
  const made = { fake: await FakeService.listen(), place: new Workplace() }
  scenes.push(made)
  for (const [id, script] of Object.entries(customers)) made.fake.scripts.set(id, script)
  const lines = Object.keys(customers).map((id) => login(id))
  const { name = "life", extra = "", ...more } = parts
  made.place.write(
    "job.yaml",
    jobText(made.fake, { name, customers: `customers:\n${lines.join("\n")}\n${extra}`, ...more }),
  )
  return made
}
afterAll(async () => {
  for (const { fake, place } of scenes) {
    await fake.close()
    place.remove()
  }
})

/** Until a condition of the fake holds; the process may end first. */
const until = async (running: Running, condition: () => boolean) => {
  let over = false
  void running.ended.then(() => (over = true))
  while (!condition() && !over) await wait(20)
  return condition()
}

const failing = (code: string, reason: string, authentication_status = "not-performed"): Script => ({
  state: (execution) => ended(execution, code, reason, { authentication_status }),
})
const startsOf = ({ fake }: Scene) =>
  Object.fromEntries(
    [...fake.scripts.keys()].map((id) => [id, fake.startsOf(id).length]).filter(([, starts]) => starts !== 0),
  )
const runsOf = ({ place }: Scene) =>
  place.json("runs") as Promise<ReadonlyArray<Readonly<Record<string, unknown>>>>
/** Makes everything that the ledger knows this much older. */
const age = ({ place }: Scene, hours: number) => {
  const ledger = new DatabaseSync(join(place.output, "ledger.sqlite"))
  // Without its chain it is a ledger of an earlier version, which is chained as it is found.
  ledger.exec(`UPDATE facts SET at = at - ${hours * 3_600_000}, chain = NULL`)
  ledger.close()
}

describe.concurrent("a run that was killed", () => {
  const cut = async () => {
    let open = true
    const killed = await scene(
      {
        quick: {},
        slow: { state: (execution) => (open ? working(execution) : undefined) },
      },
      { rest: "" },
    )
    const first = killed.place.spawn(["run", "job.yaml"])
    const { fake } = killed
    const reached = await until(
      first,
      () => fake.calls("GET", "exec-slow").length > 1 && fake.calls("GET", "/results").length > 0,
    )
    first.kill("SIGKILL")
    await first.ended
    open = false
    return { ...killed, reached }
  }

  it("is resumed by `run`: nothing is started twice, everything is published and deleted", async () => {
    const killed = await cut()
    const { place, fake } = killed
    const again = await place.nightjar("run", "job.yaml")
    expect([killed.reached, again.code, startsOf(killed), fake.breaches]).toEqual([
      true,
      0,
      { quick: 1, slow: 1 },
      [],
    ])
    expect(fake.executions).toEqual([])
    expect(await place.rows("SELECT customer_id, outcome FROM ops.tasks ORDER BY 1")).toEqual([
      { customer_id: "quick", outcome: "succeeded" },
      { customer_id: "slow", outcome: "succeeded" },
    ])
    expect((await runsOf(killed)).length).toBe(1)
  })

  it("is collected first by a run 21 hours later, which then starts its own tasks", async () => {
    const killed = await cut()
    age(killed, 21)
    const { place, fake } = killed
    const again = await place.nightjar("run", "job.yaml")
    expect([again.code, startsOf(killed), fake.breaches]).toEqual([0, { quick: 2, slow: 2 }, []])
    const order = fake.seen.map(({ method, path }) => `${method} ${path}`)
    const collected = order.findIndex(
      (line) => line.includes("DELETE") && line.includes("exec-slow-fake-bank-website-1"),
    )
    const started = order.findLastIndex((line) => line.includes("POST"))
    expect(collected).toBeGreaterThan(0)
    expect(collected).toBeLessThan(started)
    expect(fake.executions).toEqual([])
    const runs = await runsOf(killed)
    expect(runs.map(({ leftovers }) => leftovers)).toEqual([false, false])
    expect(
      await place.rows(
        "SELECT count(DISTINCT run_id)::INT AS runs, count(*)::INT AS n FROM ops.tasks WHERE outcome = 'succeeded'",
      ),
    ).toEqual([{ runs: 2, n: 4 }])
  })

  slowly("is resumed by a run 19 hours later, whatever its date", async () => {
    const killed = await cut()
    age(killed, 19)
    const again = await killed.place.nightjar("run", "job.yaml")
    expect([again.code, startsOf(killed)]).toEqual([0, { quick: 1, slow: 1 }])
    expect((await runsOf(killed)).length).toBe(1)
  })
})

describe.concurrent("a finished run", () => {
  it("is a no-op when run again, and `--new` starts another run as `.2`", async () => {
    const done = await scene({ one: {}, bad: failing("FAILED", "FAILED") })
    const first = await done.place.nightjar("run", "job.yaml")
    const requests = done.fake.seen.length
    const second = await done.place.nightjar("run", "job.yaml")
    expect([first.code, second.code, done.fake.seen.length - requests]).toEqual([3, 3, 0])
    const forced = await done.place.nightjar("run", "job.yaml", "--new")
    expect([forced.code, startsOf(done)]).toEqual([3, { one: 2, bad: 2 }])
    const ids = (await runsOf(done)).map(({ run_id }) => String(run_id))
    expect(ids).toEqual([expect.stringMatching(/^life\.\d{4}-\d\d-\d\d$/), `${ids[0]}.2`])
    expect(await done.place.rows("SELECT DISTINCT run_id FROM ops.tasks ORDER BY ALL")).toEqual(
      ids.map((run_id) => ({ run_id })),
    )
  })

  it("with partial results is read again by the next run", async () => {
    let final = false
    const partial = await scene(
      {
        late: {
          results: ({ customer_id }) => resultsBody([profileOf(customer_id)], { is_closed: final }),
        },
      },
      { rest: "flow_results: { wait_final: 0 seconds }" },
    )
    const first = await partial.place.nightjar("run", "job.yaml")
    expect([first.code, partial.fake.executions.length]).toEqual([4, 1])
    expect(await partial.place.rows("SELECT count(*)::INT AS n FROM nights.customer_profiles")).toEqual([
      { n: 1 },
    ])
    final = true
    const second = await partial.place.nightjar("run", "job.yaml")
    expect([second.code, startsOf(partial), partial.fake.executions, partial.fake.breaches]).toEqual([
      0,
      { late: 1 },
      [],
      [],
    ])
    expect(await partial.place.rows("SELECT outcome, reason FROM ops.tasks")).toEqual([
      { outcome: "succeeded", reason: "COMPLETED" },
    ])
  })

  slowly("with a pending deletion exits 4, and the next run deletes without starting anything", async () => {
    let refuses = true
    const pending = await scene({ kept: { remove: () => (refuses ? { status: 409 } : undefined) } })
    const first = await pending.place.nightjar("run", "job.yaml")
    expect(first.code).toBe(4)
    expect(
      await pending.place.rows(
        "SELECT outcome, deleted_at FROM ops.deletions JOIN ops.executions USING (execution_id)",
      ),
    ).toEqual([{ outcome: "pending", deleted_at: null }])
    refuses = false
    const second = await pending.place.nightjar("run", "job.yaml")
    expect([second.code, startsOf(pending), pending.fake.executions]).toEqual([0, { kept: 1 }, []])
  })
})

describe("`rerun`", () => {
  let night: Scene
  let healed = false
  beforeAll(async () => {
    night = await scene({
      ok: {},
      slow: { state: (execution) => (healed ? undefined : ended(execution, "ABORTED", "TIMEOUT")) },
      bad: failing("FAILED", "FAILED"),
      half: failing("PARTIAL", "PARTIAL", "AUTH_OK"),
      locked: failing("AUTH_ERROR", "BLOCKED_USER", "BLOCKED_USER"),
    })
    expect((await night.place.nightjar("run", "job.yaml")).code).toBe(3)
  })

  const selected = async (...args: ReadonlyArray<string>) => {
    const rows = (await night.place.json("rerun", "--dry-run", ...args)) as ReadonlyArray<{
      customer_id: string
    }>
    return rows.map(({ customer_id }) => customer_id).toSorted()
  }

  it("`--dry-run` names what would be started with every flag, and starts nothing", async () => {
    const before = night.fake.starts.length
    const [all, failed, only, never, customer, engine, none] = await Promise.all([
      selected(),
      selected("--failed"),
      selected("--only", "TIMEOUT", "--only", "PARTIAL"),
      selected("--never", "BLOCKED_USER", "--never", "FAILED"),
      selected("--customer", "bad", "--customer", "slow"),
      selected("--engine", "fake-bank:website", "--failed", "--only", "FAILED"),
      selected("--customer", "ok"),
    ])
    expect({ all, failed, only, never, customer, engine, none }).toEqual({
      // Not `locked`: its login was rejected.
      all: ["bad", "half", "slow"],
      failed: ["bad", "slow"],
      only: ["half", "slow"],
      never: ["half", "slow"],
      customer: ["bad", "slow"],
      engine: ["bad"],
      none: [],
    })
    const locked = await night.place.nightjar("rerun", "--dry-run", "--customer", "locked")
    expect([locked.code, locked.stdout.split("\n").slice(0, 3)]).toEqual([
      0,
      [
        expect.stringMatching(/^0 tasks of life\S* would run again; 1 of the selected would not\.$/),
        "Would not run again:",
        expect.stringMatching(
          /^locked fake-bank:website: failed, BLOCKED_USER \(customer\): the source rejected/,
        ),
      ],
    ])
    expect(night.fake.starts.length - before).toBe(0)
  })

  it("runs exactly that as `.2`, with its parent, and later commands refer to it", async () => {
    healed = true
    const again = await night.place.nightjar("rerun", "--only", "TIMEOUT")
    expect([again.code, startsOf(night)]).toEqual([0, { ok: 1, slow: 2, bad: 1, half: 1, locked: 1 }])
    const runs = await runsOf(night)
    expect(runs[1]).toMatchObject({ run_id: `${String(runs[0]?.["run_id"])}.2`, parent: runs[0]?.["run_id"] })
    expect(await night.place.json("status")).toMatchObject({ run_id: runs[1]?.["run_id"] })
    const status = await night.place.nightjar("status", String(runs[0]?.["run_id"]))
    expect([status.code, status.stdout.includes("BLOCKED_USER")]).toEqual([0, true])
  })

  it("and the run before it have reports with engines and coverage from the published tables", async () => {
    const { place } = night
    const pages = (await runsOf(night)).map(({ run_id }) =>
      readFileSync(join(place.output, "runs", String(run_id), "report.html"), "utf8"),
    )
    expect(pages.length).toBeGreaterThan(1)
    for (const page of pages) {
      expect(page).not.toContain("could not be read")
      expect(page.split("Engines over the last runs").at(-1)).toContain("fake-bank:website")
    }
  })

  it("says where the job file was if it was moved, and takes it from where it is", async () => {
    const { place } = night
    const first = String((await runsOf(night))[0]?.["run_id"])
    const [before, now] = ["job.yaml", "moved.yaml"].map((name) => join(place.folder, name))
    renameSync(before ?? "", now ?? "")
    try {
      const half = ["rerun", first, "--customer", "half"]
      const gone = await place.nightjar(...half)
      expect([gone.code, gone.stderr]).toEqual([
        2,
        `nightjar: job.yaml, the job file of ${first}, does not exist [job-file-gone]\nNothing was started. Give ` +
          "--job FILE: where it is now. A path that is not absolute is relative to the current folder.\n",
      ])
      expect((await place.nightjar(...half, "--job", "moved.yaml")).code).toBe(3)
      expect(startsOf(night)["half"]).toBe(2)
    } finally {
      renameSync(now ?? "", before ?? "")
    }
  })

  it("never sends a rejected login again unchanged, even on request", async () => {
    const first = String((await runsOf(night))[0]?.["run_id"])
    const refused = await night.place.nightjar("rerun", first, "--customer", "locked")
    expect([refused.code, night.fake.startsOf("locked").length]).toEqual([3, 1])
    expect(await night.place.json("status")).toMatchObject({
      tasks: [{ outcome: "failed", reason: "BLOCKED_USER", who_acts: "customer", attempts: 0 }],
    })
  })

  slowly("sends it again once it is changed or released", async () => {
    const first = String((await runsOf(night))[0]?.["run_id"])
    const changed = await night.place.start(["rerun", first, "--customer", "locked"], {
      LOGIN_PASSWORD: "another horse",
    }).ended
    expect([changed.code, night.fake.startsOf("locked").length]).toEqual([3, 2])
    const list = (await night.place.json("credentials", "list")) as ReadonlyArray<{ fingerprint: string }>
    expect(list.length).toBe(2)
    for (const { fingerprint } of list)
      expect((await night.place.nightjar("credentials", "release", fingerprint)).code).toBe(0)
    await night.place.nightjar("rerun", first, "--customer", "locked")
    expect(night.fake.startsOf("locked").length).toBe(3)
  })
})

describe.concurrent("one output folder", () => {
  it("serves one process: a second one exits 5 without a request; an interrupt saves the state, and `run` resumes", async () => {
    let open = true
    const shared = await scene(
      { slow: { state: (execution) => (open ? working(execution) : undefined) } },
      { rest: "" },
    )
    const first = shared.place.start(["run", "job.yaml"])
    expect(await until(first, () => shared.fake.calls("GET", "exec-slow").length > 0)).toBe(true)
    const posts = () => shared.fake.calls("POST", "").length
    const second = await shared.place.nightjar("run", "job.yaml")
    expect([second.code, posts()]).toEqual([5, 1])
    first.kill("SIGTERM")
    expect((await first.ended).code).toBe(143)
    const third = shared.place.start(["run", "job.yaml"])
    const reads = shared.fake.calls("GET", "exec-slow").length
    await until(third, () => shared.fake.calls("GET", "exec-slow").length > reads)
    third.kill("SIGINT")
    expect((await third.ended).code).toBe(130)
    open = false
    expect([(await shared.place.nightjar("run", "job.yaml")).code, posts()]).toEqual([0, 1])
  })
})

describe.concurrent("a service that cannot be used", () => {
  slowly("exits 6 if it forbids the secret; nothing is started, and no secret is shown", async () => {
    const refusing = await scene({ one: {} })
    refusing.fake.listReply = { status: 403, body: { detail: "no" } }
    const { code, stderr } = await refusing.place.nightjar("run", "job.yaml")
    expect([code, refusing.fake.starts]).toEqual([6, []])
    expect(stderr).not.toContain("fake-secret-1")
  })

  it("exits 6 if the secret is wrong or nothing listens", async () => {
    const wrong = await scene({ one: {} })
    const { code } = await wrong.place.start(["run", "job.yaml"], { FAKE_SECRET: "not it" }).ended
    expect([code, wrong.fake.starts]).toEqual([6, []])
    await wrong.fake.close()
    expect((await wrong.place.nightjar("run", "job.yaml")).code).toBe(6)
  })

  it("exits 2 before any request if the secret's reference cannot be resolved", async () => {
    const unset = await scene({ one: {} }, { secret: "env:NOT_SET" })
    const { code, stderr } = await unset.place.nightjar("run", "job.yaml")
    expect([code, unset.fake.seen, stderr.includes("NOT_SET")]).toEqual([2, [], true])
  })

  it("never follows a redirect with the secret, and sends it only to the configured origins", async () => {
    const heard: Array<string> = []
    const elsewhere = createServer((request, response) => {
      heard.push(`${request.method} ${request.url}`)
      response.end("[]")
    })
    await new Promise<void>((resolve) => elsewhere.listen(0, "127.0.0.1", resolve))
    const location = `http://127.0.0.1:${(elsewhere.address() as AddressInfo).port}/api`
    const redirected = await scene({ one: {} })
    redirected.fake.listReply = { status: 302, headers: { location } }
    const { code } = await redirected.place.nightjar("run", "job.yaml")
    expect([code, heard, redirected.fake.starts]).toEqual([6, [], []])
    await new Promise((resolve) => elsewhere.close(resolve))
  })
})

describe.concurrent("several jobs in one command", () => {
  it("each has its own run; 4 takes precedence over 3; a broken file stops them all before anything starts", async () => {
    const both = await scene({ bad: failing("FAILED", "FAILED") }, { name: "first" })
    const { fake, place } = both
    fake.scripts.set("away", { start: () => ({ status: 503 }) })
    const rest =
      "execution: { max_wait: 1 second }\nretry: { max_attempts: 1, base: 100 millis, max: 200 millis }"
    place.write(
      "second.yaml",
      jobText(fake, { name: "second", customers: `customers:\n${login("away")}\n`, rest }),
    )
    place.write("broken.yaml", "name: Third!\n")
    const broken = await place.nightjar("run", "job.yaml", "second.yaml", "broken.yaml")
    expect([broken.code, fake.seen]).toEqual([2, []])
    const ran = await place.nightjar("run", "job.yaml", "second.yaml")
    expect(ran.code).toBe(4)
    expect(await place.rows("SELECT job, exit_code::INT AS code FROM ops.runs ORDER BY job")).toEqual([
      { job: "first", code: 3 },
      { job: "second", code: 4 },
    ])
  })
})

describe.concurrent("a job's settings", () => {
  it("`after_export: keep` deletes nothing and still succeeds; `share: group` opens the published part", async () => {
    const slow: Script = { state: (execution) => (execution.looks < 2 ? working(execution) : undefined) }
    const kept = await scene(
      { one: slow, two: slow, three: slow, four: slow, five: {} },
      {
        concurrency: "{ max_in_flight: 3, per_engine: 2 }",
        extra: "after_export: keep\noutput: { share: group }\n",
      },
    )
    const { code } = await kept.place.nightjar("run", "job.yaml")
    expect([code, kept.fake.calls("DELETE", "").length, kept.fake.executions.length]).toEqual([0, 0, 5])
    expect(kept.fake.mostOpen).toBe(2)
    const { output } = kept.place
    const mode = (path: string) => (statSync(join(output, path)).mode & 0o777).toString(8)
    expect(["", "nightjar.duckdb", "tables", "tables/tasks"].map(mode)).toEqual(["750", "640", "750", "750"])
    expect(["ledger.sqlite", "landing"].map(mode)).toEqual(["600", "700"])
    const parquet = readdirSync(join(output, "tables"), { recursive: true, encoding: "utf8" }).filter(
      (path) => path.endsWith(".parquet"),
    )
    expect([...new Set(parquet.map((path) => mode(`tables/${path}`)))]).toEqual(["640"])
  })

  it("a job with only sessions reads them, executes nothing, and names no engine", async () => {
    const sessions = await scene({}, { name: "sessions" })
    const { fake, place } = sessions
    const ids = ["65f0c0ffee65f0c0ffee65f0", "65e000000000000000000000", "65f0c0ffee65f0c0ffee65f2"] as const
    fake.loneSessions.set(ids[0], () => resultsBody([profileOf("c-7")]))
    fake.loneSessions.set(ids[1], (read) => resultsBody([], { is_closed: read > 1 }))
    place.write(
      "job.yaml",
      jobText(fake, {
        name: "sessions",
        engines: "[]",
        customers: `sessions:\n  - { id: ${ids[0]}, customer: c-0007 }\n  - ${ids[1]}\n  - ${ids[2]}\n`,
        rest: "",
      }).replace("engines: []\n", ""),
    )
    const { code } = await place.nightjar("run", "job.yaml")
    const [run] = await runsOf(sessions)
    expect([code, fake.starts, fake.breaches]).toEqual([3, [], []])
    const prefix = `${String(run?.["run_id"])}/session/`
    expect(
      await place.rows(
        "SELECT task_id, customer_id, engine_reference, outcome FROM ops.tasks ORDER BY task_id",
      ),
    ).toEqual([
      { task_id: prefix + ids[1], customer_id: null, engine_reference: null, outcome: "succeeded" },
      { task_id: prefix + ids[0], customer_id: "c-0007", engine_reference: null, outcome: "succeeded" },
      { task_id: prefix + ids[2], customer_id: null, engine_reference: null, outcome: "failed" },
    ])
    expect(
      await place.rows(
        "SELECT customer_id, engine_reference, execution_id, session_id FROM nights.customer_profiles",
      ),
    ).toEqual([{ customer_id: "c-0007", engine_reference: null, execution_id: null, session_id: ids[0] }])
    fake.loneSessions.set(ids[2], () => resultsBody([]))
    const again = await place.nightjar("rerun")
    expect([again.code, fake.sessionReads.get(ids[0])?.length, fake.breaches]).toEqual([0, 1, []])
    expect(await place.json("status")).toMatchObject({
      run_id: `${String(run?.["run_id"])}.2`,
      tasks: [{ session_id: ids[2], outcome: "succeeded" }],
    })
  })

  slowly(
    "a deadline ends the run: open executions are aborted, waiting ones are not started",
    async () => {
      const at = new Date(Date.now() + 90_000)
      const time = `${String(at.getHours()).padStart(2, "0")}:${String(at.getMinutes()).padStart(2, "0")}`
      const late = await scene(
        { open: { state: (execution) => working(execution) }, waiting: { start: () => ({ status: 503 }) } },
        { rest: `deadline: "${time}"` },
      )
      const { code } = await late.place.nightjar("run", "job.yaml")
      expect([code, late.fake.executions]).toEqual([4, []])
      expect(
        await late.place.rows("SELECT customer_id, outcome, reason, who_acts FROM ops.tasks ORDER BY 1"),
      ).toEqual([
        { customer_id: "open", outcome: "unfinished", reason: "CLIENT_CANCELLED", who_acts: "service" },
        { customer_id: "waiting", outcome: "unfinished", reason: expect.any(String), who_acts: "service" },
      ])
    },
    120_000,
  )

  slowly(
    "an HTML page instead of the catalogue is exit 6, and instead of an engine not a defect",
    async () => {
      const odd = await scene({ one: {} })
      odd.fake.listReply = { ...html, status: 200 }
      expect((await odd.place.nightjar("run", "job.yaml")).code).toBe(6)
    },
  )
})

describe.concurrent("a night whose tables a gate holds back", () => {
  it("deletes nothing, keeps yesterday current, exits 3 and says why; `accept` lets it through [gate accept]", async () => {
    const gated = await scene({ one: {} }, { extra: "gates: { tests: ./tests }\n" })
    const { fake, place } = gated
    const notify = `notify: [{ command: [sh, -c, "cat >> ${place.folder}/told.json"], on: [failed, recovered] }]\n`
    appendFileSync(join(place.folder, "job.yaml"), notify)
    mkdirSync(join(place.folder, "tests"))
    place.write("tests/nobody_fails.sql", "SELECT 1 WHERE false")
    expect((await place.nightjar("run", "job.yaml")).code).toBe(0)
    const before = await place.rows("SELECT run_id FROM ops.runs")
    place.write("tests/nobody_fails.sql", "SELECT * FROM ops.runs WHERE parent IS NULL; -- anything\n")
    const unread = await place.nightjar("run", "job.yaml", "--new")
    expect(unread.stdout).toContain("the gate tests/nobody_fails.sql did not pass: it could not be asked")
    place.write("tests/nobody_fails.sql", "SELECT * FROM ops.tasks\n")
    const held = await place.nightjar("run", "job.yaml", "--new")
    const [, , run] = await runsOf(gated)
    const run_id = String(run?.["run_id"])
    expect([unread.code, held.code, run?.["exit_code"]]).toEqual([3, 3, 3])
    expect(held.stdout).toContain("the gate tests/nobody_fails.sql did not pass: 3 rows; expected: no rows")
    expect(held.stdout).toContain(
      "Exit code 3: the run has ended; a gate holds back its tables, and `nightjar accept` publishes them.",
    )
    expect(await place.rows("SELECT run_id FROM ops.runs")).toEqual(before)
    expect(fake.executions.length).toBe(2)
    const summary = join(place.output, "runs", run_id, "summary.json")
    const read = () => JSON.parse(readFileSync(summary, "utf8")) as Readonly<Record<string, unknown>>
    expect(read()["held"]).toEqual({
      database: `published/held/${run_id}.duckdb`,
      gates: [{ gate: "tests/nobody_fails.sql", expected: "no rows", found: "3 rows" }],
    })
    expect(readFileSync(join(place.output, "runs", run_id, "report.html"), "utf8")).toContain("did not pass")
    const again = await place.nightjar("run", "job.yaml")
    expect([again.code, fake.executions.length]).toEqual([3, 2])
    const accepted = await place.nightjar("accept")
    expect([accepted.code, accepted.stderr.includes("nightjar:"), fake.executions]).toEqual([0, false, []])
    const told = readFileSync(join(place.folder, "told.json"), "utf8")
    const notices = told
      .split(/(?<=\})(?=\{"tool")|\n/)
      .flatMap((text) => (text === "" ? [] : [JSON.parse(text)]))
    expect(notices.map(({ events, exit_code, what_to_do }) => [events, exit_code, what_to_do])).toEqual([
      [["failed"], 3, expect.stringContaining("`nightjar accept life.")],
      [["failed"], 3, expect.stringContaining(`\`nightjar accept ${run_id}`)],
      [["recovered"], 0, "Nothing to do."],
    ])
    expect((await place.rows("SELECT run_id FROM ops.runs WHERE ended_at IS NOT NULL")).length).toBe(3)
    expect(read()["held"]).toBe(undefined)
    expect((await place.nightjar("accept")).stdout).toBe("No gate holds a run back: nothing to accept.\n")
    expect((await place.nightjar("accept", run_id)).code).toBe(2)
    expect(await place.nightjar("verify")).toMatchObject({ code: 0 })
  })

  it("killed at any moment around the gate, is resumed and held back once more", async () => {
    const gated = await scene({ one: {} }, { extra: "gates: { tests: ./tests }\n" })
    const { fake, place } = gated
    mkdirSync(join(place.folder, "tests"))
    place.write("tests/never.sql", "SELECT 1")
    const first = place.spawn(["run", "job.yaml"])
    await until(first, () => existsSync(join(place.output, "published/held")))
    first.kill("SIGKILL")
    await first.ended
    const again = await place.nightjar("run", "job.yaml")
    expect([again.code, startsOf(gated), fake.executions.length]).toEqual([3, { one: 1 }, 1])
    const accepting = place.spawn(["accept"])
    await until(accepting, () => existsSync(join(place.output, "nightjar.duckdb")))
    accepting.kill("SIGKILL")
    await accepting.ended
    const ended = await place.nightjar("accept")
    expect([ended.code, fake.executions]).toEqual([0, []])
    expect(await place.rows("SELECT outcome FROM ops.tasks")).toEqual([{ outcome: "succeeded" }])
  })
})
