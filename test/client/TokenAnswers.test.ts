/** Exchanges and revocations as requests, and what the answers about tokens must never let out. */
import { inspect } from "node:util"
import { assert, describe, expect, it } from "@effect/vitest"
import { Cause, Effect, Exit, Redacted } from "effect"
import { Service, type CallFailure } from "../../src/client/Service.ts"
import { viewExchanged, viewSecret } from "../../src/client/Views.ts"
import { startCall } from "./Examples.ts"
import { stageInProcess } from "./FakeService.ts"
import { anId } from "../harness/Id.ts"
import { effect } from "../harness/Steps.ts"

const token_key = "token-key-canary-3"
const ticket = "ticket-canary-3"
const withToken = startCall({
  login: { _tag: "Token", token_id: "t-1", token_key: Redacted.make(token_key) },
})
const pair = { token_id: "t-1", token_key }
const context = {
  engine_reference: anId("bank"),
  app_id: "app",
  customer_id: anId("c-1"),
  features: ["accounts_read"],
  locking_hash: "v1.x",
}

describe("an exchange", () => {
  it("is read tolerantly except the pair itself: without it there is no token", () => {
    const read = (json: unknown) => {
      const answer = viewExchanged(json, json)
      return answer?._tag === "Exchanged" ? answer.context : undefined
    }
    const odd = { ...context, features: ["a", 5, null], locking_hash: null, customer_id: 7, more: {} }
    assert.deepStrictEqual(read({ token: { ...pair, more: 1 }, context: odd }), {
      engine_reference: anId("bank"),
      app_id: "app",
      features: ["a"],
    })
    assert.deepStrictEqual([read({ token: pair }), read({ token: pair, context: [] })], [{}, {}])
    const halves = [{ token_key: 5 }, { token_key: "" }, { token_id: "" }].map((half) => ({
      ...pair,
      ...half,
    }))
    const tokens = [token_key, { token_id: "t-1" }, ...halves].map((token) => ({ token }))
    for (const json of [undefined, [], {}, ...tokens]) assert.isUndefined(viewExchanged(json, json))
  })

  it("begins with a ticket that only a start's answer shows", () => {
    const tickets = [{ ticket }, { ticket: "" }, { ticket: null }, { ticket: 5 }, {}].map((one) =>
      viewSecret(one, "ticket"),
    )
    expect(tickets.map((one) => one && Redacted.value(one))).toStrictEqual([
      ticket,
      undefined,
      undefined,
      undefined,
      undefined,
    ])
  })
})

describe("an error with tokens", () => {
  effect("shows neither ticket nor key, in failures, causes, answers or their text", function* () {
    const bodies = [
      JSON.stringify({ token: pair, context, ticket }),
      `{"token":{"token_id":"t-1","token_key":"${token_key}"`,
      `"${token_key} ${ticket}"`,
    ]
    const shown: Array<string> = []
    for (const status of [200, 202, 302, 400, 401, 403, 404, 409, 422, 429, 500, 503])
      for (const body of bodies) {
        const stage = yield* stageInProcess({ status, body })
        const service = yield* Effect.provide(Service, stage.layer)
        const exits: ReadonlyArray<Exit.Exit<unknown, CallFailure>> = [
          yield* Effect.exit(service.exchangeTicket(anId("e-1"), Redacted.make(ticket))),
          yield* Effect.exit(Effect.asVoid(service.startExecution(withToken, Effect.void))),
          yield* Effect.exit(service.revokeToken("t-1")),
        ]
        for (const exit of exits) {
          const cause = Exit.isFailure(exit) ? Cause.pretty(exit.cause) : ""
          shown.push(inspect(exit, { depth: 20 }), JSON.stringify(exit), cause)
        }
      }
    assert.isAbove(shown.length, 100)
    expect(shown.filter((text) => text.includes(ticket) || text.includes(token_key))).toStrictEqual([])
  })
})
