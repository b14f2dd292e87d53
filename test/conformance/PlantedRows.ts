/**
 * What a planted bug showed of a row, and what that means for the whole: a row is caught when one of its own
 * tests fails, and survives when all of them pass. Survivors are accepted by name and reason only.
 */
import type { Bug } from "./Bugs.ts"
import type { CoveredRow } from "./Coverage.ts"
import type { TestsSeen, TestsWanted } from "./PlantedTests.ts"
import { outsideTests } from "./PlantText.ts"

export type Verdict =
  | { readonly id: string; readonly end: "caught"; readonly by: string }
  | { readonly id: string; readonly end: "survived"; readonly why: string }
  /** Nothing was shown: no test ran, or the changed source does not even load. */
  | { readonly id: string; readonly end: "error"; readonly why: string }

export interface PlantedRow {
  readonly row: CoveredRow
  readonly bug: Bug | undefined
}

/** The service's own tests first: they are the quickest, and show the row itself. */
const rank = (file: string): number => (/^test\/(?:sandbox|conformance)\//.test(file) ? 0 : 1)

export const filesOf = (row: CoveredRow): ReadonlyArray<string> =>
  [...new Set(row.tests.map(({ file }) => file))].toSorted((a, b) => rank(a) - rank(b) || (a < b ? -1 : 1))

export const wantedFor = ({ row, bug }: PlantedRow): TestsWanted => ({
  files: filesOf(row),
  ids: [row.id],
  changes: bug === undefined ? [] : [bug],
})

const timeLimit = "the time limit"

export const judge = (id: string, seen: TestsSeen | "late"): Verdict => {
  // A test that never ends is noticed by whoever runs it.
  if (seen === "late") return { id, end: "caught", by: timeLimit }
  if (seen.broken.length > 0) return { id, end: "error", why: seen.broken.join("; ").slice(0, 300) }
  const [first] = seen.failed
  if (first !== undefined) {
    // Only its own tests ran; a failure elsewhere says nothing of the row.
    const isOwn = first.includes(`[${id}]`) || first.startsWith(outsideTests)
    return isOwn ? { id, end: "caught", by: first } : { id, end: "error", why: `failed elsewhere: ${first}` }
  }
  if (seen.passed.length === 0) return { id, end: "error", why: "none of its tests ran" }
  const why = seen.planted.length > 0 ? "all of its tests pass" : "its tests do not load the changed source"
  return { id, end: "survived", why }
}

/** Without a bug the same tests must pass: one run for each file, with the tags of all chosen rows. */
export const controlsFor = (rows: ReadonlyArray<PlantedRow>): ReadonlyArray<TestsWanted> =>
  Object.entries(
    Object.groupBy(
      rows.flatMap(({ row }) => filesOf(row).map((file) => ({ file, id: row.id }))),
      ({ file }) => file,
    ),
  ).map(([file, of = []]) => ({ files: [file], ids: of.map(({ id }) => id), changes: [] }))

export const controlProblems = ({ files }: TestsWanted, seen: TestsSeen | "late"): ReadonlyArray<string> => {
  const file = files.join(", ")
  if (seen === "late") return [`${file} does not end, without any bug`]
  if (seen.passed.length + seen.failed.length === 0) return [`${file} ran no test, without any bug`]
  return [...seen.failed, ...seen.broken].map((what) => `fails without any bug: ${file}: ${what}`)
}

export interface Outcome {
  readonly rows: number
  readonly caught: number
  /** Of those: rows whose tests did not end in time, which on a busy machine says little. */
  readonly late: number
  readonly survivors: ReadonlyArray<{ readonly id: string; readonly why: string; readonly reason?: string }>
  /** What makes the command fail. */
  readonly problems: ReadonlyArray<string>
}

export const outcomeOf = (
  verdicts: ReadonlyArray<Verdict>,
  accepted: Readonly<Record<string, string>>,
): Outcome => {
  const survivors = verdicts.flatMap((one) => (one.end === "survived" ? [one] : []))
  return {
    rows: verdicts.length,
    caught: verdicts.filter(({ end }) => end === "caught").length,
    late: verdicts.filter((one) => one.end === "caught" && one.by === timeLimit).length,
    survivors: survivors.map(({ id, why }) => {
      const reason = accepted[id]
      return reason === undefined ? { id, why } : { id, why, reason }
    }),
    problems: verdicts.flatMap((one) => {
      if (one.end === "error") return [`[${one.id}] cannot be judged: ${one.why}`]
      if (one.end === "survived") return one.id in accepted ? [] : [`[${one.id}] survived: ${one.why}`]
      return one.id in accepted ? [`[${one.id}] is accepted as a survivor, but caught by: ${one.by}`] : []
    }),
  }
}

export const figureOf = ({ rows, caught, survivors }: Outcome): string => {
  // Rounded down: 99.96 % is not all.
  const percent = rows === 0 ? 0 : Math.floor((caught * 1000) / rows) / 10
  const noun = survivors.length === 1 ? "survivor" : "survivors"
  return `planted bugs: ${caught} of ${rows} caught (${percent.toFixed(1)} %), ${survivors.length} ${noun}`
}
