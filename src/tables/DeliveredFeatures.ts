/**
 * Which features of a task that did not succeed need not be asked for again: pure. Their data is in the
 * tables, and the answer of a rerun that leaves them out takes nothing of it away. `<table>_latest` takes all
 * records of a kind from one run, so features that feed the same product are asked for together, and all of
 * them if the task has a record that no feature is known to feed.
 */
import { features as featureCodes } from "../service/Vocabulary.ts"
import { featureEnd } from "../service/EndTable.ts"
import type { RecordFamily } from "../records/RecordSchema.ts"
import { executionsOf } from "../ledger/RunState.ts"
import type { TaskState } from "../ledger/RunState.ts"
import { isIncomplete } from "./CoverageRows.ts"
import type { TaskFindings } from "./CoverageRows.ts"
import { productsOf } from "./FeatureProducts.ts"

const none: ReadonlyArray<string> = []

export const deliveredFeatures = (
  task: TaskState,
  families: ReadonlyArray<RecordFamily>,
  { featureReasons, delivered: products, isLeftOut }: TaskFindings,
): ReadonlyArray<string> => {
  const { settled, planned } = task
  const last = executionsOf(task).at(-1)
  const isRead = last?.closed?.fact.landed !== undefined && last.drained && !isLeftOut
  if (!isRead || products === undefined || settled === undefined || isIncomplete(settled.fact.reason))
    return none
  if (settled.fact.outcome === "succeeded") return none
  const succeeded = (code: string) => featureEnd(featureReasons.get(code))?.outcome === "succeeded"
  const fedBy = (code: string) => productsOf(code, families)
  const left = new Set(planned.features.filter((code) => !succeeded(code)))
  if (left.size === 0) return none
  // What is asked for again grows by what it shares a product with, until nothing more is added.
  for (let before = -1; before < left.size;) {
    before = left.size
    const again = new Set([...left].flatMap(fedBy))
    for (const code of planned.features) if (fedBy(code).some((product) => again.has(product))) left.add(code)
  }
  const known = new Set([...featureCodes, ...families.flatMap(({ features }) => features)])
  const fed = new Set(planned.features.filter((code) => known.has(code)).flatMap(fedBy))
  if ([...products].some((product) => !fed.has(product))) return none
  return planned.features.filter((code) => !left.has(code))
}
