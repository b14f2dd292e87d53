/** A file whose folder was never synced may be gone after a power cut, however well its bytes were. */
import fs from "node:fs"
import { syncBuiltinESMExports } from "node:module"
import { tmpdir } from "node:os"
import { join, relative } from "node:path"
import { afterAll, assert, describe, it } from "@effect/vitest"
import { Effect, Stream } from "effect"
import { Landing } from "../../src/landing/Landing.ts"
import { LandingFiles } from "../../src/landing/LandingFiles.ts"
import { bytesOf, metaOf } from "./landingSuite.ts"

const open = new Map<number, string>()
const synced: Array<string> = []
const { openSync, fsyncSync } = fs
fs.openSync = (path, ...rest) => {
  const descriptor = openSync(path, ...rest)
  open.set(descriptor, String(path))
  return descriptor
}
fs.fsyncSync = (descriptor) => {
  synced.push(open.get(descriptor) ?? "?")
  fsyncSync(descriptor)
}
// Modules that import these functions by name see the change, however long they have been loaded.
syncBuiltinESMExports()
afterAll(() => {
  Object.assign(fs, { openSync, fsyncSync })
  syncBuiltinESMExports()
})

const root = fs.mkdtempSync(join(tmpdir(), "nightjar-sync-"))
afterAll(() => fs.rmSync(root, { recursive: true, force: true }))
const run = "nightly.2026-11-21"

const foldersSynced = <A, E>(work: Effect.Effect<A, E, Landing>) =>
  Effect.gen(function* () {
    synced.length = 0
    yield* work
    return [...new Set(synced)].map((path) => relative(root, path)).toSorted()
  })

describe("what is landed", () => {
  it.effect("is in a folder that is synced, and so are the folders above it, once they are made", () =>
    Effect.gen(function* () {
      const landing = yield* Landing
      const first = yield* foldersSynced(landing.land(metaOf("a"), bytesOf("a")))
      assert.deepStrictEqual(first, ["", "landing", `landing/${run}`])
      assert.deepStrictEqual(yield* foldersSynced(landing.land(metaOf("b"), bytesOf("b"))), [])
      const document = yield* foldersSynced(landing.landAttachment(Stream.make(bytesOf("c"))))
      assert.deepStrictEqual(document, ["", "attachments"])
    }).pipe(Effect.provide(LandingFiles.layer({ root }))),
  )

  it.effect("begins a segment of its own in a folder that is there: that is synced too", () =>
    Effect.gen(function* () {
      const landing = yield* Landing
      const again = yield* foldersSynced(landing.land(metaOf("d"), bytesOf("d")))
      assert.deepStrictEqual(again, [`landing/${run}`])
    }).pipe(Effect.provide(LandingFiles.layer({ root }))),
  )
})
