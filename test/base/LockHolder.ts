/** A process that takes the lock of a folder, says so in one line, and works until it is killed. */
import { Effect } from "effect"
import { lockFolder } from "../../src/base/FolderLock.ts"

// Keeps the process alive until its parent is gone.
process.stdin.resume()
// Whoever holds the lock must hold it over any garbage collection.
setInterval(() => globalThis.gc?.(), 10)

Effect.runFork(
  Effect.scoped(
    Effect.andThen(
      lockFolder(process.argv[2] ?? ""),
      Effect.andThen(
        Effect.sync(() => process.stdout.write("held\n")),
        Effect.never,
      ),
    ),
  ),
)
