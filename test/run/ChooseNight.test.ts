/** Which run `run` begins or resumes, what a further one is limited to, and when nothing may begin at all. */
import { describe, expect } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { serviceNameOf, type Job } from "../../src/jobs/Job.ts"
import type { Fact } from "../../src/ledger/Fact.ts"
import { Ledger } from "../../src/ledger/Ledger.ts"
import { chooseNight } from "../../src/run/ChooseNight.ts"
import { anId } from "../harness/Id.ts"
import { customer, jobOf } from "../harness/SmallNights.ts"
import { factsOf, idOf, type Told } from "../ledger/ToldRuns.ts"
import { effect } from "../harness/Steps.ts"

const hour = 60 * 60_000
/** The runs of a test begin here, each a minute after the one before. */
const begunAt = Date.UTC(2026, 10, 21, 2)

const jobFor = (...ids: ReadonlyArray<string>): Job => ({
  ...jobOf(ids.map((id) => ({ ...customer(id, "run-1"), engine_reference: anId("bank") }))),
  name: "job",
})
const two = jobFor("c-1", "c-2")

interface Asked {
  readonly job?: Job
  /** After the newest run began. */
  readonly hours?: number
  readonly further?: boolean
  readonly parent?: string
  readonly only?: ReadonlySet<string>
  /** Written after all runs. */
  readonly more?: ReadonlyArray<Fact>
}

/** Number and story of each run, oldest first; one of a part of the job says so. */
type Runs = ReadonlyArray<readonly [number, Told & { readonly part?: string }]>

const choose = (runs: Runs, { job = two, hours = 1, further = false, parent, only, more = [] }: Asked = {}) =>
  Effect.gen(function* () {
    const ledger = yield* Ledger
    yield* TestClock.setTime(begunAt)
    for (const [number, told] of runs) {
      yield* TestClock.adjust(60_000)
      const { part } = told
      const ofPart = part === undefined ? {} : { part }
      yield* ledger.append(
        factsOf(number, told).map((fact) => (fact._tag === "RunStarted" ? { ...fact, ...ofPart } : fact)),
      )
    }
    if (more.length > 0) yield* ledger.append(more)
    yield* TestClock.adjust(hours * hour)
    const choice = yield* chooseNight(job, { further, parent, only })
    // Which features each of them is asked for is tried where a publication told what it delivered.
    return { ...choice, only: choice.only === undefined ? undefined : new Set(choice.only.keys()) }
  }).pipe(Effect.provide(Ledger.layer({ path: ":memory:" })))

const succeeded: Told = { tasks: { "c-1": "succeeded", "c-2": "succeeded" }, exit_code: 0 }
const unfinished: Told = { tasks: { "c-1": "succeeded", "c-2": "unfinished" }, exit_code: 4 }
const on = (run_date: string, told: Told): Told => ({ ...told, run_date })
const chosen = (_tag: "New" | "Resume" | "NothingToDo", run_id: string, run_date = "2026-11-21") => ({
  run_date,
  chosen: { _tag, run_id },
  collect: [],
  parent: undefined,
  only: undefined,
  missed: [],
})

describe("a job that replaces another", () => {
  const replacing: Job = { ...two, replaces: ["other"] }
  const here = serviceNameOf(replacing.service)
  const other = (number: number, service: string | undefined) => {
    const run_id = anId(`other.2026-11-${number}`)
    const begun = { _tag: "RunStarted", run_id, job: "other", job_path: "o", tool_version: "0" } as const
    const at = service === undefined ? {} : { service }
    return { ...begun, run_date: `2026-11-${number}`, ...at } satisfies Fact
  }
  const there = "https://other.example"

  effect("begins nothing where that was last run at another service [run replaced elsewhere]", function* () {
    const elsewhere = choose([], { job: replacing, more: [other(18, here), other(19, there)] })
    expect(yield* Effect.flip(elsewhere)).toMatchObject({
      _tag: "ReplacedElsewhere",
      job: "other",
      run_id: "other.2026-11-19",
      there,
      here,
    })
    for (const last of [here, undefined]) {
      const more = [other(18, there), other(19, last)]
      expect((yield* choose([], { job: replacing, more })).chosen._tag).toBe("New")
    }
    expect((yield* choose([], { job: two, more: [other(19, there)] })).chosen._tag).toBe("New")
  })
})

describe("the rest of a night whose newest run is a rerun", () => {
  const rerun: Told = { tasks: { "c-1": "succeeded" }, exit_code: 0, parent: idOf(1) }
  const night: Runs = [
    [1, unfinished],
    [2, rerun],
  ]
  const rest = (run_id: string, parent: string, ...only: ReadonlyArray<string>) => ({
    ...chosen("New", run_id),
    parent,
    only: new Set(only),
  })

  effect("is a further run of what none of its runs has finished [run rest of the night]", function* () {
    const night: Runs = [
      [1, { tasks: { "c-1": "failed", "c-2": "unfinished", "c-3": undefined, gone: "unfinished" } }],
      [2, rerun],
      [4, { job: "other", tasks: { "c-1": "unfinished" }, exit_code: 4 }],
    ]
    const job = jobFor("c-1", "c-2", "c-3")
    expect(yield* choose(night, { job })).toEqual({
      ...rest(idOf(3), idOf(2), "c-2/bank", "c-3/bank"),
      collect: [idOf(1)],
    })
  })

  effect("is a run of the rerun's own night, also where the next date has begun", function* () {
    expect(yield* choose(night, { hours: 19.5 })).toEqual(rest(idOf(3), idOf(2), "c-2/bank"))
    // There it is past midnight by then.
    const late = { ...two, timezone: "Asia/Tokyo" }
    expect(yield* choose(night, { hours: 15, job: late })).toEqual(rest(idOf(3), idOf(2), "c-2/bank"))
  })

  effect("is over with the night: the next one begins instead [promise 16 rest]", function* () {
    const next = chosen("New", idOf(1, "2026-11-22"), "2026-11-22")
    expect(yield* choose(night, { hours: 23 })).toEqual(next)
    // Twenty hours count from the first run, a minute before the rerun.
    const [before, after] = [20 - 1.5 / 60, 20 - 0.5 / 60]
    expect((yield* choose(night, { hours: before })).chosen._tag).toBe("New")
    expect((yield* choose(night, { hours: after })).chosen._tag).toBe("NothingToDo")
    const nightly = { ...two, night: { starts: "01:00", until: "05:00" } }
    expect(yield* choose(night, { hours: 22.9, job: nightly })).toEqual(rest(idOf(3), idOf(2), "c-2/bank"))
    expect(yield* choose(night, { hours: 23, job: nightly })).toEqual(next)
    // Nor does it go on where the night has its date because its hours were changed.
    const moved = { ...two, night: { starts: "23:00", until: "07:00" } }
    expect(yield* choose(night, { hours: 22, job: moved })).toEqual(chosen("New", idOf(3)))
  })

  effect("is nothing where all is finished, or may not be started again", function* () {
    const over = chosen("NothingToDo", idOf(2))
    expect(
      yield* choose([
        [1, unfinished],
        [2, { ...rerun, tasks: { "c-2": "succeeded" } }],
      ]),
    ).toEqual(over)
    const task = { run_id: idOf(1), task_id: anId(`${idOf(1)}/c-2/bank`) }
    const start = { ...task, attempt: 1, external_execution_id: "nj-1" }
    const unknown: ReadonlyArray<Fact> = [
      { _tag: "StartIntended", ...start, probe: false },
      { _tag: "StartIntended", ...start, probe: true },
      { _tag: "TaskSettled", ...task, outcome: "unfinished", reason: "START_UNKNOWN", who_acts: "engineer" },
    ]
    expect((yield* choose(night, { more: unknown })).chosen).toEqual(over.chosen)
  })

  effect("is not begun beside a rerun that can be resumed, nor where another run is asked for", function* () {
    const { exit_code: _, ...cut } = rerun
    const begun: Runs = [night[0]!, [2, cut]]
    expect(yield* choose(begun)).toEqual(chosen("Resume", idOf(2)))
    const only = new Set(["c-1/bank"])
    const asked = { further: true, parent: idOf(1), only }
    expect(yield* choose(night, asked)).toEqual({ ...chosen("New", idOf(3)), parent: idOf(1), only })
  })
})

describe("a night that was missed", () => {
  const nightly: Job = { ...two, night: { starts: "01:00", until: "05:00" } }
  const before: Runs = [[1, on("2026-11-18", succeeded)]]
  const missed = ["2026-11-19", "2026-11-20"]

  effect("is told by the next run that begins, if the job says that there is one each day", function* () {
    expect(yield* choose(before, { job: nightly })).toEqual({ ...chosen("New", idOf(1)), missed })
    expect(yield* choose(before, { job: two })).toEqual(chosen("New", idOf(1)))
    expect(yield* choose([], { job: nightly })).toEqual(chosen("New", idOf(1)))
  })

  effect("is counted from the newest night, no rerun or part [run missed] [part missed]", function* () {
    const others: Runs = [
      ...before,
      [2, on("2026-11-17", { ...succeeded, parent: "job.2026-11-17" })],
      [1, on("2026-11-20", { ...succeeded, job: "other" })],
      [3, { ...on("2026-11-20", succeeded), part: "job.2026-11-20.3" }],
    ]
    expect((yield* choose(others, { job: nightly })).missed).toEqual(missed)
  })

  effect("is told once: not by a run that is resumed, and not by a rerun", function* () {
    const cut: Runs = [...before, [1, { tasks: { "c-1": undefined } }]]
    expect(yield* choose(cut, { job: nightly })).toEqual(chosen("Resume", idOf(1)))
    const asked = { job: nightly, further: true, parent: idOf(1, "2026-11-18") }
    expect((yield* choose([...before, [1, on("2026-11-15", succeeded)]], asked)).missed).toEqual([])
  })
})

describe("a job that names far fewer customers than the night before", () => {
  const ten = Object.fromEntries(
    Array.from({ length: 10 }, (_, index) => [`c-${index}`, "succeeded" as const]),
  )
  const few = (count: number, more: Partial<Job> = {}): Job => ({
    ...jobFor(...Object.keys(ten).slice(0, count)),
    min_customers: { of_last_night: 0.5 },
    ...more,
  })
  const before: Runs = [[1, on("2026-11-20", { tasks: ten, exit_code: 0 })]]
  const refused = { _tag: "TooFewCustomers", before: 10, run_id: idOf(1, "2026-11-20"), share: 0.5 }
  const today = chosen("New", idOf(1))

  effect("begins nothing, from the share on that the job says [run share of customers]", function* () {
    expect(yield* Effect.flip(choose(before, { job: few(4) }))).toMatchObject({ ...refused, customers: 4 })
    expect(yield* choose(before, { job: few(5) })).toEqual(today)
    expect(yield* choose(before, { job: jobFor("c-1") })).toEqual(today)
  })

  effect("is compared with its own newest night that planned customers [part share]", function* () {
    const night: Runs = [
      ...before,
      [2, on("2026-11-20", { tasks: { "c-1": "succeeded" }, exit_code: 0, parent: "job.2026-11-20" })],
      [3, on("2026-11-20", { exit_code: 6, tasks: {} })],
      [4, on("2026-11-20", { tasks: { "session/s-1": "succeeded", "session/s-2": "failed" }, exit_code: 0 })],
      [5, on("2026-11-20", { job: "other", tasks: { "c-1": "succeeded" }, exit_code: 0 })],
      [6, { ...on("2026-11-20", { tasks: { "c-1": "succeeded" }, exit_code: 0 }), part: "job.2026-11-20.6" }],
    ]
    expect(yield* Effect.flip(choose(night, { job: few(4) }))).toMatchObject(refused)
    const smaller: Runs = [...before, [2, on("2026-11-20", { tasks: { "c-1": "succeeded" }, exit_code: 0 })]]
    expect((yield* choose(smaller, { job: few(1) })).chosen._tag).toBe("New")
  })

  effect("counts a customer once, on however many engines, and sessions not at all", function* () {
    const { assignments } = few(4)
    const twice = assignments.map((one) => ({ ...one, engine_reference: anId("tax") }))
    const sessions = Array.from({ length: 9 }, (_, index) => ({ session_id: anId(`s-${index}`) }))
    const job = few(0, { assignments: [...assignments, ...twice], sessions: sessions as never })
    expect(yield* Effect.flip(choose(before, { job }))).toMatchObject({ ...refused, customers: 4 })
  })

  effect("is not asked about a rerun, nor where there is nothing to begin", function* () {
    const rerun = { job: few(1), further: true, parent: idOf(1, "2026-11-20") }
    expect((yield* choose(before, rerun)).chosen._tag).toBe("New")
    const done: Runs = [...before, [1, { tasks: ten, exit_code: 0 }]]
    expect(yield* choose(done, { job: few(1) })).toEqual(chosen("NothingToDo", idOf(1)))
  })
})
