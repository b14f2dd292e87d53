/**
 * The records of an execution and the flow results body around them (sections 2.7 and 4.10), made on
 * reading. A record depends on seed, customer, engine and feature only: another attempt gives the same
 * data, `fetch_date` aside.
 */
import type { StatusReason } from "../contract/Vocabulary.ts"
import { documentsOf } from "./Documents.ts"
import { featuresAt } from "./Messages.ts"
import { familyOf, kindsOf, oddProduct, oddSubFamily, retrievedByFeature } from "./PlanResults.ts"
import { resultsAreFinal, resultsAreWhole, retrievedAt } from "./Progress.ts"
import type { FeaturePlan } from "./SandboxEvent.ts"
import { closesAt, momentAt } from "./SandboxState.ts"
import type { Execution } from "./SandboxState.ts"
import { fingerprint, seeded } from "./Seeded.ts"

type Record_ = Readonly<Record<string, unknown>>

/** The reference shows the shapes of these families; all others are this service's own and say so. */
const documented: ReadonlySet<string> = new Set(["customer_information", "academic_data"])

const recordOf = (seed: number, execution: Execution, feature: FeaturePlan, position: number): Record_ => {
  const { customer_id, engine_reference } = execution.started
  const family = familyOf(feature.code)
  const kinds = kindsOf(feature)
  const kind = kinds[position % kinds.length] ?? feature.code
  if (family === undefined) return {}
  const draw = seeded("record", seed, customer_id, engine_reference, feature.code, kind, position)
  const fetched = execution.phases.find((phase) => phase.authentication_status === "AUTH_OK")
  return {
    product: family.product,
    sub_family: kind,
    fetch_date: new Date((fetched?.from ?? execution.started.at) + position).toISOString(),
    ...(documented.has(family.product) ? {} : { shape: "nightjar-sandbox" }),
    ...family.make({ seed, customer_id, engine_reference, position, kind, detailed: feature.detailed, draw }),
  }
}

/** `odd`: breaks its schema; unheard of; a number that a double cannot hold. */
const oddRecords = (execution: Execution): ReadonlyArray<Record_> => {
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

/** Records by feature, in order. */
const recordsBy = (seed: number, execution: Execution, retrieved: number): Array<Record_> => {
  const { results } = execution.started
  const records: Array<Record_> = []
  retrievedByFeature(results, retrieved).forEach((count, index) => {
    const feature = results.features[index]
    if (feature === undefined) return
    for (let position = 0; position < count; position += 1) {
      records.push(recordOf(seed, execution, feature, position))
    }
  })
  return records
}

/**
 * A record that the source shows for a while and then takes back; its position is one that no plan reaches.
 */
const passingRecord = (seed: number, execution: Execution): ReadonlyArray<Record_> => {
  const feature = execution.started.results.features.find(({ records }) => records > 0)
  return feature === undefined ? [] : [recordOf(seed, execution, feature, 2_000_000)]
}

const withAttachments = (records: ReadonlyArray<Record_>, execution: Execution, complete: boolean) => {
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

const dataOf = (seed: number, execution: Execution, at: number) => {
  const { closed } = momentAt(execution, at)
  const retrieved = retrievedAt(execution, at)
  const complete = resultsAreWhole(execution, at)
  const whole = recordsBy(seed, execution, retrieved)
  const odd = execution.started.results.odd && complete && retrieved > 0 ? oddRecords(execution) : []
  const unsettled = closed && !resultsAreFinal(execution, at) && execution.started.results.lateMs > 0
  const shown = unsettled
    ? [...whole.slice(0, -1), ...passingRecord(seed, execution), ...odd]
    : [...whole, ...odd]
  const { bearing, listed } = withAttachments(shown, execution, complete)
  const byProduct: Record<string, Array<Record_>> = {}
  for (const record of bearing) {
    const product = String(record["product"])
    ;(byProduct[product] ??= []).push(record)
  }
  return {
    ...byProduct,
    ...(listed.length === 0
      ? {}
      : {
          documents: listed.map(({ attachment_id, title, media_type }) => ({
            title,
            media_type,
            attachment_id,
          })),
        }),
  }
}

const sessionStatuses: Readonly<Partial<Record<StatusReason, string>>> = {
  COMPLETED: "COMPLETED",
  PARTIAL: "COMPLETED",
  CLIENT_CANCELLED: "CLIENT_CANCELLED",
  USER_CANCELLED: "CUSTOMER_CANCELLED",
  SYSTEM_CANCELLED: "SYSTEM_CANCELLED",
  TIMEOUT: "TIMED_OUT",
  ACTION_TIMEOUT: "TIMED_OUT",
}

const consentOf = (seed: number, execution: Execution) => {
  const { customer_id, results, at } = execution.started
  const draw = seeded("consent", seed, customer_id)
  const accepted = new Date(at - draw.int(5, 90) * 60_000).toISOString()
  const documents = ["terms", "privacy"].map((name) => [
    `${name}-es`,
    {
      version: `${draw.int(1, 4)}.${draw.int(0, 9)}`,
      hash: fingerprint("consent-document", name),
      sign_date: accepted,
      signature_provider: "nightjar-sandbox",
      signature_metadata: { channel: "widget", pages: draw.int(1, 6) },
    },
  ])
  return {
    accepted_date: accepted,
    accepted_features: results.features.map(({ code }) => code),
    user_ip: `203.0.113.${draw.int(1, 254)}`,
    user_agent: "Mozilla/5.0 (X11; Linux x86_64) Sandbox/1.0",
    origin: "https://widget.sandbox.invalid",
    accepted_documents: Object.fromEntries(documents),
  }
}

const retrievedOutcomes: ReadonlySet<string> = new Set(["FEATURE_COMPLETED", "FEATURE_PARTIAL"])

/** 2.7. `session_status` and `session_cursor` are this service's own names: the reference shows none. */
export const flowResultsBody = (seed: number, execution: Execution, at: number) => {
  const { closed, phase } = momentAt(execution, at)
  const retrieved_features = featuresAt(execution, at)
    .filter(({ status_reason }) => retrievedOutcomes.has(status_reason))
    .map(({ code }) => code)
  const status = closed ? (sessionStatuses[phase.status_reason] ?? "FAILED") : "WAITING"
  const cursor = closed ? (status === "COMPLETED" ? "bye:completed" : "bye:failure") : "connect:wait"
  return {
    session_id: execution.started.session_id,
    data: dataOf(seed, execution, at),
    retrieved_features,
    consent: consentOf(seed, execution),
    is_closed: resultsAreFinal(execution, at),
    session_status: status,
    session_cursor: `es-public-administration:${cursor}`,
  }
}

/** 4.12: the answer is not shown; this is this service's own, around the documented record. */
export const profileBody = (seed: number, execution: Execution, at: number): Record_ | undefined => {
  const { features } = execution.started.results
  const index = features.findIndex(({ code }) => code === "customer_information_read")
  const feature = features[index]
  const retrieved = retrievedByFeature(execution.started.results, retrievedAt(execution, at))[index] ?? 0
  if (feature === undefined || retrieved === 0) return undefined
  return {
    shape: "nightjar-sandbox",
    execution_id: execution.started.execution_id,
    session_id: execution.started.session_id,
    customer_id: execution.started.customer_id,
    is_closed: momentAt(execution, at).closed,
    profile: recordOf(seed, execution, feature, 0),
  }
}
