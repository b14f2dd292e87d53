/** What a database is built or continued of, asked directly: values that do not fit are told, and failures are ours. */
import { copyFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { amendDatabase, buildDatabase, renumberDatabase } from "../../src/tables/BuildDatabase.ts"
import { publishedTables } from "../../src/tables/DataDictionary.ts"
import { layoutOf, nothingPublished, readManifest } from "../../src/tables/Manifest.ts"
import { families } from "../records/families.ts"
import { folder, foundation, layers, liveNight, profileOf, storeOf } from "./night.ts"

describe("a database", () => {
  it.live("that is continued tells which values do not fit a column whose type has changed", () =>
    Effect.gen(function* () {
      const root = yield* folder
      yield* Effect.provide(
        liveNight("nightly.2026-11-20", "1", profileOf("Ana"), profileOf("7")),
        layers(root),
      )
      const { families } = yield* Effect.provide(storeOf(root), foundation(root))
      const { database, build: path, manifest: place } = layoutOf(root)
      copyFileSync(database, path)
      const changed = families.map((family) => ({
        ...family,
        columns: family.columns.map((one) =>
          one.name === "name" ? { ...one, type: "INTEGER" as const } : one,
        ),
      }))
      const manifest = readManifest(place) ?? nothingPublished
      const options = {
        path,
        root,
        manifest,
        families: changed,
        standsAt: (file: { path: string }) => file.path,
      }
      const amended = amendDatabase(options, ["nightly.2026-11-20"], publishedTables(changed))
      const { unfit } = (yield* Effect.provide(amended, foundation(root))) ?? {}
      assert.deepStrictEqual(unfit, [{ table: "customer_profiles", column: "name", count: 1 }])
    }).pipe(Effect.scoped),
  )

  it.live("that cannot be opened is a publication that failed, whatever was to be done with it", () =>
    Effect.gen(function* () {
      const root = yield* folder
      const path = join(root, "missing", "nightjar.duckdb")
      const options = {
        path,
        root,
        manifest: nothingPublished,
        families,
        standsAt: () => "",
        sequences: new Map(),
        lost: new Map(),
        memoryLimit: "384MB" as const,
      }
      for (const work of [
        buildDatabase(options),
        amendDatabase(options, [], []),
        renumberDatabase(path, 2),
      ]) {
        const failed = yield* Effect.flip(Effect.provide(work, foundation(root)))
        assert.strictEqual(failed._tag, "PublishFailed")
      }
    }).pipe(Effect.scoped),
  )
})
