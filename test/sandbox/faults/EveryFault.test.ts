/** A body that is wrong in several places is told all of them at once (section 7). */
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { Caller, field, inProcess } from "../server/Caller.ts"

describe("a malformed start", () => {
  it.effect("names every wrong field, in a list of validation items", () =>
    Effect.gen(function* () {
      const caller = yield* Caller
      const answer = yield* caller.call("POST", caller.startUrl, {
        body: {
          engine_reference: "sandbox-bank:website",
          customer_id: 5,
          parameters: { username: "ok", password: "correct" },
          external_execution_id: false,
          base_configurations: { execution_timeout: 5, tokenized_access: "yes" },
        },
      })
      expect(answer.status).toBe(422)
      const detail = field(answer, "detail")
      const named = Array.isArray(detail) ? detail.map((item: unknown) => field({ json: item }, "loc")) : []
      expect(named).toEqual([
        ["body", "customer_id"],
        ["body", "external_execution_id"],
        ["body", "base_configurations", "execution_timeout"],
        ["body", "base_configurations", "tokenized_access"],
      ])
    }).pipe(Effect.provide(inProcess({ seed: 7 }))),
  )
})
