/**
 * Regular expressions of an engine's form, run under a bound of time. The patterns come from the service
 * and the values from customers, so a pattern that backtracks without end could hold up a whole night. A
 * pattern that cannot be understood, or that does not answer in time, refuses nobody: it accepts, and says
 * so once.
 */
import { createContext, Script } from "node:vm"

/** What a validator needs of a regular expression. */
export interface BoundedPattern {
  readonly test: (value: string) => boolean
  readonly toString: () => string
}

/** Steps that a direct match may cost at worst; beyond, the match runs under a watchdog. */
const directStepsMax = 1e7
const timeoutMs = 100
/** A repetition of more than this is as good as endless. */
const boundedMax = 16

/** Tries the pattern with the u flag, as JSON Schema asks, and without where only that works. */
const parsePattern = (pattern: string): RegExp | undefined => {
  for (const flags of ["u", ""]) {
    try {
      return new RegExp(pattern, flags)
    } catch {
      continue
    }
  }
  return undefined
}

/** The length of the endless quantifier at `at`, 0 where there is none or only a small bounded one. */
const endlessQuantifier = (pattern: string, at: number): number => {
  const sign = pattern[at]
  if (sign === "*" || sign === "+") return 1
  const braces = /^\{(\d+)(,?)(\d*)\}/.exec(pattern.slice(at, at + 24))
  if (braces === null) return 0
  const [whole, least, comma, most] = braces
  const top = comma === "" ? Number(least) : most === "" ? Infinity : Number(most)
  return top > boundedMax ? whole.length : 0
}

/**
 * How many endless repetitions a match may have to combine; infinite where one repeats a group that itself
 * repeats or branches, or where a back-reference hides the cost. An over-estimate only costs the watchdog.
 */
export const repetitionsOf = (pattern: string): number => {
  const groups: Array<{ wild: boolean }> = []
  let count = 0
  let index = 0
  const mark = () => groups.forEach((group) => (group.wild = true))
  while (index < pattern.length) {
    const sign = pattern[index]
    let closed: { wild: boolean } | undefined
    if (sign === "\\") {
      if (/[1-9k]/.test(pattern[index + 1] ?? "")) return Infinity
      index += 2
    } else if (sign === "[") {
      index += 1
      while (index < pattern.length && pattern[index] !== "]") index += pattern[index] === "\\" ? 2 : 1
      index += 1
    } else {
      if (sign === "(") {
        groups.push({ wild: false })
        index += pattern[index + 1] === "?" ? 2 : 1
        continue
      }
      if (sign === ")") closed = groups.pop()
      if (sign === "|") mark()
      index += 1
    }
    const length = endlessQuantifier(pattern, index)
    if (length === 0) {
      if (pattern[index] === "?" || /^\{\d/.test(pattern.slice(index, index + 2))) mark()
      continue
    }
    if (closed?.wild === true) return Infinity
    count += 1
    mark()
    index += length
  }
  return count
}

/** `warn` is told, once, what made the pattern accept everything. */
export const boundPattern = (pattern: string, warn: (message: string) => void): BoundedPattern => {
  const toString = () => `/${pattern}/`
  const expression = parsePattern(pattern)
  if (expression === undefined) {
    warn("a pattern of this form is no regular expression here; it is not checked")
    return { test: () => true, toString }
  }
  const repetitions = repetitionsOf(pattern)
  let given = false
  let guarded: ((value: string) => boolean) | undefined
  const test = (value: string): boolean => {
    if (given) return true
    if ((value.length + 1) ** (repetitions + 1) <= directStepsMax) return expression.test(value)
    try {
      return (guarded ??= watch(expression))(value)
    } catch {
      given = true
      warn("a pattern of this form did not answer in time; it is not checked any more")
      return true
    }
  }
  return { test, toString }
}

const script = new Script("expression.test(value)")

/** The only way to stop a match that is under way is the virtual machine's own watchdog. */
const watch = (expression: RegExp): ((value: string) => boolean) => {
  const world: { expression: RegExp; value: string } = { expression, value: "" }
  const context = createContext(world)
  return (value) => {
    world.value = value
    try {
      return script.runInContext(context, { timeout: timeoutMs }) === true
    } finally {
      world.value = ""
    }
  }
}
