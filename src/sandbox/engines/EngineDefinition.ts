/**
 * What the embedded service knows about an engine (sections 2.2 and 2.3), with the defaults for engines
 * whose definition does not say otherwise.
 */
import { given } from "../../base/Schemas.ts"
import { definedSettings, type FormSchema, type Setting } from "../../service/Engine.ts"
import { features } from "../../service/Vocabulary.ts"
import type { Feature, actionRequiredFrequencies, engineEvents } from "../../service/Vocabulary.ts"
import type { engineStatuses, environments, mainCategories } from "../../service/Vocabulary.ts"

type Field = Readonly<Record<string, unknown>>

export const text = (title: string, more: Field = {}): Field => ({ type: "string", title, ...more })
export const password = (title: string, more: Field = {}): Field =>
  text(title, { format: "password", minLength: 4, maxLength: 128, ...more })
/** DNI or NIE; the source checks the check letter, the form only knows the pattern. */
export const nif: Field = text("DNI o NIE", {
  pattern: "^([0-9]{8}|[XYZ][0-9]{7})[A-Z]$",
  examples: ["12345678Z", "X1234567L"],
})

interface FormOptions {
  readonly required?: ReadonlyArray<string>
  readonly defs?: Readonly<Record<string, unknown>>
  readonly locking?: ReadonlyArray<string>
  readonly hidden?: ReadonlyArray<string>
  readonly lazy?: ReadonlyArray<string>
  readonly title?: string
  readonly instructions?: string
}

export const loginForm = (
  properties: Readonly<Record<string, Field>>,
  options: FormOptions = {},
): FormSchema => ({
  type: "object",
  format: "cg-params",
  properties,
  required: options.required ?? Object.keys(properties),
  ...(options.defs === undefined ? {} : { $defs: options.defs }),
  "x-meta": {
    instructions_title: options.title ?? "Acceso",
    instructions_text: options.instructions ?? "Introduzca sus datos de acceso.",
    submit_button_text: "Continuar",
    locking_fields: options.locking ?? [],
    ...(options.hidden === undefined ? {} : { hidden_fields: options.hidden }),
    ...(options.lazy === undefined ? {} : { lazy_fields: options.lazy }),
  },
})

export const settingsForm = (
  properties: Readonly<Record<string, Field>> = {},
  required: ReadonlyArray<string> = [],
  defs?: Readonly<Record<string, unknown>>,
): FormSchema => ({
  type: "object",
  format: "cg-configs",
  properties,
  ...(required.length === 0 ? {} : { required }),
  ...(defs === undefined ? {} : { $defs: defs }),
})

/** What a source asks (2.4). What it may ask beyond a second factor is not shown; own choice: two fields. */
export const challengeForms = {
  MFA_REQUIRED: loginForm(
    { code: text("Código de un solo uso", { minLength: 1, maxLength: 32 }) },
    { title: "Segundo factor", instructions: "Introduzca el código que le ha enviado la entidad." },
  ),
  INPUT_REQUIRED: loginForm(
    {
      delivery: text("Cómo quiere recibirlo", { enum: ["sms", "app", "post"] }),
      code: text("Dato solicitado", { minLength: 1, maxLength: 32 }),
    },
    { title: "Más datos", instructions: "La fuente pide un dato más para seguir." },
  ),
}

/** 4.1: what people read above each setting. */
const titles: Readonly<Record<string, string>> = {
  from_date: "Desde",
  to_date: "Hasta",
  limits_behaviour: "Fuera de límites",
  read_transactions: "Leer movimientos",
  read_holders: "Leer titulares",
  preferred_type: "Tipo de informe",
  read_point_movements: "Leer movimientos de puntos",
  work_life_report: "Informe de vida laboral",
  contribution_base_report: "Informe de bases de cotización",
  simple_vehicle_report: "Informe reducido",
  last_n_years: "Últimos ejercicios",
}

/** A setting of the reference as a field; dates accept a date or a relative phrase (4.1). */
const fieldOf = (name: string, setting: Setting): Field => {
  const title = titles[name] ?? name
  switch (setting.type) {
    case "date":
      return text(title, { default: setting.default })
    case "boolean":
      return { type: "boolean", title, default: setting.default }
    case "count":
      return { type: "integer", title, default: setting.default, minimum: 1, maximum: 10 }
    case "one_of":
      return text(title, given({ enum: setting.values, default: setting.default }))
    case "some_of":
      return { type: "array", minItems: 1, items: { $ref: "#/$defs/card_type" }, default: setting.default }
  }
}

const formOf = (settings: Readonly<Record<string, Setting>>): FormSchema => {
  const fields = Object.entries(settings).map(([name, setting]) => [name, fieldOf(name, setting)] as const)
  const cards = Object.values(settings).find((setting) => setting.type === "some_of")
  return settingsForm(
    Object.fromEntries(fields),
    [],
    cards && { card_type: { type: "string", enum: cards.values } },
  )
}

/** One form for all features without settings: each form object is compiled once. */
const noSettings = settingsForm()
const forms = new Map<string, FormSchema>(
  features.map((code) => {
    const settings = definedSettings(code)
    return [code, Object.keys(settings).length === 0 ? noSettings : formOf(settings)]
  }),
)

/** The settings form of a feature (4.1); a feature with no settings has empty `properties` (2.2). */
export const featureSettings = (code: string): FormSchema => forms.get(code) ?? noSettings

export interface EngineDefinition {
  readonly reference: string
  readonly name: string
  readonly description: string
  readonly environment: (typeof environments)[number]
  readonly status: (typeof engineStatuses)[number]
  /** Whether its source answers at all. */
  readonly answering: boolean
  /** Whether it is closed for the last ten minutes of every hour. */
  readonly window: boolean
  /** The applications that it is enabled for; if absent, all. */
  readonly enabledFor?: ReadonlyArray<string>
  readonly category: (typeof mainCategories)[number]
  readonly subCategories: ReadonlyArray<string>
  readonly markets: ReadonlyArray<string>
  readonly languages: ReadonlyArray<string>
  readonly features: ReadonlyArray<Feature>
  /** What runs if a start names no features. */
  readonly defaults: ReadonlyArray<Feature>
  readonly events: ReadonlyArray<(typeof engineEvents)[number]>
  readonly parameters: FormSchema
  readonly configurations: FormSchema
  /** Forms of features that require more, or less, than the reference's own settings. */
  readonly featureForms?: Readonly<Partial<Record<Feature, FormSchema>>>
  /** How far back its source goes: earlier dates exceed the limits of 4.1. */
  readonly keepsMonths: number
  /** Features whose protected fields only `unlock_protected_data` shows. */
  readonly shields: ReadonlyArray<Feature>
  /** Whether its logins can be stored behind a token. */
  readonly tokenizes: boolean
  /** The form field whose text is read for behaviour words. */
  readonly wordsField: string
  readonly frequency: (typeof actionRequiredFrequencies)[number]
  readonly color: string
}

const userAndPassword = loginForm(
  { username: text("Usuario", { minLength: 1, maxLength: 256 }), password: password("Contraseña") },
  { locking: ["username"] },
)

export const defineEngine = (
  reference: string,
  definition: Partial<EngineDefinition> &
    Pick<EngineDefinition, "name" | "category" | "subCategories" | "features">,
): EngineDefinition => ({
  reference,
  description: `${definition.name}, simulada por el servicio embebido.`,
  environment: "sandbox",
  status: "published",
  answering: true,
  window: false,
  markets: ["ES"],
  languages: ["es"],
  defaults: definition.features,
  events: ["started", "action_required", "ended", "auth_ended"],
  parameters: userAndPassword,
  configurations: settingsForm(),
  keepsMonths: 120,
  shields: [],
  tokenizes: true,
  wordsField: "username",
  frequency: "rarely",
  color: "#1f6f8b",
  ...definition,
})

export const bankFeatures = ["accounts_read", "cards_read", "customer_information_read"] as const

/** 4.9, own choice: from minute 50 to 60 of every hour (UTC), so that a test meets it on any clock. */
export const isInMaintenance = (at: number): boolean => new Date(at).getUTCMinutes() >= 50
export const maintenanceNote = "En mantenimiento del minuto 50 al 60 de cada hora (UTC)."

/** 4.8 and 4.9: why an engine that exists cannot run now, for `detail`; undefined if it can. */
export const whyUnavailable = (engine: EngineDefinition, app_id: string, at: number): string | undefined => {
  if (engine.enabledFor?.includes(app_id) === false) return "engine not enabled for this application"
  // Every application of this service is a test application.
  if (engine.environment !== "sandbox") return `engine of the ${engine.environment} environment`
  if (engine.status === "maintenance") return "engine in maintenance"
  if (engine.status !== "published") return `engine not published (${engine.status})`
  if (engine.window && isInMaintenance(at)) return "engine in maintenance"
  return engine.answering ? undefined : "the source is not answering"
}
