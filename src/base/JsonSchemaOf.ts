/**
 * A schema of ours -> the JSON Schema that editors use for files of that kind, derived from the schema that
 * loading uses. The same source gives the same bytes.
 */
import { Predicate, Schema } from "effect"

type Json = Readonly<Record<string, unknown>>

/** `allOf` around a mere description adds nothing to the schema itself, and hides it from readers. */
const flatten = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(flatten)
  if (!Predicate.isObject(value)) return value
  const flat: Json = Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, flatten(inner)]))
  const { allOf, ...own } = flat
  if (!Array.isArray(allOf) || !allOf.every(Predicate.isObject)) return flat
  const keys = [own, ...allOf].flatMap((member) => Object.keys(member))
  return new Set(keys).size === keys.length ? Object.assign({}, own, ...allOf) : flat
}

export const jsonSchemaOf = (from: Schema.Top): Json => {
  const { schema, definitions } = Schema.toJsonSchemaDocument(from, { onExcessProperty: "error" })
  const flat = flatten(schema)
  return {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    ...(Predicate.isObject(flat) ? flat : {}),
    ...(Object.keys(definitions).length === 0 ? {} : { $defs: flatten(definitions) }),
  }
}
