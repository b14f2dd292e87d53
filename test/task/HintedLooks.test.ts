/**
 * Executions and sessions in virtual time while events come in: true ones, forged ones, floods, late ones and
 * none at all. Whatever they say, only a read decides.
 */
import { describe, expect } from "@effect/vitest"
import { Duration, Effect } from "effect"
import type { EventView } from "../../src/client/Views.ts"
import { makeHintBoard } from "../../src/client/Hints.ts"
import type { StartAnswer, StateAnswer } from "../../src/client/Service.ts"
import { hour, makePlace, minute, night, ready, run_id, second, succeeded } from "./ScriptedNight.ts"
import type { Night, NightEnd } from "./ScriptedNight.ts"
import { accepted as startAccepted, bodyOf, completed, results, state, throttled } from "./ScriptedService.ts"
import type { Script } from "./ScriptedService.ts"
import { anId } from "../harness/Id.ts"
import { effect } from "../harness/Steps.ts"

type Events = ReadonlyArray<readonly [ms: number, event: EventView]>
const naming = (text: string, dateMs?: number): EventView => ({ texts: new Set([text]), dateMs })
const every = (step: number, from: number, to: number, event: (ms: number) => EventView): Events =>
  Array.from({ length: Math.floor((to - from) / step) }, (_, index) => {
    const ms = from + index * step
    return [ms, event(ms)] as const
  })

const looksOf = (end: NightEnd, customer = "c-1") => end.timesOf("state", `e-${customer}-1`)
const shortestGap = (times: ReadonlyArray<number>) =>
  Math.min(...times.slice(1).map((at, index) => at - (times[index] ?? 0)))
const accepted = state("ONGOING", "ACCEPTED", { authentication_status: "not-performed" })
const running = state("ONGOING", "RUNNING", { authentication_status: "AUTH_OK" })

/** Executions that begin to run after ten seconds and end at their customer's time, counted from the start. */
const story = (ends: Readonly<Record<string, number>>, events: Events, more: Omit<Night, "board"> = {}) => {
  const place = makePlace()
  const begun = 10 * second
  const answer = (execution_id: string): StateAnswer => {
    const now = place.world.now()
    const endsAt = ends[execution_id.replace(/^e-(.*)-1$/, "$1")] ?? Infinity
    return now >= endsAt ? completed : now >= begun ? running : accepted
  }
  const script: Script = { state: answer, ...more.script }
  const tasks = Object.keys(ends).map((customer) => ({ customer }))
  return night({ tasks, events, place, board: makeHintBoard(), ...more, script })
}

const told = (customer: string, ms: number) => [ms, naming(`e-${customer}-1`, ms)] as const

describe("an execution with a hint", () => {
  effect("is polled at once, whatever id the hint names", function* () {
    const silent = yield* story({ "c-1": 40 * minute }, [])
    expect(looksOf(silent).at(-1)).toBeGreaterThan(40 * minute + 5 * second)
    for (const id of ["e-c-1-1", "s-c-1-1"]) {
      const end = yield* story({ "c-1": 40 * minute }, [[40 * minute, naming(id)]])
      expect([id, looksOf(end).at(-1), end.verdict("c-1")]).toEqual([id, 40 * minute, succeeded])
    }
    const place = makePlace()
    const board = makeHintBoard()
    const start: Script["start"] = (call) => {
      place.world.at(40 * minute, () => board.offer(naming(call.external_execution_id)))
      return startAccepted("c-1-1")
    }
    const state = () => (place.world.now() >= 40 * minute ? completed : running)
    const end = yield* night({ place, board, script: { start, state } })
    expect(looksOf(end).at(-1)).toBe(40 * minute)
  })

  effect("is polled at once if the hint names the session that only a state has named", function* () {
    const place = makePlace()
    const start = (): StartAnswer => ({
      _tag: "Accepted",
      http_status: 202,
      body: bodyOf({}),
      view: { execution_id: anId("e-c-1-1") },
    })
    const named = state("ONGOING", "RUNNING", { session_id: anId("s-late") })
    const end = yield* night({
      place,
      board: makeHintBoard(),
      events: [[40 * minute, naming("s-late")]],
      script: { start, state: () => (place.world.now() >= 40 * minute ? completed : named) },
    })
    expect(looksOf(end).at(-1)).toBe(40 * minute)
  })

  effect("costs few polls in three hours once hints have been seen to arrive", function* () {
    const events = [told("c-1", 10 * second), told("c-1", 3 * hour)]
    const with_ = yield* story({ "c-1": 3 * hour }, events)
    const without = yield* story({ "c-1": 3 * hour }, [])
    expect([looksOf(with_).length, looksOf(without).length]).toEqual([16, 210])
    expect(looksOf(with_).at(-1)).toBe(3 * hour)
  })

  effect("is polled as before once another one of its engine ended without a hint", function* () {
    const events = [told("c-1", 10 * second), told("c-1", 3 * hour)]
    const end = yield* story({ "c-1": 3 * hour, "c-2": 20 * minute }, events)
    const found = looksOf(end, "c-2").at(-1) ?? 0
    expect([found > 20 * minute, found < 36 * minute]).toEqual([true, true])
    const trusting = looksOf(end).filter((at) => at > minute && at < found)
    const polled = looksOf(end).filter((at) => at > found && at < 3 * hour)
    expect(trusting.length).toBeLessThan(3)
    expect(polled.length).toBeGreaterThan(120)
    expect(Math.min(...polled) - found).toBeLessThan(minute + second)
  })

  effect("is polled rarely from its second poll on where hints are trusted already", function* () {
    const events = [told("c-1", 10 * second), told("c-1", 5 * minute)]
    const rules = { limits: { max_in_flight: 1, per_engine: 1 } }
    const end = yield* story({ "c-1": 5 * minute, "c-2": 3 * hour }, events, { rules })
    const [first = 0, next = 0] = looksOf(end, "c-2")
    expect([first > 5 * minute, next - first > 14 * minute]).toEqual([true, true])
  })
})

describe("forged, repeated and late events", () => {
  effect("that lead to a read without news earn no trust", function* () {
    const events = [5, 6, 7].map((at) => [at * minute, naming("e-c-1-1")] as const)
    const polls = looksOf(yield* story({ "c-1": 3 * hour }, events)).length
    expect(polls).toBeGreaterThanOrEqual(looksOf(yield* story({ "c-1": 3 * hour }, [])).length)
  })

  effect("end nothing and cause no poll sooner than polling.min", function* () {
    const forged = every(50, 0, 10 * minute, () => ({
      texts: new Set(["ended", "COMPLETED", "e-c-1-1", "s-c-1-1"]),
      dateMs: undefined,
    }))
    const end = yield* story({ "c-1": 8 * minute }, forged)
    const looks = looksOf(end)
    expect(end.verdict("c-1")).toBe(succeeded)
    expect([(looks.at(-1) ?? 0) >= 8 * minute, shortestGap(looks) >= 2 * second]).toEqual([true, true])
    const closings = end.of("AttemptClosed")
    expect(closings.length).toBe(1)
  })

  effect("about nothing cost nothing, however many there are", function* () {
    const flood = every(5, 0, 5 * minute, (ms) => naming(`e-stranger-${ms}`, ms))
    const end = yield* story({ "c-1": 8 * minute }, flood)
    const quiet = yield* story({ "c-1": 8 * minute }, [])
    expect(end.calls).toEqual(quiet.calls)
  })

  effect("with a future date do not hide the true ones", function* () {
    const at = 3 * minute
    for (const ahead of [4 * minute, hour, 10 * 365 * 24 * hour]) {
      const end = yield* story({ "c-1": at }, [
        // Just when there is news, so that it is believed as far as a date can be.
        [10 * second, naming("e-c-1-1", 10 * second + ahead)],
        [11 * second, naming("e-c-1-1", 11 * second + ahead)],
        [at, naming("e-c-1-1", at)],
      ])
      expect([ahead, looksOf(end).at(-1)]).toEqual([ahead, at])
    }
  })

  effect("that are older than a later read cause no poll", function* () {
    const first = told("c-1", 10 * second)
    const late = every(second, minute, 10 * minute, () => naming("e-c-1-1", 5 * second))
    const end = yield* story({ "c-1": 14 * minute }, [first, ...late, told("c-1", 14 * minute)])
    expect(looksOf(end).filter((at) => at > 12 * second)).toEqual([14 * minute])
  })

  effect("never shorten the wait that the service asked for", function* () {
    const events = every(second, second, 10 * minute, () => naming("e-c-1-1"))
    const end = yield* night({
      events,
      board: makeHintBoard(),
      script: { state: (_, times) => (times === 1 ? throttled(429, 5 * minute) : completed) },
    })
    const [first = 0, next = 0] = looksOf(end)
    expect(next - first).toBeGreaterThanOrEqual(5 * minute)
  })
})

describe("a session with a hint", () => {
  const pulled = (events: Events, script: Script = {}) =>
    night({ tasks: [], sessions: ["s-9"], events, board: makeHintBoard(), script })

  effect("is read again at once, and never within its five seconds [limit 1]", function* () {
    const place = makePlace()
    const finalAt = 6 * minute
    const script: Script = { results: () => results(place.world.now() >= finalAt) }
    const about = { tasks: [], sessions: ["s-9"], place, script, board: makeHintBoard() }
    const end = yield* night({ ...about, events: [[finalAt, naming("s-9", finalAt)]] })
    expect(end.timesOf("results").at(-1)).toBe(finalAt)
    const flood = every(100, 0, 3 * minute, () => naming("s-9"))
    const flooded = yield* pulled(flood, { results: (_, times) => results(times > 12) })
    const reads = flooded.timesOf("results")
    expect([reads.length, shortestGap(reads) >= 5 * second]).toEqual([13, true])
    expect((reads.at(-1) ?? 0) - (reads[0] ?? 0)).toBeLessThan(70 * second)
    const asked = yield* pulled(
      every(100, 0, minute, () => naming("s-9")),
      {
        results: (_, times) => (times === 1 ? throttled(504, 40 * second) : results(true)),
      },
    )
    expect(shortestGap(asked.timesOf("results"))).toBeGreaterThanOrEqual(40 * second)
    expect(end.state.tasks.get(`${run_id}/session/s-9`)?.settled?.fact.outcome).toBe("succeeded")
  })

  effect("is not read sooner because of events older than one that led to new results", function* () {
    const readsWith = Effect.fnUntraced(function* (late: Events) {
      const place = makePlace()
      const script: Script = {
        results: () => results(place.world.now() >= 9 * minute, [place.world.now() < 6 * minute ? 1 : 2]),
      }
      const events: Events = [[6 * minute, naming("s-9", 6 * minute)], ...late]
      const about = { tasks: [], sessions: ["s-9"], place, script, board: makeHintBoard() }
      return (yield* night({ ...about, events })).timesOf("results")
    })
    const late = every(second, 6.2 * minute, 8 * minute, () => naming("s-9", 5 * minute))
    const reads = yield* readsWith([])
    expect(reads).toContain(6 * minute)
    expect(yield* readsWith(late)).toEqual(reads)
  })
})

describe("a start with webhooks on", () => {
  const sent = (on: boolean, hooks_extra_data: Readonly<Record<string, string>>) =>
    Effect.gen(function* () {
      const calls: Array<Readonly<Record<string, string>>> = []
      const prepared = ready("f-1")
      const prepare = () =>
        prepared._tag === "Ready" ? { ...prepared, call: { ...prepared.call, hooks_extra_data } } : prepared
      yield* night({
        tasks: [{ customer: "c-1", fingerprint: "f-1", prepare }],
        script: {
          start: (call) => {
            calls.push(call.hooks_extra_data)
            return startAccepted("c-1-1")
          },
        },
        ...(on ? { board: makeHintBoard() } : {}),
      })
      return calls[0]
    })

  effect(
    "asks for deliveries that name it, unless the job has a pair of that name [field start.hooks_extra_data]",
    function* () {
      const pair = { nightjar_execution: "{external_execution_id}" }
      expect(yield* sent(true, {})).toEqual(pair)
      expect(yield* sent(true, { tenant: "t-1" })).toEqual({ ...pair, tenant: "t-1" })
      expect(yield* sent(true, { nightjar_execution: "mine" })).toEqual({ nightjar_execution: "mine" })
      expect(yield* sent(false, { tenant: "t-1" })).toEqual({ tenant: "t-1" })
    },
  )
})

describe("a service that asks us to wait", () => {
  effect(
    "a little longer than the execution may wait is obeyed until then; then the execution is aborted",
    function* () {
      const end = yield* night({
        rules: { max_wait: Duration.millis(10 * minute) },
        script: { state: (_, times) => (times < 3 ? throttled(429, 10 * minute) : completed) },
      })
      const [aborted = 0] = end.timesOf("abort")
      expect(aborted - 10 * minute).toBeLessThan(second)
      expect(end.verdict("c-1")).toBe(succeeded)
    },
  )
})
