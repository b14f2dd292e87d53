/** `schemas/metrics.md`: every metric of the table, as it is called by OpenTelemetry and by Prometheus. */
import { metricTable, prometheusName, rowOf, type MetricName } from "../../src/report/Spans.ts"

const names = Object.keys(metricTable) as ReadonlyArray<MetricName>

const entry = (name: MetricName): string => {
  const { kind, unit, about, attributes, bounds } = rowOf(name)
  return [
    `## ${name}`,
    "",
    about,
    "",
    `- In Prometheus: \`${prometheusName(name)}\``,
    `- Kind: ${kind}, unit \`${unit}\``,
    `- Attributes: ${attributes.map((one) => `\`${one}\``).join(", ")}`,
    ...(bounds === undefined ? [] : [`- Buckets up to: ${bounds.join(", ")}`]),
    "",
  ].join("\n")
}

export const metricsDocument = (): string =>
  "# Metrics\n\n" +
  "Generated from `src/report/Spans.ts` by `npm run generate`. A job with `telemetry` writes all of them to\n" +
  "`runs/<run_id>/metrics.prom` and sends them to the collector that it names. Each has the attribute `nightjar.job` too;\n" +
  "in Prometheus, attributes have underscores instead of points. No metric names a customer.\n\n" +
  names.map(entry).join("\n")
