/**
 * `npm run planted -- [--rows REGEX] [--sample N] [--others N] [--seed S] [--json]`: plants the bug of every row of the
 * inventory, one after another and in memory only, and runs the tests that carry the row's tag. Prints how
 * many were caught and who survived; exits 1 on a survivor that nobody accepted, on an accepted one that is
 * caught, and on a bug that does not fit.
 */
import { parseArgs } from "node:util"
import { countByPromise, figuresLine } from "../promises/Figure.ts"
import { misfits, readAccepted, readBugs } from "./Bugs.ts"
import { collectAllTests } from "./CollectTests.ts"
import { coverageOf } from "./Coverage.ts"
import { drawn } from "./Draw.ts"
import { readInventory } from "./Inventory.ts"
import { controlProblems, controlsFor, figureOf, judge, outcomeOf, wantedFor } from "./PlantedRows.ts"
import type { Outcome, PlantedRow, Verdict } from "./PlantedRows.ts"
import { inTurns, openTestProcess, type TestProcess } from "./TestProcess.ts"

const { values } = parseArgs({
  options: {
    /** Rows whose ids match. */
    rows: { type: "string", default: "" },
    /** So many of them, chosen by the seed. */
    sample: { type: "string" },
    /** And so many of the rows whose ids do not match. */
    others: { type: "string", default: "0" },
    seed: { type: "string" },
    json: { type: "boolean", default: false },
    verbose: { type: "boolean", default: false },
  },
})

const workers = 2
const controlLimitMs = 300_000
const rowLimitMs = 90_000

/** The day, so that a nightly sample goes round all rows by and by and one day's can be repeated. */
const seed = values.seed ?? new Date(Date.now()).toISOString().slice(0, 10)

const choose = (all: ReadonlyArray<PlantedRow>): ReadonlyArray<PlantedRow> => {
  const pattern = new RegExp(values.rows)
  const { matching = [], others = [] } = Object.groupBy(all, ({ row }) =>
    pattern.test(row.id) ? "matching" : "others",
  )
  const some = (rows: typeof all, count: number) => drawn(rows, ({ row }) => row.id, seed).slice(0, count)
  const chosen = values.sample === undefined ? matching : some(matching, Number(values.sample))
  return [...chosen, ...some(others, Number(values.others))]
}

const note = (text: string): void => {
  if (!values.json) console.log(text)
}

const plantEach = (
  processes: ReadonlyArray<TestProcess>,
  rows: ReadonlyArray<PlantedRow>,
): Promise<ReadonlyArray<Verdict>> => {
  let done = 0
  return inTurns(processes, rows, async (process, planted) => {
    const verdict = judge(planted.row.id, await process.run(wantedFor(planted), rowLimitMs))
    done += 1
    if (done % 100 === 0) note(`${done} of ${rows.length} rows`)
    if (verdict.end !== "caught") note(`[${verdict.id}] ${verdict.end}: ${verdict.why}`)
    else if (values.verbose) note(`[${verdict.id}] caught by ${verdict.by}`)
    return verdict
  })
}

/** The figures for `npm run promises`: rows like `promise 5 counts` count for that promise. */
const figuresOf = (verdicts: ReadonlyArray<Verdict>, { rows, caught }: Outcome): string => {
  const pieces = verdicts.flatMap(({ id, end }) => {
    const promise = /^promise (\d+)/.exec(id)?.[1]
    return promise === undefined ? [] : [{ promise: Number(promise), failed: end !== "caught" }]
  })
  const byPromise = countByPromise(pieces)
  return figuresLine([{ of: "planted bugs", tried: rows, failed: rows - caught, byPromise }])
}

const tell = (outcome: Outcome, verdicts: ReadonlyArray<Verdict>, elapsedMs: number): void => {
  if (values.json) {
    console.log(JSON.stringify(outcome, null, 2))
    return console.log(figuresOf(verdicts, outcome))
  }
  note(`${Math.round(elapsedMs / 1000)} s, seed ${seed}, ${outcome.late} caught by the time limit alone`)
  for (const { id, why, reason } of outcome.survivors) note(`  [${id}] ${reason ?? why}`)
  for (const problem of outcome.problems) console.error(problem)
  console.log(figureOf(outcome))
}

/** Why a row cannot be judged at all, before anything runs. */
const obstacle = ({ row, bug }: PlantedRow): string | undefined => {
  if (row.tests.length === 0) return "it has no test"
  if (bug === undefined) return "it has no bug that its tests must catch"
  return misfits([bug])[0]
}

const readRows = (): ReadonlyArray<PlantedRow> => {
  const bugs = new Map(readBugs().map((bug) => [bug.id, bug]))
  const { rows } = coverageOf(readInventory(), collectAllTests(), [...bugs.values()])
  return choose(rows.map((row) => ({ row, bug: bugs.get(row.id) })))
}

const main = async (): Promise<boolean> => {
  const startedAt = performance.now()
  const chosen = readRows()
  if (chosen.length === 0) {
    console.error("nothing to do: no row is chosen by --rows and --sample")
    return false
  }
  const refused = chosen.flatMap((planted): ReadonlyArray<Verdict> => {
    const why = obstacle(planted)
    return why === undefined ? [] : [{ id: planted.row.id, end: "error", why }]
  })
  const unfit = new Set(refused.map(({ id }) => id))
  const rows = chosen.filter(({ row }) => !unfit.has(row.id))
  const processes = Array.from({ length: workers }, openTestProcess)
  try {
    const controls = await inTurns(processes, controlsFor(rows), async (process, wanted) =>
      controlProblems(wanted, await process.run(wanted, controlLimitMs)),
    )
    for (const problem of controls.flat()) console.error(problem)
    if (controls.flat().length > 0) return false
    note(`${rows.length} rows: their tests pass without a bug`)
    const verdicts = [...refused, ...(await plantEach(processes, rows))]
    const ids = new Set(chosen.map(({ row }) => row.id))
    const accepted = Object.entries(readAccepted()).filter(([id]) => ids.has(id))
    const outcome = outcomeOf(verdicts, Object.fromEntries(accepted))
    tell(outcome, verdicts, performance.now() - startedAt)
    return outcome.problems.length === 0
  } finally {
    for (const process of processes) process.stop()
  }
}

process.exitCode = (await main()) ? 0 : 1
