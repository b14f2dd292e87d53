/**
 * How the tests run: on two cores in plain threads. The files of a thread share one module graph, because loading Effect
 * anew for each of them cost as much as the tests; nothing in it is global, and who changes a global puts it back.
 * Their folders lie in memory where there is enough of it: publishing waits for the disk three quarters of its time.
 */
import { spawnSync } from "node:child_process"
import { mkdtempSync, rmSync, statfsSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { defineConfig } from "vitest/config"

/** What all folders of a run need at once, several times over. */
const memoryBytesMin = 2_000_000_000

/** Big enough, and programs start from there: a container's memory disk is often small, and refuses them. */
const holdsTests = (folder: string): boolean => {
  try {
    const { bavail, bsize } = statfsSync(folder)
    if (bavail * bsize < memoryBytesMin) return false
    const probe = mkdtempSync(join(folder, "nightjar-probe-"))
    const program = join(probe, "program")
    writeFileSync(program, "#!/bin/sh\n", { mode: 0o700 })
    const { status } = spawnSync(program)
    rmSync(probe, { recursive: true })
    return status === 0
  } catch {
    return false
  }
}

const memory = "/dev/shm"
/** A list of the tests loads every file and ends none: what their loading makes must not stay in memory. */
const isList = process.argv.includes("list")
const mayMove = !isList && process.env["TMPDIR"] === undefined && holdsTests(memory)

export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    pool: "threads",
    isolate: false,
    maxWorkers: 2,
    testTimeout: 60_000,
    hookTimeout: 20_000,
    teardownTimeout: 5_000,
    restoreMocks: true,
    sequence: { hooks: "list" },
    env: mayMove ? { TMPDIR: memory } : {},
  },
})
