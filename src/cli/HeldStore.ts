/**
 * What is published, for commands that change it: the folder is held, so that no run and no other command
 * works in it at the same time.
 */
import { statSync } from "node:fs"
import { Effect, Layer } from "effect"
import type { DuckDb } from "../base/DuckDb.ts"
import type { Job } from "../jobs/Job.ts"
import type { Landing } from "../landing/Landing.ts"
import type { Ledger } from "../ledger/Ledger.ts"
import type { Store } from "../tables/Store.ts"
import { holdOutput } from "./RunFolder.ts"
import { Wiring } from "./Wiring.ts"

/** What is shared with the group stays shared. */
export const shareOf = (output: string) => ((statSync(output).mode & 0o050) === 0o050 ? "group" : "none")

/** `opens` the store with what the work needs of its pseudonyms. */
export const inHeldStore = Effect.fnUntraced(function* <A, E, R, E1, R1>(
  output: string,
  work: (store: Store) => Effect.Effect<A, E, R | Landing | DuckDb | Ledger>,
  opens: (output: string, share: Job["share"]) => Effect.Effect<Store, E1, R1>,
) {
  const wiring = yield* Wiring
  const share = shareOf(output)
  yield* holdOutput(output, [share])
  const services = Layer.mergeAll(
    wiring.landing(output, "read-write"),
    wiring.database,
    wiring.ledger(output, "read-write"),
  )
  const store = yield* opens(output, share)
  return yield* Effect.provide(work(store), services)
}, Effect.scoped)
