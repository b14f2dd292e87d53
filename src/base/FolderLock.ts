/**
 * Only one process at a time works in an output folder. The lock is an exclusive SQLite transaction on a
 * file of its own: the operating system releases it when the process that holds it ends, however it ends,
 * so no lock is ever stale. Who holds it stands in a file beside it (`.json`), for people only: nothing
 * depends on that file, and it may be missing, damaged, or left over from a process that was killed. Other
 * SQLite files are opened and copied here, too.
 */
import { chmodSync, closeSync, existsSync, openSync, readFileSync } from "node:fs"
import { hostname } from "node:os"
import { dirname } from "node:path"
import { DatabaseSync, type DatabaseSyncOptions } from "node:sqlite"
import { Clock, Duration, Effect, Option, Schema } from "effect"
import { codeOf, durableFiles, quietly } from "./DurableFile.ts"
import { holdFolder } from "./HeldFolder.ts"
import { listed } from "./Text.ts"

/** Another process is working in this output folder; nothing was started. */
export class FolderLocked extends Schema.TaggedError<FolderLocked>()("FolderLocked", {
  path: Schema.String,
  /** Who holds it, as far as that is known: a text for people. */
  holder: Schema.String,
  message: Schema.String,
}) {}

export class LockFailed extends Schema.TaggedError<LockFailed>()("LockFailed", {
  path: Schema.String,
  message: Schema.String,
}) {}

/** SQLITE_BUSY and SQLITE_LOCKED: somebody else holds the file. */
const heldCodes: ReadonlySet<unknown> = new Set([5, 6])

const isHeld = (cause: unknown): boolean =>
  cause instanceof Error && "errcode" in cause && heldCodes.has(cause.errcode)

const failureOf = (path: string, cause: unknown): FolderLocked | LockFailed => {
  if (isHeld(cause)) {
    const message = "another process is working in this output folder"
    return new FolderLocked({ path, holder: holderText(path), message })
  }
  const why = cause instanceof Error ? cause.message : "unknown cause"
  return new LockFailed({ path, message: why })
}

/** Kept here because the garbage collector closes an unused database, and with it would release the lock. */
const held = new Set<DatabaseSync>()

const Holder = Schema.fromJsonString(
  Schema.Struct({
    pid: Schema.optionalKey(Schema.Int.check(Schema.isGreaterThan(0))),
    host: Schema.optionalKey(Schema.String),
    since: Schema.optionalKey(Schema.String),
    /** What it works on, in words: a job, or a run once it has one. */
    works_on: Schema.optionalKey(Schema.Array(Schema.String)),
  }),
)
const readHolder = Schema.decodeUnknownOption(Holder)
const pathOfHolder = (path: string): string => `${path}.json`
const worksTold = 5

/** On another machine nobody can tell. */
const isGone = ({ pid, host }: typeof Holder.Type): boolean => {
  if (pid === undefined || host !== hostname()) return false
  try {
    process.kill(pid, 0)
    return false
  } catch (cause) {
    return codeOf(cause) === "ESRCH"
  }
}

/** Its number, host, start and work; each part that is not known is said so, and why nothing is. */
const holderText = (path: string): string => {
  const unknown = (why: string) => `it is not known which (${why})`
  const file = pathOfHolder(path)
  let text: string
  try {
    text = readFileSync(file, "utf8")
  } catch (cause) {
    const isMissing = codeOf(cause) === "ENOENT"
    return unknown(isMissing ? `there is no ${file}` : `${file} cannot be read: ${codeOf(cause)}`)
  }
  const holder = Option.getOrUndefined(readHolder(text))
  if (holder === undefined) return unknown(`${file} is damaged`)
  if (isGone(holder)) return unknown(`${file} names process ${holder.pid}, which has ended`)
  const { pid = "(number unknown)", host = "an unknown host", since = "(time unknown)", works_on } = holder
  const works = works_on === undefined ? "its run is not known" : listed(works_on, worksTold)
  return `process ${pid} on ${host} since ${since}, ${works === "" ? "no run" : works}`
}

export const lockFolder = Effect.fnUntraced(function* (path: string, works: ReadonlyArray<string> = []) {
  const since = new Date(yield* Clock.currentTimeMillis).toISOString()
  const files = yield* durableFiles
  const file = pathOfHolder(path)
  yield* Effect.acquireRelease(
    Effect.try({
      try: () => ({ database: takeLock(path), release: holdFolder(dirname(path), path) }),
      catch: (cause) => failureOf(path, cause),
    }),
    ({ database, release }) =>
      Effect.sync(() => {
        quietly(() => files.remove(file))
        release()
        held.delete(database)
        database.close()
      }),
  )
  /** From now on, for whoever finds it locked. */
  const worksOn = (works_on: ReadonlyArray<string>) =>
    Effect.sync(() => {
      const text = JSON.stringify({ pid: process.pid, host: hostname(), since, works_on })
      // A disk that refuses it costs the others a word, and never the holder its run.
      quietly(() => files.replace(file, `${text}\n`, 0o600))
    })
  yield* worksOn(works)
  return { worksOn }
})
export type HeldLock = Effect.Success<ReturnType<typeof lockFolder>>

/** How often a process that waits looks whether the lock is free. */
const lookEvery = Duration.seconds(1)

export interface LockWait<R> {
  /** Zero does not wait. It counts on the monotonic clock: the machine's time may be set meanwhile. */
  readonly longest: Duration.Duration
  /** Milliseconds since the epoch; not waited for longer than until then, either. */
  readonly until: number
  /** Told who holds the lock when the wait begins, and again whenever that changes. */
  readonly onHolder: (holder: string) => Effect.Effect<void, never, R>
}

/**
 * Takes the lock as soon as it is free, or fails as `lockFolder` does once the wait is over. At most one look
 * a second: several that wait are served in no order. Returns for how many milliseconds it waited, too.
 */
export const awaitLock = Effect.fnUntraced(function* <R>(
  path: string,
  works: ReadonlyArray<string>,
  { longest, until, onHolder }: LockWait<R>,
) {
  const monotonicMs = Effect.map(Clock.monotonicTimeNanos, (nanos) => Number(nanos / 1_000_000n))
  const from = yield* monotonicMs
  let told: string | undefined
  for (;;) {
    const taken = yield* lockFolder(path, works).pipe(
      Effect.catchTag("FolderLocked", (locked) => Effect.succeed(locked)),
    )
    const waitedMs = (yield* monotonicMs) - from
    if (!(taken instanceof FolderLocked)) return { lock: taken, waitedMs }
    const leftMs = Math.min(Duration.toMillis(longest) - waitedMs, until - (yield* Clock.currentTimeMillis))
    if (leftMs <= 0) return yield* taken
    if (told !== taken.holder) yield* onHolder(taken.holder)
    told = taken.holder
    yield* Effect.sleep(Duration.min(lookEvery, Duration.millis(leftMs)))
  }
})

/** Waits out whoever only looks whether the lock is held. */
const lookMaxMs = 50

const takeLock = (path: string): DatabaseSync =>
  openDatabase(path, { timeout: lookMaxMs }, (database) => {
    // Rollback journal: in WAL mode an exclusive transaction would not keep a second one out immediately.
    database.exec("PRAGMA journal_mode = DELETE; PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE")
    chmodSync(path, 0o600)
    held.add(database)
  })

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

/** A SQLite file, prepared for its use; closed again if that cannot be done. */
export const openDatabase = (
  path: string,
  options: DatabaseSyncOptions,
  prepare: (database: DatabaseSync) => void,
): DatabaseSync => {
  const database = new DatabaseSync(path, options)
  try {
    prepare(database)
    return database
  } catch (cause) {
    database.close()
    throw cause
  }
}

// Copies a SQLite file while another process writes to it: one read transaction, so the copy is what the file
// contained at one moment, without the pages of deleted rows and without a log beside it.

/** How long a writer without a log, as the token store is, may hold the file. */
const waitMs = 10_000

/** Throws what SQLite refuses; `to` must not exist yet. Nothing is synced. */
export const copyDatabase = (from: string, to: string, mode: number): void => {
  // SQLite accepts an empty file, and would give a new one a mode of its own.
  closeSync(openSync(to, "wx", mode))
  using database = new DatabaseSync(from, { readOnly: true, timeout: waitMs })
  database.prepare("VACUUM INTO ?").run(to)
}
