/**
 * Subscriptions as answers of the contract (sections 2.8 and 4.11), and those to execution events, which
 * are this service's own interface: a decision, its events recorded, and the resulting rules.
 */
import { Clock, Effect } from "effect"
import { engineEvents, flowEvents } from "../../contract/Vocabulary.ts"
import type { Application } from "../state/Application.ts"
import type { HookRule } from "../state/HookEvent.ts"
import {
  decideBindHooks,
  decideCreateFlowHooks,
  decideDeleteHooks,
  decideUpdateFlowHooks,
  flowHookOf,
  listRules,
} from "./Hooks.ts"
import type { FlowHookChange, HooksAnswer, Webhook } from "./Hooks.ts"
import { settle } from "../core/SandboxCore.ts"
import type { SandboxCore } from "../core/SandboxCore.ts"

const notFound = { _tag: "NotFound" as const, detail: "no such subscription" }

type Changed = Extract<HooksAnswer, { readonly _tag: "Changed" }>
type Invalid = Extract<HooksAnswer, { readonly _tag: "Invalid" }>

const changedOr = (answer: HooksAnswer): Effect.Effect<Changed, Invalid | typeof notFound> =>
  answer._tag === "Changed"
    ? Effect.succeed(answer)
    : Effect.fail(answer._tag === "NotFound" ? notFound : answer)

/** 4.11 */
export const listFlowHooks = (core: SandboxCore, { app_id }: Application) =>
  Effect.sync(() => listRules(core.state.hooks, app_id, flowEvents).map((rule) => flowHookOf(app_id, rule)))

/** 4.11: answers what is now bound (own choice). */
export const createFlowHooks = Effect.fnUntraced(function* (
  core: SandboxCore,
  { app_id }: Application,
  payload: FlowHookChange,
) {
  const now = yield* Clock.currentTimeMillis
  const answer = settle(core, decideCreateFlowHooks(core.state.hooks, now, app_id, payload))
  if (answer._tag === "Invalid") return yield* Effect.fail(answer)
  return answer._tag === "Changed" ? answer.rules.map((rule) => flowHookOf(app_id, rule)) : []
})

/** 4.11 */
export const updateFlowHooks = Effect.fnUntraced(function* (
  core: SandboxCore,
  { app_id }: Application,
  payload: FlowHookChange,
) {
  const now = yield* Clock.currentTimeMillis
  const decision = decideUpdateFlowHooks(core.state.hooks, now, app_id, payload)
  const { rules } = yield* changedOr(settle(core, decision))
  return rules.map((rule) => flowHookOf(app_id, rule))
})

/** 4.11 */
export const deleteFlowHooks = Effect.fnUntraced(function* (
  core: SandboxCore,
  { app_id }: Application,
  { events }: FlowHookChange,
) {
  const now = yield* Clock.currentTimeMillis
  yield* changedOr(settle(core, decideDeleteHooks(core.state.hooks, now, app_id, events, flowEvents)))
  return { _tag: "NoContent" as const }
})

const hookOf = ({ events, url, order, duplicates }: HookRule) => ({
  event: events[0] ?? "",
  url,
  order,
  duplicates,
})

/** Own interface: the application's subscriptions to execution events. */
export const listHooks = (core: SandboxCore, { app_id }: Application) =>
  Effect.sync(() => listRules(core.state.hooks, app_id, engineEvents).map(hookOf))

/** Own interface: binds events to a target, or changes where they go. */
export const bindHooks = Effect.fnUntraced(function* (
  core: SandboxCore,
  { app_id }: Application,
  payload: Webhook,
) {
  const now = yield* Clock.currentTimeMillis
  const answer = settle(core, decideBindHooks(core.state.hooks, now, app_id, payload))
  if (answer._tag === "Invalid") return yield* Effect.fail(answer)
  return yield* listHooks(core, { app_id, mayTokenize: false })
})

/** Own interface. */
export const unbindHooks = Effect.fnUntraced(function* (
  core: SandboxCore,
  { app_id }: Application,
  events: ReadonlyArray<string> | undefined,
) {
  const now = yield* Clock.currentTimeMillis
  const bound = listRules(core.state.hooks, app_id, engineEvents).flatMap((rule) => rule.events)
  if (events === undefined && bound.length === 0) return { _tag: "NoContent" as const }
  const decision = decideDeleteHooks(core.state.hooks, now, app_id, events ?? bound, engineEvents, "query")
  yield* changedOr(settle(core, decision))
  return { _tag: "NoContent" as const }
})
