/**
 * How many records of each family a body contains: compared with `products_count` before anything is
 * deleted at the service. Counts what `FindRecords.ts` finds, whether or not a record then fits its schema.
 */
import { findRecords } from "./FindRecords.ts"

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
