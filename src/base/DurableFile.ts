/**
 * Writing files so that they survive: every byte written and synced, and under its final name only once it
 * is complete. Every room writes through this module.
 */
import * as fs from "node:fs"
import { constants, type Stats } from "node:fs"
import { open, stat } from "node:fs/promises"
import { dirname } from "node:path"
import { Context, Effect, Schema, Stream } from "effect"
import { refuseStrange } from "./HeldFolder.ts"
import { wordsOf } from "./Text.ts"

// The system calls that change files, so that a test can make each of them fail or fall short. Only this
// module calls them, and `LineSocket.ts`, which keeps nothing.

export const machineCalls = {
  open: (path: string, flags: string, mode?: number): number => fs.openSync(path, flags, mode),
  /** Returns how many bytes were written, which may be fewer than requested. */
  write: (descriptor: number, bytes: Uint8Array, from: number): number =>
    fs.writeSync(descriptor, bytes, from),
  sync: (descriptor: number): void => fs.fsyncSync(descriptor),
  /** The bytes and the size, without blocking the process. */
  syncData: (descriptor: number, done: (cause: Error | null) => void): void => fs.fdatasync(descriptor, done),
  setMode: (path: string, mode: number): void => fs.chmodSync(path, mode),
  cut: (descriptor: number, size: number): void => fs.ftruncateSync(descriptor, size),
  close: (descriptor: number): void => fs.closeSync(descriptor),
  rename: (from: string, to: string): void => fs.renameSync(from, to),
  link: (from: string, to: string): void => fs.linkSync(from, to),
  /** `target` is relative to the folder of the name. */
  symlink: (target: string, name: string): void => fs.symlinkSync(target, name),
  /** Shares the blocks where the file system can. */
  copy: (from: string, to: string): void => fs.copyFileSync(from, to, fs.constants.COPYFILE_FICLONE),
  remove: (path: string): void => fs.rmSync(path, { recursive: true, force: true }),
  makeFolder: (path: string, mode: number): void => fs.mkdirSync(path, { mode }),
}
export type FileCalls = Readonly<typeof machineCalls>

export const FileCalls = Context.Reference<FileCalls>("nightjar/foundation/FileCalls", {
  defaultValue: () => machineCalls,
})

/** Who else may read what is written: nobody, or the group of its folder. */
export type Share = "none" | "group"

export const modesOf = (share: Share) =>
  share === "group" ? { folder: 0o750, file: 0o640 } : { folder: 0o700, file: 0o600 }
export const ownModes = modesOf("none")

type Step =
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
  const message = wordsOf(cause)
  const [, code, words] = /^([A-Z][A-Z0-9]+): ([^,]+)/.exec(message) ?? []
  return code === undefined || words === undefined ? message : `${words} (${code})`
}

const failed = (step: Step, path: string, cause: unknown): FileFailed =>
  new FileFailed({ path, step, code: codeOf(cause), reason: reasonOf(cause) })

/** Steps that take a path; the others have the file open. */
const byPath: ReadonlySet<Step> = new Set(["open", "rename", "link", "copy", "delete", "make the folder"])

const attempt = <A>(step: Step, path: string, call: () => A): A => {
  try {
    if (byPath.has(step) || step === "write") refuseStrange(path, step === "write")
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
const writeAll = (calls: FileCalls, path: string, descriptor: number, bytes: Uint8Array): void =>
  attempt("write", path, () => {
    for (let from = 0; from < bytes.length;) {
      const written = calls.write(descriptor, bytes, from)
      if (written <= 0) throw new Error("no more bytes can be written")
      from += written
    }
  })

const syncData = (calls: FileCalls, path: string, descriptor: number): Effect.Effect<void, FileFailed> =>
  Effect.callback<void, FileFailed>((resume) => {
    calls.syncData(descriptor, (cause) =>
      resume(cause === null ? Effect.void : Effect.fail(failed("sync", path, cause))),
    )
  }).pipe(Effect.uninterruptible)

const bytesOf = (content: Uint8Array | string): Uint8Array =>
  typeof content === "string" ? Buffer.from(content, "utf8") : content

/** A file that only grows. Appended data is there completely, or the file is as long as before. */
export class AppendedFile {
  readonly path: string
  readonly #calls: FileCalls
  readonly #descriptor: number
  #size: number
  /** Half of the last append may be left at the end. */
  #isTorn = false

  constructor(calls: FileCalls, path: string, descriptor: number, size: number) {
    this.path = path
    this.#calls = calls
    this.#descriptor = descriptor
    this.#size = size
  }

  get size(): number {
    return this.#size
  }

  append(content: Uint8Array | string): void {
    if (this.#isTorn) this.cut(this.#size)
    const bytes = bytesOf(content)
    try {
      writeAll(this.#calls, this.path, this.#descriptor, bytes)
    } catch (cause) {
      this.#isTorn = true
      quietly(() => this.cut(this.#size))
      throw cause
    }
    this.#size += bytes.length
  }

  cut(size: number): void {
    attempt("cut", this.path, () => this.#calls.cut(this.#descriptor, size))
    this.#size = size
    this.#isTorn = false
  }

  /** After this, appended data survives a power failure, if its folder's entry does. */
  get sync(): Effect.Effect<void, FileFailed> {
    return syncData(this.#calls, this.path, this.#descriptor)
  }

  close(): void {
    attempt("close", this.path, () => this.#calls.close(this.#descriptor))
  }
}

const unchanged = "the file is as it was before"
const undecided = "the new file is in place, but a power failure may undo it"

export class DurableFiles {
  readonly #calls: FileCalls

  constructor(calls: FileCalls) {
    this.#calls = calls
  }

  /** The whole file, synced, with this mode even if it existed with another one. */
  write(path: string, content: Uint8Array | string, mode: number): void {
    const calls = this.#calls
    this.#opened(path, "w", mode, (descriptor) => {
      // Before the first byte: an old file there may be open to others.
      attempt("set the mode", path, () => calls.setMode(path, mode))
      writeAll(calls, path, descriptor, bytesOf(content))
      attempt("sync", path, () => calls.sync(descriptor))
    })
  }

  /** The old version or the new one, complete, whatever fails; no two processes may share `building`. */
  replace(path: string, content: Uint8Array | string, mode: number, building = `${path}.tmp`): void {
    try {
      this.write(building, content, mode)
      this.rename(building, path)
    } catch (cause) {
      quietly(() => this.#calls.remove(building))
      throw keeping(path, unchanged, cause)
    }
    try {
      this.syncFolder(dirname(path))
    } catch (cause) {
      throw keeping(path, undecided, cause)
    }
  }

  /** A new file, never over an existing one: that fails with EEXIST. */
  create(path: string, content: string): void {
    const calls = this.#calls
    const descriptor = attempt("open", path, () => calls.open(path, "wx"))
    try {
      writeAll(calls, path, descriptor, bytesOf(content))
      attempt("sync", path, () => calls.sync(descriptor))
      attempt("close", path, () => calls.close(descriptor))
    } catch (cause) {
      quietly(() => calls.remove(path))
      throw cause
    }
    this.syncFolder(dirname(path))
  }

  /** `a` continues an existing file, `ax` and `wx` only create a new one. */
  append(path: string, flags: "a" | "ax" | "wx", mode: number): AppendedFile {
    const calls = this.#calls
    const descriptor = attempt("open", path, () => calls.open(path, flags, mode))
    try {
      attempt("set the mode", path, () => calls.setMode(path, mode))
      return new AppendedFile(calls, path, descriptor, fs.fstatSync(descriptor).size)
    } catch (cause) {
      quietly(() => calls.close(descriptor))
      throw cause
    }
  }

  /** Sets the mode of a file that somebody else wrote and syncs it; for a large one this takes time. */
  settle(path: string, mode: number): Effect.Effect<void, FileFailed> {
    const calls = this.#calls
    const tried = <A>(step: Step, call: () => A) =>
      Effect.try({ try: call, catch: (cause) => failed(step, path, cause) })
    return Effect.acquireUseRelease(
      Effect.andThen(
        tried("set the mode", () => calls.setMode(path, mode)),
        tried("open", () => calls.open(path, "r")),
      ),
      (descriptor) =>
        // Once the bytes are there, setting the rest of the mode is quick.
        Effect.andThen(
          syncData(calls, path, descriptor),
          tried("sync", () => calls.sync(descriptor)),
        ),
      (descriptor) => Effect.sync(() => quietly(() => calls.close(descriptor))),
    )
  }

  /** Counts once the folder is synced. */
  rename(from: string, to: string): void {
    attempt("rename", to, () => this.#calls.rename(from, to))
  }

  link(from: string, to: string): void {
    attempt("link", to, () => this.#calls.link(from, to))
  }

  symlink(target: string, name: string): void {
    attempt("link", name, () => this.#calls.symlink(target, name))
  }

  copy(from: string, to: string): void {
    attempt("copy", to, () => this.#calls.copy(from, to))
  }

  /** Even if it does not exist; folders with everything in them. */
  remove(path: string): void {
    attempt("delete", path, () => this.#calls.remove(path))
  }

  syncFolder(path: string): void {
    this.#opened(path, "r", undefined, (descriptor) =>
      attempt("sync the folder", path, () => this.#calls.sync(descriptor)),
    )
  }

  /** With this mode, even if it exists already; each missing folder is synced into its parent. */
  makeFolder(path: string, mode: number): void {
    this.#makeMissing(path, mode)
    attempt("set the mode", path, () => this.#calls.setMode(path, mode))
  }

  /** Step by step: Node's own `recursive` never returns if the parent is reported missing. */
  #makeMissing(path: string, mode: number): void {
    if (fs.existsSync(path)) return
    if (dirname(path) !== path) this.#makeMissing(dirname(path), mode)
    const isOurs = this.#madeHere(path, mode)
    try {
      this.syncFolder(dirname(path))
    } catch (cause) {
      // So that the next try creates it again and syncs its entry; a folder with content stays.
      if (isOurs) quietly(() => fs.rmdirSync(path))
      throw cause
    }
  }

  /** False where another process made the same folder at the same moment. */
  #madeHere(path: string, mode: number): boolean {
    try {
      refuseStrange(path, false)
      this.#calls.makeFolder(path, mode)
      return true
    } catch (cause) {
      if (codeOf(cause) !== "EEXIST") throw failed("make the folder", path, cause)
      return false
    }
  }

  #opened(path: string, flags: string, mode: number | undefined, use: (descriptor: number) => void): void {
    const descriptor = attempt("open", path, () => this.#calls.open(path, flags, mode))
    try {
      use(descriptor)
    } catch (cause) {
      quietly(() => this.#calls.close(descriptor))
      throw cause
    }
    attempt("close", path, () => this.#calls.close(descriptor))
  }
}

const keeping = (path: string, kept: string, cause: unknown): unknown =>
  cause instanceof FileFailed
    ? new FileFailed({ path, step: cause.step, code: cause.code, reason: cause.reason, kept })
    : cause

/** For code that writes in an Effect: uses the calls that are provided there. */
export const durableFiles: Effect.Effect<DurableFiles> = Effect.map(
  FileCalls,
  (calls) => new DurableFiles(calls),
)

// What is wrong with a file that somebody wrote, in one sentence that never repeats a value, and where. Lines
// and columns count from 1.

export interface Place {
  readonly file: string
  readonly line: number
  readonly column: number
}

export const Problem = Schema.Struct({
  file: Schema.String,
  line: Schema.Int,
  column: Schema.Int,
  message: Schema.String,
})
export type Problem = typeof Problem.Type

/** For what is wrong with a file as a whole. */
export const topOf = (file: string): Place => ({ file, line: 1, column: 1 })

export const placeText = ({ file, line, column }: Place): string => `${file}:${line}:${column}`

export const renderProblem = (problem: Problem): string => `${placeText(problem)}: ${problem.message}`

// A path that a person names may lead to anything: a named pipe blocks, a device never ends. Only regular
// files are read, in pieces that can be interrupted, up to a limit; no reason repeats their content.

const pieceBytes = 262_144

const kindOf = (found: Stats): string | undefined => {
  if (found.isFile()) return undefined
  if (found.isFIFO()) return "it is a named pipe, not a file"
  if (found.isDirectory()) return "it is a folder, not a file"
  if (found.isSocket()) return "it is a socket, not a file"
  return "it is a device, not a file"
}

/** `64 MB`, `65 kB`: a limit as people write it. */
const sizeText = (bytes: number): string => {
  if (bytes >= 1e6) return `${Math.floor(bytes / 1e6)} MB`
  return bytes >= 1e3 ? `${Math.floor(bytes / 1e3)} kB` : `${bytes} bytes`
}

/** Why a file was not read: safe to show, and short enough for brackets. */
class Unreadable extends Error {}

const tooLarge = (bytesMax: number) => new Unreadable(`it is larger than ${sizeText(bytesMax)}`)

const check = (found: Stats, bytesMax: number): void => {
  const kind = kindOf(found)
  if (kind !== undefined) throw new Unreadable(kind)
  if (found.size > bytesMax) throw tooLarge(bytesMax)
}

/** Checked before the file is opened, because opening can have effects, and again on the opened file. */
async function* pieces(path: string, bytesMax: number): AsyncGenerator<Uint8Array> {
  check(await stat(path), bytesMax)
  const handle = await open(path, constants.O_RDONLY | constants.O_NONBLOCK)
  try {
    check(await handle.stat(), bytesMax)
    // The size is what the file claims, and some files made on the fly claim 0.
    for (let size = 0; ;) {
      const { bytesRead, buffer } = await handle.read(new Uint8Array(pieceBytes), 0, pieceBytes, null)
      if (bytesRead === 0) return
      size += bytesRead
      if (size > bytesMax) throw tooLarge(bytesMax)
      yield buffer.subarray(0, bytesRead)
    }
  } finally {
    await handle.close()
  }
}

export const noSuchFile = "there is no such file"

const whyUnreadable = (cause: unknown): string => {
  if (cause instanceof Unreadable) return cause.message
  if (!(cause instanceof Error && "code" in cause && typeof cause.code === "string")) return "no reason given"
  return cause.code === "ENOENT" ? noSuchFile : cause.code
}

/** 0 if there is none. */
export const sizeAt = (path: string): number => fs.statSync(path, { throwIfNoEntry: false })?.size ?? 0
export const freeBytesAt = (folder: string): number => {
  const { bavail, bsize } = fs.statfsSync(folder)
  return bavail * bsize
}

/** Fills the buffer from an open file, as far as the file goes; returns how many bytes that were. */
export const readFully = (descriptor: number, buffer: Uint8Array, offset: number): number => {
  let filled = 0
  while (filled < buffer.length) {
    const count = fs.readSync(descriptor, buffer, filled, buffer.length - filled, offset + filled)
    if (count === 0) break
    filled += count
  }
  return filled
}

/** The bytes of a regular file; fails with a reason. */
export const streamFile = (path: string, bytesMax: number): Stream.Stream<Uint8Array, string> =>
  Stream.suspend(() => Stream.fromAsyncIterable(pieces(path, bytesMax), whyUnreadable))

/** The whole stream, refused beyond the limit before it fills the memory. */
export const readWithin = <E>(stream: Stream.Stream<Uint8Array, E>, bytesMax: number, tooLong: string) =>
  stream.pipe(
    Stream.runFoldEffect(
      () => ({ size: 0, pieces: new Array<Uint8Array>() }),
      ({ size, pieces: read }, piece) =>
        size + piece.length > bytesMax
          ? Effect.fail(tooLong)
          : Effect.succeed({ size: size + piece.length, pieces: [...read, piece] }),
    ),
    Effect.map(({ pieces: read }) => Buffer.concat(read)),
  )

/** The text of a regular file in UTF-8, without a byte order mark; fails with a reason. */
export const readTextFile = (path: string, bytesMax: number): Effect.Effect<string, string> =>
  Effect.flatMap(Stream.runCollect(streamFile(path, bytesMax)), (read) =>
    Effect.try({
      try: () => new TextDecoder("utf-8", { fatal: true }).decode(Buffer.concat(read)),
      catch: () => "it is not UTF-8",
    }),
  )

/** For a reader that opens the path itself. */
export const checkFile = (path: string, bytesMax: number): Effect.Effect<void, string> =>
  Effect.tryPromise({ try: async () => check(await stat(path), bytesMax), catch: whyUnreadable })
