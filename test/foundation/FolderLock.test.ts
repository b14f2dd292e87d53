/** The lock of an output folder between real processes. */
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { Effect } from "effect"
import { spawn } from "node:child_process"
import type { ChildProcess } from "node:child_process"
import { once } from "node:events"
import { mkdirSync, mkdtempSync, rmSync, statSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { FolderLocked, lockFolder } from "../../src/foundation/FolderLock.ts"

const holder = new URL("LockHolder.ts", import.meta.url).pathname
const children: Array<ChildProcess> = []
let root = ""

beforeAll(() => {
  root = mkdtempSync(join(tmpdir(), "nightjar-lock-"))
})
afterAll(() => {
  for (const child of children) child.kill("SIGKILL")
  rmSync(root, { recursive: true, force: true })
})

const startHolder = async (path: string) => {
  const child = spawn(process.execPath, ["--expose-gc", holder, path], { stdio: ["pipe", "pipe", "inherit"] })
  children.push(child)
  const [line] = (await once(child.stdout, "data")) as [Buffer]
  return { child, said: line.toString().trim() }
}

const tryLock = (path: string) =>
  Effect.runPromise(
    lockFolder(path).pipe(
      Effect.match({ onSuccess: () => "held", onFailure: ({ _tag }) => _tag }),
      Effect.scoped,
    ),
  )

describe("the lock of an output folder", () => {
  it("keeps every other process out while its holder runs, and is free once that is killed [promise 8 collection] [promise 8]", async () => {
    const path = join(root, "run.lock")
    const first = await startHolder(path)
    const second = await startHolder(path)
    expect([first.said, second.said, await tryLock(path)]).toEqual(["held", "FolderLocked", "FolderLocked"])
    first.child.kill("SIGKILL")
    await once(first.child, "exit")
    expect(await tryLock(path)).toBe("held")
    expect(statSync(path).mode & 0o777).toBe(0o600)
  })

  it("is released with its scope, and also keeps out the same process", async () => {
    const path = join(root, "scoped.lock")
    const twice = Effect.gen(function* () {
      yield* lockFolder(path)
      return yield* Effect.flip(Effect.scoped(lockFolder(path)))
    })
    expect(await Effect.runPromise(Effect.scoped(twice))).toBeInstanceOf(FolderLocked)
    expect([await tryLock(path), await tryLock(path)]).toEqual(["held", "held"])
  })

  it("that cannot be used is not reported as held by somebody else", async () => {
    const path = join(root, "folder.lock")
    mkdirSync(path)
    expect(await tryLock(path)).toBe("LockFailed")
  })
})
