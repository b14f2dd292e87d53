/**
 * What happens when a source asks for a second factor (sections 2.4, 3.2 and 4.3), against every way to
 * reach it.
 */
import { expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import type { Sandbox } from "../../../src/sandbox/server/Sandbox.ts"
import { Caller, field, inProcess, textField } from "../server/Caller.ts"

const person = { base_configurations: { customer_interaction_available: true } }
const stateOf = (answer: unknown) => [field(answer, "status_code"), field(answer, "status_reason")]

export const challengeSuite = () => {
  const told = (title: string, body: Effect.Effect<void, never, Caller | Sandbox>) =>
    it.effect(title, () => body.pipe(Effect.provide(inProcess({ seed: 7 }))))

  const challenged = Effect.gen(function* () {
    yield* TestClock.setTime(Date.UTC(2026, 10, 21, 9))
    const caller = yield* Caller
    const started = yield* caller.start("queue-0+run-20+challenge-4711+expire-60", person)
    yield* TestClock.adjust(2_000)
    return { caller, id: textField(started, "execution_id") }
  })

  told(
    "the run stops, shows a form with `code`, and continues once the code is answered",
    Effect.gen(function* () {
      const { caller, id } = yield* challenged
      const asked = yield* caller.read(id)
      expect([asked.status, field(asked, "producer"), field(asked, "action_required_expires")]).toEqual([
        423,
        "engine",
        "2026-11-21T09:01:02.000Z",
      ])
      expect(field(asked, "form_schema", "required")).toEqual(["code"])
      expect(field(asked, "payload_errors")).toBeUndefined()
      yield* TestClock.adjust(10_000)
      const answered = yield* caller.resume(id, { code: "4711" })
      expect([answered.status, ...stateOf(answered)]).toEqual([202, "ONGOING", "ACCEPTED"])
      expect(stateOf(yield* caller.read(id))).toEqual(["ONGOING", "ACCEPTED"])
      yield* TestClock.adjust(1_000)
      expect(stateOf(yield* caller.read(id))).toEqual(["ONGOING", "RUNNING"])
      yield* TestClock.adjust(60_000)
      const done = yield* caller.read(id)
      expect([...stateOf(done), field(done, "execution_time"), field(done, "running_time")]).toEqual([
        "COMPLETED",
        "COMPLETED",
        20,
        30,
      ])
    }),
  )

  told(
    "a wrong code is requested again with what was wrong; the third one ends the run with INCORRECT_MFA",
    Effect.gen(function* () {
      const { caller, id } = yield* challenged
      const seen = []
      for (const body of [{ code: "1" }, { kode: "2" }, { code: "3" }]) {
        const answered = yield* caller.resume(id, body)
        yield* TestClock.adjust(1_000)
        const state = yield* caller.read(id)
        seen.push([answered.status, state.status, field(state, "payload_errors", 0, "loc")])
      }
      expect(seen).toEqual([
        [202, 423, ["code"]],
        [202, 423, ["code"]],
        [202, 200, undefined],
      ])
      const last = yield* caller.read(id)
      expect([...stateOf(last), field(last, "authentication_status")]).toEqual([
        "AUTH_ERROR",
        "INCORRECT_MFA",
        "INCORRECT_MFA",
      ])
    }),
  )

  told(
    "an unanswered challenge aborts the run; an answer after that is 410, and otherwise 400",
    Effect.gen(function* () {
      const { caller, id } = yield* challenged
      yield* TestClock.adjust(60_000)
      const state = yield* caller.read(id)
      const late = yield* caller.resume(id, { code: "4711" })
      expect([...stateOf(state), late.status]).toEqual(["ABORTED", "ACTION_TIMEOUT", 410])
      const open = yield* caller.start("queue-60", { customer_id: "c-2" })
      const closed = yield* caller.start("queue-0+run-0", { customer_id: "c-3" })
      const details = yield* Effect.forEach([open, closed], (started) =>
        Effect.map(caller.resume(textField(started, "execution_id"), { code: "1" }), (answer) => [
          answer.status,
          field(answer, "detail"),
        ]),
      )
      expect(details).toEqual([
        [400, "not_waiting_for_action"],
        [400, "execution_already_closed"],
      ])
      expect((yield* caller.resume(id, ["4711"])).status).toBe(422)
    }),
  )

  told(
    "an engine that became unavailable while the run was waiting answers 503 and ends it with the same reason",
    Effect.gen(function* () {
      const caller = yield* Caller
      const started = yield* caller.start("queue-0+run-20+challenge-1+parted", person)
      const id = textField(started, "execution_id")
      yield* TestClock.adjust(2_000)
      const answered = yield* caller.resume(id, { code: "1" })
      expect([answered.status, answered.json]).toEqual([503, { detail: "ENGINE_UNAVAILABLE" }])
      expect(stateOf(yield* caller.read(id))).toEqual(["TEMPORARY_ERROR", "ENGINE_UNAVAILABLE"])
    }),
  )

  told(
    "without a person the challenge ends the run, with the login never accepted",
    Effect.gen(function* () {
      const caller = yield* Caller
      const started = yield* caller.start("queue-0+run-20+challenge-4711")
      yield* TestClock.adjust(2_000)
      const state = yield* caller.read(textField(started, "execution_id"))
      expect([state.status, ...stateOf(state), field(state, "authentication_status")]).toEqual([
        200,
        "ABORTED",
        "CUSTOMER_INTERVENTION_REQUIRED",
        "not-performed",
      ])
    }),
  )
}
