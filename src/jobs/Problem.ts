/**
 * What is wrong with a job: every problem has a file, a line and a column, and says what to do without ever
 * repeating a value; names of keys, engines and features are not values.
 */
import { Schema } from "effect"
import { Problem, renderProblem } from "../base/FileProblem.ts"
import type { Place } from "../base/FileProblem.ts"

/** The job cannot be run as it is written: every error at once, in the order of the files. */
export class JobInvalid extends Schema.TaggedError<JobInvalid>()("JobInvalid", {
  problems: Schema.Array(Problem),
  /** What would only have been a warning. */
  warnings: Schema.Array(Problem),
}) {
  override get message(): string {
    return this.problems.map(renderProblem).join("\n")
  }
}

/**
 * Collects findings along the way, so that all problems are reported at once. Findings of one `group` in
 * one file are reported once, with a count: a file may have 100,000 rows.
 */
export interface Findings {
  readonly error: (place: Place, message: string, group?: string) => void
  readonly warn: (place: Place, message: string, group?: string) => void
  readonly errors: () => ReadonlyArray<Problem>
  /** Whether looking for more errors is pointless. */
  readonly isFull: () => boolean
  readonly warnings: () => ReadonlyArray<Problem>
}

const byPlace = (a: Problem, b: Problem): number => a.line - b.line || a.column - b.column

/** More of them help nobody, and a file may have a million errors. */
const problemsMax = 1_000

const makeList = () => {
  const found: Array<{ readonly first: Problem; further: number }> = []
  const groups = new Map<string, { further: number }>()
  const add = (place: Place, message: string, group?: string): void => {
    const key = group === undefined ? undefined : JSON.stringify([place.file, group])
    const seen = key === undefined ? undefined : groups.get(key)
    if (seen !== undefined) {
      seen.further += 1
      return
    }
    if (found.length > problemsMax) return
    const more = "more problems may be reported once these are corrected"
    const entry = { first: { ...place, message: found.length === problemsMax ? more : message }, further: 0 }
    found.push(entry)
    if (key !== undefined) groups.set(key, entry)
  }
  const all = (): ReadonlyArray<Problem> =>
    inOrder(
      found.map(({ first, further }) =>
        further === 0 ? first : { ...first, message: `${first.message} (and ${further} more in this file)` },
      ),
    )
  return { add, all, isFull: () => found.length > problemsMax }
}

export const makeFindings = (): Findings => {
  const errors = makeList()
  const warnings = makeList()
  return {
    error: errors.add,
    warn: warnings.add,
    errors: errors.all,
    isFull: errors.isFull,
    warnings: warnings.all,
  }
}

/** Files in the order of their first problem; within a file, top to bottom. */
const inOrder = (problems: ReadonlyArray<Problem>): ReadonlyArray<Problem> =>
  [...Map.groupBy(problems, ({ file }) => file).values()].flatMap((same) => same.sort(byPlace))
