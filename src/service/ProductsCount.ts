/**
 * `products_count` of a state (section 2.4): how many records of each family an execution holds, as keys of
 * the form `<family>:<subtype>@<product>`. Read strictly, because deletions depend on it: a count that is
 * missing or that holds anything but whole numbers is unknown, and unknown is never zero.
 */

import { idCharactersMax } from "./TextBounds.ts"

/** Families that one execution may count, far more than exist. */
const familiesMax = 10_000

export type ProductsCount =
  | { readonly _tag: "Counted"; readonly counts: Readonly<Record<string, number>> }
  /** `why` is for people; it quotes nothing of the body. */
  | { readonly _tag: "Unknown"; readonly why: string }

const unknown = (why: string): ProductsCount => ({ _tag: "Unknown", why })

const isCount = (value: unknown): value is number =>
  typeof value === "number" && Number.isSafeInteger(value) && value >= 0

export const readProductsCount = (value: unknown): ProductsCount => {
  if (value === undefined) return unknown("the state has no products_count")
  if (value === null) return unknown("products_count is null")
  if (typeof value !== "object" || Array.isArray(value)) return unknown("products_count is not a map")
  const entries: ReadonlyArray<readonly [string, unknown]> = Object.entries(value)
  if (entries.length > familiesMax) return unknown(`products_count has more than ${familiesMax} keys`)
  if (entries.some(([key]) => key.length > idCharactersMax))
    return unknown(`products_count has a key of more than ${idCharactersMax} characters`)
  const counted = entries.filter((entry): entry is readonly [string, number] => isCount(entry[1]))
  return counted.length === entries.length
    ? { _tag: "Counted", counts: Object.fromEntries(counted) }
    : unknown("products_count has a value that is not a whole number")
}

/** The `<family>:<subtype>` of a key, which is a record's `sub_family`; a key without `@` is one itself. */
export const subFamilyOf = (key: string): string => {
  const at = key.indexOf("@")
  return at < 0 ? key : key.slice(0, at)
}

/** The part after the `@` of a key; undefined if it has none. */
export const productOf = (key: string): string | undefined => {
  const at = key.indexOf("@")
  return at < 0 ? undefined : key.slice(at + 1)
}

export const countedTotal = (counts: Readonly<Record<string, number>>): number =>
  Object.values(counts).reduce((sum, count) => sum + count, 0)
