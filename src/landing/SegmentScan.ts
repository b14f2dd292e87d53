/**
 * Reads the frames of one segment without loading its bodies. What was synced must be complete: damage
 * there is an error. What follows the last known sync may be torn by a crash: there, every body is hashed,
 * and the first incomplete one ends the segment. Those bodies were never reported as landed.
 */
import { sha256Hex } from "../base/Sha256.ts"
import { headerBytesMax, headerStart, isFrameEnd, readHeader } from "./Frame.ts"
import type { FrameHeader } from "./Frame.ts"
import { openSegment } from "./SegmentFile.ts"
import type { SegmentReader } from "./SegmentFile.ts"

export interface ScannedFrame {
  readonly header: FrameHeader
  /** Where the body begins. */
  readonly offset: number
}

export type Scan =
  | { readonly _tag: "Whole"; readonly frames: ReadonlyArray<ScannedFrame> }
  | { readonly _tag: "Damaged"; readonly offset: number }

/** At least the greatest length of a header. */
const windowBytes = 2 * headerBytesMax

export const scanSegment = (path: string): Scan => {
  const file = openSegment(path, windowBytes)
  try {
    return scanFile(file)
  } finally {
    file.close()
  }
}

const scanFile = (file: SegmentReader): Scan => {
  const frames: Array<ScannedFrame> = []
  let at = 0
  while (at < file.size) {
    const frame = frameAt(file, at)
    if (frame === undefined) break
    frames.push(frame)
    at = frame.offset + frame.header.bytes + 1
  }
  const synced = frames.reduce((most, { header }) => Math.max(most, header.synced), 0)
  if (at < file.size && (synced > at || syncedLater(file, at))) return { _tag: "Damaged", offset: at }
  const torn = frames.findIndex((frame) => frame.header.at >= synced && !isWhole(file, frame))
  return { _tag: "Whole", frames: torn === -1 ? frames : frames.slice(0, torn) }
}

const frameAt = (file: SegmentReader, at: number): ScannedFrame | undefined => {
  const bytes = file.peek(at, Math.min(headerBytesMax, file.size - at))
  const length = bytes.indexOf("\n")
  if (length === -1) return undefined
  const header = readHeader(bytes.toString("utf8", 0, length), at)
  if (header === undefined) return undefined
  const offset = at + length + 1
  const end = offset + header.bytes
  return end < file.size && isFrameEnd(file.peek(end, 1)[0]) ? { header, offset } : undefined
}

const isWhole = (file: SegmentReader, { header, offset }: ScannedFrame): boolean =>
  sha256Hex(file.read(offset, header.bytes)) === header.sha256

/** Whether a frame after `at` records that the data at `at` was synced: then it is damaged, not torn. */
const syncedLater = (file: SegmentReader, at: number): boolean => {
  const rest = file.read(at, file.size - at)
  const mark = `\n${headerStart}`
  for (let found = rest.indexOf(mark); found !== -1; found = rest.indexOf(mark, found + 1)) {
    const end = rest.indexOf("\n", found + 1)
    if (end === -1) return false
    const header = readHeader(rest.toString("utf8", found + 1, end), at + found + 1)
    if (header !== undefined && header.synced > at) return true
  }
  return false
}
