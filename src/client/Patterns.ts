/**
 * Regular expressions of an engine's form, matched in time proportional to the text: the patterns come from
 * the service and the values from customers, so a backtracking one could hold up a whole run. A pattern
 * that cannot be matched this way refuses nobody: it accepts everything, and is named once.
 */
import { RE2JS } from "re2js"
import { cutText } from "../service/TextBounds.ts"
import { comparedMax } from "./FormBounds.ts"
import { translatePattern } from "./PatternSyntax.ts"

/** What a validator needs from a regular expression. */
export interface LinearPattern {
  readonly test: (value: string) => boolean
  readonly toString: () => string
}

/** Enough to recognise a pattern by. */
const toldMax = 60

type Compiled = { readonly expression: RE2JS } | { readonly why: string }

const compile = (pattern: string): Compiled => {
  const translation = translatePattern(pattern)
  if (translation._tag === "Refused") return translation
  try {
    return { expression: RE2JS.compile(translation.source) }
  } catch {
    return { why: "it repeats too often or uses a name that is not known" }
  }
}

/** `warn` receives, once, what made the pattern accept everything. */
export const linearPattern = (pattern: string, warn: (message: string) => void): LinearPattern => {
  const toString = () => `/${pattern}/`
  const compiled = compile(pattern)
  if ("why" in compiled) {
    const told = cutText(pattern, toldMax).replaceAll(/\p{C}/gu, "?")
    warn(`the pattern \`${told}\` of this form is not checked: ${compiled.why}`)
    return { test: () => true, toString }
  }
  return { test: (value) => value.length > comparedMax || compiled.expression.test(value), toString }
}
