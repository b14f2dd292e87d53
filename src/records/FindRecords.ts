/**
 * Walks `data` of a body with a stack of its own (decision 10). Every object with a string `product` and a
 * string `sub_family` is a record, even inside another one, which keeps it too, unless that is deeper than
 * `recordDepthMax`. Half a record, and anything else in a list of records, is found as a stray.
 */
import type { FamilyCount, MisfitCount, RejectedCount } from "../ledger/RunFacts.ts"
import { ExactNumber, exactNumber, type Json } from "./ExactNumber.ts"
import { BoundBroken, bodyBounds, measureLargeBody } from "../service/BodyBounds.ts"
import { readJson } from "../service/ReadJson.ts"

/** A record with objects nested deeper than this is rejected: real ones have three levels. */
export const recordDepthMax = 32

export interface FoundRecord {
  readonly value: Json
  readonly product: string
  readonly sub_family: string
  readonly place: Place
}

/** Something in the place of a record. */
interface Stray {
  readonly value: unknown
  readonly reason: string
  readonly place: Place
}

/** Where a value is; a chain instead of a text, because hardly any of them is ever written. */
export interface Place {
  readonly above: Place | undefined
  readonly key: string | number
}

// A path helps a reader; a hostile one must not outweigh what it points at.
const stepsMax = 32
const pathUnitsMax = 256

/** `data[3].addresses[0].country`; unusual keys are quoted, and a long path is cut at the front. */
export const pathText = (place: Place): string => {
  const steps: Array<string> = []
  let each: Place | undefined = place
  for (; each !== undefined && steps.length < stepsMax; each = each.above) {
    const { key } = each
    if (typeof key === "number") steps.push(`[${key}]`)
    else if (each.above === undefined) steps.push(key)
    else steps.push(/^[A-Za-z_][\w-]{0,63}$/.test(key) ? `.${key}` : `[${JSON.stringify(key.slice(0, 64))}]`)
  }
  const path = steps.reverse().join("")
  const isCut = each !== undefined || path.length > pathUnitsMax
  return (isCut ? `…${path.slice(-pathUnitsMax)}` : path).toWellFormed()
}

interface Frame {
  readonly value: object
  readonly keys: ReadonlyArray<string> | undefined
  readonly place: Place
  /** Inside a record nothing is a stray: it is part of the record. */
  readonly inRecord: boolean
  next: number
  holdsRecord: boolean
  /** The number of this record; -1 if it is not one. */
  readonly record: number
  /** Levels of objects and lists inside it. */
  height: number
  /** Contains more than `{}`, `[]` and null: `{"accounts": []}` only says that there is nothing. */
  filled: boolean
  /** How many strays there were before this frame. */
  readonly straysBefore: number
  readonly untoldBefore: number
  /** Values in a list that are not records; strays only if the list also has records. */
  others: Array<Stray> | undefined
  /** How many more of them there are than are reported one by one. */
  moreOthers: number
}

/** Strays in the order in which they are found, the first ones one by one. */
class Strays {
  readonly told: Array<Stray> = []
  untold = 0
  add(stray: Stray): void {
    if (this.told.length < bodyBounds.straysMax) this.told.push(stray)
    else this.untold++
  }
  /** All of them, with those not reported one by one combined into one. */
  all(place: Place): ReadonlyArray<Stray> {
    if (this.untold === 0) return this.told
    return [...this.told, { value: null, reason: `${this.untold} more values that are not records`, place }]
  }
}

/** `stray` is created only if it is reported by itself: ten million numbers create ten thousand. */
const addOther = (frame: Frame, stray: () => Stray): void => {
  frame.others ??= []
  if (frame.others.length < bodyBounds.straysMax) frame.others.push(stray())
  else frame.moreOthers++
}

interface Found {
  readonly records: ReadonlyArray<FoundRecord>
  readonly strays: ReadonlyArray<Stray>
}

const isContainer = (value: unknown): value is object =>
  typeof value === "object" && value !== null && !(value instanceof ExactNumber)

const strayReason = (value: object): string => {
  const missing = ["product", "sub_family"].filter((key) => typeof Reflect.get(value, key) !== "string")
  return `a record needs ${missing.join(" and ")} as text`
}

export const findRecords = (data: unknown): Found => {
  const records: Array<FoundRecord> = []
  const strays = new Strays()
  const frames: Array<Frame> = []

  const enter = (value: object, place: Place, inRecord: boolean): void => {
    let isRecord = false
    if (!Array.isArray(value)) {
      const { product, sub_family } = value as Json
      if (typeof product === "string" && typeof sub_family === "string") {
        isRecord = true
        if (records.length === bodyBounds.recordsMax)
          throw new BoundBroken(`it contains more than ${bodyBounds.recordsMax} records`)
        records.push({ value: value as Json, product, sub_family, place })
      }
    }
    frames.push({
      value,
      keys: Array.isArray(value) ? undefined : Object.keys(value),
      place,
      inRecord: inRecord || isRecord,
      next: 0,
      holdsRecord: isRecord,
      record: isRecord ? records.length - 1 : -1,
      height: 0,
      filled: false,
      straysBefore: strays.told.length,
      untoldBefore: strays.untold,
      others: undefined,
      moreOthers: 0,
    })
  }

  const place: Place = { above: undefined, key: "data" }
  if (isContainer(data)) enter(data, place, false)
  else if (data !== undefined && data !== null) strays.add({ value: data, reason: "not a record", place })
  for (let frame = frames.at(-1); frame !== undefined; frame = frames.at(-1)) {
    const { keys, value, next } = frame
    const list = keys === undefined ? (value as ReadonlyArray<unknown>) : undefined
    if (next === (list ?? keys!).length) {
      frames.pop()
      leave(frame, frames.at(-1), records, strays)
      continue
    }
    frame.next++
    const key = list === undefined ? keys![next]! : next
    const child = list === undefined ? (value as Json)[key] : list[next]
    if (isContainer(child)) enter(child, { above: frame.place, key }, frame.inRecord)
    else if (!frame.inRecord) {
      if (child !== null) frame.filled = true
      if (list === undefined) continue
      addOther(frame, () => ({ value: child, reason: "not a record", place: { above: frame.place, key } }))
    }
  }
  return { records, strays: strays.all(place) }
}

/** An object that is not a record: half a record is always a stray, others only beside records. */
const leaveObject = (frame: Frame, above: Frame, strays: Strays): void => {
  const { value, place } = frame
  const stray: Stray = { value, reason: strayReason(value), place }
  if (Object.hasOwn(value, "product") || Object.hasOwn(value, "sub_family")) {
    // It replaces the strays inside it.
    strays.told.length = frame.straysBefore
    strays.untold = frame.untoldBefore
    strays.add(stray)
  } else if (above.keys === undefined && !above.inRecord) addOther(above, () => stray)
}

/** What a finished object or list means for the one around it. */
const leave = (frame: Frame, above: Frame | undefined, records: Array<FoundRecord>, strays: Strays): void => {
  if (above !== undefined) above.height = Math.max(above.height, frame.height + 1)
  // A record that is too deep is rejected as a whole, with the records in it: a row for each would repeat
  // the same text.
  if (frame.record >= 0 && frame.height >= recordDepthMax) records.length = frame.record + 1
  if (above !== undefined && frame.holdsRecord) above.holdsRecord = true
  if (above !== undefined && frame.filled) above.filled = true
  // `data` itself is never a stray: it is the place for records, even if there are none.
  if (frame.holdsRecord || above === undefined) {
    for (const stray of frame.others ?? []) strays.add(stray)
    strays.untold += frame.moreOthers
  } else if (frame.keys !== undefined && frame.filled) leaveObject(frame, above, strays)
}

/** `product` and `sub_family` of something that is not a record, if they are strings. */
export const namesOf = (value: unknown): readonly [product: string | null, sub_family: string | null] => {
  if (typeof value !== "object" || value === null) return [null, null]
  const { product, sub_family } = value as Json
  return [typeof product === "string" ? product : null, typeof sub_family === "string" ? sub_family : null]
}

// How many records of each family a body contains: compared with `products_count` before anything is
// deleted at the service. Counts what `FindRecords.ts` finds, whether or not a record then fits its schema.

/** Records by `sub_family` and by `product`. */
export interface Tally {
  readonly bySubFamily: ReadonlyMap<string, number>
  readonly byProduct: ReadonlyMap<string, number>
}

export const tallyOf = (
  records: Iterable<{ readonly product: string; readonly sub_family: string }>,
): Tally => {
  const bySubFamily = new Map<string, number>()
  const byProduct = new Map<string, number>()
  for (const { product, sub_family } of records) {
    bySubFamily.set(sub_family, (bySubFamily.get(sub_family) ?? 0) + 1)
    byProduct.set(product, (byProduct.get(product) ?? 0) + 1)
  }
  return { bySubFamily, byProduct }
}

/** `data` as `recordsIn` finds it in a body. */
export const tallyData = (data: unknown): Tally => tallyOf(findRecords(data).records)

// What became of the records of one body, in numbers: every record found is counted in exactly one place, so
// that whoever publishes can compare what was found with what was written.

/** What happened to the records of one body. */
export interface Counts {
  /** Objects with `product` and `sub_family`, nested ones included. */
  readonly records: number
  /** Of those: in the table of their family, in `other_records`, in `rejected_records`. */
  readonly inTables: number
  readonly other: number
  readonly rejected: number
  /** Of those: already in the tables, from another body of the same session. */
  readonly repeated: number
  /** All of them, including repeated ones. */
  readonly tally: Tally
  /** Records that were stored, by product. */
  readonly byProduct: ReadonlyMap<string, number>
  /** Rows of `rejected_records` for values in place of records, or for an unreadable body. */
  readonly strays: number
  /** Rows written to each family's table, by table; children not counted. */
  readonly byTable: Readonly<Record<string, number>>
  /** Values of records in tables that did not fit their columns. */
  readonly misfits: ReadonlyArray<MisfitCount>
  /** Rejected records by the table that they would have gone to, and strays. */
  readonly refusedFor: ReadonlyArray<RejectedCount>
  /** Records in `other_records` by family. */
  readonly otherBy: ReadonlyArray<FamilyCount>
}

export const nothingCounted: Counts = {
  records: 0,
  inTables: 0,
  other: 0,
  rejected: 0,
  repeated: 0,
  strays: 0,
  byTable: {},
  misfits: [],
  refusedFor: [],
  otherBy: [],
  byProduct: new Map(),
  tally: tallyOf([]),
}

// The bytes of a landed body -> its value, without losing a digit or a value, and without throwing. Only a
// body with a number that may not fit a double, or with a key that stands twice, is read a second time.

export type ParsedBody =
  | { readonly _tag: "ReadableBody"; readonly value: unknown }
  /** `breaksBound`: it may be JSON, but it is too deep or too large to be parsed. */
  | { readonly _tag: "UnreadableBody"; readonly reason: string; readonly breaksBound: boolean }

const unreadable = (reason: string, breaksBound = false): ParsedBody => ({
  _tag: "UnreadableBody",
  reason,
  breaksBound,
})

const decoder = new TextDecoder("utf-8")

/** Whether a value has no more levels of objects and lists than a record may have. */
export const isWithinDepth = (value: unknown, levels = recordDepthMax): boolean => {
  if (!isContainer(value)) return true
  if (levels === 0) return false
  return (Array.isArray(value) ? value : Object.values(value)).every((each) =>
    isWithinDepth(each, levels - 1),
  )
}

export const parseBody = (bytes: Uint8Array): ParsedBody => {
  if (bytes.length === 0) return unreadable("the body is empty")
  const { broken } = measureLargeBody(bytes)
  if (broken !== undefined) return unreadable(`the body cannot be used: ${broken}`, true)
  try {
    const text = decoder.decode(bytes)
    return { _tag: "ReadableBody", value: readJson(text, exactNumber) }
  } catch (cause) {
    // The parser's own message quotes the body, which may contain personal data.
    return cause instanceof SyntaxError
      ? unreadable("the body is not JSON")
      : unreadable("the body is too large to be read", true)
  }
}
