/**
 * Subscriptions as answers of the contract (sections 2.8 and 4.11), and those to execution events, which
 * are this service's own interface: a decision, its events recorded, and the resulting rules.
 */
import { Effect } from "effect"
import { engineEvents, flowEvents } from "../../service/Vocabulary.ts"
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
import { beginCall, settle } from "../core/SandboxCore.ts"

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
