/**
 * `telemetry` in a job file: where logs, metrics and traces of a run go. An address may be written out, but
 * the headers with which a collector knows us are a secret. Without it nothing is sent, whatever the
 * environment says.
 */
import { isAbsolute, join } from "node:path"
import { Schema } from "effect"
import type { Telemetry } from "./Job.ts"
import { looksLikeReference, parseReference } from "./Reference.ts"
import { parseServiceUrl, reference, serviceUrlRule, text } from "./Scalars.ts"
import { optional } from "./ShapeKeys.ts"

const isEndpoint = (value: string): boolean =>
  looksLikeReference(value) ? parseReference(value, "") !== undefined : parseServiceUrl(value) !== undefined

export const TelemetryShape = Schema.Struct({
  otlp: optional(
    text.check(
      Schema.makeFilter(isEndpoint, {
        expected: `${serviceUrlRule}, or env:NAME, file:PATH or exec:COMMAND`,
        toJsonSchema: () => ({ pattern: "^(?:https?://|env:|file:|exec:)|\\$\\{" }),
      }),
    ),
    "Where logs, metrics and traces are sent (OTLP over HTTP, JSON): the address above /v1/traces, or " +
      "env:NAME, file:PATH or exec:COMMAND.",
  ),
  headers: optional(
    reference,
    "What is sent with them, as name=value,name=value: env:NAME, file:PATH or exec:COMMAND.",
  ),
  prometheus: optional(
    text.check(
      Schema.isPattern(/\.prom$/, { expected: "a file whose name ends in .prom: it is written over" }),
    ),
    "A file that gets the metrics too, for a textfile collector; relative to the job file.",
  ),
  customer_ids: optional(
    Schema.Boolean,
    "Whether spans and logs name customers, tasks, executions and sessions.",
    false,
  ),
})

/** Paths and references are relative to the job file's folder. */
export const readTelemetry = (
  { otlp, headers, prometheus, customer_ids }: typeof TelemetryShape.Type,
  folder: string,
): Telemetry => {
  const endpoint = otlp === undefined ? undefined : (parseReference(otlp, folder) ?? otlp)
  const held = headers === undefined ? undefined : parseReference(headers, folder)
  return {
    ...(endpoint === undefined ? {} : { otlp: endpoint }),
    ...(held === undefined ? {} : { headers: held }),
    ...(prometheus === undefined
      ? {}
      : { prometheus: isAbsolute(prometheus) ? prometheus : join(folder, prometheus) }),
    customer_ids: customer_ids ?? false,
  }
}
