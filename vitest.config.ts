/**
 * How the tests run: in three plain threads for two cores, since many wait for a service. The files of a thread share one
 * module graph, because loading Effect anew for each of them cost as much as the tests; nothing in it is global, and
 * who changes a global puts it back. Their folders lie in memory where there is enough of it: publishing waits for the
 * disk three quarters of its time. The longest files come first, so that all threads end together. The day has just
 * begun in their time zone.
 */
import { spawnSync } from "node:child_process"
import { mkdtempSync, readdirSync, rmSync, statfsSync, statSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { setFlagsFromString } from "node:v8"
import { defineConfig } from "vitest/config"
import { BaseSequencer } from "vitest/node"
import type { TestSpecification } from "vitest/node"
import { timezone } from "./test/harness/Environment.ts"

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
const mayMove = process.env["TMPDIR"] === undefined && holdsTests(memory)

/**
 * All folders of this run, and gone with it: those of tests that were not run too, as in a list of them. A run that was
 * killed leaves its own, which goes with a run a day later. Its path is short, since sockets lie below it.
 */
const base = mayMove ? memory : tmpdir()
const remove = (folder: string): void => rmSync(folder, { recursive: true, force: true, maxRetries: 5 })
for (const name of readdirSync(base).filter((one) => /^nj-\w{6}$/.test(one))) {
  const at = statSync(join(base, name), { throwIfNoEntry: false })?.mtimeMs ?? Infinity
  if (performance.timeOrigin - at > 24 * 60 * 60_000) remove(join(base, name))
}
const folders = mkdtempSync(join(base, "nj-"))
process.on("exit", () => remove(folders))

/** Tests start the same programs hundreds of times: Node compiles each of their modules once a run. */
const compiled = fileURLToPath(new URL("node_modules/.cache/nightjar-compiled", import.meta.url))
// What earlier runs left; not by the runs that tests start themselves. Another run may be writing there at the moment.
if (process.env["NODE_COMPILE_CACHE"] === undefined)
  rmSync(compiled, { recursive: true, force: true, maxRetries: 5 })

// Simulated nights make short-lived objects without end, and each file that is read counts as memory that presses. With
// little room for them, and a collection of everything whenever a few databases were read, a fifth of the time is
// collecting.
for (const flag of [
  "--min-semi-space-size=32",
  "--max-semi-space-size=64",
  "--initial-old-space-size=512",
  "--external-memory-accounted-in-global-limit",
])
  setFlagsFromString(flag)

/** In seconds, roughly: a clean clone knows no durations, and the size of a file says little about them. */
const longest = [
  "cli/Processes", // 33, most of it waiting
  "acceptance/Acquaint", // 20
  "acceptance/badnights/BadNights",
  "cli/Damage",
  "canaries/Echoes",
  "cli/commands/Tokens",
  "tables/Repair",
  "simulation/simulation",
  "conformance/Traffic", // 12
  "tables/PublisherDuckDb",
  "faults/Unusable",
  "acceptance/Life",
  "attack/Attack",
  "cli/Webhooks",
  "report/Telemetry",
  "jobs/HostileFiles",
  "project/readme",
  "privacy/JsonTokens", // 5
].map((name) => `/test/${name}.test.ts`)

class LongestFirst extends BaseSequencer {
  override async sort(files: Array<TestSpecification>): Promise<Array<TestSpecification>> {
    const place = ({ moduleId }: TestSpecification) => {
      const index = longest.findIndex((name) => moduleId.endsWith(name))
      return index < 0 ? longest.length : index
    }
    return (await super.sort(files)).toSorted((a, b) => place(a) - place(b))
  }
}

export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    pool: "threads",
    isolate: false,
    maxWorkers: 3,
    testTimeout: 120_000,
    hookTimeout: 20_000,
    teardownTimeout: 5_000,
    restoreMocks: true,
    sequence: { hooks: "list", sequencer: LongestFirst },
    env: { TZ: timezone, NODE_COMPILE_CACHE: compiled, TMPDIR: folders },
  },
})
