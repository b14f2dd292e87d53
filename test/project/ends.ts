/**
 * The table of ends for people: `schemas/ends.md`, reason by reason, and the README's short form, in which reasons that
 * come to the same share a line.
 */
import { readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { statusReasonsByCode } from "../../src/service/Vocabulary.ts"
import { actionNeeded, actors, exitOf, featureEnds, outcomes, ownEnds } from "../../src/service/EndTable.ts"
import type { EndRow } from "../../src/service/EndTable.ts"
import { endOfAttempt, ends, verdictOfRefusal } from "../../src/service/Ends.ts"
import { triedAgain } from "../../src/report/RenderSummary.ts"

type Told = Pick<EndRow, "outcome" | "who_acts">

const line = (cells: ReadonlyArray<string>): string => `| ${cells.join(" | ")} |`
const code = (word: string): string => `\`${word}\``

/** Every column as wide as its widest cell, as the formatter wants it. */
const aligned = (rows: ReadonlyArray<ReadonlyArray<string>>): string => {
  const [header = []] = rows
  const widths = header.map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)))
  const padded = rows.map((row) => line(row.map((cell, column) => cell.padEnd(widths[column] ?? 0))))
  return [padded[0], line(widths.map((width) => "-".repeat(width))), ...padded.slice(1)].join("\n")
}

const families: ReadonlyArray<readonly [string, ReadonlyArray<string>]> = Object.entries(
  statusReasonsByCode,
).filter(([family]) => family !== "ONGOING" && family !== "ACTION_REQUIRED")

const follows = ({ outcome, who_acts }: Told): string => `${code(outcome)}, ${who_acts}`

/** Reasons of one line: a family of which most are here goes by its name, and so do those of tokens. */
const named = (reasons: ReadonlySet<string>): ReadonlyArray<string> => {
  const told = new Set<string>()
  for (const reason of reasons) {
    const [family = "", all = []] = families.find(([, members]) => members.includes(reason)) ?? []
    const missing = all.filter((other) => !reasons.has(other))
    const isWhole = all.length > 1 && missing.length < all.length / 3
    const but = missing.length === 0 ? "each reason" : `all but ${missing.map(code).join(", ")}`
    const name = reason.startsWith("TOKEN") ? "each `TOKEN…`" : code(reason)
    told.add(isWhole ? `${code(family)} (${but})` : name)
  }
  return [...told]
}

interface Line {
  readonly again: string
  readonly end: Told
  readonly reasons: Set<string>
  readonly more: Array<string>
}

const shortLines = (): ReadonlyArray<Line> => {
  const lines = new Map<string, Line>()
  const at = (end: Told, again: string, isOurs: boolean): Line => {
    const key = `${follows(end)} ${again} ${isOurs}`
    const known = lines.get(key) ?? { again, end, reasons: new Set<string>(), more: [] }
    lines.set(key, known)
    return known
  }
  const entries = Object.entries(ends).filter(([reason]) => reason !== "IN_PROGRESS")
  for (const [reason, row] of entries)
    at(row, triedAgain(row), Object.hasOwn(ownEnds, reason)).reasons.add(reason)
  for (const [reason, { unstarted }] of entries)
    if (unstarted !== undefined)
      at(unstarted, "no", true).more.push(`an engine that needs a person in every run (${code(reason)})`)
  at(verdictOfRefusal("OF_TOMORROW"), "no", false).more.push("a start answered 400 or 422")
  const { verdict, retry, rejection } = endOfAttempt(
    { status_code: "", status_reason: "", landed: {} },
    undefined,
  )
  at(verdict, triedAgain({ retry, opensBreaker: rejection !== undefined }), false).more.push(
    "any value that the reference does not list",
  )
  return [...lines.values()].toSorted(
    (a, b) => outcomes.indexOf(a.end.outcome) - outcomes.indexOf(b.end.outcome),
  )
}

const shortTable = (): string =>
  aligned([
    ["reason", "tried again in the same run", "outcome, who acts", "exit"],
    ...shortLines().map(({ again, end, reasons, more }) => [
      [...named(reasons), ...more].join(", "),
      again,
      follows(end),
      String(exitOf(end.outcome)),
    ]),
  ])

const marked = /(<!-- ends: [^\n]* -->\n)[^]*?(<!-- \/ends -->)/

export const withEnds = (readme: string): string => {
  if (!marked.test(readme)) throw new Error("the README has no place for the table of ends")
  return readme.replace(marked, (_, first: string, last: string) => `${first}\n${shortTable()}\n\n${last}`)
}

export const readmeWithEnds = (): string =>
  withEnds(readFileSync(fileURLToPath(new URL("../../README.md", import.meta.url)), "utf8"))

const unstartedText = ({ unstarted }: EndRow): string =>
  unstarted === undefined ? "" : `; never started: ${follows(unstarted)}`

const actingText = ({ acting }: EndRow): string => (acting === undefined ? "" : ` (${actionNeeded[acting]})`)

const fullTable = (rows: ReadonlyArray<readonly [string, EndRow]>): ReadonlyArray<string> => [
  line(["reason", "what it means", "outcome, who acts", "tried again", "exit", "what to do next"]),
  line(["---", "---", "---", "---", "---", "---"]),
  ...rows.map(([reason, row]) =>
    line([
      code(reason),
      row.means,
      `${follows(row)}${actingText(row)}${unstartedText(row)}`,
      triedAgain(row),
      String(exitOf(row.outcome)),
      row.next,
    ]),
  ),
  "",
]

const featureTable = (): ReadonlyArray<string> => [
  line(["reason", "what it means", "outcome, who acts", "what to do next"]),
  line(["---", "---", "---", "---"]),
  ...Object.entries(featureEnds).map(([reason, row]) =>
    row === undefined
      ? line([code(reason), "The feature is open, or stopped with its execution.", "those of its task", ""])
      : line([code(reason), row.means, follows(row), row.next]),
  ),
  "",
]

const rowsOf = (reasons: ReadonlyArray<string>): ReadonlyArray<readonly [string, EndRow]> =>
  Object.entries(ends).filter(([reason]) => reasons.includes(reason))

const whoActs = actors.map((actor) => `${code(actor)} (${actionNeeded[actor]})`)

export const endsDocument = (): string =>
  [
    "# Every reason a task can end with",
    "",
    "Derived by `npm run generate` from `src/service`. `nightjar explain REASON` prints one row.",
    "",
    `Who acts is ${whoActs.join(", ")}.`,
    "Where this program itself stopped, or is not over, people are told what the brackets say instead.",
    "The exit code is that of a run with this task alone: 4 takes precedence over 3, and 3 over 0.",
    "“Never with the same credentials” means that the login is not sent again, in this run or a later one, until it changes or",
    "`nightjar credentials release` allows it.",
    "",
    "## How executions end, in the service's words",
    "",
    ...families.flatMap(([family, reasons]) => [`### ${code(family)}`, "", ...fullTable(rowsOf(reasons))]),
    "Any other value, and a reason outside its family, is `failed`, engineer, exit 3, and never tried again with the same",
    "credentials. A start that is refused with 400 or 422 is the engineer's, whatever its reason, unless the row says",
    "`unfinished`. A login that `authentication_status` says was refused is not sent again, whatever the end.",
    "",
    "## Ends of our own",
    "",
    ...fullTable(Object.entries(ownEnds)),
    "## What becomes of one feature",
    "",
    "Told in `coverage`. A feature changes no exit code: its task does.",
    "",
    ...featureTable(),
  ].join("\n")
