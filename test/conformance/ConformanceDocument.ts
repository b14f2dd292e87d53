/**
 * `schemas/conformance.md`: every row of the reference with the tests that show it, and what the reference
 * leaves open with the choice made. It cannot be derived while a row has no test.
 */
import { misfits, readBugs } from "./Bugs.ts"
import { collectAllTests } from "./CollectTests.ts"
import { compareWithContract, differences } from "./ContractComparison.ts"
import { coverageOf, plainTitle, type CollectedTest, type CoveredRow } from "./Coverage.ts"
import { readInventory, readPaths, readSilences, type Silence } from "./Inventory.ts"

const testsShown = 2

const cell = (text: string): string => text.replaceAll("|", "\\|").replaceAll("\n", " ")
const line = (...cells: ReadonlyArray<string>): string => `| ${cells.map(cell).join(" | ")} |`

/** The title as a sentence: what it is about, and what that does. However it was reached, it is one behaviour. */
const sentence = (title: string): string =>
  plainTitle(title)
    .replaceAll(/, (?:in-process|in process|over HTTP)(?= > )/g, "")
    .split(" > ")
    .map((part) => part.trim())
    .join(": ")

/** The service's own tests come first: they show the row itself, others what is made of it. */
const rank = (file: string): number => (/^test\/(?:sandbox|conformance)\//.test(file) ? 0 : 1)

const distinct = (tests: ReadonlyArray<CollectedTest>): ReadonlyArray<string> => {
  const named = tests.toSorted((a, b) => rank(a.file) - rank(b.file) || (a.file < b.file ? -1 : 1))
  return [
    ...new Set(named.map(({ file, title }) => `\`${file.replace(/^test\//, "")}\`: ${sentence(title)}`)),
  ]
}

const nameTests = (tests: ReadonlyArray<CollectedTest>): string => {
  const all = distinct(tests)
  const more = all.length - testsShown
  return [...all.slice(0, testsShown), ...(more > 0 ? [`and ${more} more`] : [])].join("<br>")
}

const rowTable = (rows: ReadonlyArray<CoveredRow>): ReadonlyArray<string> => [
  line("row", rows[0]?.part === "pipeline" ? "what holds" : "the reference says", "shown by"),
  "| --- | --- | --- |",
  ...rows.map(({ id, says, tests }) => line(`\`${id}\``, says, nameTests(tests))),
]

const silenceTable = (silences: ReadonlyArray<Silence>): ReadonlyArray<string> => [
  line("section", "not shown", "the embedded service, by its own choice", "the client"),
  "| --- | --- | --- | --- |",
  ...silences.map(({ section, open, service, client }) => line(section, open, service, client)),
]

/** Endpoints go by the contract's names for them. */
const pathTable = (): ReadonlyArray<string> => [
  line("endpoint", "method and path"),
  "| --- | --- |",
  ...Object.entries(readPaths()).map(([name, path]) => line(`\`${name}\``, `\`${path}\``)),
]

const sectionsOf = (rows: ReadonlyArray<CoveredRow>): ReadonlyArray<string> =>
  [...new Set(rows.map(({ section }) => section))].flatMap((section) => [
    /^\d/.test(section) ? `### Section ${section}` : `### ${section}`,
    "",
    ...rowTable(rows.filter((row) => row.section === section)),
    "",
  ])

export const renderConformance = (
  rows: ReadonlyArray<CoveredRow>,
  silences: ReadonlyArray<Silence>,
): string => {
  const own = rows.filter(({ part }) => part === "own")
  const pipeline = rows.filter(({ part }) => part === "pipeline")
  const reference = rows.filter(({ part }) => part !== "own" && part !== "pipeline")
  return [
    "# The reference, row by row",
    "",
    "Derived by `npm run generate` from `test/conformance/inventory` and the titles of the tests: a test names the",
    "rows that it checks in square brackets. `npm run check` fails if a row has no test, if a title names an unknown",
    "row, or if the inventory and the contract in `src/service` differ. Each row has its own bug in",
    "`test/conformance/bugs`; `npm run planted` plants them and fails if the row's tests still pass.",
    "",
    `${reference.length} rows of the reference, ${own.length} additions of our own, ` +
      `${pipeline.length} rows of the pipeline, ${silences.length} parts not shown.`,
    "",
    "## Endpoints by name",
    "",
    ...pathTable(),
    "",
    "## What the reference shows",
    "",
    ...sectionsOf(reference),
    "## What our contract adds",
    "",
    "Statuses of calls that the reference names without showing them, refused secrets, and requests to wait on any call.",
    "",
    ...rowTable(own),
    "",
    "## What the pipeline promises",
    "",
    "Not rows of the reference: how each end is reported, the exit codes, the promises, and the decisions behind them.",
    "",
    ...sectionsOf(pipeline),
    "## What the reference does not show",
    "",
    ...silenceTable(silences),
    "",
  ].join("\n")
}

/** Fails, naming every problem on one line, while inventory, contract and tests do not fit each other. */
export const conformanceDocument = (): string => {
  const inventory = readInventory()
  const bugs = readBugs()
  const { rows, problems } = coverageOf(inventory, collectAllTests(), bugs)
  const all = [...differences(compareWithContract(inventory)), ...problems, ...misfits(bugs)]
  if (all.length > 0) throw new Error(all.join("; "))
  return renderConformance(rows, readSilences())
}
