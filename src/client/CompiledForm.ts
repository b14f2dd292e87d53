/**
 * An engine's form made ready to check values (section 2.3): its fields, which of them are lazy or have
 * defaults, and a compiled validator. A form that cannot be compiled validates nothing and says so: no
 * login is held back because we failed to understand its form. The form decides what compiling costs:
 * `FormProcess.ts` says where it happens, and within which limits.
 */
import { Ajv, type ErrorObject } from "ajv"
import formats from "ajv-formats"
import { Predicate } from "effect"
import { cutText } from "../service/BodyBounds.ts"

// An OpenAPI 3.0.3 schema object as the JSON Schema that a validator compiles (2.3). Whatever is not
// understood is ignored, so that it can neither break the form nor refuse a login.

type JsonSchema = { readonly [keyword: string]: unknown }

/** Deeper than any form that a person fills in; anything below is not checked. */
const depthMax = 32

const types = new Set(["string", "number", "integer", "boolean", "object", "array", "null"])
const isCount = (value: unknown) => Number.isInteger(value) && Number(value) >= 0
const isNumber = (value: unknown) => typeof value === "number" && Number.isFinite(value)
const isText = (value: unknown) => typeof value === "string"
const isTexts = (value: unknown) =>
  Array.isArray(value) && new Set(value).size === value.length && value.every(isText)
const isType = (value: unknown) =>
  Array.isArray(value)
    ? value.length > 0 && isTexts(value) && value.every((type) => types.has(type))
    : types.has(String(value)) && isText(value)

/** The keywords that restrict a value, each with the shape in which it can be read. */
const plainKeywords: Readonly<Record<string, (value: unknown) => boolean>> = {
  type: isType,
  enum: (value) => Array.isArray(value) && value.length > 0,
  const: () => true,
  format: isText,
  pattern: isText,
  minLength: isCount,
  maxLength: isCount,
  minimum: isNumber,
  maximum: isNumber,
  exclusiveMinimum: isNumber,
  exclusiveMaximum: isNumber,
  multipleOf: (value) => isNumber(value) && Number(value) > 0,
  minItems: isCount,
  maxItems: isCount,
  uniqueItems: (value) => typeof value === "boolean",
  minProperties: isCount,
  maxProperties: isCount,
  required: isTexts,
}
const schemaKeywords = [
  "items",
  "additionalProperties",
  "not",
  "if",
  "then",
  "else",
  "contains",
  "propertyNames",
]
const mapKeywords = ["properties", "patternProperties", "$defs", "dependentSchemas"]
const listKeywords = ["allOf", "anyOf", "oneOf"]

const toJsonSchema = (form: JsonSchema) => {
  const warnings = new Set<string>()
  const definitions = gatherDefinitions(form)
  const named = new Set(Object.keys(definitions))

  const convert = (node: unknown, depth: number): unknown => {
    if (typeof node === "boolean") return node
    if (!Predicate.isObject(node) || depth > depthMax) return {}
    const schema: Record<string, unknown> = {}
    for (const [keyword, fits] of Object.entries(plainKeywords)) {
      if (Object.hasOwn(node, keyword) && fits(node[keyword])) schema[keyword] = node[keyword]
    }
    for (const keyword of schemaKeywords) {
      if (isSchema(node[keyword])) schema[keyword] = convert(node[keyword], depth + 1)
    }
    for (const keyword of mapKeywords) {
      const map = node[keyword]
      if (Predicate.isObject(map)) schema[keyword] = convertMap(map, depth)
    }
    for (const keyword of listKeywords) {
      const list = node[keyword]
      if (Array.isArray(list) && list.length > 0)
        schema[keyword] = list.map((item) => convert(item, depth + 1))
    }
    exclusiveLimits(node, schema)
    const target = isText(node["$ref"]) ? resolve(String(node["$ref"])) : undefined
    if (target !== undefined) schema["$ref"] = target
    return node["nullable"] === true ? orNull(schema) : schema
  }
  const convertMap = (map: Readonly<Record<string, unknown>>, depth: number) =>
    Object.fromEntries(Object.entries(map).map(([name, item]) => [name, convert(item, depth + 1)]))
  const resolve = (reference: string): string | undefined => {
    const name = /^#\/(?:\$defs|definitions|components\/schemas)\/([^/]+)$/.exec(reference)?.[1]
    const plain = name === undefined ? undefined : unescape(name)
    if (plain !== undefined && named.has(plain)) return definitionPointer(plain)
    warnings.add("a reference in this form has no target; the part it refers to is not checked")
    return undefined
  }
  const converted = convert({ ...form, $defs: definitions }, 0)
  const schema: JsonSchema = Predicate.isObject(converted) ? converted : {}
  return { schema, warnings: [...warnings] }
}

/** A form that was cut out of a larger document may have its definitions where that document had them. */
const gatherDefinitions = (form: JsonSchema): JsonSchema => {
  const components = Predicate.isObject(form["components"]) ? form["components"]["schemas"] : undefined
  return Object.fromEntries(
    [form["definitions"], components, form["$defs"]].flatMap((map) =>
      Predicate.isObject(map) ? Object.entries(map) : [],
    ),
  )
}

const definitionPointer = (name: string): string =>
  `#/$defs/${encodeURIComponent(name.replaceAll("~", "~0").replaceAll("/", "~1"))}`

const isSchema = (value: unknown) => Predicate.isObject(value) || typeof value === "boolean"

/** OpenAPI 3.0 says `minimum: 1, exclusiveMinimum: true`, JSON Schema `exclusiveMinimum: 1`. */
const exclusiveLimits = (node: JsonSchema, schema: Record<string, unknown>) => {
  for (const [flag, limit] of [
    ["exclusiveMinimum", "minimum"],
    ["exclusiveMaximum", "maximum"],
  ] as const) {
    if (node[flag] !== true || schema[limit] === undefined) continue
    schema[flag] = schema[limit]
    delete schema[limit]
  }
}

const combinators = ["$ref", "const", "allOf", "anyOf", "oneOf", "not", "if"]

const orNull = (schema: JsonSchema): JsonSchema => {
  const type = schema["type"]
  if (type !== undefined && !combinators.some((keyword) => Object.hasOwn(schema, keyword))) {
    const values = Array.isArray(schema["enum"]) ? { enum: [...schema["enum"], null] } : {}
    return { ...schema, type: [...new Set([type, "null"].flat())], ...values }
  }
  return Object.keys(schema).length === 0 ? schema : { anyOf: [schema, { type: "null" }] }
}

const unescape = (name: string) => {
  try {
    return decodeURIComponent(name).replaceAll("~1", "/").replaceAll("~0", "~")
  } catch {
    return name
  }
}

// What may be handed to the checker at all; what it costs to compile and to match, it finds out itself.

/** Of an engine's details as JSON text, in characters. */
export const textMax = 1_000_000
/** Values and levels of an engine's details. */
const valuesMax = 200_000
const levelsMax = 100

/** Why the details of an engine cannot be accepted, or undefined. Goes no deeper than the limits. */
export const beyondText = (details: unknown): string | undefined => {
  const open: Array<readonly [value: unknown, level: number]> = [[details, 0]]
  let values = 0
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const [value, level] = next
    if (typeof value !== "object" || value === null) continue
    if (level >= levelsMax) return `its details are nested more than ${levelsMax} levels deep`
    const inner = Object.values(value)
    values += inner.length
    if (values > valuesMax) return `its details hold more than ${count(valuesMax)} values`
    for (const one of inner) open.push([one, level + 1])
  }
  return undefined
}

export const count = (amount: number): string => amount.toLocaleString("en-US")

/** Enough to recognise a pattern by. */
const toldMax = 60

/** With the u flag, as JSON Schema asks, or without it if only that works. */
const readPattern = (pattern: string): RegExp | undefined => {
  for (const flags of ["u", ""])
    try {
      return new RegExp(pattern, flags)
    } catch {
      // The next flags, or none.
    }
  return undefined
}

/** One for all forms of an engine, because creating it takes longer than compiling an ordinary form. */
export interface Validator {
  readonly ajv: Ajv
  /** Receives the warnings of the form that is being compiled. */
  warn: (message: string) => void
  /** False once matching took too long: from then on, every pattern accepts everything. */
  matches: boolean
}

export const makeValidator = (): Validator => {
  /** One that is no regular expression accepts everything, and is named once. */
  const matcher = (pattern: string) => {
    const compiled = readPattern(pattern)
    if (compiled === undefined) {
      const told = cutText(pattern, toldMax).replaceAll(/\p{C}/gu, "?")
      validator.warn(`the pattern \`${told}\` of this form is not checked: it is not a regular expression`)
    }
    const test = (value: string) => compiled === undefined || !validator.matches || compiled.test(value)
    return { test, toString: () => `/${pattern}/` }
  }
  const regExp = Object.assign(matcher, { code: "matcher" })
  const ajv = new Ajv({
    allErrors: true,
    strict: false,
    validateSchema: false,
    meta: false,
    logger: false,
    ownProperties: true,
    // 19.99 is a multiple of 0.01, although its quotient is not whole in binary numbers.
    multipleOfPrecision: 9,
    code: { regExp },
  })
  formats.default(ajv)
  const validator: Validator = { ajv, warn: () => undefined, matches: true }
  return validator
}

/** For one form; the plan shows all of them. */
const warningsMax = 10

/** `form` is a form schema of section 2.3; anything else compiles to a form that checks nothing. */
export const compileForm = (
  form: Readonly<Record<string, unknown>>,
  validator: Validator = makeValidator(),
) => {
  const { schema, warnings } = toJsonSchema(form)
  const properties = Predicate.isObject(form["properties"]) ? form["properties"] : {}
  const meta = Predicate.isObject(form["x-meta"]) ? form["x-meta"] : {}
  const defaulted = Object.entries(properties).flatMap(([name, property]) =>
    Predicate.isObject(property) && Object.hasOwn(property, "default") ? [name] : [],
  )
  return {
    fields: new Set(Object.keys(properties)),
    /** Asked for later if needed: may be missing. */
    lazy: new Set(Array.isArray(meta["lazy_fields"]) ? meta["lazy_fields"].map(String) : []),
    /** The service fills these in: may be missing. */
    defaulted: new Set(defaulted),
    /** False if a name that the form does not list is refused. */
    takesOthers: schema["additionalProperties"] !== false || Predicate.isObject(schema["patternProperties"]),
    check: compileCheck(schema, warnings, validator),
    /** The parts of this form that are not checked. */
    warnings,
  }
}
export type CompiledForm = ReturnType<typeof compileForm>

/** Every complaint about the value as a whole; none if the form could not be compiled. */
const compileCheck = (
  schema: JsonSchema,
  warnings: Array<string>,
  validator: Validator,
): ((value: Readonly<Record<string, unknown>>) => ReadonlyArray<ErrorObject>) => {
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
