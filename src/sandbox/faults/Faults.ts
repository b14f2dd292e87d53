/**
 * The content of a file of faults: which calls of the embedded service go wrong, how often, and how. The
 * schema defines what is allowed; `FaultHelp.ts` explains it to people.
 */
import { Schema } from "effect"
import { HttpApi } from "effect/http-api"
import { isDurationWithin } from "../../base/Text.ts"
import { ServiceApi } from "../../service/Api.ts"

/** The contract's endpoints by what a router knows about a request: `GET /api/…/:execution_id`. */
export const endpointOfRoute: ReadonlyMap<string, string> = (() => {
  const names = new Map<string, string>()
  HttpApi.reflect(ServiceApi, {
    onGroup: () => {},
    onEndpoint: ({ endpoint }) => void names.set(`${endpoint.method} ${endpoint.path}`, endpoint.identifier),
  })
  return names
})()

export const endpointNames: ReadonlyArray<string> = [...endpointOfRoute.values()]

/** Kept as it is written, for people who read what happened; an hour is more than any client waits. */
const DurationText = Schema.String.check(
  Schema.makeFilter(isDurationWithin({ minimum: 0, maximum: "1 hour" }), {
    expected: "a duration of at most 1 hour: a number and a unit (millis, seconds, minutes, hours)",
  }),
)
const Share = (expected: string, isShare: (value: number) => boolean) =>
  Schema.Finite.check(Schema.makeFilter(isShare, { expected }))
const Count = Schema.Int.check(
  Schema.makeFilter((count: number) => count >= 1 && count <= 1_000_000_000, {
    expected: "a whole number from 1",
  }),
)
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
  status: Schema.optionalKey(
    Schema.Int.check(
      Schema.makeFilter((status: number) => status >= 200 && status <= 599, {
        expected: "a status from 200 to 599",
      }),
    ),
  ),
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

/** What the whole file contains. */
export const Faults = Schema.Struct({
  seed: Schema.optionalKey(
    Schema.Int.check(Schema.makeFilter((seed: number) => seed >= 0, { expected: "a whole number from 0" })),
  ),
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
