/**
 * What became of each mutant, and what that means for the whole: a mutant is caught by the first test that fails, and
 * survives where all tests that reach it pass. Pure.
 */
import type { TestsSeen } from "../conformance/PlantedTests.ts"
import type { Mutant } from "./Mutant.ts"

export type End =
  | { readonly _tag: "Caught"; readonly by: string }
  /** Its tests did not end in time, which a mutant that runs for ever does and a busy machine may do. */
  | { readonly _tag: "Late"; readonly by: string }
  | { readonly _tag: "Survived"; readonly why: string }
  /** No test can notice it, for the reason that is written down. */
  | { readonly _tag: "Accepted"; readonly reason: string }

export interface Judged {
  readonly mutant: Mutant
  readonly end: End
}

/** What one test file says of a mutant; undefined where it notices nothing. */
export const endOfFile = (file: string, seen: TestsSeen | "late"): End | undefined => {
  if (seen === "late") return { _tag: "Late", by: file }
  const first = seen.failed[0] ?? seen.broken[0]
  return first === undefined ? undefined : { _tag: "Caught", by: `${file}: ${first}` }
}

export interface Figure {
  readonly mutants: number
  readonly caught: number
  readonly late: number
  readonly accepted: number
  readonly survived: number
}

export const figureOf = (judged: ReadonlyArray<Judged>): Figure => {
  const count = (tag: End["_tag"]) => judged.filter(({ end }) => end._tag === tag).length
  const late = count("Late")
  return {
    mutants: judged.length,
    caught: count("Caught") + late,
    late,
    accepted: count("Accepted"),
    survived: count("Survived"),
  }
}

/** Survivors of a hundred, accepted ones aside; rounded up, so that a survivor is never nothing. */
export const survivorsPercent = ({ mutants, accepted, survived }: Figure): number =>
  mutants === accepted ? 0 : Math.ceil((survived * 1000) / (mutants - accepted)) / 10

export const figureLine = (figure: Figure): string =>
  `${figure.mutants} mutants: ${figure.caught} caught (${figure.late} by the time limit alone), ` +
  `${figure.accepted} accepted, ${figure.survived} survived (${survivorsPercent(figure).toFixed(1)} %)`
