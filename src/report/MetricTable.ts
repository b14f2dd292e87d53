/**
 * Every metric there is, named by the OpenTelemetry conventions: its kind, its unit, what it says and its
 * attributes. A metric, or an attribute of one, that is not listed here does not compile.
 * `schemas/metrics.md` is made from it. No attribute may name a customer or an execution.
 */

interface MetricRow {
  /** counter: only grows. gauge: goes up and down. histogram: how many were how large. */
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

export const metricTable = {
  "nightjar.runs": {
    kind: "counter",
    unit: "{run}",
    about: "Runs that ended, by exit code.",
    attributes: ["nightjar.run.exit_code"],
  },
  "nightjar.tasks": {
    kind: "counter",
    unit: "{task}",
    about: "Tasks that ended; one that is resumed or read again may end more than once.",
    attributes: ["nightjar.engine", "nightjar.outcome", "nightjar.reason", "nightjar.who_acts"],
  },
  "nightjar.task.duration": {
    kind: "histogram",
    unit: "s",
    about: "From a task's first start to its end, waits between attempts included.",
    attributes: ["nightjar.engine", "nightjar.outcome"],
    bounds: long,
  },
  "nightjar.task.waits": {
    kind: "counter",
    unit: "{wait}",
    about: "How often a task was put off, by the reason.",
    attributes: ["nightjar.engine", "nightjar.reason"],
  },
  "nightjar.attempt.duration": {
    kind: "histogram",
    unit: "s",
    about: "From sending a start to the end of its execution at the service.",
    attributes: ["nightjar.engine", "nightjar.reason"],
    bounds: long,
  },
  "nightjar.attempts.active": {
    kind: "gauge",
    unit: "{attempt}",
    about: "Attempts whose start was sent and whose execution is not over.",
    attributes: ["nightjar.engine"],
  },
  "nightjar.starts": {
    kind: "counter",
    unit: "{start}",
    about: "Starts by how the service answered them.",
    attributes: ["nightjar.engine", "nightjar.answer"],
  },
  "nightjar.troubles": {
    kind: "counter",
    unit: "{trouble}",
    about: "How often the service was silent or asked for fewer calls, or an engine was unavailable.",
    attributes: ["nightjar.trouble"],
  },
  "nightjar.landed.size": {
    kind: "counter",
    unit: "By",
    about: "Bytes of results that were landed.",
    attributes: ["nightjar.landed.kind"],
  },
  "nightjar.documents": {
    kind: "counter",
    unit: "{document}",
    about: "Documents that results name, by what became of them.",
    attributes: ["nightjar.document.status"],
  },
  "nightjar.deletions": {
    kind: "counter",
    unit: "{deletion}",
    about: "Answers to deletions of executions at the service.",
    attributes: ["nightjar.deletion.outcome"],
  },
  "http.client.request.duration": {
    kind: "histogram",
    unit: "s",
    about: "Requests to the service, from sending to the last byte of the answer (documents: to the first).",
    attributes: [
      "http.request.method",
      "server.address",
      "server.port",
      "url.template",
      "http.response.status_code",
      "error.type",
    ],
    bounds: short,
  },
} as const satisfies Readonly<Record<string, MetricRow>>

export type MetricName = keyof typeof metricTable

/** All attributes of a metric; one without a value is left out of that point. */
export type AttributesOf<Name extends MetricName> = {
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
