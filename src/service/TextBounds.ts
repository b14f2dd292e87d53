/**
 * How long the values of an answer may be outside its landed body. An id beyond its limit cannot be used: a
 * cut id is another id. Reasons, messages and the like are cut with a mark that gives their length; landing
 * has them in full.
 */

/** Ids, of executions and sessions as of customers and engines, in UTF-16 units. */
export const idCharactersMax = 512
/** A ticket or the key of a token. */
export const secretCharactersMax = 16_384
/** Codes, reasons and messages of the service in ledger, tables and summary. */
export const textCharactersMax = 2_000

/** The text itself, or its beginning and a mark, together as long as the limit. */
export const cutText = (text: string, charactersMax = textCharactersMax): string => {
  if (text.length <= charactersMax) return text
  const mark = `… [cut: ${text.length} characters]`
  return `${text.slice(0, Math.max(0, charactersMax - mark.length))}${mark}`.toWellFormed()
}
