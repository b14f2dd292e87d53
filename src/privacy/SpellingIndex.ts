/**
 * Finds every spelling of many secrets in a text in one pass, whose time does not grow with their number:
 * four characters show whether any spelling can begin here, and only the lengths that begin with them are
 * looked up. Case is folded in ASCII only, so that positions in the folded text are positions in the text.
 */
import { fold } from "./Spellings.ts"
import type { Spelling } from "./Spellings.ts"

/** Shorter spellings are not found. */
const windowSize = 4
/** This much of a spelling is looked up; the rest is compared. */
const anchorMax = 64
/** In words of 32 bits. */
const filterSize = 131_072

export interface Indexed<About> extends Spelling {
  readonly about: About
}

export interface Span {
  from: number
  to: number
}

/** Hash of the first characters; lower and upper case are equal. */
const hashAt = (text: string, at: number): number => {
  let hash = 0
  for (let next = at; next < at + windowSize; next++)
    hash = Math.imul(hash, 0x01000193) ^ (text.charCodeAt(next) | 0x20)
  return hash
}

const base64 = /[A-Za-z0-9+/_-]/

export class SpellingIndex<About> {
  /** Empty until there is something to find. */
  #filter = new Int32Array(0)
  /** Lengths of anchors by the hash of their beginning: thousands of user names may begin alike. */
  readonly #lengths = new Map<number, ReadonlyArray<number>>()
  readonly #byAnchor = new Map<string, Array<Indexed<About>>>()

  add(spelling: Spelling, about: About): void {
    const anchor = spelling.text.slice(0, anchorMax)
    const { text, isEncoded, before, behind } = spelling
    const indexed: Indexed<About> = { text, isEncoded, before, behind, about }
    const known = this.#byAnchor.get(anchor)
    if (known !== undefined) return void known.push(indexed)
    this.#byAnchor.set(anchor, [indexed])
    const hash = hashAt(anchor, 0)
    if (this.#filter.length === 0) this.#filter = new Int32Array(filterSize)
    this.#filter[hash >>> 15]! |= 1 << hash
    const lengths = this.#lengths.get(hash) ?? []
    if (!lengths.includes(anchor.length)) this.#lengths.set(hash, [...lengths, anchor.length])
  }

  /** Where the text contains a spelling that `counts`; spans that touch become one. */
  find(text: string, counts: (found: Indexed<About>) => boolean): ReadonlyArray<Span> {
    const spans: Array<Span> = []
    for (let at = 0; at + windowSize <= text.length; at++) {
      const hash = hashAt(text, at)
      if ((this.#filter[hash >>> 15]! & (1 << hash)) === 0) continue
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
