/**
 * Before anything starts: a refused secret or an unreachable service must not cost an attempt. The run of a
 * night waits for the service until the night ends. It is recorded as soon as the service fails, so that no
 * night is lost without a trace.
 */
import { Effect, Schema } from "effect"
import { retryCall } from "../client/Backoff.ts"
import type { RetryOptions } from "../client/Backoff.ts"
import { Service } from "../client/Service.ts"
import { tell } from "../task/Progress.ts"
import type { RunStarted } from "../ledger/RunFacts.ts"
import { Ledger } from "../ledger/Ledger.ts"

/** Nothing was started: the service refuses the application secret, or cannot be reached. */
export class ServiceRefused extends Schema.TaggedError<ServiceRefused>()("ServiceRefused", {
  message: Schema.String,
}) {}

const callService = Effect.fnUntraced(function* (bounds: RetryOptions) {
  const service = yield* Service
  yield* retryCall(service.listEngines, bounds).pipe(
    Effect.mapError((failure) => new ServiceRefused({ message: failure.message })),
  )
})

/** Returns whether `begun`, the beginning of the run, is in the ledger. */
export const reachService = Effect.fn("ReachService.reach")(function* <E, R>({
  untilAt,
  begun,
  giveUp,
}: {
  /** Milliseconds since the epoch; undefined: a few tries are enough. */
  readonly untilAt: number | undefined
  /** The beginning of a run that is recorded even if the service cannot be reached. */
  readonly begun?: typeof RunStarted.Type
  /** Ends such a run. */
  readonly giveUp: Effect.Effect<void, E, R>
}) {
  const first = yield* Effect.result(callService({ triesMax: 4 }))
  if (first._tag === "Success") return false
  const { message } = first.failure
  if (begun !== undefined) yield* (yield* Ledger).append([begun])
  const waiting =
    untilAt === undefined
      ? Effect.fail(first.failure)
      : Effect.andThen(
          tell({ _tag: "ServiceAway", message, until: untilAt }),
          callService({ triesMax: Infinity, untilAt }),
        )
  yield* Effect.tapError(waiting, () => (begun === undefined ? Effect.void : giveUp))
  return begun !== undefined
})
