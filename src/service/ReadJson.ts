/**
 * JSON texts in which a key stands twice in one object. `JSON.parse` takes the last value and says nothing.
 * Here none is lost: the key has a list of both, so that records in either are found, and a field that
 * contradicts itself has no value that could be taken for the right one. Two lists become one, and equal
 * values stay one.
 */
import { Predicate } from "effect"

type Container = Array<unknown> | Record<string, unknown>

/**
 * How many keys all objects of a value have together; its own stack, so no nesting is too deep. `for in`
 * makes no list of them and is five times as fast: parsed objects inherit no key.
 */
const keysOf = (value: unknown): number => {
  let keys = 0
  const open = [value].filter(Predicate.isObjectOrArray)
  for (let one = open.pop(); one !== undefined; one = open.pop()) {
    if (Array.isArray(one)) {
      for (const each of one) if (Predicate.isObjectOrArray(each)) open.push(each)
      continue
    }
    for (const key in one) {
      keys++
      const each: unknown = Reflect.get(one, key)
      if (Predicate.isObjectOrArray(each)) open.push(each)
    }
  }
  return keys
}

/** Colons behind a quote: one for each key, and those inside strings that look the same. */
const colonsOf = (text: string): number => {
  let colons = 0
  for (let at = text.indexOf(":"); at >= 0; at = text.indexOf(":", at + 1)) {
    let before = at - 1
    while (text.charCodeAt(before) <= 32) before--
    if (text.charCodeAt(before) === 34) colons++
  }
  return colons
}

/**
 * Whether a key may stand twice in an object of the text, whose value by `JSON.parse` this is: never false if
 * one does, and true without one only where a string contains a quote before a colon.
 */
const mayRepeat = (text: string, value: unknown): boolean => colonsOf(text) > keysOf(value)

const isSame = (one: unknown, other: unknown): boolean => JSON.stringify(one) === JSON.stringify(other)

/** What a key has that stood before; `joined` are the lists that were made here. */
const both = (first: unknown, second: unknown, joined: WeakSet<object>): unknown => {
  if (Array.isArray(first) && joined.has(first)) {
    if (!isSame(first.at(-1), second)) first.push(second)
    return first
  }
  if (Array.isArray(first) && Array.isArray(second)) {
    const isRepeated = first.length === second.length && isSame(first, second)
    if (!isRepeated) for (const each of second) first.push(each)
    return first
  }
  if (isSame(first, second)) return first
  const list = [first, second]
  joined.add(list)
  return list
}

const put = (container: Container, key: string, value: unknown, joined: WeakSet<object>): void => {
  if (Array.isArray(container)) container.push(value)
  else if (Object.hasOwn(container, key)) container[key] = both(container[key], value, joined)
  // Assignment would set the prototype instead of a field.
  else if (key === "__proto__") {
    Object.defineProperty(container, key, { value, writable: true, enumerable: true, configurable: true })
  } else container[key] = value
}

const stringEnd = (text: string, start: number): number => {
  let end = start + 1
  for (;;) {
    end = text.indexOf('"', end)
    let slashes = 0
    while (text.charCodeAt(end - 1 - slashes) === 92) slashes++
    end++
    if (slashes % 2 === 0) return end
  }
}

const scalarEnd = /[\s,\]}]|$/g

/** Reads a text that is known to be valid JSON; its own stack, so no nesting is too deep. */
const readSlowly = (text: string, numberOf: (word: string) => unknown): unknown => {
  const root: Array<unknown> = []
  const open: Array<{ readonly container: Container; readonly key: string }> = []
  const joined = new WeakSet()
  let container: Container = root
  let key = ""
  let expectsKey = false
  const leave = (value: unknown): void => {
    put(container, key, value, joined)
    expectsKey = !Array.isArray(container)
  }
  for (let at = 0; at < text.length; at++) {
    const unit = text[at]!
    if (unit === "{" || unit === "[") {
      open.push({ container, key })
      container = unit === "{" ? {} : []
      expectsKey = unit === "{"
    } else if (unit === "}" || unit === "]") {
      const closed: Container = container
      const outer = open.pop()!
      container = outer.container
      key = outer.key
      leave(closed)
    } else if (unit === '"') {
      const end = stringEnd(text, at)
      const string = JSON.parse(text.slice(at, end)) as string
      at = end - 1
      if (expectsKey) {
        key = string
        expectsKey = false
      } else leave(string)
    } else if (unit > " " && unit !== "," && unit !== ":") {
      scalarEnd.lastIndex = at
      const end = scalarEnd.exec(text)!.index
      const word = text.slice(at, end)
      at = end - 1
      leave(word === "true" ? true : word === "false" ? false : word === "null" ? null : numberOf(word))
    }
  }
  return root[0]
}

// A number of sixteen digits or more, or with an exponent, outside of most strings. A match inside a string
// only costs the slower reading.
const longNumber = /(?:^|[:,[\s])-?\d(?:[\d.]{15}|\d*(?:\.\d+)?[eE])/

/** The value of a text, and of all its keys. Numbers that a double may not hold are read by `exactly`. */
export const readJson = (text: string, exactly?: (word: string) => unknown): unknown => {
  // Reading it natively first proves the syntax, so that the slower reading need not check it.
  const value: unknown = JSON.parse(text)
  const isLossy = (exactly !== undefined && longNumber.test(text)) || mayRepeat(text, value)
  return isLossy ? readSlowly(text, exactly ?? Number) : value
}

/** Whether reading a text by `JSON.parse` alone would lose the value of a key. */
export const repeatsKey = (text: string): boolean => {
  const value: unknown = JSON.parse(text)
  return mayRepeat(text, value) && JSON.stringify(value) !== JSON.stringify(readSlowly(text, Number))
}

/** The own field of a map with that name: one that only the prototype has counts as absent. */
export const ownField = (value: unknown, name: string): unknown =>
  Predicate.isObject(value) && Object.hasOwn(value, name) ? value[name] : undefined
