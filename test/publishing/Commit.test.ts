/** A version that is decided is put into place, whoever asks the process to stop meanwhile. */
import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { machineCalls } from "../../src/foundation/FileCalls.ts"
import type { FileCalls } from "../../src/foundation/FileCalls.ts"
import { Publisher } from "../../src/publishing/Publisher.ts"
import { append, begin, folder, layers, rowsOf } from "./night.ts"
import { anId } from "../harness/Id.ts"

const run_id = anId("nightly.2026-11-20")

describe("a publication that is interrupted", () => {
  it.live("once it is committed: the whole version is in place when the interruption takes effect", () =>
    Effect.gen(function* () {
      const root = yield* folder
      const cut: { fiber?: Fiber.Fiber<unknown, unknown> } = {}
      const calls: FileCalls = {
        ...machineCalls,
        rename: (from, to) => {
          machineCalls.rename(from, to)
          if (to.endsWith("manifest.next.json")) cut.fiber?.interruptUnsafe()
        },
      }
      yield* Effect.gen(function* () {
        yield* append([begin(run_id, "2026-11-20")])
        const publisher = yield* Publisher
        const fiber = yield* Effect.forkChild(publisher.publish(run_id))
        cut.fiber = fiber
        yield* Fiber.await(fiber)
        const manifest: unknown = JSON.parse(readFileSync(join(root, "tables/manifest.json"), "utf8"))
        assert.deepInclude(manifest, { version: 1 })
        assert.isFalse(existsSync(join(root, "tables/manifest.next.json")))
        assert.deepStrictEqual(yield* rowsOf(root, "SELECT published_version() AS version"), [{ version: 1 }])
      }).pipe(Effect.provide(layers(root, calls)))
    }).pipe(Effect.scoped),
  )
})
