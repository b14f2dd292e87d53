/**
 * The paths, modes and file writes of one output folder, shared by the code that publishes, verifies or
 * repairs.
 */
import { dirname } from "node:path"
import type { DurableFiles } from "../base/DurableFile.ts"
import type { SecretReference } from "../jobs/Scalars.ts"
import type { RecordFamily } from "../records/RecordSchema.ts"
import type { SchemasInForce } from "../records/SchemasInForce.ts"
import type { Layout, Modes, ParquetFolder } from "./Manifest.ts"
import type { PseudonymKey, PseudonymPolicy } from "./Treatments.ts"

export interface Store {
  readonly layout: Layout
  readonly modes: Modes
  readonly files: DurableFiles
  readonly families: ReadonlyArray<RecordFamily>
  readonly schemas: Pick<SchemasInForce, "texts" | "gone">
  readonly toolVersion: string
  /** Which folders of Parquet a version has; as before if it is not given. */
  readonly parquet?: ParquetFolder["holds"]
  /** Earlier versions that stay restorable after a publication. */
  readonly versionsKept: number
  /** Absent if the tables name the customers. */
  readonly pseudonyms?: Pseudonyms
}

/** What the tables have in place of the customers; the key only where rows are derived or looked for. */
export interface Pseudonyms {
  readonly policy: PseudonymPolicy
  readonly key?: PseudonymKey
  /** Where the key is, if a job has just said so. */
  readonly reference?: SecretReference
}

/** The name of a file that is written but not published yet; no glob for Parquet files matches it. */
export const temporary = (path: string): string => `${path}.tmp`

/** The folder that a file is to be in and the one around it, which may have been made with other modes. */
export const makeFoldersOf = ({ files, modes }: Pick<Store, "files" | "modes">, path: string): void => {
  files.makeFolder(dirname(dirname(path)), modes.folder)
  files.makeFolder(dirname(path), modes.folder)
}
