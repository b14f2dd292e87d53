/**
 * Building blocks for the engines' forms (section 2.3): login fields with patterns, enumerations,
 * definitions, hidden and lazy fields, so that the forms of the catalogue differ as much as those of real
 * sources.
 */
import type { FormSchema } from "../../contract/Engine.ts"
import { financialCardTypes } from "../../contract/Vocabulary.ts"

type Field = Readonly<Record<string, unknown>>

export const text = (title: string, more: Field = {}): Field => ({ type: "string", title, ...more })
export const password = (title: string, more: Field = {}): Field =>
  text(title, { format: "password", minLength: 4, maxLength: 128, ...more })
/** DNI or NIE; the source checks the check letter, the form only knows the pattern. */
export const nif = (title = "DNI o NIE"): Field =>
  text(title, { pattern: "^([0-9]{8}|[XYZ][0-9]{7})[A-Z]$", examples: ["12345678Z", "X1234567L"] })

export interface FormOptions {
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

/** The form of a second factor (2.4); its only field is `code`. */
const secondFactorForm: FormSchema = loginForm(
  { code: text("Código de un solo uso", { minLength: 1, maxLength: 32 }) },
  { title: "Segundo factor", instructions: "Introduzca el código que le ha enviado la entidad." },
)

/** What a source may ask beyond a second factor (INPUT_REQUIRED); not shown; own choice: these two fields. */
const inputForm: FormSchema = loginForm(
  {
    delivery: text("Cómo quiere recibirlo", { enum: ["sms", "app", "post"] }),
    code: text("Dato solicitado", { minLength: 1, maxLength: 32 }),
  },
  { title: "Más datos", instructions: "La fuente pide un dato más para seguir." },
)

export const challengeForm = (reason: "MFA_REQUIRED" | "INPUT_REQUIRED"): FormSchema =>
  reason === "MFA_REQUIRED" ? secondFactorForm : inputForm

/** Dates accept a date or a relative phrase (4.1). */
const date = (title: string, fallback: string): Field => text(title, { default: fallback })
const flag = (title: string, fallback = false): Field => ({ type: "boolean", title, default: fallback })
const window = {
  from_date: date("Desde", "30 days ago"),
  to_date: date("Hasta", "today"),
  limits_behaviour: text("Fuera de límites", { enum: ["error", "adapt"], default: "error" }),
}
const accountSettings = settingsForm({
  ...window,
  read_transactions: flag("Leer movimientos"),
  read_holders: flag("Leer titulares"),
})

const cardTypes = settingsForm(
  {
    ...window,
    read_transactions: flag("Leer movimientos"),
    filter_by_type: {
      type: "array",
      minItems: 1,
      items: { $ref: "#/$defs/card_type" },
      default: financialCardTypes,
    },
  },
  [],
  { card_type: { type: "string", enum: financialCardTypes } },
)

const withSettings: Readonly<Record<string, FormSchema>> = {
  accounts_read: accountSettings,
  credits_read: accountSettings,
  cards_read: cardTypes,
  client_invoices_read: settingsForm(window),
  supplier_invoices_read: settingsForm(window),
  credit_registry_data: settingsForm({
    preferred_type: text("Tipo de informe", {
      enum: ["credit_registry_data:es_cirbe_detailed", "credit_registry_data:es_cirbe_aggregated"],
    }),
  }),
  driver_data: settingsForm({ read_point_movements: flag("Leer movimientos de puntos") }),
  labor_check: settingsForm({
    from_date: date("Desde", "12 months ago"),
    work_life_report: flag("Informe de vida laboral", true),
    contribution_base_report: flag("Informe de bases de cotización"),
  }),
  vehicles_data: settingsForm({ simple_vehicle_report: flag("Informe reducido") }),
  yearly_individual_tax: settingsForm({
    last_n_years: { type: "integer", title: "Últimos ejercicios", default: 3, minimum: 1, maximum: 10 },
  }),
}

/** One form for all features without settings: each form object is compiled once. */
const noSettings = settingsForm()

/** The settings form of a feature (4.1); a feature with no settings has empty `properties` (2.2). */
export const featureSettings = (code: string): FormSchema =>
  Object.hasOwn(withSettings, code) ? (withSettings[code] ?? noSettings) : noSettings
