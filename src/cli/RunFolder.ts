/**
 * The output folder as this room uses it: made private (or for the group, where the job shares what is
 * published), and under it `runs/<run_id>/` with the night's log and summary. Files are written whole or not
 * at all.
 */
import { chmodSync, closeSync, fsyncSync, mkdirSync, openSync, renameSync, writeSync } from "node:fs"
import { join } from "node:path"
import { Effect } from "effect"
import type { Job } from "../jobs/Job.ts"
import { OutputUnusable } from "./Failures.ts"

export type Share = Job["share"]
const folderMode = (share: Share): number => (share === "group" ? 0o750 : 0o700)
export const fileMode = (share: Share): number => (share === "group" ? 0o640 : 0o600)

const attempt = <A>(what: string, work: () => A): Effect.Effect<A, OutputUnusable> =>
  Effect.try({
    try: work,
    catch: (cause) =>
      new OutputUnusable({ message: `${what}: ${cause instanceof Error ? cause.message : String(cause)}` }),
  })

export const makeFolder = (path: string, share: Share): void => {
  mkdirSync(path, { recursive: true, mode: folderMode(share) })
  chmodSync(path, folderMode(share))
}

/** Before the lock and the ledger, which live in it. */
export const prepareOutput = (output: string, shares: ReadonlyArray<Share>) =>
  attempt("the output folder cannot be made", () => {
    const share = shares.includes("group") ? "group" : "none"
    makeFolder(output, share)
    makeFolder(join(output, "runs"), share)
  })

/** The lock file belongs to whoever works here, and says nothing to anybody else. */
export const closeLock = (output: string) =>
  attempt("the lock cannot be closed to others", () => chmodSync(join(output, "run.lock"), 0o600))

export const runFolder = (output: string, run_id: string): string => join(output, "runs", run_id)

/** `runs/<run_id>/<name>`, replaced atomically. */
export const writeRunFile = (
  { output, run_id, share }: { readonly output: string; readonly run_id: string; readonly share: Share },
  name: string,
  text: string,
) =>
  attempt(`runs/${run_id}/${name} cannot be written`, () => {
    const folder = runFolder(output, run_id)
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
