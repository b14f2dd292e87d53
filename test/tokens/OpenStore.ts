/** A token store that a test has opened, and a token to keep in it. */
import { Effect, Redacted } from "effect"
import type { NewToken } from "../../src/tokens/StoredToken.ts"
import { TokenStore, type OpenTokenStore } from "../../src/tokens/TokenStore.ts"
import { anId } from "../harness/Id.ts"

export const withStore = <A, E, R>(work: (store: OpenTokenStore) => Effect.Effect<A, E, R>) =>
  Effect.flatMap(TokenStore, (store) => (store._tag === "Open" ? work(store) : Effect.die("closed")))

/** A token of which nobody knows more than whose it is. */
export const plainToken = (changes: Partial<NewToken> = {}): NewToken => ({
  name: "c-1/bank",
  token_id: "t-1",
  customer_id: anId("c-1"),
  engine_reference: anId("bank"),
  app_id: undefined,
  features: [],
  locking_hash: undefined,
  fingerprint: undefined,
  exchanged_at: 0,
  expires_at: 90 * 24 * 60 * 60_000,
  ...changes,
})
export const keepPlain = (store: OpenTokenStore, changes: Partial<NewToken> = {}, key = "key-1") =>
  store.keepToken(plainToken(changes), Redacted.make(key), undefined)
