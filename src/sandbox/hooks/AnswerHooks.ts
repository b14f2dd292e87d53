/**
 * Subscriptions as answers of the contract (sections 2.8 and 4.11), and those to execution events, which are
 * this service's own interface: a decision, its events recorded, the rules as they then are.
 */
import { Effect } from "effect"
import { engineEvents, flowEvents } from "../../contract/Vocabulary.ts"
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
import { lookInto, settle } from "../core/SandboxCore.ts"
import type { SandboxCore } from "../core/SandboxCore.ts"

const notFound = { _tag: "NotFound" as const, detail: "no such subscription" }

type Changed = Extract<HooksAnswer, { readonly _tag: "Changed" }>
type Invalid = Extract<HooksAnswer, { readonly _tag: "Invalid" }>

const changedOr = (answer: HooksAnswer): Effect.Effect<Changed, Invalid | typeof notFound> =>
  answer._tag === "Changed"
    ? Effect.succeed(answer)
    : Effect.fail(answer._tag === "NotFound" ? notFound : answer)

/** 4.11 */
export const listFlowHooks = Effect.fnUntraced(function* (core: SandboxCore) {
  return listRules(yield* lookInto(core), flowEvents).map(flowHookOf)
})

/** 4.11: answers what is now bound (own choice). */
export const createFlowHooks = Effect.fnUntraced(function* (core: SandboxCore, payload: FlowHookChange) {
  const answer = settle(core, decideCreateFlowHooks(yield* lookInto(core), payload))
  return answer._tag === "Changed" ? answer.rules.map(flowHookOf) : yield* Effect.fail(answer)
})

/** 4.11 */
export const updateFlowHooks = Effect.fnUntraced(function* (core: SandboxCore, payload: FlowHookChange) {
  const answer = settle(core, decideUpdateFlowHooks(yield* lookInto(core), payload))
  return (yield* changedOr(answer)).rules.map(flowHookOf)
})

/** 4.11 */
export const deleteFlowHooks = Effect.fnUntraced(function* (core: SandboxCore, { events }: FlowHookChange) {
  yield* changedOr(settle(core, decideDeleteHooks(yield* lookInto(core), events, flowEvents)))
  return { _tag: "NoContent" as const }
})

const hookOf = ({ events, url, order, duplicates }: HookRule) => ({
  event: events[0] ?? "",
  url,
  order,
  duplicates,
})

/** Own interface: the application's subscriptions to execution events. */
export const listHooks = Effect.fnUntraced(function* (core: SandboxCore) {
  return listRules(yield* lookInto(core), engineEvents).map(hookOf)
})

/** Own interface: binds events to a target, or changes where they go. */
export const bindHooks = Effect.fnUntraced(function* (core: SandboxCore, payload: Webhook) {
  const answer = settle(core, decideBindHooks(yield* lookInto(core), payload))
  if (answer._tag === "Invalid") return yield* Effect.fail(answer)
  return yield* listHooks(core)
})

/** Own interface. */
export const unbindHooks = Effect.fnUntraced(function* (
  core: SandboxCore,
  events: ReadonlyArray<string> | undefined,
) {
  const look = yield* lookInto(core)
  const bound = listRules(look, engineEvents).flatMap((rule) => rule.events)
  if (events === undefined && bound.length === 0) return { _tag: "NoContent" as const }
  const decision = decideDeleteHooks(look, events ?? bound, engineEvents, "query")
  yield* changedOr(settle(core, decision))
  return { _tag: "NoContent" as const }
})
