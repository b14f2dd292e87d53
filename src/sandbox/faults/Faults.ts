/**
 * The content of a file of faults: which calls of the embedded service go wrong, how often, and how. The
 * schema defines what is allowed, and help explains it to people.
 */
import { Schema } from "effect"
import { HttpApi, type HttpApiGroup } from "effect/http-api"
import { isDurationWithin } from "../../base/Text.ts"
import { seeded, wrapWords } from "../state/Reading.ts"
import { ServiceApi } from "../../service/Api.ts"

/** An API's endpoints by what a router knows about a request: `GET /api/…/:execution_id`. */
export const endpointsOf = <Id extends string, Groups extends HttpApiGroup.Constraint>(
  api: HttpApi.HttpApi<Id, Groups>,
): ReadonlyMap<string, string> => {
  const names = new Map<string, string>()
  HttpApi.reflect(api, {
    onGroup: () => {},
    onEndpoint: ({ endpoint }) => void names.set(`${endpoint.method} ${endpoint.path}`, endpoint.identifier),
  })
  return names
}
export const endpointOfRoute = endpointsOf(ServiceApi)

export const endpointNames: ReadonlyArray<string> = [...endpointOfRoute.values()]

/** Kept as it is written, for people who read what happened; an hour is more than any client waits. */
const DurationText = Schema.String.check(
  Schema.makeFilter(isDurationWithin({ minimum: 0, maximum: "1 hour" }), {
    expected: "a duration of at most 1 hour: a number and a unit (millis, seconds, minutes, hours)",
  }),
)
const Share = (expected: string, isShare: (value: number) => boolean) =>
  Schema.Finite.check(Schema.makeFilter(isShare, { expected }))
const Whole = (expected: string, min: number, max: number) =>
  Schema.Int.check(Schema.makeFilter((value: number) => value >= min && value <= max, { expected }))
const Count = Whole("a whole number from 1", 1, 1_000_000_000)
const Text = Schema.String.check(Schema.isMinLength(1, { expected: "a non-empty string" }))

const EndpointName = Schema.String.check(
  Schema.makeFilter((name: string) => name === "*" || endpointNames.includes(name), {
    expected: "an endpoint's name, or `*`",
  }),
)

/** What a rule does to a call; exactly one of these, except `delay`, which may come before any other. */
const kindKeys = ["status", "reset", "cut", "malformed", "hang"] as const
const timeKeys = ["rate", "script", "first"] as const

const FaultFields = Schema.Struct({
  /** Endpoints of the contract, or `*` for all of them. */
  on: Schema.Union([EndpointName, Schema.NonEmptyArray(EndpointName)]),
  /** Only calls about this customer, engine or application (its `app_id`). */
  customer: Schema.optionalKey(Text),
  engine: Schema.optionalKey(Text),
  application: Schema.optionalKey(Text),
  /** Which of the rule's calls: this share, these by their numbers from 1, or the first few. */
  rate: Schema.optionalKey(Share("a number from 0 to 1", (rate) => rate >= 0 && rate <= 1)),
  script: Schema.optionalKey(Schema.NonEmptyArray(Count)),
  first: Schema.optionalKey(Count),
  status: Schema.optionalKey(Whole("a status from 200 to 599", 200, 599)),
  /** For `status`: the call takes effect anyway. */
  applied: Schema.optionalKey(Schema.Boolean),
  body: Schema.optionalKey(Schema.String),
  retry_after: Schema.optionalKey(DurationText),
  delay: Schema.optionalKey(DurationText),
  reset: Schema.optionalKey(Schema.Literals(["before", "after"])),
  cut: Schema.optionalKey(Share("a share from 0 up to, but not, 1", (cut) => cut >= 0 && cut < 1)),
  malformed: Schema.optionalKey(Schema.Literal(true)),
  hang: Schema.optionalKey(Schema.Literal(true)),
})
export type Fault = typeof FaultFields.Type

/** A key that has a meaning only with one of these kinds. */
const companions: ReadonlyArray<readonly [keyof Fault, ReadonlyArray<(typeof kindKeys)[number]>]> = [
  ["retry_after", ["status"]],
  ["applied", ["status"]],
  ["body", ["status", "malformed"]],
]
const quoted = (keys: ReadonlyArray<string>) => keys.map((key) => `\`${key}\``).join(", ")

/** Which fields may be combined; a `body` alone is a malformed one. */
const judgeTogether = (fault: Fault) => {
  const kinds = kindKeys.filter((key) => fault[key] !== undefined)
  const [kind] = kinds
  const times = timeKeys.filter((key) => fault[key] !== undefined)
  if (kinds.length > 1) return `${quoted(kinds)} exclude each other: write a fault for each`
  if (kind === undefined && fault.delay === undefined && fault.body === undefined)
    return `this does not say what happens: one of ${quoted([...kindKeys, "delay"])} is missing`
  if (times.length > 1) return `${quoted(times)} exclude each other; without any, it is every call`
  if (kind === "hang" && fault.delay !== undefined)
    return "`delay` never ends with `hang`: remove one of them"
  const lost = companions.find(
    ([key, needed]) =>
      fault[key] !== undefined && (kind === undefined ? key !== "body" : !needed.includes(kind)),
  )
  if (lost === undefined) return true
  return { path: [lost[0]], issue: `\`${lost[0]}\` has a meaning only with ${quoted(lost[1])}` }
}

const FaultRule = FaultFields.check(Schema.makeFilter(judgeTogether))

export const Faults = Schema.Struct({
  seed: Schema.optionalKey(Whole("a whole number from 0", 0, Number.MAX_SAFE_INTEGER)),
  faults: Schema.Array(FaultRule).check(
    Schema.makeFilter((faults: ReadonlyArray<Fault>) => faults.length <= 1_000, {
      expected: "at most 1000 faults",
    }),
  ),
})
export type Faults = typeof Faults.Type

/** What a rule does, in the file's own words; for people who read what happened. */
export const faultName = (fault: Fault): string => {
  const kind = kindKeys.find((key) => fault[key] !== undefined)
  const named = kind === undefined ? [] : [`${kind}: ${String(fault[kind])}`]
  const body = kind === undefined && fault.body !== undefined ? ["malformed: true"] : []
  const delay = fault.delay === undefined ? [] : [`delay: ${fault.delay}`]
  return [...named, ...body, ...delay].join(", ")
}

// A draw depends on seed, rule, endpoint, customer and the number of the customer's call, on nobody else's.

/** A call as the rules see it; what a request does not show is absent. */
export interface JudgedCall {
  readonly endpoint: string
  readonly customer?: string | undefined
  readonly engine?: string | undefined
  readonly application?: string | undefined
}

/** What was counted so far. It belongs to one service; only `judgeCall` changes it. */
export interface FaultTally {
  /** Calls that each rule is about, by the rule's position in the file. */
  readonly matched: Map<number, number>
  /** Calls of one customer (or of no particular one) to one endpoint. */
  readonly calls: Map<string, number>
  /** Faults that happened, by the rule's position in the file. */
  readonly injected: Map<number, number>
}

export const emptyTally = (): FaultTally => ({ matched: new Map(), calls: new Map(), injected: new Map() })

const increase = <Key>(counts: Map<Key, number>, key: Key): number => {
  const count = (counts.get(key) ?? 0) + 1
  counts.set(key, count)
  return count
}

const isAbout = (fault: Fault, call: JudgedCall): boolean => {
  const endpoints = typeof fault.on === "string" ? [fault.on] : fault.on
  const endpoint = endpoints.includes("*") || endpoints.includes(call.endpoint)
  const narrowed = ["customer", "engine", "application"] as const
  return endpoint && narrowed.every((key) => fault[key] === undefined || fault[key] === call[key])
}

/** Whether the rule applies to its `matched`-th call, which is the customer's `nth` at this endpoint. */
const strikes = (
  seed: number,
  index: number,
  fault: Fault,
  call: JudgedCall,
  { matched, nth }: { readonly matched: number; readonly nth: number },
): boolean => {
  if (fault.script !== undefined) return fault.script.includes(matched)
  if (fault.first !== undefined) return matched <= fault.first
  if (fault.rate === undefined) return true
  return seeded("fault", seed, index, call.endpoint, call.customer ?? "", nth).chance(fault.rate)
}

/** What happens to this call, if anything: the first rule of the file that applies wins. */
export const judgeCall = (faults: Faults, tally: FaultTally, call: JudgedCall): Fault | undefined => {
  const nth = increase(tally.calls, JSON.stringify([call.endpoint, call.customer ?? null]))
  const struck = faults.faults.flatMap((fault, index) => {
    if (!isAbout(fault, call)) return []
    const matched = increase(tally.matched, index)
    return strikes(faults.seed ?? 1, index, fault, call, { matched, nth }) ? [{ fault, index }] : []
  })
  const [first] = struck
  if (first === undefined) return undefined
  increase(tally.injected, first.index)
  return first.fault
}

const kinds = {
  "status: 503":
    "answers with this status; optional: `body: TEXT`, `retry_after: 30 seconds`, `applied: true`",
  "delay: 2 seconds": "answers late, in the service's own time; can be combined with any other except `hang`",
  "reset: before": "breaks the connection before anything happens",
  "reset: after": "breaks the connection after the call took effect: its answer is lost",
  "cut: 0.5": "sends only this share of the body, then breaks the connection",
  "malformed: true":
    "takes effect, but answers with a body that is not JSON; `body: TEXT` alone sends that text",
  "hang: true": "accepts the call and never answers",
}

export const faultHelp = [
  "--faults FILE lists in YAML what goes wrong; for each call, the first fault that applies is used:",
  "",
  "  seed: 7",
  "  faults:",
  "    - { on: startExecution, rate: 0.05, status: 503, retry_after: 30 seconds }",
  '    - { on: "*", customer: c-0001, first: 3, reset: before }',
  "    - { on: [readExecution, readFlowResults], script: [2, 5], cut: 0.5 }",
  "",
  "`on` names endpoints; `customer`, `engine` and `application` (an app_id) narrow it. When: `rate` (a share",
  "of the calls, drawn from the seed), `script` (these calls, counted from 1) or `first`; else always. What:",
  "",
  ...Object.entries(kinds).map(([key, meaning]) => `  ${key.padEnd(18)}${meaning}`),
  "",
  "Endpoints:",
  ...wrapWords(endpointNames.join(" "), "  "),
  "",
  "GET /admin on the same port shows what happened and which rules callers broke; /admin/truth as JSON.",
  "Reads of states, polls that came too fast, catalogue reads and faults, so the calls of `script` and",
  "`first` too, are counted since the service was started, also with --state.",
].join("\n")
