/** Whole runs in virtual time: tries, breaker, limits, deadline, interruption at any moment. */
import { describe, expect, it } from "@effect/vitest"
import { Duration, Effect, Layer } from "effect"
import type { StartCall } from "../../src/client/Service.ts"
import { Landing, LandingFailed } from "../../src/landing/Landing.ts"
import type { NightPicture } from "../../src/task/NightPicture.ts"
import type { Fact } from "../../src/ledger/Fact.ts"
import {
  hour,
  idOf,
  makePlace,
  minute,
  night,
  ready,
  rules,
  run_id,
  second,
  sharing,
  customers,
  succeeded,
} from "./ScriptedNight.ts"
import { accepted, challenge, completed, results, state, working } from "./ScriptedService.ts"
import type { NightTask } from "./ScriptedNight.ts"
import { anId } from "../harness/Id.ts"
import { effect } from "../harness/Steps.ts"

const temporary = state("TEMPORARY_ERROR", "OUT_OF_SERVICE")
const blocked = state("AUTH_ERROR", "BLOCKED_USER", { authentication_status: "BLOCKED_USER" })

describe("a temporary error", () => {
  effect("is tried again with growing waits until max_attempts, then left for a rerun", function* () {
    const external = new Set<string>()
    const end = yield* night({
      script: {
        start: (call, times) => (external.add(call.external_execution_id), accepted(`${times}`)),
        state: () => temporary,
      },
    })
    expect([end.countOf("start"), external.size, end.verdict("c-1")]).toEqual([
      3,
      3,
      "unfinished OUT_OF_SERVICE service",
    ])
    const [first = 0, next = 0, last = 0] = end.timesOf("start")
    expect(next - first).toBeGreaterThanOrEqual(24 * second)
    expect(last - next).toBeGreaterThanOrEqual(48 * second)
    expect(end.state.tasks.get(idOf("c-1"))?.attempts.map(({ drained }) => drained)).toEqual([
      true,
      true,
      true,
    ])
    const rerun = yield* night({ facts: end.facts.slice(2) })
    expect([rerun.countOf("start"), rerun.verdict("c-1")]).toEqual([1, succeeded])
  })
})

describe("a rejected login", () => {
  effect(
    "is sent once, and no other task with the same login starts, in this run or a later one",
    function* () {
      const place = makePlace()
      const tasks = [...sharing("one", "c-1", "c-2"), { customer: "c-3", fingerprint: "two" }]
      const end = yield* night({
        place,
        tasks,
        script: { state: (id) => (id.startsWith("e-c-3") ? completed : blocked) },
      })
      expect([end.countOf("start", "c-1"), end.countOf("start", "c-2"), end.rejections]).toEqual([
        1,
        0,
        [["one", "BLOCKED_USER"]],
      ])
      expect(end.verdicts("c-1", "c-2", "c-3")).toEqual([
        "failed BLOCKED_USER customer",
        "failed BLOCKED_USER customer",
        succeeded,
      ])
    },
  )

  effect("because of a challenge that we aborted is sent only once in the same run, too", function* () {
    const aborted = state("ABORTED", "CLIENT_CANCELLED", { authentication_status: "INCORRECT_MFA" })
    const end = yield* night({
      tasks: sharing("one", "c-1", "c-2"),
      script: { state: (_, times) => (times === 1 ? challenge : aborted) },
    })
    expect([end.countOf("start"), end.rejections]).toEqual([1, [["one", "INCORRECT_MFA"]]])
    expect(end.verdicts("c-1", "c-2")).toEqual([
      "failed CUSTOMER_INTERVENTION_REQUIRED customer",
      "failed INCORRECT_MFA customer",
    ])
  })

  effect(
    "is not sent again if the service uses one of our own reasons for an execution that it forgot",
    function* () {
      const end = yield* night({
        tasks: sharing("one", "c-1", "c-2"),
        script: { state: () => state("UNKNOWN", "EXECUTION_GONE") },
      })
      expect([end.countOf("start"), end.rejections]).toEqual([1, [["one", "EXECUTION_GONE"]]])
      expect(end.verdict("c-1")).toBe("failed EXECUTION_GONE engineer")
    },
  )

  effect("releases the slot of a task that is not sent, so that others run", function* () {
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
    expect(end.verdicts("c-1", "c-2", "c-3", "c-4")).toEqual([
      "failed BLOCKED_USER customer",
      "failed BLOCKED_USER customer",
      "failed BLOCKED_USER customer",
      succeeded,
    ])
    expect([end.countOf("start"), end.countOf("start", "c-4")]).toEqual([2, 1])
  })

  effect("that was refused in an earlier run is not sent", function* () {
    const refusedBefore: Fact = {
      _tag: "CredentialRejected",
      run_id,
      task_id: anId("older"),
      fingerprint: "one",
      customer_id: anId("c-9"),
      engine_reference: anId("bank"),
      reason: "UNHANDLED_AUTH_ERROR",
    }
    const tasks = [{ customer: "c-1", fingerprint: "one" }]
    const end = yield* night({ tasks, facts: [refusedBefore] })
    expect([end.countOf("start"), end.verdict("c-1")]).toEqual([0, "failed UNHANDLED_AUTH_ERROR engineer"])
    const released = yield* night({
      tasks,
      facts: [refusedBefore, { _tag: "CredentialReleased", fingerprint: "one" }],
    })
    expect(released.verdict("c-1")).toBe(succeeded)
  })

  effect("opens the breaker with an unknown value too, together with its closing", function* () {
    const end = yield* night({
      tasks: [{ customer: "c-1", fingerprint: "one" }],
      script: { state: () => state("OF_TOMORROW", "OF_TOMORROW") },
    })
    expect([end.verdict("c-1"), end.rejections]).toEqual([
      "failed OF_TOMORROW engineer",
      [["one", "OF_TOMORROW"]],
    ])
    const order = end.facts.map(({ _tag }) => _tag)
    expect(order.indexOf("CredentialRejected")).toBe(order.indexOf("AttemptClosed") + 1)
  })

  effect("that is known only once the engine is seen still never runs twice at once", function* () {
    const late = { prepare: () => ready("one") }
    const end = yield* night({
      tasks: [
        { customer: "c-1", ...late },
        { customer: "c-2", ...late },
      ],
      script: { state: () => blocked },
    })
    expect([end.countOf("start"), end.verdict("c-1"), end.verdict("c-2")]).toEqual([
      1,
      "failed BLOCKED_USER customer",
      "failed BLOCKED_USER customer",
    ])
  })
})

describe("a run", () => {
  effect("respects its limits, and still ends every task", function* () {
    const open = new Set<string>()
    let most = 0
    const end = yield* night({
      tasks: customers(40),
      rules: { limits: { max_in_flight: 9, per_engine: 7 } },
      script: {
        start: (call) => (
          open.add(`e-${call.customer_id}`),
          (most = Math.max(most, open.size)),
          accepted(call.customer_id)
        ),
        state: (id, times) => (times < 5 ? working : (open.delete(id), completed)),
      },
    })
    expect([end.isOver, most]).toEqual([true, 7])
    for (const { customer } of customers(40)) expect(end.verdict(customer)).toBe(succeeded)
  })

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
    const end = yield* night({ tasks: customers(500), rules: { deadlineAt: -1 } })
    expect([end.isOver, end.calls]).toEqual([true, []])
    expect(new Set(customers(500).map(({ customer }) => end.verdict(customer)))).toEqual(
      new Set(["unfinished DEADLINE_REACHED service"]),
    )
  })

  effect("checks an engine again until it is available", function* () {
    const end = yield* night({
      tasks: [{ customer: "c-1", prepare: (times) => (times < 4 ? { _tag: "Unavailable" } : ready("one")) }],
    })
    expect([end.countOf("start"), end.verdict("c-1")]).toEqual([1, succeeded])
    expect(end.timesOf("start")[0]).toBeGreaterThan(2 * minute)
  })

  effect("settles a task that its job no longer names, but follows its execution in flight", function* () {
    const tasks: ReadonlyArray<NightTask> = [{ customer: "c-1", dropped: true }]
    const end = yield* night({ tasks })
    expect([end.countOf("start"), end.verdict("c-1")]).toEqual([0, "unfinished NIGHT_OVER service"])
    const cut = yield* night({ cutAfter: "1 second", script: { state: () => working } })
    const next = yield* night({ tasks, facts: cut.facts.slice(2) })
    expect([next.countOf("start"), next.verdict("c-1")]).toEqual([0, succeeded])
  })

  effect("that is resumed shows what is over, and the tasks that its job has named since", function* () {
    const [c1, c2, late] = [{ customer: "c-1" }, { customer: "c-2" }, { customer: "late" }]
    const script = { state: (id: string) => (id === "e-c-1-1" ? completed : working) }
    const cut = yield* night({ tasks: [c1, c2], cutAfter: "2 minutes", script })
    let picture: NightPicture | undefined
    yield* night({
      tasks: [c1, c2, late],
      facts: cut.facts.slice(2),
      script,
      cutAfter: "2 minutes",
      rules: { limits: { max_in_flight: 2, per_engine: 2 } },
      // The new one takes a slot first.
      acts: [[100, (held) => void (picture = held.look())]],
    })
    expect(picture?.total).toMatchObject({ tasks: 3, running: 2, queued: 0, done: { succeeded: 1 } })
  })

  effect("that is resumed counts a task as running, whatever its last end was", function* () {
    const tasks = customers(1)
    const before = yield* night({
      tasks,
      script: { state: () => temporary },
      rules: { deadlineAt: 20 * second },
    })
    expect(before.verdict("c-0")).toBe("unfinished OUT_OF_SERVICE service")
    let picture: NightPicture | undefined
    yield* night({
      tasks,
      facts: before.facts.slice(2),
      acts: [[100, (held) => void (picture = held.look())]],
    })
    const done = { succeeded: 0, partial: 0, failed: 0, skipped: 0, unfinished: 0 }
    expect(picture?.total).toMatchObject({ tasks: 1, running: 1, done })
  })

  effect("that sleeps wakes in time, however long it has been running", function* () {
    const place = makePlace()
    const end = yield* night({
      place,
      script: {
        start: (_, times) => accepted(`${times}`),
        state: (id) => (id !== "e-1" ? completed : place.world.now() < hour ? working : temporary),
      },
    })
    const [, next = 0] = end.timesOf("start")
    expect([end.countOf("start"), next < hour + 2 * minute]).toEqual([2, true])
  })

  effect("of an older date is collected: followed, probed and read, but nothing is started", function* () {
    const cut = yield* night({
      tasks: customers(3),
      cutAfter: "1 second",
      script: { state: () => working },
    })
    const next = yield* night({
      tasks: [...customers(3), { customer: "late" }],
      facts: cut.facts.slice(4),
      mode: "collect",
    })
    expect(next.countOf("start")).toBe(0)
    expect(customers(3).map(({ customer }) => next.verdict(customer))).toEqual(
      Array.from({ length: 3 }, () => succeeded),
    )
    expect(next.verdict("late")).toBe("unfinished NIGHT_OVER service")
  })

  effect("of an older date is not retried if it ends in a temporary error", function* () {
    const cut = yield* night({ cutAfter: "1 second", script: { state: () => working } })
    const again = ({ customer_id }: StartCall, times: number) => accepted(`${customer_id}-again-${times}`)
    const tried = { facts: cut.facts.slice(2), script: { start: again, state: () => temporary } }
    const collected = yield* night({ ...tried, mode: "collect" })
    expect([collected.isOver, collected.countOf("start"), collected.verdict("c-1")]).toEqual([
      true,
      0,
      "unfinished OUT_OF_SERVICE service",
    ])
    // The night itself would have gone on.
    expect((yield* night(tried)).countOf("start")).toBe(2)
  })
})

effect("a ledger or a landing that cannot be written stops the run", function* () {
  const full = new LandingFailed({ path: "landing", message: "disk full" })
  const landing = Layer.succeed(
    Landing,
    Landing.of({
      land: () => Effect.fail(full),
      list: () => Effect.succeed([]),
      read: () => Effect.die("not asked for"),
      landAttachment: () => Effect.fail(full),
    }),
  )
  const failure = yield* Effect.flip(night({ place: { ...makePlace(), landing } }))
  expect(failure).toBe(full)
})

it("runs by the rules that a job has by default", () => {
  expect(rules.polling).toEqual({ min: Duration.millis(2 * second), max: Duration.millis(minute) })
})
