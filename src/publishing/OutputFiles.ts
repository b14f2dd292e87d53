/**
 * The file operations that publishing rests on, few and small, so that a test can make each of them fail.
 * Whatever is written is synced before it returns; a rename counts once its folder is synced.
 */
import {
  chmodSync,
  closeSync,
  copyFileSync,
  existsSync,
  fsyncSync,
  linkSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs"
import { Effect } from "effect"
import { PublishFailed } from "./Publisher.ts"

export interface FileOperations {
  /** Writes the whole file and syncs it. */
  readonly write: (path: string, bytes: Uint8Array | string, mode: number) => void
  readonly rename: (from: string, to: string) => void
  readonly link: (from: string, to: string) => void
  readonly copy: (from: string, to: string) => void
  /** Also when it is not there; folders with all they hold. */
  readonly remove: (path: string) => void
  /** With this mode, also where it is there already. */
  readonly makeFolder: (path: string, mode: number) => void
  readonly syncFolder: (path: string) => void
  readonly exists: (path: string) => boolean
  readonly read: (path: string) => Uint8Array
  /** Files below a folder, relative to it; none where there is no folder. */
  readonly walk: (folder: string) => ReadonlyArray<string>
}

const sync = (path: string): void => {
  const descriptor = openSync(path, "r")
  try {
    fsyncSync(descriptor)
  } finally {
    closeSync(descriptor)
  }
}

export const nodeFiles: FileOperations = {
  write: (path, bytes, mode) => {
    writeFileSync(path, bytes, { mode })
    chmodSync(path, mode)
    sync(path)
  },
  rename: renameSync,
  link: linkSync,
  copy: (from, to) => copyFileSync(from, to),
  remove: (path) => rmSync(path, { recursive: true, force: true }),
  makeFolder: (path, mode) => {
    mkdirSync(path, { recursive: true, mode })
    chmodSync(path, mode)
  },
  syncFolder: sync,
  exists: existsSync,
  read: (path) => readFileSync(path),
  walk: (folder) =>
    existsSync(folder)
      ? readdirSync(folder, { recursive: true, withFileTypes: true })
          .filter((entry) => !entry.isDirectory())
          .map((entry) => `${entry.parentPath}/${entry.name}`.slice(folder.length + 1))
          .toSorted()
      : [],
}

/** One step with files; what the machine refused is told without a stack. */
export const fileStep = <A>(step: () => A): Effect.Effect<A, PublishFailed> =>
  Effect.try({
    try: step,
    catch: (cause) => new PublishFailed({ message: cause instanceof Error ? cause.message : String(cause) }),
  })
