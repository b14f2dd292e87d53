/**
 * One process at a time works in an output folder. The lock is an exclusive SQLite transaction on a file of its own: the
 * operating system releases it when its holder dies, however it dies, so that no lock is ever stale.
 */
import { Effect, Schema } from "effect"
import { DatabaseSync } from "node:sqlite"

/** Another process works in this output folder; nothing was started. */
export class FolderLocked extends Schema.TaggedError<FolderLocked>()("FolderLocked", {
  path: Schema.String,
  message: Schema.String,
}) {}

/** Holds the lock until the scope closes. */
export const lockFolder = (path: string) =>
  Effect.acquireRelease(
    Effect.try({
      try: () => {
        const database = new DatabaseSync(path, { timeout: 0 })
        try {
          // Rollback journal: in WAL mode an exclusive transaction would not keep a second one out at once.
          database.exec("PRAGMA journal_mode = DELETE; PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE")
          return database
        } catch (cause) {
          database.close()
          throw cause
        }
      },
      catch: (cause) =>
        new FolderLocked({
          path,
          message: `another process is working in this output folder (${cause instanceof Error ? cause.message : "locked"})`,
        }),
    }),
    (database) => Effect.sync(() => database.close()),
  )
