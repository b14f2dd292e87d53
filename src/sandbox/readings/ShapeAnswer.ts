/**
 * How a reading changes the answers of each endpoint, and which endpoints it removes: one table for
 * everything that is decided at the service's edge. What depends on the state (ids, ends, whose id a
 * conflict names) is decided where the state is.
 */
import type { FullReading } from "../state/Reading.ts"
import { shapeAcceptance } from "./ShapeAcceptance.ts"
import { flowError, gatewayPage } from "./ShapeFlow.ts"
import type { ErrorBody } from "./ShapeFlow.ts"
import { shapeChallenge, shapeEngine, shapeState } from "./ShapeState.ts"

type Fields = Readonly<Record<string, unknown>>

/** An answer that a reading gives without asking the service. */
export interface EdgeAnswer {
  readonly status: number
  readonly body: ErrorBody
}

const json = (value: unknown): ErrorBody => ({
  text: JSON.stringify(value),
  contentType: "application/json",
})
const detail = (status: number, text: string): EdgeAnswer => ({ status, body: json({ detail: text }) })
const notAllowed: EdgeAnswer = { status: 405, body: { text: "", contentType: "text/plain" } }

const missing = (loc: ReadonlyArray<string>) => ({
  loc: ["body", ...loc],
  msg: "field required",
  type: "value_error.missing",
})
export const invalidBody = (...fields: ReadonlyArray<string>): EdgeAnswer => ({
  status: 422,
  body: json({ detail: fields.map((field) => missing([field])) }),
})

/** 1 and 4.10: answered before the secret is checked. */
export const gatewayAnswer = ({ flow_api }: FullReading, path: string): EdgeAnswer | undefined => {
  if (flow_api === "present" || !path.startsWith("/flows/")) return undefined
  return flow_api === "forbidden"
    ? detail(403, "the flow API is not enabled for this account")
    : { status: 404, body: { text: gatewayPage, contentType: "text/html" } }
}

/** Endpoints of 4.12 that do not exist, or not in this form. */
export const refusedEndpoint = (reading: FullReading, endpoint: string): EdgeAnswer | undefined => {
  switch (endpoint) {
    case "pollExecution":
      return reading.head === "answers" ? undefined : notAllowed
    case "readProfile":
      return reading.profile === "present" ? undefined : detail(404, "Not Found")
    case "downloadAttachment":
      return reading.attachments === "present" ? undefined : detail(404, "Not Found")
    case "readToken":
      return reading.token_status === "present" ? undefined : detail(404, "Not Found")
    case "startTokenized":
      if (reading.tokenized_body === "absent") return notAllowed
      return reading.tokenized_body === "refused" ? invalidBody("parameters") : undefined
    default:
      return undefined
  }
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
  if (accepted && status === 202) return (body) => shapeAcceptance(reading, body)
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
export const retryAfter = (
  { retry_after }: FullReading,
  endpoint: string,
  status: number,
  at: number,
): string | undefined => {
  if (retry_after === "absent" || !waits.has(status)) return undefined
  const seconds = flowEndpoints.has(endpoint) ? flowWaitSeconds : otherWaitSeconds
  return retry_after === "seconds" ? String(seconds) : new Date(at + seconds * 1_000).toUTCString()
}
