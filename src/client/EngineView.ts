/**
 * A tolerant reading of an engine's details (2.2, 2.3). A field that is absent, or that no decision depends
 * on, takes a neutral value: a form with no fields, a list with no items, `unknown`. Only details without a
 * reference or without a readable login form cannot be used. The schemas of the contract stay as strict as
 * the reference.
 */
import { Predicate, Result, Schema } from "effect"
import { EngineDetails, FormSchema } from "../service/Engine.ts"
import { ownField } from "./Views.ts"
import type { JsonObject } from "./Views.ts"

type FormFormat = "cg-params" | "cg-configs"

/**
 * The values for fields that are absent or of another type. The service answers 503 for an engine that
 * cannot be used now (4.9), so an engine whose details lack `is_online` can be used: if that is wrong, the
 * start answers 503, whereas `false` would keep the engine from ever being started. A frequency that is
 * absent is `unknown`, never `always`.
 */
const engineNeutral = {
  engine_code: "",
  engine_alternative: "other",
  engine_version: "",
  environment: "",
  status: "unknown",
  priority: 0,
  keywords: [],
  color_primary: {
    lighter: "",
    light: "",
    main: "",
    dark: "",
    darker: "",
    contrast_text: "",
    contrastText: "",
  },
  main_category: "other",
  sub_categories: [],
  name: "",
  description: "",
  markets: [],
  languages: [],
  engine_restrictions: [],
  engine_issues: [],
  action_required_frequency: "unknown",
  live: {},
  is_online: true,
  events: [],
} satisfies Partial<EngineDetails>

const engineFields = EngineDetails.schema.fields
const isEngine = Schema.is(EngineDetails)
const isNeutralField = Object.keys(engineNeutral).map(
  (name) => [name, Schema.is(engineFields[name as keyof typeof engineNeutral])] as const,
)
const isWebsite = Schema.is(engineFields.website)
const isForm = Schema.is(FormSchema)

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
  if (isForm(value)) return value
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
  return isForm(form) ? form : undefined
}

/**
 * A form for settings. An unreadable one has no fields: the job's settings are sent with a warning that the
 * form does not list them, and the service judges them.
 */
const readSettingsForm = (value: unknown): FormSchema =>
  readForm(value, "cg-configs") ?? { type: "object", format: "cg-configs", properties: {} }

/** A bare code, as in the list view, is a feature without settings; an item without a code is none. */
const readFeature = (item: unknown): ReadonlyArray<JsonObject> => {
  if (typeof item === "string") return [{ code: item, configurations: readSettingsForm(undefined) }]
  if (!Predicate.isObject(item) || typeof ownField(item, "code") !== "string") return []
  return [{ ...item, configurations: readSettingsForm(ownField(item, "configurations")) }]
}

/** The details, or a description of what cannot be read that quotes nothing of the body. */
export const readEngine = (json: unknown): Result.Result<EngineDetails, string> => {
  if (isEngine(json)) return Result.succeed(json)
  if (!Predicate.isObject(json)) return Result.fail("they are not a JSON object")
  if (typeof ownField(json, "reference") !== "string") return Result.fail("`reference` is not a string")
  const parameters = readForm(ownField(json, "parameters"), "cg-params")
  if (parameters === undefined) return Result.fail("`parameters` is not a form (reference, 2.3)")
  const features = ownField(json, "features")
  const read: Record<string, unknown> = {
    ...json,
    parameters,
    configurations: readSettingsForm(ownField(json, "configurations")),
    features: Array.isArray(features) ? features.flatMap(readFeature) : [],
  }
  for (const [name, is] of isNeutralField) {
    if (!is(ownField(json, name))) read[name] = engineNeutral[name as keyof typeof engineNeutral]
  }
  if (!isWebsite(read["website"])) delete read["website"]
  return isEngine(read) ? Result.succeed(read) : Result.fail("they do not fit the reference (2.2)")
}
