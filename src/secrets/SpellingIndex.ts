/**
 * Finds every spelling of very many secrets in a text in one pass, whose time does not grow with their
 * number: four characters tell whether anything begins here at all, then only lengths that begin so are
 * looked up. Case is folded, in ASCII only, so that places in the folded text are places in the text.
 */
import type { Spelling } from "./Spellings.ts"

/** Shorter spellings are not indexed. */
export const windowSize = 4
/** So much of a spelling is looked up; the rest is compared. */
const anchorMax = 64
const filterBits = 22

/** A spelling with its text folded. */
export interface Indexed<About> extends Spelling {
  readonly about: About
}

export interface Span {
  from: number
  to: number
}

export const fold = (text: string): string => text.replaceAll(/[A-Z]+/g, (letters) => letters.toLowerCase())

const foldCode = (code: number): number => (code >= 65 && code <= 90 ? code + 32 : code)

const hashAt = (text: string, at: number): number => {
  let hash = 0
  for (let next = at; next < at + windowSize; next++)
    hash = Math.imul(hash, 0x01000193) ^ foldCode(text.charCodeAt(next))
  return hash >>> 0
}

const base64 = /[A-Za-z0-9+/_-]/

export class SpellingIndex<About> {
  /** Empty until there is something to find. */
  #filter = new Uint8Array(0)
  /** Lengths of anchors by the hash of their beginning: many thousand user names may begin alike. */
  readonly #lengths = new Map<number, Array<number>>()
  readonly #byAnchor = new Map<string, Array<Indexed<About>>>()

  add(spelling: Spelling, about: About): void {
    if (spelling.text.length < windowSize) return
    const { isEncoded, before, behind } = spelling
    const text = fold(spelling.text)
    const indexed: Indexed<About> = { text, isEncoded, before, behind, about }
    const anchor = text.length > anchorMax ? text.slice(0, anchorMax) : text
    const known = this.#byAnchor.get(anchor)
    if (known !== undefined) {
      // What differs in its case alone is found by the first.
      if (!known.some((other) => other.text === text && other.about === about)) known.push(indexed)
      return
    }
    this.#byAnchor.set(anchor, [indexed])
    const hash = hashAt(text, 0)
    const bit = hash >>> (32 - filterBits)
    if (this.#filter.length === 0) this.#filter = new Uint8Array(2 ** (filterBits - 3))
    this.#filter[bit >> 3] = (this.#filter[bit >> 3] ?? 0) | (1 << (bit & 7))
    const lengths = this.#lengths.get(hash)
    if (lengths === undefined) this.#lengths.set(hash, [anchor.length])
    else if (!lengths.includes(anchor.length)) lengths.push(anchor.length)
  }

  /** Where something stands that `counts` in this text; spans that touch are one. */
  find(text: string, counts: (found: Indexed<About>) => boolean): ReadonlyArray<Span> {
    const spans: Array<Span> = []
    if (this.#filter.length === 0) return spans
    for (let at = 0; at + windowSize <= text.length; at++) {
      const hash = hashAt(text, at)
      const bit = hash >>> (32 - filterBits)
      if (((this.#filter[bit >> 3] ?? 0) & (1 << (bit & 7))) === 0) continue
      for (const length of this.#lengths.get(hash) ?? []) this.#findAt(text, at, length, counts, spans)
    }
    return spans
  }

  #findAt(
    text: string,
    at: number,
    length: number,
    counts: (found: Indexed<About>) => boolean,
    spans: Array<Span>,
  ): void {
    if (at + length > text.length) return
    for (const found of this.#byAnchor.get(fold(text.slice(at, at + length))) ?? []) {
      const end = at + found.text.length
      const isWhole =
        found.text.length === length || (end <= text.length && fold(text.slice(at, end)) === found.text)
      if (isWhole && isAlone(text, at, end, found) && counts(found)) join(spans, widen(text, at, end, found))
    }
  }
}

/** A number inside a longer number is another number. */
const isAlone = (text: string, at: number, end: number, { isEncoded, text: spelled }: Spelling): boolean =>
  isEncoded || !/^\d+$/.test(spelled) || !(isDigitAt(text, at - 1) || isDigitAt(text, end))

const isDigitAt = (text: string, at: number): boolean => /\d/.test(text.charAt(at))

const widen = (text: string, at: number, end: number, { before, behind }: Spelling): Span => {
  let to = end
  if (behind === 1 && base64.test(text.charAt(to))) to += 1
  while (behind === 1 && to < end + 3 && text.charAt(to) === "=") to += 1
  return { from: before === 1 && base64.test(text.charAt(at - 1)) ? at - 1 : at, to }
}

/** Spans come nearly in order: one that begins inside the last one belongs to it. */
const join = (spans: Array<Span>, span: Span): void => {
  const last = spans.at(-1)
  if (last === undefined || span.from > last.to) {
    spans.push(span)
    return
  }
  last.from = Math.min(last.from, span.from)
  last.to = Math.max(last.to, span.to)
}
