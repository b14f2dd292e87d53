/**
 * What an engine's forms say about logins and settings: the forms compiled, every case checked against
 * them. Pure, and the only place where the service's schemas and patterns meet values, so that it can run
 * where it can be stopped (`FormProcess.ts`). Cases contain secrets; what is said about them does not.
 */
import { runInNewContext } from "node:vm"
import { Predicate } from "effect"
import { suggestion } from "../base/Text.ts"
import { compileForm, makeValidator } from "./CompiledForm.ts"
import type { CompiledForm, Validator } from "./CompiledForm.ts"
import { checkValues, fitParameters } from "./Parameters.ts"
import type { Findings, FittedParameters, Issue } from "./Parameters.ts"
import { settingsOf, type Setting } from "../service/Engine.ts"
import type { EngineView } from "./Views.ts"

// A job's settings against section 4.1, so that no execution is spent on a typing error. Unlisted features
// and every relative date are accepted: the reference shows no grammar.

/** `form` is the engine's own for this feature's settings; if it declares a setting, it decides. */
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
interface AskedSettings {
  readonly features: ReadonlyArray<{
    readonly code: string
    readonly configurations: Readonly<Record<string, unknown>> | undefined
  }>
  readonly configurations: Readonly<Record<string, unknown>>
}

interface SettingsForms {
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

type Forms = Pick<EngineView, "parameters" | "configurations" | "features">

export interface FormCase extends AskedSettings {
  /** Absent if there are no parameters to check: a token, or a secret that cannot be resolved. */
  readonly parameters?: Readonly<Record<string, unknown>>
}

/** One case and the forms. */
export interface RawFit {
  readonly settings: Findings
  readonly parameters?: FittedParameters
}

export interface FormRequest {
  /** An engine's details as JSON, decoded as `Forms`. */
  readonly body: string
  readonly cases: ReadonlyArray<FormCase>
}

/** Can be sent to another process. */
export interface Fitted {
  readonly _tag: "Fitted"
  /** The parts of the forms that are not checked. */
  readonly warnings: ReadonlyArray<string>
  readonly fits: ReadonlyArray<RawFit>
}

/** `why` is a clause: "checking it takes longer than 5s". */
export interface Unusable {
  readonly _tag: "Unusable"
  readonly why: string
}
export type FormAnswer = Fitted | Unusable

interface CompiledForms extends SettingsForms {
  readonly validator: Validator
  readonly parameters: CompiledForm
  readonly warnings: ReadonlyArray<string>
}

/** How many compiled forms are kept: an engine is compiled when it is seen and checked soon after. */
const keptMax = 64

/** Answers one request after another; forms are compiled once for as long as they are remembered. */
export const makeFitter = (): ((request: FormRequest) => Fitted) => {
  const kept = new Map<string, CompiledForms>()
  return ({ body, cases }) => {
    const compiled = kept.get(body) ?? compileForms(readForms(body))
    const oldest = kept.size < keptMax || kept.has(body) ? undefined : kept.keys().next().value
    if (oldest !== undefined) kept.delete(oldest)
    kept.set(body, compiled)
    const fitAll = () => cases.map((one) => fitCase(one, compiled))
    let fits = inTime(fitAll)
    if (fits === undefined) {
      compiled.validator.matches = false
      fits = fitAll()
    }
    return { _tag: "Fitted", warnings: compiled.warnings, fits }
  }
}

/** For one request, which matches some hundreds of values in milliseconds. */
const matchingMaxMs = 1_000

/**
 * A pattern and a value can make a regular expression run for ever. That is one customer's value, and the
 * others' are to be checked: so the work is stopped from outside, as only a script with a time limit can be.
 */
const inTime = <A>(work: () => A): A | undefined => {
  try {
    return runInNewContext("work()", { work }, { timeout: matchingMaxMs })
  } catch (cause) {
    if (!Predicate.hasProperty(cause, "code") || cause.code !== "ERR_SCRIPT_EXECUTION_TIMEOUT") throw cause
    return undefined
  }
}

const readForms = (body: string): Forms => JSON.parse(body)

const unmatched: Findings = {
  errors: [],
  warnings: [{ loc: [], message: "the patterns of this form take too long and are not checked" }],
}

const fitCase = (one: FormCase, forms: CompiledForms): RawFit => {
  const checked = checkAllSettings(one, forms)
  const settings = forms.validator.matches ? checked : joined([checked, unmatched])
  return one.parameters === undefined
    ? { settings }
    : { settings, parameters: fitParameters(forms.parameters, one.parameters) }
}

const compileForms = (forms: Forms): CompiledForms => {
  const validator = makeValidator()
  const parameters = compileForm(forms.parameters, validator)
  const configurations = compileForm(forms.configurations, validator)
  const features = new Map(
    forms.features.map((one) => [one.code, compileForm(one.configurations, validator)] as const),
  )
  const warnings = [...parameters.warnings, ...configurations.warnings]
  return { validator, parameters, configurations, features, warnings }
}
