/** A service that takes no start with a stored token: the parameters behind it are sent, and nothing twice. */
import { describe, expect } from "@effect/vitest"
import { Effect, Layer, Redacted } from "effect"
import type { CallFailure, StartAnswer, StartCall } from "../../src/client/Service.ts"
import type { Prepared } from "../../src/task/Work.ts"
import { TokenStore } from "../../src/tokens/TokenStore.ts"
import { openTokenDatabase } from "../../src/tokens/TokenTables.ts"
import { makePlace, night, ready, second, type Place, succeeded } from "./ScriptedNight.ts"
import { accepted, lost, refused, state as stateOf, throttled, type Script } from "./ScriptedService.ts"
import { anId } from "../harness/Id.ts"
import { effect } from "../harness/Steps.ts"
import { keepPlain, withStore } from "../tokens/OpenStore.ts"

const withToken = (isBehind: boolean): Prepared => {
  const parameters = ready("login")
  if (parameters._tag !== "Ready") return parameters
  const token_key = Redacted.make("key")
  const call = { ...parameters.call, login: { _tag: "Token", token_id: "t-1", token_key } } as const
  const token = { name: "c-1", token_id: "t-1" }
  const withParameters = { ...parameters.call, customer_id: anId("c-1"), engine_reference: anId("bank") }
  return { ...parameters, call, token, ...(isBehind ? { withParameters } : {}) }
}

/** Its store holds the token that `withToken` logs in with. */
const placeWithToken = Effect.gen(function* () {
  const options = { key: Redacted.make("7a".repeat(32)), service: "sandbox" }
  const tokens = Layer.orDie(TokenStore.layerOver(openTokenDatabase(":memory:"), options))
  const keep = withStore((store) => keepPlain(store, { name: "c-1", fingerprint: "login" }))
  yield* Effect.provide(keep, tokens)
  return { ...makePlace(), tokens } satisfies Place
})

/** The starts of a night: how each logged in, and under which external id. */
const startsOf = (
  answers: ReadonlyArray<StartAnswer | CallFailure>,
  {
    isBehind = true,
    cutAfter,
    state,
  }: { isBehind?: boolean; cutAfter?: number; state?: Script["state"] } = {},
) =>
  Effect.gen(function* () {
    const starts: Array<readonly [login: string, external: string]> = []
    const start = (call: StartCall) => {
      starts.push([call.login._tag, call.external_execution_id])
      return answers[starts.length - 1] ?? accepted("1")
    }
    const tasks = [{ customer: "c-1", fingerprint: "login", prepare: () => withToken(isBehind) }]
    const script = { start, ...(state === undefined ? {} : { state }) }
    const given = { tasks, script, place: makePlace() }
    const first = yield* night({ ...given, ...(cutAfter === undefined ? {} : { cutAfter }) })
    const end = cutAfter === undefined ? first : yield* night(given)
    const externals = [...new Set(starts.map(([, external]) => external))]
    const sent = starts.map(([login, external]) => `${login} ${externals.indexOf(external) + 1}`)
    // What was recorded before each of them left says the same.
    const recorded = end.facts.flatMap((fact) =>
      fact._tag === "StartIntended"
        ? [`${fact.token_id === "t-1" ? "Token" : "Parameters"} ${fact.attempt}`]
        : [],
    )
    expect(recorded).toEqual(sent)
    return { starts: sent, verdict: end.verdict("c-1") }
  })

describe("a start with a token that the service refuses", () => {
  effect("is sent with the parameters behind it, as another attempt [decision 2 token]", function* () {
    expect(yield* startsOf([refused(422)])).toEqual({
      starts: ["Token 1", "Parameters 2"],
      verdict: succeeded,
    })
  })

  effect(
    "fails if the job has no parameters, or if they are refused too, also in a later attempt",
    function* () {
      const failed = "failed BAD_CONFIGURATIONS engineer"
      expect(yield* startsOf([refused(422)], { isBehind: false })).toEqual({
        starts: ["Token 1"],
        verdict: failed,
      })
      expect(yield* startsOf([refused(422), refused(422)])).toEqual({
        starts: ["Token 1", "Parameters 2"],
        verdict: failed,
      })
      const state = () => stateOf("TEMPORARY_ERROR", "OUT_OF_SERVICE")
      expect(yield* startsOf([refused(422), accepted("1"), refused(422)], { state })).toEqual({
        starts: ["Token 1", "Parameters 2", "Parameters 3"],
        verdict: "failed BAD_CONFIGURATIONS engineer",
      })
    },
  )

  effect("ends the token, also where the process died before it could say so", function* () {
    const tasks = [{ customer: "c-1", fingerprint: "login", prepare: () => withToken(false) }]
    const first = yield* night({
      tasks,
      place: yield* placeWithToken,
      script: { start: () => refused(400, "T10N_REJECTED") },
    })
    const answeredAt = first.facts.findIndex(({ _tag }) => _tag === "StartAnswered")
    const facts = first.facts.slice(2, answeredAt + 1)
    const next = yield* night({ tasks, place: yield* placeWithToken, facts })
    const dropped = [first, next].map((end) =>
      end.of("TokenDropped").map((fact) => [fact.token_id, fact.reason]),
    )
    expect(dropped).toEqual([[["t-1", "T10N_REJECTED"]], [["t-1", "T10N_REJECTED"]]])
    expect([next.starts, next.verdict("c-1")]).toEqual([0, "failed T10N_REJECTED engineer"])
  })

  effect.each([400, 422] as const)(
    "%d with a rejected login locks the token, and nothing logs in again [end locked token] [end locked token status]",
    function* (status) {
      const place = yield* placeWithToken
      const tasks = [{ customer: "c-1", fingerprint: "login", prepare: () => withToken(true) }]
      const script = { start: () => refused(status, "INCORRECT_CREDENTIALS") }
      const first = yield* night({ tasks, place, script })
      const next = yield* night({ tasks, place })
      const stored = yield* Effect.provide(
        withStore((store) => store.tokens),
        place.tokens,
      )
      expect(next.of("TokenDropped").map((fact) => [fact.token_id, fact.reason])).toEqual([["t-1", "LOCKED"]])
      expect(stored.map(({ dropped, hasKey }) => [dropped?.reason, hasKey])).toEqual([["LOCKED", false]])
      expect([first, next].map((end) => [end.starts, end.verdict("c-1")])).toEqual([
        [1, "failed INCORRECT_CREDENTIALS customer"],
        [1, "failed INCORRECT_CREDENTIALS customer"],
      ])
    },
  )

  effect("does not count as unsent if an earlier request of it was lost", function* () {
    expect(yield* startsOf([lost, refused(422)])).toEqual({
      starts: ["Token 1", "Token 1"],
      verdict: "failed BAD_CONFIGURATIONS engineer",
    })
  })

  effect("leaves a probe of the parameters to log in as they did [decision 2 token probe]", function* () {
    const answers = [refused(422), lost, throttled(429, 600 * second)]
    const starts = ["Token 1", "Parameters 2", "Parameters 2", "Parameters 2"]
    expect(yield* startsOf(answers)).toEqual({ starts, verdict: succeeded })
    expect(yield* startsOf(answers, { cutAfter: 60 * second })).toEqual({ starts, verdict: succeeded })
  })
})
