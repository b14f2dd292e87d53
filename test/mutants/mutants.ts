/**
 * `npm run mutants -- --room ROOM [--file F] [--sample N] [--seed S] [--id ID] [--tests REGEX]`: plants small bugs that
 * a parser finds, in memory only, and runs the tests that reach them until one fails. Prints who survived and how many
 * of a hundred; exits 1 on a survivor that nobody accepted.
 */
import { globSync } from "node:fs"
import { dirname } from "node:path"
import { parseArgs } from "node:util"
import { drawn } from "../conformance/Draw.ts"
import { inTurns, openTestProcess, type TestProcess } from "../conformance/TestProcess.ts"
import { describe, filesIn, mutantsOf, mutatedText, rooms, root, textOf, type Mutant } from "./Mutant.ts"
import { figureLine, isAccepted, readAccepted, strayEntries, type End } from "./Outcome.ts"
import { runSwitched } from "./RunSwitched.ts"

const { values } = parseArgs({
  options: {
    room: { type: "string", multiple: true },
    /** Part of a file's path. */
    file: { type: "string", multiple: true },
    /** One mutant again, as `src/task/Verdict.ts#41`. */
    id: { type: "string", multiple: true },
    /** So many, in an order that the seed draws. */
    sample: { type: "string" },
    seed: { type: "string", default: "1" },
    /** Test files that may notice; a survivor has survived these only. */
    tests: { type: "string", default: "" },
  },
})

const workers = 2
const testLimitMs = 120_000

const chooseMutants = (): ReadonlyArray<Mutant> => {
  const files = filesIn(values.room ?? Object.keys(rooms))
  const all = files
    .filter((file) => values.file?.some((part) => file.includes(part)) ?? true)
    .flatMap((file) => mutantsOf(file, textOf(file)))
    .filter(({ id }) => values.id?.includes(id) ?? true)
  return values.sample === undefined
    ? all
    : drawn(all, ({ id }) => id, values.seed).slice(0, Number(values.sample))
}

/** Those of the mutants' own rooms first. */
const chooseTests = (mutants: ReadonlyArray<Mutant>): ReadonlyArray<string> => {
  const own = new Set(mutants.map(({ file }) => dirname(file).replace("src", "test")))
  return globSync("test/**/*.test.ts", { cwd: root })
    .filter((file) => new RegExp(values.tests).test(file))
    .toSorted((a, b) => Number(own.has(dirname(b))) - Number(own.has(dirname(a))) || (a < b ? -1 : 1))
}

/** One mutant alone, from the loading of the modules on. */
const judge = async (
  process: TestProcess,
  mutant: Mutant,
  text: string,
  tests: ReadonlyArray<string>,
): Promise<End> => {
  const changes = [{ in: mutant.file, replace: text, by: mutatedText(mutant, text) }]
  for (const file of tests) {
    const seen = await process.run({ files: [file], ids: [], changes }, testLimitMs)
    if (seen === "late") return { _tag: "Late", by: file }
    const failed = seen.failed[0] ?? seen.broken[0]
    if (failed === undefined) continue
    const unplanted = await process.run({ files: [file], ids: [], changes: [] }, testLimitMs)
    const isSound = unplanted !== "late" && unplanted.failed.length + unplanted.broken.length === 0
    if (isSound) return { _tag: "Caught", by: `${file}: ${failed}` }
  }
  return { _tag: "Survived" }
}

/** Many at once as far as that can be; what ran before a test could switch it on is asked again, one by one. */
const judgeAll = async (mutants: ReadonlyArray<Mutant>): Promise<ReadonlyArray<End>> => {
  const sources = new Map(mutants.map(({ file }) => [file, textOf(file)]))
  const numbered = mutants.map((mutant, number) => ({ mutant, number }))
  const testFiles = chooseTests(mutants)
  const parts = await Promise.all(
    Array.from({ length: workers }, (_, part) =>
      runSwitched({
        sources,
        mutants: numbered.filter(({ number }) => number % workers === part),
        testFiles,
        note: console.log,
      }),
    ),
  )
  const processes = Array.from({ length: workers }, openTestProcess)
  try {
    return await inTurns(processes, numbered, async (process, { mutant, number }): Promise<End> => {
      const { ends, loaded, reaching } = parts[number % workers] ?? parts[0]!
      const end = ends.get(number)
      if (end !== undefined) return end
      if (!loaded.has(mutant.inFunction)) return { _tag: "Survived" }
      const tests = [...(reaching.get(mutant.inFunction) ?? [])]
      return judge(process, mutant, sources.get(mutant.file) ?? "", tests)
    })
  } finally {
    for (const process of processes) process.stop()
  }
}

const accepted = readAccepted()
const strays = strayEntries(accepted, (file) => mutantsOf(file, textOf(file)))
for (const stray of strays) console.error(stray)
const mutants = chooseMutants()
const open = mutants.filter((mutant) => !isAccepted(mutant, accepted))
if (mutants.length === 0) {
  console.error(`nothing to do: no mutant is chosen; the rooms are ${Object.keys(rooms).join(", ")}`)
  process.exit(2)
}
const ends = await judgeAll(open)
const survivors = open.filter((_, index) => ends[index]?._tag === "Survived")
for (const mutant of survivors) console.log(describe(mutant))
const others = Array.from({ length: mutants.length - open.length }, (): End => ({ _tag: "Accepted" }))
console.log(figureLine([...ends, ...others]))
process.exitCode = survivors.length + strays.length > 0 ? 1 : 0
