/**
 * A table of a page: rows under a header. On a phone each row becomes a block, whose lines are named by the
 * `data-name` of their cells.
 */
import { html } from "./Html.ts"
import type { Html } from "./Html.ts"

/** The title of a column; of numbers if they are to stand right. */
export type Heading = string | { readonly number: string }

const cell = (heading: Heading): Html =>
  typeof heading === "string"
    ? html`<th scope="col">${heading}</th>`
    : html`<th scope="col" class="n">${heading.number}</th>`

/** `name` is what a screen reader calls the part that can be scrolled. */
export const dataTable = (name: string, headings: ReadonlyArray<Heading>, rows: ReadonlyArray<Html>): Html =>
  html`<div class="scroll" tabindex="0" role="region" aria-label="${name}">
    <table class="stack">
      <thead>
        <tr>
          ${headings.map(cell)}
        </tr>
      </thead>
      <tbody>
        ${rows}
      </tbody>
    </table>
  </div>`
