/**
 * What is wrong with a file that somebody wrote, and where: a file, a line, a column and one sentence, which
 * never repeats a value (values may be secrets or personal data).
 */
import { Schema } from "effect"

export interface Place {
  readonly file: string
  /** From 1. */
  readonly line: number
  /** From 1. */
  readonly column: number
}

export const Problem = Schema.Struct({
  file: Schema.String,
  line: Schema.Int,
  column: Schema.Int,
  message: Schema.String,
})
export type Problem = typeof Problem.Type

export const renderProblem = (problem: Problem): string =>
  `${problem.file}:${problem.line}:${problem.column}: ${problem.message}`
