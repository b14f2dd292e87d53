/**
 * A Clock that runs `speed` times as fast as the machine, from a given origin, so that a run takes minutes.
 * It uses the machine's monotonic time: a jump of the wall clock does not show. Sleeps are shortened
 * accordingly; this is the only place that uses real timers, through the machine's own Clock.
 */
import { Clock, Duration, Effect, Layer } from "effect"

export interface ScaledClockOptions {
  /** Seconds on this clock per second of the machine; more than 0. */
  readonly speed: number
  /** What the clock shows at first: milliseconds since the epoch. */
  readonly originMs: number
}

/** Builds the clock on top of another, the machine's own. */
const makeScaledClock = (machine: Clock.Clock, { speed, originMs }: ScaledClockOptions): Clock.Clock => {
  const startedAt = machine.monotonicTimeNanosUnsafe()
  const elapsedMs = () => (Number(machine.monotonicTimeNanosUnsafe() - startedAt) / 1e6) * speed
  const millis = () => Math.floor(originMs + elapsedMs())
  const nanos = () => BigInt(Math.floor(originMs)) * 1_000_000n + monotonic()
  const monotonic = () => BigInt(Math.floor(elapsedMs() * 1e6))
  return {
    currentTimeMillisUnsafe: millis,
    currentTimeMillis: Effect.sync(millis),
    currentTimeNanosUnsafe: nanos,
    currentTimeNanos: Effect.sync(nanos),
    monotonicTimeNanosUnsafe: monotonic,
    monotonicTimeNanos: Effect.sync(monotonic),
    sleep: (duration) => machine.sleep(Duration.millis(Duration.toMillis(duration) / speed)),
  }
}

export const ScaledClock = {
  layer: (options: ScaledClockOptions): Layer.Layer<never> =>
    Layer.effect(
      Clock.Clock,
      Clock.clockWith((machine) => Effect.sync(() => makeScaledClock(machine, options))),
    ),
}
