/**
 * The files of a run's segments: `segment-000001.njl`, or `segment-000001.njl.zst` once it was compressed.
 * Both are one segment under the first name; where a crash left both, the first is read.
 */
import { closeSync, existsSync, fstatSync, openSync, readFileSync, readdirSync, statSync } from "node:fs"
import { join } from "node:path"
import { codeOf, readFully, type DurableFiles } from "../base/DurableFile.ts"
import { contentBytesMax, pack, unpack } from "../base/Zstd.ts"
import { isRunId } from "../ledger/RunState.ts"
import type { RunId } from "../service/Ids.ts"

export const segmentPattern = /^segment-(\d{6,})\.njl$/
const packedEnd = ".zst"

export const packedPathOf = (path: string): string => `${path}${packedEnd}`

/** The segments of a run's folder in the order in which they were begun; none if there is no folder. */
export const segmentNames = (folder: string): ReadonlyArray<string> => {
  try {
    const names = readdirSync(folder).map((name) =>
      name.endsWith(packedEnd) ? name.slice(0, -packedEnd.length) : name,
    )
    return [...new Set(names)]
      .filter((name) => segmentPattern.test(name))
      .toSorted((one, other) => segmentNumber(one) - segmentNumber(other))
  } catch (cause) {
    if (codeOf(cause) === "ENOENT") return []
    throw cause
  }
}

export const segmentNumber = (name: string): number => Number(segmentPattern.exec(name)?.[1] ?? 0)

/** The bytes of a segment, compressed or not. */
export const contentOf = (path: string): Buffer =>
  eitherOf(
    path,
    () => readFileSync(path),
    (packed) => unpack(readFileSync(packed)),
  )

/** While a segment is being replaced by its compressed one, there is always at least one of the two. */
const eitherOf = <A>(path: string, plain: () => A, packed: (path: string) => A): A => {
  try {
    return plain()
  } catch (cause) {
    if (codeOf(cause) !== "ENOENT" || !existsSync(packedPathOf(path))) throw cause
    return packed(packedPathOf(path))
  }
}

/** A segment that is open, until it is closed. */
export interface OpenSegment {
  readonly size: number
  /** Fills a buffer from `offset` on, as far as the segment goes; returns how many bytes that were. */
  readonly fill: (buffer: Uint8Array, offset: number) => number
  readonly close: () => void
}

/** Up to `length` bytes at `offset`. */
export const readAt = ({ size, fill }: OpenSegment, offset: number, length: number): Buffer => {
  const bytes = Buffer.allocUnsafe(Math.max(0, Math.min(length, size - offset)))
  return bytes.subarray(0, fill(bytes, offset))
}

export const openSegment = (
  path: string,
  unpacked = (packed: string): Buffer => unpack(readFileSync(packed)),
): OpenSegment =>
  eitherOf(
    path,
    () => plainSegment(path),
    (packed) => unpackedSegment(unpacked(packed)),
  )

const plainSegment = (path: string): OpenSegment => {
  const descriptor = openSync(path, "r")
  return {
    size: fstatSync(descriptor).size,
    fill: (buffer, offset) => readFully(descriptor, buffer, offset),
    close: () => closeSync(descriptor),
  }
}

const unpackedSegment = (content: Buffer): OpenSegment => ({
  size: content.length,
  fill: (buffer, offset) => content.copy(buffer, 0, offset),
  close: () => undefined,
})

/** Keeps the compressed segment that was read last, because its bodies are read one after another. */
export class SegmentBodies {
  private last: { readonly file: string; readonly content: Buffer } | undefined

  /** Undefined if the segment is shorter. */
  read(path: string, offset: number, length: number): Uint8Array | undefined {
    const segment = openSegment(path, (packed) => this.unpacked(packed))
    try {
      if (offset < 0 || length < 0 || offset + length > segment.size) return undefined
      const bytes = new Uint8Array(length)
      segment.fill(bytes, offset)
      return bytes
    } finally {
      segment.close()
    }
  }

  private unpacked(packed: string): Buffer {
    const { ino, mtimeMs, size } = statSync(packed)
    const file = [packed, ino, mtimeMs, size].join()
    if (this.last?.file !== file) this.last = { file, content: unpack(readFileSync(packed)) }
    return this.last.content
  }
}

// Compresses segments that nothing is added to any more; every body keeps its place. The new file is synced
// and read back before the old one goes, so that a crash leaves one of them whole.

export interface Compressed {
  /** Bytes of what was compressed now, before and after; both 0 if there was nothing. */
  readonly before: number
  readonly after: number
}

/** Only for the holder of the folder, while no run lands bodies. `isDry`: only says what it would do. */
export const compressSegments = (
  files: DurableFiles,
  landing: string,
  run_id: RunId,
  isDry = false,
): Compressed => {
  const sum = { before: 0, after: 0 }
  if (!isRunId(run_id)) return sum
  const folder = join(landing, run_id)
  for (const name of segmentNames(folder)) {
    const path = join(folder, name)
    const size = statSync(path, { throwIfNoEntry: false })?.size
    if (size === undefined || size > contentBytesMax) continue
    const content = readFileSync(path)
    const packed = pack(content)
    sum.before += content.length
    sum.after += packed.length
    if (isDry) continue
    files.replace(packedPathOf(path), packed, 0o600)
    if (!readsBack(packedPathOf(path), content)) {
      files.remove(packedPathOf(path))
      throw new Error(`${name} reads back differently once it is compressed; it stays as it is`)
    }
    files.remove(path)
    files.syncFolder(folder)
  }
  return sum
}

const readsBack = (packedPath: string, content: Buffer): boolean => {
  try {
    return unpack(readFileSync(packedPath)).equals(content)
  } catch {
    return false
  }
}
