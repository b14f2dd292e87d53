/**
 * The application's subscriptions to flow events (sections 2.8 and 4.11), which belong to no run: listed,
 * made, changed, removed. The reference shows neither bodies nor answers of the changes, so every 2xx is
 * taken as done, and the listing says what came of it.
 */
import { Context, Effect, Layer, Schema } from "effect"
import type { HttpClient } from "effect/http"
import { FlowApi } from "../service/Api.ts"
import { resolveReference, type Secrets, type SecretUnavailable } from "../jobs/Secrets.ts"
import type { ServiceTarget } from "../jobs/Job.ts"
import { openExchange, type Answer } from "./Exchange.ts"
import { AnswerLost, checkAddress } from "./Service.ts"
import type { CallFailure, ServiceSettingsRefused } from "./Service.ts"

type Target = Pick<Extract<ServiceTarget, { _tag: "Remote" }>, "flows_url" | "app_secret">

const Listing = Schema.Array(
  Schema.Struct({ event: Schema.String, base_url: Schema.String, enabled: Schema.Boolean }),
)
/** One item of the listing; there is one for each event. */
export type Subscription = (typeof Listing.Type)[number]

export interface SubscriptionChange {
  readonly events: ReadonlyArray<string>
  readonly base_url: string
  readonly enabled: boolean
}

/** `Refused`: 400, 409 or 422, with what the service says about it. */
export type ChangeAnswer =
  | { readonly _tag: "Done" }
  | { readonly _tag: "NotFound" }
  | { readonly _tag: "Refused"; readonly detail: string }

export class Subscriptions extends Context.Service<
  Subscriptions,
  {
    readonly list: Effect.Effect<ReadonlyArray<Subscription>, CallFailure>
    readonly create: (change: SubscriptionChange) => Effect.Effect<ChangeAnswer, CallFailure>
    readonly update: (change: SubscriptionChange) => Effect.Effect<ChangeAnswer, CallFailure>
    readonly remove: (events: ReadonlyArray<string>) => Effect.Effect<ChangeAnswer, CallFailure>
  }
>()("nightjar/client/Subscriptions") {
  /** Fails before any request if the address or the secret cannot be used safely. */
  static readonly layer = (
    target: Target,
  ): Layer.Layer<
    Subscriptions,
    ServiceSettingsRefused | SecretUnavailable,
    HttpClient.HttpClient | Secrets
  > => Layer.effect(Subscriptions, make(target))
}

const readListing = Schema.decodeUnknownEffect(Listing)
const Detail = Schema.Struct({
  detail: Schema.Union([Schema.String, Schema.Array(Schema.Struct({ msg: Schema.String }))]),
})
const readDetail = Schema.decodeUnknownOption(Detail)

const answerList = Effect.fnUntraced(function* (
  answer: Answer,
): Effect.fn.Return<ReadonlyArray<Subscription>, CallFailure> {
  const { http_status, call } = answer
  if (http_status !== 200) return yield* answer.undocumented
  const { json } = yield* answer.json("list")
  return yield* readListing(json).pipe(
    Effect.mapError(
      () => new AnswerLost({ message: `${call}: the answer is not a list of subscriptions`, http_status }),
    ),
  )
})

const detailOf = (json: unknown): string => {
  const read = readDetail(json)
  if (read._tag === "None") return "no reason given"
  const { detail } = read.value
  return typeof detail === "string" ? detail : detail.map(({ msg }) => msg).join("; ")
}

const answerChange = Effect.fnUntraced(function* (
  answer: Answer,
): Effect.fn.Return<ChangeAnswer, CallFailure> {
  const { http_status } = answer
  if ((http_status >= 200 && http_status < 300) || http_status === 404) {
    yield* answer.discard
    return { _tag: http_status === 404 ? "NotFound" : "Done" }
  }
  if (http_status !== 400 && http_status !== 409 && http_status !== 422) return yield* answer.undocumented
  const { json } = yield* answer.body
  return { _tag: "Refused", detail: `${http_status}: ${detailOf(json)}` }
})

const make = Effect.fnUntraced(function* (target: Target) {
  const flows_url = yield* Effect.fromResult(checkAddress("flows_url", target.flows_url))
  const exchange = yield* openExchange(yield* resolveReference(target.app_secret))
  const { listFlowHooks, createFlowHooks, updateFlowHooks, deleteFlowHooks } = FlowApi.groups.hooks.endpoints
  const list = exchange(listFlowHooks, flows_url, "small", answerList)
  const create = exchange(createFlowHooks, flows_url, "small", answerChange)
  const update = exchange(updateFlowHooks, flows_url, "small", answerChange)
  const remove = exchange(deleteFlowHooks, flows_url, "small", answerChange)
  return Subscriptions.of({
    list: list({}),
    create: (change) => create({ payload: { ...change } }),
    update: (change) => update({ payload: { ...change } }),
    remove: (events) => remove({ payload: { events } }),
  })
})
