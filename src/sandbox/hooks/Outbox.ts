/**
 * What is to be delivered, as the dispatcher sees it: it asks for the next delivery of an execution or a
 * flow session, is notified when that may have changed, and reports the result of each attempt. Without a
 * rule nothing is ever due.
 */
import { Duration } from "effect"
import { DelayQueue } from "../../base/Time.ts"
import { recordEvents } from "../core/SandboxCore.ts"
import type { SandboxCore } from "../core/SandboxCore.ts"
import { findSubject } from "./HookSubject.ts"
import type { Occasion, Subject } from "./HookSubject.ts"
import { findRecord, rulesFor } from "../state/HookState.ts"
import type { HookEvent, HookRule, HookState } from "../state/HookState.ts"
import { fingerprint, seeded } from "../state/Reading.ts"
import type { SandboxEvent } from "../state/SandboxState.ts"

// 4.1 and 6: pure. Not shown; own choice: 2xx is delivered, else there are six attempts with growing waits.

const secondMs = 1_000
/** Own choice: after this many waits, a failed delivery is given up. */
const retryWaits = [
  Duration.seconds(10),
  Duration.minutes(1),
  Duration.minutes(5),
  Duration.minutes(30),
  Duration.hours(2),
] as const

/** One sending, now or later. */
export interface Delivery {
  readonly subject: Subject
  readonly occasion: Occasion
  readonly rule: HookRule
  /** From 1. */
  readonly attempt: number
  readonly repeats: boolean
  readonly dueAt: number
}

/** Own choice: a shuffled first attempt comes 2 to 180 seconds late, so that later events overtake it. */
const firstAttemptAt = (seed: number, rule: HookRule, subject: Subject, occasion: Occasion): number => {
  if (rule.order === "timely") return occasion.at
  const { event, ordinal, at } = occasion
  return at + seeded("hook-delay", seed, rule.id, subject.id, event, ordinal).int(2, 180) * secondMs
}

/** Everything that is still to be sent about a subject, as far as is known now; earliest first. */
const planDeliveries = (hooks: HookState, seed: number, subject: Subject): ReadonlyArray<Delivery> =>
  subject.occasions
    .flatMap((occasion) =>
      rulesFor(hooks, subject.application, occasion.event).flatMap((rule): ReadonlyArray<Delivery> => {
        const { event, ordinal } = occasion
        const record = findRecord(hooks, subject.id, { event, ordinal, rule: rule.id })
        const about = { subject, occasion, rule }
        if (record === undefined) {
          if (occasion.at < rule.since) return []
          const dueAt = firstAttemptAt(seed, rule, subject, occasion)
          return [{ ...about, attempt: 1, repeats: false, dueAt }]
        }
        if (record.nextAt === undefined) return []
        const repeats = record.outcome === "delivered"
        return [{ ...about, attempt: record.attempts + 1, repeats, dueAt: record.nextAt }]
      }),
    )
    .toSorted((one, other) => one.dueAt - other.dueAt)

/** The result of an attempt: `unclear` if it may have arrived anyway. */
export type Answer = "taken" | "refused" | "unclear"

/** Own choice: with `duplicates`, about half of what was delivered comes once more within a minute. */
const repeatedAt = (seed: number, { rule, subject, occasion }: Delivery, at: number): number | undefined => {
  if (!rule.duplicates) return undefined
  const draw = seeded("hook-duplicate", seed, rule.id, subject.id, occasion.event, occasion.ordinal)
  return draw.chance(0.5) ? at + draw.int(1, 60) * secondMs : undefined
}

const nextAt = (at: number | undefined) => (at === undefined ? {} : { next_at: at })

const decideAttempt = (seed: number, delivery: Delivery, at: number, answer: Answer): HookEvent => {
  const { subject, occasion, rule, attempt, repeats } = delivery
  const { event, ordinal } = occasion
  const which = { at, subject: subject.id, event, ordinal, rule: rule.id }
  if (repeats) return { _tag: "HookRepeated", ...which }
  if (answer === "taken") {
    return { _tag: "HookDelivered", ...which, ...nextAt(repeatedAt(seed, delivery, at)) }
  }
  const wait = retryWaits[attempt - 1]
  const retryAt = wait === undefined ? undefined : at + Duration.toMillis(wait)
  return { _tag: "HookFailed", ...which, doubtful: answer === "unclear", ...nextAt(retryAt) }
}

/** 4.1: the three variables that are shown; one without a value is empty, others are sent verbatim. */
const valueOf = (value: string, { subject, occasion }: Delivery): string => {
  if (value === "{external_execution_id}") return subject.external_execution_id ?? ""
  if (value === "{event}") return occasion.event
  if (value === "{status_reason}") return occasion.status_reason
  return value
}

/** Half a surrogate pair has no encoding. */
const percentEncoded = (text: string): string => encodeURIComponent(text.toWellFormed())

/** Pairs of the start come after the target's own. */
const targetOf = (delivery: Delivery): string => {
  const target = new URL(delivery.rule.url)
  const pairs = Object.entries(delivery.subject.extra).map(
    ([name, value]) => `${percentEncoded(name)}=${percentEncoded(valueOf(value, delivery))}`,
  )
  const kept = target.search === "" ? [] : [target.search.slice(1)]
  target.search = [...kept, ...pairs].join("&")
  target.hash = ""
  return target.href
}

/** Own choice: the same for every attempt of a delivery, so that a receiver can recognise duplicates. */
const deliveryId = (seed: number, { rule, subject, occasion }: Delivery): string =>
  fingerprint("hook", seed, rule.id, subject.id, occasion.event, occasion.ordinal).slice(0, 32)

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

interface Entry {
  readonly name: string
  readonly at: number
}

export class DueTimes {
  readonly #queue = new DelayQueue<Entry>()
  /** The valid entry of a name; its other entries are left in place and skipped. */
  readonly #valid = new Map<string, Entry>()

  get size(): number {
    return this.#valid.size
  }

  /** The earliest time; undefined if nothing is due. */
  nextAt(): number | undefined {
    for (;;) {
      const { next } = this.#queue
      if (next === undefined || this.#isValid(next)) return next?.at
      this.#queue.takeDue(Number.POSITIVE_INFINITY)
    }
  }

  /** Sets when a name is due; any earlier entry no longer counts. */
  set(name: string, at: number): void {
    if (this.#valid.get(name)?.at === at) return
    const entry = { name, at }
    this.#valid.set(name, entry)
    this.#queue.add(entry, at)
    if (this.#queue.size > 2 * this.#valid.size + 64) this.#queue.remove((known) => !this.#isValid(known))
  }

  delete(name: string): void {
    this.#valid.delete(name)
  }

  /** Takes the earliest name whose time has come. */
  takeDue(now: number): string | undefined {
    for (;;) {
      const entry = this.#queue.takeDue(now)
      if (entry === undefined) return undefined
      if (!this.#isValid(entry)) continue
      this.#valid.delete(entry.name)
      return entry.name
    }
  }

  #isValid(entry: Entry): boolean {
    return this.#valid.get(entry.name) === entry
  }
}
