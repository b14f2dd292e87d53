/**
 * Which test files run which functions, measured: every function of the rooms tells once per process that it was
 * reached. A mutant then needs only the tests that run its function, the quickest first. What was measured is kept
 * until the test file or a source that it loads changes.
 */
import { createHash } from "node:crypto"
import { existsSync, globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { Schema } from "effect"
import { sourcesVariable } from "../conformance/PlantText.ts"
import { inTurns, openTestProcess, type TestProcess } from "../conformance/TestProcess.ts"
import { filesIn, root, rooms, type Mutant, type Room } from "./Mutant.ts"
import { functionBodies, parseSource } from "./Syntax.ts"

/** The file that functions are told in. */
const reachedVariable = "NIGHTJAR_REACHED"

const prelude =
  'import { appendFileSync as appendReached } from "node:fs"; const seenReached = new Set(); ' +
  "const reached = (id) => { if (seenReached.has(id)) return; seenReached.add(id); " +
  `if (process.env.${reachedVariable}) appendReached(process.env.${reachedVariable}, id + "\\n") }; `

/** The source with its functions telling that they were reached, by the ids `file#1`, `file#2` …; `file#0` loads. */
export const withProbes = (file: string, text: string): string => {
  const edits = functionBodies(parseSource(text)).flatMap(({ type, start, end }, index) => {
    const call = `reached(${JSON.stringify(`${file}#${index + 1}`)})`
    if (type === "BlockStatement") return [{ at: start + 1, put: ` ${call}; ` }]
    return [
      { at: start, put: `(${call}, ` },
      { at: end, put: ")" },
    ]
  })
  let probed = ""
  let from = 0
  for (const { at, put } of edits.toSorted((a, b) => a.at - b.at)) {
    probed += text.slice(from, at) + put
    from = at
  }
  return `${prelude}reached(${JSON.stringify(`${file}#0`)});\n${probed}${text.slice(from)}`
}

const Measured = Schema.Struct({
  /** Of the rooms, of the test file and of all their sources that it loads. */
  digest: Schema.String,
  elapsedMs: Schema.Number,
  /** Functions by their ids. */
  reached: Schema.Array(Schema.String),
})
export type Reach = Readonly<Record<string, typeof Measured.Type>>
const KeptReach = Schema.fromJsonString(Schema.Record(Schema.String, Measured))

const keptIn = join(root, "node_modules/.cache/mutants-reach.json")
const readKept = (): Reach => {
  if (!existsSync(keptIn)) return {}
  const kept = Schema.decodeUnknownOption(KeptReach)(readFileSync(keptIn, "utf8"))
  return kept._tag === "Some" ? kept.value : {}
}

const digestOf = (test: string, reached: ReadonlyArray<string>): string => {
  const loaded = reached.filter((id) => id.endsWith("#0")).map((id) => id.slice(0, -2))
  const hash = createHash("sha256").update(JSON.stringify(rooms))
  for (const path of [test, ...loaded]) {
    const isThere = existsSync(join(root, path))
    hash.update(`${path}\n`).update(isThere ? readFileSync(join(root, path)) : "gone")
  }
  return hash.digest("hex")
}

const fileLimitMs = 300_000

/** Undefined where the file fails without any bug. */
const measureFile = async (process: TestProcess, file: string, folder: string) => {
  const told = join(folder, `${file.replaceAll("/", " ")}.reached`)
  const environment = { [sourcesVariable]: folder, [reachedVariable]: told }
  const startedAt = performance.now()
  const seen = await process.run({ files: [file], ids: [], changes: [], environment }, fileLimitMs)
  const elapsedMs = Math.round(performance.now() - startedAt)
  const ids = existsSync(told) ? readFileSync(told, "utf8").split("\n").filter(Boolean) : []
  const reached = [...new Set(ids)].toSorted()
  const isSound = seen !== "late" && seen.failed.length + seen.broken.length === 0
  return isSound ? { digest: digestOf(file, reached), elapsedMs, reached } : undefined
}

/**
 * What every test file reaches, two measured at a time; only what is not known yet, or has changed since, runs. What the
 * rest of the sources changes is seen with the next change of the test or of what it loads.
 */
export const measureReach = async (pattern: RegExp, note: (text: string) => void): Promise<Reach> => {
  const testFiles = globSync("test/**/*.test.ts", { cwd: root }).toSorted()
  const known = Object.entries(readKept()).filter(
    ([file, { digest, reached }]) => testFiles.includes(file) && digestOf(file, reached) === digest,
  )
  const reach: Record<string, typeof Measured.Type> = Object.fromEntries(known)
  const missing = testFiles.filter((file) => pattern.test(file) && reach[file] === undefined)
  if (missing.length === 0) return reach
  note(`measuring which functions ${missing.length} test files reach`)
  const folder = mkdtempSync(join(tmpdir(), "nightjar-reach-"))
  const processes = Array.from({ length: 2 }, openTestProcess)
  const keep = () => {
    mkdirSync(dirname(keptIn), { recursive: true })
    writeFileSync(keptIn, JSON.stringify(reach))
  }
  try {
    for (const file of (Object.keys(rooms) as ReadonlyArray<Room>).flatMap(filesIn)) {
      const path = join(folder, file)
      mkdirSync(dirname(path), { recursive: true })
      writeFileSync(path, withProbes(file, readFileSync(join(root, file), "utf8")))
    }
    await inTurns(processes, missing, async (process, file) => {
      const measured = await measureFile(process, file, folder)
      if (measured === undefined) return note(`left out, it fails without any bug: ${file}`)
      reach[file] = measured
      keep()
    })
  } finally {
    for (const process of processes) process.stop()
    rmSync(folder, { recursive: true, force: true, maxRetries: 5 })
  }
  return reach
}

export interface Reaching {
  readonly file: string
  readonly elapsedMs: number
}

/** The test files that run the mutant's function: those of its own module first, then its room's, the quickest first. */
export const reaching = (
  { file, inFunction }: Pick<Mutant, "file" | "inFunction">,
  tests: Reach,
  pattern: RegExp,
): ReadonlyArray<Reaching> => {
  const id = `${file}#${inFunction}`
  const own = file.replace(/^src\//, "test/").replace(/\.ts$/, ".test.ts")
  const rank = (test: string) => (test === own ? 0 : dirname(test) === dirname(own) ? 1 : 2)
  return Object.entries(tests)
    .filter(([test, { reached }]) => pattern.test(test) && reached.includes(id))
    .map(([test, { elapsedMs }]) => ({ file: test, elapsedMs }))
    .toSorted((a, b) => rank(a.file) - rank(b.file) || a.elapsedMs - b.elapsedMs)
}
