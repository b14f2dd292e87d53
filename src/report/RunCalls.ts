/**
 * Requests to the service as spans and as a metric, by the conventions for HTTP clients: each under the
 * attempt that it is for, its address as a template. `url.full` is left out, because it has ids in it.
 */
import type { Tracer } from "effect"
import type { CallIds, CallTarget, ObserveCalls } from "../client/CallObserver.ts"
import type { Meter } from "./Meter.ts"
import type { Spans } from "./Spans.ts"

/** The status if that is the error, else what went wrong, as a word of our own. */
const errorOf = (failure: string | undefined, status: number | undefined): string | undefined =>
  failure !== undefined && status !== undefined && status >= 400 ? String(status) : failure

/** What every request to the same target has in common is made once. */
const describeTarget = (meter: Meter, { method, template, host, port }: CallTarget) => {
  const values = {
    "http.request.method": method,
    "url.template": template,
    "server.address": host,
    "server.port": port,
  }
  const series = new Map<string, (value: number) => void>()
  const durationOf = (status: number | undefined, error: string | undefined) => {
    const key = `${status} ${error}`
    const known = series.get(key)
    if (known !== undefined) return known
    const made = meter.series("http.client.request.duration", {
      ...values,
      "server.port": String(port),
      "http.response.status_code": status === undefined ? undefined : String(status),
      "error.type": error,
    })
    series.set(key, made)
    return made
  }
  return { name: `${method} ${template}`, values, durationOf }
}

export const observeCalls = (
  meter: Meter,
  spans: Spans | undefined,
  ownerOf: (ids: CallIds, at: bigint) => Tracer.AnySpan | undefined,
): ObserveCalls => {
  const described = new WeakMap<CallTarget, ReturnType<typeof describeTarget>>()
  return (target, ids, at) => {
    let known = described.get(target)
    if (known === undefined) described.set(target, (known = describeTarget(meter, target)))
    const { name, values, durationOf } = known
    const parent = spans === undefined ? undefined : ownerOf(ids, at)
    let status: number | undefined
    return {
      answered: (http_status) => {
        status = http_status
      },
      ended: (failure, endedAt) => {
        const error = errorOf(failure, status)
        durationOf(status, error)(Math.max(0, Number(endedAt - at) / 1e9))
        // Nothing is below a request: its span is made when all of it is known.
        const seen = status === undefined ? values : { ...values, "http.response.status_code": status }
        spans?.tell({ name, kind: "client", parent, at, values: seen }, endedAt, error)
      },
    }
  }
}
