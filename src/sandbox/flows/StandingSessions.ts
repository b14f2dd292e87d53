/**
 * Sessions that exist without anybody using a widget, so that a client that pulls sessions has some to
 * pull: every ObjectId that begins with `5e55000000000000` is one of application sandbox-app-1, and its
 * last eight hex digits choose what happens in it. Its life is placed around the time of its first read.
 */
import { consentDocuments, defaultSignature } from "../data/Documents.ts"
import { findEngine } from "../engines/EngineCatalogue.ts"
import type { EngineDefinition } from "../engines/EngineDefinition.ts"
import { endOf, planTimeline, readBehaviour } from "../executions/Behaviour.ts"
import { askedFeatures, planResults } from "../executions/PlanResults.ts"
import { drawScript, readFlowPlan, standingScripts } from "./StandingScripts.ts"
import type { StandingScript } from "./StandingScripts.ts"
import type { FlowSessionCreated, FlowSourcePlan, FlowStep, TakenStep } from "../state/FlowMoves.ts"
import { recordsCustomerOf } from "../state/FlowTimeline.ts"
import { fingerprint } from "../state/Reading.ts"

// A connected source follows the words and seed of an execution; a person is there, so it begins at once.

interface SourceInput {
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

const standingPrefix = "5e55000000000000"
/** The application whose secret is `sandbox-app-1`. */
const standingApplication = "65f0c0ffee00000000000001"
/** From here on, the seed chooses. Lower numbers without a script are sessions that do not exist. */
export const firstDrawnScript = 256

type StandingSessionId = `${typeof standingPrefix}${string}`

/** The id of a standing session, for jobs and simulations: 0 to 4294967295. */
export const standingSessionId = (script: number): StandingSessionId =>
  `${standingPrefix}${Math.trunc(script).toString(16).padStart(8, "0").slice(-8)}`

const numberOf = (session_id: string): number | undefined =>
  session_id.startsWith(standingPrefix) && /^[0-9a-f]{24}$/.test(session_id)
    ? Number.parseInt(session_id.slice(standingPrefix.length), 16)
    : undefined

const scriptOf = (seed: number, number: number): StandingScript | undefined =>
  number < firstDrawnScript ? standingScripts[number] : drawScript(seed, number)

/** What kind of session an id names under a seed; undefined if it is not a standing session. */
export const standingScriptOf = (seed: number, session_id: string): StandingScript | undefined => {
  const number = numberOf(session_id)
  return number === undefined ? undefined : scriptOf(seed, number)
}

interface Planning {
  readonly seed: number
  readonly created: FlowSessionCreated
  readonly connections: Map<string, number>
}

const planStep = (
  { seed, created, connections }: Planning,
  at: number,
  [, name, what = "", words = ""]: StandingScript["steps"][number],
) => {
  switch (name) {
    case "start":
      return {
        _tag: name,
        user_ip: "198.51.100.7",
        user_agent: "Mozilla/5.0 (X11; Linux x86_64) Sandbox/1.0",
        origin: "https://widget.sandbox.invalid",
      } satisfies FlowStep
    case "consent": {
      const documents = consentDocuments.map(({ document_id, version, hash }) => ({
        document_id,
        version,
        hash,
        ...defaultSignature,
      }))
      return { _tag: name, features: created.features, documents } satisfies FlowStep
    }
    case "connect": {
      const engine = findEngine(what)
      if (engine === undefined) return undefined
      const ordinal = connections.get(what) ?? 0
      connections.set(what, ordinal + 1)
      const source = planSource({ seed, at, created, engine, features: created.features, words, ordinal })
      return { _tag: name, source } satisfies FlowStep
    }
    default:
      return { _tag: name } satisfies FlowStep
  }
}

interface StandingPlan {
  readonly created: FlowSessionCreated
  readonly steps: ReadonlyArray<TakenStep>
}

/** How long before the customer's first step the client created the session. */
const aheadMs = 60_000

/** The session with this id as of its first read, at `at`; undefined if there is none. */
export const planStanding = (seed: number, at: number, session_id: string): StandingPlan | undefined => {
  const script = standingScriptOf(seed, session_id)
  if (script === undefined) return undefined
  const engines = script.steps.flatMap(([, name, what]) =>
    name === "connect" && what !== undefined ? [what] : [],
  )
  const startsAt = at + (script.steps[0]?.[0] ?? 0) * 1000
  const created: FlowSessionCreated = {
    _tag: "FlowSessionCreated",
    at: Math.min(at, startsAt) - aheadMs,
    application: standingApplication,
    session_id,
    customer_id: `standing-${numberOf(session_id) ?? 0}`,
    features: featuresOf(engines.length === 0 ? ["sandbox-tax:website"] : engines),
    plan: readFlowPlan(script.words ?? ""),
  }
  const planning: Planning = { seed, created, connections: new Map() }
  const steps = script.steps.flatMap((planned): ReadonlyArray<TakenStep> => {
    const stepAt = at + planned[0] * 1000
    const step = planStep(planning, stepAt, planned)
    return step === undefined ? [] : [{ at: stepAt, step }]
  })
  return { created, steps }
}
