/** A night that ends on time, whatever is running: silence and absurd waits, in virtual time. */
import { describe, expect, it } from "@effect/vitest"
import { Duration, Effect, Fiber, Layer } from "effect"
import { TestClock } from "effect/testing"
import { answeredBy, cutWithin, deletingUntil, endingOf } from "../../src/task/Ending.ts"
import { Landing } from "../../src/landing/Landing.ts"
import { LandingMemory } from "../harness/LandingMemory.ts"
import type { SteerableNight } from "../../src/task/NightPicture.ts"
import type { Fact } from "../../src/ledger/Fact.ts"
import { Ledger } from "../../src/ledger/Ledger.ts"
import { hour, idOf, makePlace, minute, night, second, succeeded } from "./ScriptedNight.ts"
import type { Night, NightEnd, NightTask, Place } from "./ScriptedNight.ts"
import { accepted, completed, lost, results, silent, throttled, working } from "./ScriptedService.ts"
import type { Script } from "./ScriptedService.ts"
import { effect } from "../harness/Steps.ts"

const years = 99_999_999 * second
const absurd = throttled(429, years)
const isOurs = (id: string) => id.includes("c-1")
/** Somebody else, for whom everything goes well. */
const well = (times: number) => (times === 1 ? working : completed)
const stateOf = (state: NonNullable<Script["state"]>): Script => ({
  state: (id, times) => (isOurs(id) ? state(id, times) : well(times)),
})
const unusable = { bytes: new Uint8Array([91]), json: undefined, unusable: "it is nested too deeply" }
const account = { product: "accounts", sub_family: "bank:account", attachment_id: "doc-1" }
const document = results(true, { accounts: [account] })
/** The records decide, whatever became of a document. */
const outcomeOf = (reason: string) => (reason === "COMPLETED" ? "succeeded" : "unfinished")

/** What is said of `c-1`, and what is to come of it; `c-2` is to be as if nothing were. */
const hostile: ReadonlyArray<readonly [string, Script, string, NightTask["prepare"]?]> = [
  ["a preparation that never ends", {}, "DEADLINE_REACHED", () => silent],
  [
    "a preparation that never ends, of a task that begins late",
    {},
    "DEADLINE_REACHED",
    (times) => (times === 1 ? { _tag: "Unavailable", retry_after: Duration.minutes(30) } : silent),
  ],
  [
    "a start without an answer",
    { start: (call) => (isOurs(call.customer_id) ? silent : accepted("c-2-1")) },
    "START_UNKNOWN",
  ],
  ["a state without an answer", stateOf(() => silent), "SERVICE_UNREACHABLE"],
  [
    "neither a state nor an abort with an answer",
    { ...stateOf(() => silent), abort: () => silent },
    "SERVICE_UNREACHABLE",
  ],
  [
    "an execution that goes on and cannot be stopped",
    { ...stateOf(() => working), abort: () => "not_stoppable" },
    "NOT_STOPPABLE",
  ],
  [
    "results without an answer",
    { ...stateOf((_, times) => well(times)), results: (id) => (isOurs(id) ? silent : results(true)) },
    "RESULTS_PARTIAL",
  ],
  [
    "a document that drips",
    {
      ...stateOf((_, times) => well(times)),
      results: (id) => (isOurs(id) ? document : results(true)),
      attachment: () => "drips",
    },
    "COMPLETED",
  ],
]

const nightOf = (script: Script, more: Partial<Night> = {}) =>
  Effect.gen(function* () {
    const place = makePlace()
    const tasks = [{ customer: "c-1" }, { customer: "c-2" }]
    const end = yield* night({ tasks, ...more, script, place })
    return { end, tookMs: place.world.now() }
  })
const messageOf = (end: NightEnd) => end.state.tasks.get(idOf("c-1"))?.settled?.fact.message

describe("the deadline", () => {
  effect.each(hostile)("ends within seconds: %s", function* ([, script, reason, prepare]) {
    // An engine whose first start has no answer yet gets no other one.
    const c1 = prepare === undefined ? { customer: "c-1" } : { customer: "c-1", prepare }
    const tasks = [c1, { customer: "c-2", engine: "tax" }]
    const { end, tookMs } = yield* nightOf(script, { rules: { deadlineAt: hour }, tasks })
    expect([end.isOver, end.verdict("c-1")?.split(" ").slice(0, 2), end.verdict("c-2", "tax")]).toEqual([
      true,
      [outcomeOf(reason), reason],
      succeeded,
    ])
    expect(tookMs).toBeLessThanOrEqual(hour + Duration.toMillis(cutWithin))
  })

  effect("reports a document that has not arrived by then as missing", function* () {
    const script = { results: () => document, attachment: () => "drips" } satisfies Script
    const { end } = yield* nightOf(script, { rules: { deadlineAt: 30 * minute } })
    const told = end.state.tasks.get(idOf("c-1"))?.attachments
    expect(told?.map(({ attachment_id, status }) => [attachment_id, status])).toEqual([["doc-1", "failed"]])
  })

  effect("that is over when a run is resumed gives each task its own time", function* () {
    const { end } = yield* nightOf({ results: () => results(false) }, { rules: { deadlineAt: hour } })
    const place = makePlace()
    const script: Script = { results: (_, times) => results(times > 20) }
    const rules = { deadlineAt: -hour }
    const next = yield* night({ facts: end.facts.slice(2), rules, script, place, mode: "collect" })
    expect(next.verdict("c-1")).toBe(succeeded)
    expect(place.world.now()).toBeGreaterThan(Duration.toMillis(cutWithin))
  })
})

/** Both writes take a minute and cannot be given up, as on a disk that stalls. */
const stalling = Effect.uninterruptible(Effect.sleep("1 minute"))
const withSlowLedger = (place: Place, slow: Fact["_tag"]): Place => ({
  ...place,
  ledger: Layer.effect(
    Ledger,
    Effect.map(Ledger, (ledger) =>
      Ledger.of({
        ...ledger,
        append: (facts) =>
          facts.some(({ _tag }) => _tag === slow)
            ? Effect.uninterruptible(Effect.andThen(ledger.append(facts), stalling))
            : ledger.append(facts),
      }),
    ),
  ).pipe(Layer.provide(place.ledger)),
})
const withSlowLanding = (place: Place, slow: string): Place => ({
  ...place,
  landing: Layer.effect(
    Landing,
    Effect.map(Landing, (landing) =>
      Landing.of({
        ...landing,
        land: (meta, bytes) =>
          meta.kind === slow
            ? Effect.andThen(stalling, landing.land(meta, bytes))
            : landing.land(meta, bytes),
      }),
    ),
  ).pipe(Layer.provide(LandingMemory.layer(place.store))),
})
const verdictsOf = (end: NightEnd) =>
  end.facts.flatMap((fact) => (fact._tag === "TaskSettled" ? [`${fact.outcome} ${fact.reason}`] : []))

describe("a task that is cut off while the disk stalls", () => {
  const deadlineAt = 20 * second
  effect.each<readonly [string, Night]>([
    ["has ended well", { script: { state: () => completed } }],
    ["cannot use an answer", { script: { state: () => ({ ...completed, body: unusable }) } }],
    ["is a session", { tasks: [], sessions: ["s-9"] }],
    [
      "is a session with an answer that cannot be used",
      { tasks: [], sessions: ["s-9"], script: { results: () => ({ _tag: "Results", body: unusable }) } },
    ],
  ])("is settled once if its verdict is being written: it %s [promise 11 cut off]", function* ([, given]) {
    const well = verdictsOf(yield* night(given))
    const place = withSlowLedger(makePlace(), "TaskSettled")
    let held: SteerableNight | undefined
    const hold = (one: SteerableNight) => void (held = one)
    const end = yield* night({ ...given, place, hold, rules: { deadlineAt } })
    expect([end.isOver, verdictsOf(end), well.length]).toEqual([true, well, 1])
    const { running, done } = held!.look().total
    expect([running, done.succeeded + done.failed]).toEqual([0, 1])
    expect(place.world.now()).toBeGreaterThan(deadlineAt + Duration.toMillis(cutWithin))
  })

  effect.each<readonly [string, string]>([
    ["start", "SERVICE_UNREACHABLE"],
    ["state", "SERVICE_UNREACHABLE"],
    ["results", "RESULTS_PARTIAL"],
  ])("is finished by the next run if an answer (%s) is being landed", function* ([kind, reason]) {
    const place = withSlowLanding(makePlace(), kind)
    const end = yield* night({ place, rules: { deadlineAt } })
    expect([end.isOver, verdictsOf(end)]).toEqual([true, [`unfinished ${reason}`]])
    const next = yield* night({ facts: end.facts.slice(2) })
    expect([next.starts, next.verdict("c-1")]).toEqual([0, succeeded])
  })
})

effect.each([
  ["a state read in flight", { ...stateOf(() => silent) }],
  ["an abort that gets no answer", { ...stateOf(() => silent), abort: () => silent }],
  ["states that are lost", { ...stateOf(() => lost), abort: () => lost }],
] as const)("max_wait ends %s within seconds, and asks to stop", function* ([, script]) {
  const { end, tookMs } = yield* nightOf(script, { rules: { max_wait: Duration.millis(10 * minute) } })
  expect([end.verdict("c-1"), end.verdict("c-2"), end.countOf("abort", "e-c-1-1") > 0]).toEqual([
    "unfinished SERVICE_UNREACHABLE service",
    succeeded,
    true,
  ])
  const why = end.of("AbortIntended").map((fact) => fact.why)
  expect(why).toEqual(["max_wait"])
  expect(tookMs).toBeLessThanOrEqual(10 * minute + Duration.toMillis(cutWithin))
})

describe("an absurd Retry-After", () => {
  const start: Script["start"] = (call) => (isOurs(call.customer_id) ? absurd : accepted("c-2-1"))
  const ofResults: Script["results"] = (id) => (isOurs(id) ? document : results(true))
  effect.each<readonly [string, Script, string, string | undefined]>([
    ["a start", { start }, "SERVICE_UNREACHABLE", "the service asked to wait 1157d 9h 46m 39s"],
    ["a state", stateOf(() => absurd), "SERVICE_UNREACHABLE", "later"],
    ["results", { results: (id) => (isOurs(id) ? absurd : results(true)) }, "RESULTS_PARTIAL", "later"],
    ["a document", { results: ofResults, attachment: () => absurd }, "COMPLETED", undefined],
  ])("to %s leaves its task for the next run at once, and is obeyed until then", function* (row) {
    const [, script, reason, message] = row
    const { end, tookMs } = yield* nightOf(script)
    const verdict = `${outcomeOf(reason)} ${reason} ${reason === "COMPLETED" ? "nobody" : "service"}`
    expect([end.verdicts("c-1", "c-2"), end.countOf("abort")]).toEqual([[verdict, succeeded], 0])
    expect(messageOf(end)).toBe(message)
    expect(tookMs).toBeLessThan(minute)
  })
})

describe("a call with a time limit", () => {
  const never = Effect.never as Effect.Effect<string>
  effect("is not sent after that time, and counts as lost if it has no answer by then", function* () {
    expect(yield* answeredBy(Effect.succeed("answer"), 1)).toBe("answer")
    const sent: Array<string> = []
    const late = yield* Effect.flip(
      answeredBy(
        Effect.sync(() => sent.push("sent")),
        0,
      ),
    )
    expect([late._tag, late.message, sent]).toEqual(["NotSent", "the time was up; nothing was sent", []])
    const waiting = yield* Effect.forkChild(Effect.flip(answeredBy(never, 5_000)))
    yield* TestClock.adjust("5 seconds")
    const lostAnswer = yield* Fiber.join(waiting)
    expect([lostAnswer._tag, lostAnswer.message]).toEqual([
      "AnswerLost",
      "there was no answer before the time was up",
    ])
  })

  it("ends seconds after the deadline, and has no end if the deadline is over before it begins", () => {
    expect([endingOf(1_000, 999), endingOf(1_000, 1_000), endingOf(undefined, 0)]).toEqual([
      { lastAnswerAt: 21_000, cutAt: 31_000 },
      undefined,
      undefined,
    ])
  })

  it("is sent to delete until seconds after the deadline or a late publication, and at any time without one ahead", () => {
    const deadlineAt = hour
    const until = [0, hour - 1].map((begunAt) => deletingUntil(deadlineAt, begunAt, hour - minute))
    expect([...until, deletingUntil(deadlineAt, 0, 2 * hour)]).toEqual([
      hour + 30 * second,
      hour + 30 * second,
      2 * hour + 30 * second,
    ])
    const later = [hour, 2 * hour].map((begunAt) => deletingUntil(hour, begunAt, begunAt))
    expect([...later, deletingUntil(undefined, 0, hour)]).toEqual([Infinity, Infinity, Infinity])
  })
})
