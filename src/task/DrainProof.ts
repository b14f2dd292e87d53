/**
 * The proof that everything an execution counted is here: for each family, `products_count` compared with
 * what was landed. Pure, and made twice from the same evidence: when the results are read, for the verdict,
 * and from landing alone, by publishing and by `verify`. Nothing is deleted at the service without it.
 */
import { sumOf } from "../base/Text.ts"
import { isFinal, mayBring, productOf, recordsIn, subFamilyOf } from "../service/FlowResults.ts"
import type { ProductsCount, ResultsSource } from "../service/FlowResults.ts"
import type { ProofLine } from "../ledger/Fact.ts"
import { tallyData, type Tally } from "../records/FindRecords.ts"

/** The newest body of one source: what it contains, and whether it says that it is final. */
export interface SourceFinding {
  readonly source: ResultsSource
  readonly isFinal: boolean
  readonly tally: Tally
}

export const findingOf = (source: ResultsSource, body: unknown): SourceFinding => ({
  source,
  isFinal: isFinal(source, body),
  tally: tallyData(recordsIn(source, body)),
})

export interface DrainProof {
  /** Everything counted is landed in a final body. */
  readonly isWhole: boolean
  /** Absent if the count cannot be read: then `families` lists what was landed, uncounted. */
  readonly isCounted: boolean
  /** In the order of the count; `counted` is absent for a family that was landed but not counted. */
  readonly families: ReadonlyArray<ProofLine>
}

type Counts = Readonly<Record<string, number>>

const countedBy = (
  counts: Counts,
  groupOf: (key: string) => string | undefined,
): ReadonlyMap<string, number> => {
  const groups = new Map<string, number>()
  for (const [key, count] of Object.entries(counts)) {
    const group = groupOf(key)
    if (group !== undefined) groups.set(group, (groups.get(group) ?? 0) + count)
  }
  return groups
}

/** The most records of a family from one source: two may show the same ones, so they are not added up. */
const landedOf = (findings: ReadonlyArray<SourceFinding>, family: string): number =>
  Math.max(0, ...findings.map(({ tally }) => tally.bySubFamily.get(family) ?? 0))

/** Whether one final body of this source contains everything counted of a family. */
const covers = (
  { source, isFinal: final, tally }: SourceFinding,
  counts: Counts,
  family: string,
  counted: number,
): boolean => {
  if (!final || !mayBring(source, family)) return false
  switch (source.counts) {
    case "none":
      return true
    case "sub_family":
      return (tally.bySubFamily.get(family) ?? 0) >= counted
    case "product": {
      const products = countedBy(counts, productOf)
      const keys = Object.keys(counts).filter((key) => subFamilyOf(key) === family)
      return keys.every((key) => {
        const product = productOf(key)
        return product !== undefined && (tally.byProduct.get(product) ?? 0) >= (products.get(product) ?? 0)
      })
    }
  }
}

/** Without a count, only a source that may return everything, and is trusted to, proves anything. */
const isTakenAtItsWord = ({ source, isFinal: final }: SourceFinding): boolean =>
  final && source.counts === "none" && source.families.includes("*")

/** The landed families that were not counted; they need no proof. */
const uncounted = (
  findings: ReadonlyArray<SourceFinding>,
  counted: ReadonlySet<string>,
): ReadonlyArray<ProofLine> => {
  const names = new Set(findings.flatMap(({ tally }) => [...tally.bySubFamily.keys()]))
  return [...names]
    .filter((family) => !counted.has(family))
    .map((family) => ({ family, landed: landedOf(findings, family) }))
}

/** The families with counted records that no final body contains completely. */
const lackingOf = (counts: Counts, findings: ReadonlyArray<SourceFinding>): ReadonlyArray<string> =>
  [...countedBy(counts, subFamilyOf)].flatMap(([family, counted]) =>
    counted === 0 || findings.some((finding) => covers(finding, counts, family, counted)) ? [] : [family],
  )

/** The products of those families; undefined if it is not known which they are. */
export const lackingProducts = (
  count: ProductsCount,
  findings: ReadonlyArray<SourceFinding>,
): ReadonlySet<string> | undefined => {
  if (count._tag === "Unknown") return findings.some((finding) => finding.isFinal) ? new Set() : undefined
  const lacking = new Set(lackingOf(count.counts, findings))
  const products = Object.keys(count.counts).flatMap((key) =>
    lacking.has(subFamilyOf(key)) ? [productOf(key)] : [],
  )
  const named = products.filter((product) => product !== undefined)
  return named.length < products.length ? undefined : new Set(named)
}

export const proveDrain = (count: ProductsCount, findings: ReadonlyArray<SourceFinding>): DrainProof => {
  if (count._tag === "Unknown") {
    const families = uncounted(findings, new Set())
    return { isWhole: findings.some(isTakenAtItsWord), isCounted: false, families }
  }
  const groups = countedBy(count.counts, subFamilyOf)
  const lines = [...groups].map(([family, counted]): ProofLine => {
    return { family, counted, landed: landedOf(findings, family) }
  })
  const isWhole = lackingOf(count.counts, findings).length === 0
  return { isWhole, isCounted: true, families: [...lines, ...uncounted(findings, new Set(groups.keys()))] }
}

/** Whether another source may still return something that no body so far contains completely. */
export const isWanted = (
  source: ResultsSource,
  count: ProductsCount,
  findings: ReadonlyArray<SourceFinding>,
): boolean => {
  if (count._tag === "Unknown") return !findings.some((finding) => finding.isFinal)
  return lackingOf(count.counts, findings).some((family) => mayBring(source, family))
}

/** More records than were counted; for a family that a readable count does not name, all of them. */
export const surplusOf = (families: ReadonlyArray<ProofLine>): number =>
  sumOf(families.map(({ counted = 0, landed }) => Math.max(0, landed - counted)))

/** Records that were counted and are not here. */
export const shortfallOf = (families: ReadonlyArray<ProofLine>): number =>
  sumOf(families.map(({ counted, landed }) => Math.max(0, (counted ?? 0) - landed)))
