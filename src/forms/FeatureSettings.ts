/**
 * The settings that each feature takes (section 4.1), as data, and the check of a job's settings against
 * it, so that no execution is spent on finding a typing error. Features that the reference does not list
 * are accepted, and so is every relative date: the reference shows three of them and no grammar.
 */
import { creditRegistryTypes, financialCardTypes, limitsBehaviours } from "../contract/Vocabulary.ts"
import type { Feature } from "../contract/Vocabulary.ts"
import { suggestion } from "../foundation/Nearest.ts"
import type { CompiledForm } from "./CompiledForm.ts"
import { checkValues } from "./Parameters.ts"
import type { Findings, Issue } from "./Parameters.ts"

export type Setting =
  | { readonly type: "date"; readonly default: string }
  | { readonly type: "boolean"; readonly default: boolean }
  | { readonly type: "count"; readonly default: number }
  | { readonly type: "one_of"; readonly values: ReadonlyArray<string>; readonly default: string | undefined }
  | {
      readonly type: "some_of"
      readonly values: ReadonlyArray<string>
      readonly default: ReadonlyArray<string>
    }

export type Settings =
  | { readonly _tag: "Fields"; readonly fields: Readonly<Record<string, Setting>> }
  /** A settings object is accepted; its fields are not defined. */
  | { readonly _tag: "Anything" }
  /** The reference does not say. */
  | { readonly _tag: "NotListed" }

const date = (phrase: string): Setting => ({ type: "date", default: phrase })
const flag = (value: boolean): Setting => ({ type: "boolean", default: value })
const period: Readonly<Record<string, Setting>> = {
  from_date: date("30 days ago"),
  to_date: date("today"),
  limits_behaviour: { type: "one_of", values: limitsBehaviours, default: "error" },
}
const fields = (settings: Readonly<Record<string, Setting>>): Settings => ({
  _tag: "Fields",
  fields: settings,
})
const account = fields({ ...period, read_transactions: flag(false), read_holders: flag(false) })
const invoices = fields(period)
const none = fields({})

export const featureSettings: Readonly<Record<Feature, Settings>> = {
  accounts_read: account,
  credits_read: account,
  cards_read: fields({
    ...period,
    read_transactions: flag(false),
    filter_by_type: { type: "some_of", values: financialCardTypes, default: financialCardTypes },
  }),
  client_invoices_read: invoices,
  supplier_invoices_read: invoices,
  credit_registry_data: fields({
    preferred_type: { type: "one_of", values: creditRegistryTypes, default: undefined },
  }),
  driver_data: fields({ read_point_movements: flag(false) }),
  labor_check: fields({
    from_date: date("12 months ago"),
    work_life_report: flag(true),
    contribution_base_report: flag(false),
  }),
  vehicles_data: fields({ simple_vehicle_report: flag(false) }),
  yearly_individual_tax: fields({ last_n_years: { type: "count", default: 3 } }),
  customer_information_read: none,
  deposits_read: none,
  direct_debits_read: none,
  funds_read: none,
  investment_accounts_read: none,
  loans_read: none,
  pensions_read: none,
  public_document_verification: none,
  public_pensions: none,
  source_contracts_read: none,
  stocks_read: none,
  academic_data: { _tag: "Anything" },
  properties_data: { _tag: "Anything" },
  accounts_certificates: { _tag: "NotListed" },
  cloud_resource_read: { _tag: "NotListed" },
}

const settingsByCode: ReadonlyMap<string, Settings> = new Map(Object.entries(featureSettings))
const settingsOf = (code: string): Settings => settingsByCode.get(code) ?? { _tag: "NotListed" }

/**
 * `form` is the engine's own form for this feature's settings; if it declares a setting, the form decides.
 */
export const checkSettings = (
  code: string,
  configurations: Readonly<Record<string, unknown>> | undefined,
  form?: CompiledForm,
): Findings => {
  if (configurations === undefined) return { errors: [], warnings: [] }
  const errors: Array<Issue> = []
  const warnings: Array<Issue> = []
  const known = settingsOf(code)
  const declared = form !== undefined && form.fields.size > 0 ? form : undefined
  for (const [name, value] of Object.entries(configurations)) {
    const complaint = known._tag === "Fields" ? complain(known.fields, name, value, declared) : undefined
    const loc = [code, name]
    if (complaint !== undefined)
      (complaint.certain ? errors : warnings).push({ loc, message: complaint.message })
    else if (known._tag === "NotListed" && declared === undefined) {
      warnings.push({ loc, message: "cannot be checked: the reference lists no settings for this feature" })
    }
  }
  if (known._tag === "Fields" && isBackwards(configurations)) {
    errors.push({ loc: [code, "from_date"], message: "must not be later than `to_date`" })
  }
  const own = declared === undefined ? undefined : checkValues(declared, configurations)
  const under = ({ loc, message }: Issue): Issue => ({ loc: [code, ...loc], message })
  return {
    errors: [...errors, ...(own?.errors.map(under) ?? [])],
    warnings: [...warnings, ...(own?.warnings.map(under) ?? [])],
  }
}

/** What a start sends besides its login, in the words of the job. */
export interface AskedSettings {
  readonly features: ReadonlyArray<{
    readonly code: string
    readonly configurations: Readonly<Record<string, unknown>> | undefined
  }>
  readonly configurations: Readonly<Record<string, unknown>>
}

export interface SettingsForms {
  readonly configurations: CompiledForm
  readonly features: ReadonlyMap<string, CompiledForm>
}

/** Without forms, for an engine that was never seen, only the reference is checked. */
export const checkAllSettings = (
  { features, configurations }: AskedSettings,
  forms?: SettingsForms,
): Findings => {
  const found = features.map(({ code, configurations: settings }) =>
    checkSettings(code, settings, settings === undefined ? undefined : forms?.features.get(code)),
  )
  if (forms !== undefined) {
    const { errors, warnings } = checkValues(forms.configurations, configurations)
    const under = ({ loc, message }: Issue): Issue => ({ loc: ["configurations", ...loc], message })
    found.push({ errors: errors.map(under), warnings: warnings.map(under) })
  }
  return {
    errors: found.flatMap(({ errors }) => errors),
    warnings: found.flatMap(({ warnings }) => warnings),
  }
}

interface Complaint {
  readonly certain: boolean
  readonly message: string
}
const wrong = (message: string): Complaint => ({ certain: true, message })

const complain = (
  known: Readonly<Record<string, Setting>>,
  name: string,
  value: unknown,
  form: CompiledForm | undefined,
): Complaint | undefined => {
  const setting = Object.hasOwn(known, name) ? known[name] : undefined
  if (setting === undefined) {
    if (form?.fields.has(name) === true) return undefined
    const names = Object.keys(known)
    return wrong(
      names.length === 0
        ? "this feature takes no settings"
        : `is not a setting of this feature${suggestion(name, names)}`,
    )
  }
  return complainOfValue(setting, value)
}

const complainOfValue = (setting: Setting, value: unknown): Complaint | undefined => {
  switch (setting.type) {
    case "date":
      return complainOfDate(value)
    case "boolean":
      return typeof value === "boolean" ? undefined : wrong("must be true or false")
    case "count":
      return Number.isSafeInteger(value) && Number(value) >= 1
        ? undefined
        : wrong("must be an integer of at least 1")
    case "one_of":
      return typeof value === "string" && setting.values.includes(value)
        ? undefined
        : wrong(`must be one of ${setting.values.join(", ")}`)
    case "some_of":
      return Array.isArray(value) &&
        value.length > 0 &&
        value.every((item) => setting.values.includes(String(item)))
        ? undefined
        : wrong(`must be a list of at least one of ${setting.values.join(", ")}`)
  }
}

/** The phrases that the reference shows, with other numbers and units. */
const relativeDate = /^(?:today|yesterday|\d{1,4} (?:day|week|month|year)s? ago)$/
const isoDate = /^(\d{4})-(\d{2})-(\d{2})$/

const complainOfDate = (value: unknown): Complaint | undefined => {
  if (typeof value !== "string" || value.trim() === "") {
    return wrong("must be a date such as 2026-01-31 or a phrase such as `30 days ago`")
  }
  if (relativeDate.test(value)) return undefined
  if (isoDate.test(value)) return isRealDate(value) ? undefined : wrong("is not a calendar date")
  return {
    certain: false,
    message:
      "is neither a date such as 2026-01-31 nor a phrase that the reference shows; it is sent as it is",
  }
}

const isRealDate = (text: string): boolean => {
  const time = Date.parse(`${text}T00:00:00Z`)
  return Number.isFinite(time) && new Date(time).toISOString().startsWith(text)
}

const isBackwards = ({ from_date, to_date }: Readonly<Record<string, unknown>>): boolean =>
  typeof from_date === "string" &&
  typeof to_date === "string" &&
  isoDate.test(from_date) &&
  isoDate.test(to_date) &&
  from_date > to_date
