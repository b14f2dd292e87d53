/**
 * Clocks and waits: one formula for every retry, a clock that never jumps, one that runs many times as fast,
 * the machine's own time and zone, and a queue of entries by their time. Only here are real timers used.
 */
import { uptime } from "node:os"
import { Cause, Clock, Context, Duration, Effect, Layer, Random, Schedule, Schema } from "effect"

export interface WaitPolicy {
  /** The wait after the first failure. */
  readonly base: Duration.Duration
  readonly max: Duration.Duration
  /** The share of a wait, from 0 to 1, that may be taken off at random. */
  readonly jitter: number
}

/** After this many doublings every wait is the longest one. */
const doublingsMax = 30

/**
 * The wait in milliseconds after this many failures (from 1); `random` is in [0, 1). If all of a wait may
 * be random, it is added to what was asked for: otherwise all callers that were asked to wait would return
 * at once.
 */
export const waitMs = (
  { base, max, jitter }: WaitPolicy,
  failures: number,
  random: number,
  asked: Duration.Duration = Duration.zero,
): number => {
  const doublings = Math.min(doublingsMax, Math.max(0, failures - 1))
  const grownMs = Math.min(Duration.toMillis(max), Duration.toMillis(base) * 2 ** doublings)
  const ownMs = grownMs * (1 - jitter * random)
  const askedMs = Duration.toMillis(asked)
  return jitter === 1 ? askedMs + ownMs : Math.max(askedMs, ownMs)
}

export interface RetryBounds<E> {
  /** Calls in total, including the first, for failures of this kind. */
  readonly triesMax: (failure: E) => number
  /** How long the other side asks us to wait. */
  readonly asked?: (failure: E) => Duration.Duration
  /** Milliseconds since 1970: a wait that would end later is not begun. */
  readonly untilAt?: number | undefined
}

/** For `Effect.retry`, which fails with the last failure once the schedule is done. */
export const retrySchedule = <E>(
  policy: WaitPolicy,
  { triesMax, asked, untilAt = Infinity }: RetryBounds<E>,
): Schedule.Schedule<number, E> =>
  Schedule.fromStepWithMetadata(
    Effect.succeed(({ input, attempt, now }: Schedule.InputMetadata<E>) => {
      if (attempt >= triesMax(input)) return Cause.done(attempt)
      return Effect.flatMap(Random.next, (random) => {
        const wait = Math.round(waitMs(policy, attempt, random, asked?.(input)))
        return now + wait > untilAt
          ? Cause.done(attempt)
          : Effect.succeed<[number, Duration.Duration]>([attempt, Duration.millis(wait)])
      })
    }),
  )

export interface ScaledClockOptions {
  /** Seconds on this clock per second of the machine; more than 0. */
  readonly speed: number
  /** What the clock shows at first: milliseconds since the epoch. */
  readonly originMs: number
}

const nanosPerMilli = 1_000_000n

const clockOf = (nanos: () => bigint, monotonic: () => bigint, sleep: Clock.Clock["sleep"]): Clock.Clock => {
  const millis = () => Number(nanos() / nanosPerMilli)
  return {
    currentTimeMillisUnsafe: millis,
    currentTimeMillis: Effect.sync(millis),
    currentTimeNanosUnsafe: nanos,
    currentTimeNanos: Effect.sync(nanos),
    monotonicTimeNanosUnsafe: monotonic,
    monotonicTimeNanos: Effect.sync(monotonic),
    sleep,
  }
}

/** Builds the clock on top of another, the machine's own. */
const makeScaledClock = (machine: Clock.Clock, { speed, originMs }: ScaledClockOptions): Clock.Clock => {
  const startedAt = machine.monotonicTimeNanosUnsafe()
  const origin = BigInt(Math.floor(originMs)) * nanosPerMilli
  const monotonic = () => BigInt(Math.floor(Number(machine.monotonicTimeNanosUnsafe() - startedAt) * speed))
  return clockOf(
    () => origin + monotonic(),
    monotonic,
    (duration) => machine.sleep(Duration.millis(Duration.toMillis(duration) / speed)),
  )
}

export const ScaledClock = {
  layer: (options: ScaledClockOptions): Layer.Layer<never> =>
    Layer.effect(
      Clock.Clock,
      Clock.clockWith((machine) => Effect.sync(() => makeScaledClock(machine, options))),
    ),
}

// A Clock whose time never jumps: it reads the wall clock once and adds what the monotonic clock counted,
// whatever is done to the machine's time meanwhile. On Linux that clock stands still while the machine is
// suspended; how long the machine has been up counts on, and is not moved either if its time is set.

/** How often the uptime is read at most: it takes some microseconds. */
const uptimeEveryNanos = 100n * nanosPerMilli
/** Uptimes are rounded, and on some systems corrected a little when the clock is set. */
const suspendedMinMs = 5_000
/** No machine sleeps that long in a run: the uptime is of something else since, such as another host. */
const suspendedMaxMs = 3 * 24 * 60 * 60_000

/** For how long the machine has been suspended, if `knownMs` was known before: never less than that. */
export const suspendedMs = (knownMs: number, countedMs: number, upMs: number): number => {
  const missingMs = upMs - countedMs
  const isPlausible = missingMs - knownMs >= suspendedMinMs && missingMs <= suspendedMaxMs
  return isPlausible ? missingMs : knownMs
}

const make = (underlying: Clock.Clock, upSeconds: () => number): Clock.Clock => {
  const wallNanos = BigInt(Math.trunc(underlying.currentTimeMillisUnsafe())) * nanosPerMilli
  const origin = underlying.monotonicTimeNanosUnsafe()
  const upAtOrigin = upSeconds()
  let [knownMs, readAt] = [0, 0n]
  const nanos = () => {
    const counted = underlying.monotonicTimeNanosUnsafe() - origin
    if (counted - readAt >= uptimeEveryNanos) {
      readAt = counted
      knownMs = suspendedMs(knownMs, Number(counted / nanosPerMilli), (upSeconds() - upAtOrigin) * 1_000)
    }
    return wallNanos + counted + BigInt(Math.trunc(knownMs)) * nanosPerMilli
  }
  const monotonic = () => underlying.monotonicTimeNanosUnsafe()
  return clockOf(nanos, monotonic, (duration) => underlying.sleep(duration))
}

export const SteadyClock = {
  /** `upSeconds`: for how long the machine has been up, suspended or not. */
  layer: (upSeconds: () => number = uptime) =>
    Layer.effect(
      Clock.Clock,
      Effect.map(Clock.Clock, (underlying) => make(underlying, upSeconds)),
    ),
}

// The machine's own time, for work that the machine does: on the embedded service a run's clock may go
// hundreds of times as fast, but a database, a command or a thread takes as long as ever.

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

/** The last part of a time limit, as a share of it and at most. */
const lastShare = 1 / 10
const lastMax = Duration.seconds(1)

/**
 * Interrupts `work` after `duration`, for `orElse`. A process that was stopped, as in a virtual machine that
 * was paused, runs its timers before it reads what arrived meanwhile: the limit is two waits, and during the
 * second one that is read.
 */
export const limited = <B, E2, R2>(limit: {
  readonly duration: Duration.Duration
  readonly orElse: () => Effect.Effect<B, E2, R2>
}) => {
  const last = Duration.min(lastMax, Duration.times(limit.duration, lastShare))
  const over = Effect.sleep(Duration.subtract(limit.duration, last)).pipe(
    Effect.andThen(Effect.sleep(last)),
    Effect.andThen(Effect.suspend(limit.orElse)),
  )
  return <A, E, R>(work: Effect.Effect<A, E, R>): Effect.Effect<A | B, E | E2, R | R2> =>
    Effect.raceFirst(work, over)
}

/** Undefined if TZ names a zone that is not known here: Node.js then counts in UTC. */
export const knownZone = (): string | undefined => Intl.DateTimeFormat().resolvedOptions().timeZone

export const machineZone = (): string => knownZone() ?? "UTC"

// Entries that wait for their time, earliest first, and in order of arrival if times are equal: a binary
// heap, so that a hundred thousand tasks of an engine that is away cost no more than their logarithm.

interface Entry<A> {
  readonly value: A
  readonly at: number
  readonly order: number
}

const isBefore = <A>(one: Entry<A>, other: Entry<A>): boolean =>
  one.at < other.at || (one.at === other.at && one.order < other.order)

export class DelayQueue<A> {
  #heap: Array<Entry<A>> = []
  #order = 0

  get size(): number {
    return this.#heap.length
  }

  get nextAt(): number | undefined {
    return this.#heap[0]?.at
  }

  /** Everything that waits, in no order. */
  values(): ReadonlyArray<A> {
    return this.#heap.map(({ value }) => value)
  }

  add(value: A, at: number): void {
    this.#rise({ value, at, order: this.#order++ })
  }

  /** Takes the earliest value whose time has come. */
  takeDue(now: number): A | undefined {
    const first = this.#heap[0]
    if (first === undefined || first.at > now) return undefined
    const last = this.#heap.pop()
    if (last !== undefined && last !== first) this.#sink(last)
    return first.value
  }

  /** Removes every value that `matches`, earliest first. */
  remove(matches: (value: A) => boolean): ReadonlyArray<A> {
    const taken = this.#heap.filter(({ value }) => matches(value))
    if (taken.length === 0) return []
    const kept = this.#heap.filter(({ value }) => !matches(value))
    this.#heap = []
    for (const entry of kept) this.#rise(entry)
    return taken.toSorted((one, other) => (isBefore(one, other) ? -1 : 1)).map(({ value }) => value)
  }

  #rise(entry: Entry<A>): void {
    let at = this.#heap.push(entry) - 1
    while (at > 0) {
      const above = (at - 1) >>> 1
      const parent = this.#heap[above]
      if (parent === undefined || !isBefore(entry, parent)) break
      this.#heap[at] = parent
      at = above
    }
    this.#heap[at] = entry
  }

  /** Puts an entry in the place of the first one, then moves it down to where it belongs. */
  #sink(entry: Entry<A>): void {
    let at = 0
    for (;;) {
      const left = this.#heap[2 * at + 1]
      if (left === undefined) break
      const right = this.#heap[2 * at + 2]
      const child = right !== undefined && isBefore(right, left) ? right : left
      if (!isBefore(child, entry)) break
      this.#heap[at] = child
      at = child === left ? 2 * at + 1 : 2 * at + 2
    }
    this.#heap[at] = entry
  }
}
