/**
 * Which webhooks are bound, decided purely (sections 2.8 and 4.11): the reference's subscriptions to flow
 * events, the service's own ones to execution events, and those given at start-up. The bodies and answers of
 * their calls are not shown; own choice: one rule per application and event, and a second replaces the first.
 */
import { Effect } from "effect"
import { beginCall, settle } from "../core/SandboxCore.ts"
import type { Decision, Look } from "../core/SandboxCore.ts"
import { readTarget } from "../state/HookState.ts"
import type { HookEvent, HookRule, HookState, Webhook } from "../state/HookState.ts"
import type { FlowHook, ValidationItem } from "../../service/Execution.ts"
import { engineEvents, flowEvents } from "../../service/Vocabulary.ts"

const allEvents: ReadonlyArray<string> = [...engineEvents, ...flowEvents]

const ruleId = (application: string, event: string): string => `${application}/${event}`

const findRule = ({ state, application }: Look, event: string): HookRule | undefined =>
  state.hooks.rules.get(ruleId(application.app_id, event))

/** The changes to a rule; the rest stays as it was. A rule keeps its age: pending deliveries continue. */
type RuleChange = Partial<Pick<HookRule, "url" | "enabled" | "order" | "duplicates">>

const bind = (look: Look, event: string, change: RuleChange & Pick<HookRule, "url">): HookEvent => {
  const {
    at,
    application: { app_id: application },
  } = look
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

type Bound =
  | { readonly _tag: "Changed"; readonly rules: ReadonlyArray<HookRule> }
  | { readonly _tag: "Invalid"; readonly detail: ReadonlyArray<ValidationItem> }
export type HooksAnswer = Bound | { readonly _tag: "NotFound" }

const refuse = (detail: ReadonlyArray<ValidationItem>): Decision<Bound> => ({
  answer: { _tag: "Invalid", detail },
  events: [],
})
const changed = (events: ReadonlyArray<HookEvent>): Decision<Bound> => ({
  answer: {
    _tag: "Changed",
    rules: events.flatMap((event) => (event._tag === "HookBound" ? [event.rule] : [])),
  },
  events,
})

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

export interface FlowHookChange {
  readonly events: ReadonlyArray<string>
  readonly [field: string]: unknown
}

const findBadFlag = (enabled: unknown): ReadonlyArray<ValidationItem> =>
  enabled === undefined || typeof enabled === "boolean" ? [] : [value(["enabled"], "a boolean")]

/** 4.11: `base_url` is required and `enabled` true unless said otherwise (own choice). */
export const decideCreateFlowHooks = (
  look: Look,
  { events, base_url, enabled }: FlowHookChange,
): Decision<Bound> => {
  const problems = [
    ...findUnknownEvents(events, flowEvents),
    ...findBadTarget("base_url", base_url),
    ...findBadFlag(enabled),
  ]
  const url = strippedTarget(base_url)
  if (problems.length > 0 || url === undefined) return refuse(problems)
  const change = { url, enabled: enabled !== false }
  return changed([...new Set(events)].map((event) => bind(look, event, change)))
}

/** 4.11: each event must have its subscription; fields that are not given stay as they were (own choice). */
export const decideUpdateFlowHooks = (
  look: Look,
  { events, base_url, enabled }: FlowHookChange,
): Decision<HooksAnswer> => {
  const problems = [
    ...findUnknownEvents(events, flowEvents),
    ...(base_url === undefined ? [] : findBadTarget("base_url", base_url)),
    ...findBadFlag(enabled),
  ]
  if (problems.length > 0) return refuse(problems)
  const wanted = [...new Set(events)]
  const known = wanted.flatMap((event) => findRule(look, event) ?? [])
  if (known.length < wanted.length) return { answer: { _tag: "NotFound" }, events: [] }
  const url = strippedTarget(base_url)
  return changed(
    known.map((rule) =>
      bind(look, rule.events[0] ?? "", {
        url: url ?? rule.url,
        enabled: typeof enabled === "boolean" ? enabled : rule.enabled,
      }),
    ),
  )
}

/** 4.11, and the service's own interface: all of them must exist, otherwise none is removed. */
export const decideDeleteHooks = (
  look: Look,
  events: ReadonlyArray<string>,
  vocabulary: ReadonlyArray<string>,
  slot: "body" | "query" = "body",
): Decision<HooksAnswer> => {
  const problems = findUnknownEvents(events, vocabulary, slot)
  if (problems.length > 0) return refuse(problems)
  const wanted = [...new Set(events)]
  if (wanted.some((event) => findRule(look, event) === undefined)) {
    return { answer: { _tag: "NotFound" }, events: [] }
  }
  const { at, application } = look
  return changed(
    wanted.map((event): HookEvent => ({ _tag: "HookUnbound", at, rule: ruleId(application.app_id, event) })),
  )
}

/** Not shown how execution events are subscribed to; own choice, `PUT {origin}/sandbox/hooks`. */
export const decideBindHooks = (
  look: Look,
  { url, events = engineEvents, order = "timely", duplicates = false }: Webhook,
): Decision<Bound> => {
  const problems = [...findUnknownEvents(events, engineEvents), ...findBadTarget("url", url)]
  if (problems.length > 0) return refuse(problems)
  const change = { url, order, duplicates }
  return changed([...new Set(events)].map((event) => bind(look, event, change)))
}

/** The rules of an application in the order of the vocabulary. */
export const listRules = (look: Look, vocabulary: ReadonlyArray<string>): ReadonlyArray<HookRule> =>
  vocabulary.flatMap((event) => findRule(look, event) ?? [])

/** 2.8 */
export const flowHookOf = (rule: HookRule): FlowHook => ({
  app_id: rule.application ?? "",
  producer: "es-public-administration",
  event: rule.events[0] ?? "",
  enabled: rule.enabled,
  base_url: rule.url,
})

const notFound = { _tag: "NotFound" as const, detail: "no such subscription" }

type Changed = Extract<HooksAnswer, { readonly _tag: "Changed" }>
type Invalid = Extract<HooksAnswer, { readonly _tag: "Invalid" }>

const changedOr = (answer: HooksAnswer): Effect.Effect<Changed, Invalid | typeof notFound> =>
  answer._tag === "Changed"
    ? Effect.succeed(answer)
    : Effect.fail(answer._tag === "NotFound" ? notFound : answer)

/** 4.11 */
export const listFlowHooks = Effect.fnUntraced(function* () {
  return listRules(yield* beginCall, flowEvents).map(flowHookOf)
})

/** 4.11: answers what is now bound (own choice). */
export const createFlowHooks = Effect.fnUntraced(function* (payload: FlowHookChange) {
  const call = yield* beginCall
  const answer = settle(call, decideCreateFlowHooks(call, payload))
  return answer._tag === "Changed" ? answer.rules.map(flowHookOf) : yield* Effect.fail(answer)
})

/** 4.11 */
export const updateFlowHooks = Effect.fnUntraced(function* (payload: FlowHookChange) {
  const call = yield* beginCall
  const answer = settle(call, decideUpdateFlowHooks(call, payload))
  return (yield* changedOr(answer)).rules.map(flowHookOf)
})

/** 4.11 */
export const deleteFlowHooks = Effect.fnUntraced(function* ({ events }: FlowHookChange) {
  const call = yield* beginCall
  yield* changedOr(settle(call, decideDeleteHooks(call, events, flowEvents)))
  return { _tag: "NoContent" as const }
})

const hookOf = ({ events, url, order, duplicates }: HookRule) => ({
  event: events[0] ?? "",
  url,
  order,
  duplicates,
})

/** Own interface: the application's subscriptions to execution events. */
export const listHooks = Effect.fnUntraced(function* () {
  return listRules(yield* beginCall, engineEvents).map(hookOf)
})

/** Own interface: binds events to a target, or changes where they go. */
export const bindHooks = Effect.fnUntraced(function* (payload: Webhook) {
  const call = yield* beginCall
  const answer = settle(call, decideBindHooks(call, payload))
  if (answer._tag === "Invalid") return yield* Effect.fail(answer)
  return yield* listHooks()
})

/** Own interface. */
export const unbindHooks = Effect.fnUntraced(function* (events: ReadonlyArray<string> | undefined) {
  const call = yield* beginCall
  const bound = listRules(call, engineEvents).flatMap((rule) => rule.events)
  if (events === undefined && bound.length === 0) return { _tag: "NoContent" as const }
  const decision = decideDeleteHooks(call, events ?? bound, engineEvents, "query")
  yield* changedOr(settle(call, decision))
  return { _tag: "NoContent" as const }
})

// Targets given at start-up are rules of the journal: later ones never get what was raised before them.

const prefix = "webhook-"

const ruleOf = (webhook: Webhook, index: number, known: HookRule | undefined, at: number): HookRule => ({
  id: `${prefix}${index + 1}`,
  events: webhook.events ?? allEvents,
  url: webhook.url,
  enabled: true,
  since: known?.since ?? at,
  order: webhook.order ?? "timely",
  duplicates: webhook.duplicates ?? false,
})

/** Throws if a target is not an http URL: the caller has already checked it. */
export const decideStartHooks = (
  hooks: HookState,
  at: number,
  webhooks: ReadonlyArray<Webhook>,
): ReadonlyArray<HookEvent> => {
  if (webhooks.some(({ url }) => readTarget(url) === undefined))
    throw new Error("a webhook needs an http address")
  const rules = webhooks.map((webhook, index) =>
    ruleOf(webhook, index, hooks.rules.get(`${prefix}${index + 1}`), at),
  )
  const wanted = new Set(rules.map(({ id }) => id))
  const gone = [...hooks.rules.keys()].filter((id) => id.startsWith(prefix) && !wanted.has(id))
  const isNew = (rule: HookRule) => JSON.stringify(hooks.rules.get(rule.id)) !== JSON.stringify(rule)
  return [
    ...gone.map((rule): HookEvent => ({ _tag: "HookUnbound", at, rule })),
    ...rules.filter(isNew).map((rule): HookEvent => ({ _tag: "HookBound", at, rule })),
  ]
}
