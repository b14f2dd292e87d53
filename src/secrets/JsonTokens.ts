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

const string = /"(?:[^"\\]|\\.)*"/y
const scalar = /[^\s,:[\]{}"]+/y

interface Level {
  readonly isObject: boolean
  key: string | undefined
}

/**
 * Longer paths keep their outermost and innermost keys, so that a deeply nested body costs no more than its
 * length.
 */
export const pathKeysMax = 64

export function* jsonTokens(text: string): Generator<JsonToken> {
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
      const pattern = character === '"' ? string : scalar
      pattern.lastIndex = at
      const to = pattern.test(text) ? pattern.lastIndex : at + 1
      if (character === '"' && awaitsKey && level !== undefined) {
        level.key = String(JSON.parse(text.slice(at, to)))
        keys = keysOf(levels)
        awaitsKey = false
        yield { from: at, to, path: keys, isKey: true }
      } else if (!/[\s:]/.test(character ?? "")) {
        yield { from: at, to, path: keys, isKey: false }
      }
      at = to
    }
  }
}

const keysOf = (levels: ReadonlyArray<Level>): ReadonlyArray<string> => {
  const near =
    levels.length > pathKeysMax ? [...levels.slice(0, 1), ...levels.slice(1 - pathKeysMax)] : levels
  return near.flatMap(({ key }) => (key === undefined ? [] : [key]))
}
