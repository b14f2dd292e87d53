/**
 * `help TOPIC`: a page of the documentation, laid out for the terminal; without a topic, the list of pages:
 * Markdown files in `schemas/pages` whose first paragraph says in one line what they are about.
 */
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { Effect } from "effect"
import { Argument, Command } from "effect/cli"
import { suggestion } from "../../base/Text.ts"
import { paint, type Style } from "../../report/RenderSummary.ts"
import { wrap } from "../../report/TextTable.ts"
import { helped } from "../CommandRow.ts"
import { refuse } from "../Failures.ts"
import { Output, argument, sayPainted } from "../Output.ts"
import { Wiring } from "../Wiring.ts"

/** Wider lines are hard to read. */
const widthMax = 100
const pipeWidth = 80

type Rows = ReadonlyArray<ReadonlyArray<string>>

/** Links become their text, which names the page or the file. */
const inline = (text: string): string => text.replaceAll(/\[([^\]]+)\]\([^)]+\)/g, "$1").replaceAll("**", "")

const cellsOf = (line: string): ReadonlyArray<string> =>
  line
    .split("|")
    .slice(1, -1)
    .map((cell) => inline(cell.trim()))

const longestOf = (texts: ReadonlyArray<string>): number => Math.max(...texts.map(({ length }) => length))

/** How wide each column may be, the widest cut first, or undefined if a word of one would not fit into it. */
const widthsOf = (rows: Rows, width: number): ReadonlyArray<number> | undefined => {
  const columns = (rows[0] ?? []).map((_, column) => rows.map((row) => row[column] ?? ""))
  const widths = columns.map(longestOf)
  const narrowest = columns.map((cells) => longestOf(cells.flatMap((cell) => cell.split(" "))))
  const total = () => widths.reduce((sum, one) => sum + one + 2, -2)
  while (total() > width) {
    const spare = widths.map((one, column) => (one > (narrowest[column] ?? 0) ? one : 0))
    const widest = spare.indexOf(Math.max(...spare))
    if (spare[widest] === 0) return undefined
    widths[widest] = (widths[widest] ?? 0) - 1
  }
  return widths
}

const tableLines = (lines: ReadonlyArray<string>, width: number): ReadonlyArray<string> => {
  const rows = lines.filter((line) => !/^\|[ :|-]+\|$/.test(line)).map(cellsOf)
  const widths = widthsOf(rows, width)
  // Too narrow for columns: each row becomes a list item.
  if (widths === undefined)
    return rows
      .slice(1)
      .flatMap(([name = "", ...others]) => [
        wrap(name, width, "- ", "  "),
        ...others.filter((cell) => cell !== "").map((cell) => wrap(cell, width, "  ")),
      ])
  return rows.flatMap((row) => {
    const wrapped = row.map((cell, column) => wrap(cell, widths[column] ?? 0).split("\n"))
    return Array.from({ length: Math.max(...wrapped.map(({ length }) => length)) }, (_, index) =>
      wrapped
        .map((cell, column) => (cell[index] ?? "").padEnd(widths[column] ?? 0))
        .join("  ")
        .trimEnd(),
    )
  })
}

/** One block of a page: what stands between two empty lines, or a fenced example. */
const blockLines = (block: string, style: Style): ReadonlyArray<string> => {
  const lines = block.split("\n")
  const [first = ""] = lines
  if (first.startsWith("```")) return lines.slice(1, -1).map((line) => `  ${line}`.trimEnd())
  if (first.startsWith("#")) return [paint(style, "bold", inline(first.replace(/^#+ /, "")))]
  if (first.startsWith("|")) return tableLines(lines, style.width)
  return block
    .split(/\n(?=- |\d\. )/)
    .map((item) =>
      wrap(
        inline(item.replaceAll(/\n\s*/g, " ")),
        style.width,
        "",
        /^(?:- |\d\. )/.exec(item)?.[0].replaceAll(/./g, " "),
      ),
    )
}

export const renderPage = (markdown: string, style: Style): string =>
  (markdown.match(/^```[\s\S]*?^```$|^(?:(?!```).+\n?)+/gm) ?? [])
    .map((block) => blockLines(block.trimEnd(), style).join("\n"))
    .join("\n\n")

export const readShipped = (folder: string, ending: string) =>
  readdirSync(folder)
    .filter((file) => file.endsWith(ending))
    .toSorted()
    .map((file) => ({ name: file.slice(0, -ending.length), text: readFileSync(join(folder, file), "utf8") }))

export const readPages = (packageFolder: string) =>
  readShipped(join(packageFolder, "schemas/pages"), ".md").map(({ name: topic, text: markdown }) => ({
    topic,
    about: markdown.split("\n\n")[1] ?? "",
    markdown,
  }))

export const help = Command.make(
  "help",
  { topic: Argument.withDefault(argument("TOPIC", "A page"), "") },
  Effect.fn("Help.handle")(function* ({ topic }) {
    const pages = readPages((yield* Wiring).packageFolder)
    const { out } = yield* Output
    const style = { ...out, width: Number.isFinite(out.width) ? Math.min(out.width, widthMax) : pipeWidth }
    if (topic === "") {
      const rows = pages.map((page) => `| ${page.topic} | ${page.about} |`)
      const text = ["`nightjar help TOPIC` shows one of these pages:", "", "| topic | about |", ...rows]
      return yield* sayPainted(renderPage(text.join("\n"), style))
    }
    const page = pages.find((one) => one.topic === topic)
    if (page !== undefined) return yield* sayPainted(renderPage(page.markdown, style))
    const topics = pages.map((one) => one.topic)
    return yield* refuse("topic-unknown", { suggestion: suggestion(topic, topics) })
  }),
).pipe(helped({ examples: { "nightjar help jobs": "What a job file says" } }))
