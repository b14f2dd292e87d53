/** Looks by HEAD in virtual time: what they save, what makes them end, and that they decide nothing. */
import { describe, expect } from "@effect/vitest"
import { Duration } from "effect"
import {
  hour,
  makePlace,
  minute,
  night,
  second,
  type Night,
  type NightEnd,
  succeeded,
} from "./ScriptedNight.ts"
import { challenge, completed, lost, notSent, state, throttled, working } from "./ScriptedService.ts"
import type { Script } from "./ScriptedService.ts"
import { effect } from "../harness/Steps.ts"

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
  effect(
    "is read first, then to check the first HEAD, then at every fourth poll and at the end",
    function* () {
      const end = yield* until(10 * minute, truly)
      const all = looks(end)
      expect(all.slice(0, 17)).toBe(`${before}hghhhghhhghh`)
      expect([all.slice(-2), all.length, all.replaceAll("h", "").length]).toEqual(["hg", 61, 20])
      expect(end.verdict("c-1")).toBe(succeeded)
      expect(end.of("AttemptObserved").length).toBe(2)
    },
  )

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
  effect("that is not answered is the only one of the run", function* () {
    const end = yield* until(hour, () => "unanswered", {
      tasks: [{ customer: "c-1" }, { customer: "c-2" }],
    })
    const begun = ["e-c-1-1", "e-c-2-1"].map((id) => looks(end, id).slice(0, 8))
    expect([end.countOf("poll"), begun.toSorted(), end.verdict("c-1")]).toEqual([
      1,
      [`${before}ggg`, `${before}hgg`],
      succeeded,
    ])
  })

  effect("that a read contradicts is the last one, whichever of the two was right", function* () {
    const crying = yield* until(hour, () => "changed")
    expect([looks(crying).slice(0, 9), crying.countOf("poll"), crying.verdict("c-1")]).toEqual([
      `${before}hggg`,
      1,
      succeeded,
    ])
    const blind = yield* until(55 * second, () => "working")
    expect([looks(blind), blind.verdict("c-1")]).toEqual([`${before}hg`, succeeded])
  })

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

  effect("cannot show a challenge: a read does", function* () {
    const place = makePlace()
    let aborted = false
    const stopped = state("ABORTED", "CLIENT_CANCELLED")
    const asked = () => place.world.now() >= 5 * minute
    const script: Script = {
      state: () => (aborted ? stopped : asked() ? challenge : working),
      poll: () => truly(!asked()),
      abort: () => ((aborted = true), "aborted"),
    }
    const end = yield* night({ place, script })
    expect(end.verdict("c-1")).toBe("failed CUSTOMER_INTERVENTION_REQUIRED customer")
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
