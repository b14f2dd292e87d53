/**
 * Appends batches of frames to a run's segments. A process begins its own segment and never appends to one
 * that may be torn; a segment whose write or sync failed is abandoned, since nothing after its last good
 * sync is reliable. Writing is synchronous (the page cache accepts it at memory speed), syncing is not: it
 * must not block the run.
 */
import { readdirSync } from "node:fs"
import { join } from "node:path"
import { Effect } from "effect"
import { sha256Hex } from "../foundation/Sha256.ts"
import type { AppendedFile, DurableFiles } from "../foundation/DurableFile.ts"
import { codeOf, FileFailed } from "../foundation/FileCalls.ts"
import type { LandedRef } from "../ledger/Fact.ts"
import { encodeHeader, frameEnd } from "./Frame.ts"
import { LandingFailed } from "./Landing.ts"
import type { BodyMeta } from "./Landing.ts"

export interface PendingFrame {
  readonly meta: BodyMeta
  readonly bytes: Uint8Array
}

interface Segment {
  readonly name: string
  readonly file: AppendedFile
  synced: number
}

export const segmentPattern = /^segment-(\d{6,})\.njl$/

/** The segments of a run's folder in the order in which they were begun; none if there is no folder. */
export const segmentNames = (folder: string): ReadonlyArray<string> => {
  try {
    return readdirSync(folder)
      .filter((name) => segmentPattern.test(name))
      .toSorted((one, other) => numberOf(one) - numberOf(other))
  } catch (cause) {
    if (codeOf(cause) === "ENOENT") return []
    throw cause
  }
}

const numberOf = (name: string): number => Number(segmentPattern.exec(name)?.[1] ?? 0)

export class SegmentWriter {
  private readonly files: DurableFiles
  private readonly folder: string
  private readonly segmentBytesMax: number
  private segment: Segment | undefined
  constructor(files: DurableFiles, folder: string, segmentBytesMax: number) {
    this.files = files
    this.folder = folder
    this.segmentBytesMax = segmentBytesMax
  }

  /**
   * Writes all frames and syncs once. On failure, none of them counts as landed, and the segment is
   * abandoned.
   */
  append(frames: ReadonlyArray<PendingFrame>): Effect.Effect<ReadonlyArray<LandedRef>, LandingFailed> {
    const written = Effect.try({
      try: () => {
        const segment = this.segment ?? this.begin()
        this.segment = segment
        return { segment, refs: this.write(segment, frames) }
      },
      catch: (cause) => landingFailed(join(this.folder, this.segment?.name ?? ""), cause),
    })
    return written.pipe(
      Effect.tap(({ segment: { file } }) =>
        Effect.mapError(file.sync, (cause) => landingFailed(file.path, cause)),
      ),
      Effect.map(({ segment, refs }) => {
        segment.synced = segment.file.size
        if (segment.synced >= this.segmentBytesMax) this.close()
        return refs
      }),
      Effect.tapError(() => Effect.sync(() => this.abandon())),
    )
  }

  /**
   * Cuts off what was never synced, if the disk still allows it; what stays is read as a tail that may be
   * torn.
   */
  private abandon(): void {
    const segment = this.segment
    if (segment === undefined) return
    try {
      segment.file.cut(segment.synced)
      // On a full disk, segments without any landed body would pile up.
      if (segment.synced === 0) this.files.remove(segment.file.path)
    } catch {
      // The failure that led here is the one that is reported.
    }
    this.close()
  }

  close(): void {
    const segment = this.segment
    this.segment = undefined
    try {
      segment?.file.close()
    } catch {
      // A close that fails after a failed sync adds nothing; what was synced stays synced.
    }
  }

  private begin(): Segment {
    this.files.makeFolder(this.folder, 0o700)
    const last = segmentNames(this.folder).at(-1)
    const next = last === undefined ? 1 : numberOf(last) + 1
    const name = `segment-${String(next).padStart(6, "0")}.njl`
    const file = this.files.append(join(this.folder, name), "ax", 0o600)
    try {
      this.files.syncFolder(this.folder)
    } catch (cause) {
      file.close()
      throw cause
    }
    return { name, file, synced: 0 }
  }

  private write(segment: Segment, frames: ReadonlyArray<PendingFrame>): ReadonlyArray<LandedRef> {
    const pieces: Array<Uint8Array> = []
    let at = segment.file.size
    const refs = frames.map(({ meta, bytes }) => {
      const sha256 = sha256Hex(bytes)
      const header = encodeHeader({ njl: 1, at, synced: segment.synced, bytes: bytes.length, sha256, meta })
      pieces.push(header, bytes, frameEnd)
      const offset = at + header.length
      at = offset + bytes.length + frameEnd.length
      return { segment: segment.name, offset, bytes: bytes.length, sha256 }
    })
    // Many small bodies are one write; a large one is not copied for it.
    const isLarge = pieces.some(({ length }) => length > largeBytes)
    for (const piece of isLarge ? pieces : [Buffer.concat(pieces)]) segment.file.append(piece)
    return refs
  }
}

const largeBytes = 4 * 1024 * 1024

/** The path is given beside the message. */
export const landingFailed = (path: string, cause: unknown): LandingFailed => {
  if (cause instanceof FileFailed) return new LandingFailed({ path: cause.path, message: cause.what })
  return new LandingFailed({ path, message: cause instanceof Error ? cause.message : String(cause) })
}
