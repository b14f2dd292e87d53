/** When a state is looked at: by a HEAD, or because of an event. Whatever those say, only a read decides. */
import * as fc from "fast-check"
import { afterHead, afterNothing, afterRead, beforeHead, mayHead } from "../../src/task/LookTurns.ts"
import type { HeadTrial } from "../../src/task/LookTurns.ts"
import { describe, expect, it } from "@effect/vitest"
import { Duration, Effect } from "effect"
import { hour, makePlace, minute, night, second, succeeded, ready, run_id } from "./ScriptedNight.ts"
import type { Night, NightEnd } from "./ScriptedNight.ts"
import { completed, lost, notSent, state, throttled, working, acceptedAs } from "./ScriptedService.ts"
import { accepted as startAccepted, results } from "./ScriptedService.ts"
import type { Script } from "./ScriptedService.ts"
import { effect } from "../harness/Steps.ts"
import type { EventView } from "../../src/client/Views.ts"
import { makeHintBoard } from "../../src/client/Hints.ts"
import type { StateAnswer } from "../../src/client/Service.ts"
import { anId } from "../harness/Id.ts"

const going = { ongoing: true, settled: true, headsInARow: 0 }

describe("a HEAD", () => {
  it("needs an earlier read that showed the execution running, and a read after every third", () => {
    expect(mayHead("untried", going)).toBe(true)
    expect(mayHead("proven", { ...going, headsInARow: 2 })).toBe(true)
    expect(mayHead("proven", { ...going, headsInARow: 3 })).toBe(false)
    expect(mayHead("proven", { ...going, ongoing: false })).toBe(false)
    expect(mayHead("off", going)).toBe(false)
    // While the first one is under way nobody else sends one.
    expect([beforeHead("untried"), mayHead("trying", going)]).toEqual(["trying", false])
    // A run that may end soon would cost a HEAD and a read.
    expect(mayHead("proven", { ...going, settled: false })).toBe(false)
  })

  it("is checked by a read until one has agreed or it says that something changed; a refused or wrong one is the last", () => {
    expect(afterHead("trying", "working")).toEqual({ trial: "trying", next: "read" })
    expect(afterHead("proven", "working")).toEqual({ trial: "proven", next: "rest" })
    expect(afterHead("proven", "changed")).toEqual({ trial: "proven", next: "read" })
    for (const trial of ["trying", "proven"] as const) {
      expect(afterHead(trial, "unanswered")).toEqual({ trial: "off", next: "read" })
      expect(afterRead(trial, "working", "changed")).toBe("off")
      expect(afterRead(trial, "changed", "working")).toBe("off")
    }
    expect(afterRead("trying", "working", "working")).toBe("proven")
    expect(afterRead("proven", "changed", "changed")).toBe("proven")
    expect([afterRead("trying", "changed", "changed"), afterNothing("trying")]).toEqual([
      "untried",
      "untried",
    ])
  })

  it("never replaces a read unless a read has agreed before, and never again once it is off", () => {
    const step = fc.tuple(
      fc.constantFrom("working", "changed", "unanswered" as const),
      fc.constantFrom("working", "changed" as const),
    )
    fc.assert(
      fc.property(fc.array(step, { maxLength: 50 }), (steps) => {
        let trial: HeadTrial = "untried"
        let agreed = false
        for (const [head, read] of steps) {
          const before: HeadTrial = trial
          if (!mayHead(before, going)) {
            expect(before).toBe("off")
            continue
          }
          const { trial: seen, next } = afterHead(beforeHead(before), head)
          if (next === "rest") expect([agreed, head]).toEqual([true, "working"])
          trial = next === "rest" || head === "unanswered" ? seen : afterRead(seen, head, read)
          agreed ||= trial === "proven"
        }
      }),
    )
  })
})

/** `g` for each read of the state, `h` for each HEAD, in order. */
const looks = (end: NightEnd, id = "e-c-1-1") =>
  end.calls
    .flatMap(([, verb, whom]) => (whom !== id ? [] : verb === "state" ? ["g"] : verb === "poll" ? ["h"] : []))
    .join("")
/** Looks every ten seconds; after a minute the interval has stopped growing, and HEAD may be tried. */
const rules = { polling: { min: Duration.millis(10 * second), max: Duration.millis(10 * second) } }
const before = "ggggg"

/** An execution that works until a time; HEAD says what `poll` makes of that. */
const until = (
  ms: number,
  poll: (works: boolean, times: number) => ReturnType<NonNullable<Script["poll"]>>,
  more: Omit<Night, "script"> = {},
) => {
  const place = makePlace()
  const works = () => place.world.now() < ms
  const script: Script = {
    state: () => (works() ? working : completed),
    poll: (_, times) => poll(works(), times),
  }
  return night({ place, script, ...more, rules: { ...rules, ...more.rules } })
}
const truly = (works: boolean): "working" | "changed" => (works ? "working" : "changed")

describe("a service that answers HEAD", () => {
  effect("is read first, to check the first HEAD, at every fourth poll and at the end", function* () {
    const end = yield* until(10 * minute, truly)
    const all = looks(end)
    expect(all.slice(0, 17)).toBe(`${before}hghhhghhhghh`)
    expect([all.slice(-2), all.length, all.replaceAll("h", "").length]).toEqual(["hg", 61, 20])
    expect(end.verdict("c-1")).toBe(succeeded)
    expect(end.of("AttemptObserved").length).toBe(2)
  })

  effect("needs to prove it only once for all executions of a run", function* () {
    const end = yield* until(10 * minute, truly, { tasks: [{ customer: "c-1" }, { customer: "c-2" }] })
    const checks = ["e-c-1-1", "e-c-2-1"].map((id) => looks(end, id).slice(0, 9))
    expect(checks.toSorted()).toEqual([`${before}ghhh`, `${before}hghh`])
  })

  effect("is not polled more often: two requests of one poll are one poll", function* () {
    const end = yield* until(hour, truly)
    const starts = end.calls.flatMap(([at, verb]) => (verb === "state" || verb === "poll" ? [at] : []))
    const rests = starts.slice(1).map((at, index) => at - (starts[index] ?? 0) - 200)
    const short = rests.filter((ms) => ms < 2 * second)
    // The check of the first HEAD and the read of the end belong to the looks before them.
    expect(short).toEqual([0, 0])
  })

  effect("gets a read, not a HEAD, before the date that it named itself", function* () {
    const place = makePlace()
    const kick = new Date(10 * minute).toISOString()
    const asleep = state("ONGOING", "ASYNC_WAIT", { next_kick_date: kick })
    const script: Script = {
      state: () => (place.world.now() < 10 * minute ? asleep : completed),
      poll: () => "working",
    }
    const end = yield* night({ place, script })
    expect([looks(end), end.verdict("c-1")]).toEqual(["gg", succeeded])
  })
})

describe("a HEAD", () => {
  effect("alone closes nothing and hides nothing for long", function* () {
    const blind = yield* until(10 * minute, () => "working")
    expect([looks(blind).slice(-2), blind.verdict("c-1")]).toEqual(["hg", succeeded])
    const closedAt = blind.calls.findLast(([, verb]) => verb === "state")?.[0] ?? 0
    expect(closedAt - 10 * minute).toBeLessThan(4 * minute + second)
    const gone = yield* until(Infinity, (_, times) => (times < 5 ? "working" : "changed"), {
      rules: { max_wait: Duration.millis(hour) },
    })
    const closings = gone.of("AttemptClosed").map((fact) => fact.status_code)
    expect([closings, gone.facts.some(({ _tag }) => _tag === "AbortIntended")]).toEqual([[], true])
  })

  effect("that fails or is throttled is a poll without a result, and says nothing about HEAD", function* () {
    const answers = [lost, notSent, throttled(429, 5 * minute)]
    const end = yield* until(20 * minute, (works, times) => answers[times - 1] ?? truly(works))
    expect([looks(end).slice(0, 11), end.verdict("c-1")]).toEqual([`${before}hhhghg`, succeeded])
    const times = end.calls.flatMap(([at, verb]) => (verb === "state" || verb === "poll" ? [at] : []))
    expect((times[8] ?? 0) - (times[7] ?? 0)).toBeGreaterThan(5 * minute)
  })

  effect("is never the last poll before an execution is given up: that is a read", function* () {
    const end = yield* until(10 * minute, truly, { rules: { max_wait: Duration.millis(10 * minute) } })
    expect([looks(end).at(-1), end.countOf("abort"), end.verdict("c-1")]).toEqual(["g", 0, succeeded])
  })
})

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
    // Of the session, only a state has named this id.
    for (const session of [undefined, "s-late"]) {
      const place = makePlace()
      const board = makeHintBoard()
      const start: Script["start"] = (call) => {
        place.world.at(40 * minute, () => board.offer(naming(session ?? call.external_execution_id)))
        return acceptedAs({ execution_id: anId("e-c-1-1") })
      }
      const open = state("ONGOING", "RUNNING", { session_id: anId(session ?? "s-c-1-1") })
      const state_ = () => (place.world.now() >= 40 * minute ? completed : open)
      const end = yield* night({ place, board, script: { start, state: state_ } })
      expect([session, looksOf(end).at(-1)]).toEqual([session, 40 * minute])
    }
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
      { results: (_, times) => (times === 1 ? throttled(504, 40 * second) : results(true)) },
    )
    expect(shortestGap(asked.timesOf("results"))).toBeGreaterThanOrEqual(40 * second)
    expect(end.state.tasks.get(`${run_id}/session/s-9`)?.settled?.fact.outcome).toBe("succeeded")
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
    "asks for deliveries that name it, unless the job does [field start.hooks_extra_data]",
    function* () {
      const pair = { nightjar_execution: "{external_execution_id}" }
      expect(yield* sent(true, {})).toEqual(pair)
      expect(yield* sent(true, { tenant: "t-1" })).toEqual({ ...pair, tenant: "t-1" })
      expect(yield* sent(true, { nightjar_execution: "mine" })).toEqual({ nightjar_execution: "mine" })
      expect(yield* sent(false, { tenant: "t-1" })).toEqual({ tenant: "t-1" })
    },
  )
})

effect(
  "a service that asks us to wait a little longer than the execution may wait is obeyed; then it is aborted",
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
