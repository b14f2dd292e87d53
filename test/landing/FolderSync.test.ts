/** A file whose folder was never synced may be gone after a power cut, however well its bytes were. */
import { relative } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Stream } from "effect"
import { FileCalls, machineCalls } from "../../src/base/DurableFile.ts"
import { Landing } from "../../src/landing/Landing.ts"
import { LandingFiles } from "../../src/landing/LandingFiles.ts"
import { bytesOf, metaOf } from "./landingSuite.ts"
import { freshFolders } from "../harness/Folder.ts"

const synced = { paths: [] as Array<string> }
const open = new Map<number, string>()
const calls: FileCalls = {
  ...machineCalls,
  open: (path, flags, mode) => {
    const descriptor = machineCalls.open(path, flags, mode)
    open.set(descriptor, path)
    return descriptor
  },
  sync: (descriptor) => {
    synced.paths.push(open.get(descriptor) ?? "?")
    machineCalls.sync(descriptor)
  },
}
const landingIn = (root: string) =>
  LandingFiles.layer({ root }).pipe(Layer.provide(Layer.succeed(FileCalls, calls)))

const fresh = freshFolders()
const run = "nightly.2026-11-21"

const foldersSynced = <A, E>(root: string, work: Effect.Effect<A, E, Landing>) =>
  Effect.gen(function* () {
    synced.paths.length = 0
    yield* work
    return [...new Set(synced.paths)].map((path) => relative(root, path)).toSorted()
  })

describe("a landed body", () => {
  it.effect("is in a synced folder, and so are the folders above it, once they are created", () => {
    const root = fresh()
    const begun = Effect.gen(function* () {
      const landing = yield* Landing
      const first = yield* foldersSynced(root, landing.land(metaOf("a"), bytesOf("a")))
      assert.deepStrictEqual(first, ["", "landing", `landing/${run}`])
      assert.deepStrictEqual(yield* foldersSynced(root, landing.land(metaOf("b"), bytesOf("b"))), [])
      const document = yield* foldersSynced(root, landing.landAttachment(Stream.make(bytesOf("c"))))
      assert.deepStrictEqual(document, ["", "attachments"])
    })
    const later = Effect.gen(function* () {
      const landing = yield* Landing
      // Another process begins its own segment in the folder that is there.
      const again = yield* foldersSynced(root, landing.land(metaOf("d"), bytesOf("d")))
      assert.deepStrictEqual(again, [`landing/${run}`])
    })
    return Effect.andThen(
      Effect.provide(begun, Layer.fresh(landingIn(root))),
      Effect.provide(later, Layer.fresh(landingIn(root))),
    )
  })
})
