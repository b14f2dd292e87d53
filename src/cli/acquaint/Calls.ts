/**
 * One call as it was made and answered: which endpoint of the contract (or which results source) it was,
 * and what came back. Bodies stay in memory while they are judged; only their shapes, never their values,
 * are written (`Shape.ts`).
 */
import { Predicate, Schema } from "effect"
import type { SchemaAST } from "effect"
import { ExecutionApi, FlowApi } from "../../service/Api.ts"
import type { ResultsSource } from "../../service/ResultsSource.ts"

export type RecordedBody =
  | { readonly _tag: "Json"; readonly json: unknown }
  | { readonly _tag: "Text"; readonly bytes: number }
  | { readonly _tag: "Empty" }
  /** The body was too large to keep, was a document, or was not read. */
  | { readonly _tag: "Unread" }

export interface RecordedCall {
  /** Counted from 1, in the order of sending. */
  readonly number: number
  readonly route: Route
  readonly ids: Readonly<Record<string, string>>
  /** Of a start: the caller's own reference. */
  readonly external_execution_id?: string
  /** The second start of `--probe-conflict`, which a normal run would not send. */
  readonly probe: boolean
  /** Milliseconds since the first call. */
  readonly sentAtMs: number
  tookMs: number
  /** Undefined if no answer came. */
  http_status: number | undefined
  headers: Readonly<Record<string, string>>
  body: RecordedBody
}

/** An endpoint of the contract, a results source of the job, or an address that is neither. */
export interface Route {
  readonly name: string
  readonly method: string
  /** `/executions/handler/v1/{execution_id}` */
  readonly path: string
  /** Bodies by status; a status that is missing here is not in the contract. */
  readonly answers: ReadonlyMap<number, SchemaAST.AST>
  readonly source?: ResultsSource
}

const endpoints = [
  ...Object.values(ExecutionApi.groups.executions.endpoints),
  ...Object.values(ExecutionApi.groups.tokens.endpoints),
  ...Object.values(ExecutionApi.groups.engines.endpoints),
  ...Object.values(FlowApi.groups.flows.endpoints),
]

const statusOf = (schema: Schema.Top, otherwise: number): number => {
  // An answer's status is listed beside its schema, not in it.
  const status: unknown = schema.ast.context?.annotations?.["httpApiStatus"]
  return typeof status === "number" ? status : otherwise
}

const contractRoutes: ReadonlyArray<Route> = endpoints.map((endpoint) => {
  const answers = new Map<number, SchemaAST.AST>()
  for (const schema of endpoint.success) answers.set(statusOf(schema, 200), Schema.toEncoded(schema).ast)
  for (const schema of endpoint.error) answers.set(statusOf(schema, 500), Schema.toEncoded(schema).ast)
  return {
    name: endpoint.identifier,
    method: endpoint.method,
    path: endpoint.path.replaceAll(/:([a-z_]+)/g, "{$1}"),
    answers,
  }
})

const sourceRoute = (source: ResultsSource): Route => ({
  name: source.name,
  method: "GET",
  path: source.path,
  // Its body is never shown; its statuses are those that the row lists.
  answers: new Map([200, ...source.nothing].map((status) => [status, Schema.Unknown.ast])),
  source,
})

const segmentsOf = (path: string): ReadonlyArray<string> => path.split("/").slice(1)
const isPlaceholder = (segment: string): boolean => segment.startsWith("{")

const decoded = (segment: string): string => {
  try {
    return decodeURIComponent(segment)
  } catch {
    return segment
  }
}

/** The ids in a path that ends as the route's does; undefined if it does not. */
const idsOf = (route: Route, path: ReadonlyArray<string>): Readonly<Record<string, string>> | undefined => {
  const wanted = segmentsOf(route.path)
  const tail = path.slice(-wanted.length)
  if (tail.length < wanted.length) return undefined
  const ids: Record<string, string> = {}
  for (const [index, segment] of wanted.entries()) {
    const value = tail[index] ?? ""
    if (isPlaceholder(segment)) ids[segment.slice(1, -1)] = decoded(value)
    else if (segment !== value) return undefined
  }
  return ids
}

const nobody: Omit<Route, "method"> = { name: "unknown", path: "(an unknown address)", answers: new Map() }

export type Matcher = (
  method: string,
  url: string,
) => { readonly route: Route; readonly ids: Readonly<Record<string, string>> }

/** Finds the route of a request: the job's rows come before the contract, plain segments before ids. */
export const matcherOf = (sources: ReadonlyArray<ResultsSource>): Matcher => {
  const placeholders = ({ path }: Route) => segmentsOf(path).filter(isPlaceholder).length
  const custom = sources.filter(({ path }) => !contractRoutes.some((route) => route.path === path))
  const sourceOf = (route: Route) => sources.find(({ path }) => path === route.path)
  const routes = [
    ...custom.map(sourceRoute),
    ...contractRoutes
      .map((route) => {
        const source = route.method === "GET" ? sourceOf(route) : undefined
        return source === undefined ? route : { ...route, source }
      })
      .toSorted((a, b) => placeholders(a) - placeholders(b)),
  ]
  return (method, url) => {
    const path = segmentsOf(URL.canParse(url) ? new URL(url).pathname : url)
    for (const route of routes) {
      const ids = route.method === method ? idsOf(route, path) : undefined
      if (ids !== undefined) return { route, ids }
    }
    return { route: { ...nobody, method }, ids: {} }
  }
}

/** The JSON of an answer; undefined if it has none. */
export const jsonOf = ({ body }: RecordedCall): unknown => (body._tag === "Json" ? body.json : undefined)

/** An own property of a JSON object. */
export const fieldOf = (json: unknown, name: string): unknown =>
  Predicate.isObject(json) && Object.hasOwn(json, name) ? json[name] : undefined
