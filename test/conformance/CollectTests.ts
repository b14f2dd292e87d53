/**
 * The titles of all tests as the test runner itself collects them: it runs the files without running their
 * tests, so that a title that is made for each value of a list counts for each of them. What it found in all files is
 * kept until one of them changes: loading them takes as long as planting a few bugs.
 */
import { createHash } from "node:crypto"
import { spawnSync } from "node:child_process"
import { globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join, relative } from "node:path"
import { fileURLToPath } from "node:url"
import { Schema } from "effect"
import type { CollectedTest } from "./Coverage.ts"

const root = fileURLToPath(new URL("../../", import.meta.url))
const Listing = Schema.fromJsonString(
  Schema.Array(Schema.Struct({ name: Schema.String, file: Schema.String })),
)

/** One module graph for all files: nothing runs, so nothing can disturb anything, and it is loaded once. */
const flags = ["--no-static-parse", "--no-isolate", "--maxWorkers=1"]

const kept = join(root, "node_modules/.cache/nightjar-titles.json")
const Kept = Schema.fromJsonString(
  Schema.Struct({
    of: Schema.String,
    titles: Schema.Array(Schema.Struct({ file: Schema.String, title: Schema.String })),
  }),
)

/** Titles are made of the sources, the tests, and what the environment asks of them. */
const stateOfTests = (): string => {
  const hash = createHash("sha256")
  const asked = Object.entries(process.env).filter(([name]) => name.startsWith("NIGHTJAR_"))
  hash.update(JSON.stringify(asked.toSorted()))
  const files = globSync(["{src,test,schemas,jobs}/**/*.*", "*.{json,ts}"], { cwd: root })
  // But for what is made of the titles.
  const sources = files.filter((path) => path !== "schemas/conformance.md")
  for (const path of sources.toSorted()) hash.update(`${path}\0`).update(readFileSync(join(root, path)))
  return hash.digest("hex")
}

const keptTitles = (of: string): ReadonlyArray<CollectedTest> | undefined => {
  try {
    const known = Schema.decodeUnknownSync(Kept)(readFileSync(kept, "utf8"))
    return known.of === of ? known.titles : undefined
  } catch {
    return undefined
  }
}

const collectTests = (): ReadonlyArray<CollectedTest> => {
  const folder = mkdtempSync(join(tmpdir(), "titles-"))
  const path = join(folder, "titles.json")
  try {
    const runner = join(root, "node_modules/vitest/vitest.mjs")
    const { status, stderr } = spawnSync(process.execPath, [runner, "list", ...flags, `--json=${path}`], {
      cwd: root,
      encoding: "utf8",
      env: { ...process.env, NO_COLOR: "1" },
    })
    if (status !== 0) throw new Error(`the tests cannot be collected: ${stderr.trim().slice(0, 2000)}`)
    return Schema.decodeUnknownSync(Listing)(readFileSync(path, "utf8")).map(({ name, file }) => ({
      file: relative(root, file),
      title: name,
    }))
  } finally {
    rmSync(folder, { recursive: true, force: true, maxRetries: 5 })
  }
}

/** All tests of all files. */
export const collectAllTests = (): ReadonlyArray<CollectedTest> => {
  const of = stateOfTests()
  const known = keptTitles(of)
  if (known !== undefined) return known
  const titles = collectTests()
  mkdirSync(dirname(kept), { recursive: true })
  writeFileSync(kept, JSON.stringify({ of, titles }))
  return titles
}
