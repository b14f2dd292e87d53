/**
 * What makes a record the same record, and two contents the same: what an analyst sees equal is equal.
 * `content_id` is a hash of all cells but the times of fetching; NULL and an empty list count as missing,
 * numbers by value, JSON by its members. `record_id` is one of customer and engine (or session), product,
 * sub_family and business key, or content; a further record of one key in a session gets a number.
 */
import { hash } from "node:crypto"
import { decimalShape, type Cell, type ColumnType } from "./ColumnData.ts"
import { ExactNumber, decimalIdentity, exactNumber, type Json } from "./ExactNumber.ts"
import { readJson } from "../service/ReadJson.ts"

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

const labelOf = (name: string): string => `${name.length}:${name}`

const shapeOf = (keys: ReadonlyArray<string>): Shape => {
  const known = shapes[keys.length]
  if (known !== undefined) {
    let i = 0
    while (i < keys.length && keys[i] === known.keys[i]) i++
    if (i === keys.length) return known
  }
  const sorted = keys.toSorted()
  const shape = { keys, sorted, labels: sorted.map(labelOf) }
  if (keys.length <= shapeKeysMax) shapes[keys.length] = shape
  return shape
}

/** The fields of an object that say when it was fetched. */
export type FetchedOf = (value: Json) => ReadonlyArray<string>

const nothingFetched: FetchedOf = () => []

/** What counts as missing. */
const isNothing = (cell: Cell, type: ColumnType): boolean =>
  cell === null || (Array.isArray(cell) ? cell.length === 0 : type === "JSON" && cell === "[]")

/**
 * One text per JSON value: keys sorted, members that are null left out, strings with their length before them
 * so that nothing has to be escaped, numbers by value. The value was read: its nesting has been measured.
 */
export const canonicalText = (value: unknown, fetchedOf = nothingFetched): string => {
  if (typeof value === "string") return labelOf(value)
  if (typeof value !== "object" || value === null) {
    if (typeof value === "number") return `#${decimalIdentity(String(value))}`
    return value === null ? "!n" : value === true ? "!t" : "!f"
  }
  if (value instanceof ExactNumber) return `#${decimalIdentity(value.text)}`
  if (Array.isArray(value)) return `[${value.map((item) => canonicalText(item, fetchedOf)).join("")}]`
  const { sorted, labels } = shapeOf(Object.keys(value))
  const fetched = fetchedOf(value as Json)
  let text = "{"
  for (let i = 0; i < sorted.length; i++) {
    const member = (value as Json)[sorted[i]!]
    if (member === null || fetched.includes(sorted[i]!)) continue
    text += labels[i]! + canonicalText(member, fetchedOf)
  }
  return `${text}}`
}

/** A cell that is not NULL as one text per value, whatever the type of a number is. */
const writerOf = (type: ColumnType, fetchedOf: FetchedOf): ((cell: NonNullable<Cell>) => string) => {
  switch (type) {
    case "VARCHAR":
      return (cell) => labelOf(cell as string)
    case "VARCHAR[]":
      return (cell) => `[${(cell as ReadonlyArray<string>).map(labelOf).join("")}]`
    case "JSON":
      return (cell) => canonicalText(readJson(cell as string, exactNumber), fetchedOf)
    case "BOOLEAN":
      return (cell) => (cell === true ? "!t" : "!f")
    case "DATE":
      return (cell) => `d${String(cell)}`
    case "TIMESTAMPTZ":
      return (cell) => `t${typeof cell === "bigint" ? cell : Math.round((cell as number) * 1000)}`
    case "INTEGER":
    case "BIGINT":
    case "DOUBLE":
      return (cell) => `#${decimalIdentity(String(cell))}`
    default: {
      const { scale } = decimalShape(type)!
      return (cell) => `#${decimalIdentity(`${String(cell)}e-${scale}`)}`
    }
  }
}

/** A column that counts as content, and where its cell is in a row. */
export interface ContentColumn {
  readonly name: string
  readonly type: ColumnType
  readonly index: number
}

/** The cells of a row as one text, in the order of the columns' names; what is NULL or empty is left out. */
export const contentWriter = (
  columns: ReadonlyArray<ContentColumn>,
  fetchedOf: FetchedOf,
): ((cells: ReadonlyArray<Cell>) => string) => {
  const parts = columns
    .toSorted((one, other) => (one.name < other.name ? -1 : 1))
    .map((each) => ({ ...each, label: labelOf(each.name), write: writerOf(each.type, fetchedOf) }))
  return (cells) => {
    let text = "{"
    for (let i = 0; i < parts.length; i++) {
      const { label, index, type, write } = parts[i]!
      const cell = cells[index] ?? null
      if (cell !== null && !isNothing(cell, type)) text += label + write(cell)
    }
    return `${text}}`
  }
}

/** 128 bits of SHA-256, as hexadecimal digits. */
const digest = (text: string): string => hash("sha256", text, "hex").slice(0, 32)

export interface RecordIds {
  readonly record_id: string
  readonly content_id: string
}

/** What the ids of a record are made of; `key` is undefined if it has no business key. */
export interface Identity {
  readonly product: string
  readonly sub_family: string
  readonly key: string | undefined
  readonly content: string
}

/** The id of the record with this number among those of one id, from 0. */
export const numberedId = (first: string, occurrence: number): string =>
  occurrence === 0 ? first : digest(`${first}/${occurrence}`)

/** Tells equal ids of one body apart. */
export const numbered = (): ((base: string) => string) => {
  const seen = new Map<string, number>()
  return (base) => {
    const occurrence = seen.get(base) ?? 0
    seen.set(base, occurrence + 1)
    return numberedId(base, occurrence)
  }
}

/** Assigns the ids of the records of one body; each body needs its own. `first` is without a number. */
export const recordIds = (
  owner: string,
): ((identity: Identity) => RecordIds & { readonly first: string }) => {
  const recordId = numbered()
  return ({ product, sub_family, key, content }) => {
    const kind = labelOf(product) + labelOf(sub_family)
    const record = key === undefined ? `c${content}` : `k${key}`
    const first = digest(labelOf(owner) + kind + record)
    return { first, record_id: recordId(first), content_id: digest(kind + content) }
  }
}

/**
 * Whose record it is, the same in every run. Ids may contain anything: where the text could be of two owners,
 * it says how long the customer's id is.
 */
export const ownerOf = (
  task: Readonly<Record<"customer_id" | "engine_reference" | "session_id", string | null>>,
): string => {
  const { engine_reference } = task
  if (engine_reference === null) return `session/${task.session_id ?? ""}`
  const customer = task.customer_id ?? ""
  return engine_reference.includes("/") || `${customer}/`.startsWith("session/")
    ? `${labelOf(customer)}${engine_reference}/`
    : `${customer}/${engine_reference}`
}
