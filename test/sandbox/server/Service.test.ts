/** The service in the caller's own fiber, and through a real server: the same answers. */
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { Caller, field, inBothWays, inProcess, textField } from "./Caller.ts"

inBothWays("the embedded service", (it) => {
  it("a run queues, works and ends when its words say so", function* (caller) {
    const started = yield* caller.start("queue-10+run-20+async-5+records-3", {
      external_execution_id: "x-1",
    })
    const execution_id = textField(started, "execution_id")
    expect(started.status).toBe(202)
    const seen = []
    for (const seconds of [0, 10, 2, 9, 5, 9]) {
      yield* TestClock.adjust(seconds * 1000)
      const state = yield* caller.read(execution_id)
      const names = ["status_code", "status_reason", "authentication_status"]
      seen.push([state.status, ...names.map((name) => field(state, name))])
    }
    expect(seen).toEqual([
      [202, "ONGOING", "ACCEPTED", "not-performed"],
      [202, "ONGOING", "WAITING", "not-performed"],
      [202, "ONGOING", "RUNNING", "AUTH_OK"],
      [202, "ONGOING", "ASYNC_WAIT", "AUTH_OK"],
      [202, "ONGOING", "RUNNING", "AUTH_OK"],
      [200, "COMPLETED", "COMPLETED", "AUTH_OK"],
    ])
  })
})

describe("the in-process service", () => {
  it("answers within the caller's own step: no Promise, no timer, so that runs can be simulated", () => {
    const read = Effect.flatMap(Caller, (caller) => caller.read("nobody")).pipe(
      Effect.provide(inProcess({ seed: 7 })),
    )
    expect(Effect.runSync(read)).toMatchObject({ status: 404, json: { detail: "no such execution" } })
  })

  it("is one origin: any other is refused like a connection", () => {
    const elsewhere = Effect.flatMap(Caller, (caller) => caller.call("GET", "http://elsewhere.invalid/api"))
    expect(Effect.runSyncExit(elsewhere.pipe(Effect.provide(inProcess({ seed: 7 }))))._tag).toBe("Failure")
  })
})
