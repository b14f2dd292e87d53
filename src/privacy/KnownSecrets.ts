/**
 * Every secret that this process knows, in every spelling, and the one rule that decides where each is
 * blanked. A secret is registered here before it can be repeated; everything that the service sends, and
 * everything that is written or shown, passes through here. The process has one registry, so that an answer
 * about one customer does not reveal another customer's password either.
 */
import { Context, Redacted, Schema, SchemaAST } from "effect"
import { jsonIn, numberIn } from "../base/Text.ts"
import { EngineDetails } from "../service/Engine.ts"
import { Acceptance, ExecutionState, actionRequiredFields, exchangedFields } from "../service/Execution.ts"
import { flowResultsFields } from "../service/FlowResults.ts"
import * as Vocabulary from "../service/Vocabulary.ts"
import { decodeEscapes, placesIn } from "./Escapes.ts"

// Words that are not secrets although somebody may log in with them: the values and field names of the
// reference. They are all over landing, ledger and tables, and decisions depend on them.

const fieldsIn = (ast: SchemaAST.AST): ReadonlyArray<string> => {
  if (SchemaAST.isUnion(ast)) return ast.types.flatMap(fieldsIn)
  if (SchemaAST.isArrays(ast)) return ast.rest.flatMap(fieldsIn)
  if (!SchemaAST.isObjects(ast)) return []
  return [
    ...ast.propertySignatures.flatMap(({ name, type }) => [String(name), ...fieldsIn(type)]),
    ...ast.indexSignatures.flatMap(({ type }) => fieldsIn(type)),
  ]
}

const answers = [
  EngineDetails,
  Acceptance,
  ExecutionState,
  Schema.Struct(actionRequiredFields),
  Schema.Struct(flowResultsFields),
  Schema.Struct(exchangedFields),
]

export const publicWords: ReadonlySet<string> = new Set([
  ...Object.values(Vocabulary).flatMap((list) => (Array.isArray(list) ? list : [])),
  ...answers.flatMap(({ ast }) => fieldsIn(ast)),
  "detail",
])

// Which parts of a value count as secrets, and how long they must be to be recognised inside a longer text:
// `2024` is more likely a year than a PIN, and `website` more likely a word than a password.

/** Digits need two more, and no digit next to them: many dates contain a PIN of six digits. */
const insideMin = { text: 6, digits: 8 } as const

export const isDigits = (text: string): boolean => /^\d+$/.test(text)

/** Too long to be inside another text by chance. */
export const isInsideSize = (text: string): boolean =>
  text.length >= (isDigits(text) ? insideMin.digits : insideMin.text)

/** Letters, and the signs that join words: `financial_account:checking` may be somebody's password. */
const isPlainWord = (text: string): boolean => /^[A-Za-z_:@. -]+$/.test(text)

/** Texts and numbers, also inside lists and mappings; `true` and `false` are never secrets. */
export const leavesOf = (value: unknown): ReadonlyArray<string> => {
  if (typeof value === "number" || typeof value === "bigint") return [String(value)]
  if (typeof value === "string") return /^\s*(?:true|false)?\s*$/i.test(value) ? [] : [value]
  if (typeof value !== "object" || value === null) return []
  return Object.values(value).flatMap(leavesOf)
}

// How a secret may be spelled when it is repeated; in base64 from each of three positions, as a password in
// `user:password`. The reader decodes escapes and folds case, so one spelling covers all of these.

interface Spelling {
  /** Folded. */
  readonly text: string
  /** Nobody writes it by chance, and a digit next to it is not part of the same number. */
  readonly isEncoded: boolean
  /** Base64 characters before and after it that contain bits of the secret's first and last byte. */
  readonly before: 0 | 1
  readonly behind: 0 | 1
}

/** Where both cases are one character, so that positions in the folded text are positions in the text. */
const fold = (text: string): string =>
  text.replaceAll(/[A-Z\u00c0-\u00d6\u00d8-\u00de]+/g, (letters) => letters.toLowerCase())

/** Any text contains shorter ones: of four letters, three characters of base64 remain. */
const encodedMin = 6

/** How often a text is decoded: an address within an address, in a page. */
const decodedMax = 3

/** The text, and what it says once its escapes are decoded: again and again, as far as they go. */
const readingsOf = (text: string): ReadonlyArray<string> => {
  const readings = [text]
  for (let next = decodeEscapes(text); next !== readings.at(-1); next = decodeEscapes(next)) {
    readings.push(next)
    if (readings.length > decodedMax) break
  }
  return readings
}

/** With other ends of lines, accents apart or not, in either case, with the spaces of a form. */
const variantsOf = (value: string): ReadonlyArray<string> => {
  const lines = value.replaceAll("\r\n", "\n")
  const all = [value, lines, lines.replaceAll("\n", "\r\n")]
    .flatMap((text) => [text, text.toWellFormed(), text.normalize("NFC"), text.normalize("NFD")])
    .flatMap((text) => [text, text.toUpperCase(), text.toLowerCase()])
    .flatMap((text) => [text, text.replaceAll(" ", "+")])
  return [...new Set(all)]
}

/** A secret with signs that a decoder takes for escapes is also compared as they are decoded. */
const decodedOf = (text: string): ReadonlyArray<string> => {
  const decoded = readingsOf(text).at(-1) ?? text
  return decoded !== text && isInsideSize(decoded) ? [text, decoded] : [text]
}

/** The characters that depend only on the secret if `skipped` other bytes come before it. */
const inBase64 = (bytes: Buffer, skipped: 0 | 1 | 2): Spelling => {
  const whole = Buffer.concat([Buffer.alloc(skipped), bytes])
  const from = Math.ceil((skipped * 4) / 3)
  const to = Math.floor((whole.length * 4) / 3)
  return {
    text: whole.toString("base64").slice(from, to),
    isEncoded: true,
    before: skipped === 0 ? 0 : 1,
    behind: whole.length % 3 === 0 ? 0 : 1,
  }
}

/** The text, and its UTF-8 bytes read one by one. */
const withBytes = (text: string): ReadonlyArray<string> => [text, Buffer.from(text).toString("latin1")]

const plain = (text: string): Spelling => ({ text, isEncoded: false, before: 0, behind: 0 })
const encoded = (text: string): Spelling => ({ text, isEncoded: true, before: 0, behind: 0 })

const spellingsOf = (value: string): ReadonlyArray<Spelling> => {
  const bytes = Buffer.from(value)
  const base64 = [
    ...([0, 1, 2] as const).map((skipped) => inBase64(bytes, skipped)),
    encoded(bytes.toString("base64").replace(/=+$/, "")),
  ]
  const url = base64.map((one) => ({ ...one, text: one.text.replaceAll("+", "-").replaceAll("/", "_") }))
  const all = [
    ...variantsOf(value).flatMap(decodedOf).flatMap(withBytes).map(plain),
    ...[...base64, ...url, encoded(bytes.toString("hex"))].filter(({ text }) => text.length >= encodedMin),
  ]
  const folded = all.map((one) => ({ ...one, text: fold(one.text) }))
  return [...new Map(folded.map((one) => [one.text, one])).values()]
}

// Finds every spelling of many secrets in one pass: four characters show whether one can begin here, and only
// its lengths are looked up.

/** Shorter spellings are not found. */
const windowSize = 4
/** This much of a spelling is looked up; the rest is compared. */
const anchorMax = 64
/** In words of 32 bits. */
const filterSize = 131_072

interface Held {
  readonly value: string
  grade: Grade
}

interface Found extends Spelling {
  readonly about: Held
}

interface Span {
  from: number
  to: number
}

/** The last four characters, one byte of each; lower and upper case are equal. */
const nextWindow = (window: number, unit: number): number => (window << 8) | ((unit | 0x20) & 0xff)

/** Its upper bits depend on all four. */
const hashOf = (window: number): number => Math.imul(window, 0x2c1b3c6d)
/** Which of the bits of a filter's word. */
const bitOf = (hash: number): number => 1 << (hash >>> 10)

const hashAt = (text: string): number => {
  let window = 0
  for (let at = 0; at < windowSize; at++) window = nextWindow(window, text.charCodeAt(at))
  return hashOf(window)
}

const base64 = /[A-Za-z0-9+/_-]/

class SpellingIndex {
  /** Empty until there is something to find. */
  #filter = new Int32Array(0)
  /** Lengths of anchors by the hash of their beginning: thousands of user names may begin alike. */
  readonly #lengths = new Map<number, ReadonlyArray<number>>()
  readonly #byAnchor = new Map<string, Array<Found>>()

  add({ text, isEncoded, before, behind }: Spelling, about: Held): void {
    const anchor = text.slice(0, anchorMax)
    const indexed: Found = { text, isEncoded, before, behind, about }
    const known = this.#byAnchor.get(anchor)
    if (known !== undefined) return void known.push(indexed)
    this.#byAnchor.set(anchor, [indexed])
    const hash = hashAt(anchor)
    if (this.#filter.length === 0) this.#filter = new Int32Array(filterSize)
    this.#filter[hash >>> 15]! |= bitOf(hash)
    const lengths = this.#lengths.get(hash) ?? []
    if (!lengths.includes(anchor.length)) this.#lengths.set(hash, [...lengths, anchor.length])
  }

  /** Where the text contains a spelling that `counts`; spans that touch become one. */
  find(text: string, counts: (found: Found) => boolean, spansMax = Infinity): ReadonlyArray<Span> {
    const spans: Array<Span> = []
    let window = 0
    for (let end = 0; end < text.length && spans.length < spansMax; end++) {
      window = nextWindow(window, text.charCodeAt(end))
      const hash = hashOf(window)
      if ((this.#filter[hash >>> 15]! & bitOf(hash)) === 0) continue
      const at = end + 1 - windowSize
      if (at < 0) continue
      for (const length of this.#lengths.get(hash) ?? []) this.#findAt(text, at, length, counts, spans)
    }
    return spans
  }

  #findAt(
    text: string,
    at: number,
    length: number,
    counts: (found: Found) => boolean,
    spans: Array<Span>,
  ): void {
    for (const found of this.#byAnchor.get(fold(text.slice(at, at + length))) ?? []) {
      const end = at + found.text.length
      const isWhole = fold(text.slice(at, end)) === found.text
      if (isWhole && isAlone(text, at, end, found) && counts(found)) join(spans, widen(text, at, end, found))
    }
  }
}

/** A number inside a longer number is a different number. */
const isAlone = (text: string, at: number, end: number, { isEncoded, text: spelled }: Spelling): boolean =>
  isEncoded || !/^\d+$/.test(spelled) || !(isDigitAt(text, at - 1) || isDigitAt(text, end))

const isDigitAt = (text: string, at: number): boolean => /\d/.test(text.charAt(at))

const widen = (text: string, at: number, end: number, { before, behind }: Spelling): Span => {
  let to = end
  if (behind === 1 && base64.test(text.charAt(to))) to += 1
  while (behind === 1 && to < end + 3 && text.charAt(to) === "=") to += 1
  return { from: before === 1 && base64.test(text.charAt(at - 1)) ? at - 1 : at, to }
}

/** Spans come nearly in order: one that begins inside the previous one is merged into it. */
const join = (spans: Array<Span>, span: Span): void => {
  const last = spans.at(-1)
  if (last === undefined || span.from > last.to) {
    spans.push(span)
    return
  }
  last.from = Math.min(last.from, span.from)
  last.to = Math.max(last.to, span.to)
}

/** Where spans of the decoded text stand in the text that it was decoded from. */
const inSource = (spans: ReadonlyArray<Span>, source: string): ReadonlyArray<Span> => {
  if (spans.length === 0) return spans
  const places = placesIn(source)
  const placeOf = (at: number): number => places[at] ?? source.length
  return spans.map(({ from, to }) => ({ from: placeOf(from), to: placeOf(to) }))
}

const merged = (spans: ReadonlyArray<Span>): ReadonlyArray<Span> => {
  const inOrder: Array<Span> = []
  for (const span of spans.toSorted((one, other) => one.from - other.from)) join(inOrder, { ...span })
  return inOrder
}

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
  /**
   * From now on this is blanked; in lists and mappings, each text and number. So is what a form that asks
   * for a number or a list makes of a text, before anybody has seen that form.
   */
  readonly hold: (value: unknown, grade: Grade) => void
  /** Our own names, which are written down anyway: customer ids, engines, fields. They are not secrets. */
  readonly name: (words: Iterable<string>) => void
  /** The text with every secret in it blanked; the same text if there is none. */
  readonly clean: (text: string, place: Place) => string
  /** Whether a number is a secret, as it is written. */
  readonly isSecretNumber: (written: string, place: Place) => boolean
  /** False: in no part of this text is there anything to clean, wherever that part stands. */
  readonly mayConcern: (text: string) => boolean
}

/** So many secrets that are too short for the index are looked for one by one. */
const shortMax = 32

export const makeKnownSecrets = (): KnownSecrets => {
  const held = new Map<string, Held>()
  const short: Array<string> = []
  const words = new Set<string>()
  const index = new SpellingIndex()
  const isPublic = (value: string) => publicWords.has(value) || words.has(value)

  const holdText = (value: string, grade: Grade): void => {
    const known = held.get(value)
    if (known !== undefined) {
      if (ranks[grade] > ranks[known.grade]) known.grade = grade
      return
    }
    const secret: Held = { value, grade }
    held.set(value, secret)
    if (value.length < windowSize) short.push(value)
    for (const spelling of spellingsOf(value)) index.add(spelling, secret)
  }

  const isWholeSecret = (text: string, place: Place): boolean => {
    const secret = held.get(text)
    return secret !== undefined && !isPublic(text) && isCountedWhole(secret, place)
  }

  const spansIn = (text: string, counts: (found: Found) => boolean): ReadonlyArray<Span> => {
    const readings = readingsOf(text)
    const spans = readings.flatMap((reading, level) =>
      readings.slice(0, level).reduceRight(inSource, index.find(reading, counts)),
    )
    return readings.length === 1 ? spans : merged(spans)
  }

  return {
    hold: (value, grade) => {
      const opened = Redacted.isRedacted(value) ? Redacted.value(value) : value
      for (const leaf of leavesOf(opened)) {
        for (const sent of [leaf, ...leavesOf([numberIn(leaf), jsonIn(leaf)])]) holdText(sent, grade)
      }
    },
    name: (named) => {
      for (const word of named) words.add(word)
    },
    clean: (text, place) => {
      if (isPublic(text)) return text
      if (isWholeSecret(text, place)) return blanked
      const spans = spansIn(text, (found) => !isPublic(found.about.value) && isCounted(found, place))
      let kept = ""
      let from = 0
      for (const span of spans) {
        kept += text.slice(from, span.from) + blanked
        from = span.to
      }
      return kept + text.slice(from)
    },
    isSecretNumber: (written, place) =>
      // `8500.0` is 8500.
      [written, written.replace(/\.0+$/, "")].some(
        (number) =>
          isWholeSecret(number, place) && (place === "echo" || (isDigits(number) && isInsideSize(number))),
      ),
    mayConcern: (text) =>
      short.length > shortMax ||
      short.some((value) => text.includes(value)) ||
      readingsOf(text).some(
        (reading) => index.find(reading, ({ about }) => !isPublic(about.value), 1).length > 0,
      ),
  }
}

/** Cleans the last words of the process, when no service is available any more. */
export const processSecrets: KnownSecrets = makeKnownSecrets()

/** Tests give each run its own registry. */
export const KnownSecrets = Context.Reference<KnownSecrets>("nightjar/secrets/KnownSecrets", {
  defaultValue: () => processSecrets,
})
