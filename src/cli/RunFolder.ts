/**
 * The output folder as this room uses it: made private (or for the group, where the job shares what is
 * published), and under it `runs/<run_id>/` with the night's log and summary. Files are written whole or not
 * at all.
 */
import { chmodSync, closeSync, fsyncSync, openSync, renameSync, writeSync } from "node:fs"
import { join, resolve } from "node:path"
import { Effect } from "effect"
import type { RunId } from "../contract/Ids.ts"
import type { Job } from "../jobs/Job.ts"
import { OutputUnusable, UsageRefused } from "./Failures.ts"
import { claimFolder, codeOf, lostLedger, makeMissing } from "./OutputGuard.ts"

export type Share = Job["share"]
const folderMode = (share: Share): number => (share === "group" ? 0o750 : 0o700)
export const fileMode = (share: Share): number => (share === "group" ? 0o640 : 0o600)

const messageOf = (cause: unknown): string => (cause instanceof Error ? cause.message : String(cause))

const attempt = <A>(what: string, work: () => A): Effect.Effect<A, OutputUnusable> =>
  Effect.try({
    try: work,
    catch: (cause) => new OutputUnusable({ message: `${what}: ${messageOf(cause)}` }),
  })

export const makeFolder = (path: string, share: Share): void => {
  makeMissing(resolve(path), folderMode(share))
  chmodSync(path, folderMode(share))
}

/** What may be otherwise tomorrow without anybody changing a setting. */
const passing: ReadonlySet<string> = new Set(["ENOSPC", "EDQUOT", "EIO"])

const elsewhere = "Nothing was changed. Give --output a folder that is empty, or that is not there yet"

/** Why nothing may be begun in this folder, in whole sentences; undefined once it is ours and ready. */
const claimed = (output: string, share: Share): string | undefined => {
  const refusal = claimFolder(resolve(output), folderMode(share))
  if (refusal !== undefined) return `${refusal}. ${elsewhere}`
  const lost = lostLedger(output)
  if (lost !== undefined) return lost
  makeFolder(output, share)
  makeFolder(join(output, "runs"), share)
  return undefined
}

/** Before the lock and the ledger, which live in it. */
export const prepareOutput = (output: string, shares: ReadonlyArray<Share>) =>
  Effect.try({
    try: () => claimed(output, shares.includes("group") ? "group" : "none"),
    catch: (cause) => {
      const message = `the output folder ${output} cannot be used (${messageOf(cause)}); nothing was started`
      return passing.has(codeOf(cause)) ? new OutputUnusable({ message }) : new UsageRefused({ message })
    },
  }).pipe(
    Effect.flatMap((refusal) =>
      refusal === undefined ? Effect.void : Effect.fail(new UsageRefused({ message: refusal })),
    ),
  )

/** The lock file belongs to whoever works here, and says nothing to anybody else. */
export const closeLock = (output: string) =>
  attempt("the lock cannot be closed to others", () => chmodSync(join(output, "run.lock"), 0o600))

export const runFolder = (output: string, run_id: RunId): string => join(output, "runs", run_id)

/** A file in a folder that is made where it is missing, replaced atomically. */
export const writeWhole = (folder: string, name: string, text: string, share: Share) =>
  attempt(`${join(folder, name)} cannot be written`, () => {
    makeFolder(folder, share)
    const building = join(folder, `${name}.tmp`)
    const descriptor = openSync(building, "w", fileMode(share))
    try {
      writeSync(descriptor, text)
      fsyncSync(descriptor)
    } finally {
      closeSync(descriptor)
    }
    chmodSync(building, fileMode(share))
    renameSync(building, join(folder, name))
  })

/** `runs/<run_id>/<name>`, replaced atomically. */
export const writeRunFile = (
  { output, run_id, share }: { readonly output: string; readonly run_id: RunId; readonly share: Share },
  name: string,
  text: string,
) => writeWhole(runFolder(output, run_id), name, text, share)
