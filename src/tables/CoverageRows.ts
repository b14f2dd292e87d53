/**
 * The outcome of each customer, engine and feature in a run. Pure. A feature's own outcome counts, or its
 * task's if there is none or it only says that the execution stopped. Zero records are told from an unknown
 * number.
 */
import { Predicate } from "effect"
import type { FeatureLeft } from "../ledger/RunFacts.ts"
import { executionsOf, type TaskState } from "../ledger/RunState.ts"
import type { RecordFamily } from "../records/RecordSchema.ts"
import { featureEnd } from "../service/EndTable.ts"
import { knownEnd, notInTables, outsideToken, passedOver, type Verdict } from "../service/Ends.ts"
import type { RunId, SessionId } from "../service/Ids.ts"
import { features as featureCodes } from "../service/Vocabulary.ts"
import { settlementOf } from "./RunRows.ts"
import { productKey, taskCells, type Row } from "./ExecutionRows.ts"

// Which products a feature feeds: those of the families that name it, and the one with its own name, without
// a final `_read`. The reference does not say more.

const namesOf = (feature: string): ReadonlyArray<string> => [
  ...new Set([feature, feature.replace(/_read$/, "")]),
]

export const productsOf = (feature: string, families: ReadonlyArray<RecordFamily>): ReadonlyArray<string> => {
  const own = families.filter(({ features }) => features.includes(feature)).map(({ product }) => product)
  return [...new Set([...own, ...namesOf(feature)])]
}

/** A feature, and in how many of the tasks that have the records it was asked for. */
interface AskedFeature {
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

/** What a task's bodies said, as far as coverage needs it. */
export interface TaskFindings {
  /** `status_reason` by feature code, of the newest state. */
  readonly featureReasons: ReadonlyMap<string, string>
  /** Rows of record tables, by table; undefined if no body was read. */
  readonly byTable: ReadonlyMap<string, number> | undefined
  /** Rows of `other_records`, by product. */
  readonly byProduct: ReadonlyMap<string, number>
  /** Products of all records, if every result is final and nothing in it was unreadable. */
  readonly delivered: ReadonlySet<string> | undefined
  readonly products_count: ReadonlyArray<readonly [key: string, count: number]> | undefined
  /** Undefined if no body names what was retrieved. */
  readonly retrieved: ReadonlyArray<string> | undefined
  readonly session_id: SessionId | undefined
  readonly as_of: number | undefined
  /** Products of which records are missing in the newest results; undefined if records of any may be. */
  readonly lacking: ReadonlySet<string> | undefined
  /** A body of the task is not in the tables. */
  readonly isLeftOut: boolean
}

type Settlement = Pick<Verdict, "outcome" | "who_acts"> & { readonly reason: string | undefined }

/** A feature, the others of its task, and the schemas that say what they feed. */
interface Asked {
  readonly feature: string
  readonly others: ReadonlyArray<string>
  readonly families: ReadonlyArray<RecordFamily>
}

const isIncomplete = (reason: string | undefined): boolean =>
  reason !== undefined && knownEnd(reason)?.results !== undefined

/**
 * Results that are not whole apply to all features, unless it is known that all records that are missing
 * belong to others. Whether they are whole is what they say, also if the task ended with another word since.
 */
const isShortOf = (
  { feature, others, families }: Asked,
  reason: string | undefined,
  { lacking }: TaskFindings,
): boolean => {
  if (lacking === undefined || (reason !== "RECORDS_SHORT" && isIncomplete(reason))) return true
  const fedBy = new Set(others.flatMap((other) => productsOf(other, families)))
  const own = productsOf(feature, families)
  return [...lacking].some((product) => own.includes(product) || !fedBy.has(product))
}

const wholeOf = (task: TaskState, { isLeftOut }: TaskFindings): Settlement => {
  const settlement = settlementOf(task)
  return isLeftOut && settlement.outcome === "succeeded" ? notInTables : settlement
}

/** Nothing says that the feature was read: no record, and its name is missing where others would stand. */
const isPassedOver = (feature: string, records: number | undefined, findings: TaskFindings): boolean =>
  records === 0 &&
  !findings.retrieved?.includes(feature) &&
  (findings.retrieved !== undefined || findings.featureReasons.size > 0)

/** A task that failed proves only with records that a feature was read. */
const settle = (
  task: TaskState,
  asked: Asked,
  records: number | undefined,
  findings: TaskFindings,
): Settlement => {
  const { feature } = asked
  const whole = wholeOf(task, findings)
  const reason = findings.featureReasons.get(feature)
  const own = featureEnd(reason)
  if (task.settled === undefined) return whole
  const outside = executionsOf(task).at(-1)?.outside
  if (own === undefined && (records ?? 0) === 0 && outside?.includes(feature)) return outsideToken
  if (own === undefined)
    return whole.outcome === "succeeded" && isPassedOver(feature, records, findings) ? passedOver : whole
  if (own.outcome === "succeeded" && isShortOf(asked, whole.reason, findings)) return whole
  const isKept = whole.outcome === "succeeded" || whole.outcome === "partial" || (records ?? 0) > 0
  if (own.outcome === "succeeded" && !isKept) return whole
  return { outcome: own.outcome, reason, who_acts: own.who_acts }
}

/**
 * Zero if the feature's tables are known and empty, or if every record of final results belongs to another
 * feature; undefined if a record could be its own.
 */
const recordsOf = ({ feature, others, families }: Asked, findings: TaskFindings) => {
  const { byTable, byProduct, delivered } = findings
  if (byTable === undefined) return undefined
  const own = families.filter(({ features }) => features.includes(feature))
  if (own.length > 0) return own.reduce((sum, { table }) => sum + (byTable.get(table) ?? 0), 0)
  const named = productsOf(feature, families).find((product) => byProduct.has(product))
  if (named !== undefined) return byProduct.get(named)
  if (delivered === undefined) return undefined
  const elsewhere = new Set(others.flatMap((other) => productsOf(other, families)))
  return [...delivered].every((product) => elsewhere.has(product)) ? 0 : undefined
}

const countedOf = ({ feature, families }: Asked, findings: TaskFindings) => {
  if (findings.products_count === undefined) return undefined
  const own = families.filter(({ features }) => features.includes(feature)).map(({ product }) => product)
  const names = new Set(own.length > 0 ? own : productsOf(feature, families))
  const counts = findings.products_count.filter(([key]) => {
    const parts = productKey(key)
    return parts !== undefined && (names.has(parts.product) || names.has(parts.family))
  })
  if (counts.length === 0 && own.length === 0) return undefined
  return counts.reduce((sum, [, count]) => sum + count, 0)
}

/** Its job asked for no results: nobody looked, so whatever it ended with says nothing of the records. */
const isUnwanted = (task: TaskState): boolean =>
  executionsOf(task).some(({ proof }) => proof?.basis === "unwanted")

export const coverageRows = (
  run_id: RunId,
  task: TaskState,
  families: ReadonlyArray<RecordFamily>,
  findings: TaskFindings,
): ReadonlyArray<Row> => {
  const codes = new Set([
    ...task.planned.features,
    ...findings.featureReasons.keys(),
    ...(findings.retrieved ?? []),
  ])
  const first = { ...taskCells(run_id, task), session_id: findings.session_id }
  const as_of = findings.as_of ?? (isUnwanted(task) ? undefined : task.settled?.at)
  if (codes.size === 0) return [{ ...first, ...cellsOf(wholeOf(task, findings)), as_of }]
  return [...codes].map((feature) => {
    const asked = { feature, others: [...codes].filter((code) => code !== feature), families }
    const records = recordsOf(asked, findings)
    return {
      ...first,
      feature,
      ...cellsOf(settle(task, asked, records, findings)),
      records,
      counted: countedOf(asked, findings),
      as_of,
    }
  })
}

/** The features that did not succeed, of a task that did; what another warning tells is not told again. */
export const leftFeatures = (task: TaskState, rows: ReadonlyArray<Row>): ReadonlyArray<FeatureLeft> => {
  if (settlementOf(task).outcome !== "succeeded") return []
  const toldElsewhere: ReadonlyArray<unknown> = [outsideToken.reason, notInTables.reason]
  return rows.flatMap(({ feature, outcome, reason }) =>
    outcome !== "succeeded" &&
    !toldElsewhere.includes(reason) &&
    Predicate.isString(feature) &&
    Predicate.isString(reason)
      ? [{ feature, reason, count: 1 }]
      : [],
  )
}

const cellsOf = ({ outcome, reason, who_acts }: Settlement): Row => ({ outcome, reason, who_acts })

// Which features of a task that did not succeed need not be asked for again: their data is in the tables.
// What is current of a kind is all from one run, so features that feed the same product are asked for
// together, and all of them if the task has a record that no feature is known to feed.

export const deliveredFeatures = (
  task: TaskState,
  families: ReadonlyArray<RecordFamily>,
  findings: TaskFindings,
): ReadonlyArray<string> => {
  const { settled, planned } = task
  const { delivered: products, isLeftOut } = findings
  const last = executionsOf(task).at(-1)
  const isRead = last?.closed?.fact.landed !== undefined && last.drained && !isLeftOut
  if (!isRead || products === undefined || settled === undefined || isIncomplete(settled.fact.reason))
    return []
  if (settled.fact.outcome === "succeeded") return []
  const succeeded = (feature: string) => {
    const others = planned.features.filter((code) => code !== feature)
    const asked = { feature, others, families }
    return settle(task, asked, recordsOf(asked, findings), findings).outcome === "succeeded"
  }
  const fedBy = (code: string) => productsOf(code, families)
  const left = new Set(planned.features.filter((code) => !succeeded(code)))
  if (left.size === 0) return []
  // What is asked for again grows by what it shares a product with, until nothing more is added.
  for (let before = -1; before < left.size;) {
    before = left.size
    const again = new Set([...left].flatMap(fedBy))
    for (const code of planned.features) if (fedBy(code).some((product) => again.has(product))) left.add(code)
  }
  const known = new Set([...featureCodes, ...families.flatMap(({ features }) => features)])
  const fed = new Set(planned.features.filter((code) => known.has(code)).flatMap(fedBy))
  if ([...products].some((product) => !fed.has(product))) return []
  return planned.features.filter((code) => !left.has(code))
}
