/** Faults in a service: in process, where virtual time passes, and over real sockets. */
import { describe, expect, it } from "@effect/vitest"
import { Cause, Effect, Exit, Fiber, Option } from "effect"
import { HttpClientError } from "effect/http"
import { TestClock } from "effect/testing"
import { endpointOfRoute, type Fault } from "../../../src/sandbox/faults/Faults.ts"
import { Caller, inProcess, overHttp, textField, toldAt, truth } from "../server/Caller.ts"
import type { Answer, Reach, Steps } from "../server/Caller.ts"

// What a caller sees of faults, the same over every way to reach the service.

/** How a call failed to be answered, or its status. */
const outcomeOf = (call: Effect.Effect<Answer>): Effect.Effect<string | number> =>
  Effect.map(Effect.exit(call), (exit) => {
    if (Exit.isSuccess(exit)) return exit.value.status
    const error = Cause.squash(exit.cause)
    return HttpClientError.isHttpClientError(error) ? error.reason._tag : "another failure"
  })

const faultsSuite = (reach: Reach): void => {
  const under = (title: string, faults: ReadonlyArray<Fault>, steps: Steps) =>
    toldAt(0, title, steps, { faults: { faults } }, reach)

  under(
    "a status replaces the call, or follows it if the fault says so",
    [
      { on: "startExecution", script: [1], status: 503, retry_after: "30 seconds" },
      { on: "startExecution", script: [2], status: 502, body: "<html>" },
      { on: "startExecution", script: [3], status: 504, applied: true },
    ],
    function* (caller) {
      const first = yield* caller.start("queue-60")
      expect(first).toMatchObject({ status: 503, json: { detail: "an injected fault" } })
      expect(yield* caller.start("queue-60")).toMatchObject({ status: 502, text: "<html>" })
      // Neither of them started anything; the third took effect before its answer was replaced.
      expect((yield* caller.start("queue-60")).status).toBe(504)
      expect((yield* caller.start("queue-60")).status).toBe(409)
    },
  )

  under(
    "a connection that breaks before leaves nothing, one that breaks after has taken effect",
    [
      { on: "startExecution", script: [1], reset: "before" },
      { on: "startExecution", script: [2], reset: "after" },
    ],
    function* (caller) {
      expect(yield* outcomeOf(caller.start("queue-60"))).toBe("TransportError")
      expect((yield* truth).executions).toEqual([])
      expect(yield* outcomeOf(caller.start("queue-60"))).toBe("TransportError")
      expect((yield* truth).executions).toHaveLength(1)
      expect((yield* caller.start("queue-60")).status).toBe(409)
    },
  )

  under(
    "a body is cut or is not JSON, and the call has taken effect",
    [
      { on: "readExecution", script: [1], cut: 0.5 },
      { on: "readExecution", script: [2], malformed: true },
      { on: "readExecution", script: [3], body: "not this time" },
    ],
    function* (caller) {
      const id = yield* caller.begin("queue-60")
      expect(["DecodeError", "TransportError"]).toContain(yield* outcomeOf(caller.read(id)))
      const malformed = yield* caller.read(id)
      expect([malformed.status, malformed.json]).toEqual([202, undefined])
      expect(malformed.text.length).toBeGreaterThan(0)
      expect(yield* caller.read(id)).toMatchObject({ status: 202, text: "not this time" })
      expect((yield* caller.read(id)).json).toMatchObject({ execution_id: id })
      const seen = (yield* truth).executions[0]
      expect(seen?.state_reads?.count).toBe(4)
    },
  )

  under(
    "they belong to every endpoint of the contract, and to nothing beside it",
    [{ on: "*", status: 599 }],
    function* (caller) {
      const origin = caller.origin
      for (const [route, name] of endpointOfRoute) {
        const [method = "GET", path = ""] = route.split(" ")
        const url = origin + path.replaceAll(/:[a-z_]+/g, "x")
        const { status } = yield* caller.call(method as Parameters<typeof caller.call>[0], url)
        expect([name, status]).toEqual([name, 599])
      }
      expect((yield* caller.call("GET", `${origin}/api/nothing`)).status).toBe(404)
      expect((yield* caller.call("GET", `${origin}/admin/truth`)).status).toBe(200)
    },
  )

  under(
    "a rule knows whose a call is: by the body, by the path and by the secret",
    [
      { on: "*", customer: "c-2", script: [2, 3], status: 599 },
      { on: "*", engine: "sandbox-tax:website", status: 598 },
      { on: "startExecution", application: "65f0c0ffee00000000000002", status: 597 },
    ],
    function* (caller) {
      const mine = yield* caller.begin("queue-60", { customer_id: "c-1" })
      const other = yield* caller.start("queue-60", { customer_id: "c-2" })
      const tax = { customer_id: "c-3", engine_reference: "sandbox-tax:website" }
      const foreign = caller.start("queue-60", { customer_id: "c-1" }, "sandbox-app-2")
      for (const [call, status] of [
        [caller.read(mine), 202],
        [caller.read(textField(other, "execution_id")), 599],
        [caller.results(textField(other, "session_id")), 599],
        [caller.start("queue-60", tax), 598],
        [foreign, 597],
      ] as const)
        expect((yield* call).status).toBe(status)
      expect((yield* truth).faults).toEqual({
        injected: [
          { fault: "status: 599", on: ["*"], count: 2 },
          { fault: "status: 598", on: ["*"], count: 1 },
          { fault: "status: 597", on: ["startExecution"], count: 1 },
        ],
        recent: [
          { at: 0, endpoint: "readExecution", fault: "status: 599", customer_id: "c-2" },
          { at: 0, endpoint: "readFlowResults", fault: "status: 599", customer_id: "c-2" },
          { at: 0, endpoint: "startExecution", fault: "status: 598", customer_id: "c-3" },
          { at: 0, endpoint: "startExecution", fault: "status: 597", customer_id: "c-1" },
        ],
      })
    },
  )
}

describe("faults, in-process", () => faultsSuite(inProcess))
describe("faults, over HTTP", () => faultsSuite(overHttp))

describe("a fault of status", () => {
  const faults: ReadonlyArray<Fault> = [
    { on: "listEngines", script: [1], status: 429, retry_after: "2100 millis" },
    { on: "listEngines", script: [2], status: 503, body: "<html>" },
    { on: "listEngines", script: [3], status: 204 },
  ]
  const steps: Steps = function* (caller) {
    for (const expected of [
      [429, "3", "application/json"],
      [503, undefined, "text/plain"],
      [204, undefined, undefined],
    ]) {
      const { status, headers } = yield* caller.call("GET", `${caller.base_url}/config/engines/list`)
      expect([status, headers["retry-after"], headers["content-type"]]).toEqual(expected)
    }
  }
  const title = "says when to come back in whole seconds, and JSON only of what is JSON"
  toldAt(0, title, steps, { faults: { faults } })
})

describe("time faults", () => {
  const slow = inProcess({
    seed: 7,
    faults: {
      faults: [
        { on: "readExecution", delay: "2 seconds", status: 503 },
        { on: "listEngines", hang: true },
      ],
    },
  })

  it.effect("an answer comes late in the service's own time, and what hangs never comes", () =>
    Effect.gen(function* () {
      const caller = yield* Caller
      const late = yield* Effect.forkChild(caller.read("nobody"))
      const never = yield* Effect.forkChild(
        Effect.timeoutOption(caller.call("GET", `${caller.base_url}/config/engines/list`), "1 day"),
      )
      yield* TestClock.adjust(1_999)
      expect(late.pollUnsafe()).toBeUndefined()
      yield* TestClock.adjust(1)
      expect((yield* Fiber.join(late)).status).toBe(503)
      yield* TestClock.adjust("1 day")
      expect(yield* Fiber.join(never)).toEqual(Option.none())
    }).pipe(Effect.provide(slow)),
  )
})
