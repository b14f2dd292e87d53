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

const describeTarget = ({ method, template, host, port }: CallTarget) => ({
  name: `${method} ${template}`,
  values: {
    "http.request.method": method,
    "url.template": template,
    "server.address": host,
    "server.port": port,
  },
})

export const observeCalls = (
  meter: Meter,
  spans: Spans | undefined,
  ownerOf: (ids: CallIds, at: bigint) => Tracer.AnySpan | undefined,
): ObserveCalls => {
  const described = new WeakMap<CallTarget, ReturnType<typeof describeTarget>>()
  return (target, ids, at) => {
    let known = described.get(target)
    if (known === undefined) described.set(target, (known = describeTarget(target)))
    const { name, values } = known
    const span = spans?.begin({ name, kind: "client", parent: ownerOf(ids, at), at, values })
    let status: number | undefined
    return {
      answered: (http_status) => {
        status = http_status
        span?.set({ "http.response.status_code": http_status })
      },
      ended: (failure, endedAt) => {
        const error = errorOf(failure, status)
        span?.end(endedAt, error)
        meter.add("http.client.request.duration", Math.max(0, Number(endedAt - at) / 1e9), {
          ...values,
          "server.port": String(target.port),
          "http.response.status_code": status === undefined ? undefined : String(status),
          "error.type": error,
        })
      },
    }
  }
}
