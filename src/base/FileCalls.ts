/**
 * The system calls that change files, few and small, so that a test can make each of them fail or fall
 * short, and the one error that says which of them failed, where and why. Only `DurableFile.ts` calls them,
 * and `LineSocket.ts`, which keeps nothing.
 */
import * as fs from "node:fs"
import { Context, Effect, Schema } from "effect"

/** The calls that change files. Each throws what the machine refuses. */
export interface FileCalls {
  readonly open: (path: string, flags: string, mode?: number) => number
  /** Returns how many bytes were written, which may be fewer than requested. */
  readonly write: (descriptor: number, bytes: Uint8Array, from: number) => number
  readonly sync: (descriptor: number) => void
  /** The bytes and the size, without blocking the process. */
  readonly syncData: (descriptor: number, done: (cause: Error | null) => void) => void
  readonly setMode: (path: string, mode: number) => void
  readonly cut: (descriptor: number, size: number) => void
  readonly close: (descriptor: number) => void
  readonly rename: (from: string, to: string) => void
  readonly link: (from: string, to: string) => void
  readonly copy: (from: string, to: string) => void
  readonly remove: (path: string) => void
  readonly makeFolder: (path: string, mode: number) => void
}

export const machineCalls: FileCalls = {
  open: fs.openSync,
  write: (descriptor, bytes, from) => fs.writeSync(descriptor, bytes, from),
  sync: fs.fsyncSync,
  syncData: fs.fdatasync,
  setMode: fs.chmodSync,
  cut: fs.ftruncateSync,
  close: fs.closeSync,
  rename: fs.renameSync,
  link: fs.linkSync,
  // Shares the blocks where the file system can.
  copy: (from, to) => fs.copyFileSync(from, to, fs.constants.COPYFILE_FICLONE),
  remove: (path) => fs.rmSync(path, { recursive: true, force: true }),
  makeFolder: (path, mode) => fs.mkdirSync(path, { mode }),
}

export const FileCalls = Context.Reference<FileCalls>("nightjar/foundation/FileCalls", {
  defaultValue: () => machineCalls,
})

export type Step =
  | "open"
  | "write"
  | "sync"
  | "set the mode"
  | "cut"
  | "close"
  | "rename"
  | "link"
  | "copy"
  | "delete"
  | "make the folder"
  | "sync the folder"

/** The machine's code of an error, such as ENOSPC; empty if it has none. */
export const codeOf = (cause: unknown): string =>
  cause instanceof Error && "code" in cause ? String(cause.code) : ""

/** A step of writing failed. `kept` says what the path holds now, if that is known. */
export class FileFailed extends Schema.TaggedError<FileFailed>()("FileFailed", {
  path: Schema.String,
  step: Schema.String,
  code: Schema.String,
  reason: Schema.String,
  kept: Schema.optionalKey(Schema.String),
}) {
  /** Without the path, for a message that names it elsewhere. */
  get what(): string {
    return `cannot ${this.step}: ${this.reason}${this.kept === undefined ? "" : `; ${this.kept}`}`
  }
  override get message(): string {
    return `${this.path}: ${this.what}`
  }
}

/** `no space left on device (ENOSPC)`; the machine's own message repeats the call and perhaps the path. */
const reasonOf = (cause: unknown): string => {
  const message = cause instanceof Error ? cause.message : String(cause)
  const [, code, words] = /^([A-Z][A-Z0-9]+): ([^,]+)/.exec(message) ?? []
  return code === undefined || words === undefined ? message : `${words} (${code})`
}

export const failed = (step: Step, path: string, cause: unknown): FileFailed =>
  new FileFailed({ path, step, code: codeOf(cause), reason: reasonOf(cause) })

export const attempt = <A>(step: Step, path: string, call: () => A): A => {
  try {
    return call()
  } catch (cause) {
    throw failed(step, path, cause)
  }
}

/** Cleans up after a failure; the failure itself is the one that is reported. */
export const quietly = (call: () => void): void => {
  try {
    call()
  } catch {
    // Left behind if the machine refuses this too; the next writer starts afresh.
  }
}

/** A full disk first makes a write short; the next one then reports it. */
export const writeAll = (calls: FileCalls, path: string, descriptor: number, bytes: Uint8Array): void =>
  attempt("write", path, () => {
    for (let from = 0; from < bytes.length;) {
      const written = calls.write(descriptor, bytes, from)
      if (written <= 0) throw new Error("no more bytes can be written")
      from += written
    }
  })

/** Writing bytes to the disk must not block the process. */
export const syncData = (
  calls: FileCalls,
  path: string,
  descriptor: number,
): Effect.Effect<void, FileFailed> =>
  Effect.callback<void, FileFailed>((resume) => {
    calls.syncData(descriptor, (cause) =>
      resume(cause === null ? Effect.void : Effect.fail(failed("sync", path, cause))),
    )
  }).pipe(Effect.uninterruptible)
