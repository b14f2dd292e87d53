/**
 * Delivers webhooks (sections 4.1 and 6): the only part of the embedded service that runs by itself. It
 * sleeps until the next delivery is due or something happens, sends a limited number at once and one at a
 * time per execution, and records the result of each. It works on whatever Clock and HttpClient it is given.
 */
import { Clock, Duration, Effect, Latch, Layer, Option, Stream, Tracer } from "effect"
import { HttpClient, HttpClientRequest, type HttpClientError, type HttpClientResponse } from "effect/http"
import { codeOf } from "../../base/DurableFile.ts"
import { DelayQueue } from "../../base/Time.ts"
import type { Answer, Delivery, Outbox } from "../hooks/Outbox.ts"
import { Sandbox } from "./Sandbox.ts"

const atOnceMax = 16
/** An answer counts by its status, once it came whole or this much of its body did. */
const answerBytesMax = 65_536

/** Codes of a connection that was never established: nothing was sent. */
const neverConnected: ReadonlySet<string> = new Set(
  "ECONNREFUSED ENOTFOUND EAI_AGAIN EHOSTUNREACH ENETUNREACH UND_ERR_CONNECT_TIMEOUT".split(" "),
)

/** Own choice: an answer that was cut or never came leaves open whether the event arrived. */
const answerOfFailure = ({ reason }: HttpClientError.HttpClientError): Answer =>
  reason._tag === "TransportError" && !neverConnected.has(codeOf(reason.cause)) ? "unclear" : "refused"

/** Redirects are not followed: the event is for the target alone. */
const answerOfStatus = (status: number): Answer => (status >= 200 && status < 300 ? "taken" : "refused")

/** Whether it came whole, as far as it is read. */
const drain = (response: HttpClientResponse.HttpClientResponse) => {
  let left = answerBytesMax
  return response.stream.pipe(
    Stream.takeWhile((bytes) => (left -= bytes.length) > 0),
    Stream.runDrain,
    Effect.isSuccess,
  )
}

const sendHook = Effect.fnUntraced(
  function* (client: HttpClient.HttpClient, hook: ReturnType<Outbox["requestOf"]>, within: Duration.Input) {
    const { url, headers, body } = hook
    const request = HttpClientRequest.post(url, { headers }).pipe(HttpClientRequest.bodyJsonUnsafe(body))
    const response = yield* Effect.timeoutOption(client.execute(request), within)
    if (Option.isNone(response)) return "unclear"
    const isWhole = yield* Effect.timeoutOption(drain(response.value), within)
    const answer = answerOfStatus(response.value.status)
    return answer === "taken" && !Option.contains(isWhole, true) ? "unclear" : answer
  },
  Effect.catch((failure) => Effect.succeed(answerOfFailure(failure))),
  // A target gets no tracing headers of this process.
  Effect.provideService(Tracer.DisablePropagation, true),
)

/** Which executions and sessions are due when, updated by what happens to them. */
class Agenda {
  /** The queue may also hold times that no longer count. */
  readonly queue = new DelayQueue<string>()
  readonly due = new Map<string, number>()
  /** Those for which something is being sent right now. */
  readonly busy = new Set<string>()
  readonly woken = Latch.makeUnsafe(false)
  /** Until when the dispatcher sleeps: only something earlier needs to wake it. */
  sleepsUntil = Number.NEGATIVE_INFINITY
  readonly outbox: Outbox
  constructor(outbox: Outbox) {
    this.outbox = outbox
  }

  look(subject: string): void {
    if (this.busy.has(subject)) return
    const at = this.outbox.next(subject)?.dueAt
    if (at === undefined) return void this.due.delete(subject)
    if (this.due.get(subject) !== at) this.queue.add(subject, at)
    this.due.set(subject, at)
    if (at < this.sleepsUntil) this.woken.openUnsafe()
  }

  lookAtAll(): void {
    for (const subject of this.outbox.subjects()) this.look(subject)
  }

  /** The next delivery whose time has come; its subject is busy from then on. */
  take(now: number): Delivery | undefined {
    for (;;) {
      const subject = this.queue.takeDue(now)
      if (subject === undefined) return undefined
      if ((this.due.get(subject) ?? Number.POSITIVE_INFINITY) > now) continue
      this.due.delete(subject)
      const delivery = this.outbox.next(subject)
      if (delivery !== undefined && delivery.dueAt <= now) {
        this.busy.add(subject)
        return delivery
      }
      this.look(subject)
    }
  }

  /** If all workers are busy, only one of them wakes the dispatcher; if nothing is due, only news. */
  wakesAt(): number {
    if (this.busy.size >= atOnceMax) return Number.NEGATIVE_INFINITY
    return this.queue.nextAt ?? Number.POSITIVE_INFINITY
  }

  leave(subject: string): void {
    this.busy.delete(subject)
    this.look(subject)
    this.woken.openUnsafe()
  }
}

const dispatch = Effect.fnUntraced(function* (within: Duration.Input) {
  const { outbox } = yield* Sandbox
  const client = yield* HttpClient.HttpClient
  const agenda = new Agenda(outbox)
  const unwatch = outbox.watch((subjects) =>
    subjects === undefined ? agenda.lookAtAll() : subjects.forEach((subject) => agenda.look(subject)),
  )
  yield* Effect.addFinalizer(() => Effect.sync(unwatch))
  agenda.lookAtAll()

  // If the journal cannot be written, its execution stays busy: better silent than sending forever.
  const deliver = Effect.fnUntraced(function* (delivery: Delivery) {
    const answer = yield* sendHook(client, outbox.requestOf(delivery), within)
    outbox.settle(delivery, yield* Clock.currentTimeMillis, answer)
    agenda.leave(delivery.subject.id)
  })
  const turn = Effect.gen(function* () {
    agenda.woken.closeUnsafe()
    agenda.sleepsUntil = Number.POSITIVE_INFINITY
    const now = yield* Clock.currentTimeMillis
    while (agenda.busy.size < atOnceMax) {
      const delivery = agenda.take(now)
      if (delivery === undefined) break
      yield* Effect.forkChild(deliver(delivery))
    }
    agenda.sleepsUntil = agenda.wakesAt()
    yield* Number.isFinite(agenda.sleepsUntil)
      ? Effect.raceFirst(agenda.woken.await, Effect.sleep(Math.max(0, agenda.sleepsUntil - now)))
      : agenda.woken.await
  })
  yield* Effect.forkScoped(Effect.forever(turn))
})

/**
 * Needs the service and a client; use one that limits its connections and follows no redirect. A target has
 * to answer within `answerWithin`, on the service's clock.
 */
export const HookDispatcher = {
  layer: ({ answerWithin = Duration.seconds(10) }: { readonly answerWithin?: Duration.Input } = {}) =>
    Layer.effectDiscard(dispatch(answerWithin)),
}
