/**
 * Spans over Effect's tracer, begun and ended by facts: nothing else of the program is traced, so nothing
 * leaves that is not named here.
 */
import { Context, Exit, Metric, Option, Tracer } from "effect"
import { PrometheusMetrics } from "effect/observability"

export type SpanValues = Readonly<Record<string, string | number | undefined>>

interface SpanStart {
  readonly name: string
  readonly kind: "internal" | "client"
  readonly parent: Tracer.AnySpan | undefined
  /** Nanoseconds since the epoch. */
  readonly at: bigint
  readonly values: SpanValues
}

/** Most values are of a handful of keys, and there is one of these calls for each request. */
const setOn = (span: Tracer.Span, values: SpanValues): void => {
  for (const key in values) {
    const value = values[key]
    if (value !== undefined) span.attribute(key, value)
  }
}

/** A span that is over keeps only its ids: later requests may still belong to it. */
export class OpenSpan {
  readonly ids: Tracer.ExternalSpan
  #span: Tracer.Span | undefined

  constructor(span: Tracer.Span) {
    this.#span = span
    this.ids = Tracer.externalSpan({ spanId: span.spanId, traceId: span.traceId })
  }

  set(values: SpanValues): void {
    if (this.#span !== undefined) setOn(this.#span, values)
  }

  /** Something that happened meanwhile; a span holds a limited number of them. */
  note(name: string, at: bigint, values: Readonly<Record<string, string>>): void {
    this.#span?.event(name, at, values)
  }

  /** With an error's type, as the conventions have it, the span has failed. */
  end(at: bigint, error?: string): void {
    const span = this.#span
    if (span === undefined) return
    this.#span = undefined
    if (error !== undefined) span.attribute("error.type", error)
    span.end(at, error === undefined ? Exit.void : Exit.fail({ name: error, message: error }))
  }
}

export class Spans {
  readonly #tracer: Tracer.Tracer

  constructor(tracer: Tracer.Tracer) {
    this.#tracer = tracer
  }

  begin({ name, kind, parent, at, values }: SpanStart): OpenSpan {
    const span = this.#tracer.span({
      name,
      kind,
      parent: Option.fromUndefinedOr(parent),
      annotations: Context.empty(),
      links: [],
      startTime: at,
      root: parent === undefined,
      sampled: true,
    })
    setOn(span, values)
    return new OpenSpan(span)
  }
}

// Every metric there is, named by the OpenTelemetry conventions: its kind, its unit, what it says and its
// attributes. A metric, or an attribute of one, that is not listed here does not compile.
// `schemas/metrics.md` is made from it. No attribute may name a customer or an execution.

interface MetricRow {
  readonly kind: "counter" | "gauge" | "histogram"
  /** UCUM; what is counted in braces. */
  readonly unit: string
  readonly about: string
  readonly attributes: ReadonlyArray<string>
  /** Of a histogram: the upper bounds of its buckets, in its unit. */
  readonly bounds?: ReadonlyArray<number>
}

/** A night's executions take from seconds to hours. */
const long = [1, 5, 15, 30, 60, 120, 300, 600, 1_200, 1_800, 3_600, 7_200, 14_400] as const
/** The conventions' own bounds for requests. */
const short = [0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10] as const

/** A gauge goes up and down. */
const gauge = <const Names extends ReadonlyArray<string>>(unit: string, about: string, attributes: Names) =>
  ({ kind: "gauge", unit, about, attributes }) as const
/** A counter only grows. */
const counter = <const Names extends ReadonlyArray<string>>(unit: string, about: string, attributes: Names) =>
  ({ kind: "counter", unit, about, attributes }) as const
/** A histogram counts how many took how many seconds. */
const histogram = <const Names extends ReadonlyArray<string>>(
  bounds: ReadonlyArray<number>,
  about: string,
  attributes: Names,
) => ({ kind: "histogram", unit: "s", about, attributes, bounds }) as const

export const metricTable = {
  "nightjar.runs": counter("{run}", "Runs that ended, by exit code.", ["nightjar.run.exit_code"]),
  "nightjar.tasks": counter(
    "{task}",
    "Tasks that ended; one that is resumed or read again may end more than once.",
    ["nightjar.engine", "nightjar.outcome", "nightjar.reason", "nightjar.who_acts"],
  ),
  "nightjar.task.duration": histogram(
    long,
    "From a task's first start to its end, waits between attempts included.",
    ["nightjar.engine", "nightjar.outcome"],
  ),
  "nightjar.task.waits": counter("{wait}", "How often a task was put off, by the reason.", [
    "nightjar.engine",
    "nightjar.reason",
  ]),
  "nightjar.attempt.duration": histogram(
    long,
    "From sending a start to the end of its execution at the service.",
    ["nightjar.engine", "nightjar.reason"],
  ),
  "nightjar.attempts.active": gauge(
    "{attempt}",
    "Attempts whose start was sent and whose execution is not over.",
    ["nightjar.engine"],
  ),
  "nightjar.starts": counter("{start}", "Starts by how the service answered them.", [
    "nightjar.engine",
    "nightjar.answer",
  ]),
  "nightjar.troubles": counter(
    "{trouble}",
    "How often the service was silent or asked for fewer calls, or an engine was unavailable.",
    ["nightjar.trouble"],
  ),
  "nightjar.landed.size": counter("By", "Bytes of results that were landed.", ["nightjar.landed.kind"]),
  "nightjar.documents": counter("{document}", "Documents that results name, by what became of them.", [
    "nightjar.document.status",
  ]),
  "nightjar.deletions": counter("{deletion}", "Answers to deletions of executions at the service.", [
    "nightjar.deletion.outcome",
  ]),
  "http.client.request.duration": histogram(
    short,
    "Requests to the service, from sending to the last byte of the answer (documents: to the first).",
    [
      "http.request.method",
      "server.address",
      "server.port",
      "url.template",
      "http.response.status_code",
      "error.type",
    ],
  ),
} satisfies Readonly<Record<string, MetricRow>>

export type MetricName = keyof typeof metricTable

/** All attributes of a metric; one without a value is left out of that point. */
type AttributesOf<Name extends MetricName> = {
  readonly [Key in (typeof metricTable)[Name]["attributes"][number]]: string | undefined
}

export const rowOf = (name: MetricName): MetricRow => metricTable[name]

const suffixes: Readonly<Record<string, string>> = { s: "_seconds", By: "_bytes" }

/** As Prometheus wants it: underscores, the unit in full, counters with `_total`. */
export const prometheusName = (name: MetricName): string => {
  const { kind, unit } = rowOf(name)
  const plain = name.replaceAll(/[^a-zA-Z0-9]/g, "_")
  return `${plain}${suffixes[unit] ?? ""}${kind === "counter" ? "_total" : ""}`
}

// The metrics of one process for one job, in Effect's own registry and by the table alone. Every one
// carries the job's name, so that the files of several jobs fit together.

const isListed = (name: string): name is MetricName => Object.hasOwn(metricTable, name)

const makeSeries = (name: MetricName, values: Readonly<Record<string, string | undefined>>) => {
  const { kind, unit, about, bounds = [] } = rowOf(name)
  const said = Object.entries(values).flatMap(([key, value]) =>
    value === undefined ? [] : [[key, value] as const],
  )
  // Effect takes a metric's unit from this attribute; it is taken out of what is sent.
  const options = { description: about, attributes: { ...Object.fromEntries(said), unit } }
  switch (kind) {
    case "counter":
      return Metric.counter(name, { ...options, incremental: true })
    case "gauge":
      return Metric.gauge(name, options)
    case "histogram":
      return Metric.histogram(name, { ...options, boundaries: bounds })
  }
}

export class Meter {
  /** Where the exporters look for the metrics. */
  readonly context: Context.Context<never>
  readonly #series = new Map<string, ReturnType<typeof makeSeries>>()

  constructor(job: string) {
    this.context = Context.make(Metric.MetricRegistry, new Map()).pipe(
      Context.add(Metric.CurrentMetricAttributes, { "nightjar.job": job }),
    )
  }

  /** A counter and a gauge change by this much; a histogram takes it as one more value. */
  add<Name extends MetricName>(name: Name, value: number, attributes: AttributesOf<Name>): void {
    const key = `${name}\n${Object.values(attributes).join("\n")}`
    let series = this.#series.get(key)
    if (series === undefined) this.#series.set(key, (series = makeSeries(name, attributes)))
    series.modifyUnsafe(value, this.context)
  }

  /** All metrics in the text format of Prometheus. */
  prometheus(): string {
    const metricNameMapper = (name: string) => (isListed(name) ? prometheusName(name) : name)
    return PrometheusMetrics.formatUnsafe(this.context, { metricNameMapper })
  }
}
