/**
 * Names and strings as SQL text. Values belong in parameters; what cannot be one (table and column names,
 * paths in `COPY`, settings) is quoted here and nowhere else, so that no name or value ever becomes a
 * statement.
 */

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
