/**
 * A run's part in the slots of its service while other runs go on beside it. A run that is alone has none,
 * and its job's own limits are all that counts.
 */
import { Context, Duration, Effect } from "effect"
import type { EngineReference } from "../service/Ids.ts"
import type { Job } from "../jobs/Job.ts"
import type { SharedSlots, SlotShare } from "./SharedSlots.ts"

export const SlotsBeside = Context.Reference<SlotShare | undefined>("nightjar/execution/SlotsBeside", {
  defaultValue: () => undefined,
})

/**
 * Slots are kept this long for a run that has not begun to execute: a plan takes seconds, at most minutes.
 */
const keptFor = Duration.minutes(10)

/** Runs the work of a job with its part in these slots. */
export const besideOthers = (slots: SharedSlots, { name, assignments, concurrency }: Job) => {
  const expected = new Map<EngineReference, number>()
  for (const { engine_reference } of assignments)
    expected.set(engine_reference, (expected.get(engine_reference) ?? 0) + 1)
  return <A, E, R>(work: Effect.Effect<A, E, R>) =>
    Effect.gen(function* () {
      const { share, expectNothing, leave } = slots.join(name, concurrency, expected)
      yield* Effect.addFinalizer(() => Effect.sync(leave))
      yield* Effect.forkScoped(Effect.andThen(Effect.sleep(keptFor), Effect.sync(expectNothing)))
      return yield* Effect.provideService(work, SlotsBeside, share)
    }).pipe(Effect.scoped)
}
