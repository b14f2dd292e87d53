/** The table of ends for people: `schemas/ends.md`, reason by reason. */
import { statusReasonsByCode } from "../../src/service/Vocabulary.ts"
import { actionNeeded, actors, exitOf, featureEnds, ownEnds } from "../../src/service/EndTable.ts"
import type { EndRow } from "../../src/service/EndTable.ts"
import { ends } from "../../src/service/Ends.ts"
import { triedAgain } from "../../src/report/RenderSummary.ts"

type Told = Pick<EndRow, "outcome" | "who_acts">

const line = (cells: ReadonlyArray<string>): string => `| ${cells.join(" | ")} |`
const code = (word: string): string => `\`${word}\``

const families: ReadonlyArray<readonly [string, ReadonlyArray<string>]> = Object.entries(
  statusReasonsByCode,
).filter(([family]) => family !== "ONGOING" && family !== "ACTION_REQUIRED")

const follows = ({ outcome, who_acts }: Told): string => `${code(outcome)}, ${who_acts}`

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
    "`unfinished`. A login that `authentication_status` says was refused is not sent again, whatever the end. The task ends with that",
    "refusal, unless the end itself already asks the customer to act.",
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
