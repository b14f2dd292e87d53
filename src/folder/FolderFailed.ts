/**
 * Why a work on the whole folder stopped, and its steps with files. What was done before stays done, and the
 * same command continues.
 */
import { existsSync } from "node:fs"
import { dirname } from "node:path"
import { Effect, Schema } from "effect"
import { wordsOf } from "../base/Text.ts"
import type { DurableFiles } from "../base/DurableFile.ts"

export class FolderFailed extends Schema.TaggedError<FolderFailed>()("FolderFailed", {
  message: Schema.String,
  /**
   * Absent if the machine refused something. foreign: the message names what is in `documents/` and not ours;
   * nothing of it was changed. unsettled: versions were published all the time, or one was cut off in the
   * middle. other_removal: another customer's removal was cut off and has to be finished first.
   */
  because: Schema.optionalKey(Schema.Literals(["foreign", "unsettled", "other_removal"])),
}) {}

export const folderFailed = (cause: unknown) => new FolderFailed({ message: wordsOf(cause) })

export const step = <A>(work: () => A) => Effect.try({ try: work, catch: folderFailed })

/** Of these, what is there. */
export const removeAll = (files: DurableFiles, paths: ReadonlyArray<string>): void => {
  const there = paths.filter((path) => existsSync(path))
  for (const path of there) files.remove(path)
  for (const folder of new Set(there.map((path) => dirname(path)))) files.syncFolder(folder)
}
