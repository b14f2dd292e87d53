/** Starts: lost, doubled, refused, throttled, in the way of others; and what an end says of the login. */
import { describe, expect, it } from "@effect/vitest"
import { AnswerLost } from "../../src/client/Service.ts"
import type { CallFailure, StartAnswer, StartCall } from "../../src/client/Service.ts"
import type { Fact } from "../../src/ledger/Fact.ts"
import { hour, idOf, makePlace, minute, night, run_id, second, succeeded, keysOf } from "./ScriptedNight.ts"
import type { NightEnd } from "./ScriptedNight.ts"
import { accepted, conflict, lost, refused, state, throttled } from "./ScriptedService.ts"
import { anId } from "../harness/Id.ts"
import { effect } from "../harness/Steps.ts"
import { landed } from "./Lives.ts"
import { Duration } from "effect"
import { judgeEnd } from "../../src/task/StartAttempt.ts"

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
  const title =
    "is found again by the same external id, and never repeated [promise 1] [decision 2] [decision 2 probe]"
  effect(title, function* () {
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
    expect([new Set(ids).size, end.verdict("c-1")]).toEqual([1, succeeded])
    const [first = 0, probe = 0] = end.timesOf("start")
    // Soon enough to find a short execution before it is over: a later probe would run its login again.
    // The lost request itself took 200 ms.
    expect(probe - first).toBe(1_200)
  })

  effect("that stays unknown keeps its login in the next process [end START_UNKNOWN open]", function* () {
    const place = makePlace()
    const tasks = ["c-1", "c-2"].map((customer) => ({ customer, fingerprint: "one" }))
    // Each request needs a fifth of a second: killed in the middle of it, the start and then its probe.
    yield* night({ place, tasks, killAfter: 100 })
    yield* night({ place, tasks, killAfter: 100 })
    const verdicts = (end: NightEnd) => [end.starts, end.verdict("c-1"), end.verdict("c-2")]
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
  })

  effect("was never sent while it waited for its turn: any number of kills then costs nothing", function* () {
    const place = makePlace()
    const waiting = { turnMs: 10 * minute }
    for (let kills = 0; kills < 8; kills++) yield* night({ place, script: waiting, killAfter: 3 * second })
    const end = yield* night({ place, script: {} })
    expect(startFacts(end.facts)).toEqual(["start", "accepted"])
    expect([end.starts, end.verdict("c-1")]).toEqual([1, succeeded])
  })

  effect("whose probe was held back is probed by the next process [decision 2 held back]", function* () {
    const place = makePlace()
    const one = { customer: "c-1", fingerprint: "f-1" }
    let starts = 0
    const held = () => (starts++ === 0 ? undefined : throttled(429, 20 * minute))
    const script = { start: () => lost, held }
    const before = yield* night({ place, tasks: [one], script, killAfter: minute })
    const judged = (facts: ReadonlyArray<Fact>) =>
      facts.flatMap((fact) => (fact._tag === "LoginJudged" ? [fact.verdict] : []))
    // What was not sent is in no fact: neither an answer to it, nor anything of its login.
    expect([startFacts(before.facts), judged(before.facts)]).toEqual([["start", "lost"], ["unproven"]])
    const end = yield* night({ place, tasks: [one], script: { start: () => accepted("1") } })
    expect(startFacts(end.facts)).toEqual(["start", "lost", "probe", "accepted", "orphan"])
  })
})

effect(
  "two starts that are answered with one id leave the execution to the first: the second has none, and changes nothing",
  function* () {
    const answered: Array<StartCall> = []
    const end = yield* night({
      tasks: [{ customer: "c-1" }, { customer: "c-2" }],
      script: {
        whose: () => answered[0]?.external_execution_id,
        start: (call) => (answered.push(call), accepted("x")),
      },
    })
    const [first = "", other = ""] = answered.map(({ customer_id }) => customer_id)
    expect([end.verdict(first), end.verdict(other)]).toEqual([succeeded, "failed NOT_OURS engineer"])
    const landed = end.landed.map(({ meta }) => meta.task_id)
    expect([...new Set(landed)]).toEqual([idOf(first)])
    const second = end.facts.filter((fact) => "task_id" in fact && fact.task_id === idOf(other))
    const tags = ["TaskPlanned", "StartIntended", "StartAnswered", "TaskSettled"]
    expect(second.map(({ _tag }) => _tag)).toEqual(tags)
    expect(second[2]).toEqual({
      _tag: "StartAnswered",
      run_id,
      task_id: idOf(other),
      attempt: 1,
      answer: "taken",
      http_status: 202,
    })
    expect([end.starts, end.countOf("abort"), end.countOf("delete")]).toEqual([2, 0, 0])
  },
)

describe("somebody else's execution", () => {
  effect("is met by twenty starts at most, however short the waits are [promise 10 conflicts]", function* () {
    const end = yield* night({
      script: { start: answers(() => conflict("theirs", "x")) },
      rules: { retry: { max_attempts: 3, base: Duration.seconds(1), max: Duration.seconds(2) } },
    })
    expect([end.countOf("start"), end.verdict("c-1")]).toEqual([20, "unfinished ALREADY_EXECUTING service"])
    // Half of them while it may soon be over, and the others for as long as the task may wait.
    const times = end.timesOf("start").toSorted((one, other) => one - other)
    const last = times[19] ?? 0
    expect([(times[9] ?? hour) < minute, last > 3 * hour, last <= 3.5 * hour]).toEqual([true, true, true])
  })
})

effect(
  "a 409 whose execution does not answer is read four times, with growing waits, and then not taken for ours",
  function* () {
    const end = yield* night({
      script: { start: (call) => conflict("1", call.external_execution_id), state: () => lost },
      cutAfter: "30 seconds",
    })
    const asked = end.calls.flatMap(([at, verb]) => (verb === "state" ? [at] : []))
    // Each request takes 200 ms; the waits between begin with `polling.min` and double.
    expect(asked.slice(1).map((at, index) => at - (asked[index] ?? 0))).toEqual([2_200, 4_200, 8_200])
    expect(startFacts(end.facts)).toEqual(["start", "foreign"])
  },
)

describe("the record of a start", () => {
  const factOf = (facts: ReadonlyArray<Fact>, tag: Fact["_tag"]) => facts.find(({ _tag }) => _tag === tag)

  effect("has the session that the execution's state names, else that of the 409", function* () {
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
    ["throttled", () => throttled(), { answer: "not_created", http_status: 429 }, []],
    ["of an engine that is away", () => engineAway, { answer: "not_created", http_status: 503 }, []],
    [
      "lost with a status",
      () => new AnswerLost({ http_status: 502, message: "cut" }),
      { answer: "lost", http_status: 502 },
      [],
    ],
    ["somebody else's", () => conflict("stranger", "x"), { answer: "foreign", http_status: 409 }, []],
  ])("that is %s: its answer, and its body if it is ours", function* ([, start, answer, bodies]) {
    const end = yield* night({ script: { start }, cutAfter: "1 second" })
    const [first] = end.facts.flatMap((fact) => (fact._tag === "StartAnswered" ? [fact] : []))
    expect(first).toEqual({ _tag: "StartAnswered", run_id, task_id: idOf("c-1"), attempt: 1, ...answer })
    const metas = end.landed.map(({ meta }) => meta)
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
  })
})

const order = {
  run_id,
  task_id: anId("t-1"),
  customer_id: anId("c-1"),
  engine_reference: anId("bank"),
  attempt: 1,
  external_execution_id: "x-1",
  ...keysOf("f-1"),
  refused: [],
  login: { status: undefined },
  polling: { min: Duration.millis(1), max: Duration.millis(1) },
  max_wait: Duration.millis(1),
  deadlineAt: undefined,
}
const { task_id, customer_id, engine_reference } = order
/** A closing with just what says what became of the login. */
const closed = (status_code: string, status_reason: string, authentication_status?: string) => ({
  _tag: "AttemptClosed" as const,
  run_id,
  task_id,
  attempt: 1,
  execution_id: anId("e-1"),
  status_code,
  status_reason,
  ...(authentication_status === undefined ? {} : { authentication_status }),
})
const login = { account: "f-1", identity: ["f-1"], password: "f-1" }
const opened = (reason: string) => [
  {
    _tag: "CredentialRejected",
    run_id,
    task_id,
    of_attempt: 1,
    fingerprint: "f-1",
    login,
    customer_id,
    engine_reference,
    reason,
  },
]
const verdictsOf = (facts: ReturnType<typeof judgeEnd>) =>
  facts.map((fact) => (fact._tag === "LoginJudged" ? fact.verdict : fact.reason))

describe("the end of an execution", () => {
  it("rejects a refused login, with the refusal itself as its reason if the service names it", () => {
    expect([
      judgeEnd(order, closed("AUTH_ERROR", "BLOCKED_USER"), true),
      judgeEnd(order, closed("FAILED", "FAILED", "CHANGE_PASSWORD"), true),
      judgeEnd(order, closed("AUTH_ERROR", "BLOCKED_USER", "CHANGE_PASSWORD"), true),
      judgeEnd(order, closed("ABORTED", "CLIENT_CANCELLED", "INCORRECT_MFA"), true),
    ]).toEqual(["BLOCKED_USER", "CHANGE_PASSWORD", "CHANGE_PASSWORD", "INCORRECT_MFA"].map(opened))
  })

  it("says nothing of a login that is not known", () => {
    const unknown = { ...order, fingerprint: undefined, account: undefined }
    expect([
      judgeEnd(unknown, closed("AUTH_ERROR", "BLOCKED_USER"), true),
      judgeEnd(unknown, closed("COMPLETED", "COMPLETED", "AUTH_OK"), true),
    ]).toEqual([[], []])
  })

  it.each([
    ["accepted", closed("COMPLETED", "COMPLETED", "AUTH_OK"), true, "good"],
    ["accepted, and then aborted", closed("ABORTED", "TIMEOUT", "AUTH_OK"), true, "good"],
    ["accepted, with an unlisted end", closed("FAILED", "NEW_WORD", "AUTH_OK"), true, "good"],
    ["accepted, and then gone", closed("UNKNOWN", "EXECUTION_GONE", "AUTH_OK"), false, "good"],
    ["not mentioned, with results", closed("PARTIAL", "PARTIAL"), true, "good"],
    ["not mentioned, without", closed("FAILED", "FAILED"), true, "neutral"],
    ["unlisted", closed("FAILED", "NEW_WORD"), true, "NEW_WORD"],
    [
      "told gone in a word of ours",
      { ...closed("UNKNOWN", "EXECUTION_GONE"), landed },
      true,
      "EXECUTION_GONE",
    ],
    ["gone before anything was said", closed("UNKNOWN", "EXECUTION_GONE"), false, "unproven"],
    ["not tried", closed("TEMPORARY_ERROR", "NETWORK_ERROR", "not-performed"), true, "neutral"],
  ] as const)("judges a login that was %s", (_, end, isKnown, verdict) => {
    expect(verdictsOf(judgeEnd(order, end, isKnown))).toEqual([verdict])
  })
})
