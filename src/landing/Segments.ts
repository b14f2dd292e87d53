/**
 * The frames of a run's segments: how they are written in batches, and found again after a crash. A process
 * begins its own segment; one whose write or sync failed is abandoned. Writing is synchronous (the page cache
 * accepts it at memory speed), syncing must not block the run.
 */
import { join } from "node:path"
import { Effect, Schema } from "effect"
import { wordsOf } from "../base/Text.ts"
import { FileFailed, quietly, type AppendedFile, type DurableFiles } from "../base/DurableFile.ts"
import { sha256Hex } from "../base/Hashes.ts"
import { BodyMeta, LandingDamaged, LandingFailed, type LandingDamage } from "./Landing.ts"
import { openSegment, readAt, segmentNames, segmentNumber, type OpenSegment } from "./SegmentFile.ts"
import type { LandedRef } from "../ledger/Fact.ts"

// A frame can be read with grep, head and tail: one line of JSON, the raw bytes, a newline. A header has a
// check over itself, and counts only at the offset that it names, so that a body that looks like a frame is
// not taken for one.

export const headerBytesMax = 65_536
const headerStart = '{"njl":1,'
const newline = 0x0a

const FrameHeader = Schema.Struct({
  njl: Schema.Literal(1),
  /** The frame's own offset in its segment. */
  at: Schema.Int,
  /** Everything before this offset was synced when this frame was written. */
  synced: Schema.Int,
  bytes: Schema.Int,
  sha256: Schema.String,
  meta: BodyMeta,
})
export type FrameHeader = typeof FrameHeader.Type
const decodeHeader = Schema.decodeUnknownOption(FrameHeader)

const checkCharacters = 16
const checkOf = (text: string): string => sha256Hex(text).slice(0, checkCharacters)
const checkPattern = /,"check":"([0-9a-f]{16})"\}$/

/** The header line with its newline. */
export const encodeHeader = (header: FrameHeader): Uint8Array => {
  const text = JSON.stringify(header).slice(0, -1)
  return Buffer.from(`${text},"check":"${checkOf(text)}"}\n`)
}

/** The header in a line (without its newline), if it is whole and at the offset that it names. */
const readHeader = (line: string, at: number): FrameHeader | undefined => {
  const check = checkPattern.exec(line)
  if (!line.startsWith(headerStart) || check === null) return undefined
  if (checkOf(line.slice(0, check.index)) !== check[1]) return undefined
  const header = decodeHeader(JSON.parse(`${line.slice(0, check.index)}}`))
  return header._tag === "Some" && header.value.at === at ? header.value : undefined
}

export const frameEnd: Uint8Array = Uint8Array.of(newline)

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

  /** All frames, and one sync. On failure, none counts as landed, and the segment is abandoned. */
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

  /** Cuts off what was never synced, if the disk allows it; what stays is read as a torn tail. */
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
  return new LandingFailed({ path, message: wordsOf(cause) })
}

// Reads the frames of one segment without loading its bodies. A damaged header in what was synced costs its
// own frame: the next one is found by its header. What follows may be torn by a crash: there, every body is
// hashed, and the first incomplete one ends the segment.

export interface ScannedFrame {
  readonly header: FrameHeader
  /** Where the body begins. */
  readonly offset: number
}

/** At least the greatest length of a header. */
const windowBytes = 2 * headerBytesMax

/** Up to `length` bytes at `offset`, valid until the next call: headers of small bodies are read together. */
type Peek = (offset: number, length: number) => Buffer

const peeking = (file: OpenSegment): Peek => {
  const window = Buffer.allocUnsafe(windowBytes)
  let [from, filled] = [0, 0]
  return (offset, length) => {
    if (offset < from || offset + length > from + filled) {
      from = offset
      filled = file.fill(window, offset)
    }
    return window.subarray(offset - from, Math.min(offset - from + length, filled))
  }
}

type Gap = Pick<LandingDamage, "from" | "to">

interface Scanned {
  readonly frames: ReadonlyArray<ScannedFrame>
  /** What was synced and belongs to no frame any more. */
  readonly damaged: ReadonlyArray<Gap>
}

export const scanSegment = (path: string): Scanned => {
  const file = openSegment(path)
  try {
    return scanFile(file)
  } finally {
    file.close()
  }
}

/** Throws if the segment is damaged. */
export const framesIn = (path: string): ReadonlyArray<ScannedFrame> => {
  const { frames, damaged } = scanSegment(path)
  const [first] = damaged
  if (first === undefined) return frames
  throw new LandingDamaged({ path, message: `the frame at offset ${first.from} is damaged` })
}

const scanFile = (file: OpenSegment): Scanned => {
  const frames: Array<ScannedFrame> = []
  const gaps: Array<Gap> = []
  const peek = peeking(file)
  let content: Buffer | undefined
  let synced = 0
  for (let at = 0; at < file.size;) {
    const frame = frameAt(peek, at, file.size)
    const end = frame === undefined ? Infinity : frame.offset + frame.header.bytes
    synced = Math.max(synced, frame?.header.synced ?? 0)
    if (frame !== undefined && end < file.size && peek(end, 1)[0] === newline) {
      frames.push(frame)
      at = end + 1
    } else {
      content ??= readAt(file, 0, file.size)
      const to = nextHeader(content, at + 1)
      gaps.push({ from: at, to })
      at = to
    }
  }
  const isTorn = (frame: ScannedFrame) => frame.header.at >= synced && !isWhole(file, frame)
  const torn = [gaps.find(({ from }) => from >= synced)?.from, frames.find(isTorn)?.header.at]
  const end = Math.min(...torn.map((at) => at ?? Infinity))
  return {
    frames: frames.filter(({ header }) => header.at < end),
    damaged: gaps.filter(({ from }) => from < synced),
  }
}

const frameAt = (peek: Peek, at: number, size: number): ScannedFrame | undefined => {
  const bytes = peek(at, Math.min(headerBytesMax, size - at))
  const length = bytes.indexOf("\n")
  if (length === -1) return undefined
  const header = readHeader(bytes.toString("utf8", 0, length), at)
  return header === undefined ? undefined : { header, offset: at + length + 1 }
}

/** Where a header begins that is whole, from there on; where there is none, the end. */
const nextHeader = (content: Buffer, from: number): number => {
  for (let at = content.indexOf(headerStart, from); at !== -1; at = content.indexOf(headerStart, at + 1))
    if (frameAt((offset, length) => content.subarray(offset, offset + length), at, content.length)) return at
  return content.length
}

const isWhole = (file: OpenSegment, { header, offset }: ScannedFrame): boolean =>
  sha256Hex(readAt(file, offset, header.bytes)) === header.sha256
