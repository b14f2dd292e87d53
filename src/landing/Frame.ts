/**
 * A frame of a segment, designed to be readable with grep, head and tail: one line of JSON (what is known
 * about the body, its length and SHA-256, the frame's offset, how much of the segment was synced before it,
 * and a check over the line itself), then the raw bytes, then a newline. A header counts only at the offset
 * it names, so a body that looks like a frame is not taken for one.
 */
import { Schema } from "effect"
import { sha256Hex } from "../base/Sha256.ts"
import { BodyMeta } from "./Landing.ts"

export const headerBytesMax = 65_536
export const headerStart = '{"njl":1,'
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
  const { njl, at, synced, bytes, sha256, meta } = header
  const text = JSON.stringify({ njl, at, synced, bytes, sha256, meta }).slice(0, -1)
  return Buffer.from(`${text},"check":"${checkOf(text)}"}\n`)
}

/** The header in a line (without its newline), if it is whole and at the offset that it names. */
export const readHeader = (line: string, at: number): FrameHeader | undefined => {
  const check = checkPattern.exec(line)
  if (!line.startsWith(headerStart) || check === null) return undefined
  if (checkOf(line.slice(0, check.index)) !== check[1]) return undefined
  const header = decodeHeader(JSON.parse(`${line.slice(0, check.index)}}`))
  return header._tag === "Some" && header.value.at === at ? header.value : undefined
}

export const frameEnd: Uint8Array = Uint8Array.of(newline)
export const isFrameEnd = (byte: number | undefined): boolean => byte === newline
