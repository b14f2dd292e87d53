/**
 * Where publishing works: the places, the modes and the file operations of one output folder, for whoever
 * publishes, verifies or repairs.
 */
import type { RecordFamily } from "../records/RecordSchema.ts"
import type { Layout, Modes } from "./Manifest.ts"
import type { FileOperations } from "./OutputFiles.ts"

export interface Store {
  readonly layout: Layout
  readonly modes: Modes
  readonly files: FileOperations
  readonly families: ReadonlyArray<RecordFamily>
}

/** The name of a file that is written but not published yet; no glob for Parquet files finds it. */
export const temporary = (path: string): string => `${path}.tmp`
