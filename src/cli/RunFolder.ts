/**
 * The output folder as this room uses it: made private (or shared with the group, if the job shares what is
 * published), and in it `runs/<run_id>/` with the run's log and summary. Files are written completely or
 * not at all.
 */
import { chmodSync, existsSync, readFileSync, readdirSync, statSync } from "node:fs"
import { join, resolve } from "node:path"
import { Clock, Duration, Effect, Layer } from "effect"
import type { DuckDb } from "../base/DuckDb.ts"
import { codeOf, durableFiles } from "../base/DurableFile.ts"
import type { DurableFiles } from "../base/DurableFile.ts"
import type { LockWait } from "../base/FolderLock.ts"
import { listed } from "../base/Text.ts"
import { refuse } from "./Failures.ts"
import type { Refused } from "./Failures.ts"
import { note } from "./Output.ts"
import { Wiring } from "./Wiring.ts"
import type { Job } from "../jobs/Job.ts"
import type { Landing } from "../landing/Landing.ts"
import type { Ledger } from "../ledger/Ledger.ts"
import type { RunId } from "../service/Ids.ts"
import type { Store } from "../tables/Store.ts"

// Whether a folder that somebody named is an output folder of ours, and whether its ledger is where it
// belongs. Nothing is changed in a folder that is not ours: a folder is ours if it contains the marker, and
// a marker is only put into an empty folder, or into one that an earlier version used.

export const markerName = ".nightjar"
const markerStart = "nightjar output folder\n"
const markerText = `${markerStart}Nightjar writes everything else in this folder.\n`

/** What a folder may contain and still count as empty: a page about it, and files of the file system. */
const harmless: ReadonlySet<string> = new Set(["README.md", ".gitignore", ".gitkeep", "lost+found"])
/** The sticky bit: everyone who shares such a folder may create files in it. */
const stickyBit = 0o1000
const entriesTold = 3

/** marked: ours. damaged: ours, but the marker was changed. */
type MarkerState = "marked" | "damaged" | "missing"

export const markerState = (output: string): MarkerState => {
  const path = join(output, markerName)
  if (!existsSync(path)) return "missing"
  return readFileSync(path, "utf8") === markerText ? "marked" : "damaged"
}

/** An output folder of a version that had no marker. */
const isOlder = (entries: ReadonlySet<string>): boolean => entries.has("ledger.sqlite") && entries.has("runs")

/** Undefined for a folder, and where nothing is yet. */
export const refusalOfFile = (output: string): Refused | undefined =>
  existsSync(output) && !statSync(output).isDirectory()
    ? refuse("output-not-a-folder", { output })
    : undefined

/** Why the folder must not be touched; undefined if it is ours or may become so. */
export const refusalOf = (output: string): Refused | undefined => {
  if (!existsSync(output)) return undefined
  const file = refusalOfFile(output)
  if (file !== undefined) return file
  const found = statSync(output)
  const entries = new Set(readdirSync(output))
  if (entries.has(markerName) && markerState(output) === "marked") return undefined
  if (isOlder(entries)) return undefined
  const mode = found.mode & 0o7777
  if ((mode & stickyBit) !== 0) return refuse("output-shared", { output, mode: mode.toString(8) })
  const strange = [...entries].filter((name) => !harmless.has(name) && !name.startsWith(markerName))
  if (strange.length === 0) return undefined
  return refuse("output-not-ours", { output, entries: listed(strange.toSorted(), entriesTold) })
}

/**
 * Throws what the machine refuses; returns why the folder must not be touched, or undefined once the marker
 * is written.
 */
export const claimFolder = (files: DurableFiles, output: string, folderMode: number): Refused | undefined => {
  const refusal = refusalOf(output)
  if (refusal !== undefined) return refusal
  if (!existsSync(output)) files.makeFolder(output, folderMode)
  if (markerState(output) === "marked") return undefined
  // Two processes that claim the same folder write the same content, each through its own temporary file.
  const path = join(output, markerName)
  files.replace(path, markerText, 0o600, `${path}.${process.pid}.tmp`)
  return undefined
}

const holdsSomething = (folder: string): boolean => existsSync(folder) && readdirSync(folder).length > 0

/** What a folder without its ledger contains; undefined if nothing is lost. */
export const lostLedger = (output: string): string | undefined => {
  if (existsSync(join(output, "ledger.sqlite"))) return undefined
  const beside = ["landing", "tables", "ledger-archive", "nightjar.duckdb"].filter((name) =>
    name === "nightjar.duckdb" ? existsSync(join(output, name)) : holdsSomething(join(output, name)),
  )
  if (beside.length === 0) return undefined
  return beside.join(", ")
}

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

// What is published, for commands that change it: the folder is held, so that no run and no other command
// works in it at the same time.

/** What is shared with the group stays shared. */
export const shareOf = (output: string) => ((statSync(output).mode & 0o050) === 0o050 ? "group" : "none")

/** `opens` the store with what the work needs of its pseudonyms. */
export const inHeldStore = Effect.fnUntraced(function* <A, E, R, E1, R1>(
  output: string,
  work: (store: Store) => Effect.Effect<A, E, R | Landing | DuckDb | Ledger>,
  opens: (output: string, share: Job["share"]) => Effect.Effect<Store, E1, R1>,
) {
  const wiring = yield* Wiring
  const share = shareOf(output)
  yield* holdOutput(output, [share])
  const services = Layer.mergeAll(
    wiring.landing(output, "read-write"),
    wiring.database,
    wiring.ledger(output, "read-write"),
  )
  const store = yield* opens(output, share)
  return yield* Effect.provide(work(store), services)
}, Effect.scoped)
