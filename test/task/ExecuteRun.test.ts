/** Whole runs in virtual time: tries, limits, deadline, what is told meanwhile, interruption at any moment. */
import { describe, expect } from "@effect/vitest"
import { Duration, Effect, Layer } from "effect"
import { Landing, LandingFailed } from "../../src/landing/Landing.ts"
import { idOf, makePlace, minute, night, ready, second, customers } from "./ScriptedNight.ts"
import { outOfService, blockedUser } from "./ScriptedNight.ts"
import { succeeded } from "./ScriptedNight.ts"
import type { NightTask, NightEnd } from "./ScriptedNight.ts"
import { accepted, completed, requestMs, results, state, working, lost } from "./ScriptedService.ts"
import type { Script } from "./ScriptedService.ts"
import { effect } from "../harness/Steps.ts"
import type { ProgressEvent } from "../../src/task/Progress.ts"
import { anId } from "../harness/Id.ts"

const temporary = state("TEMPORARY_ERROR", "OUT_OF_SERVICE")
const blocked = state("AUTH_ERROR", "BLOCKED_USER", { authentication_status: "BLOCKED_USER" })

effect(
  "a temporary error is tried again with growing waits until max_attempts, then left for a rerun",
  function* () {
    const external = new Set<string>()
    const end = yield* night({
      script: {
        start: (call, times) => (external.add(call.external_execution_id), accepted(`${times}`)),
        state: () => temporary,
      },
    })
    expect([end.starts, external.size, end.verdict("c-1")]).toEqual([3, 3, outOfService])
    const [first = 0, next = 0, last = 0] = end.timesOf("start")
    expect(next - first).toBeGreaterThanOrEqual(24 * second)
    expect(last - next).toBeGreaterThanOrEqual(48 * second)
    const attempts = end.state.tasks.get(idOf("c-1"))?.attempts ?? []
    expect(attempts.map(({ drained }) => drained)).toEqual([true, true, true])
    const rerun = yield* night({ facts: end.facts.slice(2) })
    expect([rerun.starts, rerun.verdict("c-1")]).toEqual([1, succeeded])
  },
)

describe("a rejected login", () => {
  effect("is sent once; other tasks with it release their slots unsent, so that others run", function* () {
    const end = yield* night({
      rules: { limits: { max_in_flight: 1, per_engine: 1 } },
      tasks: [
        { customer: "c-1", fingerprint: "one" },
        // Only its preparation tells that it is the same login.
        { customer: "c-2", prepare: () => ready("one") },
        { customer: "c-3", fingerprint: "one" },
        { customer: "c-4", fingerprint: "two" },
      ],
      script: { state: (id) => (id.startsWith("e-c-4") ? completed : blocked) },
    })
    expect(end.isOver).toBe(true)
    expect(end.verdicts()).toEqual([blockedUser, blockedUser, blockedUser, succeeded])
    expect([end.starts, end.countOf("start", "c-4"), end.rejections]).toEqual([
      2,
      1,
      [["one", "BLOCKED_USER"]],
    ])
    // Together with the end that says so.
    const order = end.facts.map(({ _tag }) => _tag)
    expect(order.indexOf("CredentialRejected")).toBe(order.indexOf("AttemptClosed") + 1)
  })
})

describe("a run", () => {
  effect("frees the slot when an execution closes, not when its results are read", function* () {
    const end = yield* night({
      tasks: customers(2),
      rules: { limits: { max_in_flight: 1, per_engine: 1 } },
      script: { state: () => completed, results: () => results(false) },
    })
    const [, next = Infinity] = end.timesOf("start")
    expect(next).toBeLessThan(minute)
  })

  effect("starts nothing after its deadline, and settles everything in one go", function* () {
    const end = yield* night({ tasks: customers(50), rules: { deadlineAt: -1 } })
    expect([end.isOver, end.calls]).toEqual([true, []])
    expect(new Set(customers(50).map(({ customer }) => end.verdict(customer)))).toEqual(
      new Set(["unfinished DEADLINE_REACHED service"]),
    )
  })

  effect("settles a task that its job no longer names, but follows its execution in flight", function* () {
    const tasks: ReadonlyArray<NightTask> = [{ customer: "c-1", dropped: true }]
    const end = yield* night({ tasks })
    expect([end.starts, end.verdict("c-1")]).toEqual([0, "unfinished NIGHT_OVER service"])
    const cut = yield* night({ cutAfter: "1 second", script: { state: () => working } })
    const next = yield* night({ tasks, facts: cut.facts.slice(2) })
    expect([next.starts, next.verdict("c-1")]).toEqual([0, succeeded])
  })

  effect(
    "polls what comes due together, and nothing long after its time [decision 6 together] [decision 6 in time]",
    function* () {
      const place = makePlace()
      const plans = customers(200).map((task, index) => ({ ...task, looks: [20 * second + 7 * index] }))
      const end = yield* night({
        place,
        tasks: plans,
        rules: {
          limits: { max_in_flight: 200, per_engine: 200 },
          polling: { min: Duration.seconds(1), max: Duration.minutes(1) },
        },
        script: { state: () => (place.world.now() < minute ? working : completed) },
      })
      const looks = plans.map(({ customer }) => end.timesOf("state", `e-${customer}-1`)[0] ?? 0)
      const lateMs = plans.map(({ customer, looks: [planned = 0] }, index) => {
        const acceptedAt = (end.timesOf("start", customer)[0] ?? 0) + requestMs
        return (looks[index] ?? 0) - acceptedAt - planned
      })
      expect([Math.min(...lateMs), Math.max(...lateMs) <= second / 8]).toEqual([0, true])
      // They come due at 200 moments within seven seconds.
      expect(new Set(looks).size).toBeLessThan(7 * 8)
    },
  )
})

effect("a ledger or a landing that cannot be written stops the run", function* () {
  const full = new LandingFailed({ path: "landing", message: "disk full" })
  const landing = Layer.succeed(
    Landing,
    Landing.of({
      land: () => Effect.fail(full),
      list: () => Effect.succeed([]),
      damage: () => Effect.succeed([]),
      read: () => Effect.die("not asked for"),
      landAttachment: () => Effect.fail(full),
      hasAttachment: () => Effect.die("not asked for"),
    }),
  )
  const failure = yield* Effect.flip(night({ place: { ...makePlace(), landing } }))
  expect(failure).toBe(full)
})

const task_id = idOf("c-1")
/** Without the moments, of which each lies ahead of the one before. */
const withoutTimes = (told: ReadonlyArray<ProgressEvent>) =>
  told.map((event) => (event._tag === "Waiting" ? { ...event, until: 0 } : event))
const timesIn = (told: ReadonlyArray<ProgressEvent>) =>
  told.flatMap((event) => (event._tag === "Waiting" ? [event.until] : []))

/** The last start came when the first wait was over, and within a second of it. */
const expectStartAfterWait = ({ timesOf }: NightEnd, told: ReadonlyArray<ProgressEvent>): void => {
  const next = timesOf("start").at(-1) ?? 0
  const [until = 0] = timesIn(told)
  expect(next - until).toBeGreaterThanOrEqual(0)
  expect(next - until).toBeLessThan(second)
}

effect("a run reports when a task waits for another try", function* () {
  const told: Array<ProgressEvent> = []
  const end = yield* night({
    told,
    script: {
      start: (_, times) => accepted(`${times}`),
      state: (id) => (id === "e-1" ? state("TEMPORARY_ERROR", "OUT_OF_SERVICE") : completed),
    },
  })
  expect(withoutTimes(told)).toEqual([{ _tag: "Waiting", task_id, why: "OUT_OF_SERVICE", until: 0 }])
  expectStartAfterWait(end, told)
  // The ledger has the same of the wait.
  const waits = end.facts.flatMap((fact) => (fact._tag === "TaskWaits" ? fact : []))
  expect(waits).toMatchObject([{ reason: "OUT_OF_SERVICE" }])
  expect(waits.map(({ until }) => Date.parse(until))).toEqual(timesIn(told).map(Math.trunc))
})

/** A service that remembers what it runs, and answers a second start of the same customer with a conflict. */
const remembering = (mood: (times: number) => boolean) => {
  const open = new Map<string, string>()
  const made: Array<string> = []
  const script: Script = {
    start: (call, times) => {
      const external = open.get(call.customer_id)
      const id = `${call.customer_id}-${made.length}`
      if (external !== undefined)
        return {
          _tag: "AlreadyExecuting",
          body: { bytes: new Uint8Array(), json: undefined },
          view: {
            execution_id: anId(`e-${made.findLast((one) => one.startsWith(call.customer_id))}`),
            session_id: anId("s"),
            external_execution_id: external,
          },
        }
      open.set(call.customer_id, call.external_execution_id)
      made.push(id)
      return mood(times) ? lost : accepted(id)
    },
    state: (id, times) => {
      if (times < 4) return working
      open.delete(id.split("-").slice(1, 3).join("-"))
      return id.endsWith("-0") ? temporary : completed
    },
    results: (_, times) => results(times > 2),
  }
  return { script, made }
}

describe("an interruption", () => {
  /** In starts, looks, reads, the wait for a second try, and that one; what comes next is told by Next.test. */
  const cuts = [98, 231, 888, 4_348, 9_052, 18_845, 27_192, 39_235]

  /** Three tasks, and a second try for the one whose first execution met a temporary error. */
  const finish = Effect.fnUntraced(function* (
    cut: number,
    isLost: boolean,
    ends: ReadonlyArray<{ readonly killAfter: number } | { readonly cutAfter: number }>,
  ) {
    const place = makePlace()
    const service = remembering((times) => isLost && times === 1)
    const tasks = customers(3)
    for (const end of ends) yield* night({ place, tasks, script: service.script, ...end })
    const end = yield* night({ place, tasks, script: service.script })
    const attempts = [...end.state.tasks.values()].flatMap((task) => task.attempts)
    expect({
      cut,
      verdicts: tasks.map(({ customer }) => end.verdict(customer)),
      known: attempts.flatMap(({ execution_id }) => execution_id ?? []).toSorted(),
      count: service.made.length,
    }).toEqual({
      cut,
      verdicts: tasks.map(() => succeeded),
      known: service.made.map((id) => `e-${id}`).toSorted(),
      count: 4,
    })
    for (const attempt of attempts)
      expect([attempt.closed !== undefined, attempt.drained]).toEqual([true, true])
  })

  effect(
    "or a kill at any moment leaves what the next process finishes, without an extra start",
    function* () {
      for (const cut of cuts) {
        yield* finish(cut, true, [{ cutAfter: cut }, { cutAfter: 2 * cut }])
        yield* finish(cut, false, [{ killAfter: cut }])
      }
    },
  )
})
