/**
 * Refuses personal data where the reference forbids it (4.1: a `customer_id` is stored, echoed on every
 * event and may appear in webhook URLs). A value that is certain by its check digits is refused; one that
 * only resembles personal data gets a warning. Nothing here repeats the value it judges.
 */

// The check digits of numbers that belong to a person, a company or an account: pure arithmetic. Each check
// returns undefined for a text that does not have the form, and otherwise whether its check digits are right.

interface Checked {
  readonly kind: string
  readonly right: boolean
}

const letters = "TRWAGMYFPDXBNJZSQVHLCKE"
const letterOf = (digits: number): string | undefined => letters[digits % 23]
const spanish = (kind: string) => `a Spanish identity number (${kind})`

/** DNI, NIE and the K, L and M numbers. `text` has no separators, and its letters are capitals. */
const checkPersonNumber = (text: string): Checked | undefined => {
  const dni = /^([0-9]{8})([A-Z])$/.exec(text)
  if (dni !== null) return { kind: spanish("DNI"), right: letterOf(Number(dni[1])) === dni[2] }
  const nie = /^([XYZ])([0-9]{7})([A-Z])$/.exec(text)
  if (nie !== null) {
    const first = "XYZ".indexOf(nie[1] ?? "")
    return { kind: spanish("NIE"), right: letterOf(Number(`${first}${nie[2]}`)) === nie[3] }
  }
  const special = /^[KLM]([0-9]{7})([A-Z])$/.exec(text)
  if (special !== null) return { kind: spanish("NIF"), right: letterOf(Number(special[1])) === special[2] }
  return undefined
}

/** A letter for the kind of entity, seven digits, and a control digit or letter. */
const checkCif = (text: string): Checked | undefined => {
  const parts = /^([ABCDEFGHJNPQRSUVW])([0-9]{7})([0-9A-J])$/.exec(text)
  if (parts === null) return undefined
  const [entity, digits, control] = [parts[1] ?? "", parts[2] ?? "", parts[3] ?? ""]
  let sum = 0
  for (let index = 0; index < 7; index++) {
    const digit = Number(digits[index])
    // The digits in odd positions (from 1) are doubled and their digits added.
    sum += index % 2 === 1 ? digit : Math.floor((digit * 2) / 10) + ((digit * 2) % 10)
  }
  const check = (10 - (sum % 10)) % 10
  const asLetter = "JABCDEFGHI"[check]
  const right =
    digits.startsWith("00") || "NPQRSW".includes(entity)
      ? control === asLetter
      : "ABEH".includes(entity)
        ? control === String(check)
        : control === String(check) || control === asLetter
  return { kind: spanish("CIF"), right }
}

/** Lengths by country, from the register of ISO 13616: `AD24` is 24 characters in Andorra. */
const ibanLengths: ReadonlyMap<string, number> = new Map(
  (
    "AD24 AE23 AL28 AT20 AZ28 BA20 BE16 BG22 BH22 BI27 BR29 BY28 CH21 CR22 CY28 CZ24 DE22 DJ27 DK18 " +
    "DO28 EE20 EG29 ES24 FI18 FK18 FO18 FR27 GB22 GE22 GI23 GL18 GR27 GT28 HN28 HR21 HU28 IE22 IL23 " +
    "IQ23 IS26 IT27 JO30 KW30 KZ20 LB28 LC32 LI21 LT20 LU20 LV21 LY25 MC27 MD24 ME22 MK19 MN20 MR27 " +
    "MT31 MU30 NI28 NL18 NO15 OM23 PK24 PL28 PS29 PT25 QA29 RO24 RS22 RU33 SA24 SC31 SD18 SE24 SI19 " +
    "SK24 SM27 SO23 ST25 SV28 TL23 TN24 TR26 UA29 VA22 VG24 XK20 YE30"
  )
    .split(" ")
    .map((entry) => [entry.slice(0, 2), Number(entry.slice(2))] as const),
)

const remainder = (digits: string, divisor: number): number => {
  let rest = 0
  for (const digit of digits) rest = (rest * 10 + Number(digit)) % divisor
  return rest
}

/** If hexadecimal letters begin it, a machine's id can have the form too, unless this is checked as well. */
const ibanDigits = /^(?:(?:AE|BA|BE|DE|EE|ES)\d+$|AD\d{10}|(?!AD|AE|BA|BE|DE|EE|ES))/

/** An account number. `text` has no separators, and its letters are capitals. */
const checkIban = (text: string): Checked | undefined => {
  if (!/^[A-Z]{2}\d{2}[A-Z0-9]{11,30}$/.test(text)) return undefined
  if (ibanLengths.get(text.slice(0, 2)) !== text.length || !ibanDigits.test(text)) return undefined
  const turned = text.slice(4) + text.slice(0, 4)
  const digits = turned.replaceAll(/[A-Z]/g, (letter) => String(letter.charCodeAt(0) - 55))
  return { kind: "an account number (IBAN)", right: remainder(digits, 97) === 1 }
}

/** Two digits for the province (66 abroad), seven or eight for the number, two control digits. */
const checkSocialSecurity = (text: string): Checked | undefined => {
  const parts = /^(\d{2})(\d{7,8})(\d{2})$/.exec(text)
  if (parts === null || text.length !== 12) return undefined
  const [province, number, control] = [parts[1] ?? "", Number(parts[2]), Number(parts[3])]
  if (!/^(?:0[1-9]|[1-4]\d|5[0-3]|66)$/.test(province)) return undefined
  // In a number below ten million, the leading zero is left out.
  const joined =
    number < 10_000_000 ? Number(province) * 10_000_000 + number : Number(`${province}${parts[2]}`)
  return { kind: "a Spanish social-security number", right: joined % 97 === control }
}

const nitWeights = [3, 7, 13, 17, 19, 23, 29, 37, 41, 43, 47, 53, 59, 67, 71]

/** The check digit of a NIT, from its digits in reverse order. */
const nitCheck = (digits: string): number => {
  const sum = [...digits].reverse().reduce((all, digit, at) => all + Number(digit) * (nitWeights[at] ?? 0), 0)
  return sum % 11 < 2 ? sum % 11 : 11 - (sum % 11)
}

const colombian = (kind: string) => `a Colombian identity number (${kind})`
const grouped = /^[1-9]\d{0,2}(?:[.\s]\d{3}){2,3}$/

/**
 * CC, CE, TI and NIT. Only the NIT has a check digit, and only a number written as a NIT (named, or in
 * groups with a hyphen before the check digit) is `right`: one in eleven other numbers has it by chance.
 * The others are numbers of six to eleven digits, recognised only by their name or their groups.
 */
const checkColombian = (text: string): Checked | undefined => {
  const named = /^(cc|c\.c\.?|ce|c\.e\.?|ti|t\.i\.?|nit)[-:.\s_#/]*([1-9][\d.\s]*\d)(?:[-/]?(\d))?$/i.exec(
    text,
  )
  const code = named?.[1]?.replaceAll(".", "").toUpperCase()
  const digits = (named?.[2] ?? text).replaceAll(/[.\s]/g, "")
  if (code === "NIT") {
    const whole = digits + (named?.[3] ?? "")
    if (whole.length < 7 || whole.length > 11) return undefined
    return { kind: colombian(code), right: isNit(whole) }
  }
  if (code !== undefined && named?.[3] === undefined)
    return digits.length >= 6 && digits.length <= 11 ? { kind: colombian(code), right: false } : undefined
  const hyphened = /^([1-9][\d.\s]{5,12}\d)-(\d)$/.exec(text)
  if (hyphened !== null) {
    const whole = (hyphened[1] ?? "").replaceAll(/[.\s]/g, "") + hyphened[2]
    if (!isNit(whole)) return undefined
    return { kind: colombian("NIT"), right: grouped.test(hyphened[1] ?? "") }
  }
  if (/^[89]\d{9}$/.test(text) && isNit(text)) return { kind: colombian("NIT"), right: false }
  return grouped.test(text) ? { kind: colombian("CC"), right: false } : undefined
}

const isNit = (whole: string): boolean =>
  whole.length >= 7 && whole.length <= 11 && nitCheck(whole.slice(0, -1)) === Number(whole.at(-1))

type PersonalDataVerdict =
  | { readonly _tag: "Clean" }
  | { readonly _tag: "Certain"; readonly kind: string }
  | { readonly _tag: "Resembles"; readonly kind: string }

const clean: PersonalDataVerdict = { _tag: "Clean" }
const certain = (kind: string): PersonalDataVerdict => ({ _tag: "Certain", kind })
const resembles = (kind: string): PersonalDataVerdict => ({ _tag: "Resembles", kind })

const email = /^[^\s@"]+@[^\s@".]+(?:\.[^\s@".]+)+$/

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
