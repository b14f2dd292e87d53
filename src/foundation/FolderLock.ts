/**
 * Only one process at a time works in an output folder. The lock is an exclusive SQLite transaction on a
 * file of its own: the operating system releases it when the process that holds it ends, however it ends,
 * so no lock is ever stale.
 */
import { Effect, Schema } from "effect"
import { chmodSync, existsSync } from "node:fs"
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

const isHeld = (cause: unknown): boolean =>
  cause instanceof Error && "errcode" in cause && heldCodes.has(cause.errcode)

const failureOf = (path: string, cause: unknown): FolderLocked | LockFailed => {
  if (isHeld(cause))
    return new FolderLocked({ path, message: "another process is working in this output folder" })
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

/** Waits out whoever only looks whether the lock is held. */
const lookMaxMs = 50

const takeLock = (path: string): DatabaseSync => {
  const database = new DatabaseSync(path, { timeout: lookMaxMs })
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

/** Whether a process holds the lock now. Changes nothing and creates nothing. */
export const isFolderLocked = (path: string): boolean => {
  if (!existsSync(path)) return false
  try {
    using database = new DatabaseSync(path, { readOnly: true, timeout: 0 })
    // The exclusive transaction of the holder keeps readers out too.
    database.exec("SELECT count(*) FROM sqlite_master")
    return false
  } catch (cause) {
    return isHeld(cause)
  }
}
