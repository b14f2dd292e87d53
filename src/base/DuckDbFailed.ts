/**
 * What went wrong in the database, in words that may be shown: the beginning of the statement without
 * values, and DuckDB's message without the data it often quotes.
 */
import { Schema } from "effect"
import { wordsOf } from "./Text.ts"

/** A statement, an open or a swap failed. Neither text ever holds a parameter's value. */
export class DuckDbFailed extends Schema.TaggedError<DuckDbFailed>()("DuckDbFailed", {
  /** The first 200 characters of the SQL as it was written, parameters still `?` or `$name`. */
  statement: Schema.String,
  message: Schema.String,
}) {}

const statementCharactersMax = 200
const valueCharactersMin = 3

/** Errors of these kinds quote data; the others quote names and syntax, which users need to see. */
const quotesData = /^(Conversion|Constraint|Invalid Input|Invalid|Out of Range|Mismatch Type) Error/

export const failureOf = (
  statement: string,
  cause: unknown,
  values: ReadonlyArray<unknown> = [],
): DuckDbFailed => {
  const text = wordsOf(cause)
  return new DuckDbFailed({
    statement: statement.slice(0, statementCharactersMax),
    message: withoutValues(quotesData.test(text) ? withoutData(text) : text, values),
  })
}

/** Keeps the first line (the others repeat statement and data) and empties its quotes. */
const withoutData = (text: string): string =>
  (text.split("\n", 1)[0] ?? "").replace(/'[^']*'?|"[^"]*"?/g, (quoted) => `${quoted[0]}…${quoted[0]}`)

const withoutValues = (text: string, values: ReadonlyArray<unknown>): string =>
  values
    .flat()
    .map((value) => String(value))
    .filter((value) => value.length >= valueCharactersMin)
    .toSorted((one, other) => other.length - one.length)
    .reduce((shown, value) => shown.replaceAll(value, "…"), text)

// What cannot be a parameter is quoted here and nowhere else: no name or value ever becomes a statement.

/** A table's, column's or schema's name. NUL, which no name can hold, becomes U+FFFD. */
export const identifier = (name: string): string =>
  `"${name.toWellFormed().replaceAll("\0", "\uFFFD").replaceAll('"', '""')}"`

/** A VARCHAR constant. A statement ends at NUL for the parser, so NUL is spelled as `chr(0)`. */
export const literal = (text: string): string => {
  const parts = text
    .toWellFormed()
    .split("\0")
    .map((part) => `'${part.replaceAll("'", "''")}'`)
  return parts.length === 1 ? parts.join("") : `(${parts.join(" || chr(0) || ")})`
}
