/**
 * Decides what is to be delivered to whom and when, and what an attempt's answer means (sections 4.1 and
 * 6). Pure: the deliveries of an execution depend on its events, the rules and earlier attempts. The
 * delivery contract is not shown; own choice: 2xx means delivered, otherwise there are six attempts with
 * growing waits.
 */
import { Duration } from "effect"
import type { HookEvent, HookRule } from "../state/HookEvent.ts"
import { findRecord, rulesFor } from "../state/HookState.ts"
import type { HookState } from "../state/HookState.ts"
import type { Occasion, Subject } from "./HookSubject.ts"
import { fingerprint, seeded } from "../state/Seeded.ts"

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
export const planDeliveries = (hooks: HookState, seed: number, subject: Subject): ReadonlyArray<Delivery> =>
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

export const decideAttempt = (seed: number, delivery: Delivery, at: number, answer: Answer): HookEvent => {
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
export const targetOf = (delivery: Delivery): string => {
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
export const deliveryId = (seed: number, { rule, subject, occasion }: Delivery): string =>
  fingerprint("hook", seed, rule.id, subject.id, occasion.event, occasion.ordinal).slice(0, 32)
