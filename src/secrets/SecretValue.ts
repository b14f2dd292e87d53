/**
 * What of a value counts as a secret, and how long it must be to be recognised inside a longer text: `2024`
 * is a year before it is a PIN, and `website` is a word before it is a password.
 */

/** Digits need two more, and no further digit beside them: a PIN of six digits is inside many a date. */
const insideMin = { text: 6, digits: 8 } as const

export const isDigits = (text: string): boolean => /^\d+$/.test(text)

/** Too long to stand inside another text by chance. */
export const isInsideSize = (text: string): boolean =>
  text.length >= (isDigits(text) ? insideMin.digits : insideMin.text)

/** Letters and what joins words in names: `financial_account:checking` may be somebody's password. */
export const isPlainWord = (text: string): boolean => /^[A-Za-z_:@. -]+$/.test(text)

/**
 * The texts and numbers in a login value, inside lists and mappings too. `true` and `false` are no secrets,
 * wherever they come from.
 */
export const leavesOf = (value: unknown): ReadonlyArray<string> => {
  if (typeof value === "number" || typeof value === "bigint") return [String(value)]
  if (typeof value === "string") return /^\s*(?:true|false)?\s*$/i.test(value) ? [] : [value]
  if (typeof value !== "object" || value === null) return []
  return Object.values(value).flatMap(leavesOf)
}
