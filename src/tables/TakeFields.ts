/**
 * Reads the fields of an object from the service into cells, tolerantly: a value that does not fit its
 * column becomes NULL and is kept in `extra`, as is every field without a column. A string that is too long
 * is cut and marked. One odd value never affects its neighbours.
 */
import { Predicate } from "effect"
import { cutText } from "../service/BodyBounds.ts"
import { converter } from "../records/ColumnData.ts"
import type { Cell, ColumnSpec } from "../records/Columns.ts"
import { ExactNumber, jsonText } from "../records/ExactNumber.ts"

export type Json = Readonly<Record<string, unknown>>
/** A row by column name; a column that is absent is NULL. */
export type Row = Readonly<Record<string, Cell | undefined>>

export const isObject = (value: unknown): value is Json =>
  Predicate.isObject(value) && !(value instanceof ExactNumber)

/** The items of a list that are objects, with their positions; empty for anything but a list. */
export const objectsOf = (value: unknown): ReadonlyArray<readonly [position: number, item: Json]> =>
  Array.isArray(value)
    ? value.flatMap((item: unknown, position) => (isObject(item) ? [[position, item] as const] : []))
    : []

const isEmpty = (value: unknown): boolean => value === undefined || value === null

export interface Taken {
  readonly cells: Record<string, Cell>
  readonly extra: string | null
}

/** `elsewhere`: fields that are in other tables, and therefore not in `extra`. */
export const takeFields = (
  columns: ReadonlyArray<ColumnSpec>,
  object: Json,
  elsewhere: ReadonlySet<string> = new Set(),
): Taken => {
  const cells: Record<string, Cell> = {}
  const held = new Set(elsewhere)
  for (const { name, type } of columns) {
    if (!Object.hasOwn(object, name) || isEmpty(object[name])) {
      held.add(name)
      continue
    }
    const cell = converter(type)(object[name])
    if (cell === undefined) continue
    cells[name] = typeof cell === "string" && type === "VARCHAR" ? cutText(cell) : cell
    held.add(name)
  }
  return { cells, extra: extraOf(object, held) }
}

/** The fields of an object that are not in other tables, as JSON; null if there are none. */
export const extraOf = (object: Json, held: ReadonlySet<string>): string | null => {
  const rest = Object.entries(object).filter(([name]) => !held.has(name))
  return rest.length === 0 ? null : jsonText(Object.fromEntries(rest))
}

/** A list of strings and numbers as strings (`loc` of section 2.4); null for anything else. */
export const textsOf = (value: unknown): ReadonlyArray<string> | null =>
  Array.isArray(value) && value.every((item) => typeof item === "string" || typeof item === "number")
    ? value.map((item) => cutText(String(item)))
    : null
