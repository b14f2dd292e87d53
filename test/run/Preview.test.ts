/** Promise 20: what a preview says is what the run then does, in nights of every kind. */
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { Clock, Duration, Effect, Option } from "effect"
import { HttpClient, HttpClientResponse } from "effect/http"
import { accessKey, type RunId } from "../../src/service/Ids.ts"
import { selectTasks, tasksMeant, type Selection } from "../../src/cli/commands/Run.ts"
import { subjectsOfPart } from "../../src/cli/Jobs.ts"
import type { Assignment, Job } from "../../src/jobs/Job.ts"
import { Ledger } from "../../src/ledger/Ledger.ts"
import { subjectOf, verdictOfTask } from "../../src/ledger/RunState.ts"
import { deliveredInNight, nightAround } from "../../src/ledger/WholeNight.ts"
import { runNight } from "../../src/run/Nightly.ts"
import { previewNight } from "../../src/run/Preview.ts"
import { Sandbox } from "../../src/sandbox/server/Sandbox.ts"
import { anId } from "../harness/Id.ts"
import { customer, features, jobOf, live, makeNights, options, wait } from "../harness/SmallNights.ts"

interface Told {
  /** What the login makes of its executions. */
  readonly words: string
  readonly engine: string
  /** Before the preview: another password, another job's run that has it open, no longer in the job, or nothing. */
  readonly change: "changed" | "open" | "left" | "released" | "nothing"
}

const words = [
  "ok",
  "partial",
  "end-BLOCKED_USER",
  "end-INCORRECT_CREDENTIALS",
  "end-FAILED",
  "end-TIMEOUT",
  "end-NETWORK_ERROR",
  "end-USER_CANCELLED",
  "ok+run-4000",
  "missing",
] as const
const tolds = fc.array(
  fc.record<Told>({
    words: fc.constantFrom(...words),
    engine: fc.oneof(
      { weight: 5, arbitrary: fc.constant("sandbox-bank:website") },
      {
        weight: 1,
        arbitrary: fc.constantFrom("sandbox-always:website", "sandbox-maintenance:website", "no:way"),
      },
    ),
    change: fc.constantFrom("changed", "open", "left", "released", "nothing", "nothing", "nothing"),
  }),
  { minLength: 1, maxLength: 9 },
)

const assignmentOf = ({ words, engine }: Told, index: number, password: string): Assignment => {
  const pace = words.includes("run-") ? "queue-1" : "queue-1+run-5"
  const one = customer(`c-${index}`, `${words === "missing" ? "ok" : words}+${pace}`, password)
  if (one.login._tag !== "Parameters") return one
  const { parameters } = one.login
  const unset = { _tag: "Reference", reference: { _tag: "Env", name: "NOT_SET" } } as const
  return {
    ...one,
    engine_reference: anId(engine),
    features: features("accounts_read", "customer_information_read"),
    login: {
      ...one.login,
      tokenized_access: false,
      parameters: words === "missing" ? { ...parameters, password: unset } : parameters,
    },
  }
}

const jobFor = (told: ReadonlyArray<Told>, isAfter: boolean): Job => ({
  ...jobOf(
    told.flatMap((one, index) =>
      isAfter && one.change === "left"
        ? []
        : [assignmentOf(one, index, isAfter && one.change === "changed" ? "another-password" : "a-password")],
    ),
  ),
  name: "job",
  // An engine that is away is tried again seldom: it is for hours.
  retry: { max_attempts: 2, base: Duration.seconds(1), max: Duration.minutes(15) },
  execution: { ...jobOf([]).execution, max_wait: Duration.hours(2) },
})

/** What a person, another night or another job does between the first run and the preview. */
const change = Effect.fnUntraced(function* (told: ReadonlyArray<Told>) {
  const ledger = yield* Ledger
  const changeOf = (customer_id = "") => told[Number(customer_id.slice(2))]?.change
  for (const { rejected } of yield* ledger.accounts)
    for (const { fingerprint, customer_id } of rejected)
      if (changeOf(customer_id) === "released")
        yield* ledger.append([{ _tag: "CredentialReleased", fingerprint }])
  const run_id = anId("other.2026-11-21")
  const job = { job: "other", job_path: "other.yaml", run_date: "2026-11-21", tool_version: "test" }
  yield* ledger.append([{ _tag: "RunStarted", run_id, ...job }])
  for (const [index, { change: now, engine }] of told.entries()) {
    if (now !== "open") continue
    const access = { customer_id: anId(`c-${index}`), engine_reference: anId(engine) }
    const task_id = anId(`${run_id}/${access.customer_id}/${engine}`)
    const keys = { run_id, task_id, attempt: 1 }
    const id = { execution_id: anId(`other-${index}`), http_status: 202 }
    yield* ledger.append([
      { _tag: "TaskPlanned", run_id, task_id, ...access, features: [] },
      { _tag: "StartIntended", ...keys, external_execution_id: `x-${index}`, probe: false },
      { _tag: "StartAnswered", ...keys, answer: "accepted", ...id },
    ])
  }
})

type Command =
  | { readonly _tag: "run" | "new" | "tomorrow" }
  | { readonly _tag: "part"; readonly customers: ReadonlyArray<string> }
  | ({ readonly _tag: "rerun" } & Partial<Selection>)
const none = { only: [], never: [], customers: [], engines: [], features: [] }
const nothingSelected: Selection = { failed: false, ...none }

const requestOf = Effect.fnUntraced(function* (job: Job, command: Command) {
  if (command._tag === "part") {
    const only = subjectsOfPart(job, { customers: command.customers, first: Option.none() })
    return { further: true, parent: undefined, only, isPart: true }
  }
  if (command._tag !== "rerun") return { further: command._tag === "new", parent: undefined, only: undefined }
  const ledger = yield* Ledger
  const newest = (yield* ledger.runs).findLast(({ fact }) => fact.job === "job")?.fact.run_id
  const state = newest === undefined ? undefined : yield* ledger.state(newest)
  if (state === undefined) return { further: false, parent: undefined, only: undefined }
  const night = yield* nightAround(ledger, state, ledger.state)
  const { _tag, ...selection } = { ...nothingSelected, ...command }
  const tasks = selectTasks(tasksMeant(night, state, false), selection, deliveredInNight(night))
  return { further: true, parent: state.started.run_id, only: new Set(tasks.map(subjectOf)) }
})

const startedSoFar = Effect.gen(function* () {
  const { executions } = yield* (yield* Sandbox).truth
  return executions.map((one) => `${one.customer_id}/${one.engine_reference}`).toSorted()
})

/** Tasks of a run by what they are about, with the outcome and the reason that they have. */
const tasksOf = Effect.fnUntraced(function* (run_id: RunId) {
  const state = yield* (yield* Ledger).state(run_id)
  return new Map([...(state?.tasks.values() ?? [])].map((task) => [subjectOf(task), verdictOfTask(task)]))
})

const countIn = (keys: ReadonlyArray<string>, key: string): number => keys.filter((one) => one === key).length

/** Previews and acts on the same state: what was said and what was done, as the service and the ledger know it. */
const sayAndDo = Effect.fnUntraced(function* (job: Job, command: Command) {
  const request = yield* requestOf(job, command)
  const before = yield* startedSoFar
  const said = yield* previewNight(job, request)
  const isUntouched = (yield* startedSoFar).length === before.length
  const { run_id } = said.plan
  const settled = yield* tasksOf(run_id)
  yield* runNight(job, { ...options, ...request })
  const after = yield* startedSoFar
  // Of what is open nobody knows yet how it ends, and whether it is tried again.
  const followed = new Set(said.followed.map(accessKey))
  const started = [...new Set(after)].filter(
    (key) => countIn(after, key) > countIn(before, key) && !followed.has(key),
  )
  const isOver = (key: string) => (settled.get(key)?.outcome ?? "unfinished") !== "unfinished"
  const removed = said.removed.map(
    (one) => [`${one.customer_id}/${one.engine_reference}`, one.reason] as const,
  )
  const why = [...said.notStarted.map((one) => [accessKey(one), one.reason] as const), ...removed]
  const left = [...(yield* tasksOf(run_id))].map(([key, { reason }]) => [key, reason] as const)
  const planned = new Set([...said.plan.tasks, ...said.plan.settled].map(accessKey))
  // Only what the service has, of the task itself or of its account, can be followed.
  const atService = new Set(
    said.plan.tasks.filter((one) => before.includes(accessKey(one))).map(({ account }) => account.account),
  )
  // Another job's run that is only in the ledger is waited for, too.
  const ofOther = yield* tasksOf(anId("other.2026-11-21"))
  const madeUp = said.followed
    .filter((one) => !atService.has(one.account.account) && !ofOther.has(accessKey(one)))
    .map(accessKey)
  const isMeant = ([key, reason]: readonly [string, string]) =>
    (planned.has(key) || reason === "NOT_IN_JOB") &&
    !isOver(key) &&
    !started.includes(key) &&
    !followed.has(key)
  const over = said.plan.tasks
    .map(accessKey)
    .filter((key) => isOver(key) && !followed.has(key))
    .toSorted()
  return {
    isUntouched,
    said: {
      starts: said.starting.map(accessKey).toSorted(),
      why: why.filter(([key]) => !isOver(key)).toSorted(),
      followed: madeUp,
      over: said.over.map(accessKey).toSorted(),
    },
    done: { starts: started.toSorted(), why: left.filter(isMeant).toSorted(), followed: [], over },
  }
})

const commands = fc.oneof(
  fc.constantFrom<Command>({ _tag: "run" }, { _tag: "new" }, { _tag: "tomorrow" }),
  fc.record({
    _tag: fc.constant("part" as const),
    customers: fc.uniqueArray(fc.constantFrom("c-0", "c-1", "c-2", "c-3"), { minLength: 1 }),
  }),
  fc.constant<Command>({ _tag: "rerun" }),
  fc.record({ _tag: fc.constant("rerun" as const), failed: fc.boolean() }),
)

const onBank = (words: string): Told => ({ words, engine: "sandbox-bank:website", change: "nothing" })

describe("a rerun of a night that was cut off", () => {
  /** Cut off while its first task runs; the second has failed, and the third never began. */
  const job = (): Job => ({
    ...jobFor([onBank("ok+run-600"), onBank("end-FAILED"), onBank("ok")], false),
    concurrency: { max_in_flight: 2, per_engine: 2 },
  })
  const cutOff = Effect.timeoutOption(runNight(job(), options), Duration.seconds(6))

  it("that is asked for nothing else only collects, and is no run of its own", () => {
    const nights = Effect.gen(function* () {
      yield* cutOff
      const only = new Set(["c-0/sandbox-bank:website"])
      const asked = { further: true, parent: "job.2026-11-21", only }
      const { run_id, state } = yield* runNight(job(), { ...options, ...asked })
      const runs = (yield* (yield* Ledger).runs).map(({ fact }) => fact.run_id)
      const reasons = [...state.tasks.values()].map((task) => verdictOfTask(task).reason)
      return { run_id, runs, first: reasons[0], started: countIn(yield* startedSoFar, [...only].join()) }
    })
    const run_id = "job.2026-11-21"
    expect(live(makeNights(), nights)).toEqual({ run_id, runs: [run_id], first: "COMPLETED", started: 1 })
  })
})

describe("a third login to an account of which nobody knows how the last two ended", () => {
  const job = (count: number): Job => jobFor(Array<Told>(count).fill(onBank("ok")), false)
  /** Two lost logins of these customers, in runs of these dates. */
  const lose = Effect.fnUntraced(function* (
    among: Job,
    customers: ReadonlyArray<string>,
    dates: ReadonlyArray<string>,
  ) {
    const { plan } = yield* previewNight(among, { ...options })
    const ledger = yield* Ledger
    for (const { account, customer_id, engine_reference } of plan.tasks)
      for (const date of customers.includes(customer_id) ? dates : []) {
        const run_id = anId(`other.${date}`)
        const task_id = anId(`${run_id}/${customer_id}/${engine_reference}`)
        const of = { run_id, task_id, attempt: 1, customer_id, engine_reference }
        yield* ledger.append([
          {
            _tag: "StartIntended",
            ...of,
            external_execution_id: `x-${date}-${customer_id}`,
            login: account,
            probe: false,
            max_wait: Duration.toMillis(among.execution.max_wait),
          },
        ])
      }
    yield* Effect.sleep("150 minutes")
  })
  const after = (
    count: number,
    lost: ReadonlyArray<string>,
    dates: ReadonlyArray<string>,
    command: Command = { _tag: "run" },
  ) =>
    live(
      makeNights({}, { startMs: Date.UTC(2026, 10, 21, 2) }),
      Effect.andThen(lose(job(count), lost, dates), sayAndDo(job(count), command)),
    )
  const bank = (one: string) => `${one}/sandbox-bank:website`
  const older = ["2026-11-19", "2026-11-20"]
  it.each([
    ["is sent where nobody else could show that the engine is well", 1, ["c-0"], older, ["c-0"]],
    ["waits for another night if one was lost in this one", 1, ["c-0"], ["2026-11-20", "2026-11-21"], []],
    ["is sent after another account was accepted", 2, ["c-0"], ["2026-11-20", "2026-11-21"], ["c-0", "c-1"]],
    ["waits for another night if both were of this one", 2, ["c-0"], ["2026-11-21", "2026-11-21.2"], ["c-1"]],
    ["is sent by one account first if all wait for it", 2, ["c-0", "c-1"], older, ["c-0", "c-1"]],
    ["waits if all wait, each with one of this night", 2, ["c-0", "c-1"], ["2026-11-20", "2026-11-21"], []],
  ])("%s, as the preview says [promise 20]", (_, count, lost, dates, starts) => {
    const { said, done } = after(count, lost, dates)
    expect({ said, starts: said.starts }).toEqual({ said: done, starts: starts.map(bank) })
    // It is not the engine that is away: nobody knows how those two ended.
    const others = lost.filter((one) => !starts.includes(one))
    expect(said.why).toEqual(others.map((one) => [bank(one), "START_UNKNOWN"]))
  })

  it("waits for the whole job if a part of it leaves out who could show that the engine is well [promise 20]", () => {
    const { said, done } = after(2, ["c-0"], older, { _tag: "part", customers: ["c-0"] })
    expect(said).toEqual(done)
    expect([said.starts, said.why]).toEqual([[], [[bank("c-0"), "START_UNKNOWN"]]])
  })
})

describe("an account whose login may still be open at the service", () => {
  it("gets no other one, as the preview says: its start was answered 405, and the run is over [promise 20] [end START_UNKNOWN busy]", () => {
    const job = jobFor([onBank("ok")], false)
    let isLost = false
    const through = (client: HttpClient.HttpClient) =>
      HttpClient.transform(client, (answer, request) => {
        if (isLost || !/\/init\/v1\//.test(request.url)) return answer
        isLost = true
        return Effect.succeed(HttpClientResponse.fromWeb(request, new Response(null, { status: 405 })))
      })
    const nights = Effect.gen(function* () {
      yield* runNight(job, options)
      yield* Effect.sleep("10 minutes")
      return yield* sayAndDo(job, { _tag: "rerun" })
    })
    const { said, done } = live(makeNights({}, { through }), nights)
    expect(said).toEqual(done)
    expect(said.why).toEqual([["c-0/sandbox-bank:website", "START_UNKNOWN"]])
  })
})

describe("a preview", () => {
  it("says of a night that was cut off who left the job, and whose login is in use [plan removed] [plan waiting]", () => {
    const words = ["ok+run-600", "ok+run-600", "ok", "ok"]
    const job: Job = { ...jobFor(words.map(onBank), false), concurrency: { max_in_flight: 2, per_engine: 2 } }
    const [first, second, third] = job.assignments as readonly [Assignment, Assignment, Assignment]
    const left: Job = { ...job, assignments: [second, third] }
    const moved: Job = { ...job, assignments: [second, third, { ...first, customer_id: anId("c-9") }] }
    const seen = Effect.fnUntraced(function* (after: Job, days: number) {
      yield* Effect.timeoutOption(runNight(job, options), Duration.seconds(6))
      yield* wait(days)
      const { starting, followed, waiting, removed, leaving } = yield* previewNight(after, options)
      const ids = [starting, followed, waiting].map((some) => some.map(({ customer_id }) => customer_id))
      const gone = removed.map(({ customer_id, reason }) => `${customer_id} ${reason}`)
      return { ids, removed: gone, leaving, ...(yield* sayAndDo(after, { _tag: "run" })) }
    })
    const resumed = live(makeNights(), seen(left, 0))
    expect(resumed).toMatchObject({ ids: [["c-2"], ["c-1"], []], removed: ["c-3 NOT_IN_JOB"], leaving: 1 })
    expect(resumed.said).toEqual(resumed.done)
    const next = live(makeNights(), seen(moved, 1))
    expect(next).toMatchObject({ ids: [["c-2"], ["c-1", "c-9"], ["c-1", "c-9"]], removed: [], leaving: 0 })
  })

  it("says of a run that is over that nothing is started, and of a rerun that was cut off what it was for [promise 20]", () => {
    const words = ["ok", "end-TIMEOUT", "end-TIMEOUT+run-600"]
    const job = jobFor(words.map(onBank), false)
    const nights = Effect.gen(function* () {
      yield* runNight(job, options)
      const after = yield* sayAndDo(job, { _tag: "run" })
      const rerun = yield* requestOf(job, { _tag: "rerun", failed: true })
      yield* Effect.timeoutOption(runNight(job, { ...options, ...rerun }), Duration.seconds(60))
      return [after, yield* sayAndDo(job, { _tag: "run" })]
    })
    const ends = live(makeNights(), nights)
    expect(ends.map(({ said }) => said)).toEqual(ends.map(({ done }) => done))
    const keys = (...ids: ReadonlyArray<number>) => ids.map((id) => `c-${id}/sandbox-bank:website`)
    expect(ends.map(({ said }) => said.over)).toEqual([keys(0, 1, 2), keys(1)])
  })

  it("of a night that is over counts what did not finish as not started, with its reason [promise 20] [plan left] [plan over]", () => {
    const some = ["ok", "ok+run-4000"].map(onBank)
    const place = { file: "job.yaml", line: 1, column: 1 }
    const sessions = [{ session_id: anId("s-1"), customer_id: undefined, place }]
    const job: Job = { ...jobFor(some, false), sessions, deadline: "22:10", timezone: "UTC" }
    const nights = Effect.gen(function* () {
      yield* runNight(job, options)
      const { plan } = yield* previewNight(job, options)
      return { toRead: plan.sessions, ...(yield* sayAndDo(job, { _tag: "run" })) }
    })
    const { toRead, said, done } = live(makeNights(), nights)
    expect(toRead).toEqual([])
    expect(said).toEqual(done)
    expect(said).toMatchObject({
      over: ["c-0/sandbox-bank:website"],
      why: [["c-1/sandbox-bank:website", "CLIENT_CANCELLED"]],
    })
  })

  it("says what the service says of each engine now, and what it could not ask [promise 20] [preview asks]", () => {
    const job = jobFor(["end-FAILED"].map(onBank), false)
    let status: number | undefined
    const through = (client: HttpClient.HttpClient) =>
      HttpClient.transform(client, (answer, request) =>
        status === undefined
          ? answer
          : Effect.succeed(HttpClientResponse.fromWeb(request, new Response(null, { status }))),
      )
    const asked = { further: true, parent: undefined, only: undefined }
    const nights = Effect.gen(function* () {
      yield* runNight(job, options)
      const said: Array<unknown> = []
      for (status of [undefined, 404, 500]) {
        const { starting, notStarted, unasked } = yield* previewNight(job, asked)
        const silent = unasked.map(({ engine_reference }) => engine_reference)
        said.push([starting.length, notStarted.map(({ reason }) => reason), silent])
      }
      status = 403
      return [...said, (yield* Effect.flip(previewNight(job, asked)))._tag]
    })
    expect(live(makeNights({}, { through }), nights)).toEqual([
      [1, [], []],
      [0, ["ENGINE_UNKNOWN"], []],
      [1, [], ["sandbox-bank:website"]],
      "CatalogueFailed",
    ])
  })

  it("starts nothing that would last beyond the deadline, as the run does not [promise 20]", () => {
    const job = jobFor([onBank("ok+run-600")], false)
    const nights = Effect.gen(function* () {
      yield* runNight(job, options)
      yield* Effect.sleep("23 hours")
      const now = yield* Clock.currentTimeMillis
      const soon = new Date(now + 300_000).toISOString().slice(11, 16)
      return yield* sayAndDo({ ...job, deadline: soon, timezone: "UTC" }, { _tag: "run" })
    })
    const { said, done } = live(makeNights(), nights)
    expect(said).toEqual(done)
    expect(said.why).toEqual([["c-0/sandbox-bank:website", "DEADLINE_REACHED"]])
  })

  it("says what is started, and why the rest is not, whatever became of the night before [promise 20]", () => {
    let started = 0
    let others = 0
    fc.assert(
      fc.property(tolds, commands, fc.option(fc.integer({ min: 1, max: 90 })), (told, command, cutAfter) => {
        const nights = Effect.gen(function* () {
          const first = runNight(jobFor(told, false), options)
          yield* cutAfter === null ? first : Effect.timeoutOption(first, Duration.seconds(cutAfter))
          yield* change(told)
          if (command._tag === "tomorrow") yield* wait(1)
          return yield* sayAndDo(jobFor(told, true), command)
        })
        const { isUntouched, said, done } = live(makeNights(), nights)
        expect({ isUntouched, ...said }).toEqual({ isUntouched: true, ...done })
        started += said.starts.length
        others += said.why.length
      }),
      { numRuns: 12, seed: 20 },
    )
    expect(Math.min(started, others)).toBeGreaterThan(7)
  })
})
