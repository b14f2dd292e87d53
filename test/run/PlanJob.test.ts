/** What a plan adds to a run that is known already: each task once, and no verdict about what is still in progress. */
import { Clock, Duration, Effect } from "effect"
import { describe, expect, it } from "vitest"
import { Service, type StartCall } from "../../src/client/Service.ts"
import { builtInSources } from "../../src/service/FlowResults.ts"
import { own } from "../../src/service/Ends.ts"
import { FormCache, type EngineFinding } from "../../src/client/EngineForms.ts"
import { subjectsOf, type Job } from "../../src/jobs/Job.ts"
import type { Fact } from "../../src/ledger/Fact.ts"
import { foldRun } from "../../src/ledger/FoldRun.ts"
import type { RunState } from "../../src/ledger/RunState.ts"
import { runNight } from "../../src/run/Nightly.ts"
import { askedAgain, askedBy, narrowed, planJob, planningFacts, removedFacts } from "../../src/run/PlanJob.ts"
import { rulesOf, sessionsToPull, sourceFacts, worksOf } from "../../src/run/PlanJob.ts"
import type { Asked, JobPlan } from "../../src/run/PlanJob.ts"
import { planTasks } from "../../src/task/Plan.ts"
import { KnownSecrets } from "../../src/privacy/KnownSecrets.ts"
import { anId, type AnyId } from "../harness/Id.ts"
import { customer, jobOf, live, makeNights, options, wait } from "../harness/SmallNights.ts"
import { assignment, fitOf, grounds as groundsOf, known, login, noExpectations } from "../task/Samples.ts"
import { executed, idOf, planned, run_id, settled, started } from "../report/Samples.ts"

const grounds = groundsOf({ run_id })
/** Customers whose password the engine's form refuses are settled by the plan. */
const planOf = (ready: ReadonlyArray<string>, refused: ReadonlyArray<string> = []): JobPlan => {
  const of = (id: string) => assignment({ customer_id: anId(id), source: `a.csv:${id}` })
  const assigned = [
    ...ready.map((id) => [of(id), login({ username: `user-${id}`, password: "pass" })] as const),
    ...refused.map((id) => [of(id), login({ username: `user-${id}` })] as const),
  ]
  const { engine_reference } = of("any")
  const place = { file: "job.yaml", line: 1, column: 1 }
  const sessions = ready.length === 0 ? [] : [{ session_id: anId("s-1"), customer_id: anId("c-7"), place }]
  const more = sessions.map(() => ({ session_id: anId("s-2"), customer_id: undefined, place }))
  const others = [...sessions, ...more]
  const plan = planTasks({
    fitted: assigned.map(([assignment, login]) => ({
      assignment,
      login,
      fit: fitOf(assignment, login, known()),
    })),
    sessions: others,
    engines: new Map([[engine_reference, known()]]),
    grounds,
  })
  const learnt = { expectations: noExpectations, carried: [], asked: new Map() }
  return { job: jobOf([]), plan, grounds, learnt, partly: new Set(), unasked: [] }
}
const fold = (facts: ReadonlyArray<Fact>): RunState => {
  const run = foldRun([started, ...facts].map((fact, seq) => ({ seq, at: seq, fact })))
  if (run === undefined) throw new Error("no beginning")
  return run
}

const plannedSession = (id: string, more: { readonly customer_id?: AnyId } = {}): Fact => ({
  _tag: "TaskPlanned",
  run_id,
  task_id: anId(`${run_id}/session/${id}`),
  session_id: anId(id),
  ...more,
  features: [],
})
const unfinished = (id: string, reason: string) => settled(id, "unfinished", reason, "service")
const open = (id: string) => executed(id, {}).filter(({ _tag }) => _tag !== "AttemptClosed")
const intended = (id: string) => executed(id, {}).slice(0, 1)
const answered = (id: string, answer: "not_created" | "refused" | "lost"): ReadonlyArray<Fact> => [
  ...intended(id),
  { _tag: "StartAnswered", run_id, task_id: idOf(id), attempt: 1, answer },
]
/** How far a task has come, and whether a verdict on it may be given without a start. */
const tasks: ReadonlyArray<readonly [string, boolean, (id: string) => ReadonlyArray<Fact>]> = [
  ["is only planned", true, () => []],
  ["left a start of which nothing is known", false, intended],
  ["is in flight", false, open],
  ["succeeded", false, (id) => [...executed(id, {}), settled(id, "succeeded", "COMPLETED", "nobody")]],
  ["failed", false, (id) => [settled(id, "failed", "BLOCKED_USER", "customer")]],
  ["was refused before any start", true, (id) => [unfinished(id, "SECRET_MISSING")]],
  ["ended in a temporary error", true, (id) => [...executed(id, {}), unfinished(id, "OUT_OF_SERVICE")]],
  ["has partial results", false, (id) => [...executed(id, {}), unfinished(id, "RESULTS_PARTIAL")]],
  ["may have started unseen", false, (id) => [...intended(id), unfinished(id, "START_UNKNOWN")]],
  ["could not be reached in flight", false, (id) => [...open(id), unfinished(id, "SERVICE_UNREACHABLE")]],
  [
    "was never created",
    true,
    (id) => [...answered(id, "not_created"), unfinished(id, "SERVICE_UNREACHABLE")],
  ],
  ["was refused its start", true, (id) => [...answered(id, "refused"), unfinished(id, "OUT_OF_SERVICE")]],
  ["was cut off with its start", false, (id) => [...intended(id), unfinished(id, "SERVICE_UNREACHABLE")]],
  ["lost its start", false, (id) => [...answered(id, "lost"), unfinished(id, "SERVICE_UNREACHABLE")]],
]

describe("the facts of a plan", () => {
  it("are each task of a new run, sessions too, and the verdicts on those that are never started", () => {
    const of = (id: string) => ({
      _tag: "TaskPlanned",
      run_id,
      task_id: idOf(id),
      customer_id: id,
      engine_reference: "bank:website",
      features: ["accounts_read"],
      fingerprint: expect.stringMatching(/^\w{16,}$/),
    })
    expect(planningFacts(planOf(["c-1"], ["c-2"]), undefined)).toStrictEqual([
      of("c-1"),
      of("c-2"),
      plannedSession("s-1", { customer_id: anId("c-7") }),
      plannedSession("s-2"),
      {
        _tag: "TaskSettled",
        run_id,
        task_id: idOf("c-2"),
        outcome: "failed",
        reason: "INCORRECT_PARAMETERS_FORMAT",
        who_acts: "engineer",
        message: expect.stringContaining("password"),
      },
    ])
  })

  it("plan nothing twice", () => {
    const plan = planOf(["c-1", "c-2"])
    const facts = planningFacts(plan, undefined)
    expect(planningFacts(plan, fold(facts))).toEqual([])
    expect(planningFacts(plan, fold(facts.slice(0, 1)))).toEqual(facts.slice(1))
    expect(planningFacts(plan, fold(facts.slice(0, 3)))).toEqual(facts.slice(3))
  })

  it.each(tasks)("settle a task that %s: %s", (_, isIdle, facts) => {
    const added = planningFacts(planOf([], ["c"]), fold([planned("c"), ...facts("c")]))
    expect(added.map((fact) => [fact._tag, "reason" in fact && fact.reason])).toEqual(
      isIdle ? [["TaskSettled", "INCORRECT_PARAMETERS_FORMAT"]] : [],
    )
  })
})

describe("a task that the job no longer names", () => {
  const job = jobOf([])
  const notInJob = { _tag: "TaskSettled", run_id, task_id: idOf("c"), ...own("NOT_IN_JOB") }

  it.each(tasks)("is settled so if it %s: %s", (_, isIdle, facts) => {
    expect(removedFacts(job, fold([planned("c"), ...facts("c")]))).toEqual(isIdle ? [notInJob] : [])
  })

  it("is told from one that it does name, by customer and engine or by session", () => {
    const named: Job = {
      ...jobOf([{ ...customer("c", "run-1"), engine_reference: anId("bank:website") }]),
      sessions: [{ session_id: anId("s-1"), customer_id: undefined }] as never,
    }
    expect(subjectsOf(named)).toEqual(new Set(["c/bank:website", "session/s-1"]))
    const sessions = ["s-1", "s-2"].map((id) => plannedSession(id))
    const run = fold([planned("c"), planned("c", "tax"), ...sessions])
    const removed = removedFacts(named, run).map((fact) => "task_id" in fact && fact.task_id)
    expect(removed).toEqual([idOf("c", "tax"), `${run_id}/session/s-2`])
    expect(sessionsToPull(run).map(({ session_id }) => session_id)).toEqual(["s-1", "s-2"])
  })
})

it("a run keeps the endpoints that it reads from until its job enables others", () => {
  const [flow, profile] = builtInSources
  if (flow === undefined || profile === undefined) throw new Error("there are two")
  const of = (...sources: Job["sources"]): Job => ({ ...jobOf([]), sources })
  const set = (...sources: Job["sources"]) => ({ _tag: "ResultsSourcesSet", run_id, sources }) as const
  const off = { ...profile, enabled: false }
  expect(sourceFacts(of(flow, profile), run_id, undefined)).toEqual([])
  expect(sourceFacts(of(flow, off), run_id, undefined)).toEqual([set(flow, off)])
  const known = fold([set(flow, off)])
  for (const same of [of(flow), of(flow, off)]) expect(sourceFacts(same, run_id, known)).toEqual([])
  expect(sourceFacts(of(flow, profile), run_id, known)).toEqual([set(flow, profile)])
})

it("the rules of a run are its job's, and its deadline that of its beginning", () => {
  const job: Job = { ...jobOf([]), deadline: "07:00" }
  const { polling, retry, sources, flow_results, execution, concurrency } = job
  const at = (day: number, hours: number) => Date.UTC(2026, 10, day, hours)
  expect(rulesOf(job, at(21, 2), at(22, 3))).toEqual({
    limits: concurrency,
    polling,
    retry,
    max_wait: execution.max_wait,
    service: "sandbox",
    sources,
    flow_results,
    deadlineAt: at(21, 7),
  })
})

/** The starts of a night whose engine is seen as `finds` says when it is planned, and as `looks` say before a start. */
const startsOf = (
  job: Job,
  {
    finds,
    looks = [],
  }: { readonly finds?: EngineFinding; readonly looks?: ReadonlyArray<EngineFinding> } = {},
) => {
  const calls: Array<StartCall & { readonly at: number }> = []
  let looked = 0
  let planned = 0
  const night = Effect.gen(function* () {
    const begunAt = yield* Clock.currentTimeMillis
    const { state } = yield* runNight(job, options).pipe(
      Effect.updateService(Service, (service) => ({
        ...service,
        startExecution: (call, leaving) =>
          Effect.andThen(
            Effect.map(Clock.currentTimeMillis, (now) => calls.push({ ...call, at: now - begunAt })),
            service.startExecution(call, leaving),
          ),
      })),
      Effect.updateService(FormCache, (forms) => ({
        ...forms,
        findAll: (engines) =>
          Effect.suspend(() => {
            planned += 1
            return finds === undefined
              ? forms.findAll(engines)
              : Effect.succeed(new Map([...engines].map((engine) => [engine, finds])))
          }),
        look: (engine) =>
          Effect.suspend(() => {
            const look = looks[looked]
            looked += 1
            return look === undefined ? forms.look(engine) : Effect.succeed(look)
          }),
      })),
    )
    const ends = [...state.tasks.values()].map(({ settled: end }) =>
      [end?.fact.reason, end?.fact.message].filter((part) => part !== undefined).join(": "),
    )
    return { ends, looked, planned, calls }
  })
  return live(makeNights(), night)
}

describe("a start", () => {
  const settings = { branch: "0042", segment: "retail" }
  const plain = jobOf([
    {
      ...customer("c-1", "run-1"),
      engine_reference: anId("sandbox-settings:website"),
      configurations: settings,
      hooks_extra_data: { note: "n-1" },
      features: [
        { code: "accounts_read", configurations: undefined },
        { code: "cards_read", configurations: { from_date: "30 days ago" } },
      ],
    },
  ])
  const execution = {
    ...plain.execution,
    execution_timeout: Duration.seconds(90.4),
    unlock_protected_data: true,
  }
  const job: Job = { ...plain, execution }
  const away: EngineFinding = { _tag: "Unavailable", retry_after: Duration.minutes(7) }

  it("sends what the job says, and that no customer is there to answer the source", () => {
    const { calls, looked, planned, ends } = startsOf(job)
    expect(
      calls.map(({ login: given, external_execution_id: _external, at: _at, ...call }) => [given._tag, call]),
    ).toEqual([
      [
        "Parameters",
        {
          customer_id: "c-1",
          engine_reference: "sandbox-settings:website",
          configurations: settings,
          hooks_extra_data: { note: "n-1" },
          base_configurations: {
            customer_interaction_available: false,
            execution_timeout: 90,
            unlock_protected_data: true,
            tokenized_access: true,
          },
          features: ["accounts_read", { code: "cards_read", configurations: { from_date: "30 days ago" } }],
        },
      ],
    ])
    // What was seen when it was planned, once, is enough.
    expect([planned, looked, ends]).toEqual([1, 0, ["COMPLETED"]])
  })

  it("waits for an engine that was away as long as that asks, and then sends what its form allows", () => {
    const { calls, looked, ends } = startsOf(job, { finds: { _tag: "Unavailable" }, looks: [away] })
    expect([calls.length, looked, ends]).toEqual([1, 2, ["COMPLETED"]])
    expect(calls[0]?.at).toBeGreaterThanOrEqual(7 * 60_000)
  })

  it("never comes where the engine's page is refused for too long, and the end says so [end ENGINE_UNAVAILABLE page]", () => {
    const refused: EngineFinding = {
      _tag: "Unavailable",
      detail: "showEngine: the service asks to retry later (429)",
      retry_after: Duration.hours(9),
    }
    const { calls, ends } = startsOf(job, { finds: { _tag: "Unavailable" }, looks: [refused] })
    const said = "ENGINE_UNAVAILABLE: showEngine: the service asks to retry later (429)"
    expect([calls, ends]).toEqual([[], [said]])
  })
})

describe("what a rerun asks for", () => {
  const of = (id: string, ...codes: ReadonlyArray<string>) =>
    assignment({
      customer_id: anId(id),
      features: codes.map((code) => ({ code, configurations: undefined })),
    })
  const both = of("c-1", "accounts_read", "cards_read")

  it("are the customers and features that are missing, and all features where none of them is known", () => {
    const asked: Asked = new Map<string, (code: string) => boolean>([
      ["c-1/bank:website", (code) => code === "cards_read"],
      ["c-2/bank:website", () => false],
      ["c-3/bank:website", () => true],
    ])
    const all = [both, of("c-2", "tax_read"), of("c-3", "accounts_read", "cards_read"), of("c-4", "tax_read")]
    expect(narrowed(all, asked)).toEqual({
      assignments: [of("c-1", "cards_read"), of("c-2", "tax_read"), of("c-3", "accounts_read", "cards_read")],
      partly: new Set(["c-1/bank:website"]),
    })
    expect(narrowed(all, undefined)).toEqual({ assignments: all, partly: new Set() })
  })

  const planOne = (id: string, ...features: ReadonlyArray<string>) => ({ ...planned(id), features }) as Fact
  const asks = (asked: Asked) =>
    [...asked].map(([subject, isAsked]) => [
      subject,
      ["accounts_read", "cards_read", "tax_read"].filter((code) => isAsked(code)),
    ])

  it("is what is not in the tables after the night, and stays the same when it is resumed [rerun features]", () => {
    const published: Fact = {
      _tag: "RunPublished",
      run_id,
      version: 1,
      receipts: [],
      delivered: [{ task_id: idOf("c-1"), features: ["accounts_read"] }],
    }
    const night = [fold([planOne("c-1", "accounts_read", "cards_read"), published])]
    expect(asks(askedAgain(night, ["c-1/bank:website", "c-9/bank:website"]))).toEqual([
      ["c-1/bank:website", ["cards_read", "tax_read"]],
      ["c-9/bank:website", ["accounts_read", "cards_read", "tax_read"]],
    ])
    expect(asks(askedBy(fold([planOne("c-1", "cards_read"), plannedSession("s-1")])))).toEqual([
      ["c-1/bank:website", ["cards_read"]],
      ["session/s-1", ["accounts_read", "cards_read", "tax_read"]],
    ])
  })

  it("are only those sessions that are asked for", () => {
    const session = (id: string) => ({ session_id: anId(id), customer_id: undefined })
    const job = { ...jobOf([]), sessions: [session("s-1"), session("s-2")] } as unknown as Job
    const plans = live(
      makeNights(),
      Effect.all([
        planJob(job, run_id, new Map([["session/s-2", () => true]])),
        planJob(job, run_id, undefined),
      ]),
    )
    expect(plans.map(({ plan }) => plan.sessions.map(({ session_id }) => session_id))).toEqual([
      ["s-2"],
      ["s-1", "s-2"],
    ])
  })
})

describe("the plan of a job", () => {
  it("learns from the last three nights of the same job, without the one that is planned", () => {
    const of = (name: string, seconds: number): Job => ({
      ...jobOf([customer("c-1", `queue-1+run-${seconds}`)]),
      name,
    })
    const minutes = live(makeNights(), function* () {
      for (const day of [1, 2, 3, 4]) {
        yield* runNight(of("other", 600), options)
        yield* runNight(of("job", day * 60), options)
        yield* wait(1)
      }
      const learntFor = (id: string) =>
        Effect.map(planJob(of("job", 60), anId(id), undefined), ({ learnt }) =>
          learnt.expectations.all.map((ms) => Math.floor(ms / 60_000)),
        )
      return [yield* learntFor("job.2026-11-25"), yield* learntFor("job.2026-11-24")]
    })
    expect(minutes).toEqual([
      [2, 3, 4],
      [1, 2, 3],
    ])
  })

  it("gives every task of the run what starts it, if the job still names it, and its usual duration", () => {
    const planned1 = planOf(["c-1"])
    const run = fold([planned("c-1"), planned("c-9"), plannedSession("s-1", { customer_id: anId("c-7") })])
    const usualMs = 180_000
    const expectations = { ...noExpectations, byEngine: new Map([["bank:website", [usualMs]]]) }
    const learnt = { ...planned1.learnt, expectations }
    const [works, unlearnt, shown] = live(makeNights(), function* () {
      const works = yield* worksOf({ ...planned1, learnt }, run)
      const { clean, hold } = yield* KnownSecrets
      for (const login of ["c-9", "bank:website"]) hold(login, "login")
      const shown = ["c-9", "bank:website"].map((name) => clean(name, "echo"))
      return [works, yield* worksOf(planned1, run), shown] as const
    })
    const work = (id: string) => ({
      task_id: idOf(id),
      customer_id: id,
      engine_reference: "bank:website",
      fingerprint: undefined,
      prepare: undefined,
    })
    const started = {
      ...work("c-1"),
      fingerprint: expect.stringMatching(/^\w{16,}$/),
      account: expect.objectContaining({ isByHand: true }),
      prepare: expect.anything(),
    }
    expect(works).toStrictEqual(
      [{ ...started, needs: Duration.millis(usualMs) }, work("c-9")].map((one) => ({
        ...one,
        looks: [],
        takesMs: usualMs,
        tailMs: usualMs,
      })),
    )
    expect(unlearnt).toStrictEqual(
      [started, work("c-9")].map((one) => ({ ...one, looks: [], takesMs: undefined, tailMs: 0 })),
    )
    expect(shown).toEqual(["c-9", "bank:website"])
  })
})
