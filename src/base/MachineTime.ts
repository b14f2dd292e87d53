/**
 * The machine's own time, for work that the machine does: on the embedded service a run's clock may go
 * hundreds of times as fast, but a database, a command or a thread takes as long as ever.
 */
import { Clock, Context, Duration, Effect, Schema } from "effect"

/** Work of this machine was interrupted at its limit. */
export class TookTooLong extends Schema.TaggedError<TookTooLong>()("TookTooLong", {
  message: Schema.String,
}) {}

/** Tests may replace it. */
export const MachineClock = Context.Reference<Clock.Clock>("nightjar/foundation/MachineClock", {
  defaultValue: () => Clock.Clock.defaultValue(),
})

/** All waits and limits of `work` count in the machine's time. */
export const inMachineTime = <A, E, R>(work: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.flatMap(MachineClock, (clock) => Effect.provideService(work, Clock.Clock, clock))

/** Interrupts `work`, which keeps the run's own clock, if it takes longer on the machine's. */
export const withinMachineTime =
  (duration: Duration.Duration) =>
  <A, E, R>(work: Effect.Effect<A, E, R>): Effect.Effect<A, E | TookTooLong, R> =>
    Effect.raceFirst(
      work,
      Effect.andThen(
        inMachineTime(Effect.sleep(duration)),
        Effect.fail(
          new TookTooLong({ message: `it took longer than ${Duration.toMinutes(duration)} minutes` }),
        ),
      ),
    )
