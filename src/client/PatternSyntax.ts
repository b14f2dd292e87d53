/**
 * A regular expression of a form (ECMA 262, as JSON Schema asks) in the syntax of RE2, whose matching takes
 * time in proportion to the text. The two differ in some signs (what `\s` and `.` match, which letters may
 * be escaped), so every sign is written out. What RE2 cannot express is refused and named, and so is a
 * pattern that grows beyond the limits when its repetitions are written out.
 */

/** Why a pattern is not translated: a clause that follows "is not checked: ". */
export class NotTranslated extends Error {}

const refuse = (why: string): never => {
  throw new NotTranslated(why)
}

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
/** One character, or what stands in a class for a set of them. */
type Sign = { readonly code: number } | { readonly set: string }

const controls: Readonly<Record<string, number>> = { t: 0x09, n: 0x0a, v: 0x0b, f: 0x0c, r: 0x0d, 0: 0x00 }
const ofHex = (digits: string | undefined): Sign => ({ code: Number.parseInt(digits ?? "0", 16) })
const ofText = (text: string | undefined): Sign => ({ code: text?.codePointAt(0) ?? 0 })

interface Row {
  readonly sign: RegExp
  readonly read: (found: ReadonlyArray<string | undefined>) => Sign
  /** Only patterns that parse with the u flag have it. */
  readonly isUnicode?: true
}

/** The signs for one character, in a class and outside; the first that fits counts. */
const characters: ReadonlyArray<Row> = [
  { sign: /\\s/y, read: () => ({ set: inClass(spaces) }) },
  { sign: /\\S/y, read: () => ({ set: inClass(othersThan(spaces)) }) },
  { sign: /\\[dDwW]/y, read: ([set = ""]) => ({ set }) },
  { sign: /\\(?:[1-9k]|0\d)/y, read: () => refuse("it uses a backreference") },
  // General categories by their short names, and scripts: both engines use the same names.
  {
    sign: /\\([pP])\{(?:Script|sc)=([A-Z][A-Za-z_]+)\}/y,
    read: ([, kind, name]) => ({ set: `\\${kind}{${name}}` }),
    isUnicode: true,
  },
  { sign: /\\[pP]\{[A-Z][a-z]?\}/y, read: ([set = ""]) => ({ set }), isUnicode: true },
  { sign: /\\[pP]/y, read: () => refuse("it uses an unknown character property") },
  { sign: /\\([tnvfr0])/y, read: ([, letter = ""]) => ({ code: controls[letter] ?? 0 }) },
  { sign: /\\c([A-Za-z])/y, read: ([, letter]) => ({ code: (letter?.codePointAt(0) ?? 0) % 32 }) },
  { sign: /\\x([0-9A-Fa-f]{2})/y, read: ([, digits]) => ofHex(digits) },
  {
    sign: /\\u(d[89ab][0-9a-f]{2})\\u(d[c-f][0-9a-f]{2})/iy,
    read: ([, high, low]) => ofText(String.fromCharCode(Number(`0x${high}`), Number(`0x${low}`))),
  },
  { sign: /\\u([0-9A-Fa-f]{4})/y, read: ([, digits]) => ofHex(digits) },
  { sign: /\\u\{([0-9A-Fa-f]{1,8})\}/y, read: ([, digits]) => ofHex(digits), isUnicode: true },
  { sign: /\\?([^])/uy, read: ([, text]) => ofText(text) },
]

/** What `new RegExp` accepts: with the u flag, as JSON Schema asks, or without it if only that works. */
const parses = (pattern: string, flags: string): boolean => {
  try {
    return new RegExp(pattern, flags) instanceof RegExp
  } catch {
    return false
  }
}

class Reading {
  readonly #pattern: string
  readonly #rows: ReadonlyArray<Row>
  #at = 0

  constructor(pattern: string) {
    const isUnicode = parses(pattern, "u")
    if (!isUnicode && !parses(pattern, "")) refuse("it is not a regular expression")
    this.#pattern = pattern
    this.#rows = characters.filter((row) => isUnicode || row.isUnicode !== true)
  }

  get isOver(): boolean {
    return this.#at >= this.#pattern.length
  }

  /** What stands here, if it is this sign; then it is behind the reader. */
  take(sign: RegExp): RegExpExecArray | undefined {
    sign.lastIndex = this.#at
    const found = sign.exec(this.#pattern) ?? undefined
    if (found !== undefined) this.#at = sign.lastIndex
    return found
  }

  character(): Sign {
    for (const { sign, read } of this.#rows) {
      const found = this.take(sign)
      if (found !== undefined) return read(found)
    }
    return refuse("it is not a regular expression")
  }
}

/** The pattern for RE2; fails with `NotTranslated`. */
export const translatePattern = (pattern: string): string => {
  if (pattern.length > lengthMax) refuse(`it is longer than ${lengthMax} characters`)
  const reading = new Reading(pattern)
  /** The size of each open group so far, innermost last, and that of the newest sign or group. */
  const open: Array<number> = [0]
  let newest = 0
  const grow = (by: number, of = by): void => {
    const total = (open.pop() ?? 0) + by
    open.push(total)
    newest = of
    if (total > sizeMax) refuse("it repeats too often")
  }
  let source = ""
  while (!reading.isOver) {
    const repetition = reading.take(/(?:[*+?]|\{\d{1,9}(?:,\d{0,9})?\})\??/y)?.[0]
    if (repetition !== undefined) {
      source += repetition
      grow(newest * Math.max(0, timesOf(repetition) - 1), newest)
    } else if (reading.take(/\)/y) !== undefined) {
      source += ")"
      grow((open.length > 1 ? open.pop() : undefined) ?? 0)
    } else if (takesGroup(reading)) {
      source += "(?:"
      open.push(0)
    } else {
      source += atom(reading)
      grow(1)
    }
  }
  return source
}

/** How often the sign before a repetition is written out. */
const timesOf = (repetition: string): number => {
  const [least = 1, most = least + 1] = repetition.match(/\d+/g)?.map(Number) ?? []
  return repetition.includes(",") ? Math.max(least, most) : least
}

const takesGroup = (reading: Reading): boolean => {
  if (reading.take(/\(\?<?[=!]/y) !== undefined) refuse("it uses lookahead or lookbehind")
  if (reading.take(/\((?:\?:|\?<[^>]*>|(?!\?))/y) !== undefined) return true
  return reading.take(/\(/y) !== undefined && refuse("it changes its flags inside the pattern")
}

/** One sign that matches one character, or a place between two. */
const atom = (reading: Reading): string => {
  const same = reading.take(/[\^$|]|\\[bB]/y)?.[0]
  if (same !== undefined) return same
  if (reading.take(/\./y) !== undefined) return `[^\\n\\r${point(0x2028)}${point(0x2029)}]`
  const opening = reading.take(/\[\^?/y)?.[0]
  if (opening !== undefined) return characterClass(reading, opening)
  const sign = reading.character()
  return "code" in sign ? point(sign.code) : `[${sign.set}]`
}

const hyphen: Sign = { code: 0x2d }
const everything = `${point(0)}-${point(lastPoint)}`

const characterClass = (reading: Reading, opening: string): string => {
  let items = ""
  while (!reading.isOver && reading.take(/\]/y) === undefined) {
    const first = classCharacter(reading)
    if (reading.take(/-(?!\]|$)/y) === undefined) {
      items += inClassOf(first)
      continue
    }
    const last = classCharacter(reading)
    // Next to a set of characters, the hyphen stands for itself.
    items +=
      "code" in first && "code" in last
        ? `${point(first.code)}-${point(last.code)}`
        : [first, hyphen, last].map(inClassOf).join("")
  }
  if (items !== "") return `${opening}${items}]`
  return opening === "[^" ? `[${everything}]` : `[^${everything}]`
}

const inClassOf = (sign: Sign): string => ("code" in sign ? point(sign.code) : sign.set)

const classCharacter = (reading: Reading): Sign =>
  reading.take(/\\b/y) === undefined ? reading.character() : { code: 0x08 }
