/** Challenges (2.4, 3.2, 4.3): who asks, what is asked, what becomes of answers: right, wrong, malformed, late, missing. */
import { expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import fc from "fast-check"
import { statusReasons } from "../../../src/service/Vocabulary.ts"
import { planTimeline, readBehaviour } from "../../../src/sandbox/executions/Behaviour.ts"
import { isClosedPhase, isOpenReason, lifeOf, momentOf } from "../../../src/sandbox/state/Timeline.ts"
import type { ChallengeAnswer, Phase } from "../../../src/sandbox/state/Timeline.ts"
import { Caller, field, fieldsOf, itemsOf, ofTheService, person, pick } from "../server/Caller.ts"
import { shows, stateOf, usualStart } from "../server/Caller.ts"

const outcomes = (answer: unknown) =>
  itemsOf(answer, "features").map((feature) => field(feature, "status_reason"))

/** A run of three features with six records that was asked `words` two seconds ago. */
const asked = Effect.fnUntraced(function* (words: string, more: Readonly<Record<string, unknown>> = person) {
  const caller = yield* Caller
  const id = yield* caller.begin(`queue-0+run-20+records-6+expire-60+${words}`, more)
  yield* TestClock.adjust(2_000)
  return { caller, id }
})

/** Answers, and reads what the source made of it. */
const answered = Effect.fnUntraced(function* (id: string, body: unknown) {
  const caller = yield* Caller
  expect((yield* caller.resume(id, body)).status).toBe(202)
  yield* TestClock.adjust(1_000)
  return yield* caller.read(id)
})

ofTheService("a challenge of the login", (it) => {
  const expires = "[field execution.action_required_expires] [field challenge.action_required_expires]"

  it(`shows its four fields while it is pending, and no state does so besides ${expires} [readExecution 423]`, function* (caller) {
    const id = yield* caller.begin("queue-5+run-20+challenge-1+expire-60", person)
    const shown = []
    for (const seconds of [0, 7, 20, 40]) {
      yield* TestClock.adjust(seconds * 1_000)
      const { status, json } = yield* caller.read(id)
      shown.push([status, status === 423 ? json : field(json, "action_required_expires")])
    }
    const pending = {
      form_schema: expect.objectContaining({ type: "object", format: "cg-params", required: ["code"] }),
      action_required_expires: "2026-11-21T09:01:07.000Z",
      producer: "engine",
    }
    expect(shown).toEqual([
      [202, undefined],
      [423, pending],
      [423, pending],
      [200, undefined],
    ])
  })

  it(`is answered, and the run is queued again and goes on [resumeExecution 202] [move 2] [resume-rule 1] ${fieldsOf("challenge", "form_schema producer")} [field acceptance.status_message]`, function* () {
    const { caller, id } = yield* asked("input-4711")
    const challenge = yield* caller.read(id)
    shows(challenge, { producer: "engine", "form_schema.required": ["delivery", "code"] })
    expect(field(challenge, "form_schema", "properties")).toMatchObject({
      delivery: { enum: ["sms", "app", "post"] },
      code: { type: "string" },
    })
    shows(yield* caller.resume(id, { delivery: "app", code: "4711" }), {
      status: 202,
      json: {
        ...usualStart,
        execution_id: id,
        session_id: expect.stringMatching(/^[0-9a-f]{24}$/),
        status_code: "ONGOING",
        status_reason: "ACCEPTED",
        status_message: "En cola.",
      },
    })
    expect(stateOf(yield* caller.read(id))).toEqual(["ONGOING", "ACCEPTED"])
    yield* TestClock.adjust(60_000)
    expect(stateOf(yield* caller.read(id))).toEqual(["COMPLETED", "COMPLETED"])
  })

  it("is asked again with the wrong fields named, and three refused answers end it [move 3] [error 18] [field challenge.payload_errors] [field challenge.action_required_expires] [auth INCORRECT_MFA]", function* () {
    const { id } = yield* asked("input-4711")
    shows(yield* answered(id, { delivery: "pigeon" }), {
      status: 423,
      // Each question has its own minute, from the moment in which it is asked.
      action_required_expires: "2026-11-21T09:01:02.300Z",
      payload_errors: [
        { loc: ["code"], msg: "must have required property 'code'", type: "missing" },
        { loc: ["delivery"], msg: "must be equal to one of the allowed values", type: "value_error.enum" },
      ],
    })
    shows(yield* answered(id, { delivery: "sms", code: "0" }), {
      payload_errors: [{ loc: ["code"], msg: "the source refused the code", type: "value_error.code" }],
    })
    const state = yield* answered(id, { delivery: "sms", code: "1" })
    expect([...stateOf(state), field(state, "authentication_status")]).toEqual([
      "AUTH_ERROR",
      "INCORRECT_MFA",
      "INCORRECT_MFA",
    ])
  })

  it("ends the run where the third refused answer does not fit the form [reason INCORRECT_RESUME_FORMAT]", function* () {
    const { id } = yield* asked("challenge-4711")
    for (const body of [{}, { code: 4711 }]) expect((yield* answered(id, body)).status).toBe(423)
    shows(yield* answered(id, { kode: "4711" }), {
      status: 200,
      status_code: "CONFIGURATION_ERROR",
      status_reason: "INCORRECT_RESUME_FORMAT",
      authentication_status: "not-performed",
    })
  })

  it("that nobody answers aborts the run, and a late answer is 410 [move 4] [limit 5] [reason ACTION_TIMEOUT] [resumeExecution 410] [error 6]", function* () {
    const { caller, id } = yield* asked("challenge-4711")
    yield* TestClock.adjust(59_999)
    expect((yield* caller.read(id)).status).toBe(423)
    yield* TestClock.adjust(1)
    const state = yield* caller.read(id)
    expect(stateOf(state)).toEqual(["ABORTED", "ACTION_TIMEOUT"])
    expect(outcomes(state)).toEqual(Array.from({ length: 3 }, () => "FEATURE_ACTION_TIMEOUT"))
    const late = yield* caller.resume(id, { code: "4711" })
    shows(late, { status: 410, json: { detail: "ACTION_TIMEOUT" } })
  })

  it("that the customer cancels aborts the run [reason USER_CANCELLED]", function* () {
    const { caller, id } = yield* asked("challenge-4711+cancel-10")
    yield* TestClock.adjust(10_000)
    const late = yield* caller.resume(id, { code: "4711" })
    shows(late, { status: 400, json: { detail: "execution_already_closed" } })
    expect(stateOf(yield* caller.read(id))).toEqual(["ABORTED", "USER_CANCELLED"])
  })

  for (const words of ["challenge-1", "input-1"])
    it(`ends the run where no person is there [move 7] [reason CUSTOMER_INTERVENTION_REQUIRED] ${words} [field base.customer_interaction_available]`, function* () {
      const { caller, id } = yield* asked(words, {})
      expect(stateOf(yield* caller.read(id))).toEqual(["ABORTED", "CUSTOMER_INTERVENTION_REQUIRED"])
    })

  it("finds its engine gone: 503, and the run ends so [resumeExecution 503] [error 7] [reason ENGINE_UNAVAILABLE]", function* () {
    const { caller, id } = yield* asked("challenge-1+parted")
    const resumed = yield* caller.resume(id, { code: "1" })
    shows(resumed, { status: 503, json: { detail: "ENGINE_UNAVAILABLE" } })
    expect(stateOf(yield* caller.read(id))).toEqual(["TEMPORARY_ERROR", "ENGINE_UNAVAILABLE"])
  })
})

ofTheService("a challenge of a feature", (it) => {
  const words = "challenge-4711+by-cards_read"
  const closed = (state: unknown) => [
    ...pick(state, "status_code", "status_reason", "authentication_status"),
    outcomes(state),
  ]

  it("holds back its records and lets the run finish once answered [field challenge.producer] [feature FEATURE_ACTION_REQUIRED]", function* () {
    const { caller, id } = yield* asked(words)
    yield* TestClock.adjust(18_000)
    shows(yield* caller.read(id), { status: 423, producer: "cards_read" })
    const going = yield* answered(id, { code: "4711" })
    expect(closed(going).slice(0, 3)).toEqual(["ONGOING", "RUNNING", "AUTH_OK"])
    yield* TestClock.adjust(60_000)
    const done = yield* caller.read(id)
    shows(done, { status_reason: "COMPLETED", execution_time: 20 })
    expect(outcomes(done)).toEqual(Array.from({ length: 3 }, () => "FEATURE_COMPLETED"))
  })

  it("that is not answered keeps what came before it [feature FEATURE_ACTION_TIMEOUT] [field feature-state.status_reason]", function* () {
    const { caller, id } = yield* asked(words)
    yield* TestClock.adjust(100_000)
    const state = yield* caller.read(id)
    const features = ["FEATURE_COMPLETED", "FEATURE_ACTION_TIMEOUT", "FEATURE_ABORTED"]
    expect(closed(state)).toEqual(["ABORTED", "ACTION_TIMEOUT", "AUTH_OK", features])
    const products_count = { "account:checking@accounts": 1, "account:savings@accounts": 1 }
    shows(state, { products_count })
  })

  it("that is answered incorrectly ends the run, although the login was accepted [feature FEATURE_ACTION_REJECTED]", function* () {
    const { id } = yield* asked(words)
    yield* TestClock.adjust(18_000)
    for (const code of ["1", "2"]) expect((yield* answered(id, { code })).status).toBe(423)
    const features = ["FEATURE_COMPLETED", "FEATURE_ACTION_REJECTED", "FEATURE_ABORTED"]
    const state = yield* answered(id, { code: "3" })
    expect(closed(state)).toEqual(["AUTH_ERROR", "INCORRECT_MFA", "AUTH_OK", features])
  })

  it("ends the run where no person is there, and is none where the feature is not read [feature FEATURE_CUSTOMER_INTERVENTION_REQUIRED]", function* () {
    const { caller, id } = yield* asked(words, {})
    const without = yield* asked(words, { customer_id: "c-2", features: ["accounts_read"] })
    yield* TestClock.adjust(18_000)
    const state = yield* caller.read(id)
    expect(stateOf(state)).toEqual(["ABORTED", "CUSTOMER_INTERVENTION_REQUIRED"])
    expect(outcomes(state)[1]).toBe("FEATURE_CUSTOMER_INTERVENTION_REQUIRED")
    expect(stateOf(yield* caller.read(without.id))).toEqual(["COMPLETED", "COMPLETED"])
  })
})

// As a property: whoever asks, whatever is answered and whenever, time only moves forward, a run closes at most once,
// and a feature that still waits for its answer has nothing.

const given = ["accounts_read", "cards_read"]
const answer = fc.record({
  after: fc.integer({ min: 0, max: 59_999 }),
  right: fc.boolean(),
  fault: fc.constantFrom(undefined, "form" as const, "encryption" as const),
})
const life = fc.record({
  run: fc.integer({ min: 0, max: 2_000 }),
  async: fc.integer({ min: 0, max: 500 }),
  kind: fc.constantFrom("", "+challenge-1", "+input-1"),
  end: fc.constantFrom(undefined, ...statusReasons.filter((reason) => !isOpenReason(reason))),
  by: fc.constantFrom("", "+by-cards_read", "+by-loans_read"),
  cancel: fc.constantFrom("", "+cancel-5", "+cancel-90"),
  interaction: fc.boolean(),
  answers: fc.array(answer, { maxLength: 4 }),
  stop: fc.option(fc.nat({ max: 3_000_000 })),
})

/** Lays each answer upon the challenge that is pending then, as the service does. */
const answeredLife = (
  timeline: ReturnType<typeof planTimeline>,
  said: ReadonlyArray<typeof answer extends fc.Arbitrary<infer Value> ? Value : never>,
): ReadonlyArray<ChallengeAnswer> => {
  const answers: Array<ChallengeAnswer> = []
  for (const { after, right, fault } of said) {
    const pending = lifeOf(timeline, 0, answers).findLast(({ challenge }) => challenge !== undefined)
    if (pending?.challenge?.wrongAnswers !== answers.length) break
    const at = pending.from + after
    if (at >= pending.challenge.expires) break
    answers.push({ at, right: right && fault === undefined, ...(fault === undefined ? {} : { fault }) })
  }
  return answers
}

const held = ({ heldBy, challenge }: Phase) => heldBy !== undefined || challenge !== undefined

it("goes forward, closes once, and holds a feature back until its challenge is answered correctly", () => {
  fc.assert(
    fc.property(life, ({ run, async, kind, end, by, cancel, interaction, answers: said, stop }) => {
      const ends = end === undefined ? "" : `+end-${end}`
      const timeline = planTimeline({
        seed: 7,
        application: "app",
        customer_id: "c-1",
        engine_reference: "sandbox-bank:website",
        ordinal: 0,
        behaviour: readBehaviour(`queue-1+run-${run}+async-${async}${kind}+expire-60${by}${cancel}${ends}`),
        interaction,
        timeoutMs: 1_200_000,
        asked: given,
      })
      const answers = cancel === "" ? answeredLife(timeline, said) : []
      const abort = stop === null ? undefined : { at: stop, reason: "CLIENT_CANCELLED" as const }
      const phases = lifeOf(timeline, 0, answers, abort)
      const times = phases.map(({ from }) => from)
      expect(times).toEqual(times.toSorted((a, b) => a - b))
      expect(phases.map(isClosedPhase)).toEqual(phases.map((_, index) => index === phases.length - 1))
      expect(phases.map(({ from }) => momentOf(phases, from).phase.from)).toEqual(times)
      const { phase, activeMs } = momentOf(phases, Number.MAX_SAFE_INTEGER)
      expect(activeMs).toBeLessThanOrEqual(1_200_000)
      if (kind === "" || by === "+by-loans_read") {
        expect(phases.filter(held)).toEqual([])
        return
      }
      const right = answers.some((one) => one.right)
      if (phase.status_reason === "COMPLETED") expect([right, phase.heldBy]).toEqual([true, undefined])
      if (phase.status_reason === "INCORRECT_MFA" && end !== "INCORRECT_MFA")
        expect(phase.authentication_status).toBe(by === "" ? "INCORRECT_MFA" : "AUTH_OK")
    }),
    { numRuns: 200 },
  )
})
