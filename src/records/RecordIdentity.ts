/**
 * What makes a record the same record in another run: customer and engine (or session), `sub_family`, and
 * its whole content, with sorted keys. The hash of that is `record_id`; equal records of one body are
 * distinguished by their number in it. `content_id` is the same without the times of fetching, so that it
 * stays while nothing but the time of the visit changes.
 */
import { hash } from "node:crypto"
import type { CustomerId, EngineReference, SessionId } from "../service/Ids.ts"
import { ExactNumber, decimalIdentity, jsonText } from "./ExactNumber.ts"

/** A record with objects nested deeper than this is rejected: real ones have three levels. */
export const recordDepthMax = 32

/** The keys of one kind of object as they come, sorted, and each sorted key with its length before it. */
interface Shape {
  readonly keys: ReadonlyArray<string>
  readonly sorted: ReadonlyArray<string>
  readonly labels: ReadonlyArray<string>
}

// The last shape seen per number of keys. Records repeat a handful of shapes, and sorting was half of the
// time.
const shapes: Array<Shape | undefined> = []
const shapeKeysMax = 64

const shapeOf = (keys: ReadonlyArray<string>): Shape => {
  const known = shapes[keys.length]
  if (known !== undefined) {
    let i = 0
    while (i < keys.length && keys[i] === known.keys[i]) i++
    if (i === keys.length) return known
  }
  const sorted = keys.toSorted()
  const shape = { keys, sorted, labels: sorted.map((key) => `${key.length}:${key}`) }
  if (keys.length <= shapeKeysMax) shapes[keys.length] = shape
  return shape
}

type Json = Readonly<Record<string, unknown>>

/** The fields of an object that say when it was fetched. */
export type FetchedOf = (value: Json) => ReadonlyArray<string>

const nothingFetched: FetchedOf = () => []

/**
 * One text per value: keys sorted, strings with their length before them so that nothing has to be escaped,
 * numbers by value. undefined if the value is nested deeper than `recordDepthMax`.
 */
export const canonicalText = (value: unknown, fetchedOf = nothingFetched, depth = 0): string | undefined => {
  if (typeof value === "string") return `${value.length}:${value}`
  if (typeof value !== "object" || value === null) {
    // A value is either always a plain number or always an exact one, so the two need no common form.
    return typeof value === "number" ? `#${value}` : value === null ? "!n" : value === true ? "!t" : "!f"
  }
  if (value instanceof ExactNumber) return `#${decimalIdentity(value.text)}`
  if (depth === recordDepthMax) return undefined
  if (Array.isArray(value)) {
    let text = "["
    for (let i = 0; i < value.length; i++) {
      const inner = canonicalText(value[i], fetchedOf, depth + 1)
      if (inner === undefined) return undefined
      text += inner
    }
    return `${text}]`
  }
  const { sorted, labels } = shapeOf(Object.keys(value))
  const fetched = fetchedOf(value as Json)
  let text = "{"
  for (let i = 0; i < sorted.length; i++) {
    const inner = canonicalText((value as Json)[sorted[i]!], fetchedOf, depth + 1)
    if (inner === undefined) return undefined
    if (!fetched.includes(sorted[i]!)) text += labels[i]! + inner
  }
  return `${text}}`
}

/** A record's canonical text, and the same without its times of fetching. */
export interface IdentityTexts {
  readonly whole: string
  readonly content: string
}

/**
 * undefined if the record is nested too deep. `nests`: there are records in it, whose times of fetching are
 * left out as well.
 */
export const identityTexts = (
  record: Json,
  fetchedOf: FetchedOf,
  nests: boolean,
): IdentityTexts | undefined => {
  if (nests) {
    const [whole, content] = [canonicalText(record), canonicalText(record, fetchedOf)]
    return whole === undefined || content === undefined ? undefined : { whole, content }
  }
  // Both in one pass: every field is read once.
  const { sorted, labels } = shapeOf(Object.keys(record))
  const fetched = fetchedOf(record)
  let [whole, content] = ["{", "{"]
  for (let i = 0; i < sorted.length; i++) {
    const inner = canonicalText(record[sorted[i]!], nothingFetched, 1)
    if (inner === undefined) return undefined
    const part = labels[i]! + inner
    whole += part
    if (!fetched.includes(sorted[i]!)) content += part
  }
  return { whole: `${whole}}`, content: `${content}}` }
}

/** 128 bits of SHA-256, as hexadecimal digits. */
const digest = (text: string): string => hash("sha256", text, "hex").slice(0, 32)

/** The texts of a record that is nested too deep for the canonical ones: as it is written. */
export const writtenTexts = (record: Json, fetchedOf: FetchedOf): IdentityTexts => {
  const fetched = fetchedOf(record)
  const lasting = Object.entries(record).filter(([name]) => !fetched.includes(name))
  return { whole: jsonText(record), content: jsonText(Object.fromEntries(lasting)) }
}

export interface RecordIds {
  readonly record_id: string
  readonly content_id: string
}

/** Tells equal texts of one body apart. */
const numbered = (): ((base: string) => string) => {
  const seen = new Map<string, number>()
  return (base) => {
    const occurrence = seen.get(base) ?? 0
    seen.set(base, occurrence + 1)
    return occurrence === 0 ? base : digest(`${base}/${occurrence}`)
  }
}

/** Assigns the ids of the records of one body; each body needs its own. */
export const recordIds = (owner: string): ((sub_family: string, texts: IdentityTexts) => RecordIds) => {
  const [recordId, contentId] = [numbered(), numbered()]
  return (sub_family, { whole, content }) => {
    const first = `${owner.length}:${owner}${sub_family.length}:${sub_family}`
    return { record_id: recordId(digest(first + whole)), content_id: contentId(digest(first + content)) }
  }
}

/** Whose record it is, the same in every run. */
export const ownerOf = (task: {
  readonly customer_id: CustomerId | null
  readonly engine_reference: EngineReference | null
  readonly session_id: SessionId | null
}): string =>
  task.engine_reference === null
    ? `session/${task.session_id ?? ""}`
    : `${task.customer_id ?? ""}/${task.engine_reference}`
