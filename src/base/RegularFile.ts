/**
 * Reading a file that a person or a job names. Such a path may lead to anything: a named pipe would block
 * the process until somebody writes to it, a device never ends, a folder or a socket is a mistake. Only
 * regular files are read, in pieces that can be interrupted, up to a size limit; a reason never repeats
 * what a file contains.
 */
import { constants } from "node:fs"
import { open, stat } from "node:fs/promises"
import type { Stats } from "node:fs"
import { Effect, Stream } from "effect"

const pieceBytes = 262_144

/** What a path leads to instead, in words; undefined for a regular file. */
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

/** The reason that a mistyped path has. */
export const noSuchFile = "there is no such file"

const reasonOf = (cause: unknown): string => {
  if (cause instanceof Unreadable) return cause.message
  if (!(cause instanceof Error && "code" in cause && typeof cause.code === "string")) return "no reason given"
  return cause.code === "ENOENT" ? noSuchFile : cause.code
}

/** The bytes of a regular file; fails with a reason. */
export const streamFile = (path: string, bytesMax: number): Stream.Stream<Uint8Array, string> =>
  Stream.suspend(() => Stream.fromAsyncIterable(pieces(path, bytesMax), reasonOf))

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
  Effect.tryPromise({ try: async () => check(await stat(path), bytesMax), catch: reasonOf })
