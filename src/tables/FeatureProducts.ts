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

/** A feature, and in how many of the tasks that have the records it was asked for. */
export interface AskedFeature {
  readonly feature: string
  readonly tasks: number
}

/**
 * Which features may feed a product without a schema: those of its name, else those that every task with
 * its records asked for and that feed none of the `others`, else all of these. Empty if nothing is known.
 */
export const feedersOf = (
  product: string,
  tasks: number,
  asked: ReadonlyArray<AskedFeature>,
  others: ReadonlyArray<string>,
  families: ReadonlyArray<RecordFamily>,
): ReadonlyArray<string> => {
  const always = asked.filter((each) => each.tasks === tasks)
  const feeds = ({ feature }: AskedFeature, products: ReadonlyArray<string>) =>
    productsOf(feature, families).some((one) => products.includes(one))
  const choices = [
    asked.filter((each) => feeds(each, [product])),
    always.filter((each) => !feeds(each, others)),
    always,
    asked,
  ]
  return (choices.find((each) => each.length > 0) ?? []).map(({ feature }) => feature)
}
