/**
 * Holds an exchange, a request and its answer as they travelled, against the OpenAPI document. Schemas and
 * parameters are judged by `openapi-backend`, which shares nothing with the code that wrote the document or
 * answered; what that library passes over (a status or a media type that is not documented, a body where
 * there is none, a missing secret) is looked at here. A log counts what was seen, and repeats no complaint.
 */
import { OpenAPIBackend, type Document } from "openapi-backend"
import { isObject, rewrite, type Node } from "../project/schemaNodes.ts"

export interface Exchange {
  readonly method: string
  /** With its query. */
  readonly url: string
  readonly requestHeaders: Readonly<Record<string, string | Array<string>>>
  readonly requestBody: string
  readonly status: number
  readonly contentType: string | undefined
  readonly responseBody: string
}

export interface Finding {
  /** `<operation> <status>`, or the method and path where no operation answers to them. */
  readonly at: string
  /** The request does not fit the document; the service may refuse it, but not accept it. */
  readonly invalidRequest: boolean
  readonly mismatches: ReadonlyArray<string>
}

export type TrafficCheck = (exchange: Exchange) => Finding

/** The embedded service is held to the enumerations as they are: open ones are for services that may grow. */
export const closeEnumerations = (document: Node): Node =>
  rewrite(document, (node) => {
    const options = node["anyOf"]
    if (!Array.isArray(options)) return undefined
    const listed = options.some((one) => isObject(one) && Array.isArray(one["enum"]))
    if (!listed) return undefined
    const { anyOf: _, ...rest } = node
    const kept = options.filter((one) => !(isObject(one) && one["type"] === "string" && !("enum" in one)))
    return kept.length === 1 && isObject(kept[0])
      ? { ...rest, ...kept[0] }
      : { ...rest, anyOf: kept.map((one) => (isObject(one) ? closeEnumerations(one) : one)) }
  })

const isDocument = (value: unknown): value is Document =>
  isObject(value) && String(value["openapi"]).startsWith("3.1.")

const json = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

const complaints = (errors: ReadonlyArray<{ instancePath: string; message?: string }> | null | undefined) =>
  (errors ?? []).map(({ instancePath, message }) => `${instancePath === "" ? "/" : instancePath} ${message}`)

const mediaTypeOf = (contentType: string | undefined) => contentType?.split(";")[0]?.trim().toLowerCase()

/** Statuses and media types that the document has for an operation. */
const answersOf = (operation: unknown): Node => {
  const responses = isObject(operation) ? operation["responses"] : undefined
  return isObject(responses) ? responses : {}
}

const judgeBody = (
  exchange: Exchange,
  response: unknown,
  validate: (body: unknown) => ReadonlyArray<string>,
): ReadonlyArray<string> => {
  const { responseBody, contentType, method } = exchange
  const content = isObject(response) && isObject(response["content"]) ? response["content"] : undefined
  if (content === undefined || method === "HEAD") {
    return responseBody === "" ? [] : ["a body where the document has none"]
  }
  const mediaType = mediaTypeOf(contentType)
  if (!("*/*" in content) && !(mediaType !== undefined && mediaType in content)) {
    return [`${contentType ?? "no media type"} is not documented`]
  }
  if (mediaType !== "application/json") return []
  const body = json(responseBody)
  return body === undefined ? ["a body that is no JSON"] : validate(body)
}

export const makeTrafficCheck = async (document: Node): Promise<TrafficCheck> => {
  const definition: unknown = closeEnumerations(document)
  if (!isDocument(definition)) throw new Error("no OpenAPI document of version 3.1")
  const backend = new OpenAPIBackend({ definition, quick: true, validate: true, ajvOpts: { strict: false } })
  await backend.init()
  const { router, validator } = backend
  return (exchange) => {
    const request = {
      method: exchange.method,
      path: new URL(exchange.url, "http://service.invalid").pathname,
      query: new URL(exchange.url, "http://service.invalid").search.slice(1),
      headers: exchange.requestHeaders,
      ...(exchange.requestBody === "" ? {} : { body: json(exchange.requestBody) ?? exchange.requestBody }),
    }
    const operation = router.matchOperation(request)
    if (operation?.operationId === undefined) {
      const at = `${exchange.method} ${request.path}`
      return { at, invalidRequest: true, mismatches: ["no operation of the document"] }
    }
    const { operationId } = operation
    const requestErrors = complaints(validator.validateRequest(request, operation).errors)
    const response = answersOf(operation)[String(exchange.status)]
    const hasSecret = Object.keys(exchange.requestHeaders).some(
      (name) => name.toLowerCase() === "x-app-secret",
    )
    const mismatches = [
      ...(exchange.status < 400 ? requestErrors.map((error) => `accepted a request with ${error}`) : []),
      ...(hasSecret || exchange.status === 401 ? [] : ["answered without the application secret"]),
      ...(response === undefined
        ? ["the status is not documented"]
        : judgeBody(exchange, response, (body) =>
            complaints(validator.validateResponse(body, operation, exchange.status).errors),
          )),
    ]
    return { at: `${operationId} ${exchange.status}`, invalidRequest: requestErrors.length > 0, mismatches }
  }
}

/** What the validating proxy has seen, by operation and status, and everything that did not fit the document. */
export interface TrafficLog {
  readonly record: (exchange: Exchange) => void
  readonly exchanges: () => number
  /** By `<operation> <status>`. */
  readonly counts: ReadonlyMap<string, number>
  /** Requests that do not fit the document and were refused, as they should be; by `<operation> <status>`. */
  readonly refused: ReadonlyMap<string, number>
  readonly mismatches: ReadonlyMap<string, number>
}

const increase = (counts: Map<string, number>, key: string) => counts.set(key, (counts.get(key) ?? 0) + 1)

export const makeTrafficLog = (
  check: TrafficCheck,
  seen: (exchange: Exchange, finding: Finding) => void = () => undefined,
): TrafficLog => {
  const counts = new Map<string, number>()
  const refused = new Map<string, number>()
  const mismatches = new Map<string, number>()
  let exchanges = 0
  return {
    counts,
    refused,
    mismatches,
    exchanges: () => exchanges,
    record: (exchange) => {
      exchanges += 1
      const finding = check(exchange)
      increase(counts, finding.at)
      if (finding.invalidRequest) increase(refused, finding.at)
      for (const mismatch of finding.mismatches) increase(mismatches, `${finding.at}: ${mismatch}`)
      seen(exchange, finding)
    },
  }
}

/** One line per operation: `readExecution  200 × 39, 202 × 140`. */
export const renderCounts = (counts: ReadonlyMap<string, number>): ReadonlyArray<string> => {
  const byOperation = new Map<string, Array<string>>()
  for (const [at, count] of [...counts].toSorted(([a], [b]) => (a < b ? -1 : 1))) {
    const split = at.lastIndexOf(" ")
    const [operation, status] = [at.slice(0, split), at.slice(split + 1)]
    const line = byOperation.get(operation) ?? []
    line.push(`${status} × ${count}`)
    byOperation.set(operation, line)
  }
  return [...byOperation].map(([operation, answers]) => `  ${operation.padEnd(20)}${answers.join(", ")}`)
}
