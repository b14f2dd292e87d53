/**
 * Nights that follow each other, from the command line to the tables: rerun, two in one command, held back by
 * a gate. Kills, signals, locks and what is left after each are in `badnights`, `cli/Processes` and `faults`.
 */
import { appendFileSync, mkdirSync, readFileSync, renameSync } from "node:fs"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest"
import { ended, FakeService, type Script } from "./FakeService.ts"
import { jobText, login, Workplace } from "./Nightjar.ts"

// Processes on a busy machine take their time; how long is nothing that these checks judge.
vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 })

interface Scene {
  readonly fake: FakeService
  readonly place: Workplace
}
const scenes: Array<Scene> = []
const scene = async (
  customers: Readonly<Record<string, Script>>,
  { name = "life", extra = "" }: { readonly name?: string; readonly extra?: string } = {},
): Promise<Scene> => {
  const made = { fake: await FakeService.listen(), place: new Workplace() }
  scenes.push(made)
  for (const [id, script] of Object.entries(customers)) made.fake.scripts.set(id, script)
  const lines = Object.keys(customers).map((id) => login(id))
  made.place.write(
    "job.yaml",
    jobText(made.fake, { name, customers: `customers:\n${lines.join("\n")}\n${extra}` }),
  )
  return made
}
afterAll(async () => {
  for (const { fake, place } of scenes) {
    await fake.close()
    place.remove()
  }
})

const failing = (code: string, reason: string, authentication_status = "not-performed"): Script => ({
  state: (execution) => ended(execution, code, reason, { authentication_status }),
})
const startsOf = ({ fake }: Scene) =>
  Object.fromEntries(
    [...fake.scripts.keys()].map((id) => [id, fake.startsOf(id).length]).filter(([, starts]) => starts !== 0),
  )
const runsOf = ({ place }: Scene) =>
  place.json("runs") as Promise<ReadonlyArray<Readonly<Record<string, unknown>>>>

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

  it("`--dry-run` names what would be started with the flags, and starts nothing", async () => {
    const before = night.fake.starts.length
    const flags =
      "--never BLOCKED_USER --never FAILED --engine fake-bank:website --customer slow --customer bad"
    expect(await night.place.json("rerun", "--dry-run", ...flags.split(" "))).toMatchObject([
      { customer_id: "slow" },
    ])
    expect((await night.place.nightjar("rerun", "--dry-run", "--engine", "fake-tax:website")).code).toBe(2)
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
    const ran = await place.nightjar("run", "job.yaml", "second.yaml", "./job.yaml")
    expect(ran.code).toBe(4)
    expect(ran.stderr).toContain("warning: the job file job.yaml is given more than once [job-given-twice]\n")
    expect(ran.stderr).toContain("Side by side: first, second.\n")
    expect(await place.rows("SELECT job, exit_code::INT AS code FROM ops.runs ORDER BY job")).toEqual([
      { job: "first", code: 3 },
      { job: "second", code: 4 },
    ])
  })
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
    place.write("tests/nobody_fails.sql", "SELECT * FROM ops.tasks\n")
    const held = await place.nightjar("run", "job.yaml", "--new")
    const [, run] = await runsOf(gated)
    const run_id = String(run?.["run_id"])
    expect([held.code, run?.["exit_code"]]).toEqual([3, 3])
    expect(held.stdout).toContain("the gate tests/nobody_fails.sql did not pass: 2 rows; expected: no rows")
    expect(held.stdout).toContain(
      "Exit code 3: the run has ended; a gate holds back its tables, and `nightjar accept` publishes them.",
    )
    expect(await place.rows("SELECT run_id FROM ops.runs")).toEqual(before)
    expect(fake.executions.length).toBe(1)
    const summary = join(place.output, "runs", run_id, "summary.json")
    const read = () => JSON.parse(readFileSync(summary, "utf8")) as Readonly<Record<string, unknown>>
    expect(read()["held"]).toEqual({
      database: `published/held/${run_id}.duckdb`,
      gates: [{ gate: "tests/nobody_fails.sql", expected: "no rows", found: "2 rows" }],
    })
    expect(readFileSync(join(place.output, "runs", run_id, "report.html"), "utf8")).toContain("did not pass")
    const again = await place.nightjar("run", "job.yaml")
    expect([again.code, fake.executions.length]).toEqual([3, 1])
    const accepted = await place.nightjar("accept")
    expect([accepted.code, accepted.stderr.includes("nightjar:"), fake.executions]).toEqual([0, false, []])
    const told = readFileSync(join(place.folder, "told.json"), "utf8")
    const notices = told
      .split(/(?<=\})(?=\{"tool")|\n/)
      .flatMap((text) => (text === "" ? [] : [JSON.parse(text)]))
    expect(notices.map(({ events, exit_code, what_to_do }) => [events, exit_code, what_to_do])).toEqual([
      [["failed"], 3, expect.stringContaining(`\`nightjar accept ${run_id}`)],
      [["recovered"], 0, "Nothing to do."],
    ])
    expect((await place.rows("SELECT run_id FROM ops.runs WHERE ended_at IS NOT NULL")).length).toBe(2)
    expect(read()["held"]).toBe(undefined)
    expect((await place.nightjar("accept")).stdout).toBe("No gate holds a run back: nothing to accept.\n")
    expect((await place.nightjar("accept", "--json")).stdout).toBe("null\n")
    expect((await place.nightjar("accept", run_id)).code).toBe(2)
    expect(await place.nightjar("verify")).toMatchObject({ code: 0 })
  })
})
