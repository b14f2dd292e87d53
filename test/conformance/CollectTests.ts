/**
 * The titles of all tests as the test runner itself collects them: it runs the files without running their
 * tests, so that a title that is made for each value of a list counts for each of them.
 */
import { spawnSync } from "node:child_process"
import { mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join, relative } from "node:path"
import { fileURLToPath } from "node:url"
import { Schema } from "effect"
import type { CollectedTest } from "./Coverage.ts"

const root = fileURLToPath(new URL("../../", import.meta.url))
const Listing = Schema.fromJsonString(
  Schema.Array(Schema.Struct({ name: Schema.String, file: Schema.String })),
)

/** One module graph for all files: nothing runs, so nothing can disturb anything, and it takes seconds. */
const flags = ["--no-static-parse", "--no-isolate"]

export const collectTests = (folders: ReadonlyArray<string>): ReadonlyArray<CollectedTest> => {
  const folder = mkdtempSync(join(tmpdir(), "titles-"))
  const path = join(folder, "titles.json")
  try {
    const runner = join(root, "node_modules/vitest/vitest.mjs")
    const { status, stderr } = spawnSync(
      process.execPath,
      [runner, "list", ...folders, ...flags, `--json=${path}`],
      { cwd: root, encoding: "utf8", env: { ...process.env, NO_COLOR: "1" } },
    )
    if (status !== 0) throw new Error(`the tests cannot be collected: ${stderr.trim().slice(0, 2000)}`)
    return Schema.decodeUnknownSync(Listing)(readFileSync(path, "utf8")).map(({ name, file }) => ({
      file: relative(root, file),
      title: name,
    }))
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}
