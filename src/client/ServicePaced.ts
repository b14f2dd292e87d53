/**
 * A considerate client: all calls of a run to one host share a limit on concurrent requests and a pace, and
 * every Retry-After holds back the calls it applies to (`Pacing.ts`). Wraps any `Service`; it never repeats
 * a call, it only makes calls wait, and not for long: if a call may be made only much later, it fails at
 * once, without a request.
 */
import { Cause, Clock, Context, Duration, Effect, Layer, Predicate, Random, Record, Semaphore } from "effect"
import {
  closureOf,
  noteAnswered,
  noteComplaint,
  noteRetryAfter,
  noteSent,
  openPace,
  rateOf,
} from "./Pacing.ts"
import type { Asked, Closure, Pace } from "./Pacing.ts"
import { EngineOfCalls, NotSent, Service, Throttled, everyCall } from "./Service.ts"
import type { CallFailure, ServiceAddresses, Tagged } from "./Service.ts"

/** Concurrent requests to one host, from sending to the last byte (an attachment's body is not counted). */
export const requestsAtOnceMax = 64
/** Calls that waited for the same moment are spread over up to this time. */
export const spreadMaxMs = 5_000
/** A call waits this long for the end of a Retry-After; if more is left, it fails as throttled, unsent. */
const closedWaitMaxMs = 60_000

interface Lane {
  pace: Pace
  readonly permits: Semaphore.Semaphore
  /** Held by the call that is the next to be sent: the others wait for it, not for times that may change. */
  readonly turn: Semaphore.Semaphore
  /** Calls that wait to enter: nobody passes them. */
  waiting: number
}

export class ServicePause extends Context.Service<
  ServicePause,
  {
    /** Runs a call when its turn comes, and learns from the answer. */
    readonly call: <A, R, E extends Tagged = never>(
      asked: Asked,
      call: Effect.Effect<A, CallFailure | E, R>,
    ) => Effect.Effect<A, CallFailure | E, R>
  }
>()("nightjar/client/ServicePause") {
  static readonly layer = (options: { readonly requestsAtOnce?: number } = {}): Layer.Layer<ServicePause> =>
    Layer.sync(ServicePause, () => makePause(options.requestsAtOnce ?? requestsAtOnceMax))
}

/** A clock that never goes back: a wall clock set back by a day would close a lane for a day. */
const monotonicMs = Effect.map(Clock.monotonicTimeNanos, (nanos) => Number(nanos / 1_000n) / 1_000)

/** Waits until the lane may send its next request; answers may change when that is. Begins the request. */
const awaitTurn = Effect.fnUntraced(function* (lane: Lane) {
  for (;;) {
    const nowMs = yield* monotonicMs
    if (lane.pace.nextMs <= nowMs) return void (lane.pace = noteSent(lane.pace, nowMs))
    // Timers count whole milliseconds; the lane makes up for what is lost by that.
    yield* Effect.sleep(Math.ceil(lane.pace.nextMs - nowMs))
  }
})

/** Slots of a paced lane are already spread out; an unpaced lane would let all calls go at once. */
const spreadMs = (pace: Pace): number =>
  rateOf(pace) === Infinity ? spreadMaxMs : Math.min(spreadMaxMs, 1000 / rateOf(pace))

const notYet = ({ endpoint }: Asked, { http_status, closedUntilMs }: Closure, nowMs: number) => {
  const retry_after = Duration.millis(Math.ceil(closedUntilMs - nowMs))
  const left = Duration.format(Duration.seconds(Math.ceil(Duration.toSeconds(retry_after))))
  const message = `${endpoint}: not sent: the service asked to wait ${left} (${http_status})`
  return new Throttled({ http_status, retry_after, message })
}

const stopped = new NotSent({ message: "stopped while the call was waiting for its turn; nothing was sent" })

/** A call interrupted while it waits has sent nothing; a start, which must not be cut off, reports this. */
const interruptibly = <A, E>(wait: Effect.Effect<A, E>): Effect.Effect<A, E | NotSent> =>
  Effect.catchCause(Effect.interruptible(wait), (cause): Effect.Effect<never, E | NotSent> =>
    Cause.hasInterruptsOnly(cause) ? Effect.fail(stopped) : Effect.failCause(cause),
  )

const askedMsOf = (answer: object): number =>
  "retry_after" in answer && Duration.isDuration(answer.retry_after)
    ? Duration.toMillis(answer.retry_after)
    : 0

/** What an answer says about the pace of the host, and about when to make this call again. */
const learnAnswer = (asked: Asked, lane: Lane, sentMs: number, answer: unknown) =>
  Effect.map(monotonicMs, (nowMs) => {
    // An engine that is unavailable (503) says nothing about the host; it may name a wait.
    lane.pace = Predicate.isTagged(answer, "EngineUnavailable")
      ? noteRetryAfter(lane.pace, asked, nowMs, { http_status: 503, askedMs: askedMsOf(answer) })
      : noteAnswered(lane.pace, asked, sentMs, nowMs)
  })

const learnFailure = Effect.fnUntraced(function* (asked: Asked, lane: Lane, sentMs: number, failure: Tagged) {
  if (!(failure instanceof Throttled)) return
  const { http_status } = failure
  const engine = yield* EngineOfCalls
  const nowMs = yield* monotonicMs
  const complaint = { http_status, asked, engine, sentMs, nowMs, askedMs: askedMsOf(failure) }
  lane.pace = noteRetryAfter(lane.pace, asked, nowMs, complaint)
  // A 504 is the lock of one flow session (4.10), and flow results have a limit per session (section 8):
  // neither says anything about the host.
  if (http_status === 504 || asked.at === "flows_url") return
  lane.pace = noteComplaint(lane.pace, complaint)
})

/** The usual case, in which no call waits for its turn. */
const isFree = ({ pace, waiting }: Lane, nowMs: number): boolean =>
  waiting === 0 && pace.mode._tag === "Unpaced" && pace.nextMs <= nowMs

const counted = <A, E>(lane: Lane, wait: Effect.Effect<A, E>): Effect.Effect<A, E> =>
  Effect.suspend(() => {
    lane.waiting += 1
    return Effect.ensuring(
      wait,
      Effect.sync(() => void (lane.waiting -= 1)),
    )
  })

const makePause = (requestsAtOnce: number) => {
  const lanes = new Map<string, Lane>()
  const laneOf = (host: string): Lane => {
    const known = lanes.get(host)
    if (known !== undefined) return known
    const [permits, turn] = [Semaphore.makeUnsafe(requestsAtOnce), Semaphore.makeUnsafe(1)]
    const lane = { pace: openPace, permits, turn, waiting: 0 }
    lanes.set(host, lane)
    return lane
  }
  /** Without a permit: a call that waits for one session must not block others. */
  const awaitOpen = Effect.fnUntraced(function* (asked: Asked, lane: Lane) {
    for (;;) {
      const nowMs = yield* monotonicMs
      const closure = closureOf(lane.pace, asked, nowMs)
      if (closure === undefined) return
      const leftMs = closure.closedUntilMs - nowMs
      if (leftMs > closedWaitMaxMs) return yield* notYet(asked, closure, nowMs)
      yield* Effect.sleep(leftMs + (yield* Random.next) * spreadMs(lane.pace))
    }
  })
  const queue = Effect.fnUntraced(function* (asked: Asked, lane: Lane) {
    for (;;) {
      yield* interruptibly(awaitOpen(asked, lane))
      yield* interruptibly(lane.permits.take(1))
      yield* Effect.onError(interruptibly(lane.turn.withPermit(awaitTurn(lane))), () =>
        lane.permits.release(1),
      )
      if (closureOf(lane.pace, asked, yield* monotonicMs) === undefined) return
      yield* lane.permits.release(1)
    }
  })
  /** Holds a permit on return. Only the waits can be interrupted, so that no permit is lost. */
  const enter = (asked: Asked, lane: Lane) =>
    Effect.flatMap(monotonicMs, (nowMs) =>
      isFree(lane, nowMs) && closureOf(lane.pace, asked, nowMs) === undefined
        ? Effect.flatMap(lane.permits.takeIfAvailable(1), (isTaken) => {
            if (!isTaken) return counted(lane, queue(asked, lane))
            lane.pace = noteSent(lane.pace, nowMs)
            return Effect.void
          })
        : counted(lane, queue(asked, lane)),
    )
  return ServicePause.of({
    call: <A, R, E extends Tagged = never>(asked: Asked, call: Effect.Effect<A, CallFailure | E, R>) => {
      const lane = laneOf(asked.host)
      const paced = Effect.flatMap(monotonicMs, (sentMs) =>
        call.pipe(
          Effect.tap((answer) => learnAnswer(asked, lane, sentMs, answer)),
          Effect.tapError((failure) => learnFailure(asked, lane, sentMs, failure)),
        ),
      )
      return Effect.uninterruptibleMask((restore): Effect.Effect<A, CallFailure | E, R> =>
        Effect.andThen(enter(asked, lane), Effect.ensuring(restore(paced), lane.permits.release(1))),
      )
    },
  })
}

const hostOf = (address: string): string => (URL.canParse(address) ? new URL(address).host : address)

const make = Effect.fnUntraced(function* (addresses: ServiceAddresses) {
  const pause = yield* ServicePause
  const hosts = Record.map(addresses, hostOf)
  return everyCall(yield* Service, (call, about) =>
    pause.call({ host: hosts[about.at ?? "base_url"], ...about }, call),
  )
})

export const ServicePaced = {
  /** URLs on one host share a lane; the others are paced separately. */
  layer: (addresses: ServiceAddresses): Layer.Layer<Service, never, Service | ServicePause> =>
    Layer.effect(Service, make(addresses)),
}
