/**
 * Hundreds of statements make the tables and views that every database begins with. A publication keeps what they
 * made in its output folder; tests begin in hundreds of folders, so each is given the file that one of them made.
 */
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import { Effect, Layer } from "effect"
import { DuckDb } from "../../src/base/DuckDb.ts"
import { placeEmptyDatabase } from "../../src/tables/EmptyDatabase.ts"
import { filesBelow, layoutOf } from "../../src/tables/Manifest.ts"
import { openStore } from "../../src/tables/OpenStore.ts"

const schemasFolder = fileURLToPath(new URL("../tables/schemas", import.meta.url))

interface Made {
  readonly name: string
  readonly bytes: Uint8Array
}

const made = Effect.gen(function* () {
  const root = mkdtempSync(join(tmpdir(), "nightjar-empty-"))
  const store = yield* openStore({ root, schemasFolder, share: "none", toolVersion: "any" })
  const { empty, build } = store.layout
  mkdirSync(dirname(build), { recursive: true })
  yield* placeEmptyDatabase(store)
  const files = filesBelow(empty).map((name): Made => ({ name, bytes: readFileSync(join(empty, name)) }))
  rmSync(root, { recursive: true })
  return files
}).pipe(Effect.provide(Layer.merge(DuckDb.layer, NodeFileSystem.layer)), Effect.orDie)

let known: Promise<ReadonlyArray<Made>> | undefined

/** Puts it into a new output folder; another set of record schemas makes its own. */
export const placeEmptyLayout = async (root: string): Promise<void> => {
  const { empty, manifest } = layoutOf(root)
  if (!existsSync(root) || existsSync(manifest) || existsSync(dirname(empty))) return
  known ??= Effect.runPromise(made)
  const files = await known
  mkdirSync(dirname(empty), { mode: 0o700 })
  mkdirSync(empty, { mode: 0o700 })
  for (const { name, bytes } of files) writeFileSync(join(empty, name), bytes, { mode: 0o600 })
}
