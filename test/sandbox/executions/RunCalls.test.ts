/**
 * The calls on a run that is already there (sections 4.2 to 4.5): what each answers wherever the run stands,
 * with its exact body.
 */
import { expect } from "@effect/vitest"
import { TestClock } from "effect/testing"
import { field, ofTheService, textField, shows, person } from "../server/Caller.ts"

ofTheService("a call on a run", (told) => {
  told(
    "that waits for nobody is refused by its resume [resumeExecution 400] [error 5] [resumeExecution 404] " +
      "[error 11] [resumeExecution 422]",
    function* (caller) {
      const working = textField(yield* caller.start("queue-60"), "execution_id")
      const closed = textField(yield* caller.start("queue-0+run-0", { customer_id: "c-2" }), "execution_id")
      const answers = []
      for (const [id, body] of [
        [working, { code: "1" }],
        [closed, { code: "1" }],
        ["00000000-0000-0000-0000-000000000000", { code: "1" }],
        [working, "in the clear"],
        [working, ["1"]],
        ["n%20o", { code: "1" }],
      ] as const) {
        const { status, json } = yield* caller.resume(id, body)
        answers.push([status, Array.isArray(field(json, "detail")) ? "list" : field(json, "detail")])
      }
      expect(answers).toEqual([
        [400, "not_waiting_for_action"],
        [400, "execution_already_closed"],
        [404, "no such execution"],
        [422, "list"],
        [422, "list"],
        [422, "list"],
      ])
    },
  )

  told(
    "aborts it wherever it stands, keeps what was read, and frees its place [abortExecution 204] [move 5] " +
      "[reason CLIENT_CANCELLED] [abortExecution 304] [move 6] [error 8]",
    function* (caller) {
      for (const [words, seconds, before] of [
        ["queue-60", 1, 202],
        ["queue-0+run-100+records-6", 60, 202],
        ["queue-0+run-100+async-600", 60, 202],
        ["queue-0+run-0+records-6+async-600", 60, 202],
        ["queue-0+run-100+challenge-1+expire-600", 60, 423],
      ] as const) {
        const id = textField(yield* caller.start(words, person), "execution_id")
        yield* TestClock.adjust(seconds * 1000)
        const read = yield* caller.read(id)
        const aborted = yield* caller.abort(id)
        const state = yield* caller.read(id)
        const again = yield* caller.abort(id)
        shows(read, { status: before })
        shows(aborted, { status: 204, text: "" })
        shows(state, { status_code: "ABORTED", status_reason: "CLIENT_CANCELLED" })
        shows(again, { status: 304, text: "" })
        if (read.status === 202) {
          expect(field(state, "products_count")).toEqual(field(read, "products_count"))
        }
        expect(yield* caller.read(id)).toEqual(state)
      }
    },
  )

  told(
    "cannot abort it for a while, and nobody can abort what is not there [abortExecution 409] [error 9] " +
      "[abortExecution 404] [abortExecution 422] [error 17]",
    function* (caller) {
      const id = textField(yield* caller.start("queue-60+unstoppable-10"), "execution_id")
      const busy = yield* caller.abort(id)
      expect([busy.status, busy.json]).toEqual([409, { detail: "cannot be stopped at the moment" }])
      yield* TestClock.adjust(10_000)
      expect((yield* caller.abort(id)).status).toBe(204)
      const unknown = yield* caller.abort("nobody")
      const malformed = yield* caller.abort("no.body")
      shows(unknown, { status: 404, json: { detail: "no such execution" } })
      shows(malformed, {
        status: 422,
        json: {
          detail: [{ loc: ["path", "execution_id"], msg: "not an execution id", type: "value_error" }],
        },
      })
    },
  )

  told(
    "deletes it once it is closed, as if it had never been [deleteExecution 204] [deleteExecution 404] " +
      "[deleteExecution 409] [deleteExecution 422] [move 11] [move 12] [error 10] [error 11] " +
      "[readExecution 404] [pollExecution 404]",
    function* (caller) {
      const id = textField(yield* caller.start("queue-10+run-0"), "execution_id")
      const early = yield* caller.remove(id)
      yield* TestClock.adjust(10_000)
      const removed = yield* caller.remove(id)
      shows(early, { status: 409, json: { detail: "still running" } })
      shows(removed, { status: 204, text: "" })
      const never = "00000000-0000-0000-0000-000000000000"
      for (const method of ["GET", "HEAD"] as const) {
        const [gone, strange] = [
          yield* caller.call(method, caller.executionUrl(id)),
          yield* caller.call(method, caller.executionUrl(never)),
        ]
        expect([gone.status, gone.text]).toEqual([404, strange.text])
      }
      for (const call of [caller.remove, caller.abort]) {
        const gone = yield* call(id)
        expect([gone, gone.status]).toEqual([yield* call(never), 404])
      }
      expect((yield* caller.remove("no.body")).status).toBe(422)
    },
  )

  told(
    "reads its final state by GET and HEAD [readExecution 200] [pollExecution 200] [pollExecution 202]",
    function* (caller) {
      const id = textField(yield* caller.start("queue-10+run-0"), "execution_id")
      const seen = []
      for (const seconds of [0, 10]) {
        yield* TestClock.adjust(seconds * 1000)
        const head = yield* caller.call("HEAD", caller.executionUrl(id))
        seen.push([head.status, head.text, (yield* caller.read(id)).status])
      }
      expect(seen).toEqual([
        [202, "", 202],
        [200, "", 200],
      ])
    },
  )

  told("somebody else's run blocks a start, is visible, and ends by itself", function* (caller) {
    const start = caller.start("queue-0+run-0+foreign-30", { external_execution_id: "ours" })
    const refused = yield* start
    const theirs = textField(refused, "execution_id")
    const state = yield* caller.read(theirs)
    yield* TestClock.adjust(30_000)
    expect([refused.status, state.status, (yield* start).status]).toEqual([409, 202, 202])
    expect(field(refused, "external_execution_id")).toMatch(/^somebody-else-/)
    expect(field(state, "external_execution_id")).toBe(field(refused, "external_execution_id"))
  })
})
