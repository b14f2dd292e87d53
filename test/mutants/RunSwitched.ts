/**
 * Tries very many mutants in few runs: each test file is loaded once with all mutants in its sources, and the runner
 * of `SwitchingRunner.ts` switches them on and tells which functions are reached. A test that stops everything is ended
 * from here, and its file begins again with the mutants that are left.
 */
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"
import { sourcesVariable } from "../conformance/PlantText.ts"
import { openProcessWith, type TestProcess } from "../conformance/TestProcess.ts"
import type { End } from "./Outcome.ts"
import { isSwitchable, switchedSource, type Numbered } from "./Switched.ts"
import { planVariable, type Plan, type Told } from "./SwitchingRunner.ts"

export interface Switching {
  readonly ends: Map<number, End>
  /** Functions that ran before the tests of some file, without a switch: their survivors have to be asked one by one. */
  readonly loaded: Set<string>
  /** Test files by the functions that they reach. */
  readonly reaching: Map<string, Set<string>>
  /** Slow tests by their files. */
  readonly slow: Map<string, Set<string>>
}

export interface Asked {
  /** The texts of the sources by their paths. */
  readonly sources: ReadonlyMap<string, string>
  readonly mutants: ReadonlyArray<Numbered>
  /** In the order in which they are asked. */
  readonly testFiles: ReadonlyArray<string>
  readonly note: (text: string) => void
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
  const watch = setInterval(() => {
    const now = existsSync(told) ? statSync(told).size : 0
    if (now !== size) {
      ;[size, changedAt] = [now, performance.now()]
      const last = linesIn(told).at(-1)
      limitMs = quietMaxMs + (last?._tag === "Tried" ? 2 * last.limitMs : 0)
    } else if (performance.now() - changedAt > limitMs) process.stop()
  }, 500)
  return process
    .run({ files: [file], ids: [], changes: [], environment }, fileMaxMs)
    .then((seen) => seen !== "late")
    .catch(() => false)
    .finally(() => clearInterval(watch))
}

const add = (to: Map<string, Set<string>>, key: string, value: string): void =>
  void to.set(key, (to.get(key) ?? new Set()).add(value))

/** Asks one test file, or some of its tests, about all mutants that nobody has caught; again after one that stopped it. */
const askFile = async (
  process: TestProcess,
  folder: string,
  file: string,
  { mutants, note }: Asked,
  { ends, loaded, reaching, slow }: Switching,
  tests?: ReadonlySet<string>,
): Promise<void> => {
  const [plan, told] = [join(folder, "plan.json"), join(folder, "told")]
  const environment = { [sourcesVariable]: join(folder, "sources"), [planVariable]: plan }
  for (let isWhole = false; !isWhole;) {
    const alive = mutants.filter(({ number }) => !ends.has(number))
    if (alive.length === 0) return
    const asked: Plan = {
      told,
      mutants: alive.map(({ number, mutant }) => ({ number, function: mutant.inFunction })),
      ...(tests === undefined ? {} : { tests: [...tests] }),
    }
    writeFileSync(plan, JSON.stringify(asked))
    rmSync(told, { force: true })
    isWhole = await runWatched(process, file, told, environment)
    const lines = linesIn(told)
    for (const line of lines) {
      if (line._tag === "Loaded" || line._tag === "Reached")
        for (const one of line.functions) {
          add(reaching, one, file)
          if (line._tag === "Loaded") loaded.add(one)
        }
      else if (line._tag === "Slow") add(slow, file, line.test)
      else if (line._tag === "Unsound") note(`not asked further: ${file}: ${line.test}, ${line.why}`)
      else if (line._tag !== "Tried") ends.set(line.number, { _tag: line._tag, by: `${file}: ${line.by}` })
    }
    const last = lines.at(-1)
    if (!isWhole && last?._tag === "Tried") ends.set(last.number, { _tag: "Late", by: file })
    else if (!isWhole) return note(`not asked further, it does not end by itself: ${file}`)
  }
}

export const runSwitched = async (asked: Asked): Promise<Switching> => {
  const folder = mkdtempSync(join(tmpdir(), "nightjar-switched-"))
  const { switched = [], others = [] } = Object.groupBy(asked.mutants, ({ mutant }) =>
    isSwitchable(mutant, asked.sources.get(mutant.file) ?? "") ? "switched" : "others",
  )
  const loaded = new Set(others.map(({ mutant }) => mutant.inFunction))
  const known: Switching = { ends: new Map(), loaded, reaching: new Map(), slow: new Map() }
  const process = openProcessWith(runner)
  try {
    for (const [file, text] of asked.sources) {
      const path = join(folder, "sources", file)
      mkdirSync(dirname(path), { recursive: true })
      const own = switched.filter(({ mutant }) => mutant.file === file)
      writeFileSync(path, switchedSource(file, text, own))
    }
    for (const file of asked.testFiles) await askFile(process, folder, file, asked, known)
    for (const [file, tests] of known.slow) await askFile(process, folder, file, asked, known, tests)
  } finally {
    process.stop()
    rmSync(folder, { recursive: true, force: true, maxRetries: 5 })
  }
  return known
}
