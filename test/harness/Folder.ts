/** Folders for tests, in memory where the runner has room for them, and gone with whoever asked for them. */
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect } from "effect"
import { afterAll } from "vitest"

const remove = (path: string): void => rmSync(path, { recursive: true, force: true })
const make = (): string => mkdtempSync(join(tmpdir(), "nightjar-"))

/** Until the scope closes. */
export const folder = Effect.acquireRelease(Effect.sync(make), (path) => Effect.sync(() => remove(path)))

/** One for all tests of the file or of the block that asks for it. */
export const sharedFolder = (): string => {
  const path = make()
  afterAll(() => remove(path))
  return path
}

/** As many as are asked for, within such a one. */
export const freshFolders = (): (() => string) => {
  const base = sharedFolder()
  return () => mkdtempSync(join(base, "f-"))
}
