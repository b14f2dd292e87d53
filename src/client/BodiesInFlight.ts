/**
 * One budget for the memory of all answers that a process is handling, so that many large ones together
 * cannot take all of it. Small bodies never wait. A body larger than what is left waits, unless it has waited
 * longest: that one may exceed the budget, so that one can always finish and no two wait for each other.
 */
import { Context, Deferred, Effect } from "effect"
import type { Cause } from "effect"

/** Bytes of bodies and of what is made from them, not counting the one that may exceed the budget. */
export const inFlightBytesMax = 96 * 1024 * 1024
/** What a body may take before it is counted: most never take more. */
export const uncountedBytes = 512 * 1024

/** The part of the budget that one task holds while it handles an answer. */
export interface Hold {
  /** Reserves this many more bytes; waits until there is room for them. */
  readonly grow: (bytes: number) => Effect.Effect<void>
  readonly release: Effect.Effect<void>
  /** For code that has to save what arrived last. */
  newest: NewestAnswer | undefined
}

export interface NewestAnswer {
  readonly http_status: number
  readonly bytes: Uint8Array
}

export interface BodyBudget {
  readonly hold: Effect.Effect<Hold>
}

interface Held {
  bytes: number
  counted: number
}

interface Waiting {
  readonly held: Held
  readonly bytes: number
  readonly turn: Deferred.Deferred<void>
}

export const makeBodyBudget = (bytesMax = inFlightBytesMax): BodyBudget => {
  let counted = 0
  /** The one that may exceed the budget. */
  let oldest: Held | undefined
  let waiting: ReadonlyArray<Waiting> = []
  const take = (held: Held, bytes: number): boolean => {
    const more = Math.max(0, held.bytes + bytes - uncountedBytes) - held.counted
    const fits = more <= 0 || counted + more <= bytesMax
    if (!fits && oldest !== undefined && oldest !== held) return false
    if (!fits) oldest = held
    held.bytes += bytes
    held.counted += Math.max(0, more)
    counted += Math.max(0, more)
    return true
  }
  const wake = () => {
    // In order of arrival; a body that does not fit holds up those behind it.
    while (waiting.length > 0 && take(waiting[0]!.held, waiting[0]!.bytes)) {
      Deferred.doneUnsafe(waiting[0]!.turn, Effect.void)
      waiting = waiting.slice(1)
    }
  }
  const grow = (held: Held, bytes: number) =>
    Effect.suspend(() => {
      const small = held.bytes + bytes <= uncountedBytes
      if ((small || waiting.length === 0 || oldest === held) && take(held, bytes)) return Effect.void
      const turn = Deferred.makeUnsafe<void>()
      const own: Waiting = { held, bytes, turn }
      waiting = [...waiting, own]
      return Effect.onInterrupt(Deferred.await(turn), () =>
        Effect.sync(() => {
          waiting = waiting.filter((one) => one !== own)
          wake()
        }),
      )
    })
  const release = (held: Held) =>
    Effect.sync(() => {
      counted -= held.counted
      held.bytes = 0
      held.counted = 0
      if (oldest === held) oldest = undefined
      wake()
    })
  return {
    hold: Effect.sync(() => {
      const held: Held = { bytes: 0, counted: 0 }
      return { grow: (bytes: number) => grow(held, bytes), release: release(held), newest: undefined }
    }),
  }
}

/** One for the whole process, unless another is provided. */
export const BodiesInFlight = Context.Reference<BodyBudget>("nightjar/client/BodiesInFlight", {
  defaultValue: () => makeBodyBudget(),
})

/** What the fiber is handling, if it has said so; otherwise a body counts only until it is handed over. */
const CurrentHold = Context.Reference<Hold | undefined>("nightjar/client/CurrentHold", {
  defaultValue: () => undefined,
})

/** Counts every body that is read within `handling` until that ends; `rescue` gets the newest one. */
export const whileHandled = <A, E, R, E2 = E, R2 = never>(
  handling: Effect.Effect<A, E, R>,
  rescue: (cause: Cause.Cause<E>, newest: NewestAnswer | undefined) => Effect.Effect<A, E2, R2>,
): Effect.Effect<A, E2, R | R2> =>
  Effect.flatMap(BodiesInFlight, (budget) =>
    Effect.acquireUseRelease(
      budget.hold,
      (hold) =>
        Effect.catchCause(Effect.provideService(handling, CurrentHold, hold), (cause) =>
          rescue(cause, hold.newest),
        ),
      (hold) => hold.release,
    ),
  )

/** Reads a body that counts for as long as its handler runs; without a handler, until it is read. */
export const whileHeld = <A, E, R>(read: (hold: Hold) => Effect.Effect<A, E, R>) =>
  Effect.flatMap(CurrentHold, (current) =>
    current === undefined
      ? Effect.flatMap(BodiesInFlight, (budget) =>
          Effect.acquireUseRelease(budget.hold, read, (hold) => hold.release),
        )
      : read(current),
  )
