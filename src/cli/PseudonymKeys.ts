/**
 * The key of the pseudonyms that are published in an output folder, for commands that derive rows, look for a
 * customer's, or say who is who. A job that is about to run brings its own.
 */
import { Effect } from "effect"
import type { Job } from "../jobs/Job.ts"
import { refuse } from "./Failures.ts"
import { Wiring } from "./Wiring.ts"

/** Undefined if the published tables have no pseudonyms. */
export const publishedKey = Effect.fnUntraced(function* (output: string) {
  const { layoutOf } = yield* Effect.promise(() => import("../tables/Manifest.ts"))
  const { standingIn } = yield* Effect.promise(() => import("../tables/PseudonymsOfJob.ts"))
  const { keyPlace } = yield* Effect.promise(() => import("../tables/KeyPlaces.ts"))
  const layout = layoutOf(output)
  const policy = (yield* standingIn(layout))?.pseudonyms
  if (policy === undefined) return undefined
  const reference = yield* keyPlace(layout.pseudonyms, policy.check)
  if (reference === undefined) return yield* refuse("pseudonyms-key-unknown")
  const { columns } = policy
  return (yield* askedWith({ pseudonyms: { key: reference, columns } }))?.key
})

/** What a job asks for in place of the customers, with its key. */
export const askedWith = Effect.fnUntraced(function* (job: {
  readonly pseudonyms?: Pick<NonNullable<Job["pseudonyms"]>, "key" | "columns">
}) {
  const wiring = yield* Wiring
  const { askedBy } = yield* Effect.promise(() => import("../tables/PseudonymsOfJob.ts"))
  return yield* Effect.provide(askedBy(job), wiring.secrets)
})
