/**
 * Which products a feature feeds: those of the families whose schema names it, and the product with its own
 * name (`labor_check`), without a final `_read` (`accounts_read`, `accounts`). The reference does not say
 * more. Coverage and the views of current records share this rule.
 */
import type { RecordFamily } from "../records/RecordSchema.ts"

const namesOf = (feature: string): ReadonlyArray<string> => [
  ...new Set([feature, feature.replace(/_read$/, "")]),
]

export const productsOf = (feature: string, families: ReadonlyArray<RecordFamily>): ReadonlyArray<string> => {
  const own = families.filter(({ features }) => features.includes(feature)).map(({ product }) => product)
  return [...new Set([...own, ...namesOf(feature)])]
}
