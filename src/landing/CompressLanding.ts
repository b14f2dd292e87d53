/**
 * Compresses the segments of a run that nothing is added to any more: JSON takes a fraction of the room then,
 * and every body keeps its place. The new file is in place, synced and read back before the old one goes, so
 * that a crash leaves at least one of them whole.
 */
import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import type { RunId } from "../contract/Ids.ts"
import type { DurableFiles } from "../foundation/DurableFile.ts"
import { isRunId } from "../ledger/RunId.ts"
import { contentBytesMax, pack, packedPathOf, segmentNames, unpack } from "./SegmentFile.ts"

export interface Compressed {
  /** Bytes of what was compressed now, before and after; both 0 if there was nothing. */
  readonly before: number
  readonly after: number
}

/** Whether the run has a segment that is not compressed. `landing` is the folder of all runs. */
export const isCompressible = (landing: string, run_id: RunId): boolean =>
  isRunId(run_id) &&
  segmentNames(join(landing, run_id)).some((name) => existsSync(join(landing, run_id, name)))

/** Only the process that holds the output folder may call it, and no run may be landing bodies. */
export const compressSegments = (files: DurableFiles, landing: string, run_id: RunId): Compressed => {
  const sum = { before: 0, after: 0 }
  if (!isCompressible(landing, run_id)) return sum
  const folder = join(landing, run_id)
  for (const name of segmentNames(folder)) {
    const path = join(folder, name)
    if (!existsSync(path)) continue
    const content = readFileSync(path)
    if (content.length > contentBytesMax) continue
    const packed = pack(content)
    files.replace(packedPathOf(path), packed, 0o600)
    if (!unpack(readFileSync(packedPathOf(path))).equals(content)) {
      files.remove(packedPathOf(path))
      throw new Error(`${name} reads back differently once it is compressed; it stays as it is`)
    }
    files.remove(path)
    sum.before += content.length
    sum.after += packed.length
  }
  files.syncFolder(folder)
  return sum
}
