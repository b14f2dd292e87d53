/**
 * Requests from the contract: method and path template are read from an endpoint's definition, so no path
 * is written twice. Ids are opaque and may be hostile: each fills exactly one path segment, or no request
 * is made.
 */
import { Result } from "effect"
import { HttpBody, HttpClientRequest } from "effect/http"
import type { Headers, HttpMethod } from "effect/http"
import { isAddressable } from "../service/ResultsSource.ts"
import type { ResultsSource, SourceIds } from "../service/ResultsSource.ts"
import { NotSent } from "./Service.ts"

/** The parts of an endpoint of `ExecutionApi` or `FlowApi` that a request needs. */
export interface Endpoint {
  readonly identifier: string
  readonly method: HttpMethod.HttpMethod
  readonly path: string
  readonly "~Params": { readonly Type: unknown }
  readonly "~Query": { readonly Encoded: unknown }
  readonly "~Payload": { readonly Type: unknown }
}

type Part<Key extends string, S, Value> = [S] extends [never] ? unknown : { readonly [K in Key]: Value }

/** `params`, `query` and `payload`, exactly if the endpoint declares them. */
export type CallParts<E extends Endpoint> = Part<"params", E["~Params"], E["~Params"]["Type"]> &
  ([E["~Query"]] extends [never] ? unknown : { readonly query?: E["~Query"]["Encoded"] }) &
  Part<"payload", E["~Payload"], E["~Payload"]["Type"]>

/** The same for any endpoint. */
export interface AnyParts {
  readonly params?: Readonly<Record<string, string>>
  readonly query?: Readonly<Record<string, unknown>>
  readonly payload?: unknown
}

/**
 * One path segment, or undefined for an id that cannot be one: an empty id; `.` and `..`, which URL parsers
 * resolve even when percent-encoded; and lone surrogates, which have no UTF-8.
 */
export const encodeSegment = (id: string): string | undefined =>
  id === "" || id === "." || id === ".." || !id.isWellFormed() ? undefined : encodeURIComponent(id)

/** Whether a results source and these ids make a valid URL. */
export const isSendable = (source: ResultsSource, ids: SourceIds): boolean =>
  isAddressable(source, ids) &&
  [ids.execution_id, ids.session_id].every((id) => id === undefined || encodeSegment(id) !== undefined)

const encodeQuery = (query: Readonly<Record<string, unknown>>): string => {
  const pairs = new URLSearchParams()
  for (const [key, value] of Object.entries(query)) {
    if (value === undefined) continue
    for (const item of Array.isArray(value) ? value : [value]) pairs.append(key, String(item))
  }
  const text = pairs.toString()
  return text === "" ? "" : `?${text}`
}

const noUrlParams = HttpClientRequest.get("").urlParams
const noHash = HttpClientRequest.get("").hash

const unsendable = (endpoint: Endpoint, why: string) =>
  Result.fail(new NotSent({ message: `${endpoint.identifier}: ${why}; nothing was sent` }))

const writeBody = (endpoint: Endpoint, payload: unknown) =>
  Result.try({
    try: () => HttpBody.text(JSON.stringify(payload), "application/json"),
    // The cause could contain a value, and the payload holds login parameters, so the cause is dropped.
    catch: () =>
      new NotSent({ message: `${endpoint.identifier}: the request is not JSON; nothing was sent` }),
  })

/** Compiles an endpoint for one root and one set of headers; the result builds a request per call. */
export const compileEndpoint = (endpoint: Endpoint, root: string, headers: Headers.Headers) => {
  const segments = endpoint.path.split("/").slice(1)
  return ({
    params,
    query,
    payload,
  }: AnyParts): Result.Result<HttpClientRequest.HttpClientRequest, NotSent> => {
    let url = root
    for (const segment of segments) {
      if (!segment.startsWith(":")) {
        url += `/${segment}`
        continue
      }
      const name = segment.slice(1)
      const encoded = encodeSegment(params?.[name] ?? "")
      if (encoded === undefined) return unsendable(endpoint, `this ${name} cannot be a part of an address`)
      url += `/${encoded}`
    }
    if (query !== undefined) url += encodeQuery(query)
    if (payload === undefined) {
      return Result.succeed(
        HttpClientRequest.makeWith(endpoint.method, url, noUrlParams, noHash, headers, HttpBody.empty),
      )
    }
    return Result.map(writeBody(endpoint, payload), (body) =>
      HttpClientRequest.setBody(
        HttpClientRequest.makeWith(endpoint.method, url, noUrlParams, noHash, headers, HttpBody.empty),
        body,
      ),
    )
  }
}
