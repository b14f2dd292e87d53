/**
 * Tolerant readings of bodies, derived from the contract's schemas: a field of the wrong type is absent, an
 * unknown field is ignored, and nothing here throws, whatever a body holds (promise 11).
 */
import { Redacted, Schema } from "effect"
import { acceptanceFields, executionStateFields, FeatureState } from "../contract/Execution.ts"
import { readProductsCount } from "../contract/ProductsCount.ts"
import { TokenContext, TokenPair } from "../contract/Token.ts"
import { blanked } from "../secrets/KnownSecrets.ts"
import type { AcceptanceView, Body, ExchangeAnswer, StateView } from "./Service.ts"

const utf8 = new TextDecoder()

/** Parses a body once. A body that is no JSON keeps its bytes and has `json` undefined. */
export const readBody = (bytes: Uint8Array): Body => {
  try {
    return { bytes, json: JSON.parse(utf8.decode(bytes)) }
  } catch {
    return { bytes, json: undefined }
  }
}

export type JsonObject = Readonly<Record<string, unknown>>

export const isJsonObject = (json: unknown): json is JsonObject =>
  typeof json === "object" && json !== null && !Array.isArray(json)

/** The own field of that name; a name that only the prototype has is absent. */
export const ownField = (json: JsonObject, name: string): unknown =>
  Object.hasOwn(json, name) ? json[name] : undefined

type Reader<A> = (value: unknown) => A | undefined

/** An id that held a secret is none: nothing can be asked for with it. */
const isBlanked = (id: string): boolean => id.includes(blanked)

const readId =
  (is: (value: unknown) => value is string): Reader<string> =>
  (value) =>
    is(value) && !isBlanked(value) ? value : undefined

const exactly = <A>(is: (value: unknown) => value is A): Reader<Exclude<A, null | undefined>> => {
  const present = (value: A): value is Exclude<A, null | undefined> => value !== null && value !== undefined
  return (value) => (is(value) && present(value) ? value : undefined)
}

const eachItem =
  <A>(read: Reader<A>): Reader<ReadonlyArray<A>> =>
  (value) =>
    Array.isArray(value) ? value.map(read).filter((item) => item !== undefined) : undefined

type ViewOf<Readers> = { readonly [K in keyof Readers]?: Readers[K] extends Reader<infer A> ? A : never }

const viewOf = <Readers extends Record<string, Reader<unknown>>>(readers: Readers) => {
  const fields = Object.entries(readers)
  return (json: unknown): ViewOf<Readers> => {
    const view: Record<string, unknown> = {}
    if (isJsonObject(json)) {
      for (const [name, read] of fields) {
        const value = read(ownField(json, name))
        if (value !== undefined) view[name] = value
      }
    }
    return view as ViewOf<Readers>
  }
}

export const viewAcceptance: (json: unknown) => AcceptanceView = viewOf({
  execution_id: readId(Schema.is(acceptanceFields.execution_id)),
  session_id: readId(Schema.is(acceptanceFields.session_id)),
  external_execution_id: exactly(Schema.is(acceptanceFields.external_execution_id)),
  status_code: exactly(Schema.is(acceptanceFields.status_code)),
  status_reason: exactly(Schema.is(acceptanceFields.status_reason)),
})

/** Section 2.6: of an acceptance before anything in it was blanked. */
export const viewTicket = (unblanked: unknown): Redacted.Redacted<string> | undefined => {
  const ticket = isJsonObject(unblanked) ? ownField(unblanked, "ticket") : undefined
  return typeof ticket === "string" && ticket !== "" ? Redacted.make(ticket) : undefined
}

const featureFields = FeatureState.schema.fields

const viewFeature = viewOf({
  code: exactly(Schema.is(featureFields.code)),
  status_reason: exactly(Schema.is(featureFields.status_reason)),
})

const readFeature = (value: unknown) => {
  const { code, status_reason } = viewFeature(value)
  return code === undefined || status_reason === undefined ? undefined : { code, status_reason }
}

export const viewState: (json: unknown) => StateView = viewOf({
  execution_id: readId(Schema.is(executionStateFields.execution_id)),
  session_id: readId(Schema.is(executionStateFields.session_id)),
  customer_id: exactly(Schema.is(executionStateFields.customer_id)),
  engine_reference: exactly(Schema.is(executionStateFields.engine_reference)),
  external_execution_id: exactly(Schema.is(executionStateFields.external_execution_id)),
  status_code: exactly(Schema.is(executionStateFields.status_code)),
  status_reason: exactly(Schema.is(executionStateFields.status_reason)),
  authentication_status: exactly(Schema.is(executionStateFields.authentication_status)),
  is_closed: exactly(Schema.is(executionStateFields.is_closed)),
  next_kick_date: exactly(Schema.is(executionStateFields.next_kick_date)),
  products_count: readProductsCount,
  features: eachItem(readFeature),
})

const contextFields = TokenContext.schema.fields
const viewContext = viewOf({
  engine_reference: exactly(Schema.is(contextFields.engine_reference)),
  app_id: exactly(Schema.is(contextFields.app_id)),
  customer_id: exactly(Schema.is(contextFields.customer_id)),
  features: eachItem(exactly(Schema.is(contextFields.features.value))),
  locking_hash: exactly(Schema.is(contextFields.locking_hash)),
})
const isTokenPair = Schema.is(TokenPair)

/** 4.6, 200; undefined where the pair itself cannot be read. Only the key is taken as it was sent. */
export const viewExchanged = (
  json: unknown,
  unblanked: unknown,
): Extract<ExchangeAnswer, { _tag: "Exchanged" }> | undefined => {
  if (!isJsonObject(json) || !isJsonObject(unblanked)) return undefined
  const pair = ownField(json, "token")
  const issued = ownField(unblanked, "token")
  if (!isTokenPair(pair) || !isTokenPair(issued)) return undefined
  if (pair.token_id === "" || isBlanked(pair.token_id) || issued.token_key === "") return undefined
  const token = { token_id: pair.token_id, token_key: Redacted.make(issued.token_key) }
  return { _tag: "Exchanged", token, context: viewContext(ownField(json, "context")) }
}
