/**
 * What a run showed where the reference leaves room: for each key of a reading the value, and the call that
 * shows it. A key is reported only if the answer can mean nothing else.
 */
import { Predicate } from "effect"
import { sumOf } from "../../base/Text.ts"
import { idForm, jsonOf, type RecordedCall } from "./Compare.ts"
import { countedTotal, mayBring, readProductsCount, subFamilyOf } from "../../service/FlowResults.ts"
import type { ProductsCount, ResultsSource } from "../../service/FlowResults.ts"
import { ownField } from "../../service/ReadJson.ts"
import { findingOf, proveDrain, type DrainProof, type SourceFinding } from "../../task/DrainProof.ts"

export interface Observed {
  readonly key: string
  readonly value: string
  /** The call that shows it. */
  readonly call: number
}

type Calls = ReadonlyArray<RecordedCall>
type Seen = string | undefined
type Look = (call: RecordedCall, calls: Calls) => Seen

const named = (call: RecordedCall, ...names: ReadonlyArray<string>): boolean =>
  names.includes(call.route.name)
const textOf = (json: unknown, name: string): string | undefined => {
  const value = ownField(json, name)
  return typeof value === "string" && value !== "" ? value : undefined
}
/** For an optional, nullable field: how a value that is certainly present is written. */
const shownAs = (json: unknown, name: string): "shown" | "absent" | "null" =>
  Predicate.isObject(json) && Object.hasOwn(json, name) ? (json[name] === null ? "null" : "shown") : "absent"

const isState = (call: RecordedCall): boolean =>
  named(call, "readExecution") &&
  (call.http_status === 200 || call.http_status === 202) &&
  Predicate.isObject(jsonOf(call))
const isClosed = (call: RecordedCall): boolean => isState(call) && call.http_status === 200
const isAcceptance = (call: RecordedCall): boolean =>
  named(call, "startExecution", "startTokenized") &&
  call.http_status === 202 &&
  Predicate.isObject(jsonOf(call))

/** The last state before a call shows whether there was anything to read. */
const loggedInBefore = (call: RecordedCall, calls: Calls): boolean => {
  const closed = calls.findLast((one) => one.number < call.number && isClosed(one))
  return closed !== undefined && ownField(jsonOf(closed), "authentication_status") === "AUTH_OK"
}

const countsOf = (call: RecordedCall): Seen => {
  if (!isClosed(call)) return undefined
  const counts = ownField(jsonOf(call), "products_count")
  if (counts === undefined || counts === null) return shownAs(jsonOf(call), "products_count")
  if (Array.isArray(counts)) return "list"
  if (!Predicate.isObject(counts)) return undefined
  const values = Object.values(counts)
  if (values.every(Number.isSafeInteger)) return "shown"
  if (values.every((value) => typeof value === "number")) return "float"
  return values.every((value) => typeof value === "string") ? "text" : undefined
}

const datesOf = (call: RecordedCall): Seen => {
  const date = isState(call) ? textOf(jsonOf(call), "date_created") : undefined
  if (date === undefined || !/^\d{4}-\d{2}-\d{2}T/.test(date)) return undefined
  if (date.endsWith("Z")) return "zulu"
  return date.endsWith("+00:00") ? "offset" : /[+-]\d{2}:?\d{2}$/.test(date) ? undefined : "naive"
}

/** A form without `$defs`, `required` or `x-meta` either leaves them out or writes null. */
const formsOf = (call: RecordedCall): Seen => {
  if (!named(call, "showEngine") || call.http_status !== 200) return undefined
  const engine = jsonOf(call)
  const features = ownField(engine, "features")
  const ofFeatures = Array.isArray(features) ? features.map((one) => ownField(one, "configurations")) : []
  const forms = [ownField(engine, "parameters"), ownField(engine, "configurations"), ...ofFeatures]
  const ways = forms
    .filter(Predicate.isObject)
    .flatMap((form) => ["$defs", "required", "x-meta"].map((name) => shownAs(form, name)))
  return ways.includes("null") ? "null" : ways.includes("absent") ? "absent" : undefined
}

const errorListsOf = (call: RecordedCall): Seen => {
  if (!isClosed(call)) return undefined
  const lists = ["parameters_errors", "configurations_errors"].map((name) => ownField(jsonOf(call), name))
  if (lists.some((list) => Array.isArray(list) && list.length === 0)) return "empty"
  return lists.every((list) => list === undefined) ? "absent" : undefined
}

const messagesOf = (call: RecordedCall): Seen => {
  if (!isState(call)) return undefined
  const messages = ownField(jsonOf(call), "messages")
  if (messages === undefined) return "absent_when_empty"
  return Array.isArray(messages) && messages.length === 0 ? "shown" : undefined
}

const isHtmlOr404 = ({ body, headers }: RecordedCall): boolean =>
  body._tag === "Text" || (headers["content-type"] ?? "").includes("html")

const flowApiOf: Look = (call, calls) => {
  if (!named(call, "readFlowResults") || call.http_status === undefined) return undefined
  if (call.http_status === 403) return "forbidden"
  if (call.http_status !== 404)
    return call.http_status < 500 || call.http_status === 504 ? "present" : undefined
  // A 404 also means that there is no session; an HTML page comes from a gateway in front of it.
  return loggedInBefore(call, calls) && isHtmlOr404(call) ? "absent" : undefined
}

const flowIdsOf: Look = (call) => {
  const id = call.ids["session_id"]
  if (!named(call, "readFlowResults") || id === undefined || idForm(id) === "object_id") return undefined
  if (call.http_status === 422) return "object_id"
  return call.http_status === 200 ? "any" : undefined
}

const flowErrorOf: Look = (call, calls) => {
  const status = call.http_status ?? 0
  if (!named(call, "readFlowResults") || ![404, 412, 429, 504].includes(status)) return undefined
  if (flowApiOf(call, calls) === "absent") return undefined
  if (call.body._tag === "Empty") return "empty"
  if (call.body._tag === "Text") return "html"
  const json = jsonOf(call)
  if (ownField(json, "detail") !== undefined) return "detail"
  const coded = [json, ownField(json, "error")].some((one) => ownField(one, "code") !== undefined)
  return coded ? "code" : undefined
}

const retryAfterOf = ({ http_status, headers }: RecordedCall): Seen => {
  if (http_status !== 429 && http_status !== 503 && http_status !== 504) return undefined
  const value = headers["retry-after"]
  return value === undefined ? "absent" : /^\d+$/.test(value.trim()) ? "seconds" : "date"
}

const sessionFormOf = (call: RecordedCall): Seen => {
  const session = isAcceptance(call) || isState(call) ? textOf(jsonOf(call), "session_id") : undefined
  if (session === undefined) return undefined
  if (session === textOf(jsonOf(call), "execution_id")) return "execution_id"
  const form = idForm(session)
  return form === "hex" ? undefined : form
}

const abortOf: Look = (call, calls) => {
  if (!isState(call)) return undefined
  const abort = calls.findLast((one) => one.number < call.number && named(one, "abortExecution"))
  if (abort?.http_status !== 204 || abort.ids["execution_id"] !== call.ids["execution_id"]) return undefined
  return call.http_status === 200 ? "at_once" : "late"
}

/** A kind of result that is read without the flow API: a row of the job that is not in the contract. */
const isOwnKind = ({ route: { name, path, source } }: RecordedCall): boolean =>
  name === source?.name && path.startsWith("/executions/results/{execution_id}/")

const kindsOf: Look = (call, calls) => {
  if (!isOwnKind(call)) return undefined
  if (call.http_status === 200) return "present"
  // A kind with no results answers 404 too.
  const others = calls.some((one) => isOwnKind(one) && one.http_status === 200)
  return call.http_status === 404 && !others ? "absent" : undefined
}

/** What the status of an answer to this call shows. */
const byStatus =
  (name: string, seen: Readonly<Record<number, string>>): Look =>
  (call) =>
    named(call, name) ? seen[call.http_status ?? 0] : undefined

const readable = (name: string): Look => {
  const look = byStatus(name, { 200: "present", 404: "absent" })
  return (call, calls) => (loggedInBefore(call, calls) ? look(call, calls) : undefined)
}

const looks: Readonly<Record<string, Look>> = {
  // If both requests carry the same external id, an echo and the running execution's id are the same text.
  conflict_external_id: (call) => {
    if (!named(call, "startExecution") || call.http_status !== 409) return undefined
    const shown = shownAs(jsonOf(call), "external_execution_id")
    if (shown !== "shown") return shown
    const theirs = textOf(jsonOf(call), "external_execution_id")
    return theirs === call.external_execution_id ? undefined : "running"
  },
  execution_id_form: (call) => idForm((isAcceptance(call) && textOf(jsonOf(call), "execution_id")) || ""),
  session_id_form: sessionFormOf,
  flow_session_ids: flowIdsOf,
  challenge_body: (call) => {
    if (!named(call, "readExecution") || call.http_status !== 423 || !Predicate.isObject(jsonOf(call)))
      return undefined
    return textOf(jsonOf(call), "status_code") === undefined ? "fields" : "state"
  },
  // The start named one, so its absence is deliberate.
  optionals: (call) => (isState(call) ? shownAs(jsonOf(call), "external_execution_id") : undefined),
  form_optionals: formsOf,
  error_lists: errorListsOf,
  messages: messagesOf,
  products_count: countsOf,
  dates: datesOf,
  rejected_state: (call) => {
    if (!isState(call) || ownField(jsonOf(call), "status_code") !== "CONFIGURATION_ERROR") return undefined
    const closed = ownField(jsonOf(call), "is_closed")
    return closed === true ? "closed" : closed === false ? "open" : undefined
  },
  // A run's dates are within the limits, and it starts no engine that the catalogue does not list.
  limits_behaviour_error: () => undefined,
  unknown_engine_start: () => undefined,
  abort_effect: abortOf,
  flow_api: flowApiOf,
  flow_data: (call) => {
    if (!named(call, "readFlowResults") || call.http_status !== 200) return undefined
    const data = ownField(jsonOf(call), "data")
    return Array.isArray(data) ? "list" : Predicate.isObject(data) ? "map" : undefined
  },
  flow_error_body: flowErrorOf,
  retry_after: retryAfterOf,
  profile: readable("readProfile"),
  result_kinds: kindsOf,
  attachments: readable("downloadAttachment"),
  tokenized_body: byStatus("startTokenized", { 202: "token", 405: "absent" }),
  // Only a ticket exchange reads it, and this run asks for no ticket.
  token_status: () => undefined,
  head: (call) => {
    if (!named(call, "pollExecution")) return undefined
    if (call.http_status === 405) return "not_allowed"
    return [200, 202, 404, 423].includes(call.http_status ?? 0) ? "answers" : undefined
  },
}

/**
 * Each key by its first evidence. `changing`: keys for which several values were seen; a reading has only
 * one, so they are not written.
 */
export const observeReading = (calls: Calls) => {
  const observed: Array<Observed> = []
  const changing: Array<string> = []
  const unobserved: Array<string> = []
  for (const [key, look] of Object.entries(looks)) {
    const seen = calls.flatMap((call) => {
      const value = look(call, calls)
      return value === undefined ? [] : [{ key, value, call: call.number }]
    })
    const [first] = seen
    if (first === undefined) unobserved.push(key)
    else if (seen.every(({ value }) => value === first.value)) observed.push(first)
    else if (key === "abort_effect" && seen.some(({ value }) => value === "late"))
      observed.push({ ...first, value: "late" })
    else changing.push(key)
  }
  return { observed, changing, unobserved }
}

// The proof that a run makes before it deletes, made from recorded calls.

/** Statuses that describe the moment, not the execution. */
const passing = (status: number): boolean => status === 429 || status >= 500

/** The last answer of a source that will not change any more. */
export const lastAnswer = ({ path }: ResultsSource, calls: Calls): RecordedCall | undefined =>
  calls.findLast(
    ({ route, http_status }) => route.path === path && http_status !== undefined && !passing(http_status),
  )

/** `products_count` from the last closed state. */
export const countsIn = (calls: Calls): ProductsCount => {
  const closed = calls.findLast((call) => named(call, "readExecution") && call.http_status === 200)
  if (closed === undefined) return { _tag: "Unknown", why: "no closed state was read" }
  return readProductsCount(ownField(jsonOf(closed), "products_count"))
}

const findingsOf = (source: ResultsSource, calls: Calls): ReadonlyArray<SourceFinding> => {
  const call = source.enabled ? lastAnswer(source, calls) : undefined
  return call?.http_status === 200 ? [findingOf(source, jsonOf(call))] : []
}

/** What a run with these sources would find complete, and which records it would miss. */
export const proofOf = (sources: ReadonlyArray<ResultsSource>, calls: Calls): DrainProof => {
  const findings = sources.flatMap((source) => findingsOf(source, calls))
  return proveDrain(countsIn(calls), findings)
}

/** The counts of the families that a source may return. */
const countsFor = (source: ResultsSource, counts: Readonly<Record<string, number>>) =>
  Object.fromEntries(Object.entries(counts).filter(([key]) => mayBring(source, subFamilyOf(key))))

/** Whether the source's answer contains everything counted for it, compared in this way. */
export const meetsCounts = (
  source: ResultsSource,
  calls: Calls,
  counts: Readonly<Record<string, number>>,
  way: "sub_family" | "product",
): boolean => {
  const asked: ResultsSource = { ...source, counts: way, final: "always" }
  return proveDrain({ _tag: "Counted", counts: countsFor(source, counts) }, findingsOf(asked, calls)).isWhole
}

/** `2 of 3 records`, of those counted for the source. */
export const shareOf = (source: ResultsSource, calls: Calls, counts: Readonly<Record<string, number>>) => {
  const read = findingsOf(source, calls).flatMap(({ tally }) => [...tally.bySubFamily.values()])
  return { read: sumOf(read), counted: countedTotal(countsFor(source, counts)) }
}
