/**
 * Subscriptions to flow events as answers of the contract (sections 2.8 and 4.11).
 */
import { Effect } from "effect"
import type { FlowHook } from "../contract/Event.ts"
import type { Application } from "./DecideStart.ts"
import type { Sandbox } from "./Sandbox.ts"

const none: ReadonlyArray<FlowHook> = []
const notFound = { _tag: "NotFound" as const, detail: "no such subscription" }

/** 4.11 */
export const listFlowHooks = (_: Sandbox["Service"], _application: Application) => Effect.succeed(none)
export const createFlowHooks = (_: Sandbox["Service"], _application: Application, _payload: unknown) =>
  Effect.succeed(none)
export const updateFlowHooks = (_: Sandbox["Service"], _application: Application, _payload: unknown) =>
  Effect.fail(notFound)
export const deleteFlowHooks = (_: Sandbox["Service"], _application: Application, _payload: unknown) =>
  Effect.fail(notFound)
