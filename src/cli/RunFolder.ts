/**
 * The output folder as this room uses it: made private (or shared with the group, if the job shares what is
 * published), and in it `runs/<run_id>/` with the run's log and summary. Files are written completely or
 * not at all.
 */
import { chmodSync, existsSync } from "node:fs"
import { join, resolve } from "node:path"
import { Clock, Duration, Effect } from "effect"
import { durableFiles } from "../base/DurableFile.ts"
import type { DurableFiles } from "../base/DurableFile.ts"
import { codeOf } from "../base/FileCalls.ts"
import type { LockWait } from "../base/FolderLock.ts"
import type { RunId } from "../service/Ids.ts"
import type { Job } from "../jobs/Job.ts"
import { refuse } from "./Failures.ts"
import type { Refused } from "./Failures.ts"
import { claimFolder, lostLedger } from "./OutputGuard.ts"
import { note } from "./Output.ts"

export type Share = Job["share"]
export const folderMode = (share: Share): number => (share === "group" ? 0o750 : 0o700)
export const fileMode = (share: Share): number => (share === "group" ? 0o640 : 0o600)

const messageOf = (cause: unknown): string => (cause instanceof Error ? cause.message : String(cause))

/** What may change by tomorrow although nobody changed a setting. */
const passing: ReadonlySet<string> = new Set(["ENOSPC", "EDQUOT", "EIO"])

/** Why nothing may be started in this folder; undefined once it is ours and ready. */
const claimed = (files: DurableFiles, output: string, share: Share): Refused | undefined => {
  const refusal = claimFolder(files, resolve(output), folderMode(share))
  if (refusal !== undefined) return refusal
  const found = lostLedger(output)
  if (found !== undefined) return refuse("ledger-missing", { output, found })
  files.makeFolder(resolve(output), folderMode(share))
  // Reports and logs name the customers: where the tables do not, they are not for the same readers.
  const hasPseudonyms = existsSync(join(output, "pseudonyms.json"))
  files.makeFolder(resolve(output, "runs"), folderMode(hasPseudonyms ? "none" : share))
  return undefined
}

/** Before the lock and the ledger, which are inside it. */
export const prepareOutput = Effect.fnUntraced(function* (output: string, shares: ReadonlyArray<Share>) {
  const files = yield* durableFiles
  const refusal = yield* Effect.try({
    try: () => claimed(files, output, shares.includes("group") ? "group" : "none"),
    catch: (cause) => {
      const why = messageOf(cause)
      return passing.has(codeOf(cause))
        ? refuse("output-unwritable", { detail: `${output}: ${why}` })
        : refuse("output-refused", { output, why })
    },
  })
  if (refusal !== undefined) return yield* refusal
})

interface Holding extends Pick<LockWait<never>, "longest" | "until"> {
  /** In words, for whoever finds the folder in use. */
  readonly works: ReadonlyArray<string>
}

const atOnce: Holding = { longest: Duration.zero, until: Infinity, works: [] }

/** Prepares the folder and keeps every other process out of it until the scope ends. */
export const holdOutput = Effect.fnUntraced(function* (
  output: string,
  shares: ReadonlyArray<Share>,
  { works, longest, until }: Holding = atOnce,
) {
  const { awaitLock } = yield* Effect.promise(() => import("../base/FolderLock.ts"))
  const latest = Math.min(until, (yield* Clock.currentTimeMillis) + Duration.toMillis(longest))
  const onHolder = (holder: string) =>
    note(
      `Another process is working in this output folder: ${holder}. ` +
        `Waiting for it until ${new Date(latest).toISOString()} at the latest.`,
    )
  yield* prepareOutput(output, shares)
  const held = yield* awaitLock(`${output}/run.lock`, works, { longest, until, onHolder })
  // Whoever worked here may have changed it.
  if (held.waitedMs > 0) yield* prepareOutput(output, shares)
  // The lock file belongs to whoever works here, and contains nothing.
  yield* writing(() => chmodSync(join(output, "run.lock"), 0o600))
  return held
})

export const runFolder = (output: string, run_id: RunId): string => join(output, "runs", run_id)

const writing = Effect.fnUntraced(function* (work: (files: DurableFiles) => void) {
  const files = yield* durableFiles
  yield* Effect.try({
    try: () => work(files),
    catch: (cause) => refuse("output-unwritable", { detail: messageOf(cause) }),
  })
})

/** A folder for its owner only, created if it is missing. */
export const makePrivate = (folder: string) =>
  writing((files) => files.makeFolder(folder, folderMode("none")))

/** A file in a folder that is created if missing, replaced atomically. */
export const writeWhole = (folder: string, name: string, text: string, share: Share) =>
  writing((files) => {
    files.makeFolder(folder, folderMode(share))
    files.replace(join(folder, name), text, fileMode(share))
  })

/** `runs/<run_id>/<name>`, replaced atomically. */
export const writeRunFile = (
  { output, run_id, share }: { readonly output: string; readonly run_id: RunId; readonly share: Share },
  name: string,
  text: string,
) => writeWhole(runFolder(output, run_id), name, text, share)
