/**
 * The part of the embedded service's state that webhooks need: which rules are bound, and how far each
 * delivery is. A delivery that was never tried leaves no trace here: it is derived from the events of its
 * execution and the rules, so a restart finds it again.
 */
import type { HookEvent, HookRule } from "./HookEvent.ts"

export interface DeliveryRecord {
  readonly event: string
  readonly ordinal: number
  readonly rule: string
  readonly attempts: number
  readonly outcome: "delivered" | "failed" | "doubtful"
  /** Of the newest attempt. */
  readonly at: number
  /** When it is sent again; a failed one without this is given up. */
  readonly nextAt?: number
  /** How often a delivered one was sent again, on request. */
  readonly duplicates: number
}

export interface HookState {
  readonly rules: Map<string, HookRule>
  /** By execution or flow session. */
  readonly deliveries: Map<string, ReadonlyArray<DeliveryRecord>>
}

export const emptyHooks = (): HookState => ({ rules: new Map(), deliveries: new Map() })

type Attempted = Exclude<HookEvent, { readonly _tag: "HookBound" | "HookUnbound" }>
type Which = Pick<DeliveryRecord, "event" | "ordinal" | "rule">

export const findRecord = (
  hooks: HookState,
  subject: string,
  { event, ordinal, rule }: Which,
): DeliveryRecord | undefined =>
  hooks.deliveries
    .get(subject)
    ?.find((record) => record.event === event && record.ordinal === ordinal && record.rule === rule)

const recordAfter = (before: DeliveryRecord | undefined, attempted: Attempted): DeliveryRecord => {
  const { event, ordinal, rule, at } = attempted
  const attempts = before?.attempts ?? 0
  const duplicates = before?.duplicates ?? 0
  if (attempted._tag === "HookRepeated") {
    const first = { event, ordinal, rule, attempts, outcome: before?.outcome ?? "delivered" } as const
    return { ...first, at, duplicates: duplicates + 1 }
  }
  const failure = attempted._tag === "HookFailed" ? (attempted.doubtful ? "doubtful" : "failed") : undefined
  return {
    event,
    ordinal,
    rule,
    attempts: attempts + 1,
    outcome: failure ?? "delivered",
    at,
    duplicates,
    ...(attempted.next_at === undefined ? {} : { nextAt: attempted.next_at }),
  }
}

/** The fold of hook events. */
export const applyHookEvent = (hooks: HookState, event: HookEvent): void => {
  if (event._tag === "HookBound") return void hooks.rules.set(event.rule.id, event.rule)
  if (event._tag === "HookUnbound") return void hooks.rules.delete(event.rule)
  const before = findRecord(hooks, event.subject, event)
  const records = hooks.deliveries.get(event.subject) ?? []
  const next = recordAfter(before, event)
  hooks.deliveries.set(
    event.subject,
    before === undefined ? [...records, next] : records.map((record) => (record === before ? next : record)),
  )
}

export type DeliverySeen = DeliveryRecord & { readonly subject: string }

/** For observers. */
export const deliveriesSeen = (hooks: HookState): ReadonlyArray<DeliverySeen> =>
  [...hooks.deliveries].flatMap(([subject, records]) => records.map((record) => ({ subject, ...record })))

/** The rules that an application's event is delivered by; its own ones come before global ones. */
export const rulesFor = (hooks: HookState, application: string, event: string): ReadonlyArray<HookRule> => {
  if (hooks.rules.size === 0) return []
  const bound = [...hooks.rules.values()].filter(
    (rule) =>
      rule.enabled &&
      (rule.application === undefined || rule.application === application) &&
      rule.events.includes(event),
  )
  const own = bound.filter((rule) => rule.application !== undefined)
  return [...own, ...bound.filter((rule) => rule.application === undefined)]
}
