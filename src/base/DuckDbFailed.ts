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

// Where DuckDB shows values. A value may have quotes and line ends itself, so it reaches from the first quote
// to the last one; the apostrophe of "can't" is none. Words and names of types, as INT32, are no values.
const beneath = /\n\nLINE \d+:[^]*$/
const quoted = /(?<![\p{L}\p{N}])(['"])(?:[^]*\1(?![\p{L}\p{N}])|[^]*$)/gu
const number = /(DECIMAL\(\d+,\d+\)|[\p{L}_][\p{L}\p{N}_]*)|[-+.]?\p{N}[\p{L}\p{N}.:_+-]*/gu
const bare = /(?<=\bwith value ).*(?= can't be cast )/
const last = /(?<=: )(?:[^\p{L}\s"'…].*|\S)$/u

/** The first line without the values in it; the others repeat statement and data. */
const withoutData = (text: string): string => {
  const [line = ""] = text.replace(beneath, "").replace(quoted, "$1…$1").split("\n", 1)
  return line
    .replace(number, (_, word?: string) => word ?? "…")
    .replace(bare, "…")
    .replace(last, "…")
}

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
