/**
 * HTML in which every value is text: a template escapes whatever is put into it, unless it was made by a
 * template too. Control and direction characters are shown as `\u202e`, so that no id or message reorders a
 * line.
 */
import { cutText } from "../service/TextBounds.ts"
import { escapeHtml } from "../base/HtmlText.ts"
import { forTerminal } from "./TerminalText.ts"

/** Markup that only templates make. */
export class Html {
  readonly text: string
  constructor(text: string) {
    this.text = text
  }
}

export type Value = string | number | undefined | Html | ReadonlyArray<Html>

/** A value of the service may be of any length. */
const valueMax = 2_000

/** A value as it may be shown anywhere: no character in it moves or hides another one. */
export const visible = (text: string): string => forTerminal(cutText(text, valueMax), false)

const shown = (value: Value): string => {
  if (value === undefined) return ""
  if (value instanceof Html) return value.text
  if (typeof value === "string") return escapeHtml(visible(value))
  return typeof value === "number" ? String(value) : value.map(({ text }) => text).join("")
}

/** A template is written over many lines; the page needs none of their indents. */
const compact = new WeakMap<TemplateStringsArray, ReadonlyArray<string>>()
const partsOf = (template: TemplateStringsArray): ReadonlyArray<string> => {
  const known = compact.get(template)
  if (known !== undefined) return known
  const parts = template.map((part) => part.replace(/\s*\n\s*/g, "\n"))
  compact.set(template, parts)
  return parts
}

export const html = (template: TemplateStringsArray, ...values: ReadonlyArray<Value>): Html =>
  new Html(
    partsOf(template)
      .map((part, index) => part + shown(values[index]))
      .join(""),
  )

export const nothing = html``

/** JSON inside a `script` of a type that no browser runs; nothing in it ends the element. */
export const jsonText = (value: unknown): Html => new Html(JSON.stringify(value).replaceAll("<", "\\u003c"))

/** A sentence of ours, in which commands and keys stand between backquotes. */
export const prose = (sentence: string): ReadonlyArray<Html> =>
  sentence.split("`").map((part, index) => (index % 2 === 1 ? html`<code>${part}</code>` : html`${part}`))
