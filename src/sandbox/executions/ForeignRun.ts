/**
 * Somebody else's run of a customer on an engine, created by a behaviour word: it answers reads like any
 * other but is not the caller's. There is one per customer and engine.
 */
import type { Look } from "../core/SandboxCore.ts"
import type { EngineDefinition } from "../engines/EngineDefinition.ts"
import { askedFeatures, planResults } from "./PlanResults.ts"
import { planTimeline } from "./PlanTimeline.ts"
import type { Started } from "../state/SandboxEvent.ts"
import type { SandboxState } from "../state/SandboxState.ts"
import { executionIds, fingerprint } from "../state/Seeded.ts"

interface Access {
  readonly application: string
  readonly customer_id: string
  readonly engine_reference: string
}

/** In flight since `at`, for `foreignMs`. */
export const foreignRun = (
  { seed, at, reading }: Look,
  access: Access,
  engine: EngineDefinition,
  foreignMs: number,
): Started => {
  const { application, customer_id, engine_reference } = access
  const behaviour = { queueMs: 0, runMs: foreignMs }
  const about = { seed, ...access, ordinal: 0, behaviour }
  const asked = askedFeatures(engine, { customer_id, engine_reference, parameters: {} })
  return {
    _tag: "Started",
    at,
    ...access,
    ...executionIds(reading, seed, "foreign", application, customer_id, engine_reference, at),
    external_execution_id: `somebody-else-${fingerprint("foreign", seed, customer_id).slice(0, 8)}`,
    foreign: true,
    timeline: planTimeline({ ...about, interaction: false, timeoutMs: Math.max(foreignMs, 1_200_000) }),
    results: planResults({ seed, customer_id, engine_reference, asked, behaviour, end: "COMPLETED", at }),
    login_key: fingerprint("foreign-login", seed, customer_id),
    locking_hash: `v1.${fingerprint("foreign-locking", seed, customer_id)}`,
    parameters_errors: [],
    configurations_errors: [],
  }
}

export const hadForeignRun = (state: SandboxState, access: Access): boolean =>
  [...state.executions.values()].some(
    ({ started }) =>
      started.foreign &&
      started.application === access.application &&
      started.customer_id === access.customer_id &&
      started.engine_reference === access.engine_reference,
  )
