/**
 * A Clock whose time of day never jumps: it reads the wall once and then adds what the monotonic clock
 * counted. A night that decides by this clock is unmoved when somebody sets the machine's time or daylight
 * saving begins.
 */
import { Clock, Effect, Layer } from "effect"

const nanosPerMilli = 1_000_000n

/** Steadies the Clock that is in place when the layer is built. */
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
