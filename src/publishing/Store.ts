/**
 * The paths, modes and file writes of one output folder, shared by the code that publishes, verifies or
 * repairs.
 */
import type { DurableFiles } from "../foundation/DurableFile.ts"
import type { RecordFamily } from "../records/RecordSchema.ts"
import type { SchemasInForce } from "../records/SchemasInForce.ts"
import type { Layout, Modes } from "./Manifest.ts"

export interface Store {
  readonly layout: Layout
  readonly modes: Modes
  readonly files: DurableFiles
  readonly families: ReadonlyArray<RecordFamily>
  readonly schemas: Pick<SchemasInForce, "texts" | "gone">
  readonly toolVersion: string
  /** Delta logs: true begins them, false removes them, else those that are there go on. */
  readonly delta?: boolean | undefined
  /** Earlier versions that stay restorable after a publication. */
  readonly versionsKept: number
}

/** The name of a file that is written but not published yet; no glob for Parquet files matches it. */
export const temporary = (path: string): string => `${path}.tmp`
