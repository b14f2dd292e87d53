/** Starts in virtual time: lost, doubled, refused, throttled, in the way of somebody else. */
import { describe, expect } from "@effect/vitest"
import { Duration, Effect } from "effect"
import { AnswerLost, type CallFailure, type StartAnswer, type StartCall } from "../../src/client/Service.ts"
import type { Fact } from "../../src/ledger/Fact.ts"
import { hour, idOf, makePlace, minute, night, run_id, second, type NightEnd } from "./ScriptedNight.ts"
import {
  accepted,
  completed,
  conflict,
  lost,
  notSent,
  refused,
  state,
  throttled,
  working,
} from "./ScriptedService.ts"
import { anId } from "../harness/Id.ts"
import { effect } from "../harness/Steps.ts"

/** The answers to a customer's starts one after another; the last one goes on. */
const answers =
  (...all: ReadonlyArray<(call: StartCall) => StartAnswer | CallFailure>) =>
  (call: StartCall, times: number) =>
    (all[Math.min(times, all.length) - 1] ?? (() => lost))(call)

const startFacts = (facts: ReadonlyArray<Fact>) =>
  facts.flatMap((fact) => {
    if (fact._tag === "StartIntended") return [fact.probe ? "probe" : "start"]
    if (fact._tag === "StartAnswered") return [fact.answer]
    return fact._tag === "OrphanSuspected" ? ["orphan"] : []
  })

describe("a lost start", () => {
  effect("is found again by the same external id, and never repeated [decision 2 probe]", function* () {
    const ids: Array<string> = []
    const note = (call: StartCall) => void ids.push(call.external_execution_id)
    const end = yield* night({
      script: {
        start: answers(
          (call) => (note(call), lost),
          (call) => (note(call), conflict("1", call.external_execution_id)),
        ),
      },
    })
    expect(startFacts(end.facts)).toEqual(["start", "lost", "probe", "adopted"])
    expect([new Set(ids).size, end.verdict("c-1")]).toEqual([1, "succeeded COMPLETED nobody"])
    const [first = 0, probe = 0] = end.timesOf("start")
    // Soon enough to find a short execution before it is over: a later probe would run its login again.
    // The lost request itself took 200 ms.
    expect(probe - first).toBe(1_200)
  })

  effect.each([
    ["names another external id", "x-of-somebody-else"],
    ["names none", undefined],
  ])("is not found in a run whose 409 echoes our external id and whose state %s", function* ([, whose]) {
    const stranger = (call: StartCall) => conflict("stranger", call.external_execution_id)
    const end = yield* night({
      script: {
        whose: (execution_id) => (execution_id === "e-stranger" ? whose : undefined),
        start: answers(
          () => lost,
          stranger,
          stranger,
          stranger,
          () => accepted("1"),
        ),
      },
    })
    expect(end.verdict("c-1")).toBe("succeeded COMPLETED nobody")
    expect(startFacts(end.facts).slice(0, 4)).toEqual(["start", "lost", "probe", "foreign"])
    expect(startFacts(end.facts).slice(-3)).toEqual(["probe", "accepted", "orphan"])
    const touched = end.calls.filter(([, verb, id]) => id.includes("stranger") && verb !== "state")
    expect(touched).toEqual([])
  })

  effect("whose probe is lost too is unknown, and stays so when the run is resumed", function* () {
    const script = { start: answers(() => lost) }
    const end = yield* night({ script })
    expect(startFacts(end.facts)).toEqual(["start", "lost", "probe", "lost"])
    expect(end.verdict("c-1")).toBe("unfinished START_UNKNOWN engineer")
    const again = yield* night({ script, facts: end.facts.slice(2) })
    expect([again.countOf("start"), again.verdict("c-1")]).toEqual([0, "unfinished START_UNKNOWN engineer"])
  })

  effect(
    "that stays unknown keeps its login from others when the run is resumed, while it may run [end START_UNKNOWN open]",
    function* () {
      const place = makePlace()
      const tasks = ["c-1", "c-2"].map((customer) => ({ customer, fingerprint: "one" }))
      // Each request needs a fifth of a second: killed in the middle of it, the start and then its probe.
      yield* night({ place, tasks, killAfter: 100 })
      yield* night({ place, tasks, killAfter: 100 })
      const verdicts = (end: NightEnd) => [end.countOf("start"), end.verdict("c-1"), end.verdict("c-2")]
      const unknown = [2, "unfinished START_UNKNOWN engineer", "unfinished START_UNKNOWN engineer"]
      expect(verdicts(yield* night({ place, tasks }))).toEqual(unknown)
      expect(verdicts(yield* night({ place, tasks }))).toEqual(unknown)
      let isLater = false
      place.world.at(place.world.now() + 4 * hour, () => (isLater = true))
      place.world.runUntil(() => isLater)
      // Two logins of which nobody knows the end: a third one is not sent on the same date without need.
      expect(verdicts(yield* night({ place, tasks }))).toEqual([
        2,
        "unfinished START_UNKNOWN engineer",
        "unfinished START_UNKNOWN engineer",
      ])
    },
  )

  effect("was never sent while it waited for its turn: any number of kills then costs nothing", function* () {
    const place = makePlace()
    const waiting = { turnMs: 10 * minute }
    for (let kills = 0; kills < 8; kills++) yield* night({ place, script: waiting, killAfter: 3 * second })
    const end = yield* night({ place, script: {} })
    expect(startFacts(end.facts)).toEqual(["start", "accepted"])
    expect([end.countOf("start"), end.verdict("c-1")]).toEqual([1, "succeeded COMPLETED nobody"])
  })

  effect("is unknown only if both of its requests were sent", function* () {
    const place = makePlace()
    // Each request needs a fifth of a second: killed in the middle of it.
    yield* night({ place, killAfter: 100 })
    for (let kills = 0; kills < 3; kills++)
      yield* night({ place, script: { turnMs: minute }, killAfter: second })
    yield* night({ place, killAfter: 100 })
    const end = yield* night({ place })
    expect(startFacts(end.facts)).toEqual(["start", "probe"])
    expect([end.countOf("start"), end.verdict("c-1")]).toEqual([2, "unfinished START_UNKNOWN engineer"])
  })

  effect("is still probed once after its probe was throttled, however often", function* () {
    const end = yield* night({
      script: {
        start: answers(
          () => lost,
          () => throttled(429, 40 * second),
          () => notSent,
          (call) => conflict("1", call.external_execution_id),
        ),
      },
    })
    expect(startFacts(end.facts)).toEqual([
      "start",
      "lost",
      "probe",
      "not_created",
      "probe",
      "not_created",
      "probe",
      "adopted",
    ])
    const [, throttledAt = 0, laterAt = 0] = end.timesOf("start")
    expect(laterAt - throttledAt).toBeGreaterThanOrEqual(40 * second)
  })

  effect("whose probe never got through is probed when the run is resumed", function* () {
    const place = makePlace()
    const script = {
      start: answers(
        () => lost,
        () => throttled(),
      ),
    }
    const end = yield* night({ place, script })
    expect(end.verdict("c-1")).toBe("unfinished START_UNKNOWN engineer")
    const again = yield* night({
      place,
      script: { start: answers((call) => conflict("1", call.external_execution_id)) },
    })
    expect(startFacts(again.facts).slice(-2)).toEqual(["probe", "adopted"])
    expect(again.verdict("c-1")).toBe("succeeded COMPLETED nobody")
  })

  effect(
    "whose probe was held back before it was sent is probed by the next process [decision 2 held back]",
    function* () {
      const place = makePlace()
      const one = { customer: "c-1", fingerprint: "f-1" }
      let starts = 0
      const held = () => (starts++ === 0 ? undefined : throttled(429, 20 * minute))
      const before = yield* night({
        place,
        tasks: [one],
        script: { start: () => lost, held },
        killAfter: minute,
      })
      const judged = (facts: ReadonlyArray<Fact>) =>
        facts.flatMap((fact) => (fact._tag === "LoginJudged" ? [fact.verdict] : []))
      // What was not sent is in no fact: neither an answer to it, nor anything of its login.
      expect([startFacts(before.facts), judged(before.facts)]).toEqual([["start", "lost"], ["unproven"]])
      const end = yield* night({ place, tasks: [one], script: { start: () => accepted("1") } })
      expect(startFacts(end.facts)).toEqual(["start", "lost", "probe", "accepted", "orphan"])
    },
  )
})

describe("two starts that are answered with one id", () => {
  effect("leave the execution to the first: the second has none, and changes nothing", function* () {
    const answered: Array<StartCall> = []
    const place = makePlace()
    const end = yield* night({
      place,
      tasks: [{ customer: "c-1" }, { customer: "c-2" }],
      script: {
        whose: () => answered[0]?.external_execution_id,
        start: (call) => (answered.push(call), accepted("x")),
      },
    })
    const [first = "", other = ""] = answered.map(({ customer_id }) => customer_id)
    expect([end.verdict(first), end.verdict(other)]).toEqual([
      "succeeded COMPLETED nobody",
      "failed NOT_OURS engineer",
    ])
    const landed = (place.store.bodies.get(run_id) ?? []).map(({ meta }) => meta.task_id)
    expect([...new Set(landed)]).toEqual([idOf(first)])
    const second = end.facts.filter((fact) => "task_id" in fact && fact.task_id === idOf(other))
    expect(second.map(({ _tag }) => _tag)).toEqual([
      "TaskPlanned",
      "StartIntended",
      "StartAnswered",
      "TaskSettled",
    ])
    expect(second[2]).toEqual({
      _tag: "StartAnswered",
      run_id,
      task_id: idOf(other),
      attempt: 1,
      answer: "taken",
      http_status: 202,
    })
    expect([end.countOf("start"), end.countOf("abort"), end.countOf("delete")]).toEqual([2, 0, 0])
  })
})

describe("somebody else's execution", () => {
  effect("makes the task wait without an attempt, and is never touched", function* () {
    const end = yield* night({
      script: {
        start: answers(
          () => conflict("theirs", "x"),
          () => conflict("theirs", "x"),
          () => conflict("theirs", "x"),
          () => conflict("theirs", "x"),
          () => accepted("ours"),
        ),
      },
    })
    expect(end.verdict("c-1")).toBe("succeeded COMPLETED nobody")
    expect(end.state.tasks.get(idOf("c-1"))?.attempts.length).toBe(1)
    expect(end.calls.filter(([, , id]) => id.includes("theirs"))).toEqual([])
    const [first = 0, ...later] = end.timesOf("start")
    const waits = later.map((at, index) => at - ([first, ...later][index] ?? 0))
    for (const [index, full] of [30, 60, 120, 240].entries()) {
      expect(waits[index]).toBeGreaterThanOrEqual(full * 0.8 * second)
      expect(waits[index]).toBeLessThanOrEqual((full + 1) * second)
    }
  })

  effect("that does not end is given up after max_wait", function* () {
    const end = yield* night({ script: { start: answers(() => conflict("theirs", "x")) } })
    expect(end.verdict("c-1")).toBe("unfinished ALREADY_EXECUTING service")
    expect(Math.max(...end.timesOf("start"))).toBeGreaterThan(3 * hour)
    expect(Math.max(...end.timesOf("start"))).toBeLessThanOrEqual(3.5 * hour)
  })

  effect("is met by twenty starts at most, however short the waits are [promise 10 conflicts]", function* () {
    const end = yield* night({
      script: { start: answers(() => conflict("theirs", "x")) },
      rules: { retry: { max_attempts: 3, base: Duration.seconds(1), max: Duration.seconds(2) } },
    })
    expect([end.countOf("start"), end.verdict("c-1")]).toEqual([20, "unfinished ALREADY_EXECUTING service"])
    // Half of them while it may soon be over, and the others for as long as the task may wait.
    const times = end.timesOf("start").toSorted((one, other) => one - other)
    expect([(times[9] ?? hour) < minute, (times[19] ?? 0) > 3 * hour]).toEqual([true, true])
  })

  effect("is distinguished from our own by its state if the conflict names no external id", function* () {
    let ours = ""
    const script = (external: () => string | undefined) => ({
      start: answers(
        (call) => ((ours = call.external_execution_id), lost),
        () => conflict("found"),
        () => refused(400),
      ),
      state: (_: string, times: number) => {
        const external_execution_id = external()
        const more = external_execution_id === undefined ? {} : { external_execution_id }
        if (times === 1) return throttled()
        return times < 4 ? state("ONGOING", "RUNNING", more) : state("FAILED", "FAILED", more)
      },
    })
    const adopted = yield* night({ script: script(() => ours) })
    expect([startFacts(adopted.facts).at(-1), adopted.verdict("c-1")]).toEqual([
      "adopted",
      "failed FAILED engineer",
    ])
    for (const external of ["theirs", undefined]) {
      const foreign = yield* night({
        script: script(() => external),
        rules: { max_wait: Duration.millis(minute) },
      })
      expect(startFacts(foreign.facts).slice(0, 4)).toEqual(["start", "lost", "probe", "foreign"])
      expect([foreign.countOf("abort"), foreign.countOf("results")]).toEqual([0, 0])
    }
  })
})

describe("a start that created nothing", () => {
  effect("because of a refusal is over at once, and reported as the contract says", function* () {
    const verdict = (answer: StartAnswer) =>
      Effect.map(night({ script: { start: () => answer } }), (end) => [
        end.countOf("start"),
        end.verdict("c-1"),
      ])
    expect(yield* verdict(refused(400, "CUSTOMER_INTERVENTION_REQUIRED"))).toEqual([
      1,
      "failed CUSTOMER_INTERVENTION_REQUIRED engineer",
    ])
    expect(yield* verdict(refused(422))).toEqual([1, "failed BAD_CONFIGURATIONS engineer"])
  })
})

describe("an interrupted start", () => {
  effect("keeps the answer of a request that was sent, so that the next process follows it", function* () {
    const cut = yield* night({ cutAfter: "100 millis", script: { state: () => working } })
    expect([cut.isOver, startFacts(cut.facts)]).toEqual([false, ["start", "accepted"]])
    const next = yield* night({ facts: cut.facts.slice(2), script: { state: () => completed } })
    expect([next.countOf("start"), next.verdict("c-1")]).toEqual([0, "succeeded COMPLETED nobody"])
    expect(cut.facts[0]).toMatchObject({ run_id })
  })
})

describe("a 409 whose execution does not answer", () => {
  effect("is read four times, with growing waits, and then not taken for ours", function* () {
    const end = yield* night({
      script: { start: (call) => conflict("1", call.external_execution_id), state: () => lost },
      cutAfter: "30 seconds",
    })
    const asked = end.calls.flatMap(([at, verb]) => (verb === "state" ? [at] : []))
    // Each request takes 200 ms; the waits between begin with `polling.min` and double.
    expect(asked.slice(1).map((at, index) => at - (asked[index] ?? 0))).toEqual([2_200, 4_200, 8_200])
    expect(startFacts(end.facts)).toEqual(["start", "foreign"])
  })
})

describe("the record of a start", () => {
  const factOf = (facts: ReadonlyArray<Fact>, tag: Fact["_tag"]) => facts.find(({ _tag }) => _tag === tag)

  effect("has its login's fingerprint, written before it is sent, in case it is refused", function* () {
    const end = yield* night({ tasks: [{ customer: "c-1", fingerprint: "f-1" }] })
    expect(factOf(end.facts, "StartIntended")).toMatchObject({ fingerprint: "f-1", probe: false })
  })

  effect(
    "has the session that the execution's state names, or that of the 409 if it names none",
    function* () {
      for (const session_id of ["s-of-the-state", undefined]) {
        const named = session_id === undefined ? {} : { session_id: anId(session_id) }
        const end = yield* night({
          script: {
            start: (call) => conflict("1", call.external_execution_id),
            state: (_, times) =>
              times === 1 ? state("ONGOING", "RUNNING", named) : state("FAILED", "FAILED", named),
          },
        })
        expect(factOf(end.facts, "StartAnswered")).toMatchObject({
          answer: "adopted",
          session_id: session_id ?? "s-1",
        })
      }
    },
  )

  effect("may have only its execution: what the answer does not name is not recorded", function* () {
    const answer: StartAnswer = { ...accepted("1"), view: { execution_id: anId("e-1") } } as StartAnswer
    const end = yield* night({ script: { start: () => answer } })
    const fact = factOf(end.facts, "StartAnswered")
    expect([end.countOf("start"), fact && "session_id" in fact]).toEqual([1, false])
  })
})

describe("the fact of a start", () => {
  const engineAway: StartAnswer = { _tag: "EngineUnavailable" }
  const none = { execution_id: undefined, session_id: undefined }
  const landed = (http_status: number, ids: object = none) => [{ kind: "start", http_status, ...ids }]
  const ids = { execution_id: anId("e-1"), session_id: anId("s-1") }

  effect.each<
    readonly [string, (call: StartCall) => StartAnswer | CallFailure, object, ReadonlyArray<object>]
  >([
    ["accepted", () => accepted("1"), { answer: "accepted", http_status: 202, ...ids }, landed(202, ids)],
    [
      "adopted",
      (call) => conflict("1", call.external_execution_id),
      { answer: "adopted", http_status: 409, ...ids },
      landed(409, ids),
    ],
    [
      "refused with 400",
      () => refused(400, "T10N_FORBIDDEN"),
      { answer: "refused", http_status: 400, status_reason: "T10N_FORBIDDEN" },
      landed(400),
    ],
    [
      "refused with 422",
      () => refused(422),
      { answer: "refused", http_status: 422, status_reason: "BAD_CONFIGURATIONS" },
      landed(422),
    ],
    ["throttled", () => throttled(), { answer: "not_created", http_status: 429 }, []],
    ["not sent", () => notSent, { answer: "not_created" }, []],
    ["of an engine that is away", () => engineAway, { answer: "not_created", http_status: 503 }, []],
    ["lost", () => lost, { answer: "lost" }, []],
    [
      "lost with a status",
      () => new AnswerLost({ http_status: 502, message: "cut" }),
      { answer: "lost", http_status: 502 },
      [],
    ],
    [
      "somebody else's",
      () => conflict("stranger", "x-of-somebody-else"),
      { answer: "foreign", http_status: 409 },
      [],
    ],
  ])(
    "that is %s: its answer with its status, and its body if it is ours",
    function* ([, start, answer, bodies]) {
      const place = makePlace()
      const end = yield* night({ place, script: { start }, cutAfter: "1 second" })
      const [first] = end.facts.flatMap((fact) => (fact._tag === "StartAnswered" ? [fact] : []))
      expect(first).toEqual({ _tag: "StartAnswered", run_id, task_id: idOf("c-1"), attempt: 1, ...answer })
      const metas = (place.store.bodies.get(run_id) ?? []).map(({ meta }) => meta)
      expect(
        metas
          .filter(({ kind }) => kind === "start")
          .map(({ kind, http_status, execution_id, session_id }) => ({
            kind,
            http_status,
            execution_id,
            session_id,
          })),
      ).toEqual(bodies)
    },
  )
})
