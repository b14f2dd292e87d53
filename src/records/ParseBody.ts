/**
 * The bytes of a landed body -> its value, without losing a digit and without ever throwing: a body that is
 * not JSON is an `UnreadableBody`. Most bodies take one `JSON.parse`; only a body with a number that may not
 * fit a double is read a second time, number by number. If a key appears twice in one object, the last one
 * wins, as everywhere in JavaScript; bytes that are not UTF-8 become U+FFFD and affect only their own string.
 */
import { measureLargeBody } from "../service/BodyBounds.ts"
import { exactNumber } from "./ExactNumber.ts"

export type ParsedBody =
  | { readonly _tag: "ReadableBody"; readonly value: unknown }
  /** `breaksBound`: it may be JSON, but it is too deep or too large to be parsed. */
  | { readonly _tag: "UnreadableBody"; readonly reason: string; readonly breaksBound: boolean }

const unreadable = (reason: string, breaksBound = false): ParsedBody => ({
  _tag: "UnreadableBody",
  reason,
  breaksBound,
})

const decoder = new TextDecoder("utf-8")

// A number of sixteen digits or more, or with an exponent, outside of most strings. A match inside a string
// only costs the slower reading.
const longNumber = /[:,[\s]-?\d(?:[\d.]{15}|\d*(?:\.\d+)?[eE])/

export const parseBody = (bytes: Uint8Array): ParsedBody => {
  if (bytes.length === 0) return unreadable("the body is empty")
  const { broken } = measureLargeBody(bytes)
  if (broken !== undefined) return unreadable(`the body cannot be used: ${broken}`, true)
  try {
    const text = decoder.decode(bytes)
    // Reading it natively first proves the syntax, so the exact reading need not check it.
    const value: unknown = JSON.parse(text)
    return { _tag: "ReadableBody", value: longNumber.test(text) ? readExactly(text) : value }
  } catch (cause) {
    // The parser's own message quotes the body, which may contain personal data.
    return cause instanceof SyntaxError
      ? unreadable("the body is not JSON")
      : unreadable("the body is too large to be read", true)
  }
}

type Container = Array<unknown> | Record<string, unknown>

const put = (container: Container, key: string, value: unknown): void => {
  if (Array.isArray(container)) container.push(value)
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
const readExactly = (text: string): unknown => {
  const root: Array<unknown> = []
  const open: Array<{ readonly container: Container; readonly key: string }> = []
  let container: Container = root
  let key = ""
  let expectsKey = false
  const leave = (value: unknown): void => {
    put(container, key, value)
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
      leave(word === "true" ? true : word === "false" ? false : word === "null" ? null : exactNumber(word))
    }
  }
  return root[0]
}
