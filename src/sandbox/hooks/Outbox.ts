/**
 * What is to be delivered, as the dispatcher sees it: it asks for the next delivery of an execution or a
 * flow session, is notified when that may have changed, and reports the result of each attempt. Without a
 * rule nothing is ever due.
 */
import { findSubject } from "./HookSubject.ts"
import { decideAttempt, deliveryId, planDeliveries, targetOf } from "./PlanDeliveries.ts"
import type { Answer, Delivery } from "./PlanDeliveries.ts"
import { recordEvents } from "../core/SandboxCore.ts"
import type { SandboxCore } from "../core/SandboxCore.ts"
import type { SandboxEvent } from "../state/SandboxEvent.ts"

/** A delivery as it is sent. */
export interface HookRequest {
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: unknown
}

export interface Outbox {
  /** Every execution and session that may have something to deliver. */
  readonly subjects: () => Iterable<string>
  /** Its earliest delivery, due now or later. */
  readonly next: (subject: string) => Delivery | undefined
  readonly requestOf: (delivery: Delivery) => HookRequest
  readonly settle: (delivery: Delivery, at: number, answer: Answer) => void
  /** Calls back with the subject of a change, or with nothing when a rule changed; returns how to stop. */
  readonly watch: (listener: (subjects: ReadonlyArray<string> | undefined) => void) => () => void
}

const idsIn = (event: SandboxEvent): ReadonlyArray<string> => [
  ...("execution_id" in event && event.execution_id !== undefined ? [event.execution_id] : []),
  ...("session_id" in event && event.session_id !== undefined ? [event.session_id] : []),
  // A standing flow session is found, not created.
  ...("created" in event ? [event.created.session_id] : []),
]

const isRuleEvent = ({ _tag }: SandboxEvent): boolean => _tag === "HookBound" || _tag === "HookUnbound"

/** Own choice: how the receiver can recognise duplicates and attempts. The body is the event, as JSON. */
const headersOf = (core: SandboxCore, delivery: Delivery) => ({
  "user-agent": "nightjar-sandbox",
  "x-nightjar-event": delivery.occasion.event,
  "x-nightjar-delivery": deliveryId(core.seed, delivery),
  "x-nightjar-attempt": String(delivery.attempt),
})

export const outboxOf = (core: SandboxCore): Outbox => ({
  subjects: function* () {
    yield* core.state.executions.keys()
    yield* core.state.flows.sessions.keys()
  },
  next: (id) => {
    if (core.state.hooks.rules.size === 0) return undefined
    const subject = findSubject(core.state, core.seed, id)
    return subject === undefined ? undefined : planDeliveries(core.state.hooks, core.seed, subject)[0]
  },
  requestOf: (delivery) => ({
    url: targetOf(delivery),
    headers: headersOf(core, delivery),
    body: delivery.occasion.body(),
  }),
  settle: (delivery, at, answer) => recordEvents(core, [decideAttempt(core.seed, delivery, at, answer)]),
  watch: (listener) => {
    const heard = (events: ReadonlyArray<SandboxEvent>) => {
      if (events.some(isRuleEvent)) listener(undefined)
      else if (core.state.hooks.rules.size > 0) listener(events.flatMap(idsIn))
    }
    core.listeners.add(heard)
    return () => void core.listeners.delete(heard)
  },
})
