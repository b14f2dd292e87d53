/**
 * The part of the embedded service's state that webhooks need: which rules are bound, and how far each
 * delivery is. A delivery that was never tried leaves no trace here: it is derived from the events of its
 * execution and the rules, so a restart finds it again.
 */
import { Schema } from "effect"
import { given } from "../../base/Schemas.ts"

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

type Attempted = Exclude<HookEvent, { readonly _tag: "HookBound" | "HookUnbound" }>
type Which = Pick<DeliveryRecord, "event" | "ordinal" | "rule">

export const findRecord = (hooks: HookState, subject: string, { event, ordinal, rule }: Which) =>
  hooks.deliveries
    .get(subject)
    ?.find((record) => record.event === event && record.ordinal === ordinal && record.rule === rule)

const recordAfter = (before: DeliveryRecord | undefined, attempted: Attempted): DeliveryRecord => {
  const { event, ordinal, rule, at } = attempted
  const { attempts = 0, duplicates = 0, outcome = "delivered" } = before ?? {}
  const which = { event, ordinal, rule, at }
  if (attempted._tag === "HookRepeated") return { ...which, attempts, outcome, duplicates: duplicates + 1 }
  const failure = attempted._tag === "HookFailed" ? (attempted.doubtful ? "doubtful" : "failed") : undefined
  const result = { attempts: attempts + 1, outcome: failure ?? "delivered", duplicates } as const
  return { ...which, ...result, ...given({ nextAt: attempted.next_at }) }
}

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

/** For observers. */
export const deliveriesSeen = (hooks: HookState) =>
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

// Events of the journal: they contain no payloads, which are derived again when they are sent.

export const deliveryOrders = ["timely", "shuffled"] as const

/** One binding of events to a target (2.8); `since`: earlier events are not delivered. */
export const HookRule = Schema.Struct({
  id: Schema.String,
  /** If absent, every application. */
  application: Schema.optionalKey(Schema.String),
  events: Schema.Array(Schema.String),
  url: Schema.String,
  enabled: Schema.Boolean,
  since: Schema.Finite,
  order: Schema.Literals(deliveryOrders),
  /** About half of its deliveries are sent a second time. */
  duplicates: Schema.Boolean,
})
export type HookRule = typeof HookRule.Type

const HookBound = Schema.TaggedStruct("HookBound", { at: Schema.Finite, rule: HookRule })
const HookUnbound = Schema.TaggedStruct("HookUnbound", { at: Schema.Finite, rule: Schema.String })

/** Which delivery: `subject` is an execution or a flow session, `ordinal` counts repeated challenges. */
const attempt = {
  at: Schema.Finite,
  subject: Schema.String,
  event: Schema.String,
  ordinal: Schema.Int,
  rule: Schema.String,
}
/** `next_at`: when it is sent once more anyway, as a requested duplicate. */
const HookDelivered = Schema.TaggedStruct("HookDelivered", {
  ...attempt,
  next_at: Schema.optionalKey(Schema.Finite),
})
/** `next_at`: when it is tried again; absent if it is given up. */
const HookFailed = Schema.TaggedStruct("HookFailed", {
  ...attempt,
  /** It is not known whether it arrived. */
  doubtful: Schema.Boolean,
  next_at: Schema.optionalKey(Schema.Finite),
})
/** A duplicate was sent; its answer changes nothing. */
const HookRepeated = Schema.TaggedStruct("HookRepeated", attempt)

export const HookEvents = Schema.Union([
  HookBound,
  HookUnbound,
  HookDelivered,
  HookFailed,
  HookRepeated,
]).pipe(Schema.toTaggedUnion("_tag"))
export type HookEvent = typeof HookEvents.Type

/** A target given at start-up, or the body that binds one: the events of all applications, or of one. */
export const Webhook = Schema.Struct({
  /** http or https, without a user in it. */
  url: Schema.String,
  /** All that there are if absent. */
  events: Schema.optionalKey(Schema.Array(Schema.String)),
  /** `shuffled`: deliveries are delayed at random, so that later events overtake them. */
  order: Schema.optionalKey(Schema.Literals(deliveryOrders)),
  /** About half of the deliveries come a second time. */
  duplicates: Schema.optionalKey(Schema.Boolean),
})
export type Webhook = typeof Webhook.Type

/** Own choice: http and https only, without user or password, because URLs are shown in answers. */
export const readTarget = (text: unknown): URL | undefined => {
  if (typeof text !== "string" || !URL.canParse(text)) return undefined
  const url = new URL(text)
  const plain = url.username === "" && url.password === ""
  return plain && (url.protocol === "http:" || url.protocol === "https:") ? url : undefined
}
