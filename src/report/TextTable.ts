/**
 * Text for terminals of any width and for pipes: wrapped paragraphs, aligned columns, durations. No colour
 * code or control character in a value ever reaches the terminal from here.
 */

import { cutText } from "../service/TextBounds.ts"

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

export interface TableOptions {
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
  const total = () => widths.reduce((sum, one) => sum + one, 0) + gap.length * Math.max(0, widths.length - 1)
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
