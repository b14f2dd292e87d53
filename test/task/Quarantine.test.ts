/** Answers that cannot be used, and defects of ours over one, cost their own task at most. */
import { describe, expect, it } from "@effect/vitest"
import { Cause, Effect, Exit } from "effect"
import type { Body } from "../../src/client/Service.ts"
import { BoundBroken } from "../../src/service/BodyBounds.ts"
import { dueDeletions } from "../../src/task/DeleteExecutions.ts"
import { AnswerUnusable, defectOf, defectText } from "../../src/task/Quarantine.ts"
import { keptWhereUnusable } from "../../src/task/SettleUnusable.ts"
import { Ledger } from "../../src/ledger/Ledger.ts"
import { pendingDeletions, type RunState } from "../../src/ledger/RunState.ts"
import { idOf, makePlace, night, run_id, succeeded, busy, unusable } from "./ScriptedNight.ts"
import type { NightEnd, Place } from "./ScriptedNight.ts"
import { accepted, completed, results, state, working, type Script } from "./ScriptedService.ts"
import { anId } from "../harness/Id.ts"
import { effect } from "../harness/Steps.ts"

const bytes = new TextEncoder().encode("[[[[")
const nested: Body = { bytes, json: undefined, unusable: "it is nested deeper than 250000 levels" }
/** Whoever reads its records finds a defect. */
const trap = (): Body => ({
  bytes,
  json: {
    is_closed: true,
    get data(): never {
      throw new TypeError("secret of a customer")
    },
  },
})

const settledOf = (end: NightEnd, customer: string) => end.state.tasks.get(idOf(customer))?.settled?.fact
const others = [{ customer: "c-1" }, { customer: "c-3" }]
const all = [{ customer: "c-1" }, { customer: "c-2", fingerprint: "f-2" }, { customer: "c-3" }]
const asideIn = ({ store }: Place) =>
  (store.bodies.get(run_id) ?? []).filter(({ meta }) => meta.kind === "unusable")

describe("results that cannot be used", () => {
  for (const [name, body, why, where] of [
    [
      "break a bound",
      () => nested,
      "it is nested deeper than 250000 levels",
      /^the part kept is landing\/job\.2026-11-21\/segment-000001\.njl at \d+, 4 bytes$/,
    ],
    ["meet a defect of ours", trap, /^a defect in the program \(TypeError in \w/, /^its body could not/],
  ] as const) {
    effect(`settle their own task when they ${name}, undeleted [end ANSWER_UNUSABLE]`, function* () {
      const script = {
        results: (session_id: string) =>
          session_id === "s-c-2-1" ? ({ _tag: "Results", body: body() } as const) : results(true),
      }
      const end = yield* night({ tasks: all, script })
      const alone = yield* night({ tasks: others })
      expect(others.map(({ customer }) => settledOf(end, customer))).toEqual(
        others.map(({ customer }) => settledOf(alone, customer)),
      )
      expect(end.verdict("c-2")).toBe(unusable)
      const [refused] = end.of("AnswerRefused")
      expect(refused).toMatchObject({ what: "flow_results", execution_id: anId("e-c-2-1") })
      const said = refused?._tag === "AnswerRefused" ? refused.why : ""
      if (typeof why === "string") expect(said).toBe(why)
      else expect(said).toMatch(why)
      expect(said).not.toContain("secret")
      const [what, kept] = settledOf(end, "c-2")?.message?.split("; ") ?? []
      expect(what).toBe(`the answer (flow_results) cannot be used: ${said}`)
      expect(kept).toMatch(where)
      expect(end.of("AttemptKept")).toMatchObject([
        { execution_id: anId("e-c-2-1"), reason: "ANSWER_UNUSABLE", families: [] },
      ])
      // The login was accepted and its end was read: it may be sent again.
      expect(end.of("CredentialRejected")).toEqual([])
      expect(end.countOf("start", "c-2")).toBe(1)
      expect(pendingDeletions(end.state)).toBe(2)
      expect(end.isOver).toBe(true)
    })
  }

  effect("are read again by the next process, and settle the task if they can be used", function* () {
    const place = makePlace()
    const tasks = [{ customer: "c-2" }]
    const broken = { results: () => ({ _tag: "Results", body: nested }) as const }
    yield* night({ tasks, place, script: broken })
    const still = yield* night({ tasks, place, script: broken })
    expect(still.verdict("c-2")).toBe(unusable)
    // Nothing new was learnt: one fact, one body.
    expect(still.of("AnswerRefused")).toHaveLength(1)
    expect(still.of("AttemptKept")).toHaveLength(1)
    expect(asideIn(place)).toHaveLength(1)
    const reads = (body: Body) => ({ results: () => ({ _tag: "Results", body }) as const })
    // Another reason is news, and so is another body.
    yield* night({ tasks, place, script: reads({ ...nested, unusable: "it is too long" }) })
    expect(asideIn(place)).toHaveLength(1)
    const other = yield* night({ tasks, place, script: reads({ ...nested, bytes: bytes.subarray(1) }) })
    expect(asideIn(place)).toHaveLength(2)
    expect(other.of("AnswerRefused").map((one) => [one.why, one.landed?.bytes])).toEqual([
      [nested.unusable, 4],
      ["it is too long", 4],
      [nested.unusable, 3],
    ])
    const healed = yield* night({ tasks, place, mode: "collect" })
    expect(healed.verdict("c-2")).toBe(succeeded)
    expect(healed.starts).toBe(1)
    expect(pendingDeletions(healed.state)).toBe(1)
  })
})

describe("a state that cannot be used", () => {
  effect("leaves its execution in flight, its login unsent and its slot to the others", function* () {
    const place = makePlace()
    const view = {}
    const script = {
      state: (id: string, times: number) =>
        id === "e-c-2-1"
          ? ({ _tag: "Closed", body: nested, view } as const)
          : times === 1
            ? working
            : completed,
    }
    const tasks = [{ customer: "c-2", fingerprint: "f-2" }, ...others]
    const limits = { max_in_flight: 1, per_engine: 1 }
    const end = yield* night({ tasks, script, place, rules: { limits } })
    expect(tasks.map(({ customer }) => end.verdict(customer))).toEqual([unusable, succeeded, succeeded])
    // Nobody knows how its login ended: it counts as one that may have failed, and is not rejected.
    expect(end.of("LoginJudged")).not.toMatchObject([{ task_id: idOf("c-2") }])
    expect(end.of("CredentialRejected")).toEqual([])
    expect(end.countOf("abort")).toBe(0)
    expect(dueDeletions(end.state)).toEqual([])
    const ids = { run_id, task_id: idOf("c-2"), attempt: 1, execution_id: "e-c-2-1" }
    const aside = asideIn(place).map(({ meta, bytes: kept }) => [{ ...meta, received_at: 0 }, kept])
    expect(aside).toEqual([[{ kind: "unusable", ...ids, http_status: 200, received_at: 0 }, bytes]])
    const still = yield* night({ tasks, script, place, rules: { limits } })
    expect([still.of("AnswerRefused").length, asideIn(place).length]).toEqual([1, 1])
    expect(still.verdict("c-2")).toBe(unusable)
    expect([still.countOf("start", "c-2"), still.of("CredentialRejected")]).toEqual([1, []])
    const next = yield* night({ tasks, place, rules: { limits } })
    expect(next.verdict("c-2")).toBe(succeeded)
    expect(next.countOf("start", "c-2")).toBe(1)
  })

  effect("rejects no login that was accepted before, and keeps it: it may be in use", function* () {
    const script = {
      state: (_: string, times: number) =>
        times === 1 ? working : ({ _tag: "Working", body: nested, view: {} } as const),
    }
    const place = makePlace()
    const tasks = ["c-2", "c-9"].map((customer) => ({ customer, fingerprint: "f-2" }))
    const end = yield* night({ tasks: [...tasks, { customer: "c-3" }], script, place })
    expect(end.verdicts("c-2", "c-9", "c-3")).toEqual([unusable, busy, unusable])
    expect([end.starts, end.countOf("start", "c-9")]).toEqual([2, 0])
    expect(end.of("CredentialRejected")).toEqual([])
    expect(asideIn(place).map(({ meta }) => meta.http_status)).toEqual([202, 202])
  })
})

effect("an answer that a defect of ours hides is recorded by what was asked for", function* () {
  const hidden = () => {
    throw new TypeError("in our own code")
  }
  const asked = (script: Script) =>
    Effect.map(night({ script }), ({ facts }) =>
      facts.flatMap((one) => (one._tag === "AnswerRefused" ? [[one.what, one.execution_id]] : [])),
    )
  expect([yield* asked({ state: hidden }), yield* asked({ results: hidden })]).toEqual([
    [["state", "e-c-1-1"]],
    [["flow_results", "e-c-1-1"]],
  ])
})

describe("a start whose answer cannot be used", () => {
  effect("is never sent again, neither by a probe nor by a later process", function* () {
    const place = makePlace()
    const script = { start: () => ({ _tag: "Accepted", http_status: 202, body: nested, view: {} }) as const }
    const tasks = [{ customer: "c-2", fingerprint: "f-2" }]
    yield* night({ tasks, place, script })
    const next = yield* night({ tasks, place, script })
    expect(next.verdict("c-2")).toBe(unusable)
    expect(next.starts).toBe(1)
    expect(next.of("StartAnswered")).toMatchObject([{ answer: "unusable", http_status: 202 }])
    expect(next.of("LoginJudged")).toMatchObject([{ account: "f-2", verdict: "unproven", said: "202" }])
    expect(next.of("AnswerRefused")).toMatchObject([{ what: "start", why: nested.unusable }])
    expect(asideIn(place).map(({ meta, bytes: kept }) => [meta.http_status, kept])).toEqual([[202, bytes]])
  })

  effect("counts as answered when a defect of ours hid the answer", function* () {
    const start = () => {
      throw new TypeError("in our own code")
    }
    const end = yield* night({
      tasks: all,
      script: { start: (call) => (call.customer_id === "c-2" ? start() : accepted(call.customer_id)) },
    })
    expect(end.verdict("c-2")).toBe(unusable)
    expect(end.countOf("start", "c-2")).toBe(1)
    expect(others.map(({ customer }) => end.verdict(customer))).toEqual([succeeded, succeeded])
    // Its process may have died before the verdict: the next one sends nothing either.
    const known = end.facts.filter(
      (fact) => "task_id" in fact && fact.task_id === idOf("c-2") && fact._tag !== "TaskSettled",
    )
    expect(known.map(({ _tag }) => _tag)).toEqual([
      "TaskPlanned",
      "StartIntended",
      "AnswerRefused",
      "StartAnswered",
      "LoginJudged",
    ])
    expect(known[2]).toMatchObject({ what: "start", why: expect.stringMatching(/^a defect in the program/) })
    const next = yield* night({ tasks: [{ customer: "c-2" }], facts: known.slice(1, 4) })
    expect([next.starts, next.verdict("c-2")]).toEqual([0, unusable])
  })
})

describe("a task whose past meets a defect of ours", () => {
  /** Whoever looks at this part of the state of the customer's task finds a defect. */
  const misreading =
    (part: "attempts" | "attemptsBefore") =>
    (state: RunState): RunState => {
      const broken = new Proxy(state.tasks.get(idOf("c-2"))!, {
        get: (of, name) => {
          if (name === part) throw new TypeError("in our own code")
          return Reflect.get(of, name)
        },
      })
      return { ...state, tasks: new Map([...state.tasks, [idOf("c-2"), broken]]) }
    }

  effect("is settled alone, and its login is not sent for anybody else [promise 11 past]", function* () {
    const place = makePlace()
    const tasks = [...all, { customer: "c-4", fingerprint: "f-2" }]
    yield* night({ tasks, place, script: { state: () => working }, cutAfter: "1 minute" })
    const end = yield* night({ tasks, place, misread: misreading("attempts") })
    expect(tasks.map(({ customer }) => end.verdict(customer))).toEqual([succeeded, unusable, succeeded, busy])
    expect(settledOf(end, "c-2")?.message).toMatch(
      /^the answer \(task\) cannot be used: a defect in the program \(TypeError in \w.*\); its body could/,
    )
    expect([end.countOf("start", "c-2"), end.countOf("start", "c-4")]).toEqual([1, 0])
    expect(end.isOver).toBe(true)
  })

  effect("holds the login that its execution was started with, whatever the job says by now", function* () {
    const place = makePlace()
    yield* night({ tasks: all, place, script: { state: () => working }, cutAfter: "1 minute" })
    const tasks = all.map((one) => (one.customer === "c-2" ? { ...one, fingerprint: "f-new" } : one))
    const end = yield* night({ tasks, place, misread: misreading("attemptsBefore") })
    expect(end.verdict("c-2")).toBe(unusable)
    const known = yield* Effect.provide(
      Effect.flatMap(Ledger, ({ accounts }) => accounts),
      place.ledger,
    )
    expect(known.flatMap(({ account, sent }) => sent.map(({ task_id }) => [account, task_id]))).toEqual([
      ["f-2", idOf("c-2")],
    ])
  })

  effect("holds no login that was never sent", function* () {
    const tasks = [...all, { customer: "c-4", fingerprint: "f-2" }]
    const end = yield* night({ tasks, misread: misreading("attemptsBefore") })
    expect(end.verdicts()).toEqual([succeeded, unusable, succeeded, succeeded])
    expect([end.countOf("start", "c-2"), end.of("CredentialRejected")]).toEqual([0, []])
  })

  effect("gets no second verdict if the run is drained while it waits for its next try", function* () {
    const end = yield* night({
      tasks: others,
      script: {
        state: (id, times) =>
          id === "e-c-1-1" ? state("TEMPORARY_ERROR", "OUT_OF_SERVICE") : times < 9 ? working : completed,
      },
      hear: (event) => {
        if (event._tag === "Waiting") throw new TypeError("in our own code")
      },
      acts: [[10_000, (held) => void held.steer({ _tag: "Drain" })]],
    })
    const verdicts = end.of("TaskSettled").map((fact) => ("reason" in fact ? fact.reason : ""))
    expect([end.isOver, verdicts]).toEqual([true, ["ANSWER_UNUSABLE", "COMPLETED"]])
  })
})

describe("a failure that is not about an answer", () => {
  effect("an interruption passes through, whatever failed beside it [promise 11 interruption]", function* () {
    const failure = new AnswerUnusable({ what: "state", why: "w" })
    const cause = Cause.combine(Cause.fail(failure), Cause.interrupt(1))
    const reading = Effect.failCause(cause)
    expect(yield* Effect.exit(keptWhereUnusable({ run_id }, reading))).toEqual(Exit.failCause(cause))
  })

  it("is told from a defect, which is reported by its kind and place, and a broken bound by its own words", () => {
    const die = Cause.die(new TypeError("x"))
    expect(defectOf(die)).toEqual({ defect: new TypeError("x") })
    expect(defectOf(Cause.combine(die, Cause.interrupt(1)))).toBeUndefined()
    expect(defectOf(Cause.combine(die, Cause.fail("disk full")))).toBeUndefined()
    const inner = function readTheBody() {
      return defectText(new RangeError("hunter2!"))
    }
    expect(inner()).toBe("a defect in the program (RangeError in readTheBody)")
    expect(defectText("hunter2!")).toBe("a defect in the program (string)")
    const bare = new RangeError("hunter2!")
    delete bare.stack
    expect(defectText(bare)).toBe("a defect in the program (RangeError)")
    expect(defectText(new BoundBroken("it has more than 10 records"))).toBe("it has more than 10 records")
  })
})
