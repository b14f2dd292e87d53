/**
 * The webhooks given to the embedded service at start-up, as rules of its journal: a restart with other
 * targets, or with none, changes where pending deliveries go, and never sends what was raised before.
 */
import type { HookEvent, HookRule } from "../state/HookEvent.ts"
import type { HookState } from "../state/HookState.ts"
import { allEvents, readTarget } from "./Hooks.ts"
import type { Webhook } from "./Hooks.ts"

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
