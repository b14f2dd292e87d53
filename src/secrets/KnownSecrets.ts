/**
 * Every secret that this process has met, in every spelling, and the one rule that says where which of them
 * is blanked. Whoever learns a secret holds it here before it can be repeated; whatever the service says, and
 * whatever is written down or shown, passes here. One registry serves the process, so that an answer about
 * one customer gives away nobody else's password either.
 */
import { Context, Redacted } from "effect"
import { publicWords } from "./PublicWords.ts"
import { isDigits, isInsideSize, isPlainWord, leavesOf } from "./SecretValue.ts"
import { SpellingIndex } from "./SpellingIndex.ts"
import type { Indexed } from "./SpellingIndex.ts"
import { spellingsOf } from "./Spellings.ts"

export const blanked = "[blanked]"

/**
 * process: the application secret, keys, tickets and tokens, which nobody but this program knows. password: a
 * login value that somebody keeps elsewhere or that is a password by its name. login: any other login value,
 * which may be a choice or a date.
 */
export type Grade = "process" | "password" | "login"
const ranks: Readonly<Record<Grade, number>> = { login: 0, password: 1, process: 2 }

/**
 * echo: where the service repeats what it was sent. free: any field without a rule of its own. word: names
 * and codes that decisions rest on, where one person's password must not blank a family of records. own: what
 * is no answer to a login: forms, with the choices that people log in with, and what this program writes in
 * words of its own, which nobody's password may take away. id: what requests are made with.
 */
export type Place = "echo" | "free" | "word" | "own" | "id"

/** Shorter values would blank half of any text: they count only as a whole string or number. */
const echoPartMin = 4

interface Held {
  readonly value: string
  grade: Grade
}

type Found = Indexed<Held>

/** Nothing that an id may hold by chance: a UUID is digits and six letters. */
const isStrong = ({ text }: Found): boolean => text.length >= (/^[0-9a-f-]+$/.test(text) ? 24 : 12)

/** Whether other people write this down too: then it counts only where a login is repeated. */
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

/** Whether it counts as a whole text, however short. */
const isCountedWhole = (secret: Held, place: Place): boolean =>
  place === "echo" ||
  (place !== "id" &&
    secret.value.length >= echoPartMin &&
    (place !== "own" || (secret.grade !== "login" && !isByChance(secret))))

export interface KnownSecrets {
  /** From now on this is blanked; of lists and mappings each text and number. */
  readonly hold: (value: unknown, grade: Grade) => void
  /** Names of ours that are written down anyway: customer ids, engines, fields. They are no secrets. */
  readonly name: (words: Iterable<string>) => void
  /** The text with every secret in it blanked; the very text where there is none. */
  readonly clean: (text: string, place: Place) => string
  /** Whether a number, as it is written, is a secret. */
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

/** What the process's own last words are cleaned with, where no service can be asked any more. */
export const processSecrets: KnownSecrets = makeKnownSecrets()

/** Tests give each night a registry of its own. */
export const KnownSecrets = Context.Reference<KnownSecrets>("nightjar/secrets/KnownSecrets", {
  defaultValue: () => processSecrets,
})
