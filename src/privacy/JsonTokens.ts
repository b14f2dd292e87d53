/**
 * The strings, numbers and words of a JSON text with what is known about their places, without parsing the
 * text into values: so that a single token can be replaced while all others keep their spelling. The text
 * must be valid JSON; depth takes no stack.
 */

export interface JsonToken<Around> {
  readonly from: number
  readonly to: number
  /** What the keys around it say; a key is in the object that it belongs to. */
  readonly around: Around
  readonly isKey: boolean
}

/** What is known at the top, and what a key adds for everything below it. Lists add nothing. */
export interface Surroundings<Around> {
  readonly top: Around
  readonly below: (around: Around, key: string) => Around
}

/** Where the string that begins at `from` ends, quote included; by hand, since a pattern overflows. */
const stringEnd = (text: string, from: number): number => {
  for (let at = from + 1; at < text.length; at++) {
    const unit = text.charCodeAt(at)
    if (unit === backslash) at++
    else if (unit === quote) return at + 1
  }
  return text.length
}

const quote = 0x22
const backslash = 0x5c
const marks: ReadonlySet<number> = new Set(Buffer.from(',:"[]{}'))
/** What ends a number or a word. */
const endsWord = (unit: number): boolean => unit <= 0x20 || marks.has(unit)

/** The value of a JSON string; only escapes need a parser. */
export const stringValue = (source: string): string =>
  source.includes("\\") ? String(JSON.parse(source)) : source.slice(1, -1)

/** Where the string, number or word at `from` ends; `from` if there is none. */
export const valueEnd = (text: string, from: number): number => {
  if (text.charCodeAt(from) === quote) return stringEnd(text, from)
  let at = from
  while (at < text.length && !endsWord(text.charCodeAt(at))) at++
  return at
}

/** Where the outermost object's member ends whose value begins after `from`: at a comma or the end. */
const memberEnd = (text: string, from: number): number => {
  let depth = 0
  let at = from
  for (; at < text.length; at = text[at] === '"' ? stringEnd(text, at) : at + 1) {
    const character = text[at]
    if (depth === 0 && character === ",") break
    if (character === "{" || character === "[") depth += 1
    else if (character === "}" || character === "]") depth -= 1
  }
  return at
}

interface Level<Around> {
  readonly outer: Level<Around> | undefined
  readonly around: Around
  readonly isObject: boolean
}

/** All tokens except one top-level key, `skipped`, and those of its values, which may be most of the text. */
export function* jsonTokens<Around>(
  text: string,
  { top, below }: Surroundings<Around>,
  skipped?: string,
): Generator<JsonToken<Around>> {
  let level: Level<Around> | undefined
  /** The object whose key comes next, if one does. */
  let awaiting: Level<Around> | undefined
  let around = top
  for (let at = 0; at < text.length;) {
    const character = text[at]
    const to = valueEnd(text, at)
    if (to > at && awaiting !== undefined) {
      const key = stringValue(text.slice(at, to))
      around = below(awaiting.around, key)
      const isSkipped = awaiting.outer === undefined && key === skipped
      if (!isSkipped) yield { from: at, to, around: awaiting.around, isKey: true }
      awaiting = undefined
      at = isSkipped ? memberEnd(text, to) : to
      continue
    }
    if (to > at) yield { from: at, to, around, isKey: false }
    else if (character === "{" || character === "[") {
      level = { outer: level, around, isObject: character === "{" }
      awaiting = character === "{" ? level : undefined
    } else if (character === "}" || character === "]") {
      around = level?.around ?? top
      level = level?.outer
    } else if (character === ",") awaiting = level?.isObject === true ? level : undefined
    at = Math.max(to, at + 1)
  }
}
