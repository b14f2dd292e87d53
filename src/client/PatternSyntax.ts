/**
 * A regular expression of a form (ECMA 262, as JSON Schema asks) in the syntax of RE2, whose matching takes
 * time in proportion to the text. The two differ in some signs (what `\s` and `.` match, which letters may
 * be escaped), so every sign is written out. What RE2 cannot express is refused and named, and so is a
 * pattern that grows beyond the limits when its repetitions are written out.
 */

export type Translation =
  | { readonly _tag: "Linear"; readonly source: string }
  /** `why` is a clause that follows "is not checked: ". */
  | { readonly _tag: "Refused"; readonly why: string }

const lengthMax = 2_000
/** Signs of a pattern after its counted repetitions are written out. */
const sizeMax = 5_000

type Ranges = ReadonlyArray<readonly [first: number, last: number]>
const spaces: Ranges = [
  [0x09, 0x0d],
  [0x20, 0x20],
  [0xa0, 0xa0],
  [0x1680, 0x1680],
  [0x2000, 0x200a],
  [0x2028, 0x2029],
  [0x202f, 0x202f],
  [0x205f, 0x205f],
  [0x3000, 0x3000],
  [0xfeff, 0xfeff],
]
const lastPoint = 0x10ffff
const point = (code: number): string => `\\x{${code.toString(16)}}`
const inClass = (ranges: Ranges): string =>
  ranges.map(([first, last]) => `${point(first)}-${point(last)}`).join("")
const othersThan = (ranges: Ranges): Ranges => [
  ...ranges.map(([first], index): Ranges[number] => [(ranges[index - 1]?.[1] ?? -1) + 1, first - 1]),
  [(ranges.at(-1)?.[1] ?? -1) + 1, lastPoint],
]
/** What may appear in a class for each escape that is a set of characters. */
const sets: ReadonlyMap<string, string> = new Map([
  ["s", inClass(spaces)],
  ["S", inClass(othersThan(spaces))],
  ["d", "\\d"],
  ["D", "\\D"],
  ["w", "\\w"],
  ["W", "\\W"],
])
const controls: ReadonlyMap<string, number> = new Map([
  ["t", 0x09],
  ["n", 0x0a],
  ["v", 0x0b],
  ["f", 0x0c],
  ["r", 0x0d],
  ["0", 0x00],
])

interface Reading {
  readonly pattern: string
  readonly unicode: boolean
  at: number
  refused: string | undefined
}
type Sign =
  | { readonly _tag: "Point"; readonly code: number }
  | { readonly _tag: "Set"; readonly inClass: string }

/** What `new RegExp` accepts: with the u flag, as JSON Schema asks, or without it if only that works. */
const parses = (pattern: string, flags: string): boolean => {
  try {
    return new RegExp(pattern, flags) instanceof RegExp
  } catch {
    return false
  }
}

export const translatePattern = (pattern: string): Translation => {
  if (pattern.length > lengthMax) return { _tag: "Refused", why: `it is longer than ${lengthMax} characters` }
  const unicode = parses(pattern, "u")
  if (!unicode && !parses(pattern, "")) return { _tag: "Refused", why: "it is not a regular expression" }
  const reading: Reading = { pattern, unicode, at: 0, refused: undefined }
  const source = translate(reading)
  return reading.refused === undefined
    ? { _tag: "Linear", source }
    : { _tag: "Refused", why: reading.refused }
}

/** The size of each open group so far, innermost last, and that of the newest sign or group. */
interface Sizes {
  readonly open: Array<number>
  newest: number
}

const translate = (reading: Reading): string => {
  const { pattern } = reading
  const sizes: Sizes = { open: [0], newest: 0 }
  let source = ""
  while (reading.at < pattern.length && reading.refused === undefined) {
    const sign = pattern[reading.at] ?? ""
    if (sign === "(") {
      source += openGroup(reading)
      sizes.open.push(0)
    } else if (sign === ")") {
      reading.at += 1
      source += ")"
      grow(reading, sizes, (sizes.open.length > 1 ? sizes.open.pop() : undefined) ?? 0)
    } else if (sign === "^" || sign === "$" || sign === "|") {
      reading.at += 1
      source += sign
      grow(reading, sizes, 1)
    } else {
      const repetition = repetitionAt(pattern, reading.at)
      if (repetition === undefined) {
        source += atom(reading)
        grow(reading, sizes, 1)
      } else {
        reading.at += repetition.text.length
        source += repetition.text
        grow(reading, sizes, sizes.newest * Math.max(0, repetition.times - 1), sizes.newest)
      }
    }
  }
  return source
}

const grow = (reading: Reading, sizes: Sizes, by: number, newest = by): void => {
  const total = (sizes.open.pop() ?? 0) + by
  sizes.open.push(total)
  sizes.newest = newest
  if (total > sizeMax) reading.refused = "it repeats too often"
}

/** `times` is how often the sign before it is written out. */
const repetitionAt = (pattern: string, at: number) => {
  const text = /^(?:[*+?]|\{\d{1,9}(?:,\d{0,9})?\})\??/.exec(pattern.slice(at, at + 24))?.[0]
  if (text === undefined) return undefined
  const [least = 1, most = least + 1] = text.match(/\d+/g)?.map(Number) ?? []
  return { text, times: text.includes(",") ? Math.max(least, most) : least }
}

const openGroup = (reading: Reading): string => {
  const rest = reading.pattern.slice(reading.at, reading.at + 4)
  if (/^\(\?<?[=!]/.test(rest)) reading.refused = "it uses lookahead or lookbehind"
  const named = rest.startsWith("(?<")
  const plain = !rest.startsWith("(?")
  if (!plain && !named && !rest.startsWith("(?:"))
    reading.refused ??= "it changes its flags inside the pattern"
  reading.at = named ? reading.pattern.indexOf(">", reading.at) + 1 : reading.at + (plain ? 1 : 3)
  return "(?:"
}

/** One sign that matches one character. */
const atom = (reading: Reading): string => {
  const sign = reading.pattern[reading.at]
  if (sign === "[") return characterClass(reading)
  if (sign === ".") {
    reading.at += 1
    return `[^\\n\\r${point(0x2028)}${point(0x2029)}]`
  }
  const word = /^\\[bB]/.exec(reading.pattern.slice(reading.at, reading.at + 2))?.[0]
  if (word !== undefined) {
    reading.at += 2
    return word
  }
  const read = character(reading)
  return read._tag === "Point" ? point(read.code) : `[${read.inClass}]`
}

const characterClass = (reading: Reading): string => {
  const { pattern } = reading
  const isNegated = pattern[reading.at + 1] === "^"
  reading.at += isNegated ? 2 : 1
  let items = ""
  while (reading.at < pattern.length && pattern[reading.at] !== "]") {
    const first = classCharacter(reading)
    const ranges = pattern[reading.at] === "-" && (pattern[reading.at + 1] ?? "]") !== "]"
    if (!ranges) {
      items += first._tag === "Point" ? point(first.code) : first.inClass
      continue
    }
    reading.at += 1
    const last = classCharacter(reading)
    if (first._tag === "Point" && last._tag === "Point") {
      items += `${point(first.code)}-${point(last.code)}`
      continue
    }
    // Next to a set of characters, the hyphen stands for itself.
    for (const one of [first, { _tag: "Point", code: 0x2d } as const, last])
      items += one._tag === "Point" ? point(one.code) : one.inClass
  }
  reading.at += 1
  const everything = `${point(0)}-${point(lastPoint)}`
  if (items === "") return isNegated ? `[${everything}]` : `[^${everything}]`
  return isNegated ? `[^${items}]` : `[${items}]`
}

const classCharacter = (reading: Reading): Sign => {
  if (!reading.pattern.startsWith("\\b", reading.at)) return character(reading)
  reading.at += 2
  return { _tag: "Point", code: 0x08 }
}

const character = (reading: Reading): Sign => {
  const { pattern, at } = reading
  if (pattern[at] !== "\\") return literal(reading)
  const sign = pattern[at + 1] ?? ""
  const set = sets.get(sign)
  if (set !== undefined) {
    reading.at += 2
    return { _tag: "Set", inClass: set }
  }
  if (/[1-9k]/.test(sign) || /^0\d/.test(pattern.slice(at + 1, at + 3)))
    reading.refused ??= "it uses a backreference"
  if (sign === "p" || sign === "P") return property(reading)
  return escaped(reading, sign)
}

const literal = (reading: Reading): Sign => {
  const code = reading.pattern.codePointAt(reading.at) ?? 0
  reading.at += code > 0xffff ? 2 : 1
  return { _tag: "Point", code }
}

const escaped = (reading: Reading, sign: string): Sign => {
  const { pattern, at } = reading
  const control = controls.get(sign)
  const found = /^(?:c([A-Za-z])|x([0-9A-Fa-f]{2})|u\{([0-9A-Fa-f]{1,8})\}|u([0-9A-Fa-f]{4}))/.exec(
    pattern.slice(at + 1, at + 12),
  )
  const [whole, letter, short, braced, four] = found ?? []
  if (control !== undefined) {
    reading.at += 2
    return { _tag: "Point", code: control }
  }
  if (whole === undefined || (braced !== undefined && !reading.unicode)) {
    reading.at += 1
    return literal(reading)
  }
  reading.at += 1 + whole.length
  if (letter !== undefined) return { _tag: "Point", code: (letter.codePointAt(0) ?? 0) % 32 }
  const code = Number.parseInt(short ?? braced ?? four ?? "0", 16)
  const low = /^\\u(D[C-F][0-9A-F]{2})/i.exec(pattern.slice(reading.at, reading.at + 6))?.[1]
  if (four === undefined || code < 0xd800 || code > 0xdbff || low === undefined)
    return { _tag: "Point", code }
  reading.at += 6
  return { _tag: "Point", code: (code - 0xd800) * 0x400 + Number.parseInt(low, 16) - 0xdc00 + 0x10000 }
}

/** General categories by their short names, and scripts; both engines use the same names. */
const property = (reading: Reading): Sign => {
  const text = reading.pattern.slice(reading.at, reading.at + 48)
  const [whole, negation, script, name] =
    /^\\([pP])\{(?:(Script=|sc=)([A-Z][A-Za-z_]+)|[A-Z][a-z]?)\}/.exec(text) ?? []
  if (whole === undefined || !reading.unicode) {
    reading.refused ??= "it uses an unknown character property"
    reading.at += 2
    return { _tag: "Set", inClass: "" }
  }
  reading.at += whole.length
  return { _tag: "Set", inClass: script === undefined ? whole : `\\${negation}{${name}}` }
}
