/** Sessions that are there without anybody driving a widget. */
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { features } from "../../../src/service/Vocabulary.ts"
import { firstDrawnScript, planStanding } from "../../../src/sandbox/flows/StandingSessions.ts"
import { standingScriptOf, standingScripts } from "../../../src/sandbox/flows/StandingSessions.ts"
import { standingSessionId } from "../../../src/sandbox/flows/StandingSessions.ts"
import { field, ofTheServiceAt, pick, textField, truth } from "../server/Caller.ts"
import { nightStart, recordsIn, recordTexts, walk, walked } from "./FlowWalk.ts"

const atNight = ofTheServiceAt(nightStart)
const idOf = (name: string) => standingSessionId(standingScripts.findIndex((script) => script.name === name))
/** What the first look at each script finds: HTTP status, session status, cursor, is_closed, records. */
const firstLooks = {
  completed: [200, "COMPLETED", "bye:completed", true, 19],
  partial: [200, "WAITING", "connect:wait", false, 14],
  unstarted: [412],
  failed: [200, "FAILED", "bye:failure", true, 0],
  customer_cancelled: [200, "CUSTOMER_CANCELLED", "bye:failure", true, 5],
  timed_out: [200, "TIMED_OUT", "welcome:consent", true, 0],
  locked: [504],
  never_final: [200, "WAITING", "connect:wait", false, 5],
  company: [200, "COMPLETED", "bye:completed", true, 6],
  client_cancelled: [200, "CLIENT_CANCELLED", "welcome:consent", true, 0],
  system_cancelled: [200, "SYSTEM_CANCELLED", "connect:wait", true, 2],
  misconfigured: [200, "CONFIGURATION_ERROR", "bye:failure", true, 0],
  no_consent: [200, "COMPLETED", "bye:completed", true, 5],
  documents: [200, "COMPLETED", "bye:completed", true, 4],
  odd: [200, "COMPLETED", "bye:completed", true, 7],
  large: [200, "COMPLETED", "bye:completed", true, 12_000],
  live: [200, "READY", "welcome:init", false, 0],
  second_login: [200, "COMPLETED", "bye:completed", true, 10],
  empty: [200, "COMPLETED", "bye:completed", true, 0],
  every_family: [200, "COMPLETED", "bye:completed", true, 119],
  refused: [200, "FAILED", "bye:failure", true, 0],
  abandoned: [200, "COMPLETED", "bye:completed", true, 4],
} as const

const cursorIn = (answer: unknown) =>
  textField(answer, "session_cursor").slice("es-public-administration:".length)

atNight("standing sessions", (it) => {
  it("every script shows at the first read what its line says", function* (caller) {
    const seen: Record<string, ReadonlyArray<unknown>> = {}
    for (const { name } of standingScripts) {
      const results = yield* caller.results(idOf(name))
      const [status, is_closed] = pick(results, "session_status", "is_closed")
      const shown = [status, cursorIn(results), is_closed, recordsIn(field(results, "data")).length]
      seen[name] = results.status === 200 ? [200, ...shown] : [results.status]
    }
    expect(seen).toEqual(firstLooks)
  })

  it("a life counts from the first read, whenever that is: partial, settling, final, then the same forever", function* (caller) {
    yield* TestClock.adjust("3 hours")
    const bodies = []
    for (const seconds of [0, 120, 150, 89, 5, 86_400]) {
      yield* TestClock.adjust(`${seconds} seconds`)
      bodies.push(yield* caller.results(idOf("partial")))
    }
    expect(bodies.map((body) => field(body, "is_closed"))).toEqual([false, false, false, false, true, true])
    const [first = [], second = [], settling = [], , final = []] = bodies.map(recordTexts)
    expect(first.filter((record) => !second.includes(record))).toEqual([])
    expect(second.length).toBeGreaterThan(first.length)
    expect(settling.filter((record) => !final.includes(record)).length).toBe(1)
    expect(final.length).toBe(24)
    expect(bodies[5]?.text).toBe(bodies[4]?.text)
  })

  it("a live one goes from READY to COMPLETED by itself, and can also be driven by the widget", function* (caller) {
    const seen: Array<string> = []
    for (const seconds of [0, 60, 35, 55, 20, 200]) {
      yield* TestClock.adjust(`${seconds} seconds`)
      const results = yield* caller.results(idOf("live"))
      seen.push(`${textField(results, "session_status")} ${cursorIn(results)}`)
    }
    expect(seen).toEqual([
      "READY welcome:init",
      "READY welcome:consent",
      "WAITING connect:source",
      "WAITING connect:wait",
      "WAITING connect:wait",
      "COMPLETED bye:completed",
    ])
    const other = idOf("unstarted")
    yield* walk(other, ["start", "consent", "connect queue-0+run-1+records-3", "wait 5", "leave"])
    expect(recordTexts(yield* caller.results(other)).length).toBe(3)
  })

  it("a step that a test takes in a live one comes before the steps still to come", function* (caller) {
    yield* walk(idOf("live"), ["consent"])
    const cursorNow = Effect.map(caller.viewSession(idOf("live")), cursorIn)
    expect(yield* cursorNow).toBe("welcome:consent")
    yield* walk(idOf("live"), ["wait 10", "connect queue-0+run-300+records-3", "wait 10"])
    expect(yield* cursorNow).toBe("connect:wait")
    yield* TestClock.adjust("10 minutes")
    expect(yield* cursorNow).toBe("bye:completed")
    expect(recordTexts(yield* caller.results(idOf("live"))).length).toBe(3)
  })

  it("they belong to one application, and numbers without a script are nobody's", function* (caller) {
    const id = idOf("completed")
    const stranger = yield* caller.call("GET", caller.resultsUrl(id), { secret: "sandbox-app-2" })
    expect([stranger.status, (yield* truth).sessions]).toEqual([404, []])
    expect((yield* caller.results(id)).status).toBe(200)
    for (const script of [standingScripts.length, firstDrawnScript - 1]) {
      expect((yield* caller.results(standingSessionId(script))).status).toBe(404)
    }
    expect((yield* caller.results(standingSessionId(firstDrawnScript))).status).not.toBe(404)
  })

  it("the truth shows each session's states, reads, locks and early reads", function* (caller) {
    yield* caller.results(idOf("company"))
    yield* TestClock.adjust("2 seconds")
    yield* caller.results(idOf("company"))
    yield* caller.results(idOf("locked"))
    yield* walked("", ["start", "cancel"])
    const { sessions, ruleBreaks } = yield* truth
    const application = "65f0c0ffee00000000000001"
    const unseen = { application, results_reads: [], locked_at: [], too_soon_at: [] }
    expect(sessions.map(({ phases: _phases, events: _events, ...session }) => session)).toEqual([
      {
        ...unseen,
        session_id: idOf("company"),
        customer_id: "standing-8",
        found_at: nightStart,
        results_reads: [{ at: nightStart, is_closed: true }],
        too_soon_at: [nightStart + 2_000],
      },
      {
        ...unseen,
        session_id: idOf("locked"),
        customer_id: "standing-6",
        found_at: nightStart + 2_000,
        locked_at: [nightStart + 2_000],
      },
      { ...unseen, session_id: expect.stringMatching(/^[0-9a-f]{24}$/), customer_id: "c-1" },
    ])
    expect(ruleBreaks).toMatchObject([{ at: nightStart + 2_000, rule: "results_read_too_soon" }])
    expect(sessions.at(-1)?.phases).toMatchObject(
      ["READY", "READY", "CUSTOMER_CANCELLED"].map((status) => ({ status })),
    )
  })
})

describe("the standing sessions", () => {
  it("have ids that the service accepts as ObjectIds", () => {
    for (const script of [0, 7, firstDrawnScript, 0xff_ff_ff_ff]) {
      const id = standingSessionId(script)
      expect(id).toMatch(/^5e55000000000000[0-9a-f]{8}$/)
      expect(planStanding(7, nightStart, id)?.created.session_id).toBe(id)
    }
    expect(planStanding(7, nightStart, "65f0c0ffee65f0c0ffee65f0")).toBe(undefined)
  })

  it("hold records of every feature between them", () => {
    const plan = planStanding(7, nightStart, idOf("every_family"))
    expect(new Set(plan?.created.features)).toEqual(new Set(features))
  })

  it("are drawn from the seed: all kinds occur, the same seed draws the same, another one differs", () => {
    const draw = (seed: number) =>
      Array.from({ length: 400 }, (_, index) => standingScriptOf(seed, standingSessionId(256 + index)))
    const names = draw(7).map((script) => script?.name)
    const kinds = "completed partial unstarted failed cancelled timed_out".split(" ")
    expect(new Set(names)).toEqual(new Set(kinds.map((kind) => `drawn_${kind}`)))
    expect(draw(7)).toEqual(draw(7))
    expect(draw(8).map((script) => script?.name)).not.toEqual(names)
  })
})
