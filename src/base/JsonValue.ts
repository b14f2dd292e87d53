/**
 * Values of a query result as JSON, without losing a digit: integers beyond 2^53 and decimals are strings,
 * times are ISO 8601 in UTC, lists are arrays, structs are objects, NULL is null.
 */
import {
  DuckDBArrayValue,
  DuckDBDateValue,
  DuckDBListValue,
  DuckDBMapValue,
  DuckDBStructValue,
  DuckDBTimestampTZValue,
  DuckDBTimestampValue,
  DuckDBUnionValue,
} from "@duckdb/node-api"
import type { DuckDBValue } from "@duckdb/node-api"

export type Json = null | boolean | number | string | ReadonlyArray<Json> | { readonly [field: string]: Json }

/** One cell. NaN and the infinities are strings, as JSON has no numbers for them. */
export const jsonValue = (value: DuckDBValue): Json => {
  switch (typeof value) {
    case "string":
    case "boolean":
      return value
    case "number":
      return Number.isFinite(value) ? value : String(value)
    case "bigint": {
      const number = Number(value)
      return Number.isSafeInteger(number) ? number : value.toString()
    }
    default:
      return value === null ? null : jsonObject(value)
  }
}

const jsonObject = (value: Exclude<DuckDBValue, null | boolean | number | bigint | string>): Json => {
  if (value instanceof DuckDBListValue || value instanceof DuckDBArrayValue) return value.items.map(jsonValue)
  if (value instanceof DuckDBStructValue) return jsonFields(value.entries)
  if (value instanceof DuckDBMapValue) {
    return value.entries.map((entry) => ({ key: jsonValue(entry.key), value: jsonValue(entry.value) }))
  }
  if (value instanceof DuckDBUnionValue) return jsonValue(value.value)
  if (value instanceof DuckDBTimestampTZValue) return isoTime(value, "Z")
  if (value instanceof DuckDBTimestampValue) return isoTime(value, "")
  if (value instanceof DuckDBDateValue) return value.toString()
  return value.toString()
}

const jsonFields = (entries: Readonly<Record<string, DuckDBValue>>): Json =>
  Object.fromEntries(Object.entries(entries).map(([name, value]) => [name, jsonValue(value)]))

/** The range of JavaScript's dates, in milliseconds either side of the epoch. */
const dateMillisMax = 8_640_000_000_000_000n

const isoTime = (
  time: { readonly micros: bigint; readonly isFinite: boolean; toString(): string },
  zone: "Z" | "",
): string => {
  const rest = ((time.micros % 1_000_000n) + 1_000_000n) % 1_000_000n
  const millis = (time.micros - rest) / 1000n
  if (!time.isFinite || millis > dateMillisMax || millis < -dateMillisMax) return time.toString()
  const seconds = new Date(Number(millis)).toISOString().slice(0, -".000Z".length)
  return rest === 0n ? `${seconds}${zone}` : `${seconds}.${rest.toString().padStart(6, "0")}${zone}`
}
