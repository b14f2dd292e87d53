/**
 * A page as data: what `page.html` shows, from top to bottom. That file has the style and a small script,
 * which makes elements and texts of the data, never markup; the page loads nothing
 * (Content-Security-Policy). Pure.
 */
import { sha256 } from "../base/Hashes.ts"
import { escapeHtml } from "../base/Text.ts"
import { cutText } from "../service/BodyBounds.ts"
import { forTerminal } from "./TextTable.ts"
import { localDate, localTime } from "../task/ChooseRun.ts"

export type Look = "good" | "warn" | "trouble" | "soft" | "running" | "waiting" | "bad"

/** Text, or something small inside a text: its first key says what. `prose` has code between backquotes. */
export type Inline =
  | string
  | number
  | { readonly [Kind in "code" | "prose" | "b" | "soft" | "key" | "file"]?: string }
  /** To the part of the page that has this id, or the id `to`. */
  | { readonly link: string; readonly to?: string }
  | { readonly status: string; readonly look: Look }
  | { readonly bar: number; readonly label: string }
  | { readonly spark: ReadonlyArray<ReadonlyArray<number | null>>; readonly label: string }
  | ReadonlyArray<Inline>

export type Part =
  | { readonly p: Inline; readonly look?: Look }
  | { readonly h: Inline; readonly id?: string }
  | { readonly command: string }
  | { readonly list: ReadonlyArray<Inline> }
  | { readonly tiles: ReadonlyArray<readonly [value: string | number, label: string, look?: Look]> }
  | { readonly legend: ReadonlyArray<readonly [Look, string]> }
  | { readonly groups: ReadonlyArray<{ readonly look: Look; readonly lines: ReadonlyArray<Inline> }> }
  /** Closed until a person, or a link to it, opens it. */
  | { readonly details: string; readonly id?: string; readonly parts: ReadonlyArray<Part> }
  | {
      readonly table: string
      /** With `#`: of numbers, which stand right. */
      readonly headings: ReadonlyArray<string>
      readonly rows: ReadonlyArray<ReadonlyArray<Inline>>
      /** A row becomes a block on a phone. */
      readonly stacked?: true
      /** Of any number of columns: it scrolls, and its first column stays. */
      readonly wide?: true
      readonly filter?: Readonly<Record<"label" | "all", string>> & {
        readonly column: number
        readonly options: ReadonlyArray<string>
      }
    }
  | {
      readonly zoom: ReadonlyArray<ReadonlyArray<number | string>>
      readonly begin: number
      readonly end: number
      readonly zone: string
      readonly engines: ReadonlyArray<string>
    }

export interface Page {
  readonly title: string
  readonly head: ReadonlyArray<Part>
  readonly sections: ReadonlyArray<{
    readonly id: string
    readonly title: string
    readonly parts: ReadonlyArray<Part>
  }>
  readonly foot: ReadonlyArray<Part>
}

/** `2026-11-22 23:05`, in the zone. */
export const momentIn = (timezone: string, at: number): string =>
  `${localDate(at, timezone)} ${localTime(at, timezone)}`

/** A value of the service may be of any length. */
const valueMax = 2_000

/** No character of a value moves or hides another one. */
const visible = (_: string, value: unknown): unknown =>
  typeof value === "string" ? forTerminal(cutText(value, valueMax), false) : value

const hashOf = (page: string, element: string): string => {
  const [, text = ""] = new RegExp(`<${element}>([^]*?)</${element}>`).exec(page) ?? []
  return `'sha256-${sha256(text).toString("base64")}'`
}

/** Only the page's own style and script, by their hashes; no image, font, frame, form or connection. */
const policyOf = (template: string): string =>
  `default-src 'none'; style-src ${hashOf(template, "style")}; script-src ${hashOf(template, "script")}; ` +
  "base-uri 'none'; form-action 'none'"

/** `summary`: what a reader sees where no script runs. `newest`: the newest fact that it was made of. */
export const fillPage = (
  template: string,
  page: Page,
  { summary, newest = 0 }: { readonly summary: ReadonlyArray<string>; readonly newest?: number },
): string => {
  const values: Readonly<Record<string, string>> = {
    POLICY: policyOf(template),
    TITLE: escapeHtml(String(visible("", page.title))),
    NEWEST: String(newest),
    SUMMARY: summary.map((line) => `<p>${escapeHtml(String(visible("", line)))}</p>`).join("\n"),
    // Nothing in it ends the element that it stands in.
    DATA: JSON.stringify(page, visible).replaceAll("<", "\\u003c"),
  }
  return template.replaceAll(/%([A-Z]+)%/g, (mark, name: string) => values[name] ?? mark)
}

/** The newest fact that a page was made of; 0 if it does not say so. */
export const newestFactIn = (page: string): number =>
  Number(/<body data-newest-fact="(\d+)">/.exec(page)?.[1] ?? 0)
