/**
 * A night always takes place: late, early, beside what the one before left over, and once a service that is away
 * comes back; never twice, and never in the place of the next.
 */
import { describe, expect, it } from "vitest"
import { Clock, Duration, Effect, Exit } from "effect"
import { HttpClient, HttpServerResponse } from "effect/http"
import { NotSent, Service, Throttled } from "../../src/client/Service.ts"
import { Progress, type ProgressEvent } from "../../src/task/Progress.ts"
import type { Job } from "../../src/jobs/Job.ts"
import { Ledger } from "../../src/ledger/Ledger.ts"
import { statesOf } from "../../src/ledger/WholeNight.ts"
import { summarise } from "../../src/report/Summary.ts"
import { acceptRun, runNight } from "../../src/run/Nightly.ts"
import { previewNight } from "../../src/run/Preview.ts"
import { Sandbox } from "../../src/sandbox/server/Sandbox.ts"
import { anId } from "../harness/Id.ts"
import {
  aheadByDays,
  customer,
  features,
  jobOf,
  live,
  makeNights,
  options,
  wait,
} from "../harness/SmallNights.ts"

const minute = 60_000
const hour = 60 * minute
/** The nights begin at 22:00 UTC on this day. */
const first = Date.UTC(2026, 10, 21, 22)
const at = (day: number, hours: number) => first + (day - 21) * 24 * hour + (hours - 22) * hour

const night_ = { starts: "21:00", until: "05:00" }
const job: Job = { ...jobOf([customer("c-1", "run-1")]), name: "job", night: night_ }
const plain: Job = { ...job, night: undefined }

const ok = (id: string) => customer(id, "run-1")
const away = (id: string) => customer(id, "run-1+end-NETWORK_ERROR")
/** The job with these customers, each of whom is tried once. */
const named = (...assignments: Job["assignments"]): Job => ({
  ...job,
  retry: { ...job.retry, max_attempts: 1 },
  assignments,
})

const sleepUntil = (moment: number) =>
  Effect.flatMap(Clock.currentTimeMillis, (now) => Effect.sleep(moment - now))

/** The service cannot be reached before this moment. */
const awayUntil =
  (moment: number) =>
  <A, E, R>(work: Effect.Effect<A, E, R>) =>
    Effect.updateService(work, Service, (service) => ({
      ...service,
      listEngines: Effect.flatMap(Clock.currentTimeMillis, (now) =>
        now < moment ? Effect.fail(new NotSent({ message: "no connection" })) : service.listEngines,
      ),
    }))

/** The service asks every start before this moment to wait until then; notes when each was sent. */
const asksToWait =
  (moment: number, sent: Array<number>) =>
  <A, E, R>(work: Effect.Effect<A, E, R>) =>
    Effect.updateService(work, Service, (service) => ({
      ...service,
      startExecution: (call, leaving) =>
        Effect.flatMap(Clock.currentTimeMillis, (now) => {
          sent.push(now)
          if (now >= moment) return service.startExecution(call, leaving)
          const asked = { http_status: 429, retry_after: Duration.millis(moment - now), message: "later" }
          return Effect.andThen(leaving, Effect.fail(new Throttled(asked)))
        }),
    }))

const night = (of: Job = job, more = {}) =>
  Effect.map(runNight(of, { ...options, ...more }), ({ run_id, exit_code, nothingToDo }) =>
    nothingToDo ? `${run_id} ${exit_code} again` : `${run_id} ${exit_code}`,
  )

/** Hears what a night tells. */
const hearing = () => {
  const events: Array<ProgressEvent> = []
  return { events, progress: { tell: (event: ProgressEvent) => Effect.sync(() => void events.push(event)) } }
}

const starts = Effect.flatMap(Sandbox, ({ truth }) =>
  Effect.map(truth, ({ executions }) => executions.length),
)

describe("the exit code of a job that only new trouble may alarm", () => {
  const nightly = (exit_on: Job["exit_on"], ...customers: Job["assignments"]): Job => ({
    ...jobOf(customers),
    name: "job",
    exit_on,
  })
  const failing = customer("c-1", "end-TIMEOUT+run-1")
  const other = customer("c-2", "end-FAILED+run-1")
  const counts = Effect.gen(function* () {
    const { runs } = yield* Ledger
    return (yield* runs).map(({ fact, ended }) => {
      const { since = "", ...changes } = ended?.changes ?? {}
      return [fact.run_id, ended?.exit_code, since, Object.values(changes).join(" ")].join(", ")
    })
  })
  const after = (...jobs: ReadonlyArray<Job>) =>
    live(makeNights(), function* () {
      for (const one of jobs) {
        yield* night(one)
        yield* wait(1)
      }
      return yield* counts
    })

  it("is 3 on the first night, 0 while all trouble is the same, 3 for another, and 0 once it is mended [exit on new]", () => {
    expect(
      after(
        nightly("new", failing),
        nightly("new", failing),
        nightly("new", failing, other),
        nightly("new", customer("c-1", "run-1"), other),
      ),
    ).toEqual([
      "job.2026-11-21, 3, , ",
      "job.2026-11-22, 0, job.2026-11-21, 0 1 0",
      "job.2026-11-23, 3, job.2026-11-22, 1 1 0",
      "job.2026-11-25, 0, job.2026-11-23, 0 1 1",
    ])
  })
})

describe("a night", () => {
  it("whose service stays away is a run that ends with 6, and is begun again by a later run of the night", () => {
    const told = live(makeNights(), function* () {
      const failed = yield* Effect.exit(night().pipe(awayUntil(at(22, 6))))
      const ledger = yield* Ledger
      const runs = (yield* ledger.runs).map((run) => ({
        run_id: run.fact.run_id,
        exit_code: run.ended?.exit_code,
        beganAtOnce: run.at - first < 10 * minute,
      }))
      const gaveUp = (yield* Clock.currentTimeMillis) <= at(22, 5)
      yield* sleepUntil(at(22, 7))
      return [Exit.isFailure(failed), gaveUp, runs, yield* night(), yield* starts]
    })
    expect(told).toEqual([
      true,
      true,
      [{ run_id: "job.2026-11-21", exit_code: 6, beganAtOnce: true }],
      "job.2026-11-21 0",
      1,
    ])
  })
})

describe("what a night leaves in the ledger and tells", () => {
  const tagsOf = (run_id: string) =>
    Effect.flatMap(Ledger, (ledger) =>
      Effect.map(ledger.facts(anId(run_id)), (facts) => facts.map(({ fact }) => fact._tag)),
    )
  const resumptions = Effect.map(
    tagsOf("job.2026-11-21"),
    (tags) => tags.filter((tag) => tag === "RunResumed").length,
  )

  it("is that it was resumed, where it was, how many of its tasks were over by then, and how many secrets are written out [decision written out]", () => {
    const { events, progress } = hearing()
    const resumed = live(
      makeNights(),
      Effect.gen(function* () {
        yield* night(named(ok("c-1"), away("c-2"), away("c-3")))
        const before = yield* resumptions
        yield* night(named(ok("c-1"), ok("c-2"), ok("c-3")))
        const after = yield* resumptions
        yield* night(named(ok("c-1"), ok("c-2"), ok("c-3")))
        return [before, after, yield* resumptions]
      }).pipe(Effect.provideService(Progress, progress)),
    )
    expect(resumed).toEqual([0, 1, 1])
    const run_id = "job.2026-11-21"
    expect(events.filter(({ _tag }) => _tag === "Planned")).toEqual([
      { _tag: "Planned", run_id, writtenOut: 3 },
      { _tag: "Planned", run_id, writtenOut: 3 },
    ])
  })

  it("is exit code 4 as long as one of its reruns has not ended, whatever else is accepted", () => {
    const told = live(makeNights(), function* () {
      yield* night(named(ok("c-1"), away("c-2")))
      const slow = named(ok("c-1"), customer("c-2", "queue-1+run-600"))
      const only = new Set(["c-2/sandbox-bank:website"])
      const rerun = night(slow, { further: true, parent: "job.2026-11-21", only })
      yield* Effect.timeoutOption(rerun, "1 minute")
      const { run_id, exit_code } = yield* acceptRun(slow, anId("job.2026-11-21"))
      return [run_id, exit_code]
    })
    expect(told).toEqual(["job.2026-11-21", 4])
  })
})

describe("the deletions of a job with a deadline", () => {
  const timed: Job = { ...plain, deadline: "22:05", assignments: [customer("c-1", "queue-1+run-1")] }
  const deadlineAt = first + 5 * minute
  /** One night, whose deletions are answered after so long; when they began and it ended, and what was deleted. */
  const nightWith = (answersAfter: Duration.Input) =>
    Effect.gen(function* () {
      const stages = new Map<string, number>()
      const tell = (event: ProgressEvent) =>
        Effect.map(Clock.currentTimeMillis, (now) =>
          event._tag === "Stage" ? void stages.set(event.stage, now) : undefined,
        )
      const end = yield* night(timed).pipe(
        Effect.provideService(Progress, { tell }),

        Effect.updateService(Service, (service) => ({
          ...service,
          deleteExecution: (id) => Effect.delay(service.deleteExecution(id), answersAfter),
        })),
      )
      const { executions } = yield* Effect.flatMap(Sandbox, ({ truth }) => truth)
      const [deletingAt = 0, endedAt = 0] = [stages.get("deleting"), stages.get("ended")]
      const deleted = executions.filter(({ deleted_at }) => deleted_at !== undefined).length
      // What is written to the ledger takes part of a second.
      const seconds = (ms: number) => Math.floor(ms / 1000)
      return { end, deleted, lateBy: seconds(endedAt - deadlineAt), took: seconds(endedAt - deletingAt) }
    })

  it("end seconds after it, and are made up for by the next run, without a limit", () => {
    const [cut, resumed] = live(makeNights(), function* () {
      const cut = yield* nightWith("2 hours")
      yield* sleepUntil(deadlineAt + hour)
      return [cut, yield* nightWith("1 hour")] as const
    })
    expect([cut.end, cut.deleted, cut.lateBy]).toEqual(["job.2026-11-21 4", 0, 30])
    expect([resumed.end, resumed.deleted, resumed.took]).toEqual(["job.2026-11-21 0 again", 1, 3_600])
  })
})

describe("a night and its reruns", () => {
  const timeout = (id: string) => customer(id, "run-1+end-TIMEOUT")
  const rerun = (of: Job, parent: string, ...ids: ReadonlyArray<string>) =>
    night(of, { further: true, parent, only: new Set(ids.map((id) => `${id}/sandbox-bank:website`)) })

  it("have one exit code: a rerun ends with its own, `run` with that of the whole night [exit night]", () => {
    const told = live(makeNights(), function* () {
      const begun = yield* night(named(ok("c-1"), timeout("c-2"), away("c-3")))
      const mended = named(ok("c-1"), ok("c-2"), ok("c-3"))
      const partly = yield* rerun(mended, "job.2026-11-21", "c-3")
      const again = yield* night(mended)
      const whole = yield* rerun(mended, "job.2026-11-21.2", "c-2")
      // What is over asks the service nothing.
      const over = yield* night(mended).pipe(awayUntil(at(22, 5)))
      return [begun, partly, again, whole, over, yield* starts]
    })
    expect(told).toEqual([
      "job.2026-11-21 4",
      "job.2026-11-21.2 0",
      "job.2026-11-21.2 3 again",
      "job.2026-11-21.3 0",
      "job.2026-11-21.3 0 again",
      5,
    ])
  })

  const asked = Effect.gen(function* () {
    const ledger = yield* Ledger
    const states = yield* statesOf(ledger, yield* ledger.runs)
    return states.map(({ tasks }) => [...tasks.values()].map(({ planned }) => planned.features.join(" ")))
  })

  it("keep what they ask for when they are cut off and resumed, and ask for what the job adds", () => {
    const half = customer("c-1", "run-1+records-4+partial")
    const more = (words: string) => ({
      ...customer("c-1", words),
      features: features("accounts_read", "cards_read", "customer_information_read"),
    })
    const told = live(makeNights(), function* () {
      yield* night(named(half))
      const sent: Array<unknown> = []
      const heard = <A, E, R>(work: Effect.Effect<A, E, R>) =>
        Effect.updateService(work, Service, (service) => ({
          ...service,
          startExecution: (call, ...others) => {
            sent.push([call.features, call.base_configurations.tokenized_access])
            return service.startExecution(call, ...others)
          },
        }))
      const cut = yield* heard(rerun(named(more("run-1+end-NETWORK_ERROR")), "job.2026-11-21", "c-1"))
      const resumed = yield* heard(night(named(more("run-1"))))
      return [cut, resumed, yield* asked, sent]
    })
    // A token that was asked for with these features alone would not cover the others.
    const rest = [["cards_read", "customer_information_read"], false]
    expect(told).toEqual([
      "job.2026-11-21.2 4",
      "job.2026-11-21.2 0",
      [["accounts_read cards_read"], ["cards_read customer_information_read"]],
      [rest, rest],
    ])
  })

  it("wait for the service as the night does, and then start what they were limited to [run rest waits] [run took]", () => {
    const told = live(makeNights(), function* () {
      yield* night(named(ok("c-1"), away("c-2"), away("c-3"), away("c-4")))
      const [before, begins] = [yield* starts, yield* Clock.currentTimeMillis]
      const mended = named(ok("c-1"), ok("c-2"), ok("c-3"), ok("c-4"))
      const partly = yield* rerun(mended, "job.2026-11-21", "c-2").pipe(awayUntil(at(22, 1)))
      // It counts from its beginning, also what it waited for before it had a plan.
      const state = yield* (yield* Ledger).state(anId("job.2026-11-21.2"))
      const took = [state?.started_at === begins, (state?.ended?.at ?? 0) > at(22, 1)]
      const rest = yield* night(mended).pipe(awayUntil(at(22, 2)))
      const again = yield* night(mended)
      return [partly, ...took, rest, again, (yield* starts) - before]
    })
    const runs = ["job.2026-11-21.3 0", "job.2026-11-21.3 0 again"]
    expect(told).toEqual(["job.2026-11-21.2 0", true, true, ...runs, 3])
  })

  it("stay limited to what they were asked for when they are resumed, by this night or a later one", () => {
    const toldAfter = (hours: number) =>
      live(makeNights(), function* () {
        yield* night(named(ok("c-1"), away("c-2"), away("c-3")))
        const slow = named(ok("c-1"), customer("c-2", "run-600"), ok("c-3"), ok("c-4"))
        const cut = yield* Effect.timeoutOption(rerun(slow, "job.2026-11-21", "c-2"), "1 minute")
        const before = yield* starts
        yield* sleepUntil(at(22, hours))
        const resumed = yield* night(hours < 21 ? slow : named())
        const ledger = yield* Ledger
        const state = yield* ledger.state(anId("job.2026-11-21.2"))
        const tasks = [...(state?.tasks.values() ?? [])].map(
          ({ planned, settled }) => `${planned.customer_id} ${settled?.fact.reason}`,
        )
        return [cut._tag, resumed, (yield* starts) - before, tasks]
      })
    expect(toldAfter(1)).toEqual(["None", "job.2026-11-21.2 4", 0, ["c-2 COMPLETED"]])
    expect(toldAfter(21)).toEqual(["None", "job.2026-11-22 0", 0, ["c-2 COMPLETED"]])
  })
})

describe("a start that is answered 422", () => {
  it("ends its task with the fields that the service refuses, without what was sent [end refused told]", () => {
    const item = (field: string, input: string) => ({
      loc: ["body", "parameters", field],
      msg: `${input} does not fit`,
      type: "value_error",
      input,
    })
    const detail = [item("password", "pass-7391"), item("username", "run-1+customer-c-1")]
    const refusal = HttpServerResponse.jsonUnsafe({ detail }, { status: 422 })
    const through = (client: HttpClient.HttpClient) =>
      HttpClient.transform(client, (answer, request) =>
        request.url.includes("/init/v1/")
          ? Effect.succeed(HttpServerResponse.toClientResponse(refusal, { request }))
          : answer,
      )
    const refused = { ...plain, assignments: [customer("c-1", "run-1", "pass-7391")] }
    const settled = live(makeNights({}, { through }), function* () {
      const { state } = yield* runNight(refused, options)
      return [...state.tasks.values()].map((task) => task.settled?.fact)
    })
    expect(settled).toMatchObject([
      {
        reason: "INCORRECT_PARAMETERS_FORMAT",
        message: "parameters.password: [blanked] does not fit; parameters.username: [blanked] does not fit",
      },
    ])
  })
})

describe("a night that is too short for all customers", () => {
  const short = (on_deadline: Job["on_deadline"]): Job => ({
    ...jobOf(Array.from({ length: 9 }, (_, index) => customer(`c-${index + 1}`, "queue-3000+run-1"))),
    name: "job",
    concurrency: { max_in_flight: 2, per_engine: 2 },
    polling: { min: Duration.minutes(1), max: Duration.minutes(5) },
    night: { starts: "22:00", until: "00:30" },
    on_deadline,
  })
  /** Of each night: who succeeded, and whose execution the deadline aborted. */
  const nights = (count: number, on_deadline: Job["on_deadline"]) =>
    live(makeNights(), function* () {
      const ledger = yield* Ledger
      const seen: Array<string> = []
      for (let day = 0; day < count; day++) {
        const { run_id } = yield* runNight(short(on_deadline), options)
        const tasks = [...((yield* ledger.state(run_id))?.tasks.values() ?? [])]
        const named = (chosen: typeof tasks) => chosen.map(({ planned }) => planned.customer_id).join(" ")
        const good = tasks.filter(({ settled }) => settled?.fact.outcome === "succeeded")
        const aborted = tasks.filter(({ attempts }) => attempts.some(({ abort }) => abort !== undefined))
        seen.push(`${named(good)} | ${named(aborted)}`)
        yield* sleepUntil(at(22 + day, 22))
      }
      return seen
    })

  it("goes round all of them, and starts what the deadline would abort only if the job says so", () => {
    // On the first night nobody knows yet how long it takes.
    const first = "c-1 c-2 c-3 c-4 | c-5 c-6"
    expect(nights(3, "carry")).toEqual([first, "c-5 c-6 c-7 c-8 | ", "c-9 c-1 c-2 c-3 | "])
    expect(nights(2, "abort")).toEqual([first, "c-5 c-6 c-7 c-8 | c-9 c-1"])
  })
})

it("a start is sent no sooner than the service asked, by a resumed run or a rerun either [promise 10 rerun] [promise 10 too long]", () => {
  const sent = new Array<number>()
  const until = at(21, 23)
  const short: Job = {
    ...plain,
    assignments: [customer("c-1", "queue-5+run-1")],
    execution: { ...plain.execution, max_wait: Duration.minutes(30) },
  }
  const rerun = { further: true, parent: "job.2026-11-21", only: new Set(["c-1/sandbox-bank:website"]) }
  const told = live(makeNights(), function* () {
    const one = (more = {}) => night(short, more).pipe(asksToWait(until, sent))
    const runs = [yield* one(), yield* one(), yield* one(rerun)]
    const preview = Effect.map(previewNight(short, { ...options, ...rerun }), (seen) => [
      ...seen.starting.map(({ task_id }) => task_id),
      ...seen.notStarted.map(({ reason, message }) => `${reason}: ${message}`),
    ])
    const previews = [yield* preview]
    yield* Effect.sleep(Duration.minutes(45))
    return { runs, previews: [...previews, yield* preview], last: yield* one(rerun) }
  })
  expect(told).toEqual({
    runs: ["job.2026-11-21 4", "job.2026-11-21 4", "job.2026-11-21.2 4"],
    previews: [
      ["SERVICE_UNREACHABLE: the service asked to wait; no start before 2026-11-21T23:00:00.000Z"],
      ["job.2026-11-21.3/c-1/sandbox-bank:website"],
    ],
    last: "job.2026-11-21.3 0",
  })
  expect(sent).toEqual([first, until])
})

/** An embedded service may go faster than the clock. */
const urls = {
  base_url: "https://service.example/api",
  flows_url: "https://service.example/flows",
  attachments_url: "https://service.example/flows",
}
const remote = { _tag: "Remote", ...urls, app_secret: { _tag: "Env", name: "SECRET" } } as const

it("a run after one with a fast clock says so, and one of an embedded service does not [run ahead]", () => {
  const toldOf = (service: Job["service"]) =>
    live(makeNights(), function* () {
      const told = Effect.map(runNight({ ...plain, service }, options), ({ state }) =>
        summarise(state).warnings.filter((one) => one.includes("clock")),
      )
      yield* aheadByDays(30)(told)
      yield* wait(1)
      return yield* told
    })
  expect(toldOf(remote)).toEqual([
    "the run job.2026-12-21 began after this one, by this machine's clock: it was wrong then, or is now [run-ahead]",
  ])
  expect(toldOf(plain.service)).toEqual([])
})
