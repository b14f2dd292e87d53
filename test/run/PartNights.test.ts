/** Runs of a part of a job: what they start, and that the night takes place as if they had not been. */
import { describe, expect, it } from "vitest"
import { Duration, Effect, Fiber, Option } from "effect"
import { subjectsOfPart } from "../../src/cli/Jobs.ts"
import type { Job } from "../../src/jobs/Job.ts"
import { Ledger } from "../../src/ledger/Ledger.ts"
import { verdictOfTask } from "../../src/ledger/RunState.ts"
import { runNight } from "../../src/run/Nightly.ts"
import { previewNight } from "../../src/run/Preview.ts"
import { Sandbox } from "../../src/sandbox/server/Sandbox.ts"
import { anId } from "../harness/Id.ts"
import { customer, jobOf, live, makeNights, options, wait } from "../harness/SmallNights.ts"

const words = "queue-60+run-600+records-2"
const of = (...ids: ReadonlyArray<string>): Job => ({
  ...jobOf(ids.map((id) => customer(id, words))),
  name: "job",
})
const three = of("c-1", "c-2", "c-3")

const asked = (job: Job, customers: ReadonlyArray<string>, first?: number) => ({
  further: true,
  parent: undefined,
  only: subjectsOfPart(job, { customers, first: Option.fromUndefinedOr(first) }),
  isPart: true,
})
const told = Effect.map(
  ({ run_id, exit_code }: Effect.Success<ReturnType<typeof runNight>>) => `${run_id} ${exit_code}`,
)
const night = (job: Job = three) => told(runNight(job, options))
const part = (job: Job, ...customers: ReadonlyArray<string>) =>
  told(runNight(job, { ...options, ...asked(job, customers) }))

/** The executions of the service, in the order in which they were started. */
const spans = Effect.gen(function* () {
  const { executions } = yield* (yield* Sandbox).truth
  return executions.toSorted((one, other) => one.started_at - other.started_at)
})
const startedFor = Effect.map(spans, (all) => all.map(({ customer_id }) => String(customer_id)).toSorted())
/** Two logins to one account at the same time. */
const overlaps = Effect.map(spans, (all) =>
  all.flatMap((one, at) =>
    all
      .slice(at + 1)
      .filter((other) => other.login_key === one.login_key && other.started_at < one.closes_at)
      .map(({ customer_id }) => String(customer_id)),
  ),
)

/** Tasks of a run with their verdicts. */
const verdicts = Effect.fnUntraced(function* (run_id: string) {
  const state = yield* (yield* Ledger).state(anId(run_id))
  return [...(state?.tasks.values() ?? [])].map((task) => {
    const { outcome, reason } = verdictOfTask(task)
    return `${task.planned.customer_id} ${outcome} ${reason}`
  })
})

/** Cuts a run off after these seconds, as a signal does. */
const cutOff = <A, E, R>(run: Effect.Effect<A, E, R>, seconds: number) =>
  Effect.gen(function* () {
    const running = yield* Effect.forkChild(run)
    yield* Effect.sleep(seconds * 1_000)
    yield* Fiber.interrupt(running)
  })

describe("the subjects of a part", () => {
  it("are the first customers of the job, or those that are named, on all their engines, with their sessions", () => {
    const [one, two, more] = three.assignments
    const job = {
      assignments: [one!, two!, { ...one!, engine_reference: anId("tax") }, more!],
      sessions: [
        { session_id: anId("s-1"), customer_id: anId("c-1") },
        { session_id: anId("s-2"), customer_id: anId("c-9") },
        { session_id: anId("s-3") },
      ] as unknown as Job["sessions"],
    }
    const subjects = (customers: ReadonlyArray<string>, first?: number) => [
      ...subjectsOfPart(job, { customers, first: Option.fromUndefinedOr(first) }),
    ]
    const bank = "sandbox-bank:website"
    expect(subjects([], 1)).toEqual([`c-1/${bank}`, "c-1/tax", "session/s-1"])
    expect(subjects(["c-3", "c-2"])).toEqual([`c-2/${bank}`, `c-3/${bank}`])
    expect(subjects(["c-3", "c-2"], 1)).toEqual([`c-2/${bank}`])
    expect(subjects(["c-9"], 7)).toEqual(["session/s-2"])
  })
})

describe("a run of a part of a job", () => {
  it("leaves an unfinished night as it is, and starts nothing beside its open logins [part starts]", () => {
    const nights = makeNights()
    const seen = live(nights, function* () {
      yield* cutOff(night(), 120)
      const before = yield* Effect.flatMap(Ledger, (ledger) => ledger.facts(anId("job.2026-11-21")))
      const said = yield* previewNight(three, asked(three, ["c-1"]))
      const hasty = { ...three, execution: { ...three.execution, max_wait: Duration.seconds(1) } }
      const beside = yield* part(hasty, "c-1")
      const after = yield* Effect.flatMap(Ledger, (ledger) => ledger.facts(anId("job.2026-11-21")))
      const waited = yield* verdicts("job.2026-11-21.2")
      return {
        said: [said.starting.length, ...said.waiting.map(({ customer_id }) => customer_id)],
        beside,
        waited,
        looks: after.slice(before.length).map(({ fact }) => fact._tag),
        resumed: yield* night(),
        started: yield* startedFor,
        overlaps: yield* overlaps,
      }
    })
    expect(seen).toEqual({
      said: [0, "c-1"],
      beside: "job.2026-11-21.2 4",
      waited: ["c-1 unfinished ALREADY_EXECUTING"],
      looks: ["AttemptObserved"],
      resumed: "job.2026-11-21 0",
      started: ["c-1", "c-2", "c-3"],
      overlaps: [],
    })
  })

  it("that was cut off is not resumed: whatever runs next collects it, and logs in only after that [part cut]", () => {
    const seen = live(makeNights(), function* () {
      yield* cutOff(part(three, "c-1", "c-2"), 120)
      const next = yield* part(three, "c-1")
      const cut = yield* Effect.flatMap(Ledger, (ledger) => ledger.state(anId("job.2026-11-21.2")))
      return [next, cut?.ended?.exit_code, cut?.stages.resumed, yield* startedFor, yield* overlaps]
    })
    expect(seen).toEqual(["job.2026-11-21.3 0", 0, undefined, ["c-1", "c-1", "c-2"], []])
  })

  it("is no night that trouble is compared with: what it saw is new in the night after it [part news]", () => {
    const failing = (n: number): Job => ({
      ...jobOf([customer("c-1", n === 0 ? words : "end-FAILED+run-60"), customer("c-2", words)]),
      name: "job",
      exit_on: "new",
    })
    const seen = live(makeNights(), function* () {
      const runs = [yield* night(failing(0))]
      yield* wait(1)
      runs.push(yield* part(failing(1), "c-1"))
      const { news, exit_code } = yield* runNight(failing(1), options)
      return { runs, exit_code, news: news.map(({ reason }) => reason) }
    })
    expect(seen).toEqual({ runs: ["job.2026-11-21 0", "job.2026-11-22.2 3"], exit_code: 3, news: ["FAILED"] })
  })
})
