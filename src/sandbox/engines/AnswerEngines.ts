/**
 * The two calls of the catalogue (sections 4.8 and 4.9): filters with their own values, and one engine with
 * its forms.
 */
import { Ajv, type ErrorObject, type ValidateFunction } from "ajv"
import ajvFormats from "ajv-formats"
import { Clock, Effect } from "effect"
import { engineDefinitions, findEngine } from "./EngineCatalogue.ts"
import { featureSettings, maintenanceNote, whyUnavailable } from "./EngineDefinition.ts"
import type { EngineDefinition } from "./EngineDefinition.ts"
import type { ErrorItem } from "../state/ResultsPlan.ts"
import { CallingApplication } from "../state/SandboxState.ts"
import type { Engine, EngineDetails, FormSchema } from "../../service/Engine.ts"
import { engineAlternatives, features, featuresModes, mainCategories } from "../../service/Vocabulary.ts"
import type { Feature } from "../../service/Vocabulary.ts"

/** An engine reference is `<code>:<alternative>`; whether such an engine exists is another question (4.9). */
export const isEngineReference = (reference: string): boolean =>
  /^[a-z0-9][a-z0-9-]{0,63}:[a-z]{1,16}$/.test(reference)

/** The settings form that an engine shows for one of its features (2.2, detail view). */
export const featureForm = (definition: EngineDefinition, code: Feature): FormSchema =>
  definition.featureForms?.[code] ?? featureSettings(code)

const restrictionsOf = ({ keepsMonths, shields }: EngineDefinition): ReadonlyArray<string> => [
  "Datos inventados: ninguna persona real.",
  `La fuente guarda ${keepsMonths} meses.`,
  ...(shields.length === 0 ? [] : [`Con datos protegidos: ${shields.join(", ")}.`]),
]
const issuesOf = ({ status, window }: EngineDefinition): ReadonlyArray<string> => [
  ...(status === "maintenance" ? ["En mantenimiento."] : []),
  ...(window ? [maintenanceNote] : []),
]

/** 2.2, list view. `pingedAt` is when the platform last checked the source. */
export const engineView = (definition: EngineDefinition, pingedAt: number): Engine => {
  const [code = definition.reference, alternative = "website"] = definition.reference.split(":")
  return {
    reference: definition.reference,
    engine_code: code,
    engine_alternative: engineAlternatives.find((known) => known === alternative) ?? "other",
    engine_version: "2026.11.0",
    environment: definition.environment,
    status: definition.status,
    priority: 100 - engineDefinitions.indexOf(definition),
    keywords: [code, ...definition.name.toLowerCase().split(" ")],
    color_primary: {
      lighter: "#f4f7f9",
      light: "#c7d8e0",
      main: definition.color,
      dark: "#143c4c",
      darker: "#0a1e26",
      contrast_text: "#ffffff",
      contrastText: "#ffffff",
    },
    main_category: definition.category,
    sub_categories: definition.subCategories,
    name: definition.name,
    description: definition.description,
    markets: definition.markets,
    languages: definition.languages,
    engine_restrictions: restrictionsOf(definition),
    engine_issues: issuesOf(definition),
    action_required_frequency: definition.frequency,
    live: { last_ping_date: new Date(pingedAt - (pingedAt % 300_000)).toISOString() },
    is_online: definition.answering && definition.status !== "maintenance",
    website: `https://${code}.invalid`,
    features: definition.features,
  }
}

/** 2.2, detail view. */
export const engineDetails = (definition: EngineDefinition, pingedAt: number): EngineDetails => ({
  ...engineView(definition, pingedAt),
  events: definition.events,
  parameters: definition.parameters,
  configurations: definition.configurations,
  features: definition.features.map((code) => ({ code, configurations: featureForm(definition, code) })),
})

interface EngineFilter {
  readonly markets?: ReadonlyArray<string>
  readonly features?: ReadonlyArray<string>
  readonly features_mode?: string
  readonly main_category?: string
  readonly is_online?: string
}

/** How a boolean is spelled in a query is not shown; own choice: these, in any letter case. */
const booleans: Readonly<Record<string, boolean>> = { true: true, false: false, "1": true, "0": false }
const readBoolean = (text: string): boolean | undefined =>
  Object.hasOwn(booleans, text.toLowerCase()) ? booleans[text.toLowerCase()] : undefined

/** One item per value that is not allowed. A market is a country code. */
const rejectedValues = (filter: EngineFilter) => {
  const outside = (name: string, known: (value: string) => boolean, values: ReadonlyArray<string>) =>
    values.flatMap((value, index) => {
      const msg = `${value} is not a permitted value`
      return known(value) ? [] : [{ loc: ["query", name, index], msg, type: "type_error.enum", input: value }]
    })
  const one = (value: string | undefined) => (value === undefined ? [] : [value])
  const among = (list: ReadonlyArray<string>) => (value: string) => list.includes(value)
  return [
    ...outside("markets", (value) => /^[A-Z]{2}$/.test(value), filter.markets ?? []),
    ...outside("features", among(features), filter.features ?? []),
    ...outside("features_mode", among(featuresModes), one(filter.features_mode)),
    ...outside("main_category", among(mainCategories), one(filter.main_category)),
    ...outside("is_online", (value) => readBoolean(value) !== undefined, one(filter.is_online)),
  ]
}

const offers = (engine: EngineDefinition, filter: EngineFilter): boolean => {
  const wanted = filter.features ?? []
  if (wanted.length === 0) return true
  const offered = (code: string) => engine.features.some((feature) => feature === code)
  return filter.features_mode === "or" ? wanted.some(offered) : wanted.every(offered)
}

const matches = (engine: EngineDefinition, filter: EngineFilter): boolean => {
  const { markets = [], main_category, is_online } = filter
  // The list shows only what can run now, so nothing in it is ever offline.
  if (is_online !== undefined && readBoolean(is_online) === false) return false
  if (main_category !== undefined && engine.category !== main_category) return false
  return (
    (markets.length === 0 || markets.some((market) => engine.markets.includes(market))) &&
    offers(engine, filter)
  )
}

/** 4.8 */
export const listEngines = Effect.fnUntraced(function* (filter: EngineFilter) {
  const { app_id } = yield* CallingApplication
  const now = yield* Clock.currentTimeMillis
  const detail = rejectedValues(filter)
  if (detail.length > 0) return yield* Effect.fail({ _tag: "Invalid" as const, detail })
  return engineDefinitions
    .filter((engine) => matches(engine, filter) && whyUnavailable(engine, app_id, now) === undefined)
    .map((engine) => engineView(engine, now))
})

const notAReference = {
  loc: ["path", "engine_reference"],
  msg: "not an engine reference",
  type: "value_error",
}

const codes = new Set(engineDefinitions.map(({ reference }) => reference.split(":")[0]))

/** 4.9: a malformed reference answers 422, an unknown one 404, one that cannot run now 503. */
export const showEngine = Effect.fnUntraced(function* (reference: string) {
  const { app_id } = yield* CallingApplication
  const now = yield* Clock.currentTimeMillis
  if (!isEngineReference(reference)) {
    return yield* Effect.fail({ _tag: "Invalid" as const, detail: [notAReference] })
  }
  const engine = findEngine(reference)
  if (engine === undefined) {
    const detail = codes.has(reference.split(":")[0]) ? "no such channel of this engine" : "no such engine"
    return yield* Effect.fail({ _tag: "NotFound" as const, detail })
  }
  const detail = whyUnavailable(engine, app_id, now)
  if (detail !== undefined) return yield* Effect.fail({ _tag: "Unavailable" as const, detail })
  return engineDetails(engine, now)
})

// 2.3: judged once the start was accepted. Items contain no values; those stay in memory, for the echo.

/** A form's complaint and the value behind it, which leaves memory only in the echo of an answer. */
export interface FormFinding {
  readonly error: ErrorItem
  readonly input: unknown
}

const ajv = new Ajv({ allErrors: true, strict: false, validateFormats: true, verbose: true, logger: false })
ajvFormats.default(ajv)
ajv.addFormat("cg-params", true)
ajv.addFormat("cg-configs", true)

const compiled = new WeakMap<FormSchema, ValidateFunction>()
const validatorOf = (form: FormSchema): ValidateFunction => {
  const known = compiled.get(form)
  if (known !== undefined) return known
  const { format: _format, ...schema } = form
  const validator = ajv.compile(schema)
  compiled.set(form, validator)
  return validator
}

const locationOf = (error: ErrorObject): ReadonlyArray<string | number> => {
  const path = error.instancePath
    .split("/")
    .slice(1)
    .map((part) => part.replaceAll("~1", "/").replaceAll("~0", "~"))
    .map((part) => (/^\d+$/.test(part) ? Number(part) : part))
  const missing: unknown = error.keyword === "required" ? error.params["missingProperty"] : undefined
  return typeof missing === "string" ? [...path, missing] : path
}

/** Checks a flat object of values; an empty list means that it fits the form. */
export const checkForm = (form: FormSchema, values: unknown): ReadonlyArray<FormFinding> => {
  const validate = validatorOf(form)
  if (validate(values)) return []
  return (validate.errors ?? []).map((error) => ({
    error: {
      loc: locationOf(error),
      msg: error.message ?? "invalid value",
      type: error.keyword === "required" ? "missing" : `value_error.${error.keyword}`,
    },
    input: error.keyword === "required" ? undefined : error.data,
  }))
}
