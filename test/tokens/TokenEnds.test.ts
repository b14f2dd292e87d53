/** When a stored token is at its end, and that only the token in question is dropped. */
import { describe, expect, it } from "@effect/vitest"
import { Effect, Layer, Redacted } from "effect"
import { Ledger } from "../../src/ledger/Ledger.ts"
import { anId } from "../harness/Id.ts"
import { withLayer } from "../harness/Steps.ts"
import { keepPlain, withStore } from "./OpenStore.ts"
import { TokenStore } from "../../src/tokens/TokenStore.ts"
import { dropToken, tokenEndOf, tokenEndOfRefusal } from "../../src/tokens/TokenLogin.ts"

const ended = (status_code: string, status_reason: string, authentication_status?: string) =>
  tokenEndOf({
    status_code,
    status_reason,
    ...(authentication_status === undefined ? {} : { authentication_status }),
  })
const locked = { reason: "LOCKED", keepKey: false }

describe("a stored token", () => {
  it("is dropped after a run that says it is invalid, or whose login was refused, and after no other", () => {
    expect([
      ended("REJECTED", "T10N_REJECTED"),
      ended("REJECTED", "T10N_EXCEPTION"),
      ended("AUTH_ERROR", "BLOCKED_USER"),
      ended("UNHANDLED_AUTH_ERROR", "ANY"),
      ended("FAILED", "FAILED", "BLOCKED_USER"),
      ended("COMPLETED", "COMPLETED", "AUTH_OK"),
      ended("REJECTED", "T10N_FORBIDDEN"),
      ended("ABORTED", "CUSTOMER_INTERVENTION_REQUIRED", "not-performed"),
      ended("FAILED", "FAILED", "AUTH_OK"),
      ended("TEMPORARY_ERROR", "OUT_OF_SERVICE"),
    ]).toEqual([
      { reason: "T10N_REJECTED", keepKey: false },
      { reason: "T10N_EXCEPTION", keepKey: false },
      locked,
      locked,
      locked,
      ...Array.from({ length: 5 }, () => undefined),
    ])
  })

  it("is dropped after a start that says so; an answer that may be about something else leaves its key", () => {
    const refusals =
      "T10N_REJECTED T10N_EXCEPTION TOKEN_UNKNOWN INCORRECT_CREDENTIALS AUTH_ERROR T10N_FORBIDDEN"
    expect(`${refusals} BAD_CONFIGURATIONS`.split(" ").map(tokenEndOfRefusal)).toEqual([
      { reason: "T10N_REJECTED", keepKey: false },
      { reason: "T10N_EXCEPTION", keepKey: false },
      { reason: "TOKEN_UNKNOWN", keepKey: true },
      locked,
      locked,
      undefined,
      undefined,
    ])
  })

  const options = { key: Redacted.make("1f".repeat(32)), service: "https://service.example" }
  const { effect } = withLayer(
    Layer.mergeAll(TokenStore.layer(":memory:", options), Ledger.layer({ path: ":memory:" })),
  )
  effect("is dropped once, with a fact; another of that access and one that is gone are not", function* () {
    const access = { customer_id: anId("c-1"), engine_reference: anId("bank") }
    const about = { run_id: anId("r.2026-11-21"), task_id: anId("r.2026-11-21/t"), ...access }
    const [store, ledger] = [yield* withStore(Effect.succeed), yield* Ledger]
    yield* keepPlain(store, { name: "one", token_id: "t-1" })
    yield* keepPlain(store, { name: "two", token_id: "t-2" })
    const inDoubt = { reason: "TOKEN_UNKNOWN", keepKey: true }
    yield* dropToken(about, "t-of-nobody", locked)
    yield* dropToken(about, "t-1", inDoubt)
    yield* dropToken(about, "t-1", inDoubt)
    yield* dropToken(about, "t-1", locked)
    yield* dropToken(about, "t-1", inDoubt)
    const facts = yield* ledger.facts(about.run_id)
    expect(facts.map(({ fact }) => fact)).toEqual(
      ["TOKEN_UNKNOWN", "LOCKED"].map((reason) => ({
        _tag: "TokenDropped",
        ...about,
        name: "one",
        token_id: "t-1",
        reason,
      })),
    )
    expect((yield* store.tokens).map(({ name, hasKey }) => [name, hasKey])).toEqual([
      ["one", false],
      ["two", true],
    ])
  })
})
