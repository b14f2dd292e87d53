/**
 * Which test files run which functions, measured: every function of the rooms tells once per process that it was
 * reached. A mutant then needs only the tests that run its function, the quickest first. What was measured is kept
 * until a source changes, and for a test file until that file changes.
 */
import { createHash } from "node:crypto"
import { existsSync, globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { basename, dirname, join } from "node:path"
import { Schema } from "effect"
import { sourcesVariable } from "../conformance/PlantText.ts"
import { inTurns, openTestProcess } from "../conformance/TestProcess.ts"
import { filesIn, root, rooms } from "./Mutant.ts"
import type { Mutant, Room } from "./Mutant.ts"
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
  sources: Schema.String,
  tests: Schema.Record(
    Schema.String,
    Schema.Struct({
      digest: Schema.String,
      elapsedMs: Schema.Number,
      /** Functions by their ids; undefined where the file fails without any bug. */
      reached: Schema.UndefinedOr(Schema.Array(Schema.String)),
    }),
  ),
})
type Measured = typeof Measured.Type
const KeptReach = Schema.fromJsonString(Measured)

const keptIn = join(root, "node_modules/.cache/mutants-reach.json")
const digestOf = (...paths: ReadonlyArray<string>): string => {
  const hash = createHash("sha256")
  for (const path of paths) hash.update(`${path}\n`).update(readFileSync(join(root, path)))
  return hash.digest("hex")
}

const readKept = (sources: string): Measured => {
  const none: Measured = { sources, tests: {} }
  if (!existsSync(keptIn)) return none
  const kept = Schema.decodeUnknownSync(KeptReach)(readFileSync(keptIn, "utf8"))
  return kept.sources === sources ? kept : none
}

const fileLimitMs = 300_000

/** Every test file measured, two at a time; only what is not known yet runs. */
export const measureReach = async (
  pattern: RegExp,
  note: (text: string) => void,
): Promise<Measured["tests"]> => {
  const testFiles = globSync("test/**/*.test.ts", { cwd: root }).toSorted()
  const files = [...new Set((Object.keys(rooms) as ReadonlyArray<Room>).flatMap(filesIn))]
  const support = globSync("{src,test}/**/*.ts", { cwd: root }).filter((path) => !path.endsWith(".test.ts"))
  const kept = readKept(digestOf(...support.filter((path) => !path.startsWith("test/mutants/")).toSorted()))
  const digests = new Map(testFiles.map((file) => [file, digestOf(file)]))
  const isKnown = (file: string) => kept.tests[file]?.digest === digests.get(file)
  const tests = { ...kept.tests }
  for (const file of Object.keys(tests)) if (!digests.has(file)) delete tests[file]
  const missing = testFiles.filter((file) => pattern.test(file) && !isKnown(file))
  if (missing.length === 0) return tests
  note(`measuring which functions ${missing.length} test files reach`)
  const folder = mkdtempSync(join(tmpdir(), "nightjar-reach-"))
  const processes = Array.from({ length: 2 }, openTestProcess)
  try {
    for (const file of files) {
      const path = join(folder, file)
      mkdirSync(dirname(path), { recursive: true })
      writeFileSync(path, withProbes(file, readFileSync(join(root, file), "utf8")))
    }
    await inTurns(processes, missing, async (process, file) => {
      const told = join(folder, `${basename(file)}.reached`)
      const environment = { [sourcesVariable]: folder, [reachedVariable]: told }
      const startedAt = performance.now()
      const seen = await process.run({ files: [file], ids: [], changes: [], environment }, fileLimitMs)
      const isSound = seen !== "late" && seen.failed.length + seen.broken.length === 0
      if (!isSound) note(`left out, it fails without any bug: ${file}`)
      const ids = existsSync(told) ? readFileSync(told, "utf8").split("\n").filter(Boolean) : []
      tests[file] = {
        digest: digests.get(file) ?? "",
        elapsedMs: Math.round(performance.now() - startedAt),
        reached: isSound ? [...new Set(ids)].toSorted() : undefined,
      }
    })
  } finally {
    for (const process of processes) process.stop()
    rmSync(folder, { recursive: true, force: true })
  }
  mkdirSync(dirname(keptIn), { recursive: true })
  writeFileSync(keptIn, JSON.stringify({ sources: kept.sources, tests }))
  return tests
}

export interface Reaching {
  readonly file: string
  readonly elapsedMs: number
}

/** The test files that run the mutant's function: those of its own module first, then its room's, the quickest first. */
export const reaching = (
  { file, inFunction }: Pick<Mutant, "file" | "inFunction">,
  tests: Measured["tests"],
  pattern: RegExp,
): ReadonlyArray<Reaching> => {
  const id = `${file}#${inFunction}`
  const own = file.replace(/^src\//, "test/").replace(/\.ts$/, ".test.ts")
  const rank = (test: string) => (test === own ? 0 : dirname(test) === dirname(own) ? 1 : 2)
  return Object.entries(tests)
    .filter(([test, { reached }]) => pattern.test(test) && reached?.includes(id) === true)
    .map(([test, { elapsedMs }]) => ({ file: test, elapsedMs }))
    .toSorted((a, b) => rank(a.file) - rank(b.file) || a.elapsedMs - b.elapsedMs)
}
