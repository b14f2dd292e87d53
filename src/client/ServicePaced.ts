/**
 * The service with manners: all calls of a night to one host share a bound on requests at once, a pace, and
 * every Retry-After. A wrapper over any `Service`; it never repeats a call (`Backoff.ts` does), it only lets
 * calls wait.
 */
import { Clock, Context, Effect, Layer, Random, Semaphore } from "effect"
import { noteClosed, noteSent, noteThrottled, openPace, takeSlot } from "./Pacing.ts"
import type { Pace } from "./Pacing.ts"
import type { CallFailure, Tagged } from "./Service.ts"
import { Service, Throttled } from "./Service.ts"
import type { ServiceAddresses } from "./ServiceSettings.ts"

/** Requests at once to one host, from sending to the last byte (an attachment's body is not counted). */
export const requestsAtOnceMax = 64
/** Calls that waited for the same moment go apart by up to this. */
export const spreadMaxMs = 5_000

/**
 * Whom a 429 is about. Flow results are limited per session (section 8), so theirs close the host as long as
 * they ask for, but do not make all other calls slower afterwards.
 */
export type Limit = "host" | "session"

interface Lane {
  pace: Pace
  readonly permits: Semaphore.Semaphore
}

/** What all calls of a night know about how a host wants to be asked. */
export class ServicePause extends Context.Service<
  ServicePause,
  {
    /** Runs a call to a host when its turn has come, and learns from the answer. */
    readonly call: <A, R, E extends Tagged = never>(
      host: string,
      call: Effect.Effect<A, CallFailure | E, R>,
      limit?: Limit,
    ) => Effect.Effect<A, CallFailure | E, R>
    /** How long calls to a host still wait for a Retry-After, in milliseconds. */
    readonly closedForMs: (host: string) => Effect.Effect<number>
  }
>()("nightjar/client/ServicePause") {
  static readonly layer = (options: { readonly requestsAtOnce?: number } = {}): Layer.Layer<ServicePause> =>
    Layer.sync(ServicePause, () => makePause(options.requestsAtOnce ?? requestsAtOnceMax))
}

/** A clock that only goes forward: a wall clock set back by a day would close a lane for a day. */
const monotonicMs = Effect.map(Clock.monotonicTimeNanos, (nanos) => Number(nanos / 1_000n) / 1_000)

/** Waits for a slot of the lane; when the host complains meanwhile, for one at the new pace. */
const awaitTurn = Effect.fnUntraced(function* (lane: Lane) {
  for (;;) {
    const nowMs = yield* monotonicMs
    const [slotMs, pace] = takeSlot(lane.pace, nowMs)
    lane.pace = pace
    if (slotMs > nowMs) {
      // Slots of a paced lane are apart already; an unpaced one would let everybody go at once.
      const spreadMs =
        pace.rate === Number.POSITIVE_INFINITY ? spreadMaxMs : Math.min(spreadMaxMs, 1000 / pace.rate)
      const isClosed = pace.closedUntilMs > nowMs
      yield* Effect.sleep(slotMs - nowMs + (isClosed ? (yield* Random.next) * spreadMs : 0))
    }
    if (lane.pace.cutMs !== pace.cutMs || lane.pace.closedUntilMs !== pace.closedUntilMs) continue
    const sentMs = yield* monotonicMs
    lane.pace = noteSent(lane.pace, sentMs)
    return sentMs
  }
})

const makePause = (requestsAtOnce: number) => {
  const lanes = new Map<string, Lane>()
  const laneOf = (host: string): Lane => {
    const known = lanes.get(host)
    if (known !== undefined) return known
    const lane = { pace: openPace, permits: Semaphore.makeUnsafe(requestsAtOnce) }
    lanes.set(host, lane)
    return lane
  }
  const paced = Effect.fnUntraced(function* <A, R, E extends Tagged>(
    lane: Lane,
    call: Effect.Effect<A, CallFailure | E, R>,
    limit: Limit,
  ) {
    const sentMs = yield* awaitTurn(lane)
    return yield* Effect.tapError(call, (failure) => {
      // A 504 is the lock of one flow session (4.10); it says nothing about the host.
      if (!(failure instanceof Throttled) || failure.http_status === 504) return Effect.void
      return Effect.map(monotonicMs, (nowMs) => {
        lane.pace =
          limit === "host"
            ? noteThrottled(lane.pace, sentMs, nowMs, failure.retry_after_ms)
            : noteClosed(lane.pace, nowMs, failure.retry_after_ms ?? 0)
      })
    })
  })
  return ServicePause.of({
    call: (host, call, limit = "host") => {
      const lane = laneOf(host)
      return lane.permits.withPermit(paced(lane, call, limit))
    },
    closedForMs: (host) =>
      Effect.map(monotonicMs, (nowMs) => Math.max(0, (lanes.get(host)?.pace.closedUntilMs ?? 0) - nowMs)),
  })
}

const hostOf = (address: string): string => (URL.canParse(address) ? new URL(address).host : address)

const make = (addresses: ServiceAddresses) =>
  Effect.gen(function* () {
    const inner = yield* Service
    const pause = yield* ServicePause
    const execution = hostOf(addresses.base_url)
    const flows = hostOf(addresses.flows_url)
    const attachments = hostOf(addresses.attachments_url)
    return Service.of({
      startExecution: (call, leaving) => pause.call(execution, inner.startExecution(call, leaving)),
      readExecution: (execution_id) => pause.call(execution, inner.readExecution(execution_id)),
      pollExecution: (execution_id) => pause.call(execution, inner.pollExecution(execution_id)),
      abortExecution: (execution_id) => pause.call(execution, inner.abortExecution(execution_id)),
      deleteExecution: (execution_id) => pause.call(execution, inner.deleteExecution(execution_id)),
      readResults: (source, ids) =>
        source.api === "flows_url"
          ? pause.call(flows, inner.readResults(source, ids), "session")
          : pause.call(execution, inner.readResults(source, ids)),
      downloadAttachment: (session_id, attachment_id) =>
        pause.call(attachments, inner.downloadAttachment(session_id, attachment_id)),
      exchangeTicket: (execution_id, ticket) =>
        pause.call(execution, inner.exchangeTicket(execution_id, ticket)),
      revokeToken: (token_id) => pause.call(execution, inner.revokeToken(token_id)),
      listEngines: pause.call(execution, inner.listEngines),
      showEngine: (engine_reference) => pause.call(execution, inner.showEngine(engine_reference)),
    })
  })

export const ServicePaced = {
  /** Addresses on one host share one lane; the others are paced apart. */
  layer: (addresses: ServiceAddresses): Layer.Layer<Service, never, Service | ServicePause> =>
    Layer.effect(Service, make(addresses)),
}
