/**
 * JSON Schema nodes of the OpenAPI document: how they are compared, rewritten and tidied of what only the
 * derivation knows (tags that never travel, bounds of JavaScript's integers).
 */
export type Json = unknown
export interface Node {
  readonly [name: string]: Json
}

export const isObject = (value: unknown): value is Node =>
  typeof value === "object" && value !== null && !Array.isArray(value)

const sorted = (value: Json): Json => {
  if (Array.isArray(value)) return value.map(sorted)
  if (!isObject(value)) return value
  return Object.fromEntries(
    Object.entries(value)
      .toSorted(([a], [b]) => (a < b ? -1 : 1))
      .map(([name, inner]): [string, Json] => [name, sorted(inner)]),
  )
}

/** Equal texts are equal schemas, whatever the order of their keys. */
export const canonical = (node: Node): string => JSON.stringify(sorted(node))

/** Replaces from the outside in; what `replace` returns undefined for is kept and looked into. */
export const rewrite = (node: Node, replace: (node: Node) => Node | undefined): Node => {
  const inside = (value: Json): Json => {
    if (Array.isArray(value)) return value.map(inside)
    if (!isObject(value)) return value
    return replace(value) ?? rewrite(value, replace)
  }
  return Object.fromEntries(
    Object.entries(node).map(([name, value]): [string, Json] => [name, inside(value)]),
  )
}

const isSchemaOfObject = (node: Node): boolean => node["type"] === "object"
const openRest = canonical({ type: "object", additionalProperties: {} })

/** An answer's tag is a matter of the code; unknown fields pass everywhere. */
const tidyObject = (node: Node): Node => {
  const { properties, allOf, additionalProperties, ...rest } = node
  const { _tag: _never, ...shown } = isObject(properties) ? properties : {}
  const more = Array.isArray(allOf)
    ? allOf.filter((one) => !(isObject(one) && canonical(one) === openRest))
    : []
  return {
    ...rest,
    ...(properties === undefined ? {} : { properties: shown }),
    ...(more.length === 0 ? {} : { allOf: more }),
    ...(additionalProperties === undefined || additionalProperties === false ? {} : { additionalProperties }),
  }
}

const tidyInteger = ({ minimum, maximum, ...rest }: Node): Node => ({
  ...rest,
  ...(minimum === undefined || minimum === Number.MIN_SAFE_INTEGER ? {} : { minimum }),
  ...(maximum === undefined || maximum === Number.MAX_SAFE_INTEGER ? {} : { maximum }),
})

const tidyNode = (node: Node): Node =>
  isSchemaOfObject(node) ? tidyObject(node) : node["type"] === "integer" ? tidyInteger(node) : node

/** From the inside out, so that what is compared is tidy all through. */
export const tidy = (node: Node): Node => {
  const inside = (value: Json): Json =>
    Array.isArray(value) ? value.map(inside) : isObject(value) ? tidy(value) : value
  return tidyNode(
    Object.fromEntries(Object.entries(node).map(([name, value]): [string, Json] => [name, inside(value)])),
  )
}
