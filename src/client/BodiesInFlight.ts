/**
 * One budget over the memory of all answers that a process is handling, so that many large ones at once
 * cannot take all of it. Small bodies are never kept waiting. A body that is larger than what is left waits,
 * unless it is the oldest that waits: that one may go beyond the budget, so that there is always one that
 * comes to its end, and never two that wait for each other.
 */
import { Context, Deferred, Effect } from "effect"
import type { Cause } from "effect"

/** Bytes of bodies, and of what is made of them, beside the one that may go beyond. */
export const inFlightBytesMax = 96 * 1024 * 1024
/** What a body may take before it is counted: most never do. */
export const uncountedBytes = 512 * 1024

/** What one task holds of the budget while it handles an answer. */
export interface Hold {
  /** Counts so many bytes more; waits until there is room for them. */
  readonly grow: (bytes: number) => Effect.Effect<void>
  readonly release: Effect.Effect<void>
  /** The bytes of the newest answer, for whoever has to keep them aside. */
  bytes: Uint8Array | undefined
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
  /** The one that may go beyond the budget. */
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
    // In the order in which they came; whoever does not fit keeps those behind it waiting.
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
      return { grow: (bytes: number) => grow(held, bytes), release: release(held), bytes: undefined }
    }),
  }
}

/** One for the whole process, unless somebody gives another. */
export const BodiesInFlight = Context.Reference<BodyBudget>("nightjar/client/BodiesInFlight", {
  defaultValue: () => makeBodyBudget(),
})

/** What the fiber handles now, if it said so; without it a body counts only until it was handed over. */
const CurrentHold = Context.Reference<Hold | undefined>("nightjar/client/CurrentHold", {
  defaultValue: () => undefined,
})

/** Counts every body that is read within `handling` until it ends; `rescue` gets the newest one's bytes. */
export const whileHandled = <A, E, R, E2 = E, R2 = never>(
  handling: Effect.Effect<A, E, R>,
  rescue: (cause: Cause.Cause<E>, bytes: Uint8Array | undefined) => Effect.Effect<A, E2, R2>,
): Effect.Effect<A, E2, R | R2> =>
  Effect.flatMap(BodiesInFlight, (budget) =>
    Effect.acquireUseRelease(
      budget.hold,
      (hold) =>
        Effect.catchCause(Effect.provideService(handling, CurrentHold, hold), (cause) =>
          rescue(cause, hold.bytes),
        ),
      (hold) => hold.release,
    ),
  )

/** Reads a body that counts as long as what handles it runs; for nobody, until it is read. */
export const whileHeld = <A, E, R>(read: (hold: Hold) => Effect.Effect<A, E, R>) =>
  Effect.flatMap(CurrentHold, (current) =>
    current === undefined
      ? Effect.flatMap(BodiesInFlight, (budget) =>
          Effect.acquireUseRelease(budget.hold, read, (hold) => hold.release),
        )
      : read(current),
  )
