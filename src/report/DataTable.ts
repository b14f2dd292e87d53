/**
 * A table of a page: headings, and one cell for each of them in every row. A stacked one becomes blocks on a
 * phone, one per row, whose lines are named by the `data-name` of their cells.
 */
import { html, nothing } from "./Html.ts"
import type { Html, Value } from "./Html.ts"

/** The title of a column; of numbers if they are to stand right. */
export type Heading = string | { readonly number: string }

export interface DataTable {
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
