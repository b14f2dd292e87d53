/**
 * The strings, numbers and words of a JSON text with the place they stand at, without parsing it into values:
 * so that a single token can be replaced and all others keep their spelling. The text must be valid JSON;
 * depth costs no stack.
 */

export interface JsonToken {
  readonly from: number
  readonly to: number
  /** Keys of the objects around it, outermost first (lists add none); a key's own path ends with itself. */
  readonly path: ReadonlyArray<string>
  readonly isKey: boolean
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
/** What ends a number or a word: white space, a comma, a colon, a bracket or a quote. */
const endsWord = (unit: number): boolean =>
  unit <= 0x20 ||
  unit === 0x2c ||
  unit === 0x3a ||
  unit === quote ||
  unit === 0x5b ||
  unit === 0x5d ||
  unit === 0x7b ||
  unit === 0x7d

const wordEnd = (text: string, from: number): number => {
  let at = from + 1
  while (at < text.length && !endsWord(text.charCodeAt(at))) at++
  return at
}

/** What a JSON string says; only escapes need a parser. */
export const stringValue = (source: string): string =>
  source.includes("\\") ? String(JSON.parse(source)) : source.slice(1, -1)

/** Where the string, number or word at `from` ends; `from` where none stands there. */
export const valueEnd = (text: string, from: number): number => {
  const unit = text.charCodeAt(from)
  if (unit === quote) return stringEnd(text, from)
  return from >= text.length || endsWord(unit) ? from : wordEnd(text, from)
}

interface Level {
  readonly isObject: boolean
  key: string | undefined
}

/**
 * Longer paths keep their outermost and innermost keys, so that a deeply nested body costs no more than its
 * length.
 */
export const pathKeysMax = 64

/** Where the value that begins at `from` ends, whatever is in it. */
const wholeEnd = (text: string, from: number): number => {
  let at = from
  let depth = 0
  while (at < text.length) {
    const unit = text.charCodeAt(at)
    if (unit === quote) at = stringEnd(text, at)
    else {
      if (unit === 0x7b || unit === 0x5b) depth += 1
      else if (unit === 0x7d || unit === 0x5d) depth -= 1
      else if (depth === 0 && !endsWord(unit)) return wordEnd(text, at)
      at += 1
    }
    if (depth === 0 && unit > 0x20 && unit !== 0x3a) return at
  }
  return at
}

/** All tokens but those of the values of one top-level key, `skipped`, which may be most of the text. */
export function* jsonTokens(text: string, skipped?: string): Generator<JsonToken> {
  const levels: Array<Level> = []
  let keys: ReadonlyArray<string> = []
  let awaitsKey = false
  for (let at = 0; at < text.length;) {
    const character = text[at]
    const level = levels.at(-1)
    if (character === "{" || character === "[") {
      levels.push({ isObject: character === "{", key: undefined })
      awaitsKey = character === "{"
      at += 1
    } else if (character === "}" || character === "]") {
      levels.pop()
      keys = keysOf(levels)
      at += 1
    } else if (character === ",") {
      awaitsKey = level?.isObject === true
      at += 1
    } else {
      const unit = text.charCodeAt(at)
      const to = Math.max(at + 1, valueEnd(text, at))
      if (character === '"' && awaitsKey && level !== undefined) {
        level.key = stringValue(text.slice(at, to))
        keys = keysOf(levels)
        awaitsKey = false
        yield { from: at, to, path: keys, isKey: true }
        if (levels.length === 1 && level.key === skipped) {
          at = wholeEnd(text, to)
          continue
        }
      } else if (unit === quote || !endsWord(unit)) {
        yield { from: at, to, path: keys, isKey: false }
      }
      at = to
    }
  }
}

/** By a plain loop: it runs for every key and bracket of every answer. */
const keysOf = (levels: ReadonlyArray<Level>): ReadonlyArray<string> => {
  const keys: Array<string> = []
  const innermost = Math.max(1, levels.length - pathKeysMax + 1)
  for (let at = 0; at < levels.length; at = at === 0 ? innermost : at + 1) {
    const key = levels[at]?.key
    if (key !== undefined) keys.push(key)
  }
  return keys
}
