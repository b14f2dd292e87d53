/**
 * Compares answers with the contract: what is missing, has another type or status, is outside an enumeration
 * or is not named by the reference. Walks the contract's own schemas; no finding repeats a value of a record.
 */
import { Predicate, Result, Schema, SchemaAST } from "effect"
import { ExecutionApi, FlowApi } from "../../service/Api.ts"
import type { ResultsSource } from "../../service/FlowResults.ts"
import * as Vocabulary from "../../service/Vocabulary.ts"

// What of a body may be written down: its keys and the kinds of its values. A string is written only if the
// reference lists it; of records, only `product` and `sub_family`; no key that looks like a number or a
// personal identifier.

const shapeDepthMax = 10
const keysMax = 80
const kindsMax = 3

/** Every value that an enumeration of the reference lists, except those of records. */
const listed: ReadonlySet<string> = new Set<string>([
  ...Vocabulary.features,
  ...Vocabulary.statusCodes,
  ...Vocabulary.statusReasons,
  ...Vocabulary.authenticationStatuses,
  ...Vocabulary.authOrigins,
  ...Vocabulary.endHooks,
  ...Vocabulary.messageTypes,
  ...Vocabulary.featureStatusReasons,
  ...Vocabulary.sessionStatusCodes,
  ...Vocabulary.sessionCursors,
  ...Vocabulary.engineEvents,
  ...Vocabulary.engineStatuses,
  ...Vocabulary.engineAlternatives,
  ...Vocabulary.environments,
  ...Vocabulary.mainCategories,
  ...Vocabulary.actionRequiredFrequencies,
])

/** A word of a protocol: no run of digits that could be somebody's number. */
const isCode = (text: string): boolean =>
  /^[A-Za-z_$@][\w$@:.-]{0,79}$/.test(text) && !/\d{4}/.test(text) && !/@.*\.[a-z]+$/i.test(text)

/** How to describe a value that an enumeration does not list. */
const codeText = (text: string): string => (isCode(text) ? text : `a string of ${text.length}`)

const keyText = (key: string): string => (isCode(key) ? key : "<key>")

const uuid = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i

/** The form of an id; undefined if it is none of the known forms. */
export const idForm = (text: string): "uuid" | "object_id" | "hex" | undefined => {
  if (uuid.test(text)) return "uuid"
  if (/^[0-9a-f]{24}$/i.test(text)) return "object_id"
  return /^[0-9a-f]{32}$/i.test(text) ? "hex" : undefined
}

const textKind = (text: string): string => {
  if (listed.has(text)) return text
  if (text === "") return "text (empty)"
  const form = idForm(text)
  if (form !== undefined) return `text (${form})`
  return /^\d{4}-\d{2}-\d{2}(?:T|$)/.test(text) ? "text (date)" : "text"
}

const scalarKind = (value: unknown): unknown => {
  if (value === null) return null
  if (typeof value === "string") return textKind(value)
  if (typeof value === "number") return Number.isSafeInteger(value) ? "integer" : "number"
  return typeof value === "boolean" ? value : "value"
}

const isRecord = (value: object): boolean =>
  typeof Reflect.get(value, "product") === "string" && typeof Reflect.get(value, "sub_family") === "string"

const recordKeys: ReadonlySet<string> = new Set(["product", "sub_family"])

const inRecord = (key: string, value: unknown): unknown => {
  if (typeof value === "boolean") return "boolean"
  if (typeof value !== "string") return scalarKind(value)
  return recordKeys.has(key) ? codeText(value) : value === "" ? "text (empty)" : "text"
}

const shapeAt = (value: unknown, key: string, record: boolean, depth: number): unknown => {
  if (typeof value !== "object" || value === null) return record ? inRecord(key, value) : scalarKind(value)
  if (depth > shapeDepthMax) return "…"
  if (Array.isArray(value)) {
    const kinds = new Map<string, unknown>()
    for (const item of value) {
      const shape = shapeAt(item, key, record, depth + 1)
      kinds.set(JSON.stringify(shape), shape)
    }
    const more = kinds.size > kindsMax ? [`… ${kinds.size - kindsMax} other shapes`] : []
    return [
      ...[...kinds.values()].slice(0, kindsMax),
      ...more,
      ...(value.length > 0 ? [`× ${value.length}`] : []),
    ]
  }
  const inside = record || isRecord(value)
  const entries = Object.entries(value)
  const shown = entries
    .slice(0, keysMax)
    .map(([name, inner]): [string, unknown] => [keyText(name), shapeAt(inner, name, inside, depth + 1)])
  const more = entries.length > keysMax ? [["…", `${entries.length - keysMax} more keys`] as const] : []
  return Object.fromEntries([...shown, ...more])
}

export const shapeOf = (json: unknown): unknown => shapeAt(json, "", false, 0)

export interface Finding {
  readonly kind: "status" | "body" | "missing" | "type" | "value" | "unknown"
  /** The contract's name for the call: `readExecution`. */
  readonly route: string
  readonly http_status: number
  /** `features[].code`; empty for the whole body. */
  readonly path: string
  readonly says: string
  /** Numbers of the first calls that showed it. */
  readonly calls: ReadonlyArray<number>
}

type Told = Omit<Finding, "calls" | "route" | "http_status">
type Tell = (told: Told) => void

const depthMax = 12

const membersOf = (ast: SchemaAST.AST): ReadonlyArray<SchemaAST.AST> =>
  SchemaAST.isUnion(ast) ? ast.types.flatMap(membersOf) : [ast]

/** `open` allows a record of anything beside the fields: it stands for fields that nobody named. */
const isOpenRest = (ast: SchemaAST.Objects): boolean => ast.propertySignatures.length > 0

/** `Schema.Int` is a number with a check. */
const isWhole = (ast: SchemaAST.AST): boolean =>
  ast.checks?.some((check) => check.annotations?.["expected"] === "an integer") === true

/** Each kind of a value in words for people, and which schema asks for it; the first that fits counts. */
const kinds: ReadonlyArray<{
  readonly words: string
  readonly holds: (value: unknown) => boolean
  readonly isAsked: (ast: SchemaAST.AST) => boolean
}> = [
  { words: "null", holds: Predicate.isNull, isAsked: SchemaAST.isNull },
  { words: "a list", holds: Array.isArray, isAsked: SchemaAST.isArrays },
  { words: "a map", holds: Predicate.isObject, isAsked: SchemaAST.isObjects },
  { words: "a string", holds: Predicate.isString, isAsked: SchemaAST.isString },
  { words: "true or false", holds: Predicate.isBoolean, isAsked: SchemaAST.isBoolean },
  {
    words: "a whole number",
    holds: Number.isSafeInteger,
    isAsked: (ast) => SchemaAST.isNumber(ast) && isWhole(ast),
  },
  { words: "a number", holds: Predicate.isNumber, isAsked: SchemaAST.isNumber },
]

const askedBy = (ast: SchemaAST.AST) => kinds.find(({ isAsked }) => isAsked(ast))

/** Never the value itself. */
const kindOf = (value: unknown): string => kinds.find(({ holds }) => holds(value))?.words ?? "a number"

const takes = (ast: SchemaAST.AST, value: unknown): boolean =>
  SchemaAST.isLiteral(ast) ? value === ast.literal : (askedBy(ast)?.holds(value) ?? true)

const wanted = (ast: SchemaAST.AST): string =>
  SchemaAST.isLiteral(ast) ? `\`${String(ast.literal)}\`` : (askedBy(ast)?.words ?? "anything")

const below = (path: string, key: string): string => (path === "" ? key : `${path}.${key}`)

const walkObject = (
  ast: SchemaAST.Objects,
  value: Readonly<Record<string, unknown>>,
  path: string,
  tell: Tell,
  depth: number,
) => {
  const named = new Map(ast.propertySignatures.map(({ name, type }) => [String(name), type]))
  for (const [name, type] of named) {
    if (name === "_tag") continue
    const at = below(path, name)
    if (Object.hasOwn(value, name)) walk(type, value[name], at, tell, depth + 1)
    else if (!SchemaAST.isOptional(type)) tell({ kind: "missing", path: at, says: `\`${at}\` is missing` })
  }
  const rest = ast.indexSignatures[0]?.type
  for (const [name, inner] of Object.entries(value)) {
    if (named.has(name)) continue
    const at = below(path, isOpenRest(ast) ? keyText(name) : "*")
    if (isOpenRest(ast)) tell({ kind: "unknown", path: at, says: `\`${at}\`: ${kindOf(inner)}` })
    else if (rest !== undefined) walk(rest, inner, at, tell, depth + 1)
  }
}

const walk = (ast: SchemaAST.AST, value: unknown, path: string, tell: Tell, depth: number): void => {
  if (depth > depthMax || SchemaAST.isSuspend(ast) || SchemaAST.isDeclaration(ast)) return
  const members = membersOf(ast)
  const fitting = members.filter((member) => takes(member, value))
  const [member] = fitting
  if (member === undefined) {
    const expected = [...new Set(members.map(wanted))].join(" or ")
    const where = path === "" ? "the body" : `\`${path}\``
    tell({ kind: "type", path, says: `${where} is ${kindOf(value)}; the reference says ${expected}` })
    return
  }
  const isEnumeration = members.some(SchemaAST.isLiteral) && members.some(SchemaAST.isString)
  if (isEnumeration && typeof value === "string" && !fitting.some(SchemaAST.isLiteral)) {
    const says = `\`${path}\` is ${codeText(value)}, which the reference does not list`
    tell({ kind: "value", path, says })
  }
  if (SchemaAST.isArrays(member) && Array.isArray(value)) {
    const item = member.rest[0]
    if (item !== undefined) for (const one of value) walk(item, one, `${path}[]`, tell, depth + 1)
  }
  if (SchemaAST.isObjects(member) && Predicate.isObject(value)) walkObject(member, value, path, tell, depth)
}

/** Statuses whose answers have no body, by the rules of HTTP. */
const bodiless = new Set([204, 304])

const compareCall = ({ route, http_status, body }: RecordedCall, tell: Tell): void => {
  if (http_status === undefined) return
  const schema = route.answers.get(http_status)
  if (schema === undefined) {
    const says = `answered ${http_status}, which the reference does not list for it`
    return tell({ kind: "status", path: "", says })
  }
  // A results source defines itself what its records look like; for a HEAD, only the status counts.
  if (body._tag === "Unread" || route.method === "HEAD" || bodiless.has(http_status)) return
  if (SchemaAST.isUnknown(schema) && http_status >= 400) return
  if (body._tag !== "Json") {
    const what = body._tag === "Empty" ? "nothing" : "no JSON"
    return tell({ kind: "body", path: "", says: `answered ${http_status} with ${what} in the body` })
  }
  walk(schema, body.json, "", tell, 0)
}

/** Enough to look one up in `calls.ndjson`. */
const callsNamedMax = 3

/** Each finding once, in the order in which it was first seen. */
export const compareCalls = (calls: ReadonlyArray<RecordedCall>): ReadonlyArray<Finding> => {
  const found = new Map<string, Finding>()
  for (const call of calls) {
    compareCall(call, (told) => {
      const about = { route: call.route.name, http_status: call.http_status ?? 0 }
      const key = JSON.stringify([about, told])
      const known = found.get(key)
      if (known === undefined) found.set(key, { ...about, ...told, calls: [call.number] })
      else if (known.calls.length < callsNamedMax && known.calls.at(-1) !== call.number)
        found.set(key, { ...known, calls: [...known.calls, call.number] })
    })
  }
  return [...found.values()]
}

// One call: which endpoint of the contract or results source it was, and what came back. Bodies stay in
// memory while they are judged; only their shapes are written.

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
  /** Milliseconds since the first call. */
  readonly sentAtMs: number
  tookMs: number
  /** Undefined if no answer came. */
  http_status: number | undefined
  headers: Readonly<Record<string, string>>
  body: RecordedBody
}

/** An endpoint of the contract, a results source of the job, or an address that is neither. */
interface Route {
  readonly name: string
  readonly method: string
  /** `/executions/handler/v1/{execution_id}` */
  readonly path: string
  /** Bodies by status; a status that is missing here is not in the contract. */
  readonly answers: ReadonlyMap<number, SchemaAST.AST>
  readonly source?: ResultsSource
}

const endpoints = [...Object.values(ExecutionApi.groups), FlowApi.groups.flows].flatMap((group) =>
  Object.values(group.endpoints),
)

const statusOf = (schema: Schema.Top, otherwise: number): number => {
  // An answer's status is listed beside its schema, not in it.
  const status: unknown = schema.ast.context?.annotations?.["httpApiStatus"]
  return typeof status === "number" ? status : otherwise
}

const contractRoutes: ReadonlyArray<Route> = endpoints.map((endpoint) => {
  const answers = new Map<number, SchemaAST.AST>()
  for (const schema of endpoint.success) answers.set(statusOf(schema, 200), Schema.toEncoded(schema).ast)
  for (const schema of endpoint.error) answers.set(statusOf(schema, 500), Schema.toEncoded(schema).ast)
  const { identifier: name, method } = endpoint
  return { name, method, path: endpoint.path.replaceAll(/:([a-z_]+)/g, "{$1}"), answers }
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

const decoded = (segment: string): string =>
  Result.getOrElse(
    Result.try(() => decodeURIComponent(segment)),
    () => segment,
  )

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
export const jsonOf = ({ body }: Pick<RecordedCall, "body">): unknown =>
  body._tag === "Json" ? body.json : undefined
