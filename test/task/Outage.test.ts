/** An engine that takes no start, for all of its tasks at once. */
import { describe, expect } from "@effect/vitest"
import { Duration, Effect } from "effect"
import type { StartAnswer } from "../../src/client/Service.ts"
import { hour, makePlace, minute, night, succeeded, engineAway } from "./ScriptedNight.ts"
import { accepted, completed, state, working, type Script } from "./ScriptedService.ts"
import { effect } from "../harness/Steps.ts"

const oneByOne = { max_in_flight: 1, per_engine: 1 }

describe("an engine that refuses starts", () => {
  effect("is closed for all its tasks, checked again, and given up for all at max_wait", function* () {
    const customers = Array.from({ length: 60 }, (_, index) => `c-${index}`)
    const end = yield* night({
      tasks: [...customers.map((customer) => ({ customer })), { customer: "c-0", engine: "tax" }],
      script: {
        start: (call) => (call.engine_reference === "tax" ? accepted("tax") : { _tag: "EngineUnavailable" }),
      },
    })
    expect([...new Set(end.verdicts(...customers))]).toEqual([engineAway])
    expect(end.verdict("c-0", "tax")).toBe(succeeded)
    const looks = end.timesOf("start")
    expect(Math.max(...looks)).toBeLessThanOrEqual(3.5 * hour)
    expect(Math.max(...looks)).toBeGreaterThan(3 * hour)
    // Twenty starts at once, some twenty times: not one start for every task and every wait.
    expect(looks.length).toBeLessThan(500)
  })

  effect("is tried by another account each time, twice in a night by each of them", function* () {
    const customers = ["c-1", "c-2", "c-3"]
    // Its page says that it is away once after each refusal, and that it is available to whoever asks next.
    const end = yield* night({
      tasks: customers.map((customer) => ({ customer, fingerprint: `f-${customer}` })),
      script: { start: () => ({ _tag: "EngineUnavailable" }) },
    })
    const starts = end.calls.flatMap(([, verb, of]) => (verb === "start" ? [of] : []))
    expect(starts).toEqual([...customers, ...customers])
    expect(end.verdicts(...customers)).toEqual(customers.map(() => engineAway))
  })

  effect(
    "is not sent a start that it asked to wait by the next process either [promise 10 away]",
    function* () {
      const place = makePlace()
      const script: Script = {
        start: (call, times) =>
          times > 1
            ? accepted(call.customer_id)
            : { _tag: "EngineUnavailable", retry_after: Duration.millis(20 * minute) },
      }
      const tasks = [{ customer: "c-1" }]
      const killed = yield* night({ place, script, tasks, killAfter: minute })
      expect(killed.of("TaskWaits")).toMatchObject([{ reason: "ENGINE_UNAVAILABLE", asked: true }])
      const end = yield* night({ place, script, tasks })
      const [first = 0, again = 0] = end.timesOf("start")
      expect([end.verdict("c-1"), again - first >= 20 * minute]).toEqual([succeeded, true])
    },
  )

  effect("is not given up because of one answer that asks for years: the others start", function* () {
    const years = { _tag: "EngineUnavailable", retry_after: Duration.millis(99_999_999_000) } as const
    const tasks = ["c-1", "c-2", "c-3"].map((customer) => ({ customer }))
    const one = yield* night({
      tasks,
      script: { start: (call) => (call.customer_id === "c-1" ? years : accepted(call.customer_id)) },
    })
    expect(one.verdicts("c-1", "c-2", "c-3")).toEqual([engineAway, succeeded, succeeded])
    const all = yield* night({ tasks, script: { start: () => years }, rules: { limits: oneByOne } })
    // The second one that is told so is believed for all of them.
    expect([all.starts, all.verdict("c-3")]).toEqual([2, engineAway])
  })

  effect("counts as found once, however many starts were under way", function* () {
    let starts = 0
    const end = yield* night({
      tasks: Array.from({ length: 15 }, (_, index) => ({ customer: `c-${index}` })),
      script: {
        // The first seven are accepted one, two and four at a time; then eight are under way at once.
        start: (call) =>
          (starts += 1) > 7 && starts <= 15 ? { _tag: "EngineUnavailable" } : accepted(call.customer_id),
      },
    })
    const times = end.timesOf("start")
    expect([times.length, Math.max(...times) < minute]).toEqual([23, true])
  })

  effect("is told with what it asked for", function* () {
    const asked = { _tag: "EngineUnavailable", retry_after: Duration.millis(10 * minute) } as const
    const messageOf = (answer: StartAnswer) =>
      Effect.map(
        night({ script: { start: (_, times) => (times > 1 ? accepted("1") : answer) } }),
        ({ facts }) => facts.flatMap((fact) => (fact._tag === "TroubleBegan" ? [fact.message] : [])),
      )
    expect(yield* messageOf(asked)).toEqual(["no execution can be started; it asks to wait 10m"])
    expect(yield* messageOf({ _tag: "EngineUnavailable" })).toEqual(["no execution can be started"])
  })

  effect("is not started again past the deadline, although max_wait would allow it", function* () {
    const late = { _tag: "EngineUnavailable", retry_after: Duration.millis(50 * minute) } as const
    const end = yield* night({
      tasks: [{ customer: "c-1" }],
      rules: { deadlineAt: 40 * minute },
      script: { start: () => late },
    })
    expect([end.starts, end.verdict("c-1")]).toEqual([1, engineAway])
  })

  effect("whose page shows no form is told with what the page answered", function* () {
    const detail = "showEngine: the service asks to retry later (429)"
    const end = yield* night({
      tasks: ["c-1", "c-2"].map((customer) => ({
        customer,
        prepare: () => ({ _tag: "Unavailable", detail }),
      })),
      rules: { limits: oneByOne },
    })
    const said = [...end.state.tasks.values()].map(({ settled }) => settled?.fact.message)
    expect([end.starts, said, end.verdict("c-1")]).toEqual([0, [detail, detail], engineAway])
  })

  effect("is waited for to the last, also beside a task that was asked to wait for years", function* () {
    const asks = (ms: number) => ({ _tag: "EngineUnavailable", retry_after: Duration.millis(ms) }) as const
    const end = yield* night({
      tasks: [{ customer: "c-1" }, { customer: "c-2" }, { customer: "c-3" }],
      rules: { limits: { max_in_flight: 2, per_engine: 2 } },
      script: {
        start: (call, times) =>
          times > 1 || call.customer_id === "c-3"
            ? accepted(call.customer_id)
            : asks(call.customer_id === "c-1" ? 3 * hour : 99_999_999_000),
      },
    })
    expect(end.verdicts("c-1", "c-2", "c-3")).toEqual([succeeded, engineAway, succeeded])
  })

  effect("that was given up is tried at once by a task whose execution ends later", function* () {
    const place = makePlace()
    const end = yield* night({
      place,
      tasks: [{ customer: "c-1" }, { customer: "c-2" }],
      rules: { max_wait: Duration.millis(10 * minute) },
      script: {
        start: (call, times) =>
          call.customer_id === "c-2" ? { _tag: "EngineUnavailable" } : accepted(`${times}`),
        state: (id) =>
          id !== "e-1"
            ? completed
            : place.world.now() < 8 * minute
              ? working
              : state("TEMPORARY_ERROR", "OUT_OF_SERVICE"),
      },
    })
    expect(end.verdicts("c-1", "c-2")).toEqual([succeeded, engineAway])
    expect(end.timesOf("start").at(-1)).toBeLessThan(10 * minute)
  })
})
