/**
 * What the oracle compares: texts, by seed and aspect, stored as one line with a short hash for each. A text is the same
 * on every machine, at every time and in every folder; what has to be taken out of it for that stands in `environmental`.
 */
import { hostname } from "node:os"
import { basename } from "node:path"
import { fileURLToPath } from "node:url"
import { toolVersion } from "../../src/cli/Failures.ts"
import { sha256Hex } from "../../src/base/Hashes.ts"

/** Texts by aspect, in the order in which they came to be. */
export type Texts = ReadonlyMap<string, string>
/** Hashes by seed and aspect, as in `oracle.txt`. */
export type Hashes = ReadonlyMap<string, string>

export const packageFolder = fileURLToPath(new URL("../../", import.meta.url))

/** All that is not the program's doing, and what stands in its place; `folder` is where the seed wrote its files. */
const environmental = (folder: string | undefined): ReadonlyArray<readonly [string | RegExp, string]> => [
  // As it is, or seen from wherever this process runs.
  ...(folder === undefined ? [] : [[new RegExp(`[^\\s"'=:]*${basename(folder)}`, "g"), "<folder>"] as const]),
  [packageFolder, "<package>/"],
  [process.execPath, "<node>"],
  [hostname(), "<host>"],
  // Releases change no behaviour.
  [toolVersion, "<version>"],
  // What is free on the disk, and for how many nights.
  [/\d+(\.\d+)? GiB (is|are)? ?free[^"\n]*/g, "<space>"],
  // DuckDB's and Parquet files are not the same twice, byte by byte: their rows are compared.
  [/(\.parquet",\s*"rows": \d+,\s*("file_rows": \d+,\s*)?)"bytes": \d+,\s*"sha256": "\w+"/g, "$1<file>"],
  [/("database": ?\{)[^}]*/g, "$1 <file> "],
  // Summaries and reports have paths in them.
  [/("other": \{\s*"files": \d+,\s*"bytes": )\d+/g, "$1<bytes>"],
  // Drawn by chance, so that it says nothing of the customer.
  [/forgotten-[0-9a-f]{32}/g, "forgotten-<random>"],
]

/** Columns are as wide as what stands in them: where a path stood, widths are the machine's. */
const squeezed = (line: string): string =>
  line.includes("<folder>") || line.includes("<package>") || line.includes("<node>")
    ? line.replaceAll(/ {2,}|─{2,}/g, (run) => run.slice(0, 2))
    : line

export const normalised = (text: string, folder?: string): string => {
  const plain = environmental(folder).reduce<string>((rest, [what, by]) => rest.replaceAll(what, by), text)
  return plain === text ? text : plain.split("\n").map(squeezed).join("\n")
}

const plainValue = (value: unknown): unknown => {
  if (value instanceof Map) return plainValue(Object.fromEntries(value))
  if (value instanceof Set) return [...value].map(plainValue).toSorted()
  if (value instanceof Uint8Array) return sha256Hex(value)
  if (typeof value === "bigint") return String(value)
  if (Array.isArray(value)) return value.map(plainValue)
  if (typeof value !== "object" || value === null) return value
  const entries = Object.entries(value).filter(([, one]) => one !== undefined)
  return Object.fromEntries(
    entries.toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([key, one]) => [key, plainValue(one)]),
  )
}

/** The same value, the same line: keys are sorted, sets too. */
export const canonical = (value: unknown): string => JSON.stringify(plainValue(value)) ?? "undefined"
export const lines = (values: Iterable<unknown>): string => [...values].map(canonical).join("\n")

const digits = 10
export const hashOf = (text: string): string => sha256Hex(Buffer.from(text)).slice(0, digits)
export const keyOf = (seed: string, aspect: string): string => `${seed} ${aspect}`

export const stored = (hashes: Hashes): string =>
  [...hashes]
    .map(([key, hash]) => `${hash} ${key}\n`)
    .toSorted((a, b) => (a.slice(digits) < b.slice(digits) ? -1 : 1))
    .join("")

export const parsed = (text: string): Hashes =>
  new Map(
    text
      .split("\n")
      .filter((line) => line !== "")
      .map((line) => [line.slice(digits + 1), line.slice(0, digits)]),
  )

/** What is in only one of both, or differs; in order. `isOurs` says which of the stored ones were tried at all. */
export const differences = (
  before: Hashes,
  after: Hashes,
  isOurs: (key: string) => boolean = () => true,
): ReadonlyArray<string> =>
  [...new Set([...[...before.keys()].filter(isOurs), ...after.keys()])]
    .filter((key) => before.get(key) !== after.get(key))
    .toSorted()
