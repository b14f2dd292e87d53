/**
 * An OpenAPI 3.0.3 schema object as the JSON Schema that a validator compiles (section 2.3). Only keywords
 * that are understood, in a shape that is understood, are kept: everything else in a form is ignored, so it
 * can neither break the form nor refuse a login.
 */
import { Predicate } from "effect"

export type JsonSchema = { readonly [keyword: string]: unknown }

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
export const schemaKeywords = [
  "items",
  "additionalProperties",
  "not",
  "if",
  "then",
  "else",
  "contains",
  "propertyNames",
]
export const mapKeywords = ["properties", "patternProperties", "$defs", "dependentSchemas"]
export const listKeywords = ["allOf", "anyOf", "oneOf"]

export interface Conversion {
  readonly schema: JsonSchema
  readonly warnings: ReadonlyArray<string>
}

export const toJsonSchema = (form: JsonSchema): Conversion => {
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
  const schema = convert({ ...form, $defs: definitions }, 0)
  return { schema: Predicate.isObject(schema) ? schema : {}, warnings: [...warnings] }
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

export const definitionPointer = (name: string): string =>
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
