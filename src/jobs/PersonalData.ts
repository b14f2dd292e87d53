/**
 * Refuses personal data where the reference forbids it (4.1: a `customer_id` is stored, echoed on every event
 * and may stand in webhook URLs). What is certain, by its check letter, is refused; what only resembles is a
 * warning. Nothing here repeats the value it judges.
 */

export type PersonalDataVerdict =
  | { readonly _tag: "Clean" }
  | { readonly _tag: "Certain"; readonly kind: string }
  | { readonly _tag: "Resembles"; readonly kind: string }

const clean: PersonalDataVerdict = { _tag: "Clean" }
const letters = "TRWAGMYFPDXBNJZSQVHLCKE"
const letterOf = (digits: number): string | undefined => letters[digits % 23]

/**
 * DNI, NIE and the K, L and M numbers: undefined when it has not even their form, else whether the letter is
 * right.
 */
const checkPersonNumber = (text: string): { readonly kind: string; readonly right: boolean } | undefined => {
  const dni = /^([0-9]{8})([A-Z])$/.exec(text)
  if (dni !== null) return { kind: "DNI", right: letterOf(Number(dni[1])) === dni[2] }
  const nie = /^([XYZ])([0-9]{7})([A-Z])$/.exec(text)
  if (nie !== null) {
    const first = "XYZ".indexOf(nie[1] ?? "")
    return { kind: "NIE", right: letterOf(Number(`${first}${nie[2]}`)) === nie[3] }
  }
  const special = /^[KLM]([0-9]{7})([A-Z])$/.exec(text)
  if (special !== null) return { kind: "NIF", right: letterOf(Number(special[1])) === special[2] }
  return undefined
}

/**
 * CIF: a letter for the kind of entity, two digits of province, five of number, a digit or a letter of
 * control.
 */
const checkCif = (text: string): { readonly kind: string; readonly right: boolean } | undefined => {
  const parts = /^([ABCDEFGHJNPQRSUVW])([0-9]{7})([0-9A-J])$/.exec(text)
  if (parts === null) return undefined
  const [entity, digits, control] = [parts[1] ?? "", parts[2] ?? "", parts[3] ?? ""]
  let sum = 0
  for (let index = 0; index < 7; index++) {
    const digit = Number(digits[index])
    // The odd places (from 1) are doubled and their digits added.
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
  return { kind: "CIF", right }
}

const email = /^[^\s@"]+@[^\s@".]+(?:\.[^\s@".]+)+$/

/**
 * Is this id personal data? Separators that people write into numbers (`12345678-Z`) don't hide one.
 * Lower-case `c-` and a counter is the commonest form of one's own ids, and one in ten of those has the right
 * digit of a CIF by chance: with a separator after a lower-case letter it only resembles one.
 */
export const judgeCustomerId = (id: string): PersonalDataVerdict => {
  const text = id.trim()
  if (email.test(text)) return { _tag: "Certain", kind: "an e-mail address" }
  if (text.includes("@")) return { _tag: "Resembles", kind: "an e-mail address" }
  const bare = text.toUpperCase().replaceAll(/[-. ]/g, "")
  const identity = (kind: string) => `a Spanish identity number (${kind})`
  const person = checkPersonNumber(bare)
  if (person !== undefined) {
    return { _tag: person.right ? "Certain" : "Resembles", kind: identity(person.kind) }
  }
  const company = checkCif(bare)
  if (company !== undefined) {
    const counter = /^[a-z][-. ]/.test(text)
    if (company.right) return { _tag: counter ? "Resembles" : "Certain", kind: identity("CIF") }
    return counter ? clean : { _tag: "Resembles", kind: identity("CIF") }
  }
  const inside = text
    .toUpperCase()
    .split(/[^A-Z0-9]+/)
    .map(checkPersonNumber)
    .find((part) => part?.right === true)
  return inside === undefined ? clean : { _tag: "Resembles", kind: identity(inside.kind) }
}
