/**
 * What a run will retrieve: the requested features that its engine offers, how many records of each, and
 * how they are counted (`<family>:<subtype>@<product>`, section 2.4). Counts depend only on the plan,
 * without making a single record, so that thousands of executions cost no memory.
 */
import { given } from "../../base/Schemas.ts"
import { civicFamilies } from "../data/CivicRecords.ts"
import type { RecordFamily } from "../data/Person.ts"
import { financialFamilies, personalFamilies } from "../data/PersonalRecords.ts"
import { findEngine } from "../engines/EngineCatalogue.ts"
import type { EngineDefinition } from "../engines/EngineDefinition.ts"
import { isOpenOutcome, type Behaviour } from "./Behaviour.ts"
import { seeded } from "../state/Reading.ts"
import { dayOf, settleFeature } from "../state/ResultsPlan.ts"
import type { FeaturePlan, ResolvedSettings, ResultsPlan, Retrieval } from "../state/ResultsPlan.ts"
import { closesAt, momentAt } from "../state/SandboxState.ts"
import type { StartRequest } from "../../service/Execution.ts"
import type { Feature, FeatureStatusReason, StatusReason } from "../../service/Vocabulary.ts"

/** Every feature of 2.1 has a family: the type checker ensures it. */
const byFeature: Readonly<Record<Feature, RecordFamily>> = {
  ...financialFamilies,
  ...civicFamilies,
  ...personalFamilies,
}
const families: ReadonlyMap<string, RecordFamily> = new Map(Object.entries(byFeature))
export const familyOf = (code: string): RecordFamily | undefined => families.get(code)

export interface AskedFeature {
  readonly code: string
  readonly configurations: Readonly<Record<string, unknown>>
  /** Its position in the request, for error locations; undefined for a default. */
  readonly position: number | undefined
}

/** 4.1: without a list, the defaults run; what the engine does not implement is silently ignored. */
export const askedFeatures = (engine: EngineDefinition, request: StartRequest) => {
  const asked: ReadonlyArray<AskedFeature> =
    request.features === undefined
      ? engine.defaults.map((code) => ({ code, configurations: {}, position: undefined }))
      : request.features.map((feature, position) => {
          const { code, configurations = {} } = typeof feature === "string" ? { code: feature } : feature
          return { code, configurations, position }
        })
  const offered = asked.filter(({ code }) => engine.features.some((known) => known === code))
  return offered.filter(({ code }, index) => offered.findIndex((one) => one.code === code) === index)
}

/** The kinds of a feature, narrowed by its settings if they name some, in the family's order. */
const narrowedKinds = (
  family: RecordFamily,
  { code, configurations }: AskedFeature,
  settings: ResolvedSettings,
): ReadonlyArray<string> => {
  if (code === "labor_check") {
    const { work_life_report, contribution_base_report } = settings
    return family.kinds.filter((kind) =>
      kind === "labor_check:work_life" ? work_life_report === true : contribution_base_report === true,
    )
  }
  const wanted = [configurations["filter_by_type"], configurations["preferred_type"]].flat()
  const narrowed = family.kinds.filter((kind) => wanted.includes(kind))
  return narrowed.length === 0 ? family.kinds : narrowed
}

/** What a source has of a feature if no word sets it; a filter leaves out, it does not replace. */
const usualCount = (
  { seed, customer_id, engine_reference, at }: ResultsInput,
  { code, configurations }: AskedFeature,
  family: RecordFamily,
  settings: ResolvedSettings,
  kinds: ReadonlyArray<string>,
): number => {
  if (settings.last_n_years !== undefined) return settings.last_n_years
  if (family.countByDates !== undefined) {
    const today = dayOf(at)
    return kinds.length * family.countByDates({ seed, customer_id, engine_reference, settings, today })
  }
  const [min, max] = family.usual
  const count = seeded("count", seed, customer_id, engine_reference, code).int(min, max)
  if (configurations["filter_by_type"] === undefined) return count
  return family.kinds
    .map((kind, turn) => (kinds.includes(kind) ? countOfTurn(count, turn, family.kinds.length) : 0))
    .reduce((sum, ofKind) => sum + ofKind, 0)
}

/** How many of `records`, dealt to kinds in turn, one kind has. */
const countOfTurn = (records: number, turn: number, kinds: number): number =>
  Math.max(0, Math.floor((records - turn + kinds - 1) / kinds))

/** `records-N` deals N records to the features in turn. */
const dealtCount = (total: number, features: number, position: number): number =>
  Math.floor(total / features) + (position < total % features ? 1 : 0)

interface ResultsInput {
  readonly seed: number
  readonly customer_id: string
  readonly engine_reference: string
  readonly asked: ReadonlyArray<AskedFeature>
  readonly behaviour: Behaviour
  readonly end: StatusReason
  /** The time of the start: relative dates are resolved with it. */
  readonly at: number
  /** 4.1, `unlock_protected_data`. */
  readonly unlocked?: boolean
}

/** What a feature returns if its outcome is set. */
const recordsOfOutcome = (full: number, outcome: FeatureStatusReason): number =>
  outcome === "FEATURE_COMPLETED" ? full : outcome === "FEATURE_PARTIAL" ? Math.ceil(full / 2) : 0

/** A word that sets one feature's outcome makes the run partial, not the other way round. */
const outcomeOf = ({ asked, behaviour, end }: ResultsInput, position: number): FeatureStatusReason => {
  const isLast = position === asked.length - 1
  const set = behaviour.featureEnd
  const isSet = set !== undefined && !isOpenOutcome(set)
  if (isSet && isLast) return set
  if (end === "FAILED") return "FEATURE_FAILED"
  if (end !== "PARTIAL" || isSet || !isLast) return "FEATURE_COMPLETED"
  return asked.length === 1 ? "FEATURE_PARTIAL" : "FEATURE_FAILED"
}

const planFeature = (input: ResultsInput, feature: AskedFeature, position: number): FeaturePlan => {
  const { asked, behaviour, at } = input
  const { code } = feature
  const engine = findEngine(input.engine_reference)
  const family = familyOf(code)
  const { settings, adapted } = settleFeature(code, feature.configurations, at, engine?.keepsMonths)
  const kinds = family === undefined ? [] : narrowedKinds(family, feature, settings)
  const full =
    kinds.length === 0 || family === undefined
      ? 0
      : behaviour.records === undefined
        ? usualCount(input, feature, family, settings, kinds)
        : dealtCount(behaviour.records, asked.length, position)
  const shielded = input.unlocked !== true && engine?.shields.some((shield) => shield === code) === true
  const outcome = outcomeOf(input, position)
  return {
    code,
    records: recordsOfOutcome(full, outcome),
    outcome,
    ...given({
      settings: Object.keys(settings).length === 0 ? undefined : settings,
      adapted: adapted.length === 0 ? undefined : adapted,
      shielded: shielded || undefined,
      said: position === asked.length - 1 ? behaviour.featureEnd : undefined,
      kinds: kinds.length === family?.kinds.length ? undefined : kinds,
    }),
  }
}

export const planResults = (input: ResultsInput): ResultsPlan => ({
  features: input.asked.map((feature, position) => planFeature(input, feature, position)),
  session: input.behaviour.session ?? "answers",
  neverFinal: input.behaviour.neverFinal ?? false,
  lateMs: input.behaviour.lateMs ?? 0,
  lockedMs: input.behaviour.lockedMs ?? 0,
  documents: input.behaviour.documents ?? 0,
  odd: input.behaviour.odd ?? false,
  ...given({ company: input.behaviour.company }),
})

export const kindsOf = (feature: FeaturePlan): ReadonlyArray<string> =>
  feature.kinds ?? familyOf(feature.code)?.kinds ?? []

const sumOf = (features: ResultsPlan["features"]): number =>
  features.reduce((total, { records }) => total + records, 0)
export const recordsPlanned = ({ features }: ResultsPlan): number => sumOf(features)

/** What comes before one feature's own records. */
const recordsBefore = ({ features }: ResultsPlan, code: string): number => {
  const index = features.findIndex((feature) => feature.code === code)
  return sumOf(features.slice(0, Math.max(0, index)))
}

/** Of the first `retrieved` records of a plan, how many belong to each feature, in order. */
export const retrievedByFeature = (plan: ResultsPlan, retrieved: number): ReadonlyArray<number> => {
  let left = retrieved
  return plan.features.map((feature) => {
    const taken = Math.min(feature.records, left)
    left -= taken
    return taken
  })
}

/** The key under which odd records are counted: a family that nobody documents. */
export const oddSubFamily = "sandbox_oddity:unheard_of"
export const oddProduct = "sandbox_oddity"
const oddProfile = "customer_information:user_profile@customer_information"

/** 2.4: the counts of the first `retrieved` records; kinds without a record have no key. */
export const countProducts = (plan: ResultsPlan, retrieved: number): Readonly<Record<string, number>> => {
  const counts: Record<string, number> = {}
  retrievedByFeature(plan, retrieved).forEach((records, index) => {
    const feature = plan.features[index]
    const family = feature === undefined ? undefined : familyOf(feature.code)
    if (feature === undefined || family === undefined) return
    const kinds = kindsOf(feature)
    kinds.forEach((kind, turn) => {
      const count = countOfTurn(records, turn, kinds.length)
      if (count > 0) counts[`${kind}@${family.product}`] = count
    })
  })
  if (plan.odd && retrieved > 0 && retrieved >= recordsPlanned(plan)) {
    counts[oddProfile] = (counts[oddProfile] ?? 0) + 1
    counts[`${oddSubFamily}@${oddProduct}`] = 2
  }
  return counts
}

const goodEnds: ReadonlySet<StatusReason> = new Set<StatusReason>(["COMPLETED", "PARTIAL", "FAILED"])

/** How many of the planned records there are at `at`: all after a good end, else by the work done. */
export const retrievedAt = (execution: Retrieval, at: number): number => {
  const { phase, closed, workedMs } = momentAt(execution, at)
  if (phase.authentication_status !== "AUTH_OK") return 0
  const { timeline, results } = execution.started
  const planned = recordsPlanned(results)
  const reachable = phase.heldBy === undefined ? planned : recordsBefore(results, phase.heldBy)
  if (closed && goodEnds.has(phase.status_reason)) return planned
  // A run without work has done it when it comes to its own end, but not when it is stopped before.
  const isThrough = closed && phase.status_reason === timeline.end
  const done = timeline.workMs === 0 ? Number(isThrough) : workedMs / timeline.workMs
  // A run that is going to break off never has everything.
  const reach = goodEnds.has(timeline.end) ? 1 : 0.5
  return Math.min(reachable, Math.floor(planned * done * reach))
}

export const resultsAreFinal = (execution: Retrieval, at: number): boolean => {
  const { lateMs, neverFinal } = execution.started.results
  return !neverFinal && momentAt(execution, at).closed && at >= closesAt(execution) + lateMs
}

/** Every planned record is there: documents can be downloaded. */
export const resultsAreWhole = (execution: Retrieval, at: number): boolean => {
  const { closed, phase } = momentAt(execution, at)
  if (!closed || phase.authentication_status !== "AUTH_OK") return false
  return retrievedAt(execution, at) === recordsPlanned(execution.started.results)
}
