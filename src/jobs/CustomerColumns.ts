/**
 * The columns of a file of customers that are no login parameters: the ids of customer and engine, and those
 * that the job names for features and stored tokens.
 */
import { Predicate } from "effect"
import type { Place } from "../base/FileProblem.ts"
import { nearestName } from "../base/Nearest.ts"
import type { Findings } from "./Problem.ts"

/** Columns that the job names, and where problems go. */
export interface NamedColumns {
  readonly features_column?: string | undefined
  readonly token_column?: string | undefined
  readonly findings: Findings
}

export const idColumn = "customer_id"
export const engineColumn = "engine_reference"

/** Whether the columns can be read as customers at all. */
export const checkColumns = (
  source: NamedColumns,
  columns: ReadonlyArray<string>,
  placeOf: (index: number) => Place,
): boolean => {
  const twice = columns.findIndex((column, index) => columns.indexOf(column) !== index)
  if (twice >= 0) source.findings.error(placeOf(twice), "a column of this name already exists")
  const unnamed = columns.indexOf("")
  if (unnamed >= 0) source.findings.error(placeOf(unnamed), "this column has no name")
  const { features_column, token_column } = source
  const taken = [idColumn, engineColumn]
  for (const column of [features_column, token_column].filter((name) => name !== undefined)) {
    const index = columns.indexOf(column)
    if (index < 0) source.findings.error(placeOf(0), `there is no column \`${column}\`, which the job names`)
    else if (taken.includes(column))
      source.findings.error(
        placeOf(index),
        "the job reads this column as something else too: each has one meaning",
      )
    taken.push(column)
  }
  const known = columns.includes(idColumn)
  if (!known) {
    const near = nearestName(idColumn, columns)
    const hint = near === undefined ? "" : `; is it \`${near}\`?`
    source.findings.error(placeOf(0), `there is no column \`${idColumn}\`${hint}`)
  }
  return known && twice < 0 && unnamed < 0
}

/** Their values are texts, whatever their type in the file. */
export const textColumns = ({ token_column }: NamedColumns) =>
  [idColumn, engineColumn, token_column].filter((column) => column !== undefined)

/** `a b`, `a, b`, `a;b` or a list of strings. */
export const codesIn = (findings: Findings, value: unknown, place: Place): ReadonlyArray<string> => {
  if (Predicate.isNullish(value)) return []
  const texts = Array.isArray(value) ? value : [value]
  if (texts.every(Predicate.isString)) return texts.flatMap((text) => text.split(/[\s,;]+/).filter(Boolean))
  findings.error(place, "expected a text, or a list of texts")
  return []
}

/** The name of a stored token, which may have any characters; undefined if the cell is empty. */
export const tokenIn = (findings: Findings, value: unknown, place: Place): string | undefined => {
  if (Predicate.isNullish(value) || value === "") return undefined
  if (Predicate.isString(value)) return value
  findings.error(place, "expected a text")
  return undefined
}
