/**
 * Results of a flow session (section 2.7). `data` stays unknown here: every object in it that carries
 * `product` and `sub_family` is a record, and the records room reads those.
 */
import { Predicate, Schema } from "effect"
import { FeatureCode, open } from "./Engine.ts"
import type { ExecutionId, SessionId } from "./Ids.ts"
import { idCharactersMax } from "./BodyBounds.ts"
import { ownField } from "./ReadJson.ts"

/** 2.7: an accepted document of a consent. */
export const AcceptedDocument = open({
  version: Schema.String,
  hash: Schema.String,
  sign_date: Schema.optionalKey(Schema.String),
  signature_provider: Schema.optionalKey(Schema.String),
  signature_metadata: Schema.optionalKey(Schema.Record(Schema.String, Schema.Unknown)),
})

/** 2.7: the consent audit trail. */
export const Consent = open({
  accepted_date: Schema.optionalKey(Schema.String),
  accepted_features: Schema.optionalKey(Schema.Array(FeatureCode)),
  user_ip: Schema.optionalKey(Schema.String),
  user_agent: Schema.optionalKey(Schema.String),
  origin: Schema.optionalKey(Schema.String),
  accepted_documents: Schema.optionalKey(Schema.Record(Schema.String, AcceptedDocument)),
})

/** 2.7: status code and cursor have no documented names, so they are among the unknown fields. */
export const flowResultsFields = {
  data: Schema.Unknown,
  retrieved_features: Schema.Array(FeatureCode),
  consent: Schema.optionalKey(Schema.NullOr(Consent)),
  is_closed: Schema.Boolean,
}

// `products_count` (2.4), as `<family>:<subtype>@<product>`. Read strictly, because deletions depend on it: a
// count that is missing or no whole number is unknown, and unknown is never zero.

/** Families that one execution may count, far more than exist. */
const familiesMax = 10_000

export type ProductsCount =
  | { readonly _tag: "Counted"; readonly counts: Readonly<Record<string, number>> }
  /** `why` is for people; it quotes nothing of the body. */
  | { readonly _tag: "Unknown"; readonly why: string }

const unknown = (why: string): ProductsCount => ({ _tag: "Unknown", why })

const isCount = (value: unknown): value is number =>
  typeof value === "number" && Number.isSafeInteger(value) && value >= 0

export const readProductsCount = (value: unknown): ProductsCount => {
  if (value === undefined) return unknown("the state has no products_count")
  if (value === null) return unknown("products_count is null")
  if (typeof value !== "object" || Array.isArray(value)) return unknown("products_count is not a map")
  const entries: ReadonlyArray<readonly [string, unknown]> = Object.entries(value)
  if (entries.length > familiesMax) return unknown(`products_count has more than ${familiesMax} keys`)
  if (entries.some(([key]) => key.length > idCharactersMax))
    return unknown(`products_count has a key of more than ${idCharactersMax} characters`)
  const counted = entries.filter((entry): entry is readonly [string, number] => isCount(entry[1]))
  return counted.length === entries.length
    ? { _tag: "Counted", counts: Object.fromEntries(counted) }
    : unknown("products_count has a value that is not a whole number")
}

/** The `<family>:<subtype>` of a key, which is a record's `sub_family`; a key without `@` is one itself. */
export const subFamilyOf = (key: string): string => {
  const at = key.indexOf("@")
  return at < 0 ? key : key.slice(0, at)
}

/** The part after the `@` of a key; undefined if it has none. */
export const productOf = (key: string): string | undefined => {
  const at = key.indexOf("@")
  return at < 0 ? undefined : key.slice(at + 1)
}

export const countedTotal = (counts: Readonly<Record<string, number>>): number =>
  Object.values(counts).reduce((sum, count) => sum + count, 0)

// Paths of results (4.10, 4.12), apart from the contract: the ledger must not load an HTTP library for them.

export const flowResultsPath = "/es-public-administration/v1/manager/:session_id/results"
export const profilePath = "/executions/results/:execution_id/customer/v1/profile"

// Where the records of an execution can be read: one row per endpoint. Two are built in; a file in a job's
// folder changes them or adds others, because 4.12 shows that other kinds exist but not what they look like.

export const sourceNamePattern = /^[a-z][a-z0-9_]{0,63}$/
const pathPattern = /^(?:\/(?:[A-Za-z0-9._~-]+|\{(?:execution_id|session_id)\}))+$/
const pathRule = {
  expected: "a path that begins with /; {execution_id} and {session_id} may stand for whole segments",
}
const familyPattern = /^[^@\s*]+\*?$|^\*$/
const familyRule = { expected: "a `sub_family`, the beginning of one followed by *, or *" }
const statusRule = { expected: "a status from 400 to 499" }

const about = (description: string) => ({ description })

/** The rules of one endpoint; the built-in rows below name what the reference shows of each. */
export const ResultsSource = Schema.Struct({
  name: Schema.String.check(Schema.isPattern(sourceNamePattern)).annotate(
    about("a-z, 0-9 and _; `flow_results` and `profile` are the built-in rows"),
  ),
  enabled: Schema.Boolean.annotate(about("false: this endpoint is never called")),
  api: Schema.Literals(["base_url", "flows_url"]).annotate(
    about("which URL of the job the path is appended to"),
  ),
  path: Schema.String.check(Schema.isPattern(pathPattern, pathRule)).annotate(
    about("with {execution_id} or {session_id} as whole segments"),
  ),
  families: Schema.Array(Schema.String.check(Schema.isPattern(familyPattern, familyRule))).annotate(
    about("the `sub_family` values that it may return; `academic_data:*` for all that begin so, `*` for any"),
  ),
  records: Schema.Array(Schema.String).annotate(
    about(
      "the top-level fields that may hold the records: the first one found counts; `body` is the whole body",
    ),
  ),
  final: Schema.String.annotate(
    about("the top-level field that is true once the records no longer change; `always` if there is none"),
  ),
  counts: Schema.Literals(["sub_family", "product", "none"]).annotate(
    about(
      "how records are compared with products_count: by the part before the @, the part after it, or not " +
        "at all: then a final answer counts as complete, and executions are deleted without a count",
    ),
  ),
  nothing: Schema.Array(
    Schema.Int.check(Schema.isBetween({ minimum: 400, maximum: 499 }, statusRule)),
  ).annotate(about("statuses that mean there are no records here; any other 4xx keeps the execution")),
  attachments: Schema.Boolean.annotate(about("whether documents named in it are downloaded (4.12)")),
})
export type ResultsSource = typeof ResultsSource.Type

/** `/a/:execution_id` of the contract as `/a/{execution_id}`. */
const templateOf = (path: string): string => path.replaceAll(/:([a-z_]+)/g, "{$1}")

/** 4.10: final once `is_closed` is true; 404 and 412 mean that there is no session to read. */
export const flowResultsSource: ResultsSource = {
  name: "flow_results",
  enabled: true,
  api: "flows_url",
  path: templateOf(flowResultsPath),
  families: ["*"],
  records: ["data"],
  final: "is_closed",
  counts: "sub_family",
  nothing: [404, 412],
  attachments: true,
}

/** 4.12: its answer is not shown, so it counts for what it contains and for nothing else. */
export const profileSource: ResultsSource = {
  name: "profile",
  enabled: true,
  api: "base_url",
  path: templateOf(profilePath),
  families: ["customer_information:*"],
  records: ["data", "body"],
  final: "always",
  counts: "sub_family",
  nothing: [404],
  attachments: false,
}

export const builtInSources: ReadonlyArray<ResultsSource> = [flowResultsSource, profileSource]

/** Rows that a job no longer has still say how to read the bodies that came from them. */
export const withEarlier = (
  sources: ReadonlyArray<ResultsSource>,
  earlier: ReadonlyArray<ResultsSource>,
): ReadonlyArray<ResultsSource> => {
  const names = new Set(sources.map(({ name }) => name))
  const left = earlier.filter(({ name }) => !names.has(name))
  return [...sources, ...left.map((source) => ({ ...source, enabled: false }))]
}

/** The row of the endpoint that an answer or a body came from, also from before there were rows. */
export const sourceNameOf = ({ kind, source }: { readonly kind: string; readonly source?: string }): string =>
  source ?? (kind === "profile" ? "profile" : "flow_results")

/** Whether records of this `sub_family` may come from the source. */
export const mayBring = ({ families }: ResultsSource, sub_family: string): boolean =>
  families.some((pattern) =>
    pattern.endsWith("*") ? sub_family.startsWith(pattern.slice(0, -1)) : pattern === sub_family,
  )

const placeholders = ["execution_id", "session_id"] as const
export interface SourceIds {
  readonly execution_id?: ExecutionId | undefined
  readonly session_id?: SessionId | undefined
}

/** Whether the ids that a source's path names are present. */
export const isAddressable = ({ path }: ResultsSource, ids: SourceIds): boolean =>
  placeholders.every((name) => !path.includes(`{${name}}`) || ids[name] !== undefined)

/** The field that holds the records of a body, `body` for the whole of it; undefined if there is none. */
export const recordsPlace = (
  { records }: Pick<ResultsSource, "records">,
  body: unknown,
): string | undefined => records.find((name) => name === "body" || ownField(body, name) !== undefined)

/** Whether it is a record, or holds one at any depth; with a stack of its own. */
const holdsRecord = (value: unknown): boolean => {
  const pending = [value]
  while (pending.length > 0) {
    const next = pending.pop()
    if (typeof next !== "object" || next === null) continue
    const { product, sub_family } = next as Readonly<Record<string, unknown>>
    if (typeof product === "string" && typeof sub_family === "string") return true
    for (const each of Object.values(next)) pending.push(each)
  }
  return false
}

/**
 * The records of a body, whatever lists and maps they are in: its field for records, or the whole body if a
 * record stands anywhere else in it.
 */
export const recordsIn = (source: Pick<ResultsSource, "records">, body: unknown): unknown => {
  const place = recordsPlace(source, body)
  if (place === "body") return body
  const data = place === undefined ? undefined : ownField(body, place)
  if (!Predicate.isObject(body)) return data
  const beside = place === undefined ? body : { ...body, [place]: undefined }
  return holdsRecord(beside) ? body : data
}

/** Results whose finality cannot be read count as partial: nothing is ever deleted because of them. */
export const isFinal = ({ final }: Pick<ResultsSource, "final">, body: unknown): boolean =>
  final === "always" || ownField(body, final) === true
