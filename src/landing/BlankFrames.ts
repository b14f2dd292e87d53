/**
 * Removes bodies from the segments of a run: blanks of the same length take the place of each, because facts
 * name every other body by its offset. A segment is replaced as a whole. What a crash left behind the last
 * frame, or beside a segment that was being compressed, goes too.
 */
import { existsSync } from "node:fs"
import { join } from "node:path"
import { sha256Hex } from "../base/Hashes.ts"
import type { DurableFiles } from "../base/DurableFile.ts"
import { pack } from "../base/Zstd.ts"
import { TaskId, type RunId } from "../service/Ids.ts"
import { isRunId } from "../ledger/RunState.ts"
import { encodeHeader, frameEnd, framesIn, type FrameHeader } from "./Segments.ts"
import type { BodyMeta } from "./Landing.ts"
import { contentOf, packedPathOf, segmentNames } from "./SegmentFile.ts"

/** How many bodies of the run match. `landing` is the folder of all runs. */
export const countFrames = (landing: string, run_id: RunId, matches: (meta: BodyMeta) => boolean): number => {
  if (!isRunId(run_id)) return 0
  const folder = join(landing, run_id)
  return segmentNames(folder)
    .flatMap((name) => framesIn(join(folder, name)))
    .filter(({ header: { meta } }) => isTheirs(meta, matches)).length
}

/** Blanks every body of the run that matches. Only the process that holds the output folder may call it. */
export const blankFrames = (
  files: DurableFiles,
  landing: string,
  run_id: RunId,
  matches: (meta: BodyMeta) => boolean,
): void => {
  if (!isRunId(run_id)) return
  const folder = join(landing, run_id)
  for (const name of segmentNames(folder)) {
    const path = join(folder, name)
    removeHalves(files, path)
    const frames = framesIn(path)
    const last = frames.at(-1)
    const end = last === undefined ? 0 : last.offset + last.header.bytes + frameEnd.length
    const theirs = frames.filter(({ header: { meta } }) => isTheirs(meta, matches))
    const whole = contentOf(path)
    if (theirs.length === 0 && whole.length === end) continue
    const content = whole.subarray(0, end)
    for (const { header, offset } of theirs)
      content.set(blankFrame(header, offset + header.bytes + frameEnd.length - header.at), header.at)
    if (existsSync(path)) files.replace(path, content, 0o600)
    else files.replace(packedPathOf(path), pack(content), 0o600)
  }
}

/** A segment that is there as it was written was not compressed to the end; the rest would keep bodies. */
const removeHalves = (files: DurableFiles, path: string): void => {
  const packed = packedPathOf(path)
  files.remove(`${packed}.tmp`)
  if (existsSync(path)) files.remove(packed)
}

const isTheirs = (meta: BodyMeta, matches: (meta: BodyMeta) => boolean): boolean =>
  meta.kind !== "forgotten" && matches(meta)

const space = 0x20

/** A whole frame of this length. It always fits: its header says less than that of any real body. */
const blankFrame = ({ at, synced, meta: { run_id } }: FrameHeader, length: number): Uint8Array => {
  // The number of bytes is part of the header, so some lengths are only met with one more character in it.
  for (const task_id of ["", "-"].map((text) => TaskId.make(text)))
    for (let digits = 1; digits <= String(length).length; digits += 1) {
      const meta: BodyMeta = { kind: "forgotten", run_id, task_id, http_status: 0, received_at: 0 }
      const headerOf = (bytes: number, sha256: string) =>
        encodeHeader({ njl: 1, at, synced, bytes, sha256, meta })
      const bytes = length - frameEnd.length - (headerOf(0, noHash).length - 1 + digits)
      if (bytes < 0 || String(bytes).length !== digits) continue
      const body = Buffer.alloc(bytes, space)
      return Buffer.concat([headerOf(bytes, sha256Hex(body)), body, frameEnd])
    }
  throw new Error("a frame that is too short to be replaced")
}

const noHash = "0".repeat(64)
