/**
 * `end_hook` of an execution (section 2.4): the outcome of delivering its `ended`. The reference shows when
 * a value applies only for `skipped` and for the background retries; the others are own choice.
 */
import type { endHooks } from "../../service/Vocabulary.ts"
import { findRecord, rulesFor } from "../state/HookState.ts"
import type { DeliveryRecord, HookState } from "../state/HookState.ts"
import { raisesEvent } from "../engines/EngineCatalogue.ts"
import { closesAt } from "../state/SandboxState.ts"
import type { Execution } from "../state/SandboxState.ts"

export type EndHook = (typeof endHooks)[number]

/** `doubtful` and `failed` are tried again, `ko` is given up. */
const outcomeOf = (record: DeliveryRecord): EndHook => {
  if (record.outcome === "delivered") return record.attempts === 1 ? "delivered" : "re_delivered"
  return record.nextAt === undefined ? "ko" : record.outcome
}

/**
 * The first rule bound to `ended` decides, an application's own before global ones (own choice). Once the
 * outcome is known it stays, whatever happens to the rule.
 */
export const endHookOf = (hooks: HookState, execution: Execution, at: number): EndHook => {
  const { application, execution_id } = execution.started
  if (hooks.rules.size === 0 && hooks.deliveries.size === 0) return "skipped"
  if (!raisesEvent(execution.started.engine_reference, "ended")) return "skipped"
  const endedAt = closesAt(execution)
  const bound = rulesFor(hooks, application, "ended").find((rule) => endedAt > at || endedAt >= rule.since)
  if (bound === undefined) {
    const records = hooks.deliveries.get(execution_id) ?? []
    const settled = records.find(
      ({ event, nextAt, outcome }) => event === "ended" && (outcome === "delivered" || nextAt === undefined),
    )
    return settled === undefined ? "skipped" : outcomeOf(settled)
  }
  const record = findRecord(hooks, execution_id, { event: "ended", ordinal: 0, rule: bound.id })
  return record === undefined ? "pending" : outcomeOf(record)
}
