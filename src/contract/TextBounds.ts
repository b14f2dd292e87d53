/**
 * How long the words of an answer may be outside of its landed body. An id beyond its bound cannot be used:
 * half an id is another one. Reasons, messages and the like are cut with a mark that says how long they are;
 * landing has them whole.
 */

/** Ids, of executions and sessions as of customers and engines, in UTF-16 units. */
export const idCharactersMax = 512
/** A ticket or the key of a token. */
export const secretCharactersMax = 16_384
/** Codes, reasons and messages of the service in ledger, tables and summary. */
export const textCharactersMax = 2_000

/** The text itself, or its beginning and a mark, together as long as the bound. */
export const cutText = (text: string, charactersMax = textCharactersMax): string => {
  if (text.length <= charactersMax) return text
  const mark = `… [cut: ${text.length} characters]`
  return `${text.slice(0, Math.max(0, charactersMax - mark.length))}${mark}`.toWellFormed()
}
