/**
 * Which parts of a value count as secrets, and how long they must be to be recognised inside a longer text:
 * `2024` is more likely a year than a PIN, and `website` more likely a word than a password.
 */

/** Digits need two more, and no digit next to them: many dates contain a PIN of six digits. */
const insideMin = { text: 6, digits: 8 } as const

export const isDigits = (text: string): boolean => /^\d+$/.test(text)

/** Too long to be inside another text by chance. */
export const isInsideSize = (text: string): boolean =>
  text.length >= (isDigits(text) ? insideMin.digits : insideMin.text)

/** Letters, and the signs that join words: `financial_account:checking` may be somebody's password. */
export const isPlainWord = (text: string): boolean => /^[A-Za-z_:@. -]+$/.test(text)

/**
 * The texts and numbers in a login value, also inside lists and mappings. `true` and `false` are never
 * secrets.
 */
export const leavesOf = (value: unknown): ReadonlyArray<string> => {
  if (typeof value === "number" || typeof value === "bigint") return [String(value)]
  if (typeof value === "string") return /^\s*(?:true|false)?\s*$/i.test(value) ? [] : [value]
  if (typeof value !== "object" || value === null) return []
  return Object.values(value).flatMap(leavesOf)
}
