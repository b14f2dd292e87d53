/**
 * Only one process at a time works in an output folder. The lock is an exclusive SQLite transaction on a
 * file of its own: the operating system releases it when the process that holds it ends, however it ends,
 * so no lock is ever stale.
 */
import { Effect, Schema } from "effect"
import { chmodSync } from "node:fs"
import { DatabaseSync } from "node:sqlite"

/** Another process is working in this output folder; nothing was started. */
export class FolderLocked extends Schema.TaggedError<FolderLocked>()("FolderLocked", {
  path: Schema.String,
  message: Schema.String,
}) {}

/** The lock file cannot be created or written. */
export class LockFailed extends Schema.TaggedError<LockFailed>()("LockFailed", {
  path: Schema.String,
  message: Schema.String,
}) {}

/** SQLITE_BUSY and SQLITE_LOCKED: somebody else holds the file. */
const heldCodes: ReadonlySet<unknown> = new Set([5, 6])

const failureOf = (path: string, cause: unknown): FolderLocked | LockFailed => {
  const held = cause instanceof Error && "errcode" in cause && heldCodes.has(cause.errcode)
  if (held) return new FolderLocked({ path, message: "another process is working in this output folder" })
  const why = cause instanceof Error ? cause.message : "unknown cause"
  return new LockFailed({ path, message: why })
}

/**
 * The locks of this process. A database without references is closed by the garbage collector, which would
 * release its lock while its holder works: a process that only waits for a signal must not lose it that way.
 */
const held = new Set<DatabaseSync>()

/** Holds the lock until the scope closes. */
export const lockFolder = (path: string) =>
  Effect.acquireRelease(
    Effect.try({ try: () => takeLock(path), catch: (cause) => failureOf(path, cause) }),
    (database) =>
      Effect.sync(() => {
        held.delete(database)
        database.close()
      }),
  )

const takeLock = (path: string): DatabaseSync => {
  const database = new DatabaseSync(path, { timeout: 0 })
  try {
    // Rollback journal: in WAL mode an exclusive transaction would not keep a second one out immediately.
    database.exec("PRAGMA journal_mode = DELETE; PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE")
    chmodSync(path, 0o600)
    held.add(database)
    return database
  } catch (cause) {
    database.close()
    throw cause
  }
}
