/**
 * A value -> JSON text that the database accepts, whatever the value contains: exact numbers digit by digit,
 * halves of surrogate pairs replaced by U+FFFD (the database refuses a JSON text with one), and any nesting.
 */
import { ExactNumber } from "./ExactNumber.ts"

const wellFormed = (json: string): string =>
  json.includes("\\ud")
    ? json.replace(/\\(?:\\|ud[89a-f][0-9a-f]{2})/g, (escape) => (escape === "\\\\" ? escape : "\\ufffd"))
    : json

export const jsonText = (value: unknown): string => {
  try {
    return wellFormed(JSON.stringify(value) ?? "null")
  } catch (cause) {
    // Native writing recurses; a value that overflows it is written with a stack of our own.
    if (cause instanceof RangeError) return wellFormed(deepJsonText(value))
    throw cause
  }
}

interface Frame {
  readonly value: object
  /** Undefined for a list. */
  readonly keys: ReadonlyArray<string> | undefined
  next: number
}

const deepJsonText = (root: unknown): string => {
  const out: Array<string> = []
  const frames: Array<Frame> = []
  const write = (value: unknown): void => {
    if (typeof value !== "object" || value === null || value instanceof ExactNumber) {
      out.push(JSON.stringify(value) ?? "null")
    } else {
      const isList = Array.isArray(value)
      out.push(isList ? "[" : "{")
      frames.push({ value, keys: isList ? undefined : Object.keys(value), next: 0 })
    }
  }
  write(root)
  for (let frame = frames.at(-1); frame !== undefined; frame = frames.at(-1)) {
    const { value, keys } = frame
    const length = keys === undefined ? (value as ReadonlyArray<unknown>).length : keys.length
    if (frame.next === length) {
      out.push(keys === undefined ? "]" : "}")
      frames.pop()
      continue
    }
    if (frame.next > 0) out.push(",")
    const at = frame.next++
    if (keys === undefined) write((value as ReadonlyArray<unknown>)[at])
    else {
      const key = keys[at]!
      out.push(JSON.stringify(key), ":")
      write((value as Readonly<Record<string, unknown>>)[key])
    }
  }
  return out.join("")
}
