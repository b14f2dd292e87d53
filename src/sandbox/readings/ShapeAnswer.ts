/**
 * How a reading changes the answers of each endpoint, and which endpoints it removes: one table for
 * everything that is decided at the service's edge. What depends on the state (ids, ends, whose id a
 * conflict names) is decided where the state is.
 */
import { Predicate, Record, Struct } from "effect"
import { given } from "../../base/Schemas.ts"
import type { FullReading } from "../state/Reading.ts"

type Fields = Readonly<Record<string, unknown>>

/** Fields that may be absent or null: if a reading wants them so, they are, even if there is a value. */
const shapeOptionals = ({ optionals }: FullReading, names: ReadonlyArray<string>, body: Fields): Fields => {
  if (optionals === "shown") return body
  const nulls = optionals === "null" ? names.map((name) => [name, null] as const) : []
  return { ...Struct.omit(body, names), ...Object.fromEntries(nulls) }
}

interface Ids {
  readonly external_execution_id?: string
}

/** 4.1: the ids of the run in flight, with the external id that the reading asks for, or null. */
export const withConflictId = <Running extends Ids>(
  { conflict_external_id }: FullReading,
  { external_execution_id: theirs, ...ids }: Running,
  { external_execution_id: ours }: Ids,
): Omit<Running, "external_execution_id"> & { readonly external_execution_id?: string | null } => {
  const shown = { running: theirs ?? null, request: ours, absent: undefined, null: null }
  return { ...ids, ...given({ external_execution_id: shown[conflict_external_id] }) }
}

/** 2.7: by product, or one list of everything that `data` holds. */
export const shapeResults = <Body extends { readonly data: Fields }>(
  { flow_data }: FullReading,
  body: Body,
): Omit<Body, "data"> & { readonly data: unknown } =>
  flow_data === "list" ? { ...body, data: Object.values(body.data).flat() } : body

const codes: Readonly<Record<number, string>> = {
  404: "NOT_FOUND",
  412: "SESSION_NOT_STARTED",
  429: "TOO_MANY_REQUESTS",
  504: "SESSION_LOCKED",
}

/** What a gateway answers for a path that it does not know. */
const gatewayPage = "<html><head><title>404 Not Found</title></head><body>nginx</body></html>"

interface ErrorBody {
  readonly text: string
  readonly contentType: string
}

/** 7: undefined if the body stays as it is. */
const flowError = ({ flow_error_body }: FullReading, status: number): ErrorBody | undefined => {
  const code = codes[status]
  if (code === undefined || flow_error_body === "detail") return undefined
  if (flow_error_body === "empty") return { text: "", contentType: "text/plain" }
  if (flow_error_body === "html") {
    return { text: `<html><body><h1>${status}</h1></body></html>`, contentType: "text/html" }
  }
  return json({ error: { code, message: `the flow API answers ${status}` } })
}

type Shape = (reading: FullReading, body: Fields) => Fields

const fieldsOf = (value: unknown): Fields => (Predicate.isObject(value) ? { ...value } : {})
const itemsOf = (value: unknown): ReadonlyArray<Fields> => (Array.isArray(value) ? value.map(fieldsOf) : [])
const without = (body: Fields, name: string): Fields => Struct.omit(body, [name])

const shapeCounts = (reading: FullReading["products_count"], counts: Fields): unknown => {
  if (reading === "null") return null
  if (reading === "text") return Record.map(counts, String)
  if (reading === "float") return Record.map(counts, (count) => Number(count) + 0.5)
  return Object.entries(counts).map(([key, count]) => ({ key, count }))
}

const shapeProducts: Shape = ({ products_count }, body) => {
  if (products_count === "shown" || !("products_count" in body)) return body
  if (products_count === "absent") return without(body, "products_count")
  return { ...body, products_count: shapeCounts(products_count, fieldsOf(body["products_count"])) }
}

const errorLists = ["parameters_errors", "configurations_errors"] as const

const shapeErrors: Shape = ({ error_lists }, body) =>
  error_lists === "absent" ? body : { parameters_errors: [], configurations_errors: [], ...body }

const shapeMessages: Shape = ({ messages }, body) =>
  messages === "shown" || itemsOf(body["messages"]).length > 0 ? body : without(body, "messages")

/** 4.2: a rejected run answers 200, closed or not; one that is not closed has not ended. */
const shapeRejected: Shape = ({ rejected_state }, body) => {
  const rejected =
    body["status_code"] === "CONFIGURATION_ERROR" && errorLists.some((name) => itemsOf(body[name]).length > 0)
  if (rejected_state === "closed" || !rejected) return body
  return { ...without(body, "date_ended"), is_closed: false }
}

const dated: ReadonlySet<string> = new Set(
  "date_created date_started date_ended action_required_expires next_kick_date".split(" "),
)
const rewritten = (reading: FullReading["dates"], date: unknown): unknown =>
  Predicate.isString(date) ? date.replace(/Z$/, reading === "offset" ? "+00:00" : "") : date

const shapeDates: Shape = ({ dates }, body) =>
  dates === "zulu"
    ? body
    : Record.map(body, (value, name) => {
        if (name === "messages")
          return itemsOf(value).map((item) => ({ ...item, date: rewritten(dates, item["date"]) }))
        return dated.has(name) ? rewritten(dates, value) : value
      })

const shapeStateOptionals: Shape = (reading, body) => ({
  ...shapeOptionals(reading, ["external_execution_id", "status_message", "locking_hash"], body),
  features: itemsOf(body["features"]).map((item) => shapeOptionals(reading, ["status_message"], item)),
})

/** 2.4 and 4.2. `body` is a state of today. */
const shapeState: Shape = (reading, body) =>
  [shapeRejected, shapeErrors, shapeMessages, shapeProducts, shapeDates, shapeStateOptionals].reduce(
    (shaped, shape) => shape(reading, shaped),
    body,
  )

/** 2.3 */
const shapeForm = ({ form_optionals }: FullReading, form: Fields): Fields =>
  form_optionals === "null" ? { $defs: null, required: null, "x-meta": null, ...form } : form

/** 2.4, 423: the four fields, beside a state if the reading wants one. */
const shapeChallenge: Shape = (reading, body) => ({
  ...("execution_id" in body ? shapeState(reading, body) : shapeDates(reading, body)),
  form_schema: shapeForm(reading, fieldsOf(body["form_schema"])),
})

/** 2.2, detail view. */
const shapeEngine: Shape = (reading, body) => ({
  ...body,
  parameters: shapeForm(reading, fieldsOf(body["parameters"])),
  configurations: shapeForm(reading, fieldsOf(body["configurations"])),
  features: itemsOf(body["features"]).map((feature) => ({
    ...feature,
    configurations: shapeForm(reading, fieldsOf(feature["configurations"])),
  })),
})

/** An answer that a reading gives without asking the service. */
export interface EdgeAnswer {
  readonly status: number
  readonly body: ErrorBody
}

const json = (value: unknown): ErrorBody => ({ text: JSON.stringify(value), contentType: "application/json" })
const detail = (status: number, text: unknown): EdgeAnswer => ({ status, body: json({ detail: text }) })
const notFound = detail(404, "Not Found")
const notAllowed: EdgeAnswer = { status: 405, body: { text: "", contentType: "text/plain" } }

export const invalidBody = (...fields: ReadonlyArray<string>): EdgeAnswer =>
  detail(
    422,
    fields.map((field) => ({ loc: ["body", field], msg: "field required", type: "value_error.missing" })),
  )

/** 1 and 4.10: answered before the secret is checked. */
export const gatewayAnswer = ({ flow_api }: FullReading, path: string): EdgeAnswer | undefined => {
  if (flow_api === "present" || !path.startsWith("/flows/")) return undefined
  return flow_api === "forbidden"
    ? detail(403, "the flow API is not enabled for this account")
    : { status: 404, body: { text: gatewayPage, contentType: "text/html" } }
}

/** Endpoints of 4.12 that do not exist, or not in this form, by key and value of the reading. */
const refusedBy: Readonly<
  Record<string, readonly [key: keyof FullReading, answers: Readonly<Record<string, EdgeAnswer>>]>
> = {
  pollExecution: ["head", { not_allowed: notAllowed }],
  readProfile: ["profile", { absent: notFound }],
  downloadAttachment: ["attachments", { absent: notFound }],
  readToken: ["token_status", { absent: notFound }],
  startTokenized: ["tokenized_body", { absent: notAllowed, refused: invalidBody("parameters") }],
}
export const refusedEndpoint = (reading: FullReading, endpoint: string): EdgeAnswer | undefined => {
  const [key, answers] = refusedBy[endpoint] ?? []
  return key === undefined ? undefined : answers?.[reading[key]]
}

/** 4.12: the pair beside the other fields becomes what this service reads; undefined if it is missing. */
export const nestedToken = (body: Fields): Fields | undefined => {
  const { token_id, token_key, ...rest } = body
  return "token" in body || token_id === undefined || token_key === undefined
    ? undefined
    : { ...rest, token: { token_id, token_key } }
}

/** The JSON body of an answer; if undefined, it stays as it is. */
export const shapeBody = (
  reading: FullReading,
  endpoint: string,
  status: number,
): ((body: Fields) => Fields) | undefined => {
  const accepted =
    endpoint === "startExecution" || endpoint === "startTokenized" || endpoint === "resumeExecution"
  if (accepted && status === 202)
    return (body) => shapeOptionals(reading, ["external_execution_id", "status_message"], body)
  if (endpoint === "showEngine" && status === 200) return (body) => shapeEngine(reading, body)
  if (endpoint !== "readExecution") return undefined
  if (status === 423) return (body) => shapeChallenge(reading, body)
  return status === 200 || status === 202 ? (body) => shapeState(reading, body) : undefined
}

const flowEndpoints: ReadonlySet<string> = new Set(["readFlowResults", "downloadAttachment"])

/** 7: what replaces the body of a flow error. */
export const errorBody = (reading: FullReading, endpoint: string, status: number): ErrorBody | undefined =>
  flowEndpoints.has(endpoint) ? flowError(reading, status) : undefined

const waits: ReadonlySet<number> = new Set([429, 503, 504])
const flowWaitSeconds = 5
const otherWaitSeconds = 30

/** 7 and 8: the value of `Retry-After`; if undefined, there is none. */
export const retryAfter = ({ retry_after }: FullReading, endpoint: string, status: number, at: number) => {
  if (retry_after === "absent" || !waits.has(status)) return undefined
  const seconds = flowEndpoints.has(endpoint) ? flowWaitSeconds : otherWaitSeconds
  return retry_after === "seconds" ? String(seconds) : new Date(at + seconds * 1_000).toUTCString()
}
