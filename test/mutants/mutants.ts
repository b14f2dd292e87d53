/**
 * `npm run mutants -- --room ROOM [--file F] [--sample N] [--from K] [--id ID] [--tests REGEX] [--json]`: plants small
 * bugs that a parser finds, one after another and in memory only, and runs the tests that reach them until one fails.
 * Prints who survived and how many of a hundred; exits 1 on a survivor that nobody accepted.
 */
import { readFileSync } from "node:fs"
import { parseArgs } from "node:util"
import { drawn } from "../conformance/Draw.ts"
import type { Change } from "../conformance/PlantText.ts"
import { inTurns, openTestProcess, type TestProcess } from "../conformance/TestProcess.ts"
import { readAccepted, reasonOf, strayEntries } from "./Accepted.ts"
import { changeOf, describe, filesIn, readMutants, rooms, root, type Mutant, type Room } from "./Mutant.ts"
import { endOfFile, figureLine, figureOf, type End, type Judged } from "./Outcome.ts"
import { measureReach, reaching, type Reaching } from "./Reach.ts"
import { runSwitched } from "./RunSwitched.ts"
import { functionOf, isSwitchable, type Numbered } from "./Switched.ts"

const { values } = parseArgs({
  options: {
    room: { type: "string", multiple: true },
    /** Part of a file's path. */
    file: { type: "string", multiple: true },
    /** One mutant again, as `src/task/Verdict.ts#41`. */
    id: { type: "string", multiple: true },
    /** So many, in an order that the seed draws, from the K-th on. */
    sample: { type: "string" },
    from: { type: "string", default: "1" },
    seed: { type: "string", default: "1" },
    /** Test files that may notice; a survivor has survived these only. */
    tests: { type: "string", default: "" },
    json: { type: "boolean", default: false },
    verbose: { type: "boolean", default: false },
  },
})

const workers = 2
const startedAt = performance.now()
const note = (text: string): void => {
  if (!values.json) console.log(text)
}
const refuse = (text: string): never => {
  console.error(text)
  process.exit(2)
}

const chosenRooms = (): ReadonlyArray<Room> => {
  const all = Object.keys(rooms) as ReadonlyArray<Room>
  const stranger = values.room?.find((name) => !all.some((room) => room === name))
  if (stranger !== undefined) refuse(`there is no room ${stranger}; there are ${all.join(", ")}`)
  return all.filter((room) => values.room?.includes(room) ?? true)
}

const chooseMutants = (): ReadonlyArray<Mutant> => {
  const isChosen = (file: string) => values.file?.some((part) => file.includes(part)) ?? true
  const files = [...new Set(chosenRooms().flatMap(filesIn))].filter(isChosen)
  const all = readMutants(files)
  if (values.id !== undefined) return all.filter(({ id }) => values.id?.includes(id))
  if (values.sample === undefined) return all.slice(Number(values.from) - 1)
  const at = Number(values.from) - 1
  return drawn(all, ({ id }) => id, values.seed).slice(at, at + Number(values.sample))
}

/** A test that a mutant slows down is given time; one that it stops is not waited for long. */
const limitOf = ({ elapsedMs }: Reaching): number => 15_000 + 5 * elapsedMs

const runTest = async (process: TestProcess, test: Reaching, changes: ReadonlyArray<Change>) =>
  endOfFile(test.file, await process.run({ files: [test.file], ids: [], changes }, limitOf(test)))

/** Test files that fail without any bug notice nothing; each is asked once, when it first fails with one. */
const soundness = new Map<string, boolean>()
const isSound = async (process: TestProcess, test: Reaching): Promise<boolean> => {
  const known = soundness.get(test.file)
  if (known !== undefined) return known
  const sound = (await runTest(process, test, [])) === undefined
  if (!sound) console.error(`left out, it fails without any bug: ${test.file}`)
  soundness.set(test.file, sound)
  return sound
}

const textOf = (file: string): string => readFileSync(`${root}${file}`, "utf8")
/** As it was when its mutants were found. */
const texts = new Map<string, string>()
const survivedOf = ({ length }: ReadonlyArray<unknown>): End => ({
  _tag: "Survived",
  why: length === 0 ? "no test reaches it" : `${length} test files reach it and pass`,
})

const judge = async (process: TestProcess, mutant: Mutant, tests: ReadonlyArray<Reaching>): Promise<End> => {
  const text = texts.get(mutant.file) ?? ""
  if (text !== textOf(mutant.file)) throw new Error(`${mutant.file} changed while its mutants were planted`)
  const change = changeOf(mutant, text)
  for (const test of tests) {
    if (soundness.get(test.file) === false) continue
    const end = await runTest(process, test, [change])
    if (end !== undefined && (await isSound(process, test))) return end
  }
  return survivedOf(tests)
}

const tell = ({ mutant, end }: Judged): void => {
  if (end._tag === "Survived") note([...describe(mutant), `  ${end.why}`].join("\n"))
  else if (values.verbose) note(`${mutant.id} ${end._tag}: ${"by" in end ? end.by : end.reason}`)
}

interface AtOnce {
  readonly ends: ReadonlyMap<string, End>
  /** Of a mutant without an end that all others let pass: the test files that were stopped. */
  readonly stopped: ReadonlyMap<string, ReadonlySet<string>>
}

/** What can be said of many mutants at once, by their ids; what is missing is asked one by one. */
const judgeAtOnce = async (
  mutants: ReadonlyArray<Mutant>,
  filesOf: (mutant: Mutant) => ReadonlyArray<string>,
): Promise<AtOnce> => {
  const many = mutants
    .filter((mutant) => isSwitchable(mutant, texts.get(mutant.file) ?? ""))
    .map((mutant, number) => ({ mutant, number }))
  const files = new Map(many.map(({ mutant }) => [mutant.id, filesOf(mutant)]))
  const places = new Map<string, Array<number>>()
  for (const one of files.values())
    for (const [place, file] of one.entries()) places.set(file, [...(places.get(file) ?? []), place])
  const mean = (all: ReadonlyArray<number>) => all.reduce((sum, one) => sum + one, 0) / all.length
  const asked = {
    sources: new Map(many.map(({ mutant: { file } }) => [file, texts.get(file) ?? ""])),
    testFiles: [...places].toSorted(([, one], [, other]) => mean(one) - mean(other)).map(([file]) => file),
    reaches: (file: string, { mutant }: Numbered) => files.get(mutant.id)?.includes(file) === true,
    note: ({ mutant }: Numbered, end: End) => tell({ mutant, end }),
    warn: note,
  }
  const parts = await Promise.all(
    Array.from({ length: workers }, (_, part) =>
      runSwitched({ ...asked, mutants: many.filter(({ number }) => number % workers === part) }),
    ),
  )
  const loaded = new Set(parts.flatMap((part) => [...part.loaded]))
  const ends = new Map<string, End>()
  const stopped = new Map<string, ReadonlySet<string>>()
  for (const { number, mutant } of many) {
    const part = parts[number % workers]
    const own = files.get(mutant.id) ?? []
    const unasked = new Set(own.filter((file) => part?.stopped.has(file)))
    const end = part?.ends.get(number)
    if (end !== undefined) ends.set(mutant.id, end)
    else if (loaded.has(functionOf(mutant))) continue
    else if (unasked.size > 0) stopped.set(mutant.id, unasked)
    else {
      ends.set(mutant.id, survivedOf(own))
      tell({ mutant, end: survivedOf(own) })
    }
  }
  return { ends, stopped }
}

const main = async (): Promise<boolean> => {
  const accepted = readAccepted()
  const strays = strayEntries(accepted, (file) => readMutants([file]))
  for (const stray of strays) console.error(stray)
  const mutants = chooseMutants()
  if (mutants.length === 0) refuse("nothing to do: no mutant is chosen")
  for (const { file } of mutants) texts.set(file, textOf(file))
  const pattern = new RegExp(values.tests)
  const reach = await measureReach(pattern, note)
  const processes = Array.from({ length: workers }, openTestProcess)
  try {
    const filesOf = (mutant: Mutant) => reaching(mutant, reach, pattern).map(({ file }) => file)
    const open = mutants.filter((mutant) => reasonOf(mutant, accepted) === undefined)
    const { ends, stopped } = await judgeAtOnce(open, filesOf)
    const judged = await inTurns(processes, mutants, async (process, mutant): Promise<Judged> => {
      const known = ends.get(mutant.id)
      if (known !== undefined) return { mutant, end: known }
      const reason = reasonOf(mutant, accepted)
      const end: End =
        reason === undefined
          ? await judge(
              process,
              mutant,
              reaching(mutant, reach, pattern).filter(
                ({ file }) => stopped.get(mutant.id)?.has(file) ?? true,
              ),
            )
          : { _tag: "Accepted", reason }
      tell({ mutant, end })
      return { mutant, end }
    })
    const figure = figureOf(judged)
    const elapsedSeconds = Math.round((performance.now() - startedAt) / 1000)
    note(`${elapsedSeconds} s`)
    console.log(values.json ? JSON.stringify({ ...figure, seconds: elapsedSeconds }) : figureLine(figure))
    return figure.survived === 0 && strays.length === 0
  } finally {
    for (const process of processes) process.stop()
  }
}

process.exitCode = (await main()) ? 0 : 1
