/**
 * Which webhooks are bound (sections 2.8 and 4.11): the reference's subscriptions to flow events, the
 * service's own ones to execution events, and those given at start-up. The bodies and answers of their calls
 * are not shown; own choice: one rule per application and event, and a second replaces the first.
 */
import { Effect } from "effect"
import { answered, decidedBy, refused, type Look } from "../core/SandboxCore.ts"
import { readTarget } from "../state/HookState.ts"
import type { HookEvent, HookRule, HookState, Webhook } from "../state/HookState.ts"
import type { FlowHook, ValidationItem } from "../../service/Execution.ts"
import { engineEvents, flowEvents } from "../../service/Vocabulary.ts"

const allEvents: ReadonlyArray<string> = [...engineEvents, ...flowEvents]

const ruleId = (application: string, event: string): string => `${application}/${event}`

const findRule = ({ state, application }: Look, event: string): HookRule | undefined =>
  state.hooks.rules.get(ruleId(application.app_id, event))

type HookBound = Extract<HookEvent, { readonly _tag: "HookBound" }>

/** The changes to a rule; the rest stays as it was. A rule keeps its age: pending deliveries continue. */
type RuleChange = Partial<Pick<HookRule, "url" | "enabled" | "order" | "duplicates">>

const bind = (look: Look, event: string, change: RuleChange & Pick<HookRule, "url">): HookBound => {
  const { at } = look
  const application = look.application.app_id
  const known = findRule(look, event)
  const rule: HookRule = {
    id: ruleId(application, event),
    application,
    events: [event],
    enabled: true,
    order: "timely",
    duplicates: false,
    // When it is switched on again, it does not catch up on events raised meanwhile.
    since: known?.enabled === true ? known.since : at,
    ...change,
  }
  return { _tag: "HookBound", at, rule }
}

const invalid = (detail: ReadonlyArray<ValidationItem>) => refused({ _tag: "Invalid", detail })
const notFound = refused({ _tag: "NotFound", detail: "no such subscription" })

const value = (loc: ReadonlyArray<string | number>, msg: string, slot = "body"): ValidationItem => ({
  loc: [slot, ...loc],
  msg,
  type: "value_error",
})

/** Names every event that is not in the vocabulary; an empty list requests nothing and is refused too. */
const findUnknownEvents = (
  events: ReadonlyArray<string>,
  vocabulary: ReadonlyArray<string>,
  slot: "body" | "query" = "body",
): ReadonlyArray<ValidationItem> =>
  events.length === 0
    ? [value(["events"], "not an event", slot)]
    : events.flatMap((event, index) =>
        vocabulary.includes(event) ? [] : [value(["events", index], "no such event", slot)],
      )

const findBadTarget = (field: string, url: unknown): ReadonlyArray<ValidationItem> =>
  readTarget(url) === undefined ? [value([field], "an http or https address without a user")] : []

/** 2.8: query parameters in `base_url` are stripped. */
const strippedTarget = (text: unknown): string | undefined => {
  const url = readTarget(text)
  return url === undefined ? undefined : `${url.origin}${url.pathname}`
}

interface FlowHookChange {
  readonly events: ReadonlyArray<string>
  readonly [field: string]: unknown
}

const findBadFlag = (enabled: unknown): ReadonlyArray<ValidationItem> =>
  enabled === undefined || typeof enabled === "boolean" ? [] : [value(["enabled"], "a boolean")]

/** 2.8 */
const flowHookOf = (rule: HookRule): FlowHook => ({
  app_id: rule.application ?? "",
  producer: "es-public-administration",
  event: rule.events[0] ?? "",
  enabled: rule.enabled,
  base_url: rule.url,
})

/** Answers what is now bound (own choice). */
const flowHooksBound = (bound: ReadonlyArray<HookBound>) =>
  answered(
    bound.map(({ rule }) => flowHookOf(rule)),
    ...bound,
  )

/** The rules of an application in the order of the vocabulary. */
const listRules = (look: Look, vocabulary: ReadonlyArray<string>): ReadonlyArray<HookRule> =>
  vocabulary.flatMap((event) => findRule(look, event) ?? [])

/** 4.11 */
export const listFlowHooks = decidedBy((call) => answered(listRules(call, flowEvents).map(flowHookOf)))

/** 4.11: `base_url` is required and `enabled` true unless said otherwise (own choice). */
export const createFlowHooks = decidedBy((call, { events, base_url, enabled }: FlowHookChange) => {
  const problems = [
    ...findUnknownEvents(events, flowEvents),
    ...findBadTarget("base_url", base_url),
    ...findBadFlag(enabled),
  ]
  const url = strippedTarget(base_url)
  if (problems.length > 0 || url === undefined) return invalid(problems)
  const change = { url, enabled: enabled !== false }
  return flowHooksBound([...new Set(events)].map((event) => bind(call, event, change)))
})

/** 4.11: each event must have its subscription; fields that are not given stay as they were (own choice). */
export const updateFlowHooks = decidedBy((call, { events, base_url, enabled }: FlowHookChange) => {
  const problems = [
    ...findUnknownEvents(events, flowEvents),
    ...(base_url === undefined ? [] : findBadTarget("base_url", base_url)),
    ...findBadFlag(enabled),
  ]
  if (problems.length > 0) return invalid(problems)
  const wanted = [...new Set(events)]
  const known = wanted.flatMap((event) => findRule(call, event) ?? [])
  if (known.length < wanted.length) return notFound
  const url = strippedTarget(base_url)
  return flowHooksBound(
    known.map((rule) =>
      bind(call, rule.events[0] ?? "", {
        url: url ?? rule.url,
        enabled: typeof enabled === "boolean" ? enabled : rule.enabled,
      }),
    ),
  )
})

/** All of them must exist, otherwise none is removed. */
const unbind = (
  look: Look,
  events: ReadonlyArray<string>,
  vocabulary: ReadonlyArray<string>,
  slot: "body" | "query" = "body",
) => {
  const problems = findUnknownEvents(events, vocabulary, slot)
  if (problems.length > 0) return invalid(problems)
  const wanted = [...new Set(events)]
  if (wanted.some((event) => findRule(look, event) === undefined)) return notFound
  const { at, application } = look
  return answered(
    { _tag: "NoContent" },
    ...wanted.map((event): HookEvent => {
      const rule = ruleId(application.app_id, event)
      return { _tag: "HookUnbound", at, rule }
    }),
  )
}

/** 4.11 */
export const deleteFlowHooks = decidedBy((call, { events }: FlowHookChange) =>
  unbind(call, events, flowEvents),
)

const hookOf = ({ events: [event = ""], url, order, duplicates }: HookRule) => ({
  event,
  url,
  order,
  duplicates,
})

/** Own interface: the application's subscriptions to execution events. */
export const listHooks = decidedBy((call) => answered(listRules(call, engineEvents).map(hookOf)))

const bindExecutionHooks = decidedBy(
  (call, { url, events = engineEvents, order = "timely", duplicates = false }: Webhook) => {
    const problems = [...findUnknownEvents(events, engineEvents), ...findBadTarget("url", url)]
    if (problems.length > 0) return invalid(problems)
    const change = { url, order, duplicates }
    return answered(undefined, ...[...new Set(events)].map((event) => bind(call, event, change)))
  },
)

/**
 * Not shown how execution events are subscribed to; own choice, `PUT {origin}/sandbox/hooks`: binds events
 * to a target, or changes where they go, and answers all that are bound.
 */
export const bindHooks = (payload: Webhook) => Effect.andThen(bindExecutionHooks(payload), listHooks())

/** Own interface: those events, or all that are bound. */
export const unbindHooks = decidedBy((call, events: ReadonlyArray<string> | undefined) => {
  const bound = listRules(call, engineEvents).flatMap((rule) => rule.events)
  if (events === undefined && bound.length === 0) return answered({ _tag: "NoContent" })
  return unbind(call, events ?? bound, engineEvents, "query")
})

// Targets given at start-up are rules of the journal: later ones never get what was raised before them.

const prefix = "webhook-"

/** Throws if a target is not an http URL: the caller has already checked it. */
export const decideStartHooks = (
  hooks: HookState,
  at: number,
  webhooks: ReadonlyArray<Webhook>,
): ReadonlyArray<HookEvent> => {
  if (webhooks.some(({ url }) => readTarget(url) === undefined))
    throw new Error("a webhook needs an http address")
  const rules = webhooks.map(
    ({ url, events = allEvents, order = "timely", duplicates = false }, index): HookRule => {
      const id = `${prefix}${index + 1}`
      return { id, events, url, enabled: true, since: hooks.rules.get(id)?.since ?? at, order, duplicates }
    },
  )
  const wanted = new Set(rules.map(({ id }) => id))
  const gone = [...hooks.rules.keys()].filter((id) => id.startsWith(prefix) && !wanted.has(id))
  const isNew = (rule: HookRule) => JSON.stringify(hooks.rules.get(rule.id)) !== JSON.stringify(rule)
  return [
    ...gone.map((rule): HookEvent => ({ _tag: "HookUnbound", at, rule })),
    ...rules.filter(isNew).map((rule): HookEvent => ({ _tag: "HookBound", at, rule })),
  ]
}
