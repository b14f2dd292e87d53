/** A ticket exchanged and a token revoked by hand: what is stored and recorded of each answer, and what is not. */
import { describe, expect } from "@effect/vitest"
import { Effect, Exit, Fiber, Layer, Redacted } from "effect"
import { TestClock } from "effect/testing"
import type { ExchangeAnswer, Service } from "../../src/client/Service.ts"
import type { Fact } from "../../src/ledger/Fact.ts"
import { Ledger } from "../../src/ledger/Ledger.ts"
import { exchangeByHand, revokeByHand } from "../../src/tokens/ExchangeTicket.ts"
import { tokenLifetimeMs, type NewToken } from "../../src/tokens/StoredToken.ts"
import { TokenStore, type OpenTokenStore } from "../../src/tokens/TokenStore.ts"
import { lost, scripted, unexpected, type Call, type Script } from "../task/ScriptedService.ts"
import { anId } from "../harness/Id.ts"
import { effect } from "../harness/Steps.ts"
import { keepPlain, plainToken, withStore } from "./OpenStore.ts"
import { aFact } from "../harness/Facts.ts"

const access = { customer_id: anId("c-1"), engine_reference: anId("bank") }
const context = { ...access, features: ["accounts_read"], app_id: "app", locking_hash: "v1.x" }
const exchanged: ExchangeAnswer = {
  _tag: "Exchanged",
  token: { token_id: "t-1", token_key: Redacted.make("key-1") },
  context,
}
const held = (name: string, customer: string) =>
  plainToken({ customer_id: anId(customer), name, token_id: "t-0" })

interface Before {
  readonly script?: Script
  readonly held?: ReadonlyArray<NewToken>
  readonly facts?: ReadonlyArray<Fact>
}

/** What one command does: its answer, the tokens with their keys, the facts, and what the service was asked. */
const byHand = <A, E>(
  { script = {}, held: tokens = [], facts: before = [] }: Before,
  work: (store: OpenTokenStore) => Effect.Effect<A, E, Ledger | Service>,
) => {
  const calls: Array<Call> = []
  const options = { key: Redacted.make("1f".repeat(32)), service: "https://a.example" }
  return Effect.gen(function* () {
    const [store, ledger] = [yield* withStore(Effect.succeed), yield* Ledger]
    yield* ledger.append(before)
    for (const token of tokens) yield* keepPlain(store, token, "key-0")
    yield* TestClock.setTime(1_000)
    const fiber = yield* Effect.forkChild(Effect.exit(work(store)), { startImmediately: true })
    yield* TestClock.adjust("1 second")
    const answer = yield* Fiber.join(fiber)
    const kept = yield* Effect.forEach(yield* store.tokens, (token) =>
      Effect.map(store.tokenKey(token), (key) => [
        token.name,
        token.token_id,
        token.dropped?.reason ?? "kept",
        key === undefined ? "no key" : Redacted.value(key),
      ]),
    )
    const recorded = (yield* ledger.byHand).map(({ fact }) => fact)
    const said = Exit.isSuccess(answer) ? answer.value : "failed"
    return { said, kept, facts: recorded, tokens: yield* store.tokens, asked: calls.map(([, verb]) => verb) }
  }).pipe(
    Effect.provide(
      Layer.mergeAll(
        TokenStore.layer(":memory:", options),
        Ledger.layer({ path: ":memory:" }),
        scripted(script, calls),
      ),
    ),
  )
}
const given = (name?: string) => ({ execution_id: anId("e-1"), ticket: Redacted.make("ticket"), name })
const exchange = (before: Before, name?: string) =>
  byHand(before, (store) => exchangeByHand(store, given(name)))
const nothing = { kept: [], facts: [], tokens: [] }

describe("a ticket exchanged by hand", () => {
  effect("becomes a stored token under its name, or its default name, with a fact of no run", function* () {
    for (const [name, expected] of [
      ["mine", "mine"],
      [undefined, "c-1/bank"],
    ] as const) {
      const end = yield* exchange({ script: { exchange: () => exchanged } }, name)
      const token = {
        ...context,
        name: expected,
        token_id: "t-1",
        fingerprint: undefined,
        exchanged_at: 1_000,
        expires_at: 1_000 + tokenLifetimeMs,
      }
      const fact = { ...access, name: expected, token_id: "t-1", features: ["accounts_read"] }
      expect(end).toEqual({
        said: { _tag: "Stored", token },
        kept: [[expected, "t-1", "kept", "key-1"]],
        facts: [{ _tag: "TokenStored", ...fact, expires_at: 1_000 + tokenLifetimeMs }],
        tokens: [{ ...token, service: "https://a.example", dropped: undefined, hasKey: true }],
        asked: ["exchange"],
      })
    }
  })

  effect("takes its name from nobody else, and replaces an older token of the same access", function* () {
    const script: Script = { exchange: () => exchanged }
    const names = ({ kept }: { readonly kept: ReadonlyArray<ReadonlyArray<string>> }) =>
      kept.map(([name, token_id]) => [name, token_id])
    const older = [held("mine", "c-1"), held("other", "c-2")]
    expect(names(yield* exchange({ script, held: older }, "mine"))).toEqual([
      ["mine", "t-1"],
      ["mine#t-0", "t-0"],
      ["other", "t-0"],
    ])
    expect(names(yield* exchange({ script, held: [held("mine", "c-2")] }, "mine"))).toEqual([
      ["c-1/bank", "t-1"],
      ["mine", "t-0"],
    ])
    const ofAnotherEngine = { ...held("mine", "c-1"), engine_reference: anId("tax") }
    expect(names(yield* exchange({ script, held: [ofAnotherEngine] }, "mine"))).toEqual([
      ["c-1/bank", "t-1"],
      ["mine", "t-0"],
    ])
  })

  effect("belongs to the login of its execution, in whichever run [promise 3 token by hand]", function* () {
    const runOf = (run: string, execution: string, fingerprint: string): ReadonlyArray<Fact> => {
      const run_id = anId(run)
      const task = { run_id, task_id: anId(`${run}/t`) }
      const begun = { job: "j", job_path: "j", run_date: "2026-11-21", tool_version: "0" }
      return [
        { _tag: "RunStarted", run_id, ...begun },
        { _tag: "TaskPlanned", ...task, ...access, features: [] },
        aFact("StartIntended", {
          ...task,
          fingerprint,
          login: { account: `a-${fingerprint}`, identity: ["ana"], password: "p" },
        }),
        { _tag: "StartAnswered", ...task, attempt: 1, answer: "accepted", execution_id: anId(execution) },
      ]
    }
    const facts = [...runOf("a", "e-1", "f-1"), ...runOf("b", "e-2", "f-2")]
    const [token] = (yield* exchange({ script: { exchange: () => exchanged }, facts })).tokens
    const login = { account: "a-f-1", identity: ["ana"], password: "p" }
    expect([token?.fingerprint, token?.login]).toEqual(["f-1", login])
  })

  effect("is asked for again after a lost answer, and stores nothing without a whole one", function* () {
    const again = yield* exchange({ script: { exchange: (_, times) => (times === 1 ? lost : exchanged) } })
    expect([again.asked, again.kept]).toEqual([
      ["exchange", "exchange"],
      [["c-1/bank", "t-1", "kept", "key-1"]],
    ])
    const refused = (why: string, asked = ["exchange"]) => ({
      said: { _tag: "NoToken", message: expect.stringContaining(why) },
      ...nothing,
      asked,
    })
    for (const then of [lost, unexpected])
      expect(yield* exchange({ script: { exchange: (_, times) => (times === 1 ? lost : then) } })).toEqual(
        refused("the ticket may be used up", ["exchange", "exchange"]),
      )
    expect(yield* exchange({ script: { exchange: () => ({ _tag: "Refused" }) } })).toEqual(
      refused("the same answer for every reason"),
    )
    for (const key of ["customer_id", "engine_reference"] as const) {
      const { [key]: _, ...part } = context
      const incomplete = { ...exchanged, context: part } as ExchangeAnswer
      expect(yield* exchange({ script: { exchange: () => incomplete } })).toEqual(
        refused("without its customer and engine"),
      )
    }
    expect(yield* exchange({ script: { exchange: () => unexpected } })).toEqual({
      said: "failed",
      ...nothing,
      asked: ["exchange"],
    })
  })
})

describe("a token revoked by hand", () => {
  const revoke = (before: Before, name: string) => byHand(before, (store) => revokeByHand(store, name))
  const tokens = [held("mine", "c-1"), held("other", "c-2")]

  effect("is dropped with its key, whatever the service knew of it, with a fact of no run", function* () {
    for (const answer of ["revoked", "already_revoked", "not_found"] as const) {
      const end = yield* revoke({ held: tokens, script: { revoke: () => answer } }, "mine")
      expect(end.kept).toEqual([
        ["mine", "t-0", "REVOKED", "no key"],
        ["other", "t-0", "kept", "key-0"],
      ])
      expect(end.facts).toEqual([{ _tag: "TokenRevoked", ...access, name: "mine", token_id: "t-0" }])
      expect(end.said).toMatchObject({ answer, token: { name: "mine" } })
    }
  })

  effect("stays as it is without an answer, and without a token of that name nobody is asked", function* () {
    const kept = [
      ["mine", "t-0", "kept", "key-0"],
      ["other", "t-0", "kept", "key-0"],
    ]
    expect(yield* revoke({ held: tokens, script: { revoke: () => lost } }, "mine")).toMatchObject({
      said: "failed",
      kept,
      facts: [],
      asked: ["revoke"],
    })
    expect(yield* revoke({ held: tokens }, "nobody's")).toMatchObject({ kept, facts: [], asked: [] })
  })
})
