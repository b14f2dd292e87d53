/**
 * Login parameters checked against their engine's form, so that a login that cannot succeed is never sent.
 * Pure; no message contains a value: messages are built only from the form's own words and field names.
 */
import type { ErrorObject } from "ajv"
import { jsonIn, numberIn, suggestion } from "../base/Text.ts"
import { isEncrypted } from "../service/Execution.ts"
import { cutText } from "../service/BodyBounds.ts"
import type { CompiledForm } from "./CompiledForm.ts"

/** `loc` names the field, as the service's validation items do (section 2.4); empty for the whole object. */
export interface Issue {
  readonly loc: ReadonlyArray<string>
  readonly message: string
}

export interface Findings {
  readonly errors: ReadonlyArray<Issue>
  readonly warnings: ReadonlyArray<Issue>
}

export interface FittedParameters extends Findings {
  /** The values as they will be sent: strings converted to the type that the form asks for. */
  readonly parameters: Values
}

type Values = Readonly<Record<string, unknown>>

export const fitParameters = (form: CompiledForm, values: Values): FittedParameters => {
  const found = checkValues(form, values)
  if (found.errors.length === 0) return { ...found, parameters: values }
  const coerced = coerceFields(form, values)
  return { ...(coerced === values ? found : checkValues(form, coerced)), parameters: coerced }
}

/** The same check for settings, which are never coerced: a job file gives them the right types. */
export const checkValues = (form: CompiledForm, values: Values): Findings => {
  const exempt = new Set(Object.keys(values).filter((name) => isEncrypted(values[name])))
  const context: Context = {
    form,
    exempt,
    unsure: exempt.size > 0 || [...form.lazy].some((name) => !Object.hasOwn(values, name)),
  }
  const errors: Array<Issue> = []
  const warnings: Array<Issue> = []
  for (const error of form.check(values)) {
    const weight = weigh(error, context)
    if (weight !== "nothing") (weight === "error" ? errors : warnings).push(issueOf(error))
  }
  for (const name of Object.keys(values)) {
    if (form.fields.has(name)) continue
    const message = `is not a field of this engine's form${cutSaid(suggestion(name, [...form.fields]))}`
    if (form.takesOthers || exempt.has(name)) warnings.push({ loc: [name], message })
    else errors.push({ loc: [name], message })
  }
  return { errors: boundIssues(distinct(errors)), warnings: boundIssues(distinct(warnings)) }
}

interface Context {
  readonly form: CompiledForm
  readonly exempt: ReadonlySet<string>
  /** Some field is unreadable or comes later, so a rule over several fields proves nothing. */
  readonly unsure: boolean
}

const weigh = (error: ErrorObject, { form, exempt, unsure }: Context): "error" | "warning" | "nothing" => {
  const field = fieldOf(error)
  if (field !== undefined && exempt.has(field)) return "nothing"
  const onWhole = error.instancePath === ""
  if (onWhole && error.schemaPath === "#/additionalProperties") return form.takesOthers ? "error" : "nothing"
  if (onWhole && error.schemaPath === "#/required") {
    const later = field !== undefined && (form.lazy.has(field) || form.defaulted.has(field))
    return later ? "nothing" : "error"
  }
  const ofOneField =
    !onWhole && /^#\/(?:(?:pattern)?properties|additionalProperties|\$defs)\//i.test(error.schemaPath)
  return ofOneField || !unsure ? "error" : "warning"
}

/** Only the parameter's own name: anything inside a value, even its keys, may be secret. */
const fieldOf = (error: ErrorObject): string | undefined => {
  if (error.instancePath !== "") {
    return (error.instancePath.split("/")[1] ?? "").replaceAll("~1", "/").replaceAll("~0", "~")
  }
  const named: unknown = error.params["missingProperty"] ?? error.params["additionalProperty"]
  return typeof named === "string" ? named : undefined
}

const saidMax = 160
/** A form's own words may be of any length. */
export const cutSaid = (text: string): string => cutText(text, saidMax)

const issueOf = (error: ErrorObject): Issue => {
  const field = fieldOf(error)
  return { loc: field === undefined ? [] : [field], message: cutSaid(messageOf(error)) }
}

/** The validator's words come only from the form, except for the rules that quote a key of the value. */
const messageOf = (error: ErrorObject): string => {
  switch (error.keyword) {
    case "required":
      return error.instancePath === ""
        ? "is missing; the form requires it"
        : "lacks a field that the form requires"
    case "enum": {
      const allowed: unknown = error.params["allowedValues"]
      return `must be one of ${JSON.stringify(allowed)}`
    }
    case "additionalProperties":
      return error.instancePath === "" ? "is refused by the form" : "contains a field that the form refuses"
    case "uniqueItems":
      return "must not contain the same item twice"
    default:
      return error.message ?? "does not fit the form"
  }
}

const distinct = (issues: ReadonlyArray<Issue>): ReadonlyArray<Issue> => {
  if (issues.length < 2) return issues
  const seen = new Map(issues.map((issue) => [JSON.stringify([issue.loc, issue.message]), issue]))
  return [...seen.values()]
}

/** A form can find thousands of problems in one login; a person reads the first ones. */
const issuesMax = 100

const boundIssues = (issues: ReadonlyArray<Issue>): ReadonlyArray<Issue> =>
  issues.length <= issuesMax
    ? issues
    : [
        ...issues.slice(0, issuesMax),
        { loc: [], message: `${issues.length - issuesMax} more problems of this kind are not listed` },
      ]

/** What the validator says of a value whose type its field may not have. */
const ofTypes: ReadonlySet<string> = new Set(["type", "enum", "const"])

/** Fields whose values are of another type, or of none of the values that they may have. */
const wrongTypes = (form: CompiledForm, values: Values): ReadonlySet<string> =>
  new Set(form.check(values).flatMap((error) => (ofTypes.has(error.keyword) ? (fieldOf(error) ?? []) : [])))

/** Texts become what their fields may have; the same values if there are none. */
const coerceFields = (form: CompiledForm, values: Values): Values => {
  let coerced = values
  for (const name of wrongTypes(form, values)) {
    const value = Object.hasOwn(values, name) ? values[name] : undefined
    if (typeof value !== "string") continue
    const fits = (one: unknown) => !wrongTypes(form, { ...values, [name]: one }).has(name)
    const fitting = meaningsOf(value).find(fits)
    if (fitting !== undefined) coerced = { ...coerced, [name]: fitting }
  }
  return coerced
}

/** What a text may mean besides itself. */
const meaningsOf = (raw: string): ReadonlyArray<unknown> => {
  const text = raw.trim()
  const flag = /^(?:true|false)$/i.test(text) ? text.toLowerCase() === "true" : undefined
  return [flag, numberIn(text), jsonIn(text)].filter((one) => one !== undefined)
}
