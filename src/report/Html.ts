/**
 * HTML in which every value is text: a template escapes whatever is put into it, unless it was made by a
 * template too. Control and direction characters are shown as `\u202e`, so that no id or message reorders a
 * line.
 */
import { sha256 } from "../base/Hashes.ts"
import { escapeHtml } from "../base/Text.ts"
import { forTerminal } from "./TextTable.ts"
import { cutText } from "../service/BodyBounds.ts"

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

// The head of every page that is written: its style and its script are inside, and the page may load nothing
// from anywhere, whatever a value in it contains (Content-Security-Policy).

interface Head {
  readonly title: string
  readonly style: string
  readonly script?: string
}

const hashOf = (text: string): string => `'sha256-${sha256(text).toString("base64")}'`

/** Only this style and this script, by their hashes; no image, font, frame, form or connection. */
export const contentPolicy = ({ style, script }: Omit<Head, "title">): string =>
  [
    "default-src 'none'",
    `style-src ${hashOf(style)}`,
    ...(script === undefined ? [] : [`script-src ${hashOf(script)}`]),
    "base-uri 'none'",
    "form-action 'none'",
  ].join("; ")

/** Made in one piece: a space more, and it would not be the style that the policy allows. */
export const pageHead = (head: Head): Html =>
  html`<head>
    <meta charset="utf-8" />
    <meta http-equiv="Content-Security-Policy" content="${new Html(contentPolicy(head))}" />
    <meta name="viewport" content="width=device-width, initial-scale=1" />
    <meta name="robots" content="noindex" />
    <meta name="referrer" content="no-referrer" />
    <title>${head.title}</title>
    ${new Html(`<style>${head.style}</style>`)}
  </head>`

/** The script of the head's policy, for the end of the body. */
export const scriptElement = ({ script }: Pick<Head, "script">): Html =>
  script === undefined ? nothing : new Html(`<script>${script}</script>`)

// A table of a page: headings, and one cell for each of them in every row. A stacked one becomes blocks on a
// phone, one per row, whose lines are named by the `data-name` of their cells.

/** The title of a column; of numbers if they are to stand right. */
export type Heading = string | { readonly number: string }

interface DataTable {
  readonly headings: ReadonlyArray<Heading>
  readonly rows: ReadonlyArray<ReadonlyArray<Value>>
  readonly id?: string
  readonly isStacked?: boolean
}

const titleCell = (heading: Heading): Html =>
  typeof heading === "string"
    ? html`<th scope="col">${heading}</th>`
    : html`<th scope="col" class="n">${heading.number}</th>`

/** A table that fits every screen. */
export const dataTable = ({ headings, rows, id, isStacked = false }: DataTable): Html => {
  const marks = headings.map((heading) => {
    const [name, mark] = typeof heading === "string" ? [heading, nothing] : [heading.number, html` class="n"`]
    return isStacked ? html`${mark} data-name="${name}"` : mark
  })
  const row = (cells: DataTable["rows"][number]) =>
    html`<tr>
      ${cells.map((cell, index) => html`<td${marks[index]}>${cell}</td>`)}
    </tr>`
  const named = id === undefined ? nothing : html` id="${id}"`
  const stacked = isStacked ? html` class="stack"` : nothing
  return html`<table${named}${stacked}>
    <thead>
      <tr>
        ${headings.map(titleCell)}
      </tr>
    </thead>
    <tbody>
      ${rows.map(row)}
    </tbody>
  </table>`
}

/** A part that is scrolled if it does not fit; `name` is what a screen reader calls it. */
export const scrollable = (name: string, content: Html, look: "" | "tall" | "tall plain" = ""): Html =>
  html`<div class="${`scroll ${look}`.trim()}" tabindex="0" role="region" aria-label="${name}">
    ${content}
  </div>`
