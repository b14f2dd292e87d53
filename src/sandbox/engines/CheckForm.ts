/**
 * Judges input against an engine's form (section 2.3) the way the platform does: after the start was
 * accepted, with one validation item per wrong field. Items contain no values; those are kept separately,
 * in memory, for the echo.
 */
import { Ajv } from "ajv"
import type { ErrorObject, ValidateFunction } from "ajv"
import ajvFormats from "ajv-formats"
import type { FormSchema } from "../../service/Engine.ts"
import type { ErrorItem } from "../state/ResultsPlan.ts"

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
