/**
 * Checks a job's settings against those that each feature takes (section 4.1), so that no execution is spent
 * on finding a typing error. Features that the reference does not list are accepted, and so is every relative
 * date: the reference shows three of them and no grammar.
 */
import { settingsOf } from "../service/FeatureSettings.ts"
import type { Setting } from "../service/FeatureSettings.ts"
import { suggestion } from "../base/Nearest.ts"
import type { CompiledForm } from "./CompiledForm.ts"
import { checkValues } from "./Parameters.ts"
import type { Findings, Issue } from "./Parameters.ts"

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
  const own = declared === undefined ? [] : [under(code, checkValues(declared, configurations))]
  return joined([{ errors, warnings }, ...own])
}

/** The same findings, for values under this name. */
const under = (name: string, { errors, warnings }: Findings): Findings => {
  const moved = ({ loc, message }: Issue): Issue => ({ loc: [name, ...loc], message })
  return { errors: errors.map(moved), warnings: warnings.map(moved) }
}

const joined = (found: ReadonlyArray<Findings>): Findings => ({
  errors: found.flatMap(({ errors }) => errors),
  warnings: found.flatMap(({ warnings }) => warnings),
})

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
  if (forms !== undefined)
    found.push(under("configurations", checkValues(forms.configurations, configurations)))
  return joined(found)
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
