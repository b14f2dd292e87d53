/**
 * Text as CSV that no spreadsheet takes for a formula: whatever a cell contains, opening the file shows it
 * and runs nothing.
 */

/** White space and invisible characters: spreadsheets skip them to find the first sign. */
const unseen = /^[\p{Cc}\p{Cf}\p{Z}\p{Default_Ignorable_Code_Point}\u2800]+/u
/** Characters that look like a minus but are not one in Unicode, or become one when typed. */
const formula = /^[=+\-@\u2010-\u2015\u2212\u2795\u2796]/u

/**
 * Spreadsheets evaluate text that begins with a sign, full-width ones included; an apostrophe makes it
 * plain text. Later lines of the text and numbers stay as they are.
 */
export const harmless = (text: string): string => {
  if (/^[\t\r\n]/.test(text)) return `'${text}`
  const seen = text.replace(unseen, "").slice(0, 4).normalize("NFKC")
  return formula.test(seen) ? `'${text}` : text
}

const quoted = (text: string): string => (/[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text)

/** One line of CSV (RFC 4180). */
export const csvLine = (cells: ReadonlyArray<string>): string => `${cells.map(quoted).join(",")}\r\n`
