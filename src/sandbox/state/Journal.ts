/**
 * The journal of the embedded service: its events as NDJSON in a file that only the owner can read,
 * appended and written before a call is answered, replayed at the next start, so that executions in flight
 * outlive the process. A line is written completely or not at all; one process has it at a time.
 */
import { existsSync, readFileSync } from "node:fs"
import { Effect, Layer, Result, Schema, type Scope } from "effect"
import { durableFiles } from "../../base/DurableFile.ts"
import { lockFolder } from "../../base/FolderLock.ts"
import { SandboxEvent } from "./SandboxState.ts"

/** The file cannot be read, written or understood. */
export class JournalFailed extends Schema.TaggedError<JournalFailed>()("JournalFailed", {
  path: Schema.String,
  message: Schema.String,
}) {}

/** Another process is using this journal. */
export class JournalInUse extends Schema.TaggedError<JournalInUse>()("JournalInUse", {
  path: Schema.String,
}) {
  override get message(): string {
    return `another process is using the state file ${this.path}`
  }
}

/** With another seed, records that were final would be others. */
export class SeedChanged extends Schema.TaggedError<SeedChanged>()("SeedChanged", {
  path: Schema.String,
  seed: Schema.Int,
}) {
  override get message(): string {
    return `${this.path} was begun with seed ${this.seed}`
  }
}

const newline = 0x0a
const EventLine = Schema.fromJsonString(SandboxEvent)
const TimedLine = Schema.fromJsonString(Schema.Struct({ at: Schema.Finite }))

/**
 * Decodes line by line: a journal may be larger than the longest string. `wholeBytes`: of complete lines; the
 * rest is a line that a crash cut short.
 */
const replay = <Line>(path: string, schema: Schema.ConstraintDecoder<Line>) => {
  const lines: Array<Line> = []
  if (!existsSync(path)) return { lines, wholeBytes: 0 }
  const decode = Schema.decodeUnknownResult(schema)
  const bytes = readFileSync(path)
  let from = 0
  for (let number = 1; ; number += 1) {
    const end = bytes.indexOf(newline, from)
    if (end < 0) return { lines, wholeBytes: from }
    if (end > from) {
      const decoded = decode(bytes.toString("utf8", from, end))
      if (Result.isFailure(decoded)) throw new Error(`line ${number} is not an event of this service`)
      lines.push(decoded.success)
    }
    from = end + 1
  }
}

const attempt = <A>(path: string, act: () => A): Effect.Effect<A, JournalFailed> =>
  Effect.try({
    try: act,
    catch: (cause) => {
      const why = cause instanceof Error ? (cause.message.split("\n")[0] ?? "unreadable") : "unreadable"
      return new JournalFailed({ path, message: why.includes(path) ? why : `${path}: ${why}` })
    },
  })

export interface Journal {
  readonly events: ReadonlyArray<SandboxEvent>
  /** Writes before it returns; a failure to write is a defect of the run, never a lost event. */
  readonly append: (events: ReadonlyArray<SandboxEvent>) => void
}

/** Opens the journal for the life of the scope; a torn last line is cut off, any other damage is an error. */
export const openJournal = (path: string): Effect.Effect<Journal, JournalFailed, Scope.Scope> =>
  Effect.gen(function* () {
    const files = yield* durableFiles
    const { lines, wholeBytes } = yield* attempt(path, () => replay(path, EventLine))
    const file = yield* Effect.acquireRelease(
      attempt(path, () => {
        const opened = files.append(path, "a", 0o600)
        opened.cut(wholeBytes)
        return opened
      }),
      (opened) => Effect.sync(() => opened.close()),
    )
    const append = (appended: ReadonlyArray<SandboxEvent>) => {
      if (appended.length === 0) return
      file.append(appended.map((event) => `${JSON.stringify(event)}\n`).join(""))
    }
    return { events: lines, append }
  })

/** The newest time in a journal, behind which no clock may fall; undefined if it contains no event. */
export const newestEventAt = (path: string): Effect.Effect<number | undefined, JournalFailed> =>
  Effect.map(
    attempt(path, () => replay(path, TimedLine)),
    ({ lines }) =>
      lines.reduce<number | undefined>((newest, { at }) => Math.max(newest ?? at, at), undefined),
  )

// One process per journal: the lock is taken before any of it is read, and kept until the embedded service
// ends.

export const lockJournal = (path: string) =>
  Layer.effectDiscard(
    Effect.mapError(lockFolder(`${path}.lock`), (failure) =>
      failure._tag === "FolderLocked"
        ? new JournalInUse({ path })
        : new JournalFailed({ path, message: `${path}.lock: it cannot be made or written` }),
    ),
  )
