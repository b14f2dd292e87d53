/**
 * Kept record schemas that are missing or damaged, written again with the text that they had: the manifest
 * has its hash, and the program or a job of this folder often still has the text. Comes before anything is
 * derived or read: what is published is read with the kept schemas.
 */
import { join } from "node:path"
import { Effect } from "effect"
import { durableFiles } from "../base/DurableFile.ts"
import { sha256Hex } from "../base/Hashes.ts"
import type { ReadSchema } from "../records/RecordSchema.ts"
import { lostSchemas } from "./KeepSchemas.ts"
import { newestDerived } from "./KeptVersions.ts"
import { layoutOf, modesOf } from "./Manifest.ts"
import { fileStep } from "./OutputFiles.ts"
import type { PublisherOptions } from "./OpenStore.ts"
import { standingIn } from "./PseudonymsOfJob.ts"
import { temporary } from "./Store.ts"

/**
 * Returns the names of the files that were written again. Each of `sources` has schemas, and is asked only
 * while something is lost.
 */
export const repairSchemas = Effect.fn("Publishing.repairSchemas")(function* <E, R>(
  { root, share }: Pick<PublisherOptions, "root" | "share">,
  sources: ReadonlyArray<Effect.Effect<ReadonlyArray<Pick<ReadSchema, "text">>, E, R>>,
) {
  const layout = layoutOf(root)
  const modes = modesOf(share)
  const files = yield* durableFiles
  const current = yield* standingIn(layout)
  if (current === undefined) return []
  const newest = newestDerived({ layout }, current)
  const written: Array<string> = []
  for (const source of sources) {
    const lost = yield* fileStep(() => lostSchemas(layout, { current, newest }))
    if (lost.length === 0) break
    const texts = new Map((yield* source).map(({ text }) => [sha256Hex(text), text]))
    yield* fileStep(() => {
      files.makeFolder(layout.schemas, modes.folder)
      for (const { name, sha256 = "" } of lost) {
        const text = texts.get(sha256)
        if (text === undefined) continue
        const path = join(layout.schemas, name)
        files.replace(path, text, modes.file, temporary(path))
        written.push(name)
      }
    })
  }
  return written as ReadonlyArray<string>
})
