/**
 * An engine's form made ready to check values (section 2.3): its fields, which of them are lazy or have
 * defaults, and a compiled validator. A form that cannot be compiled validates nothing and says so: no
 * login is held back because we failed to understand its form. The form decides what compiling costs: see
 * `FormBounds.ts` for the limits, and `FormChecker.ts` for where it happens.
 */
import { Predicate } from "effect"
import { Ajv } from "ajv"
import type { ErrorObject } from "ajv"
import formats from "ajv-formats"
import { definitionPointer, toJsonSchema } from "./JsonSchema.ts"
import type { Conversion, JsonSchema } from "./JsonSchema.ts"
import { linearPattern } from "./Patterns.ts"

export interface CompiledForm {
  readonly fields: ReadonlySet<string>
  /** Asked for later if needed: may be missing. */
  readonly lazy: ReadonlySet<string>
  /** The service fills these in: may be missing. */
  readonly defaulted: ReadonlySet<string>
  /** False if a name that the form does not list is refused. */
  readonly takesOthers: boolean
  /** Which types a field may have; undefined if the form leaves that open. */
  readonly typesOf: (field: string) => ReadonlySet<string> | undefined
  /** Every complaint about the value as a whole; none if the form could not be compiled. */
  readonly check: (value: Readonly<Record<string, unknown>>) => ReadonlyArray<ErrorObject>
  /** The parts of this form that are not checked. */
  readonly warnings: ReadonlyArray<string>
}

/** One for all forms of an engine, because creating it takes longer than compiling an ordinary form. */
export interface Validator {
  readonly ajv: Ajv
  /** Receives the warnings of the form that is being compiled. */
  warn: (message: string) => void
}

export const makeValidator = (): Validator => {
  const regExp = Object.assign(
    (pattern: string) => linearPattern(pattern, (message) => validator.warn(message)),
    {
      code: "linearPattern",
    },
  )
  const ajv = new Ajv({
    allErrors: true,
    strict: false,
    validateSchema: false,
    meta: false,
    logger: false,
    ownProperties: true,
    code: { regExp },
  })
  formats.default(ajv)
  const validator: Validator = { ajv, warn: () => undefined }
  return validator
}

/** For one form; the plan shows all of them. */
const warningsMax = 10

/** `form` is a form schema of section 2.3; anything else compiles to a form that checks nothing. */
export const compileForm = (
  form: Readonly<Record<string, unknown>>,
  { schema, warnings: found }: Conversion = toJsonSchema(form),
  validator: Validator = makeValidator(),
): CompiledForm => {
  const warnings = [...found]
  const properties = Predicate.isObject(form["properties"]) ? form["properties"] : {}
  const converted = Predicate.isObject(schema["properties"]) ? schema["properties"] : {}
  const definitions = Predicate.isObject(schema["$defs"]) ? schema["$defs"] : {}
  const meta = Predicate.isObject(form["x-meta"]) ? form["x-meta"] : {}
  const defaulted = Object.entries(properties).flatMap(([name, property]) =>
    Predicate.isObject(property) && Object.hasOwn(property, "default") ? [name] : [],
  )
  return {
    fields: new Set(Object.keys(properties)),
    lazy: new Set(Array.isArray(meta["lazy_fields"]) ? meta["lazy_fields"].map(String) : []),
    defaulted: new Set(defaulted),
    takesOthers: schema["additionalProperties"] !== false || Predicate.isObject(schema["patternProperties"]),
    typesOf: (field) =>
      Object.hasOwn(converted, field) ? possibleTypes(converted[field], definitions, 0) : undefined,
    check: compileCheck(schema, warnings, validator),
    warnings,
  }
}

const compileCheck = (
  schema: JsonSchema,
  warnings: Array<string>,
  validator: Validator,
): CompiledForm["check"] => {
  const warn = (message: string) => {
    if (warnings.length < warningsMax && !warnings.includes(message)) warnings.push(message)
    else if (warnings.length === warningsMax) warnings.push("and other parts of this form are not checked")
  }
  validator.warn = warn
  try {
    const validate = validator.ajv.compile(schema)
    return (value) => (validate(value) === true ? [] : [...(validate.errors ?? [])])
  } catch {
    warn("this form could not be understood; values are sent unchecked")
    return () => []
  }
}

const stepsMax = 16

/** A set that certainly contains every type the schema accepts; undefined if nothing is certain. */
const possibleTypes = (
  schema: unknown,
  definitions: JsonSchema,
  steps: number,
): ReadonlySet<string> | undefined => {
  if (!Predicate.isObject(schema) || steps > stepsMax) return undefined
  const type = schema["type"]
  if (typeof type === "string") return new Set([type])
  if (Array.isArray(type)) return new Set(type.map(String))
  const reference = schema["$ref"]
  if (typeof reference === "string") {
    const target = Object.keys(definitions).find((name) => reference === definitionPointer(name))
    return target === undefined ? undefined : possibleTypes(definitions[target], definitions, steps + 1)
  }
  for (const keyword of ["anyOf", "oneOf"]) {
    const branches = schema[keyword]
    if (!Array.isArray(branches)) continue
    const all = branches.map((branch) => possibleTypes(branch, definitions, steps + 1))
    return all.every((one) => one !== undefined) ? new Set(all.flatMap((one) => [...one])) : undefined
  }
  const parts = schema["allOf"]
  return Array.isArray(parts)
    ? parts.map((part) => possibleTypes(part, definitions, steps + 1)).find((one) => one !== undefined)
    : undefined
}
