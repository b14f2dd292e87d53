/**
 * Writing files so that they survive: every byte written, even if the machine accepts fewer at once than it
 * was given, synced, and under its final name only once it is complete. Every room writes through this
 * module.
 */
import * as fs from "node:fs"
import { dirname } from "node:path"
import { Effect } from "effect"
import { attempt, codeOf, failed, FileCalls, FileFailed, quietly, syncData, writeAll } from "./FileCalls.ts"
import type { Step } from "./FileCalls.ts"

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

const unchanged = "the previous version is unchanged"
const undecided = "the new version is in place, but a power failure may undo it"

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
