/**
 * A Clock whose time never jumps: it reads the wall clock once and then adds what the monotonic clock
 * counted. A run that uses this clock is not affected when the machine's time is set or daylight saving
 * begins.
 */
import { Clock, Effect, Layer } from "effect"

const nanosPerMilli = 1_000_000n

/** Steadies the Clock that is provided when the layer is built. */
const make = (underlying: Clock.Clock): Clock.Clock => {
  const wallNanos = BigInt(Math.trunc(underlying.currentTimeMillisUnsafe())) * nanosPerMilli
  const origin = underlying.monotonicTimeNanosUnsafe()
  const nanos = () => wallNanos + (underlying.monotonicTimeNanosUnsafe() - origin)
  const millis = () => Number(nanos() / nanosPerMilli)
  return {
    currentTimeMillisUnsafe: millis,
    currentTimeMillis: Effect.sync(millis),
    currentTimeNanosUnsafe: nanos,
    currentTimeNanos: Effect.sync(nanos),
    monotonicTimeNanosUnsafe: () => underlying.monotonicTimeNanosUnsafe(),
    monotonicTimeNanos: underlying.monotonicTimeNanos,
    sleep: (duration) => underlying.sleep(duration),
  }
}

export const SteadyClock = { layer: Layer.effect(Clock.Clock, Effect.map(Clock.Clock, make)) }
