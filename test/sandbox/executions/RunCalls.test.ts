/** The calls on a run that is already there (4.2 to 4.5): what each answers wherever the run stands. */
import { expect } from "@effect/vitest"
import { TestClock } from "effect/testing"
import { field, ofTheService, person, shows, stateOf, textField } from "../server/Caller.ts"

ofTheService("a call on a run", (it) => {
  it("that waits for nobody is refused by its resume [resumeExecution 400] [error 5] [resumeExecution 404] [error 11] [resumeExecution 422]", function* (caller) {
    const working = yield* caller.begin("queue-60")
    const closed = yield* caller.begin("queue-0+run-0", { customer_id: "c-2" })
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
  })

  it("says that no profile was read, not that it is unknown [no profile]", function* (caller) {
    const id = yield* caller.begin("queue-60")
    for (const [of, detail] of [
      [id, "no profile was read"],
      ["nobody", "no such execution"],
    ] as const)
      shows(yield* caller.call("GET", caller.profileUrl(of)), { status: 404, json: { detail } })
  })

  it("aborts it wherever it stands, keeps what was read, and frees its place [abortExecution 204] [move 5] [reason CLIENT_CANCELLED] [abortExecution 304] [move 6] [error 8]", function* (caller) {
    for (const [words, seconds, before] of [
      ["queue-60", 1, 202],
      ["queue-0+run-100+records-6", 60, 202],
      ["queue-0+run-100+async-600", 60, 202],
      ["queue-0+run-0+records-6+async-600", 60, 202],
      ["queue-0+run-100+challenge-1+expire-600", 60, 423],
    ] as const) {
      const id = yield* caller.begin(words, person)
      yield* TestClock.adjust(seconds * 1000)
      const read = yield* caller.read(id)
      expect(read.status).toBe(before)
      shows(yield* caller.abort(id), { status: 204, text: "" })
      const state = yield* caller.read(id)
      shows(yield* caller.abort(id), { status: 304, text: "" })
      expect(stateOf(state)).toEqual(["ABORTED", "CLIENT_CANCELLED"])
      if (before === 202) shows(state, { products_count: field(read, "products_count") })
      expect(yield* caller.read(id)).toEqual(state)
    }
  })

  it("cannot abort it for a while, and nobody can abort what is not there [abortExecution 409] [error 9] [abortExecution 404] [abortExecution 422] [error 17]", function* (caller) {
    const id = yield* caller.begin("queue-60+unstoppable-10")
    const detail = "cannot be stopped at the moment"
    shows(yield* caller.abort(id), { status: 409, json: { detail } })
    yield* TestClock.adjust(10_000)
    expect((yield* caller.abort(id)).status).toBe(204)
    shows(yield* caller.abort("nobody"), { status: 404, json: { detail: "no such execution" } })
    const item = { loc: ["path", "execution_id"], msg: "not an execution id", type: "value_error" }
    shows(yield* caller.abort("no.body"), { status: 422, json: { detail: [item] } })
  })

  it("deletes it once it is closed, as if it had never been [deleteExecution 204] [deleteExecution 404] [deleteExecution 409] [deleteExecution 422] [move 11] [move 12] [error 10] [error 11] [readExecution 404] [pollExecution 404]", function* (caller) {
    const id = yield* caller.begin("queue-10+run-0")
    shows(yield* caller.remove(id), { status: 409, json: { detail: "still running" } })
    yield* TestClock.adjust(10_000)
    shows(yield* caller.remove(id), { status: 204, text: "" })
    const never = "00000000-0000-0000-0000-000000000000"
    for (const method of ["GET", "HEAD"] as const) {
      const strange = yield* caller.call(method, caller.executionUrl(never))
      shows(yield* caller.call(method, caller.executionUrl(id)), { status: 404, text: strange.text })
    }
    for (const call of [caller.remove, caller.abort]) {
      const gone = yield* call(id)
      expect([gone, gone.status]).toEqual([yield* call(never), 404])
    }
    expect((yield* caller.remove("no.body")).status).toBe(422)
  })

  it("reads its final state by GET and HEAD [readExecution 200] [pollExecution 200] [pollExecution 202]", function* (caller) {
    const id = yield* caller.begin("queue-10+run-0")
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
  })

  it("somebody else's run blocks a start, is visible, and ends by itself", function* (caller) {
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
