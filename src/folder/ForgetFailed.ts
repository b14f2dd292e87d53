/**
 * Why a removal stopped: what the machine refused, or damage that hides whose data is where. What was done so
 * far is done, and the same command continues.
 */
import { Effect, Schema } from "effect"
import { LandingDamaged } from "../landing/Landing.ts"

export class ForgetFailed extends Schema.TaggedError<ForgetFailed>()("ForgetFailed", {
  message: Schema.String,
  /** Another customer's removal was cut off and has to be finished first. */
  isOther: Schema.optionalKey(Schema.Boolean),
}) {}

export const step = <A>(work: () => A): Effect.Effect<A, ForgetFailed | LandingDamaged> =>
  Effect.try({
    try: work,
    catch: (cause) =>
      cause instanceof LandingDamaged
        ? cause
        : new ForgetFailed({ message: cause instanceof Error ? cause.message : String(cause) }),
  })
