/**
 * Cleans values that this program writes itself: facts, summaries, reports. Every string and key is cleaned,
 * except those under keys that the caller keeps.
 */
import type { KnownSecrets, Place } from "./KnownSecrets.ts"

const none: ReadonlySet<string> = new Set()

/** JSON in, the same JSON out with its secrets blanked. */
export const cleanValue = (
  value: unknown,
  known: KnownSecrets,
  place: Place,
  keptKeys: ReadonlySet<string> = none,
): unknown => {
  if (typeof value === "string") return known.clean(value, place)
  if (Array.isArray(value)) return value.map((item) => cleanValue(item, known, place, keptKeys))
  if (typeof value !== "object" || value === null) return value
  let blankedKeys = 0
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]): [string, unknown] => {
      if (keptKeys.has(key)) return [key, inner]
      const clean = known.clean(key, place)
      if (clean !== key) blankedKeys += 1
      const named = clean !== key && blankedKeys > 1 ? `${clean} ${blankedKeys}` : clean
      return [named, cleanValue(inner, known, place, keptKeys)]
    }),
  )
}
