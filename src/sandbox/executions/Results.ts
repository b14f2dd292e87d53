/**
 * The records of an execution and the flow results body around them (sections 2.7 and 4.10), made when they
 * are read. A record depends only on seed, customer, engine and feature: another attempt gives the same
 * data, except `fetch_date`.
 */
import { Struct } from "effect"
import { documentsOf, inventedConsent } from "../data/Documents.ts"
import { featuresAt } from "./StateBody.ts"
import { familyOf, kindsOf, oddProduct, oddSubFamily, resultsAreFinal } from "./PlanResults.ts"
import { resultsAreWhole, retrievedAt, retrievedByFeature } from "./PlanResults.ts"
import { flowMoves } from "../state/FlowMoves.ts"
import { sessionEnds } from "../state/FlowTimeline.ts"
import { dayOf, type FeaturePlan, type Retrieval } from "../state/ResultsPlan.ts"
import { closesAt, momentAt, type Execution } from "../state/SandboxState.ts"
import { seeded } from "../state/Reading.ts"
import { acceptedIn } from "../state/Timeline.ts"

type Record_ = Readonly<Record<string, unknown>>

/** The reference shows the shapes of these families; all others are this service's own and marked as such. */
const documented: ReadonlySet<string> = new Set(["customer_information", "academic_data"])

const recordOf = (seed: number, execution: Retrieval, feature: FeaturePlan, position: number): Record_ => {
  const { customer_id, engine_reference } = execution.started
  const family = familyOf(feature.code)
  const kinds = kindsOf(feature)
  const kind = kinds[position % kinds.length] ?? feature.code
  if (family === undefined) return {}
  const nth = Math.floor(position / kinds.length)
  const draw = seeded("record", seed, customer_id, engine_reference, feature.code, kind, nth)
  const fetched = acceptedIn(execution.phases)
  return {
    product: family.product,
    sub_family: kind,
    fetch_date: new Date((fetched?.from ?? execution.started.at) + position).toISOString(),
    ...(documented.has(family.product) ? {} : { shape: "nightjar-sandbox" }),
    ...family.make({
      seed,
      customer_id,
      engine_reference,
      position,
      kind,
      nth,
      settings: feature.settings ?? {},
      shielded: feature.shielded ?? false,
      today: dayOf(execution.started.at),
      company: execution.started.results.company ?? false,
      draw,
    }),
  }
}

/** `odd`: breaks its schema; unknown; a number that a double cannot hold. */
const oddRecords = (execution: Retrieval): ReadonlyArray<Record_> => {
  const fetch_date = new Date(closesAt(execution)).toISOString()
  const strange = { product: oddProduct, sub_family: oddSubFamily, fetch_date }
  return [
    {
      product: "customer_information",
      sub_family: "customer_information:user_profile",
      fetch_date,
      type: "person",
      gender: 7,
      emails: "ninguno",
    },
    { ...strange, note: '=HYPERLINK("https://x.invalid")' },
    { ...strange, serial: rawJson.rawJSON("9007199254740993") },
  ]
}

/** JSON.rawJSON is in every Node that this runs on, but not yet in the type library. */
const rawJson = JSON as typeof JSON & { readonly rawJSON: (text: string) => unknown }

const recordsBy = (seed: number, execution: Retrieval, retrieved: number): Array<Record_> => {
  const { results } = execution.started
  return retrievedByFeature(results, retrieved).flatMap((count, index) => {
    const feature = results.features[index]
    if (feature === undefined) return []
    return Array.from({ length: count }, (_, position) => recordOf(seed, execution, feature, position))
  })
}

/** A record that the source shows for a while and then withdraws; no plan reaches its position. */
const passingRecord = (seed: number, execution: Retrieval): ReadonlyArray<Record_> => {
  const feature = execution.started.results.features.find(({ records }) => records > 0)
  return feature === undefined ? [] : [recordOf(seed, execution, feature, 2_000_000)]
}

const withAttachments = (records: ReadonlyArray<Record_>, execution: Retrieval, complete: boolean) => {
  const documents = complete ? documentsOf(execution) : []
  const bearer = records.findLastIndex((record) => record["shape"] !== undefined)
  const borne = bearer < 0 ? [] : documents.filter((_, index) => index % 2 === 1)
  const listed = documents.filter((document) => !borne.includes(document))
  const bearing = records.map((record, index) =>
    index === bearer && borne.length > 0
      ? { ...record, report_attachments: borne.map((document) => document.attachment_id) }
      : record,
  )
  return { bearing, listed }
}

/** One source of a session's results, and whether it is final. */
export interface ShownRetrieval {
  readonly retrieval: Retrieval
  readonly final: boolean
}

const shownRecords = (seed: number, { retrieval, final }: ShownRetrieval, at: number) => {
  const { results } = retrieval.started
  const retrieved = retrievedAt(retrieval, at)
  const complete = resultsAreWhole(retrieval, at)
  const whole = recordsBy(seed, retrieval, retrieved)
  const odd = results.odd && complete && retrieved > 0 ? oddRecords(retrieval) : []
  const unsettled = momentAt(retrieval, at).closed && !final && results.lateMs > 0
  const shown = unsettled
    ? [...whole.slice(0, -1), ...passingRecord(seed, retrieval), ...odd]
    : [...whole, ...odd]
  return withAttachments(shown, retrieval, complete)
}

/** 2.7, `data`: the records of all sources by product, and the documents that belong to no record. */
export const retrievalData = (seed: number, sources: ReadonlyArray<ShownRetrieval>, at: number) => {
  const shown = sources.map((source) => shownRecords(seed, source, at))
  const byProduct: Record<string, Array<Record_>> = {}
  for (const record of shown.flatMap(({ bearing }) => bearing)) {
    const product = String(record["product"])
    ;(byProduct[product] ??= []).push(record)
  }
  const listed = shown.flatMap(({ listed: documents }) => documents)
  return { ...byProduct, ...(listed.length === 0 ? {} : { documents: listed }) }
}

const retrievedOutcomes: ReadonlySet<string> = new Set(["FEATURE_COMPLETED", "FEATURE_PARTIAL"])

/** 2.7: what a source has returned so far, all or part of it. */
export const retrievedFeatures = (retrieval: Retrieval, at: number): ReadonlyArray<string> =>
  featuresAt(retrieval, at)
    .filter(({ status_reason }) => retrievedOutcomes.has(status_reason))
    .map(({ code }) => code)

/** 2.7: the session status code of an execution's session. */
export const sessionStatusAt = (execution: Execution, at: number): string => {
  const { closed, phase } = momentAt(execution, at)
  return closed ? flowMoves[sessionEnds[phase.status_reason] ?? "failed"].status : "WAITING"
}

/** 2.7. `session_status` and `session_cursor` are this service's own names: the reference shows none. */
export const flowResultsBody = (seed: number, execution: Execution, at: number) => {
  const { closed } = momentAt(execution, at)
  const final = resultsAreFinal(execution, at)
  const status = sessionStatusAt(execution, at)
  const cursor = closed ? (status === "COMPLETED" ? "bye:completed" : "bye:failure") : "connect:wait"
  return {
    session_id: execution.started.session_id,
    data: retrievalData(seed, [{ retrieval: execution, final }], at),
    retrieved_features: retrievedFeatures(execution, at),
    consent: inventedConsent(seed, execution),
    is_closed: final,
    session_status: status,
    session_cursor: `es-public-administration:${cursor}`,
  }
}

/** 4.12: the answer is not shown; this is this service's own, around the documented record. */
export const profileBody = (seed: number, execution: Execution, at: number) => {
  const { results } = execution.started
  const { features } = results
  const index = features.findIndex(({ code }) => code === "customer_information_read")
  const feature = features[index]
  const retrieved = retrievedByFeature(results, retrievedAt(execution, at))[index] ?? 0
  if (feature === undefined || retrieved === 0) return undefined
  return {
    shape: "nightjar-sandbox",
    ...Struct.pick(execution.started, ["execution_id", "session_id", "customer_id"]),
    is_closed: momentAt(execution, at).closed,
    profile: recordOf(seed, execution, feature, 0),
  }
}

/** 4.12, own addition: one family's records as in the flow results. */
export const familyBody = (seed: number, execution: Execution, family: string, at: number) => {
  const is_final = resultsAreFinal(execution, at)
  const { bearing } = shownRecords(seed, { retrieval: execution, final: is_final }, at)
  const records = bearing.filter((record) => String(record["sub_family"]).startsWith(`${family}:`))
  return records.length === 0 ? undefined : { records, is_final }
}
