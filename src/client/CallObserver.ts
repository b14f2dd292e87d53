/**
 * Who looks on at every request to the service: told its method, its path as a template and its own ids,
 * never an address, a header or a body. Without an observer a call costs what it did.
 */
import { Cause, Context, Effect } from "effect"
import type { CallFailure } from "./Service.ts"

/** What is called: known before the first request, so it is described once. */
export interface CallTarget {
  readonly name: string
  readonly method: string
  /** `/executions/handler/v1/{execution_id}`, with the root's own path. */
  readonly template: string
  readonly host: string
  readonly port: number
}

/** Whose call it is, as far as the request says. */
export interface CallIds {
  readonly execution_id: string | undefined
  readonly session_id: string | undefined
  readonly external_execution_id: string | undefined
}

/** Times are nanoseconds since the epoch, on the clock of the run. */
export interface SeenCall {
  readonly answered: (http_status: number) => void
  /** With the failure's tag; undefined for an answer that the reference lists. */
  readonly ended: (failure: string | undefined, at: bigint) => void
}

export type ObserveCalls = (target: CallTarget, ids: CallIds, at: bigint) => SeenCall

export const CallObserver = Context.Reference<ObserveCalls | undefined>("nightjar/client/CallObserver", {
  defaultValue: () => undefined,
})

interface CalledEndpoint {
  readonly identifier: string
  readonly method: string
  readonly path: string
}

const targetOf = (endpoint: CalledEndpoint, root: string): CallTarget => {
  const url = new URL(root)
  const path = endpoint.path.replaceAll(/:([a-z_]+)/g, "{$1}")
  return {
    name: endpoint.identifier,
    method: endpoint.method,
    template: `${url.pathname === "/" ? "" : url.pathname}${path}`,
    host: url.hostname,
    port: url.port === "" ? (url.protocol === "https:" ? 443 : 80) : Number(url.port),
  }
}

interface Parts {
  readonly params?: unknown
  readonly payload?: unknown
}

const textIn = (part: unknown, name: keyof CallIds): string | undefined => {
  if (typeof part !== "object" || part === null || !Object.hasOwn(part, name)) return undefined
  const value: unknown = Reflect.get(part, name)
  return typeof value === "string" ? value : undefined
}

/** Only these three of a request's parts: a payload holds a login. */
const callIds = (parts: Parts): CallIds => ({
  execution_id: textIn(parts.params, "execution_id") ?? textIn(parts.payload, "execution_id"),
  session_id: textIn(parts.params, "session_id"),
  external_execution_id: textIn(parts.payload, "external_execution_id"),
})

type Call<A> = (answered: SeenCall["answered"]) => Effect.Effect<A, CallFailure>

const observed = <A>(
  observe: ObserveCalls,
  target: CallTarget,
  ids: CallIds,
  call: Call<A>,
): Effect.Effect<A, CallFailure> =>
  Effect.clockWith((clock) => {
    const seen = observe(target, ids, clock.currentTimeNanosUnsafe())
    return Effect.onExit(call(seen.answered), (exit) =>
      Effect.sync(() => {
        const failure = exit._tag === "Success" ? undefined : exit.cause.reasons.find(Cause.isFailReason)
        const tag = exit._tag === "Success" ? undefined : (failure?.error._tag ?? "Interrupted")
        seen.ended(tag, clock.currentTimeNanosUnsafe())
      }),
    )
  })

const unseen = () => undefined

/** The calls of one endpoint, each looked on at from its request to the last byte read of its answer. */
export const observing = (observe: ObserveCalls | undefined, endpoint: CalledEndpoint, root: string) => {
  if (observe === undefined) return <A>(_: Parts, call: Call<A>) => call(unseen)
  const target = targetOf(endpoint, root)
  return <A>(parts: Parts, call: Call<A>) => observed(observe, target, callIds(parts), call)
}
