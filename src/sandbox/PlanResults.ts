/**
 * What a run will retrieve: the features its engine offers out of those asked for, how many records of
 * each, and how they are counted (`<family>:<subtype>@<product>`, section 2.4). Counts follow from the plan
 * alone, without making a single record, so that thousands of executions cost no memory.
 */
import type { StartRequest } from "../contract/Execution.ts"
import { features as featureCodes } from "../contract/Vocabulary.ts"
import type { Feature, FeatureStatusReason, StatusReason } from "../contract/Vocabulary.ts"
import type { Behaviour } from "./Behaviour.ts"
import { civicFamilies } from "./CivicRecords.ts"
import type { EngineDefinition } from "./EngineCatalogue.ts"
import { financialFamilies } from "./FinancialRecords.ts"
import { personalFamilies } from "./PersonalRecords.ts"
import type { RecordFamily } from "./RecordFamily.ts"
import type { FeaturePlan, ResultsPlan } from "./SandboxEvent.ts"
import { seeded } from "./Seeded.ts"

/** Every feature of 2.1 has a family: the type checker sees to it. */
const families: Readonly<Record<Feature, RecordFamily>> = {
  ...financialFamilies,
  ...civicFamilies,
  ...personalFamilies,
}
const isFeature = (code: string): code is Feature => featureCodes.some((known) => known === code)
export const familyOf = (code: string): RecordFamily | undefined =>
  isFeature(code) ? families[code] : undefined

export interface AskedFeature {
  readonly code: string
  readonly configurations: Readonly<Record<string, unknown>>
  /** Its place in the request, for error locations; undefined for a default. */
  readonly position: number | undefined
}

/** 4.1: no list runs the defaults; what the engine does not implement is ignored without a trace. */
export const askedFeatures = (
  engine: EngineDefinition,
  request: StartRequest,
): ReadonlyArray<AskedFeature> => {
  const asked: ReadonlyArray<AskedFeature> =
    request.features === undefined
      ? engine.defaults.map((code) => ({ code, configurations: {}, position: undefined }))
      : request.features.map((feature, position) =>
          typeof feature === "string"
            ? { code: feature, configurations: {}, position }
            : { code: feature.code, configurations: feature.configurations ?? {}, position },
        )
  const seen = new Set<string>()
  return asked.filter(({ code }) => {
    if (seen.has(code) || !engine.features.some((offered) => offered === code)) return false
    seen.add(code)
    return true
  })
}

/** The kinds that a feature deals, narrowed by its settings where they name some. */
const narrowedKinds = (
  family: RecordFamily,
  settings: AskedFeature["configurations"],
): ReadonlyArray<string> => {
  const wanted = [settings["filter_by_type"], settings["preferred_type"]].flat()
  const narrowed = family.kinds.filter((kind) => wanted.includes(kind))
  return narrowed.length === 0 ? family.kinds : narrowed
}

const detailSettings = ["read_transactions", "read_holders", "read_point_movements", "simple_vehicle_report"]

const usualCount = (seed: number, customer_id: string, engine: string, feature: AskedFeature): number => {
  const years = feature.configurations["last_n_years"]
  if (feature.code === "yearly_individual_tax" && typeof years === "number") return years
  const [min, max] = familyOf(feature.code)?.usual ?? [0, 0]
  return seeded("count", seed, customer_id, engine, feature.code).int(min, max)
}

/** `records-N` deals N records to the features in turn. */
const dealtCount = (total: number, features: number, position: number): number =>
  Math.floor(total / features) + (position < total % features ? 1 : 0)

const endedPartially = (records: number, position: number, features: number) => {
  const isLast = position === features - 1
  if (!isLast) return { records, outcome: "FEATURE_COMPLETED" as const }
  return features === 1
    ? { records: Math.ceil(records / 2), outcome: "FEATURE_PARTIAL" as const }
    : { records: 0, outcome: "FEATURE_FAILED" as const }
}

export interface ResultsInput {
  readonly seed: number
  readonly customer_id: string
  readonly engine_reference: string
  readonly asked: ReadonlyArray<AskedFeature>
  readonly behaviour: Behaviour
  readonly end: StatusReason
}

const planFeature = (input: ResultsInput, feature: AskedFeature, position: number): FeaturePlan => {
  const { seed, customer_id, engine_reference, asked, behaviour } = input
  const full =
    behaviour.records === undefined
      ? usualCount(seed, customer_id, engine_reference, feature)
      : dealtCount(behaviour.records, asked.length, position)
  const { records, outcome }: { records: number; outcome: FeatureStatusReason } =
    input.end === "PARTIAL"
      ? endedPartially(full, position, asked.length)
      : input.end === "FAILED"
        ? { records: 0, outcome: "FEATURE_FAILED" }
        : { records: full, outcome: "FEATURE_COMPLETED" }
  const family = familyOf(feature.code)
  const kinds = family === undefined ? [] : narrowedKinds(family, feature.configurations)
  return {
    code: feature.code,
    records,
    outcome,
    detailed: detailSettings.some((setting) => feature.configurations[setting] === true),
    ...(family === undefined || kinds.length === family.kinds.length ? {} : { kinds }),
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
})

export const kindsOf = (feature: FeaturePlan): ReadonlyArray<string> =>
  feature.kinds ?? familyOf(feature.code)?.kinds ?? []

export const recordsPlanned = (plan: ResultsPlan): number =>
  plan.features.reduce((total, feature) => total + feature.records, 0)

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

/** 2.4: the counts of the first `retrieved` records; kinds without a record have no key. */
export const countProducts = (plan: ResultsPlan, retrieved: number): Readonly<Record<string, number>> => {
  const counts: Record<string, number> = {}
  retrievedByFeature(plan, retrieved).forEach((records, index) => {
    const feature = plan.features[index]
    const family = feature === undefined ? undefined : familyOf(feature.code)
    if (feature === undefined || family === undefined) return
    const kinds = kindsOf(feature)
    kinds.forEach((kind, turn) => {
      const count = Math.floor((records - turn + kinds.length - 1) / kinds.length)
      if (count > 0) counts[`${kind}@${family.product}`] = count
    })
  })
  if (plan.odd && retrieved > 0 && retrieved >= recordsPlanned(plan)) {
    counts["customer_information:user_profile@customer_information"] =
      (counts["customer_information:user_profile@customer_information"] ?? 0) + 1
    counts[`${oddSubFamily}@${oddProduct}`] = 2
  }
  return counts
}
