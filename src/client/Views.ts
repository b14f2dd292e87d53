/**
 * Tolerant readings of bodies: a field of the wrong type is absent, an unknown field is ignored, and nothing
 * here throws, whatever a body contains (promise 11).
 */
import { Predicate, Redacted, Result, Schema } from "effect"
import { blanked } from "../privacy/KnownSecrets.ts"
import { cutText, idCharactersMax, measureLargeBody, secretCharactersMax } from "../service/BodyBounds.ts"
import type { EngineDetails, FormSchema } from "../service/Engine.ts"
import { readProductsCount } from "../service/FlowResults.ts"
import { CustomerId, EngineReference, ExecutionId, SessionId, encodeSegment } from "../service/Ids.ts"
import { ownField, readJson } from "../service/ReadJson.ts"
import { TokenPair } from "../service/Execution.ts"

const utf8 = new TextDecoder()

/** The body of an answer: its bytes as they arrived, and their JSON (undefined if they are not JSON). */
export interface Body {
  readonly bytes: Uint8Array
  readonly json: unknown
  /** Why it cannot be used; then it has no JSON, and perhaps not all of its bytes. */
  readonly unusable?: string
}

/** A body with the text that it was parsed from; no text if it is not JSON or was not parsed. */
export interface TextBody extends Body {
  readonly text: string | undefined
}

/** Parses a body once, if its size allows; one that is not JSON keeps its bytes, with `json` undefined. */
export const readTextBody = (bytes: Uint8Array, unusable: string | undefined): TextBody => {
  if (unusable !== undefined) return { bytes, json: undefined, unusable, text: undefined }
  try {
    const text = utf8.decode(bytes)
    return { bytes, json: readJson(text), text }
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

/**
 * A body whose own ids are too long cannot be used: a cut id would be another id. Nor can one whose execution
 * no address can name.
 */
export const withUsableIds = (body: Body): Body => {
  const { json } = body
  if (!Predicate.isObject(json)) return body
  for (const name of idsInUse) {
    const id = ownField(json, name)
    if (typeof id !== "string" || id === "") continue
    const isTooLong = id.length > idCharactersMax
    if (!isTooLong && (name !== "execution_id" || encodeSegment(id) !== undefined)) continue
    const unusable = isTooLong
      ? `its ${name} is ${id.length} characters long, and ${idCharactersMax} are the most`
      : `its ${name} cannot be a part of an address`
    return { bytes: body.bytes, json: undefined, unusable }
  }
  return body
}

type JsonObject = Readonly<Record<string, unknown>>

type Reader<A> = (value: unknown) => A | undefined

/** A string that is too long for anything but landing is cut; none of our own values equals a cut one. */
const text: Reader<string> = (value) => (typeof value === "string" ? cutText(value) : undefined)
/** A word of the service; a blank one says nothing. */
const word: Reader<string> = (value) => {
  const found = text(value)
  return found === undefined || found.trim() === "" ? undefined : found
}
const flag: Reader<boolean> = (value) => (typeof value === "boolean" ? value : undefined)

interface Brand<Id> {
  readonly make: (text: string) => Id
}

const textOf =
  <Id>(kind: Brand<Id>): Reader<Id> =>
  (value) => {
    const found = text(value)
    return found === undefined ? undefined : kind.make(found)
  }

/** An id that contained a secret is not an id: nothing can be requested with it. */
const id =
  <Id extends string>(kind: Brand<Id>): Reader<Id> =>
  (value) => {
    const found = text(value)
    return found === undefined || found.includes(blanked) ? undefined : kind.make(found)
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

/** The content of an acceptance body. */
export const viewAcceptance = viewOf({
  execution_id: id(ExecutionId),
  session_id: id(SessionId),
  external_execution_id: text,
  status_code: word,
  status_reason: word,
  authentication_status: word,
})

export type AcceptanceView = ReturnType<typeof viewAcceptance> & {
  /** Section 2.6: shown once, in the answer to a start that asked for it. */
  readonly ticket?: Redacted.Redacted<string>
}

/** From an acceptance before it was blanked: the ticket (2.6), or the token of the customer's session. */
export const viewSecret = (unblanked: unknown, name: "ticket" | "session_token") => {
  const found = ownField(unblanked, name)
  return isSecret(found) ? Redacted.make(found) : undefined
}

const viewFeature = viewOf({ code: text, status_reason: text })

const readFeature = (value: unknown) => {
  const { code, status_reason } = viewFeature(value)
  return code === undefined || status_reason === undefined ? undefined : { code, status_reason }
}

/** The content of a state body. Dates are the service's own text. */
export const viewState = viewOf({
  execution_id: id(ExecutionId),
  session_id: id(SessionId),
  customer_id: textOf(CustomerId),
  engine_reference: textOf(EngineReference),
  external_execution_id: text,
  status_code: word,
  status_reason: word,
  authentication_status: word,
  is_closed: flag,
  next_kick_date: text,
  date_created: text,
  date_ended: text,
  /** Absent only if no body was read; a count that is missing or malformed is `Unknown`. */
  products_count: readProductsCount,
  features: eachItem(readFeature),
})
export type StateView = ReturnType<typeof viewState>

const viewContext = viewOf({
  engine_reference: textOf(EngineReference),
  app_id: text,
  customer_id: textOf(CustomerId),
  features: eachItem(text),
  locking_hash: text,
})
/** The content of a token's context (section 2.6). */
export type TokenContextView = ReturnType<typeof viewContext>
export interface TokenPairView {
  readonly token_id: string
  readonly token_key: Redacted.Redacted<string>
}
const isTokenPair = Schema.is(TokenPair)

/** 4.6, 200; undefined if the pair itself cannot be read. Only the key is taken as it was sent. */
export const viewExchanged = (json: unknown, unblanked: unknown) => {
  const pair = ownField(json, "token")
  const issued = ownField(unblanked, "token")
  if (!isTokenPair(pair) || !isTokenPair(issued) || !isSecret(issued.token_key)) return undefined
  const { token_id } = pair
  if (token_id === "" || token_id.length > idCharactersMax || token_id.includes(blanked)) return undefined
  const token: TokenPairView = { token_id, token_key: Redacted.make(issued.token_key) }
  return { _tag: "Exchanged" as const, token, context: viewContext(ownField(json, "context")) }
}

// A tolerant reading of an engine's details (2.2, 2.3). Only details without a reference or a readable login
// form cannot be used.

type FormFormat = "cg-params" | "cg-configs"

/** What is read of an engine's details; any other field stays in them as it came. */
export interface EngineView extends Pick<
  EngineDetails,
  | "reference"
  | "name"
  | "status"
  | "is_online"
  | "action_required_frequency"
  | "parameters"
  | "configurations"
> {
  readonly features: ReadonlyArray<{ readonly code: string; readonly configurations: FormSchema }>
}

const isAbsent = (value: unknown): value is null | undefined => value === null || value === undefined

/** Some languages write a map without entries as an empty list. */
const readMap = (value: unknown): JsonObject | undefined => {
  if (isAbsent(value) || (Array.isArray(value) && value.length === 0)) return {}
  return Predicate.isObject(value) ? value : undefined
}

const readTexts = (value: unknown): ReadonlyArray<string> | undefined => {
  if (typeof value === "string") return [value]
  return Array.isArray(value) ? value.filter((item) => typeof item === "string") : undefined
}

/** Titles are strings, lists of fields are lists of strings; anything else is left out. */
const readMeta = (value: unknown): JsonObject | undefined => {
  if (!Predicate.isObject(value)) return undefined
  const entries = Object.entries(value).flatMap(([name, item]): ReadonlyArray<readonly [string, unknown]> => {
    if (/_(?:title|text)$/.test(name)) return typeof item === "string" ? [[name, item]] : []
    if (!name.endsWith("_fields")) return [[name, item]]
    const names = readTexts(item)
    return names === undefined ? [] : [[name, names]]
  })
  return Object.fromEntries(entries)
}

const optionalParts = [
  ["$defs", readMap],
  ["required", readTexts],
  ["x-meta", readMeta],
] as const

/** Undefined if this is not the form of an object, or if its fields are not a map. */
const readForm = (value: unknown, format: FormFormat): FormSchema | undefined => {
  if (!Predicate.isObject(value)) return undefined
  const type = ownField(value, "type")
  const properties = readMap(ownField(value, "properties"))
  if (properties === undefined || (typeof type === "string" && type !== "object")) return undefined
  const form: Record<string, unknown> = { ...value, type: "object", properties }
  if (typeof ownField(value, "format") !== "string") form["format"] = format
  for (const [name, read] of optionalParts) {
    const part = ownField(value, name)
    const readable = isAbsent(part) ? undefined : read(part)
    if (readable === undefined) delete form[name]
    else form[name] = readable
  }
  return form as FormSchema
}

/** An unreadable form has no fields: settings are sent with a warning, and the service judges them. */
const readSettingsForm = (value: unknown): FormSchema =>
  readForm(value, "cg-configs") ?? { type: "object", format: "cg-configs", properties: {} }

/** A bare code, as in the list view, is a feature without settings; an item without a code is none. */
const readDetailsFeature = (item: unknown): EngineView["features"] => {
  if (typeof item === "string") return [{ code: item, configurations: readSettingsForm(undefined) }]
  const code = Predicate.isObject(item) ? ownField(item, "code") : undefined
  if (!Predicate.isObject(item) || typeof code !== "string") return []
  return [{ ...item, code, configurations: readSettingsForm(ownField(item, "configurations")) }]
}

/** The details, or a description of what cannot be read that quotes nothing of the body. */
export const readEngine = (json: unknown): Result.Result<EngineView, string> => {
  if (!Predicate.isObject(json)) return Result.fail("they are not a JSON object")
  const reference = ownField(json, "reference")
  if (typeof reference !== "string") return Result.fail("`reference` is not a string")
  const parameters = readForm(ownField(json, "parameters"), "cg-params")
  if (parameters === undefined) return Result.fail("`parameters` is not a form (reference, 2.3)")
  const features = ownField(json, "features")
  const textIn = (name: string, absent: string): string => {
    const value = ownField(json, name)
    return typeof value === "string" ? value : absent
  }
  return Result.succeed({
    ...json,
    reference,
    parameters,
    configurations: readSettingsForm(ownField(json, "configurations")),
    features: Array.isArray(features) ? features.flatMap(readDetailsFeature) : [],
    name: textIn("name", ""),
    status: textIn("status", "unknown"),
    // Never `always` without a word.
    action_required_frequency: textIn("action_required_frequency", "unknown"),
    // If this is wrong, a start is answered 503, as for any engine that cannot be used now (4.9), whereas
    // `false` would keep the engine from ever being started.
    is_online: ownField(json, "is_online") !== false,
  })
}

// A tolerant reading of a webhook delivery (6). Only the payload of `auth_ended` is shown, so an event
// concerns every id that it names, wherever: a text that is none concerns nobody. Never throws.

/** How much of an event is kept until it is known whom it concerns. */
export interface EventView {
  /** All that may be an id, and names of fields. */
  readonly texts: ReadonlySet<string>
  /** Section 6.1: UTC, milliseconds since the epoch; absent if the event has no valid date. */
  readonly dateMs: number | undefined
}

/** Of a larger event, only the beginning is kept: those that carry data name their session before it. */
export const eventBytesMax = 1024 * 1024

/** Nothing longer is an id. */
const quoted = /"([^"\\]{1,512})"/g

const dateText = /^(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d(?::\d\d(?:\.\d+)?)?)(Z|[+-]\d\d:?\d\d)?$/

/** Section 6.1: dates are UTC, even if they do not say so. */
const utcMillis = (date: unknown): number | undefined => {
  const parts = typeof date === "string" ? dateText.exec(date) : null
  if (parts === null) return undefined
  const ms = Date.parse(`${parts[1]}T${parts[2]}${parts[3] ?? "Z"}`)
  return Number.isNaN(ms) ? undefined : ms
}

/**
 * Section 6; undefined for what is whole and not an event: not JSON, or more than is parsed of any body. The
 * beginning of one has no date: it is not clear whose date it would be.
 */
export const readEvent = (
  query: URLSearchParams,
  kept: Uint8Array,
  isWhole = true,
): EventView | undefined => {
  const json = isWhole && kept.byteLength > 0 ? readBody(kept).json : null
  if (json === undefined) return undefined
  const named = Array.from(utf8.decode(kept).matchAll(quoted), ([, text = ""]) => text)
  return { texts: new Set([...query.values(), ...named]), dateMs: utcMillis(ownField(json, "date")) }
}
