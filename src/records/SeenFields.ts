/**
 * What was seen of the fields of records: how often each was there, which types take every value, and which
 * few values it had. Types are tried with the converters that fill the tables; memory depends on the number
 * of fields.
 */
import { converter, type ColumnType } from "./ColumnData.ts"
import { ExactNumber, isObject, type Json } from "./ExactNumber.ts"

/** More fields of one object than this stay in `extra`. */
const fieldsMax = 500
/** A column with more different values than this is no enumeration. */
const wordsMax = 12
/** A value that fewer customers share could be personal data. */
const customersMin = 3

/** Tried in this order: the first that takes every value is the column's type. */
const numbers = ["BOOLEAN", "INTEGER", "BIGINT"] as const
const texts = ["DATE", "TIMESTAMPTZ", "VARCHAR"] as const

/** `12.50` as text is an amount, `1250` may be an id; an exponent is no amount. */
const textDecimal = /^-?(0|[1-9]\d*)\.(\d+)$/
const numberDecimal = /^-?(\d+)(?:\.(\d+))?$/

/** Digits before and after the point; undefined if the value is no decimal number. */
const digitsOf = (value: unknown): readonly [whole: number, fraction: number] | undefined => {
  const match =
    typeof value === "string"
      ? textDecimal.exec(value)
      : typeof value === "number" || value instanceof ExactNumber
        ? numberDecimal.exec(value instanceof ExactNumber ? value.text : String(value))
        : null
  return match === null ? undefined : [match[1]?.length ?? 0, match[2]?.length ?? 0]
}

/** A code, not a text: it begins with a letter, and has no spaces. */
const codeLike = /^[A-Za-z][A-Za-z0-9_:-]{0,23}$/

export class SeenField {
  /** How often it was there and not null. */
  present = 0
  /** Types that take every value so far. */
  readonly #fits = new Set<ColumnType>([...numbers, ...texts])
  #whole = 0
  #fraction = 0
  #isDecimal = true
  #isDouble = true
  #lists: { readonly objects: SeenObject; readonly values: SeenField; items: number } | undefined
  #isList = true
  #words: Map<string, Set<string>> | undefined = new Map()

  add(value: unknown, customer: string): void {
    if (value === null || value === undefined) return
    this.present++
    for (const type of this.#fits) if (converter(type)(value) === undefined) this.#fits.delete(type)
    const digits = digitsOf(value)
    if (digits === undefined) this.#isDecimal = false
    else {
      this.#whole = Math.max(this.#whole, digits[0])
      this.#fraction = Math.max(this.#fraction, digits[1])
    }
    if (typeof value !== "number") this.#isDouble = false
    this.#addWord(value, customer)
    if (Array.isArray(value)) this.#addList(value, customer)
    else this.#isList = false
  }

  #addWord(value: unknown, customer: string): void {
    if (this.#words === undefined) return
    if (typeof value !== "string" || !codeLike.test(value)) {
      this.#words = undefined
      return
    }
    const customers = this.#words.get(value) ?? new Set()
    if (customers.size < customersMin) customers.add(customer)
    this.#words.set(value, customers)
    if (this.#words.size > wordsMax) this.#words = undefined
  }

  #addList(list: ReadonlyArray<unknown>, customer: string): void {
    this.#lists ??= { objects: new SeenObject(), values: new SeenField(), items: 0 }
    const { objects, values } = this.#lists
    for (const item of list) {
      this.#lists.items++
      if (isObject(item)) objects.add(item, customer)
      else values.add(Array.isArray(item) ? {} : item, customer)
    }
  }

  /** The narrowest type that takes every value, JSON if no other does. */
  get type(): ColumnType {
    if (this.present === 0) return "JSON"
    return (
      numbers.find((type) => this.#fits.has(type)) ??
      this.#decimal ??
      (this.#isDouble ? "DOUBLE" : undefined) ??
      texts.find((type) => this.#fits.has(type)) ??
      "JSON"
    )
  }

  get #decimal(): ColumnType | undefined {
    const scale = Math.max(2, this.#fraction)
    const precision = this.#whole + scale
    if (!this.#isDecimal || scale > 10 || precision > 38) return undefined
    return `DECIMAL(${precision <= 18 ? 18 : 38},${scale})`
  }

  /** The fields of the items, if every value is a list and every item an object. */
  get itemObjects(): SeenObject | undefined {
    const lists = this.#isList ? this.#lists : undefined
    return lists !== undefined && lists.items > 0 && lists.items === lists.objects.count
      ? lists.objects
      : undefined
  }

  /** The items, if every value is a list and every item a plain value of one type. */
  get itemValues(): SeenField | undefined {
    const lists = this.#isList ? this.#lists : undefined
    if (lists === undefined || lists.items === 0 || lists.items !== lists.values.present) return undefined
    return lists.values.type === "JSON" ? undefined : lists.values
  }

  /** The few codes that the field had, each with several customers; undefined if it had others. */
  get words(): ReadonlyArray<string> | undefined {
    if (this.#words === undefined || this.#words.size === 0) return undefined
    const shared = [...this.#words.values()].every((customers) => customers.size >= customersMin)
    return shared ? [...this.#words.keys()].toSorted() : undefined
  }
}

export class SeenObject {
  /** Objects seen. */
  count = 0
  /** More fields than are looked at. */
  hasMore = false
  readonly fields = new Map<string, SeenField>()

  add(value: Json, customer: string): void {
    this.count++
    for (const [name, field] of Object.entries(value)) {
      let seen = this.fields.get(name)
      if (seen === undefined) {
        if (this.fields.size >= fieldsMax) {
          this.hasMore = true
          continue
        }
        seen = new SeenField()
        this.fields.set(name, seen)
      }
      seen.add(field, customer)
    }
  }
}
