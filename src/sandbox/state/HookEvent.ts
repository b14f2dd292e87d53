/**
 * What happens to webhooks at the embedded service, as events of its journal: rules bound and unbound, and
 * every attempt to deliver. They contain no payloads: these are derived again when they are sent.
 */
import { Schema } from "effect"

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

const HookEvents = Schema.Union([HookBound, HookUnbound, HookDelivered, HookFailed, HookRepeated]).pipe(
  Schema.toTaggedUnion("_tag"),
)
export const hookEventSchemas = HookEvents.members
export type HookEvent = typeof HookEvents.Type

export const isHookEvent = (event: { readonly _tag: string }): event is HookEvent =>
  Object.hasOwn(HookEvents.cases, event._tag)
