/**
 * The top level of a job file, key by key: each part and each item of a list is decoded on its own, so that
 * one mistake does not hide the others.
 */
import { Schema } from "effect"
import type { Item } from "./Assignments.ts"
import { missingKey } from "../base/Schemas.ts"
import { decodePart, unknownKey } from "./Problem.ts"
import type { Context } from "./Problem.ts"
import { FreshnessShape } from "./Freshness.ts"
import { GatesShape } from "./Gates.ts"
import * as Shape from "./JobFile.ts"
import { MinCustomers, Night, OnDeadline, Publish } from "./NightShape.ts"
import { NotifyEntry } from "./Notify.ts"
import { PseudonymsShape } from "./PseudonymsShape.ts"
import { RecordSchemasShape } from "./RecordSchemas.ts"
import { Retain } from "./Retain.ts"
import { deadline, jobName, text, timezone } from "./Scalars.ts"
import { TelemetryShape } from "./Telemetry.ts"

export const decodeParts = (context: Context, root: Readonly<Record<string, unknown>>) => {
  const known = Object.keys(Shape.JobFile.fields)
  for (const key of Object.keys(root)) {
    if (known.includes(key)) continue
    context.findings.error(context.document.place([key], "key"), unknownKey(key, known))
  }
  type Key = keyof typeof Shape.JobFile.fields
  const part = <S extends Schema.ConstraintDecoder<unknown>>(key: Key, schema: S) =>
    Object.hasOwn(root, key) ? decodePart(context, schema, root[key], [key]) : undefined
  const list = <S extends Schema.ConstraintDecoder<unknown>>(key: Key, schema: S): Array<Item<S["Type"]>> => {
    const items = part(key, Schema.Array(Schema.Unknown)) ?? []
    return items.flatMap((item, index) => {
      if (context.findings.isFull()) return []
      const value = decodePart(context, schema, item, [key, index])
      return value === undefined ? [] : [{ index, value }]
    })
  }
  if (!Object.hasOwn(root, "name")) context.findings.error(context.document.place([]), missingKey("name"))
  return {
    has: (key: Key) => Object.hasOwn(root, key),
    namesEngines: !Array.isArray(root["engines"])
      ? Object.hasOwn(root, "engines")
      : root["engines"].length > 0,
    name: part("name", jobName),
    service: part("service", Shape.Service),
    after: list("after", jobName),
    execution: part("execution", Shape.Execution) ?? {},
    concurrency: part("concurrency", Shape.Concurrency) ?? {},
    polling: part("polling", Shape.Polling) ?? {},
    retry: part("retry", Shape.Retry) ?? {},
    flow_results: part("flow_results", Shape.FlowResults) ?? {},
    deadline: part("deadline", deadline),
    on_deadline: part("on_deadline", OnDeadline),
    night: part("night", Night),
    min_customers: part("min_customers", MinCustomers),
    timezone: part("timezone", timezone),
    after_export: part("after_export", Shape.AfterExport),
    output: part("output", Shape.Output) ?? {},
    exit_on: part("exit_on", Shape.ExitOn),
    notify: list("notify", NotifyEntry),
    telemetry: part("telemetry", TelemetryShape),
    retain: part("retain", Retain),
    publish: part("publish", Publish),
    engines: list("engines", Shape.JobEngine),
    customers: list("customers", Shape.Customer),
    schemas: part("schemas", text),
    record_schemas: part("record_schemas", RecordSchemasShape),
    gates: part("gates", GatesShape),
    freshness: part("freshness", FreshnessShape),
    models: part("models", text),
    tokens: part("tokens", Shape.Tokens),
    pseudonyms: part("pseudonyms", PseudonymsShape),
    sessions: list("sessions", Shape.Session),
  }
}

export type Parts = ReturnType<typeof decodeParts>
