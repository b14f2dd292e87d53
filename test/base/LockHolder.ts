/** A process that takes the lock of a folder, says so in one line, and works until it is killed. */
import { Effect } from "effect"
import { lockFolder } from "../../src/base/FolderLock.ts"

const say = (line: string) => Effect.sync(() => process.stdout.write(`${line}\n`))

// Keeps the process alive until its parent is gone.
process.stdin.resume()
// Whoever holds the lock must hold it over any garbage collection.
setInterval(() => globalThis.gc?.(), 10)

Effect.runFork(
  lockFolder(process.argv[2] ?? "").pipe(
    Effect.matchEffect({
      onSuccess: () => Effect.andThen(say("held"), Effect.never),
      onFailure: ({ _tag }) => say(_tag),
    }),
    Effect.scoped,
  ),
)
