/**
 * Whose a folder is that somebody named as the output folder, and whether its ledger is where it belongs.
 * Nothing is changed in a folder that is not ours: it is ours once the marker stands in it, and a marker is
 * only put into an empty folder, or into one that an earlier version worked in.
 */
import { closeSync, existsSync, fsyncSync, openSync, readdirSync, readFileSync } from "node:fs"
import { mkdirSync, renameSync, statSync, writeSync } from "node:fs"
import { dirname, join } from "node:path"
import { refuse } from "./Failures.ts"
import type { Refused } from "./Failures.ts"

export const markerName = ".nightjar"
const markerStart = "nightjar output folder\n"
const markerText = `${markerStart}Everything beside this file is written by nightjar.\n`

/** What may stand in a folder that counts as empty: a page about it, and what file systems put there. */
const harmless: ReadonlySet<string> = new Set(["README.md", ".gitignore", ".gitkeep", "lost+found"])
/** The sticky bit: whoever shares such a folder may make files in it. */
const stickyBit = 0o1000
const entriesTold = 3

/** marked: ours. damaged: ours, but the marker is not what was written. */
export type MarkerState = "marked" | "damaged" | "missing"

export const markerState = (output: string): MarkerState => {
  const path = join(output, markerName)
  if (!existsSync(path)) return "missing"
  return readFileSync(path, "utf8") === markerText ? "marked" : "damaged"
}

/** An output folder of a version that knew no marker. */
const isOlder = (entries: ReadonlySet<string>): boolean => entries.has("ledger.sqlite") && entries.has("runs")

/** Why the folder must be left alone; undefined where it is ours or may become so. */
export const refusalOf = (output: string): Refused | undefined => {
  if (!existsSync(output)) return undefined
  const found = statSync(output)
  if (!found.isDirectory()) return refuse("output-not-a-folder", { output })
  const entries = new Set(readdirSync(output))
  if (entries.has(markerName) && markerState(output) === "marked") return undefined
  if (isOlder(entries)) return undefined
  const mode = found.mode & 0o7777
  if ((mode & stickyBit) !== 0) return refuse("output-shared", { output, mode: mode.toString(8) })
  const strange = [...entries].filter((name) => !harmless.has(name) && !name.startsWith(markerName))
  if (strange.length === 0) return undefined
  const more = strange.length > entriesTold ? ` and ${strange.length - entriesTold} more` : ""
  const told = strange.toSorted().slice(0, entriesTold).join(", ")
  return refuse("output-not-ours", { output, entries: `${told}${more}` })
}

/**
 * Throws what the machine refuses; answers why the folder is left alone, or undefined once the marker stands.
 */
export const claimFolder = (output: string, folderMode: number): Refused | undefined => {
  const refusal = refusalOf(output)
  if (refusal !== undefined) return refusal
  makeMissing(output, folderMode)
  if (markerState(output) !== "marked") writeMarker(output)
  return undefined
}

/** Whole or not at all; two processes that claim the same folder write the same. */
const writeMarker = (output: string): void => {
  const building = join(output, `${markerName}.${process.pid}.tmp`)
  const descriptor = openSync(building, "w", 0o600)
  try {
    writeSync(descriptor, markerText)
    fsyncSync(descriptor)
  } finally {
    closeSync(descriptor)
  }
  renameSync(building, join(output, markerName))
}

/**
 * Step by step: Node's own `recursive` never returns where the file system says that the parent is missing.
 */
export const makeMissing = (path: string, mode: number): void => {
  if (existsSync(path)) return
  if (dirname(path) !== path) makeMissing(dirname(path), mode)
  try {
    mkdirSync(path, { mode })
  } catch (cause) {
    // Another process may make the same folder at the same moment.
    if (codeOf(cause) !== "EEXIST") throw cause
  }
}

export const codeOf = (cause: unknown): string =>
  cause instanceof Error && "code" in cause ? String(cause.code) : ""

const holdsSomething = (folder: string): boolean => existsSync(folder) && readdirSync(folder).length > 0

/** What stands in a folder whose ledger is missing; undefined where nothing is lost. */
export const lostLedger = (output: string): string | undefined => {
  if (existsSync(join(output, "ledger.sqlite"))) return undefined
  const beside = ["landing", "tables", "nightjar.duckdb"].filter((name) =>
    name === "nightjar.duckdb" ? existsSync(join(output, name)) : holdsSomething(join(output, name)),
  )
  if (beside.length === 0) return undefined
  return beside.join(", ")
}
