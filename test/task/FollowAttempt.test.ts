/** Executions in virtual time: how they are looked at, aborted and closed. */
import { describe, expect } from "@effect/vitest"
import { Duration, Effect } from "effect"
import { SecretRefused } from "../../src/client/Service.ts"
import type { StateAnswer, StateView } from "../../src/client/Service.ts"
import { hour, makePlace, minute, night, second, sharing, startedBefore, succeeded } from "./ScriptedNight.ts"
import { unusable } from "./ScriptedNight.ts"
import { bodyOf, challenge, completed, counted, lost, state, throttled, working } from "./ScriptedService.ts"
import { acceptedAs } from "./ScriptedService.ts"
import { anId } from "../harness/Id.ts"
import { effect } from "../harness/Steps.ts"

const after =
  (looks: number, then = completed) =>
  (_: string, times: number) =>
    times <= looks ? working : then
const cancelled = state("ABORTED", "CLIENT_CANCELLED")
const plainEnd = {
  body: bodyOf({}),
  view: { status_code: "COMPLETED", status_reason: "COMPLETED", products_count: counted({}) },
}

describe("an execution whose id belongs to somebody else", () => {
  const strange = (fields: Partial<StateView>): StateAnswer =>
    state("ONGOING", "RUNNING", { authentication_status: "AUTH_OK", ...fields })

  effect.each<readonly [string, Partial<StateView>]>([
    ["external id", { external_execution_id: "x-of-somebody-else" }],
    ["customer", { customer_id: anId("c-other") }],
    ["engine", { engine_reference: anId("tax") }],
    ["own id", { execution_id: anId("e-of-another-night") }],
  ])(
    "by its %s is left alone, neither read nor aborted [promise 2 strangers] [promise 4 told not ours] [promise 2 other id]",
    function* ([, fields]) {
      const tasks = [{ customer: "c-1", fingerprint: "f-1" }]
      const end = yield* night({ tasks, script: { state: () => strange(fields), whose: () => undefined } })
      expect([end.verdict("c-1"), end.countOf("state")]).toEqual(["failed NOT_OURS engineer", 3])
      for (const verb of ["abort", "results", "delete"]) expect(end.countOf(verb)).toBe(0)
      expect(end.of("AttemptDisowned").length).toBe(1)
      expect(end.of("AttemptObserved")).toEqual([])
      // Nobody will ever read what became of the login.
      expect(end.of("LoginJudged").map(({ verdict, said }) => [verdict, said])).toEqual([
        ["unproven", "NOT_OURS"],
      ])
    },
  )

  effect.each<readonly [string, (times: number) => StateAnswer | undefined]>([
    ["if only once", (times) => (times <= 2 ? undefined : times === 3 ? working : completed)],
    [
      "however often, if something else was seen in between",
      (times) => (times > 12 ? completed : times % 3 === 0 ? working : undefined),
    ],
  ])("counts as a mixed-up answer %s", function* ([, answer]) {
    const stranger = strange({ customer_id: anId("c-other") })
    const end = yield* night({ script: { state: (_, times) => answer(times) ?? stranger } })
    expect([end.verdict("c-1"), end.of("AttemptDisowned")]).toEqual([succeeded, []])
  })

  effect("is not aborted when its time is up either", function* () {
    const state_ = strange({ customer_id: anId("c-other") })
    const end = yield* night({
      script: { state: () => state_ },
      rules: { max_wait: Duration.millis(3 * second) },
    })
    expect([end.verdict("c-1"), end.countOf("abort")]).toEqual(["failed NOT_OURS engineer", 0])
  })
})

describe("following an execution", () => {
  effect("records what is new, once, and lands the last state before its end is a fact", function* () {
    const place = makePlace()
    const end = yield* night({ script: { state: after(30) }, place })
    expect(end.of("AttemptObserved").map(({ status_reason }) => status_reason)).toEqual([
      "RUNNING",
      "COMPLETED",
    ])
    const landed = end.landed
    expect(landed.map(({ meta }) => meta.kind)).toEqual(["start", "state", "results"])
    expect(end.of("AttemptClosed")[0]?.landed).toEqual(landed[1]?.ref)
    expect(end.of("AttemptClosed")[0]?.products_count).toEqual({ "bank:account@accounts": 1 })
  })

  effect("looks when earlier ones had ended, and records how long this one took by its dates", function* () {
    // Its start is answered after 200 ms.
    const looks = [60 * second, 70 * second, 80 * second]
    const view = { date_created: "2026-11-21T00:00:00Z", date_ended: "2026-11-21T00:01:08.500Z" }
    const ended = state("COMPLETED", "COMPLETED", view)
    const end = yield* night({
      tasks: [{ customer: "c-1", looks }],
      script: { state: (_, times) => (times === 1 ? working : ended) },
    })
    expect(end.timesOf("state")).toEqual([60_200, 70_200])
    expect(end.of("AttemptClosed")[0]?.took).toBe(68_500)
  })

  effect("records a state that says nothing as unknown, and each change of one word of it", function* () {
    const { body } = plainEnd
    const says = (view: StateView): StateAnswer => ({ _tag: "Working", body, view })
    const states = [
      says({}),
      says({ status_code: "ONGOING", status_reason: "A B" }),
      says({ status_code: "ONGOING A", status_reason: "B" }),
    ]
    const end = yield* night({ script: { state: (_, times) => states[times - 1] ?? completed } })
    expect(
      end.of("AttemptObserved").map(({ status_code, status_reason }) => [status_code, status_reason]),
    ).toEqual([
      ["UNKNOWN", "UNKNOWN"],
      ["ONGOING", "A B"],
      ["ONGOING A", "B"],
      ["COMPLETED", "COMPLETED"],
    ])
  })

  effect("lands the last state with the status that it came with", function* () {
    const { body, view } = plainEnd
    const answers: ReadonlyArray<StateAnswer> = [
      { _tag: "Working", body, view: { ...view, is_closed: true } },
      { _tag: "Closed", body, view },
    ]
    const landed = yield* Effect.forEach(answers, (answer) =>
      Effect.gen(function* () {
        const end = yield* night({ script: { state: () => answer } })
        const bodies = end.landed
        return bodies.flatMap(({ meta }) => (meta.kind === "state" ? [meta.http_status] : []))
      }),
    )
    expect(landed).toEqual([[202], [200]])
  })

  effect("reads the results of the session that any of its states named, else of none", function* () {
    const unnamed = acceptedAs({ execution_id: anId("e-1") })
    const named = state("ONGOING", "RUNNING", { session_id: anId("s-late") })
    const script = { start: () => unnamed, state: after(1) }
    const late = yield* night({
      script: { ...script, state: (_, times) => (times === 1 ? named : completed) },
    })
    const sessions = [...late.of("AttemptObserved"), ...late.of("AttemptClosed")]
    expect(sessions.map(({ session_id }) => session_id)).toEqual(["s-late", "s-late", "s-late"])
    expect(late.countOf("results", "s-late")).toBe(1)
    const never = yield* night({ script })
    const closed = never.of("AttemptClosed").map((fact) => "session_id" in fact)
    expect([closed, never.countOf("results")]).toEqual([[false], 0])
  })

  effect("does not begin with an id of an older ledger that is too long for a path", function* () {
    const execution_id = anId("e".repeat(9_000))
    const facts = startedBefore("c-1", { answer: "accepted", http_status: 202, execution_id })
    const end = yield* night({ facts })
    expect([end.verdict("c-1"), end.calls]).toEqual([unusable, []])
  })

  effect("continues through lost answers, storms and an invalid date", function* () {
    const dated = state("ONGOING", "RUNNING", { next_kick_date: "soon" })
    const answers = [lost, throttled(429, 30 * second), lost, dated]
    const end = yield* night({ script: { state: (_, times) => answers[times - 1] ?? completed } })
    expect(end.verdict("c-1")).toBe(succeeded)
    const [, second1 = 0, third = 0] = end.timesOf("state")
    expect(third - second1).toBeGreaterThanOrEqual(30 * second)
  })

  effect(
    "believes that an execution is gone after ten minutes of such answers [promise 4 gone]",
    function* () {
      const gone = { _tag: "NotFound" } as const
      const place = makePlace()
      // A gateway without a service behind it, until just before that.
      const blink = yield* night({
        place,
        script: { state: () => (place.world.now() < 9.9 * minute ? gone : completed) },
      })
      expect([blink.starts, blink.verdict("c-1")]).toEqual([1, succeeded])
      const away = yield* night({
        tasks: [{ customer: "c-1", fingerprint: "f-1" }],
        script: { state: (_, times) => (times === 3 ? working : gone) },
      })
      const reads = away.timesOf("state")
      expect([away.starts, away.verdict("c-1")]).toEqual([1, "unfinished EXECUTION_GONE service"])
      // Once it was found, they count anew.
      expect((reads.at(-1) ?? 0) - (reads[3] ?? 0)).toBeGreaterThanOrEqual(10 * minute)
      expect((reads.at(-2) ?? 0) - (reads[3] ?? 0)).toBeLessThan(10 * minute)
      expect(away.of("CredentialRejected")).toEqual([])
    },
  )

  effect(
    "looks for one that is past its time as long, and stops nothing [promise 4 gone late]",
    function* () {
      const place = makePlace()
      const end = yield* night({
        place,
        tasks: [{ customer: "c-1", fingerprint: "f-1" }],
        script: { state: () => (place.world.now() < 3.45 * hour ? working : { _tag: "NotFound" }) },
      })
      const told = [end.starts, end.countOf("abort"), end.verdict("c-1")]
      expect(told).toEqual([1, 0, "unfinished EXECUTION_GONE service"])
      // At its usual pace, as long as it waits for others.
      const late = end.timesOf("state").filter((ms) => ms >= 3.5 * hour)
      expect(late.length).toBeGreaterThanOrEqual(6)
      expect(late.length).toBeLessThanOrEqual(10)
    },
  )
})

describe("an execution that cannot continue", () => {
  effect.each([
    [423, challenge],
    [202, { _tag: "Working", body: bodyOf({}), view: { status_code: "ACTION_REQUIRED" } }],
  ] as const)(
    "because the source asks for a person (%i) is aborted at once",
    function* ([http_status, asked]) {
      let aborted = false
      const end = yield* night({
        script: { state: () => (aborted ? cancelled : asked), abort: () => ((aborted = true), "aborted") },
      })
      expect(end.of("AbortIntended").map(({ why }) => why)).toEqual(["challenge"])
      expect([end.starts, end.verdict("c-1")]).toEqual([1, "failed CUSTOMER_INTERVENTION_REQUIRED customer"])
      const bodies = end.landed.map(({ meta }) => meta)
      expect(bodies.map(({ kind }) => kind)).toEqual(["start", "challenge", "state"])
      expect(bodies[1]).toMatchObject({ http_status, execution_id: "e-c-1-1", session_id: "s-c-1-1" })
    },
  )

  effect("is left in flight after eight aborts in vain, or twenty looks after an accepted one", function* () {
    const vain = yield* night({ script: { state: () => challenge, abort: () => "not_stoppable" } })
    const stuck = yield* night({ script: { state: () => challenge, abort: () => "aborted" } })
    expect(
      [vain, stuck].map((end) => [end.verdict("c-1"), end.countOf("abort"), end.countOf("state")]),
    ).toEqual([
      ["unfinished NOT_STOPPABLE service", 8, 9],
      ["unfinished NOT_STOPPABLE service", 1, 21],
    ])
    // However often the question was read.
    expect(stuck.landed.map(({ meta }) => meta.kind)).toEqual(["start", "challenge"])
    // Each is longer waited for than the one before, up to the longest wait between two looks.
    const asked = vain.timesOf("abort")
    const waits = asked.slice(1).map((ms, index) => Math.round((ms - (asked[index] ?? 0)) / second))
    expect(waits).toEqual([2, 4, 8, 16, 32, 60, 60])
  })

  effect("because the source asks for a person is the customer's, whoever aborted it", function* () {
    const asked = yield* night({ script: { state: () => challenge }, cutAfter: "10 seconds" })
    expect(asked.of("AbortIntended").length).toBe(1)
    const script = { state: () => cancelled }
    // The abort had its effect while no process was there, or the process died right after the closing.
    const next = yield* night({ facts: asked.facts.slice(2), script })
    const upToClosing = next.facts.slice(2, next.facts.findIndex(({ _tag }) => _tag === "AttemptClosed") + 1)
    const last = yield* night({ facts: upToClosing, script })
    const told = [next, last].map((end) => [end.starts, end.countOf("abort"), end.verdict("c-1")])
    const customers = [0, 0, "failed CUSTOMER_INTERVENTION_REQUIRED customer"]
    expect(told).toEqual([customers, customers])
  })

  effect("before the deadline is aborted then, and nothing more is started", function* () {
    let aborted = 0
    const end = yield* night({
      tasks: sharing("one", "c-1", "c-2"),
      rules: { deadlineAt: hour },
      script: { state: () => (aborted > 0 ? cancelled : working), abort: () => (aborted++, "aborted") },
    })
    expect(end.of("AbortIntended").map(({ why }) => why)).toEqual(["deadline"])
    expect([end.starts, end.verdict("c-1"), end.verdict("c-2")]).toEqual([
      1,
      "unfinished CLIENT_CANCELLED service",
      "unfinished DEADLINE_REACHED service",
    ])
  })

  effect(
    "whose service refuses the secret is followed by the next run [end SECRET_REFUSED open]",
    function* () {
      const refused = new SecretRefused({ http_status: 401, message: "no such application" })
      const end = yield* night({
        rules: { max_wait: Duration.millis(minute) },
        script: { state: () => refused, abort: () => refused },
      })
      expect(end.verdict("c-1")).toBe("unfinished SECRET_REFUSED engineer")
      const next = yield* night({ facts: end.facts.slice(2), script: { state: () => completed } })
      expect([next.starts, next.verdict("c-1")]).toEqual([0, succeeded])
    },
  )
})
