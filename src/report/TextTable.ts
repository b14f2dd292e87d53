/**
 * Text for terminals of any width and for pipes: wrapped paragraphs, aligned columns, durations. No colour
 * code or control character in a value ever reaches the terminal from here.
 */
import { sumOf } from "../base/Text.ts"
import { cutText } from "../service/BodyBounds.ts"

/** A value of the service may be of any length; the part shown in a sentence or a cell is limited. */
const sentenceMax = 2_000
const cellMax = 1_000

/** Characters that would move the cursor, colour the text or hide it. */
const control = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu
export const plain = (text: string): string => text.replace(control, "?")

/**
 * Words to lines of at most `width` characters; the first line is indented by `indent`, the others by `hang`.
 */
export const wrap = (text: string, width: number, indent = "", hang = indent): string => {
  const lines: Array<string> = []
  let line = indent
  let empty = true
  for (const word of plain(cutText(text, sentenceMax)).split(" ")) {
    if (!empty && line.length + 1 + word.length > width) {
      lines.push(line)
      line = hang
      empty = true
    }
    line = empty ? line + word : `${line} ${word}`
    empty = false
  }
  return [...lines, line].join("\n")
}

export const cut = (text: string, width: number): string =>
  text.length <= width ? text : width <= 1 ? text.slice(0, width) : `${text.slice(0, width - 1)}…`

interface TableOptions {
  /** Infinity if the output is not a terminal: a pipe gets values as they are, up to 1,000 characters. */
  readonly width: number
  /** Columns aligned to the right, by index. */
  readonly right?: ReadonlySet<number>
}

const gap = "  "
const columnMin = 6

/** A header and rows; columns that do not fit are cut, the widest first. */
export const table = (
  header: ReadonlyArray<string>,
  rows: ReadonlyArray<ReadonlyArray<string>>,
  { width, right = new Set() }: TableOptions,
): string => {
  const all = [header, ...rows].map((row) => row.map((cell) => plain(cutText(cell, cellMax))))
  const widths = header.map((_, column) =>
    all.reduce((widest, row) => Math.max(widest, row[column]?.length ?? 0), 0),
  )
  const total = () => sumOf(widths) + gap.length * Math.max(0, widths.length - 1)
  while (total() > width) {
    const widest = widths.indexOf(Math.max(...widths))
    const current = widths[widest] ?? 0
    if (current <= columnMin) break
    const second = Math.max(...widths.filter((_, index) => index !== widest), columnMin)
    widths[widest] = Math.max(columnMin, Math.min(current - 1, Math.max(second, current - (total() - width))))
  }
  return all
    .map((row) =>
      row
        .map((cell, column) => {
          const size = widths[column] ?? 0
          const shown = cut(cell, size)
          return right.has(column) ? shown.padStart(size) : shown.padEnd(size)
        })
        .join(gap)
        .trimEnd(),
    )
    .join("\n")
}

/** A span of time in its two largest units: `3 h 20 min`, `45 s`, `120 ms`. */
export const span = (milliseconds: number): string => {
  const ms = Math.max(0, Math.round(milliseconds))
  if (ms < 1_000) return `${ms} ms`
  const seconds = Math.round(ms / 1_000)
  if (seconds < 60) return `${seconds} s`
  const minutes = Math.round(seconds / 60)
  if (seconds < 600) return `${Math.floor(seconds / 60)} min ${seconds % 60} s`
  if (minutes < 60) return `${minutes} min`
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`
}

// The filter before a terminal: whatever a value of the service, a file or a table contains, it cannot move
// the cursor, change colours, hide text or fill the screen. Control characters are shown as `\u001b`, as in
// JSON; an overlong line is cut with a mark. Only terminals are written to through here: a pipe and a file
// get every byte as it is.

/** Longer lines are cut: a screen of any size shows far less of one. */
const lineMax = 10_000

/** Our own colours, as `paint` writes them; no other escape codes pass. */
const ownColour = "\\u001b\\[(?:0|1|2|31|32|33)m"
/** Line feeds and tabs are kept; a carriage return elsewhere than before a line feed overwrites text. */
const controlOrSurrogate = "[^\\P{Cc}\\n\\t\\r]|\\r(?!\\n)|[\\p{Cf}\\p{Zl}\\p{Zp}\\p{Cs}]"
const anyControl = new RegExp(controlOrSurrogate, "gu")
const controlButColours = new RegExp(`(${ownColour})|${controlOrSurrogate}`, "gu")

/** By code units, of which a character may have two. */
const escaped = (character: string): string =>
  character.replace(/[^]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`)

/** `painted`: made by this program, which cleans values before it colours them. */
export const forTerminal = (text: string, painted: boolean): string => {
  const lines = text.length <= lineMax ? text : text.replace(/[^\n]+/g, (line) => cutText(line, lineMax))
  return painted
    ? lines.replace(
        controlButColours,
        (found: string, colour: string | undefined) => colour ?? escaped(found),
      )
    : lines.replace(anyControl, escaped)
}

/** A value on one line, wherever it is shown: no character in it moves, colours or hides another one. */
export const oneLine = (text: string): string => text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/gu, escaped)

// Text as CSV that no spreadsheet takes for a formula: whatever a cell contains, opening the file shows it
// and runs nothing.

/** White space and invisible characters: spreadsheets skip them to find the first sign. */
const unseen = /^[\p{Cc}\p{Cf}\p{Z}\p{Default_Ignorable_Code_Point}\u2800]+/u
/** Characters that look like a minus but are not one in Unicode, or become one when typed. */
const formula = /^[=+\-@\u2010-\u2015\u2212\u2795\u2796]/u

/**
 * Spreadsheets evaluate text that begins with a sign, full-width ones included; an apostrophe makes it
 * plain text. Later lines of the text and numbers stay as they are.
 */
export const harmless = (text: string): string => {
  if (/^[\t\r\n]/.test(text)) return `'${text}`
  const seen = text.replace(unseen, "").slice(0, 4).normalize("NFKC")
  return formula.test(seen) ? `'${text}` : text
}

const quoted = (text: string): string => (/[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text)

/** One line of CSV (RFC 4180). */
export const csvLine = (cells: ReadonlyArray<string>): string => `${cells.map(quoted).join(",")}\r\n`

// The words that the report's sections share: durations and shares.

export const duration = (ms: number | undefined): string => (ms === undefined ? "–" : span(ms))

/** `0 %`, `<1 %`, `12 %`. */
export const share = (part: number, whole: number): string => {
  if (whole === 0 || part === 0) return "0 %"
  const percent = (100 * part) / whole
  return percent < 1 ? "<1 %" : `${Math.floor(percent)} %`
}
