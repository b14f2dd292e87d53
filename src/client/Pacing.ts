/**
 * Pure: how fast one host may be called. Every complaint (a 429 or 503 to a request sent since the last
 * one) cuts the rate by a third; without one, it grows by a twentieth per second, at slow hosts by a
 * two-hundredth per request, of the rate that proved too high: additive increase, multiplicative decrease.
 * A host that never complains is not paced. Which calls a Retry-After holds back is in `Closures.ts`.
 */

/** Limits of a lane's rate in requests per second; above the upper one, it is no longer paced. */
export const rateMin = 0.2
export const rateMax = 1_000
/** The rate that a host is assumed to bear when it first complains, before much was measured. */
export const firstRate = 5
const decrease = 2 / 3
const increasePerSecond = 1 / 20
const increasePerRequest = 1 / 200

export interface Pace {
  /** Requests per second; Infinity when the host has not complained. */
  readonly rate: number
  /** The rate at which the host last complained: steps of the increase are a fraction of it. */
  readonly ceiling: number
  /** When the rate was last changed; answers to requests sent before a cut do not cut again. */
  readonly changedMs: number
  readonly cutMs: number
  readonly nextSlotMs: number
  /** Requests sent in the second that began at `secondMs`, and in the one before: what the host accepted. */
  readonly secondMs: number
  readonly sentThisSecond: number
  readonly sentLastSecond: number
}

export const openPace: Pace = {
  rate: Number.POSITIVE_INFINITY,
  ceiling: Number.POSITIVE_INFINITY,
  changedMs: 0,
  cutMs: Number.NEGATIVE_INFINITY,
  nextSlotMs: 0,
  secondMs: 0,
  sentThisSecond: 0,
  sentLastSecond: 0,
}

/** The rate after the quiet time since it was last changed. */
const recover = (pace: Pace, nowMs: number): Pace => {
  if (pace.rate === Number.POSITIVE_INFINITY || nowMs <= pace.changedMs) return pace
  // Above the old ceiling the step grows with the rate: what was too much once may be acceptable later.
  const share = Math.min(increasePerSecond, pace.rate * increasePerRequest)
  const rate = pace.rate + (Math.max(pace.ceiling, pace.rate) * share * (nowMs - pace.changedMs)) / 1000
  return rate > rateMax
    ? { ...pace, rate: Number.POSITIVE_INFINITY, changedMs: nowMs }
    : { ...pace, rate, changedMs: nowMs }
}

/** Takes the next slot: the moment at which this request may be sent. */
export const takeSlot = (before: Pace, nowMs: number): readonly [slotMs: number, pace: Pace] => {
  const pace = recover(before, nowMs)
  const slotMs = Math.max(nowMs, pace.nextSlotMs)
  return [slotMs, { ...pace, nextSlotMs: slotMs + 1000 / pace.rate }]
}

/** Counts a request that is sent now. */
export const noteSent = (pace: Pace, nowMs: number): Pace =>
  nowMs - pace.secondMs >= 1000 || nowMs < pace.secondMs
    ? { ...pace, secondMs: nowMs, sentThisSecond: 1, sentLastSecond: pace.sentThisSecond }
    : { ...pace, sentThisSecond: pace.sentThisSecond + 1 }

/** The host complained about a request sent at `sentMs`; its rate grows again once `quietMs` are over. */
export const noteThrottled = (before: Pace, sentMs: number, nowMs: number, quietMs: number): Pace => {
  const pace = recover(before, nowMs)
  // Requests that were already under way at the last cut say nothing about the rate after it.
  if (sentMs <= pace.cutMs) return pace
  const seen = Math.max(firstRate, pace.sentThisSecond - 1, pace.sentLastSecond - 1)
  const measured = pace.rate === Number.POSITIVE_INFINITY ? seen : pace.rate
  const rate = Math.max(rateMin, Math.min(measured, rateMax) * decrease)
  return {
    ...pace,
    rate,
    ceiling: Math.max(rateMin, measured),
    changedMs: nowMs + quietMs,
    cutMs: nowMs,
    nextSlotMs: nowMs + 1000 / rate,
  }
}
