/**
 * Appends batches of frames to a run's segments. A process begins its own segment and never appends to one
 * that may be torn; a segment whose write or sync failed is abandoned, since nothing after its last good
 * sync is reliable. Writing is synchronous (the page cache accepts it at memory speed), syncing is not: it
 * must not block the run.
 */
import { join } from "node:path"
import { Effect } from "effect"
import { sha256Hex } from "../base/Sha256.ts"
import type { AppendedFile, DurableFiles } from "../base/DurableFile.ts"
import { FileFailed, quietly } from "../base/FileCalls.ts"
import type { LandedRef } from "../ledger/Fact.ts"
import { encodeHeader, frameEnd } from "./Frame.ts"
import { LandingFailed } from "./Landing.ts"
import type { BodyMeta } from "./Landing.ts"
import { segmentNames, segmentNumber } from "./SegmentFile.ts"

export interface PendingFrame {
  readonly meta: BodyMeta
  readonly bytes: Uint8Array
}

interface Segment {
  readonly name: string
  readonly file: AppendedFile
  synced: number
}

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
    const begun = Effect.try({
      try: () => (this.segment ??= this.begin()),
      catch: (cause) => landingFailed(this.folder, cause),
    })
    return Effect.flatMap(begun, (segment) => this.appendTo(segment, frames))
  }

  private appendTo(
    segment: Segment,
    frames: ReadonlyArray<PendingFrame>,
  ): Effect.Effect<ReadonlyArray<LandedRef>, LandingFailed> {
    const { file } = segment
    const failed = (cause: unknown) => landingFailed(file.path, cause)
    return Effect.try({ try: () => this.write(segment, frames), catch: failed }).pipe(
      Effect.tap(Effect.mapError(file.sync, failed)),
      Effect.map((refs) => {
        segment.synced = file.size
        if (segment.synced >= this.segmentBytesMax) this.close()
        return refs
      }),
      Effect.tapError(() => Effect.sync(() => this.abandon(segment))),
    )
  }

  /**
   * Cuts off what was never synced, if the disk still allows it; what stays is read as a tail that may be
   * torn.
   */
  private abandon({ file, synced }: Segment): void {
    quietly(() => {
      file.cut(synced)
      // On a full disk, segments without any landed body would pile up.
      if (synced === 0) this.files.remove(file.path)
    })
    this.close()
  }

  /** A close that fails after a failed sync adds nothing; what was synced stays synced. */
  close(): void {
    const segment = this.segment
    this.segment = undefined
    quietly(() => segment?.file.close())
  }

  private begin(): Segment {
    this.files.makeFolder(this.folder, 0o700)
    const last = segmentNames(this.folder).at(-1)
    const next = last === undefined ? 1 : segmentNumber(last) + 1
    const name = `segment-${String(next).padStart(6, "0")}.njl`
    const file = this.files.append(join(this.folder, name), "ax", 0o600)
    try {
      this.files.syncFolder(this.folder)
    } catch (cause) {
      quietly(() => file.close())
      // No body was landed in it, and the next one may find its number free.
      quietly(() => this.files.remove(file.path))
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
