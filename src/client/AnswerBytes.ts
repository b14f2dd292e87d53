/**
 * The bytes of one answer, limited in size, time and memory: a large answer that stalls or does not end is
 * aborted; one that is too large is cut and marked.
 */
import { Duration, Effect, Stream } from "effect"
import type { Headers, HttpClientResponse } from "effect/http"
import { secretCharactersMax } from "../service/TextBounds.ts"
import { uncountedBytes } from "./BodiesInFlight.ts"
import type { Hold } from "./BodiesInFlight.ts"
import { failedSize, failedTransport } from "./CallFailures.ts"
import type { CallFailure } from "./Service.ts"
import { AnswerLost } from "./Service.ts"

/** What a call requests, and how much of an answer it accepts. */
export type Call = {
  readonly name: string
  readonly hasEffect: boolean
  readonly bytesMax: number
  /** For an answer that may be large; a small one has the time limit of its request. */
  readonly large: LargeTime | undefined
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

export const readBytes = (
  call: Call,
  response: HttpClientResponse.HttpClientResponse,
  headers: Headers.Headers,
  grow: Hold["grow"],
): Effect.Effect<ReadBytes, CallFailure> => {
  const promised = Number(headers["content-length"] ?? "Infinity")
  // The usual case is fast: an answer with a small declared length can be read at once.
  if (promised <= Math.min(call.bytesMax, uncountedBytes)) {
    const read = Effect.mapBoth(response.arrayBuffer, {
      onFailure: (error) => failedTransport(call.name, error),
      onSuccess: (buffer) => ({ bytes: new Uint8Array(buffer), isCut: false }),
    })
    const total = call.large?.total
    return total === undefined
      ? read
      : Effect.timeoutOrElse(read, { duration: total, orElse: () => tooLong(call, response.status, total) })
  }
  const isPromised = promised <= call.bytesMax
  return Effect.suspend(() => {
    // An answer that declares itself too large is not read at all.
    const isTooLarge = !isPromised && Number.isFinite(promised)
    const filling = new Filling(
      isTooLarge ? Math.min(call.bytesMax, cleanedBytes) : call.bytesMax,
      isPromised ? promised : undefined,
    )
    const flow: Flow = { bytes: 0, isWaiting: false }
    const reading = Stream.runForEachWhile(chunksOf(call, response, flow), (chunk) => {
      flow.isWaiting = true
      // A body of undeclared length is in memory twice while it is assembled.
      return Effect.map(grow((isPromised ? 1 : 2) * chunk.byteLength), () => {
        flow.isWaiting = false
        return filling.take(chunk)
      })
    })
    return Effect.map(reading, () => filling.result())
  })
}

/** Collects chunks up to a limit; anything beyond it ends the reading. */
class Filling {
  readonly #bytesMax: number
  readonly #whole: Uint8Array | undefined
  #chunks: Array<Uint8Array> = []
  #filled = 0
  #isCut = false

  constructor(bytesMax: number, expected: number | undefined) {
    this.#bytesMax = expected ?? bytesMax
    this.#whole = expected === undefined ? undefined : new Uint8Array(expected)
  }

  /** False once no more is needed. */
  take(chunk: Uint8Array): boolean {
    const fitting = chunk.subarray(0, this.#bytesMax - this.#filled)
    if (this.#whole === undefined) this.#chunks.push(fitting)
    else this.#whole.set(fitting, this.#filled)
    this.#filled += fitting.byteLength
    this.#isCut = fitting.byteLength < chunk.byteLength
    return !this.#isCut
  }

  result(): ReadBytes {
    const kept = this.#isCut ? Math.min(this.#filled, cleanedBytes) : this.#filled
    const whole = this.#whole?.subarray(0, kept) ?? Buffer.concat(this.#chunks, kept)
    this.#chunks = []
    const bytes = this.#isCut ? whole.slice(0, cleanedBytes) : whole
    return { bytes: new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength), isCut: this.#isCut }
  }
}
