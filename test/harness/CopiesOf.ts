/** What many tests of a file begin with is lived once: each of them gets a copy of the folder that it left. */
import { cpSync, mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect } from "effect"
import { afterAll } from "vitest"

/** A folder of its own, gone with its scope, as this left it; to be called beside the tests that share it. */
export const copiesOf = <E>(live: (root: string) => Effect.Effect<unknown, E>) => {
  const base = mkdtempSync(join(tmpdir(), "nightjar-lived-"))
  afterAll(() => rmSync(base, { recursive: true, force: true }))
  const lived = Effect.runSync(
    Effect.cached(
      Effect.suspend(() => {
        const root = mkdtempSync(join(base, "nightjar-once-"))
        return Effect.orDie(Effect.as(live(root), root))
      }),
    ),
  )
  const copy = (lived: string) => {
    const root = mkdtempSync(join(base, "nightjar-copy-"))
    cpSync(lived, root, { recursive: true, verbatimSymlinks: true })
    return root
  }
  return Effect.acquireRelease(Effect.map(lived, copy), (root) =>
    Effect.sync(() => rmSync(root, { recursive: true, force: true })),
  )
}
