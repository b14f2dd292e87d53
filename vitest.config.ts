/**
 * How the tests run: on two cores in plain threads. The files of a thread share one module graph, because loading Effect
 * anew for each of them cost as much as the tests; nothing in it is global, and who changes a global puts it back.
 */
import { defineConfig } from "vitest/config"

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
  },
})
