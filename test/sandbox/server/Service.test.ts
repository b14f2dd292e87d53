/** The service in the caller's own fiber, and through a real server: the same answers. */
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { Caller, field, inBothWays, inProcess, textField } from "./Caller.ts"

inBothWays("the embedded service", (told) => {
  told("a run queues, works and ends when its words say so, and reports its times", function* (caller) {
    const started = yield* caller.start("queue-10+run-20+async-5+records-3", {
      external_execution_id: "x-1",
    })
    const execution_id = textField(started, "execution_id")
    const session_id = textField(started, "session_id")
    const ids = {
      app_id: "65f0c0ffee00000000000001",
      auth_origin: "app-secret",
      customer_id: "c-1",
      engine_reference: "sandbox-bank:website",
      execution_id,
      external_execution_id: "x-1",
      session_id,
    }
    expect(started.status).toBe(202)
    expect(started.json).toEqual({ ...ids, status_code: "ONGOING", status_reason: "ACCEPTED" })
    expect(session_id).toMatch(/^[0-9a-f]{24}$/)

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
    yield* TestClock.adjust(100_000)
    const last = yield* caller.read(execution_id)
    expect(last.json).toEqual({
      ...ids,
      status_code: "COMPLETED",
      status_reason: "COMPLETED",
      status_message: "Terminado.",
      authentication_status: "AUTH_OK",
      is_closed: true,
      products_count: {
        "account:checking@accounts": 1,
        "customer_information:user_profile@customer_information": 1,
        "financial_card:debit@cards": 1,
      },
      end_hook: "skipped",
      warnings_count: 0,
      errors_count: 0,
      locking_hash: expect.stringMatching(/^v1\.[0-9a-f]{64}$/),
      date_created: "2026-11-21T09:00:00.000Z",
      date_started: "2026-11-21T09:00:10.000Z",
      date_ended: "2026-11-21T09:00:35.000Z",
      execution_time: 20,
      running_time: 20,
      total_elapsed_time: 35,
      features: ["accounts_read", "cards_read", "customer_information_read"].map((code) => ({
        code,
        status_reason: "FEATURE_COMPLETED",
      })),
      messages: [
        {
          date: "2026-11-21T09:00:12.000Z",
          type: "info",
          id: "login.accepted",
          loc: [],
          message: "Acceso correcto.",
        },
      ],
    })
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
