/**
 * Tolerant readings of bodies, derived from the contract's schemas: a field of the wrong type is absent, an
 * unknown field is ignored, and nothing here throws, whatever a body contains (promise 11).
 */
import { Predicate, Redacted, Schema } from "effect"
import { CustomerId, EngineReference, ExecutionId, SessionId } from "../service/Ids.ts"
import { measureLargeBody } from "../service/BodyBounds.ts"
import { acceptanceFields, executionStateFields, FeatureState } from "../service/Execution.ts"
import { readProductsCount } from "../service/ProductsCount.ts"
import { cutText, idCharactersMax, secretCharactersMax } from "../service/TextBounds.ts"
import { TokenContext, TokenPair } from "../service/Token.ts"
import { blanked } from "../privacy/KnownSecrets.ts"
import type { AcceptanceView, Body, ExchangeAnswer, StateView } from "./Service.ts"

const utf8 = new TextDecoder()

/** A body with the text that it was parsed from; no text if it is not JSON or was not parsed. */
export interface TextBody extends Body {
  readonly text: string | undefined
}

/**
 * Parses a body once, if its size allows. A body that is not JSON keeps its bytes and has `json` undefined.
 */
export const readTextBody = (bytes: Uint8Array, unusable: string | undefined): TextBody => {
  if (unusable !== undefined) return { bytes, json: undefined, unusable, text: undefined }
  try {
    const text = utf8.decode(bytes)
    return { bytes, json: JSON.parse(text), text }
  } catch {
    return { bytes, json: undefined, text: undefined }
  }
}

/** The same for callers that do not need the text. */
export const readBody = (bytes: Uint8Array, unusable = measureLargeBody(bytes).broken): Body => {
  const { text: _, ...body } = readTextBody(bytes, unusable)
  return body
}

const idsInUse = ["execution_id", "session_id"]

/** A body whose own ids are too long cannot be used: a cut id would be another id. */
export const withUsableIds = (body: Body): Body => {
  const { json } = body
  if (!Predicate.isObject(json)) return body
  for (const name of idsInUse) {
    const id = ownField(json, name)
    if (typeof id !== "string" || id.length <= idCharactersMax) continue
    const unusable = `its ${name} is ${id.length} characters long, and ${idCharactersMax} are the most`
    return { bytes: body.bytes, json: undefined, unusable }
  }
  return body
}

export type JsonObject = Readonly<Record<string, unknown>>

/** The own property with that name; a name that only the prototype has counts as absent. */
export const ownField = (json: JsonObject, name: string): unknown =>
  Object.hasOwn(json, name) ? json[name] : undefined

type Reader<A> = (value: unknown) => A | undefined

const isBlanked = (id: string): boolean => id.includes(blanked)

const exactly = <A>(is: (value: unknown) => value is A): Reader<Exclude<A, null | undefined>> => {
  const present = (value: A): value is Exclude<A, null | undefined> => value !== null && value !== undefined
  return (value) => (is(value) && present(value) ? value : undefined)
}

/** A string that is too long for anything but landing is cut; none of our own values equals a cut one. */
const text = (is: (value: unknown) => value is string | null | undefined): Reader<string> => {
  const read = exactly(is)
  return (value) => {
    const whole = read(value)
    return whole === undefined ? undefined : cutText(whole)
  }
}

/** An id that contained a secret is not an id: nothing can be requested with it. */
const id = (is: (value: unknown) => value is string): Reader<string> => {
  const read = text(is)
  return (value) => {
    const found = read(value)
    return found === undefined || isBlanked(found) ? undefined : found
  }
}

const made =
  <Id>(kind: { readonly make: (text: string) => Id }, read: Reader<string>): Reader<Id> =>
  (value) => {
    const found = read(value)
    return found === undefined ? undefined : kind.make(found)
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
    if (Predicate.isObject(json)) {
      for (const [name, read] of fields) {
        const value = read(ownField(json, name))
        if (value !== undefined) view[name] = value
      }
    }
    return view as ViewOf<Readers>
  }
}

/** A ticket or a key; a longer string is neither. */
const isSecret = (value: unknown): value is string =>
  typeof value === "string" && value !== "" && value.length <= secretCharactersMax

export const viewAcceptance: (json: unknown) => AcceptanceView = viewOf({
  execution_id: made(ExecutionId, id(Schema.is(acceptanceFields.execution_id))),
  session_id: made(SessionId, id(Schema.is(acceptanceFields.session_id))),
  external_execution_id: text(Schema.is(acceptanceFields.external_execution_id)),
  status_code: text(Schema.is(acceptanceFields.status_code)),
  status_reason: text(Schema.is(acceptanceFields.status_reason)),
})

/** Section 2.6: from an acceptance before anything in it was blanked. */
export const viewTicket = (unblanked: unknown): Redacted.Redacted<string> | undefined => {
  const ticket = Predicate.isObject(unblanked) ? ownField(unblanked, "ticket") : undefined
  return isSecret(ticket) ? Redacted.make(ticket) : undefined
}

const featureFields = FeatureState.schema.fields

const viewFeature = viewOf({
  code: text(Schema.is(featureFields.code)),
  status_reason: text(Schema.is(featureFields.status_reason)),
})

const readFeature = (value: unknown) => {
  const { code, status_reason } = viewFeature(value)
  return code === undefined || status_reason === undefined ? undefined : { code, status_reason }
}

export const viewState: (json: unknown) => StateView = viewOf({
  execution_id: made(ExecutionId, id(Schema.is(executionStateFields.execution_id))),
  session_id: made(SessionId, id(Schema.is(executionStateFields.session_id))),
  customer_id: made(CustomerId, text(Schema.is(executionStateFields.customer_id))),
  engine_reference: made(EngineReference, text(Schema.is(executionStateFields.engine_reference))),
  external_execution_id: text(Schema.is(executionStateFields.external_execution_id)),
  status_code: text(Schema.is(executionStateFields.status_code)),
  status_reason: text(Schema.is(executionStateFields.status_reason)),
  authentication_status: text(Schema.is(executionStateFields.authentication_status)),
  is_closed: exactly(Schema.is(executionStateFields.is_closed)),
  next_kick_date: text(Schema.is(executionStateFields.next_kick_date)),
  date_started: text(Schema.is(executionStateFields.date_started)),
  locking_hash: text(Schema.is(executionStateFields.locking_hash)),
  products_count: readProductsCount,
  features: eachItem(readFeature),
})

const contextFields = TokenContext.schema.fields
const viewContext = viewOf({
  engine_reference: made(EngineReference, text(Schema.is(contextFields.engine_reference))),
  app_id: text(Schema.is(contextFields.app_id)),
  customer_id: made(CustomerId, text(Schema.is(contextFields.customer_id))),
  features: eachItem(text(Schema.is(contextFields.features.value))),
  locking_hash: text(Schema.is(contextFields.locking_hash)),
})
const isTokenPair = Schema.is(TokenPair)

/** 4.6, 200; undefined if the pair itself cannot be read. Only the key is taken as it was sent. */
export const viewExchanged = (
  json: unknown,
  unblanked: unknown,
): Extract<ExchangeAnswer, { _tag: "Exchanged" }> | undefined => {
  if (!Predicate.isObject(json) || !Predicate.isObject(unblanked)) return undefined
  const pair = ownField(json, "token")
  const issued = ownField(unblanked, "token")
  if (!isTokenPair(pair) || !isTokenPair(issued) || !isSecret(issued.token_key)) return undefined
  if (pair.token_id === "" || pair.token_id.length > idCharactersMax || isBlanked(pair.token_id))
    return undefined
  const token = { token_id: pair.token_id, token_key: Redacted.make(issued.token_key) }
  return { _tag: "Exchanged", token, context: viewContext(ownField(json, "context")) }
}
