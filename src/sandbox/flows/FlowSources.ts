/**
 * Plans a source that a customer connects in a flow session, with the same words and the same seed as an
 * execution of that engine: a person is present, so it begins within seconds and may ask for a second factor.
 */
import { readBehaviour } from "../executions/Behaviour.ts"
import { findEngine } from "../engines/EngineCatalogue.ts"
import type { EngineDefinition } from "../engines/EngineDefinition.ts"
import type { FlowSessionCreated, FlowSourcePlan } from "../state/FlowEvent.ts"
import { recordsCustomerOf } from "../state/FlowTimeline.ts"
import { askedFeatures, planResults } from "../executions/PlanResults.ts"
import { endOf, planTimeline } from "../executions/PlanTimeline.ts"
import { fingerprint } from "../state/Seeded.ts"

export interface SourceInput {
  readonly seed: number
  /** When the customer connects it. */
  readonly at: number
  readonly created: FlowSessionCreated
  readonly engine: EngineDefinition
  readonly features: ReadonlyArray<string>
  readonly words: string
  /** How many times this session connected this engine before. */
  readonly ordinal: number
}

/** Section 8: the default of `execution_timeout`. */
const timeoutMs = 1_200_000

export const planSource = (input: SourceInput): FlowSourcePlan => {
  const { seed, at, created, engine, features, words, ordinal } = input
  const behaviour = readBehaviour(words)
  const customer_id = recordsCustomerOf(created)
  const engine_reference = engine.reference
  const asked = askedFeatures(engine, { customer_id, engine_reference, parameters: {}, features })
  const about = { seed, customer_id, engine_reference, ordinal, behaviour }
  const results = planResults({ ...about, at, asked, end: endOf(behaviour, ordinal) })
  return {
    source_id: fingerprint("flow-source", created.session_id, engine_reference, ordinal).slice(0, 16),
    engine_reference,
    timeline: planTimeline({ ...about, application: created.application, interaction: true, timeoutMs }),
    results: created.plan.company ? { ...results, company: true } : results,
  }
}

/** The features that these engines offer, each once. */
export const featuresOf = (references: ReadonlyArray<string>): ReadonlyArray<string> => [
  ...new Set(references.flatMap((reference) => findEngine(reference)?.features ?? [])),
]
