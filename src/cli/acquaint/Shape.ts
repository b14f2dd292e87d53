/**
 * Which parts of a body may be written down: its keys and the kinds of its values. A string is written out
 * only if it is a value that the reference itself lists; of records, only `product` and `sub_family`. Keys
 * that look like numbers or personal identifiers are not written either.
 */
import { Predicate } from "effect"
import * as Vocabulary from "../../service/Vocabulary.ts"

const depthMax = 10
const keysMax = 80
const kindsMax = 3

/** Every value that an enumeration of the reference lists, except those of records. */
const listed: ReadonlySet<string> = new Set<string>([
  ...Vocabulary.features,
  ...Vocabulary.statusCodes,
  ...Vocabulary.statusReasons,
  ...Vocabulary.authenticationStatuses,
  ...Vocabulary.authOrigins,
  ...Vocabulary.endHooks,
  ...Vocabulary.messageTypes,
  ...Vocabulary.featureStatusReasons,
  ...Vocabulary.sessionStatusCodes,
  ...Vocabulary.sessionCursors,
  ...Vocabulary.engineEvents,
  ...Vocabulary.engineStatuses,
  ...Vocabulary.engineAlternatives,
  ...Vocabulary.environments,
  ...Vocabulary.mainCategories,
  ...Vocabulary.actionRequiredFrequencies,
])

/** A word of a protocol: no run of digits that could be somebody's number. */
const isCode = (text: string): boolean =>
  /^[A-Za-z_$@][\w$@:.-]{0,79}$/.test(text) && !/\d{4}/.test(text) && !/@.*\.[a-z]+$/i.test(text)

/** How to describe a value that an enumeration does not list. */
export const codeText = (text: string): string => (isCode(text) ? text : `a string of ${text.length}`)

export const keyText = (key: string): string => (isCode(key) ? key : "<key>")

const uuid = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i

/** The form of an id; undefined if it is none of the known forms. */
export const idForm = (text: string): "uuid" | "object_id" | "hex" | undefined => {
  if (uuid.test(text)) return "uuid"
  if (/^[0-9a-f]{24}$/i.test(text)) return "object_id"
  return /^[0-9a-f]{32}$/i.test(text) ? "hex" : undefined
}

const textKind = (text: string): string => {
  if (listed.has(text)) return text
  if (text === "") return "text (empty)"
  const form = idForm(text)
  if (form !== undefined) return `text (${form})`
  return /^\d{4}-\d{2}-\d{2}(?:T|$)/.test(text) ? "text (date)" : "text"
}

const scalarKind = (value: unknown): unknown => {
  if (value === null) return null
  if (typeof value === "string") return textKind(value)
  if (typeof value === "number") return Number.isSafeInteger(value) ? "integer" : "number"
  return typeof value === "boolean" ? value : "value"
}

const isRecord = (value: object): boolean =>
  typeof Reflect.get(value, "product") === "string" && typeof Reflect.get(value, "sub_family") === "string"

const recordKeys: ReadonlySet<string> = new Set(["product", "sub_family"])

const inRecord = (key: string, value: unknown): unknown => {
  if (typeof value === "boolean") return "boolean"
  if (typeof value !== "string") return scalarKind(value)
  return recordKeys.has(key) ? codeText(value) : value === "" ? "text (empty)" : "text"
}

const shapeAt = (value: unknown, key: string, record: boolean, depth: number): unknown => {
  if (typeof value !== "object" || value === null) return record ? inRecord(key, value) : scalarKind(value)
  if (depth > depthMax) return "…"
  if (Array.isArray(value)) {
    const kinds = new Map<string, unknown>()
    for (const item of value) {
      const shape = shapeAt(item, key, record, depth + 1)
      kinds.set(JSON.stringify(shape), shape)
    }
    const more = kinds.size > kindsMax ? [`… ${kinds.size - kindsMax} other shapes`] : []
    return [
      ...[...kinds.values()].slice(0, kindsMax),
      ...more,
      ...(value.length > 0 ? [`× ${value.length}`] : []),
    ]
  }
  const inside = record || isRecord(value)
  const entries = Object.entries(value)
  const shown = entries
    .slice(0, keysMax)
    .map(([name, inner]): [string, unknown] => [keyText(name), shapeAt(inner, name, inside, depth + 1)])
  const more = entries.length > keysMax ? [["…", `${entries.length - keysMax} more keys`] as const] : []
  return Object.fromEntries([...shown, ...more])
}

/** The shape of a body, as JSON. */
export const shapeOf = (json: unknown): unknown => shapeAt(json, "", false, 0)

/** The kind of a value, for people: never the value itself. */
export const kindOf = (value: unknown): string => {
  if (value === null) return "null"
  if (Array.isArray(value)) return "a list"
  if (Predicate.isObject(value)) return "a map"
  if (typeof value === "string") return "a string"
  if (typeof value === "boolean") return "true or false"
  return Number.isSafeInteger(value) ? "a whole number" : "a number"
}
