/**
 * The bytes of one answer, limited in size, time and memory: a large answer that stalls or does not end is
 * aborted; one that is too large is cut and marked.
 */
import { Context, Deferred, Duration, Effect, Stream, type Cause } from "effect"
import type { HttpClientResponse } from "effect/http"
import { failedSize, failedTransport } from "./CallFailures.ts"
import { AnswerLost, type CallFailure } from "./Service.ts"
import { harmlessBytes, secretCharactersMax } from "../service/BodyBounds.ts"

// One budget for the memory of all answers that a process handles. Small bodies never wait; a larger one
// waits, but the longest-waiting one may exceed the budget, so that one can always finish.

/** Bytes of bodies and of what is made from them, not counting the one that may exceed the budget. */
const inFlightBytesMax = 96 * 1024 * 1024
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

interface Held {
  bytes: number
  counted: number
}

interface Waiting {
  readonly held: Held
  readonly bytes: number
  readonly turn: Deferred.Deferred<void>
}

/** Each run of it is the part of one more task. */
export const makeBodyBudget = (bytesMax = inFlightBytesMax): Effect.Effect<Hold> => {
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
  return Effect.sync(() => {
    const held: Held = { bytes: 0, counted: 0 }
    return { grow: (bytes: number) => grow(held, bytes), release: release(held), newest: undefined }
  })
}

/** One for the whole process, unless another is provided. */
export const BodiesInFlight = Context.Reference<Effect.Effect<Hold>>("nightjar/client/BodiesInFlight", {
  defaultValue: () => makeBodyBudget(),
})

/** What the fiber is handling, if it has said so; otherwise a body counts only until it is handed over. */
export const CurrentHold = Context.Reference<Hold | undefined>("nightjar/client/CurrentHold", {
  defaultValue: () => undefined,
})

const withHold = <A, E, R>(use: (hold: Hold) => Effect.Effect<A, E, R>) =>
  Effect.flatMap(BodiesInFlight, (budget) => Effect.acquireUseRelease(budget, use, ({ release }) => release))

/** Counts every body that is read within `handling` until that ends; `rescue` gets the newest one. */
export const whileHandled = <A, E, R, E2 = E, R2 = never>(
  handling: Effect.Effect<A, E, R>,
  rescue: (cause: Cause.Cause<E>, newest: NewestAnswer | undefined) => Effect.Effect<A, E2, R2>,
): Effect.Effect<A, E2, R | R2> =>
  withHold((hold) =>
    Effect.catchCause(Effect.provideService(handling, CurrentHold, hold), (cause) =>
      rescue(cause, hold.newest),
    ),
  )

/** Reads a body that counts for as long as its handler runs; without a handler, until it is read. */
export const whileHeld = <A, E, R>(read: (hold: Hold) => Effect.Effect<A, E, R>) =>
  Effect.flatMap(CurrentHold, (current) => (current === undefined ? withHold(read) : read(current)))

/** How much of an answer is accepted, and how long it may take. */
export interface AnswerLimits {
  readonly bytesMax: number
  /** From sending to the last byte; for attachments, to the first byte. */
  readonly timeout: Duration.Input
  /** For an answer that may be large. */
  readonly large: LargeTime | undefined
}

export interface Call extends AnswerLimits {
  readonly name: string
  readonly hasEffect: boolean
}

/** How long a large answer may take after its headers. */
interface LargeTime {
  readonly total: Duration.Input
  readonly window: Duration.Input
  readonly windowBytesMin: number
}

export const told = (duration: Duration.Input): string => Duration.format(Duration.fromInputUnsafe(duration))

const lostIn = (call: Call, http_status: number, why: string) =>
  new AnswerLost({ message: `${call.name}: ${why}`, http_status })

/** How much of an answer has arrived, and whether the rest waits for memory, not for the network. */
interface Flow {
  bytes: number
  isWaiting: boolean
}

/** Fails once a large answer has become too slow or taken too long. */
const watchTime = (
  call: Call,
  { total, window, windowBytesMin }: LargeTime,
  http_status: number,
  flow: Flow,
) => {
  const slow = `the answer stalled: less than ${windowBytesMin} bytes in ${told(window)}`
  const watch = Effect.gen(function* () {
    for (let before = 0; ; before = flow.bytes) {
      yield* Effect.sleep(window)
      if (!flow.isWaiting && flow.bytes - before < windowBytesMin)
        return yield* lostIn(call, http_status, slow)
    }
  })
  return Effect.timeoutOrElse(watch, { duration: total, orElse: () => tooLong(call, http_status, total) })
}

const tooLong = (call: Call, http_status: number, total: Duration.Input) =>
  Effect.fail(lostIn(call, http_status, `the answer did not end within ${told(total)}`))

/** The chunks of an answer, counted; a large answer is watched. */
const chunksOf = (call: Call, response: HttpClientResponse.HttpClientResponse, flow: Flow) => {
  const chunks = Stream.mapError(response.stream, (error) => failedTransport(call.name, error)).pipe(
    Stream.map((chunk) => {
      flow.bytes += chunk.byteLength
      return chunk
    }),
  )
  return call.large === undefined
    ? chunks
    : Stream.interruptWhen(chunks, watchTime(call, call.large, response.status, flow))
}

export const bounded = (call: Call, response: HttpClientResponse.HttpClientResponse) =>
  Stream.suspend(() => {
    const flow: Flow = { bytes: 0, isWaiting: false }
    return Stream.mapEffect(chunksOf(call, response, flow), (chunk) =>
      flow.bytes > call.bytesMax
        ? Effect.fail(failedSize(call.name, call.hasEffect, response.status, call.bytesMax))
        : Effect.succeed(chunk),
    )
  })

/** How much of a too large answer is kept for inspection. */
export const keptBytes = 1024 * 1024
/** Cleaning may need more than that, so that no part of a secret is left at the cut. */
export const cleanedBytes = keptBytes + 4 * secretCharactersMax

/** The bytes of an answer, or its beginning if it exceeds the call's limit. */
interface ReadBytes {
  readonly bytes: Uint8Array
  readonly isCut: boolean
}

/** What an answer says that its body has; Infinity if it says nothing. */
const promisedBytes = ({ headers, request, status }: HttpClientResponse.HttpClientResponse): number =>
  request.method === "HEAD" || status === 204 || status === 304
    ? 0
    : Number(headers["content-length"] ?? "Infinity")

/** Whether a body is so small that neither its bytes nor its value have to be counted. */
export const isHarmless = (call: Call, response: HttpClientResponse.HttpClientResponse): boolean =>
  promisedBytes(response) <= Math.min(call.bytesMax, harmlessBytes)

/** All of a body that says that it is small: less than a large one brings in one window, and no longer. */
export const readSmall = (
  call: Call,
  response: HttpClientResponse.HttpClientResponse,
): Effect.Effect<Uint8Array, CallFailure> => {
  const read = Effect.mapBoth(response.arrayBuffer, {
    onFailure: (error) => failedTransport(call.name, error),
    onSuccess: (buffer) => new Uint8Array(buffer),
  })
  if (call.large === undefined) return read
  return Effect.raceFirst(read, watchTime(call, call.large, response.status, { bytes: 0, isWaiting: false }))
}

export const readBytes = (
  call: Call,
  response: HttpClientResponse.HttpClientResponse,
  grow: Hold["grow"],
): Effect.Effect<ReadBytes, CallFailure> => {
  const promised = promisedBytes(response)
  // The usual case is fast: an answer with a small declared length can be read at once.
  if (promised <= Math.min(call.bytesMax, call.large?.windowBytesMin ?? uncountedBytes))
    return Effect.map(readSmall(call, response), (bytes) => ({ bytes, isCut: false }))
  const isPromised = promised <= call.bytesMax
  return Effect.suspend(() => {
    // Of an answer that declares itself too large, only the part that is kept is read.
    const isTooLarge = !isPromised && Number.isFinite(promised)
    const readMax = isTooLarge ? Math.min(call.bytesMax, cleanedBytes) : call.bytesMax
    const bytesMax = isPromised ? promised : readMax
    const whole = isPromised ? new Uint8Array(promised) : undefined
    const chunks: Array<Uint8Array> = []
    let filled = 0
    let isCut = false
    const flow: Flow = { bytes: 0, isWaiting: false }
    const reading = Stream.runForEachWhile(chunksOf(call, response, flow), (chunk) => {
      flow.isWaiting = true
      // A body of undeclared length is in memory twice while it is assembled.
      return Effect.map(grow((isPromised ? 1 : 2) * chunk.byteLength), () => {
        flow.isWaiting = false
        const fitting = chunk.subarray(0, bytesMax - filled)
        if (whole === undefined) chunks.push(fitting)
        else whole.set(fitting, filled)
        filled += fitting.byteLength
        isCut = fitting.byteLength < chunk.byteLength
        return !isCut
      })
    })
    return Effect.map(reading, () => {
      const kept = isCut ? Math.min(filled, cleanedBytes) : filled
      const { buffer, byteOffset } = whole ?? Buffer.concat(chunks, kept)
      const bytes = new Uint8Array(buffer, byteOffset, kept)
      // In memory of its own, so that the rest of the answer is not kept with it.
      return { bytes: isCut ? bytes.slice() : bytes, isCut }
    })
  })
}
