/**
 * The metrics of one process for one job, in Effect's own registry and by the table alone. Every one
 * carries the job's name, so that the files of several jobs fit together.
 */
import { Context, Metric } from "effect"
import { PrometheusMetrics } from "effect/observability"
import { metricTable, prometheusName, rowOf } from "./MetricTable.ts"
import type { AttributesOf, MetricName } from "./MetricTable.ts"

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
  readonly #series = new Map<string, (value: number) => void>()

  constructor(job: string) {
    this.context = Context.make(Metric.MetricRegistry, new Map()).pipe(
      Context.add(Metric.CurrentMetricAttributes, { "nightjar.job": job }),
    )
  }

  /** A counter and a gauge change by this much; a histogram takes it as one more value. */
  add<Name extends MetricName>(name: Name, value: number, attributes: AttributesOf<Name>): void {
    this.series(name, attributes)(value)
  }

  /** The same for whoever adds to one series often. */
  series<Name extends MetricName>(name: Name, attributes: AttributesOf<Name>): (value: number) => void {
    const key = `${name}\n${Object.values(attributes).join("\n")}`
    const known = this.#series.get(key)
    if (known !== undefined) return known
    const made = makeSeries(name, attributes)
    const add = (value: number): void => made.modifyUnsafe(value, this.context)
    this.#series.set(key, add)
    return add
  }

  /** All metrics in the text format of Prometheus. */
  prometheus(): string {
    const metricNameMapper = (name: string) => (isListed(name) ? prometheusName(name) : name)
    return PrometheusMetrics.formatUnsafe(this.context, { metricNameMapper })
  }
}
