/**
 * How the tests run: on two cores in plain threads. The files of a thread share one module graph, because loading Effect
 * anew for each of them cost as much as the tests; nothing in it is global. A test that replaces a module runs alone.
 */
import { defineConfig } from "vitest/config"

/** They put another module in the place of one that is loaded already in a shared graph. */
const alone = ["test/landing/FolderSync.test.ts"]

export default defineConfig({
  test: {
    pool: "threads",
    maxWorkers: 2,
    testTimeout: 60_000,
    hookTimeout: 20_000,
    teardownTimeout: 5_000,
    restoreMocks: true,
    sequence: { hooks: "list" },
    projects: [
      {
        extends: true,
        test: { name: "shared", isolate: false, include: ["test/**/*.test.ts"], exclude: alone },
      },
      { extends: true, test: { name: "alone", include: alone } },
    ],
  },
})
