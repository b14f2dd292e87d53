/**
 * The journal of the embedded service: its events as NDJSON in a file that only the owner can read,
 * appended and written before a call is answered, replayed at the next start, so that executions in flight
 * outlive the process.
 */
import { appendFileSync, closeSync, existsSync, ftruncateSync, openSync, readFileSync } from "node:fs"
import { Effect, Schema } from "effect"
import type { Scope } from "effect"
import { SandboxEvent } from "./SandboxEvent.ts"

export class JournalFailed extends Schema.TaggedError<JournalFailed>()("JournalFailed", {
  path: Schema.String,
  message: Schema.String,
}) {}

const decodeLine = Schema.decodeUnknownSync(Schema.fromJsonString(SandboxEvent))

interface Replayed {
  readonly events: ReadonlyArray<SandboxEvent>
  /** Bytes of whole lines; what follows is a line that a crash cut short. */
  readonly wholeBytes: number
}

const replay = (path: string): Replayed => {
  if (!existsSync(path)) return { events: [], wholeBytes: 0 }
  const bytes = readFileSync(path)
  const wholeBytes = bytes.lastIndexOf(0x0a) + 1
  const lines = bytes.subarray(0, wholeBytes).toString("utf8").split("\n")
  return { events: lines.filter((line) => line !== "").map((line) => decodeLine(line)), wholeBytes }
}

const attempt = <A>(path: string, act: () => A): Effect.Effect<A, JournalFailed> =>
  Effect.try({
    try: act,
    catch: (cause) =>
      new JournalFailed({
        path,
        message: cause instanceof Error ? (cause.message.split("\n")[0] ?? "unreadable") : "unreadable",
      }),
  })

export interface Journal {
  readonly events: ReadonlyArray<SandboxEvent>
  /** Writes before it returns; a failure to write is a defect of the run, never a lost event. */
  readonly append: (events: ReadonlyArray<SandboxEvent>) => void
}

/** Opens the journal for the life of the scope; a torn last line is cut off, any other damage is an error. */
export const openJournal = (path: string): Effect.Effect<Journal, JournalFailed, Scope.Scope> =>
  Effect.gen(function* () {
    const { events, wholeBytes } = yield* attempt(path, () => replay(path))
    const file = yield* Effect.acquireRelease(
      attempt(path, () => {
        const opened = openSync(path, "a", 0o600)
        ftruncateSync(opened, wholeBytes)
        return opened
      }),
      (opened) => Effect.sync(() => closeSync(opened)),
    )
    const append = (appended: ReadonlyArray<SandboxEvent>) => {
      if (appended.length === 0) return
      appendFileSync(file, appended.map((event) => `${JSON.stringify(event)}\n`).join(""))
    }
    return { events, append }
  })

/**
 * The newest time in a journal, for a clock that must not run behind it; undefined when it holds no event.
 */
export const newestEventAt = (path: string): Effect.Effect<number | undefined, JournalFailed> =>
  Effect.map(
    attempt(path, () => replay(path)),
    ({ events }) =>
      events.reduce<number | undefined>((newest, { at }) => Math.max(newest ?? at, at), undefined),
  )
