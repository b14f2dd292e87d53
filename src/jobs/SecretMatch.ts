/**
 * Finds known secrets in texts that leave this machine and must not contain one: as the whole text or
 * inside it, in any case, with white space around it, percent-encoded, in base64 or in hexadecimal. Pure;
 * the time for one text does not grow with the number of secrets.
 */

import { isDigits, isInsideSize, leavesOf } from "../privacy/KnownSecrets.ts"

const keepings = ["value", "reference", "password"] as const
export type Keeping = (typeof keepings)[number]

export interface KnownSecret {
  /** Any login value; strings and numbers inside lists and mappings count one by one. */
  readonly value: unknown
  /** Safe to show. */
  readonly whose: string
  /**
   * A password by its form or by the name of its field; or at least a value kept elsewhere; or any other
   * value of a login, which may be a harmless word too.
   */
  readonly kept: Keeping
}

export interface SecretFound {
  readonly secret: KnownSecret
  readonly how: "is" | "contains"
  readonly isEncoded: boolean
  /** Too long to match by chance. */
  readonly isLong: boolean
}

/** The shortest text that is recognised inside another one; secrets are looked up by this many characters. */
const beginning = 6
/** Of four letters in base64, three are left, which match any word by chance. */
const encodedMin = 4

/** Case is ignored: a password in capitals gives nearly all of it away. */
const fold = (text: string): string => text.normalize("NFKC").trim().toLowerCase()

const percentDecoded = (text: string): string =>
  text.replaceAll(/(?:%[0-9A-Fa-f]{2})+/g, (run) =>
    Buffer.from(run.replaceAll("%", ""), "hex").toString("utf8"),
  )

const runs = [
  { of: /[A-Za-z0-9+/]{4,}/g, encoding: "base64" },
  { of: /[A-Za-z0-9_-]{4,}/g, encoding: "base64url" },
  { of: /[0-9A-Fa-f]{8,}/g, encoding: "hex" },
] as const

/** Each run of the alphabets, from each place where an encoded text may begin in it. */
const decodedRuns = (text: string): ReadonlyArray<string> =>
  runs.flatMap(({ of, encoding }) =>
    [...text.matchAll(of)].flatMap(([run]) =>
      [0, 1, 2, 3].map((skipped) => Buffer.from(run.slice(skipped), encoding).toString("utf8")),
    ),
  )

/** The text's other readings, two encodings deep at most. */
const otherReadings = (text: string): ReadonlySet<string> => {
  const plain = percentDecoded(text)
  const readings = [plain, plain.replaceAll("+", " "), percentDecoded(plain)]
  const decoded = new Set([text, ...readings].flatMap(decodedRuns))
  const all = new Set([...readings, ...decoded, ...[...decoded].map(percentDecoded)])
  all.delete(text)
  return all
}

const rank = ({ kept }: KnownSecret): number => keepings.indexOf(kept)

const makeIndex = (secrets: Iterable<KnownSecret>) => {
  const whole = new Map<string, KnownSecret>()
  // Lengths by first characters: many thousand user names may begin alike.
  const lengths = new Map<string, Set<number>>()
  for (const secret of secrets) {
    for (const leaf of leavesOf(secret.value)) {
      const text = fold(leaf)
      const known = whole.get(text)
      if (known !== undefined && rank(known) >= rank(secret)) continue
      whole.set(text, secret)
      if (known !== undefined || !isInsideSize(text)) continue
      const start = text.slice(0, beginning)
      lengths.set(start, (lengths.get(start) ?? new Set()).add(text.length))
    }
  }
  return { whole, lengths }
}

/** Returns everything that a text contains, unencoded matches first, whole ones before partial ones. */
export const makeSecretFinder = (secrets: Iterable<KnownSecret>) => {
  const { whole, lengths } = makeIndex(secrets)
  const findIn = (text: string, isEncoded: boolean): ReadonlyArray<SecretFound> => {
    const found: Array<SecretFound> = []
    const same = whole.get(text)
    if (same !== undefined) found.push({ secret: same, how: "is", isEncoded, isLong: isInsideSize(text) })
    for (let at = 0; at + beginning <= text.length; at++) {
      for (const length of lengths.get(text.slice(at, at + beginning)) ?? []) {
        const part = text.slice(at, at + length)
        const isPart = part.length === length && length < text.length
        const secret = isPart ? whole.get(part) : undefined
        const goesOn = /\d/.test(text.charAt(at - 1)) || /\d/.test(text.charAt(at + length))
        if (secret === undefined || (isDigits(part) && goesOn)) continue
        found.push({ secret, how: "contains", isEncoded, isLong: true })
      }
    }
    return found
  }
  return (text: string): ReadonlyArray<SecretFound> => {
    const encoded = [...otherReadings(text)].map(fold).filter(({ length }) => length >= encodedMin)
    return [...findIn(fold(text), false), ...encoded.flatMap((reading) => findIn(reading, true))]
  }
}
