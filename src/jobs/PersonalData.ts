/**
 * Refuses personal data where the reference forbids it (4.1: a `customer_id` is stored, echoed on every
 * event and may appear in webhook URLs). A value that is certain by its check digits is refused; one that
 * only resembles personal data gets a warning. Nothing here repeats the value it judges.
 */
import { checkCif, checkColombian, checkIban, checkPersonNumber, checkSocialSecurity } from "./IdNumbers.ts"
import type { Checked } from "./IdNumbers.ts"

export type PersonalDataVerdict =
  | { readonly _tag: "Clean" }
  | { readonly _tag: "Certain"; readonly kind: string }
  | { readonly _tag: "Resembles"; readonly kind: string }

const clean: PersonalDataVerdict = { _tag: "Clean" }
const certain = (kind: string): PersonalDataVerdict => ({ _tag: "Certain", kind })
const resembles = (kind: string): PersonalDataVerdict => ({ _tag: "Resembles", kind })

const email = /^[^\s@"]+@[^\s@".]+(?:\.[^\s@".]+)+$/

/** Separators that people write between the digits of a number. */
const separators = /[-.\s/_·‐-―]/g

/**
 * Lower-case `c-` and a counter is the commonest form of internal ids, and one in ten of those has a valid
 * CIF digit by chance: with a separator after a lower-case letter it only resembles one.
 */
const judgeCif = (text: string, { kind, right }: Checked): PersonalDataVerdict => {
  const counter = /^[a-z][-.\s/_]/.test(text)
  if (right) return counter ? resembles(kind) : certain(kind)
  return counter ? clean : resembles(kind)
}

/**
 * A counter that begins with a year is the commonest form of internal ids, and 1 in 97 of those has valid
 * digits by chance; so has a number after a prefix. Written in its groups, it can be nothing else.
 */
const judgeSocialSecurity = (text: string, { kind, right }: Checked): PersonalDataVerdict => {
  const grouped = /^\d{2}[-.\s/]\d{7,8}[-.\s/]\d{2}$|^\d{2}[-.\s/]\d{9,10}$/.test(text)
  if (!right) return grouped ? resembles(kind) : clean
  return grouped || !/^(?:19[5-9]|20[0-4])\d/.test(text) ? certain(kind) : resembles(kind)
}

const phone = "a phone number"

/**
 * Ten digits or fewer without a word or a sign before them are mostly internal numbers; a Spanish or
 * Colombian mobile number is recognised by its first digits, any other by `+`, `00` or a word.
 */
const judgePhone = (text: string): PersonalDataVerdict => {
  const digits = text.replaceAll(/^\(?\+|[-.\s/()·‐-―]/g, "")
  if (!/^\d{7,15}$/.test(digits)) return clean
  if (/^\s*(?:\+|\(\+)/.test(text)) return resembles(phone)
  if (/^00(?:34|57)\d{8,10}$/.test(digits)) return resembles(phone)
  if (/^(?:34)?(?:6\d|7[1-4])\d{7}$/.test(digits)) return resembles(phone)
  if (/^(?:57)?3[0-5]\d{8}$/.test(digits)) return resembles(phone)
  return /^[89]\d{1,2}[-.\s]\d{2,3}[-.\s]\d{2,3}(?:[-.\s]\d{2,3})?$/.test(text) && digits.length === 9
    ? resembles(phone)
    : clean
}

const labelled =
  /^(?:tel|tfno?|tlf|phone|mob|mobile|m[oó]vil|cel|celular|whatsapp)[-.:\s_]*(\+?[\d][-.\s\d]{6,18})$/i

/** Numbers inside a longer id, between signs, as in `customer-12345678Z`. */
const judgeInside = (text: string): PersonalDataVerdict => {
  const phoned = labelled.exec(text)
  if (phoned !== null) return resembles(phone)
  for (const part of text.toUpperCase().split(/[^A-Z0-9+]+/)) {
    const found = [checkPersonNumber, checkIban, checkSocialSecurity].find((check) => check(part)?.right)
    const kind = found?.(part)?.kind
    if (kind !== undefined) return resembles(kind)
    if (/^\+\d{9,15}$/.test(part)) return resembles(phone)
  }
  return clean
}

/** Is this id personal data? Separators that people write into numbers (`12345678-Z`) don't hide one. */
export const judgeCustomerId = (id: string): PersonalDataVerdict => {
  const text = id
    .normalize("NFKC")
    .replaceAll(/\p{Cf}/gu, "")
    .trim()
  if (email.test(text)) return certain("an e-mail address")
  if (text.includes("@")) return resembles("an e-mail address")
  const bare = text.toUpperCase().replaceAll(separators, "")
  const number = checkPersonNumber(bare) ?? checkIban(bare)
  if (number !== undefined) return number.right ? certain(number.kind) : resembles(number.kind)
  const company = checkCif(bare)
  if (company !== undefined) return judgeCif(text, company)
  const insured = checkSocialSecurity(bare)
  const verdicts = [
    insured === undefined ? clean : judgeSocialSecurity(text, insured),
    judgeColombian(text),
    judgePhone(text),
    judgeInside(text),
  ]
  return (
    verdicts.find(({ _tag }) => _tag === "Certain") ?? verdicts.find(({ _tag }) => _tag !== "Clean") ?? clean
  )
}

/** A tax number with the right check digit is certain if it is written as one; others have no check. */
const judgeColombian = (text: string): PersonalDataVerdict => {
  const found = checkColombian(text)
  if (found === undefined) return clean
  return found.right ? certain(found.kind) : resembles(found.kind)
}
