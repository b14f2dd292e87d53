/**
 * Gives new documents their names in `documents/<customer>/`: for `nightjar documents`, and at the end of
 * each run of a job that asks for it. At night nothing waits for it, and a failure costs a warning.
 */
import { Cause, Duration, Effect } from "effect"
import type { Job } from "../jobs/Job.ts"
import { reasonOfCause } from "./Failures.ts"
import { openedStoreWithKey } from "./LookAtFolder.ts"
import { warn } from "./Output.ts"
import { withPublished } from "./PublishedDatabase.ts"
import { Wiring } from "./Wiring.ts"

/** The folder is already held; undefined if nothing is published yet. */
export const nameDocumentsIn = Effect.fn("NameDocuments.name")(function* (output: string) {
  const { nameDocuments } = yield* Effect.promise(() => import("../folder/NamedDocuments.ts"))
  const wiring = yield* Wiring
  const { revealer } = yield* Effect.promise(() => import("../tables/Disguise.ts"))
  const store = yield* openedStoreWithKey(output, "none")
  const reveal = yield* Effect.provide(revealer(store), wiring.ledger(output, "read-only"))
  return yield* withPublished(output, (connection) => nameDocuments(store, connection, reveal))
})

/** A night brings far fewer documents than this takes; the next one continues. */
const namedWithin = Duration.minutes(10)

/** Never fails. */
export const nameDocumentsAfterNight = Effect.fnUntraced(function* (output: string, job: Job) {
  if (job.namesDocuments !== true) return
  const failed = (why: string) => warn("documents-unnamed", { why })
  yield* nameDocumentsIn(output).pipe(
    Effect.asVoid,
    Effect.timeoutOrElse({
      duration: namedWithin,
      orElse: () => failed(`they were not ready within ${Duration.format(namedWithin)}`),
    }),
    Effect.catchCause((cause) =>
      Cause.hasInterruptsOnly(cause)
        ? Effect.interrupt
        : Effect.andThen(failed(reasonIn(cause)), Effect.logDebug(cause)),
    ),
  )
})

/** What the machine or the folder refused, in its own words. */
const reasonIn = (cause: Cause.Cause<unknown>): string => {
  const error = Cause.squash(cause)
  if (error instanceof Error && "_tag" in error && error._tag === "NamingFailed") return error.message
  return reasonOfCause(cause)
}
