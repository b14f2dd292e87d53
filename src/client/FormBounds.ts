/**
 * What a form may cost. A small schema can stand for a large one, through references and lists of
 * alternatives: a validator's time depends on the expanded schema, so that is what is counted, with every
 * reference followed. A form beyond these limits is not compiled. The largest forms of real sources have a
 * few hundred parts.
 */
import { Predicate } from "effect"
import { definitionPointer, listKeywords, mapKeywords, schemaKeywords } from "./JsonSchema.ts"
import type { JsonSchema } from "./JsonSchema.ts"

/** Schemas, their keywords and required names, each counted as often as a reference leads to it. */
const partsMax = 5_000
/** Schemas within schemas, references followed. */
const stepsMax = 128
/** Of an engine's details as JSON text, in characters. */
export const textMax = 1_000_000
/** Values and levels of an engine's details. */
const valuesMax = 200_000
const levelsMax = 100
/** A login field is shorter; longer values are not matched against patterns. In characters. */
export const comparedMax = 10_000

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

/** Why this schema, as `toJsonSchema` makes it, cannot be compiled, or undefined. */
export const beyondBounds = (schema: JsonSchema): string | undefined => {
  const definitions = Predicate.isObject(schema["$defs"]) ? schema["$defs"] : {}
  const targets = new Map(Object.keys(definitions).map((name) => [definitionPointer(name), name]))
  const open = new Set<string>()
  let parts = 0

  const walk = (node: unknown, steps: number): string | undefined => {
    if (!Predicate.isObject(node)) return undefined
    parts += 1 + Object.keys(node).length + (Array.isArray(node["required"]) ? node["required"].length : 0)
    if (parts > partsMax) return `it has more than ${count(partsMax)} parts when its references are followed`
    if (steps > stepsMax) return `it is nested more than ${stepsMax} steps deep`
    for (const inner of innerSchemas(node)) {
      const why = walk(inner, steps + 1)
      if (why !== undefined) return why
    }
    const target = targets.get(String(node["$ref"]))
    if (target === undefined) return undefined
    if (open.has(target)) return "it refers to itself"
    open.add(target)
    const why = walk(definitions[target], steps + 1)
    open.delete(target)
    return why
  }
  return walk(schema, 0)
}

/** Definitions are visited when a reference leads to them. */
const innerSchemas = (node: JsonSchema): ReadonlyArray<unknown> => [
  ...schemaKeywords.map((keyword) => node[keyword]),
  ...mapKeywords.flatMap((keyword) => {
    const map = node[keyword]
    return keyword !== "$defs" && Predicate.isObject(map) ? Object.values(map) : []
  }),
  ...listKeywords.flatMap((keyword) => {
    const list = node[keyword]
    return Array.isArray(list) ? list : []
  }),
]
