/**
 * Challenges in full (sections 2.4, 3.2 and 4.3): who asks, what is asked, what becomes of answers that are
 * right, wrong, malformed, late or missing.
 */
import { expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import fc from "fast-check"
import { statusReasons } from "../../../src/service/Vocabulary.ts"
import { planTimeline, readBehaviour } from "../../../src/sandbox/executions/Behaviour.ts"
import { isClosedPhase, isOpenReason, lifeOf, momentOf } from "../../../src/sandbox/state/Timeline.ts"
import type { ChallengeAnswer, Phase } from "../../../src/sandbox/state/Timeline.ts"
import {
  Caller,
  field,
  ofTheService,
  textField,
  shows,
  usualStart,
  itemsOf,
  person,
} from "../server/Caller.ts"
const stateOf = (answer: unknown) => [field(answer, "status_code"), field(answer, "status_reason")]
const outcomes = (answer: unknown) =>
  itemsOf(answer, "features").map((feature) => field(feature, "status_reason"))

/** A run of three features with six records that was asked `words` two seconds ago. */
const asked = Effect.fnUntraced(function* (words: string, more: Readonly<Record<string, unknown>> = person) {
  const caller = yield* Caller
  const started = yield* caller.start(`queue-0+run-20+records-6+expire-60+${words}`, more)
  yield* TestClock.adjust(2_000)
  return { caller, id: textField(started, "execution_id") }
})

/** Answers, and reads what the source made of it. */
const answered = Effect.fnUntraced(function* (id: string, body: unknown) {
  const caller = yield* Caller
  const { status } = yield* caller.resume(id, body)
  yield* TestClock.adjust(1_000)
  return [status, yield* caller.read(id)] as const
})

ofTheService("a challenge of the login", (told) => {
  told(
    "shows its four fields and its deadline while it is pending, and no state does so besides " +
      "[field execution.action_required_expires] [field challenge.action_required_expires] [readExecution 423]",
    function* (caller) {
      const started = yield* caller.start("queue-5+run-20+challenge-1+expire-60", person)
      const shown = []
      for (const seconds of [0, 7, 20, 40]) {
        yield* TestClock.adjust(seconds * 1_000)
        const { status, json } = yield* caller.read(textField(started, "execution_id"))
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
    },
  )

  told(
    "is answered, and the run is queued again and goes on [resumeExecution 202] [move 2] " +
      "[field challenge.form_schema] [field challenge.action_required_expires] [field challenge.producer] " +
      "[field execution.action_required_expires] " +
      "[field acceptance.status_message] [resume-rule 1]",
    function* () {
      const { caller, id } = yield* asked("input-4711")
      const challenge = yield* caller.read(id)
      shows(challenge, { producer: "engine", action_required_expires: "2026-11-21T09:01:02.000Z" })
      expect(field(challenge, "form_schema")).toMatchObject({
        type: "object",
        format: "cg-params",
        required: ["delivery", "code"],
        properties: { delivery: { enum: ["sms", "app", "post"] }, code: { type: "string" } },
      })
      const resumed = yield* caller.resume(id, { delivery: "app", code: "4711" })
      shows(resumed, {
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
    },
  )

  told(
    "is asked again with the wrong fields named, and three refused answers end it with INCORRECT_MFA " +
      "[move 3] [error 18] [field challenge.payload_errors] [field challenge.action_required_expires] " +
      "[auth INCORRECT_MFA]",
    function* () {
      const { id } = yield* asked("input-4711")
      const [first, again] = yield* answered(id, { delivery: "pigeon" })
      // Each question has its own minute, from the moment in which it is asked.
      expect(field(again, "action_required_expires")).toBe("2026-11-21T09:01:02.300Z")
      expect([first, again.status, field(again, "payload_errors")]).toEqual([
        202,
        423,
        [
          { loc: ["code"], msg: "must have required property 'code'", type: "missing" },
          {
            loc: ["delivery"],
            msg: "must be equal to one of the allowed values",
            type: "value_error.enum",
          },
        ],
      ])
      const [, wrong] = yield* answered(id, { delivery: "sms", code: "0" })
      expect(field(wrong, "payload_errors")).toEqual([
        { loc: ["code"], msg: "the source refused the code", type: "value_error.code" },
      ])
      const [last, state] = yield* answered(id, { delivery: "sms", code: "1" })
      expect([last, ...stateOf(state), field(state, "authentication_status")]).toEqual([
        202,
        "AUTH_ERROR",
        "INCORRECT_MFA",
        "INCORRECT_MFA",
      ])
    },
  )

  told(
    "ends the run with INCORRECT_RESUME_FORMAT where the third refused answer does not fit the form " +
      "[reason INCORRECT_RESUME_FORMAT]",
    function* () {
      const { id } = yield* asked("challenge-4711")
      for (const body of [{}, { code: 4711 }]) expect((yield* answered(id, body))[1].status).toBe(423)
      const [status, state] = yield* answered(id, { kode: "4711" })
      expect([status, state.status, ...stateOf(state), field(state, "authentication_status")]).toEqual([
        202,
        200,
        "CONFIGURATION_ERROR",
        "INCORRECT_RESUME_FORMAT",
        "not-performed",
      ])
    },
  )

  told(
    "that nobody answers aborts the run, and a late answer is 410 " +
      "[move 4] [limit 5] [reason ACTION_TIMEOUT] [resumeExecution 410] [error 6]",
    function* () {
      const { caller, id } = yield* asked("challenge-4711")
      yield* TestClock.adjust(59_999)
      expect((yield* caller.read(id)).status).toBe(423)
      yield* TestClock.adjust(1)
      const state = yield* caller.read(id)
      const late = yield* caller.resume(id, { code: "4711" })
      shows(state, { status_code: "ABORTED", status_reason: "ACTION_TIMEOUT" })
      shows(late, { status: 410, json: { detail: "ACTION_TIMEOUT" } })
      expect(outcomes(state)).toEqual(Array.from({ length: 3 }, () => "FEATURE_ACTION_TIMEOUT"))
    },
  )

  told("that the customer cancels aborts the run [reason USER_CANCELLED]", function* () {
    const { caller, id } = yield* asked("challenge-4711+cancel-10")
    yield* TestClock.adjust(10_000)
    const late = yield* caller.resume(id, { code: "4711" })
    expect([...stateOf(yield* caller.read(id)), late.status, late.json]).toEqual([
      "ABORTED",
      "USER_CANCELLED",
      400,
      { detail: "execution_already_closed" },
    ])
  })

  told(
    "ends the run where no person is there [move 7] [reason CUSTOMER_INTERVENTION_REQUIRED] " +
      "[field base.customer_interaction_available]",
    function* () {
      for (const words of ["challenge-1", "input-1"]) {
        const { caller, id } = yield* asked(words, { customer_id: words })
        expect(stateOf(yield* caller.read(id))).toEqual(["ABORTED", "CUSTOMER_INTERVENTION_REQUIRED"])
      }
    },
  )

  told(
    "finds its engine gone: 503, and the run ends with the same reason [resumeExecution 503] [error 7] " +
      "[reason ENGINE_UNAVAILABLE]",
    function* () {
      const { caller, id } = yield* asked("challenge-1+parted")
      const resumed = yield* caller.resume(id, { code: "1" })
      expect([resumed.status, resumed.json, ...stateOf(yield* caller.read(id))]).toEqual([
        503,
        { detail: "ENGINE_UNAVAILABLE" },
        "TEMPORARY_ERROR",
        "ENGINE_UNAVAILABLE",
      ])
    },
  )
})

ofTheService("a challenge of a feature", (told) => {
  const held = "challenge-4711+by-cards_read"

  told(
    "names the feature, holds back its records and lets the run finish once answered " +
      "[field challenge.producer] [feature FEATURE_ACTION_REQUIRED]",
    function* () {
      const { caller, id } = yield* asked(held)
      yield* TestClock.adjust(18_000)
      const challenge = yield* caller.read(id)
      expect([challenge.status, field(challenge, "producer")]).toEqual([423, "cards_read"])
      const [, going] = yield* answered(id, { code: "4711" })
      shows(going, { status_code: "ONGOING", status_reason: "RUNNING", authentication_status: "AUTH_OK" })
      yield* TestClock.adjust(60_000)
      const done = yield* caller.read(id)
      expect([...stateOf(done), field(done, "execution_time"), outcomes(done)]).toEqual([
        "COMPLETED",
        "COMPLETED",
        20,
        Array.from({ length: 3 }, () => "FEATURE_COMPLETED"),
      ])
    },
  )

  told(
    "that is not answered keeps what came before it [feature FEATURE_ACTION_TIMEOUT] [field feature-state.status_reason]",
    function* () {
      const { caller, id } = yield* asked(held)
      yield* TestClock.adjust(100_000)
      const state = yield* caller.read(id)
      expect([...stateOf(state), field(state, "authentication_status"), outcomes(state)]).toEqual([
        "ABORTED",
        "ACTION_TIMEOUT",
        "AUTH_OK",
        ["FEATURE_COMPLETED", "FEATURE_ACTION_TIMEOUT", "FEATURE_ABORTED"],
      ])
      shows(state, {
        products_count: {
          "account:checking@accounts": 1,
          "account:savings@accounts": 1,
        },
      })
    },
  )

  told(
    "that is answered incorrectly ends the run, although the login was accepted [feature FEATURE_ACTION_REJECTED]",
    function* () {
      const { id } = yield* asked(held)
      yield* TestClock.adjust(18_000)
      for (const code of ["1", "2"]) expect((yield* answered(id, { code }))[1].status).toBe(423)
      const [, state] = yield* answered(id, { code: "3" })
      expect([...stateOf(state), field(state, "authentication_status"), outcomes(state)]).toEqual([
        "AUTH_ERROR",
        "INCORRECT_MFA",
        "AUTH_OK",
        ["FEATURE_COMPLETED", "FEATURE_ACTION_REJECTED", "FEATURE_ABORTED"],
      ])
    },
  )

  told(
    "ends the run where no person is there, and is none where the feature is not read " +
      "[feature FEATURE_CUSTOMER_INTERVENTION_REQUIRED]",
    function* () {
      const { caller, id } = yield* asked(held, {})
      yield* TestClock.adjust(18_000)
      const state = yield* caller.read(id)
      expect([...stateOf(state), outcomes(state)[1]]).toEqual([
        "ABORTED",
        "CUSTOMER_INTERVENTION_REQUIRED",
        "FEATURE_CUSTOMER_INTERVENTION_REQUIRED",
      ])
      const without = yield* asked(held, { customer_id: "c-2", features: ["accounts_read"] })
      yield* TestClock.adjust(18_000)
      expect(stateOf(yield* caller.read(without.id))).toEqual(["COMPLETED", "COMPLETED"])
    },
  )
})

// Lives with a challenge as a property (sections 2.4 and 3.2): whoever asks, whatever is answered and
// whenever, time only moves forward, a run closes at most once, and a feature that still waits for its
// answer has nothing.

const given = ["accounts_read", "cards_read"]
const life = fc.record({
  run: fc.integer({ min: 0, max: 2_000 }),
  async: fc.integer({ min: 0, max: 500 }),
  kind: fc.constantFrom("", "+challenge-1", "+input-1"),
  end: fc.constantFrom(undefined, ...statusReasons.filter((reason) => !isOpenReason(reason))),
  by: fc.constantFrom("", "+by-cards_read", "+by-loans_read"),
  cancel: fc.constantFrom("", "+cancel-5", "+cancel-90"),
  interaction: fc.boolean(),
  answers: fc.array(
    fc.record({
      after: fc.integer({ min: 0, max: 59_999 }),
      right: fc.boolean(),
      fault: fc.constantFrom(undefined, "form" as const, "encryption" as const),
    }),
    { maxLength: 4 },
  ),
  stop: fc.option(fc.nat({ max: 3_000_000 })),
})

/** Lays each answer upon the challenge that is pending then, as the service does. */
const answeredLife = (
  timeline: ReturnType<typeof planTimeline>,
  said: ReadonlyArray<{
    readonly after: number
    readonly right: boolean
    readonly fault: "form" | "encryption" | undefined
  }>,
): ReadonlyArray<ChallengeAnswer> => {
  const answers: Array<ChallengeAnswer> = []
  for (const { after, right, fault } of said) {
    const pending = lifeOf(timeline, 0, answers).findLast(({ challenge }) => challenge !== undefined)
    if (pending?.challenge?.wrongAnswers !== answers.length) break
    const at = pending.from + after
    const last = pending.challenge.expires
    if (at >= last) break
    answers.push({ at, right: right && fault === undefined, ...(fault === undefined ? {} : { fault }) })
  }
  return answers
}

const held = ({ heldBy, challenge }: Phase) => heldBy !== undefined || challenge !== undefined

it("goes forward, closes once, and holds a feature back until its challenge is answered correctly", () => {
  fc.assert(
    fc.property(life, ({ run, async, kind, end, by, cancel, interaction, answers: said, stop }) => {
      const ends = end === undefined ? "" : `+end-${end}`
      const words = `queue-1+run-${run}+async-${async}${kind}+expire-60${by}${cancel}${ends}`
      const timeline = planTimeline({
        seed: 7,
        application: "app",
        customer_id: "c-1",
        engine_reference: "sandbox-bank:website",
        ordinal: 0,
        behaviour: readBehaviour(words),
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
      const moments = phases.map(({ from }) => momentOf(phases, from))
      expect(moments.map((moment) => moment.phase.from)).toEqual(times)
      const { phase, activeMs } = momentOf(phases, Number.MAX_SAFE_INTEGER)
      expect(activeMs).toBeLessThanOrEqual(1_200_000)
      if (kind === "" || by === "+by-loans_read") {
        expect(phases.filter(held)).toEqual([])
        return
      }
      const right = answers.some((answer) => answer.right)
      if (phase.status_reason === "COMPLETED") expect([right, phase.heldBy]).toEqual([true, undefined])
      if (phase.status_reason === "INCORRECT_MFA" && end !== "INCORRECT_MFA") {
        expect(phase.authentication_status).toBe(by === "" ? "INCORRECT_MFA" : "AUTH_OK")
      }
    }),
    { numRuns: 200 },
  )
})
