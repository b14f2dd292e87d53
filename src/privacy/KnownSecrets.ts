/**
 * Every secret that this process knows, in every spelling, and the one rule that decides where each is
 * blanked. A secret is registered here before it can be repeated; everything that the service sends, and
 * everything that is written or shown, passes through here. The process has one registry, so that an answer
 * about one customer does not reveal another customer's password either.
 */
import { Context, Redacted } from "effect"
import { publicWords } from "./PublicWords.ts"
import { isDigits, isInsideSize, isPlainWord, leavesOf } from "./SecretValue.ts"
import { SpellingIndex } from "./SpellingIndex.ts"
import type { Indexed } from "./SpellingIndex.ts"
import { spellingsOf } from "./Spellings.ts"

export const blanked = "[blanked]"

/**
 * process: the application secret, keys, tickets and tokens, which only this program knows. password: a login
 * value that is kept outside the job, or whose name says that it is a password. login: any other login value,
 * which may be a choice or a date.
 */
export type Grade = "process" | "password" | "login"
const ranks: Readonly<Record<Grade, number>> = { login: 0, password: 1, process: 2 }

/**
 * echo: where the service repeats what it was sent. free: any field without its own rule. word: names and
 * codes that decisions depend on, where one person's password must not blank a family of records. own: text
 * that does not answer a login: forms, with the choices that people log in with, and the program's own words,
 * which nobody's password may blank. id: what requests are made with.
 */
export type Place = "echo" | "free" | "word" | "own" | "id"

/** Shorter values would blank half of any text: they count only as whole strings or numbers. */
const echoPartMin = 4

interface Held {
  readonly value: string
  grade: Grade
}

type Found = Indexed<Held>

/** Nothing that an id may contain by chance: a UUID consists of digits and six letters. */
const isStrong = ({ text }: Found): boolean => text.length >= (/^[0-9a-f-]+$/.test(text) ? 24 : 12)

/** Whether other people may write this by chance: then it counts only where a login is repeated. */
const isByChance = ({ value, grade }: Held): boolean => grade !== "process" && isPlainWord(value)

const isCounted = (found: Found, place: Place): boolean => {
  const { value, grade } = found.about
  const mayBeWord = !found.isEncoded && isByChance(found.about)
  switch (place) {
    case "echo":
      return value.length >= echoPartMin
    case "free":
      return isInsideSize(value)
    case "word":
      return isInsideSize(value) && !mayBeWord
    case "own":
      return isInsideSize(value) && !mayBeWord && grade !== "login"
    case "id":
      return isStrong(found) && !mayBeWord && grade !== "login"
  }
}

/** Whether it counts if it is the whole text, however short. */
const isCountedWhole = (secret: Held, place: Place): boolean =>
  place === "echo" ||
  (place !== "id" &&
    secret.value.length >= echoPartMin &&
    (place !== "own" || (secret.grade !== "login" && !isByChance(secret))))

export interface KnownSecrets {
  /** From now on this is blanked; in lists and mappings, each text and number. */
  readonly hold: (value: unknown, grade: Grade) => void
  /** Our own names, which are written down anyway: customer ids, engines, fields. They are not secrets. */
  readonly name: (words: Iterable<string>) => void
  /** The text with every secret in it blanked; the same text if there is none. */
  readonly clean: (text: string, place: Place) => string
  /** Whether a number is a secret, as it is written. */
  readonly isSecretNumber: (written: string, place: Place) => boolean
}

export const makeKnownSecrets = (): KnownSecrets => {
  const held = new Map<string, Held>()
  const words = new Set<string>()
  const index = new SpellingIndex<Held>()
  const isPublic = (value: string) => publicWords.has(value) || words.has(value)

  const holdText = (value: string, grade: Grade): void => {
    const known = held.get(value)
    if (known !== undefined) {
      if (ranks[grade] > ranks[known.grade]) known.grade = grade
      return
    }
    const secret: Held = { value, grade }
    held.set(value, secret)
    for (const spelling of spellingsOf(value)) index.add(spelling, secret)
  }

  const isWholeSecret = (text: string, place: Place): boolean => {
    const secret = held.get(text)
    return secret !== undefined && !isPublic(text) && isCountedWhole(secret, place)
  }

  return {
    hold: (value, grade) => {
      const opened = Redacted.isRedacted(value) ? Redacted.value(value) : value
      for (const leaf of leavesOf(opened)) holdText(leaf, grade)
    },
    name: (named) => {
      for (const word of named) words.add(word)
    },
    clean: (text, place) => {
      if (isPublic(text)) return text
      if (isWholeSecret(text, place)) return blanked
      const spans = index.find(text, (found) => !isPublic(found.about.value) && isCounted(found, place))
      let kept = ""
      let from = 0
      for (const span of spans) {
        kept += text.slice(from, span.from) + blanked
        from = span.to
      }
      return kept + text.slice(from)
    },
    isSecretNumber: (written, place) =>
      isWholeSecret(written, place) && (place === "echo" || (isDigits(written) && isInsideSize(written))),
  }
}

/** Cleans the last words of the process, when no service is available any more. */
export const processSecrets: KnownSecrets = makeKnownSecrets()

/** Tests give each run its own registry. */
export const KnownSecrets = Context.Reference<KnownSecrets>("nightjar/secrets/KnownSecrets", {
  defaultValue: () => processSecrets,
})
