/**
 * Whether a folder that somebody named is an output folder of ours, and whether its ledger is where it
 * belongs. Nothing is changed in a folder that is not ours: a folder is ours if it contains the marker, and
 * a marker is only put into an empty folder, or into one that an earlier version used.
 */
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs"
import { join } from "node:path"
import { listed } from "../base/Counted.ts"
import type { DurableFiles } from "../base/DurableFile.ts"
import { refuse } from "./Failures.ts"
import type { Refused } from "./Failures.ts"

export const markerName = ".nightjar"
const markerStart = "nightjar output folder\n"
const markerText = `${markerStart}Nightjar writes everything else in this folder.\n`

/** What a folder may contain and still count as empty: a page about it, and files of the file system. */
const harmless: ReadonlySet<string> = new Set(["README.md", ".gitignore", ".gitkeep", "lost+found"])
/** The sticky bit: everyone who shares such a folder may create files in it. */
const stickyBit = 0o1000
const entriesTold = 3

/** marked: ours. damaged: ours, but the marker was changed. */
export type MarkerState = "marked" | "damaged" | "missing"

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
