/**
 * Tries very many mutants in few runs: each test file is loaded once with all mutants in its sources, and the runner
 * of `SwitchingRunner.ts` switches them on. A test that stops everything is ended from here, and its file begins again
 * with the mutants that are left.
 */
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"
import { sourcesVariable } from "../conformance/PlantText.ts"
import { openProcessWith, type TestProcess } from "../conformance/TestProcess.ts"
import type { End } from "./Outcome.ts"
import { functionOf, switchedSource, type Numbered } from "./Switched.ts"
import { planVariable, type Plan, type Told } from "./SwitchingRunner.ts"

export interface Switching {
  readonly ends: ReadonlyMap<number, End>
  /** Functions that ran before the tests of some file: no switch was on then, so their survivors are asked again. */
  readonly loaded: ReadonlySet<string>
  /** Test files that did not end by themselves: what they let pass, they may not have been asked about. */
  readonly stopped: ReadonlySet<string>
}

export interface Asked {
  /** The texts of the sources by their paths. */
  readonly sources: ReadonlyMap<string, string>
  readonly mutants: ReadonlyArray<Numbered>
  /** In the order in which they are asked. */
  readonly testFiles: ReadonlyArray<string>
  readonly reaches: (testFile: string, one: Numbered) => boolean
  readonly note: (one: Numbered, end: End) => void
  readonly warn: (text: string) => void
}

/** Nothing was told for so long beyond what a test may take: the process does not answer any more. */
const quietMaxMs = 30_000
const fileMaxMs = 3_600_000

const runner = fileURLToPath(new URL("runner.mjs", import.meta.url))

const linesIn = (path: string): ReadonlyArray<Told> =>
  existsSync(path)
    ? readFileSync(path, "utf8")
        .split("\n")
        .flatMap((line) => (line.endsWith("}") ? [JSON.parse(line) as Told] : []))
    : []

/** False where the process had to be stopped, or ended over what it tried. */
const runWatched = async (
  process: TestProcess,
  file: string,
  told: string,
  environment: Readonly<Record<string, string>>,
): Promise<boolean> => {
  let size = 0
  let changedAt = performance.now()
  let limitMs = quietMaxMs
  let isWhole = true
  const watch = setInterval(() => {
    const now = existsSync(told) ? statSync(told).size : 0
    if (now !== size) {
      ;[size, changedAt] = [now, performance.now()]
      const last = linesIn(told).at(-1)
      limitMs = quietMaxMs + (last?._tag === "Tried" ? 2 * last.limitMs : 0)
    } else if (performance.now() - changedAt > limitMs) process.stop()
  }, 500)
  try {
    await process.run({ files: [file], ids: [], changes: [], environment }, fileMaxMs)
  } catch {
    isWhole = false
  } finally {
    clearInterval(watch)
  }
  return isWhole
}

const writeSources = (folder: string, { sources, mutants }: Asked): void => {
  for (const [file, text] of sources) {
    const path = join(folder, file)
    mkdirSync(dirname(path), { recursive: true })
    const own = mutants.filter(({ mutant }) => mutant.file === file)
    writeFileSync(path, switchedSource(file, text, own))
  }
}

interface Known {
  readonly ends: Map<number, End>
  readonly loaded: Set<string>
  /** Slow tests by their files. */
  readonly slow: Map<string, Set<string>>
  readonly stopped: Set<string>
}

/**
 * Asks one test file, or some of its tests, about all mutants that it reaches and nobody has caught; again after one
 * that stopped it.
 */
const askFile = async (
  process: TestProcess,
  folder: string,
  file: string,
  asked: Asked,
  { ends, loaded, slow, stopped }: Known,
  tests?: ReadonlyArray<string>,
): Promise<void> => {
  const plan = join(folder, "plan.json")
  const told = join(folder, "told")
  const environment = { [sourcesVariable]: join(folder, "sources"), [planVariable]: plan }
  const settle = (number: number, end: End) => {
    ends.set(number, end)
    const one = asked.mutants.find((other) => other.number === number)
    if (one !== undefined) asked.note(one, end)
  }
  for (let isWhole = false; !isWhole;) {
    const alive = asked.mutants.filter((one) => !ends.has(one.number) && asked.reaches(file, one))
    if (alive.length === 0) return
    const mutants = alive.map((one) => ({ number: one.number, function: functionOf(one.mutant) }))
    writeFileSync(
      plan,
      JSON.stringify({ told, mutants, ...(tests === undefined ? {} : { tests }) } satisfies Plan),
    )
    rmSync(told, { force: true })
    const startedAt = performance.now()
    isWhole = await runWatched(process, file, told, environment)
    const lines = linesIn(told)
    for (const line of lines) {
      if (line._tag === "Loaded") for (const one of line.functions) loaded.add(one)
      else if (line._tag === "Slow") slow.set(file, (slow.get(file) ?? new Set()).add(line.test))
      else if (line._tag === "Unsound") asked.warn(`not asked further: ${file}: ${line.test}, ${line.why}`)
      else if (line._tag !== "Tried") settle(line.number, { _tag: line._tag, by: `${file}: ${line.by}` })
    }
    asked.warn(`${Math.round((performance.now() - startedAt) / 1000)} s, ${alive.length} mutants: ${file}`)
    const last = lines.at(-1)
    if (!isWhole && last?._tag === "Tried") settle(last.number, { _tag: "Late", by: file })
    else if (!isWhole) {
      stopped.add(file)
      return asked.warn(`not asked further, it does not end by itself: ${file}`)
    }
  }
}

export const runSwitched = async (asked: Asked): Promise<Switching> => {
  const folder = mkdtempSync(join(tmpdir(), "nightjar-switched-"))
  const known: Known = { ends: new Map(), loaded: new Set(), slow: new Map(), stopped: new Set() }
  const process = openProcessWith(runner)
  try {
    writeSources(join(folder, "sources"), asked)
    for (const file of asked.testFiles) await askFile(process, folder, file, asked, known)
    for (const [file, tests] of known.slow) await askFile(process, folder, file, asked, known, [...tests])
  } finally {
    process.stop()
    rmSync(folder, { recursive: true, force: true, maxRetries: 5 })
  }
  return known
}
