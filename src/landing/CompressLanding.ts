/**
 * Compresses the segments of a run that nothing is added to any more: JSON takes a fraction of the room then,
 * and every body keeps its place. The new file is in place, synced and read back before the old one goes, so
 * that a crash leaves at least one of them whole.
 */
import { readFileSync, statSync } from "node:fs"
import { join } from "node:path"
import type { RunId } from "../service/Ids.ts"
import type { DurableFiles } from "../base/DurableFile.ts"
import { contentBytesMax, pack, unpack } from "../base/Zstd.ts"
import { isRunId } from "../ledger/RunId.ts"
import { packedPathOf, segmentNames } from "./SegmentFile.ts"

export interface Compressed {
  /** Bytes of what was compressed now, before and after; both 0 if there was nothing. */
  readonly before: number
  readonly after: number
}

/**
 * Only the process that holds the output folder may call it, and no run may be landing bodies. `landing` is
 * the folder of all runs. `isDry`: only says what it would come to.
 */
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
