/**
 * What `doctor` finds out about an output folder beside its contents and about the service: whether its
 * disk holds the next nights, who can read its private files, which runs have left something at the
 * service, and whether that answers. Bounded by the newest runs, however many there are.
 */
import { readdirSync, statSync, statfsSync } from "node:fs"
import { join } from "node:path"
import { Effect, Schema } from "effect"
import { bytesText, counted } from "../base/Text.ts"
import { withPublished } from "./PublishedDatabase.ts"
import type { RunHeader } from "../ledger/FoldRun.ts"
import { archiveName } from "../ledger/LedgerArchive.ts"
import { happened } from "../messages/Catalogue.ts"
import type { MessageId, ValuesOf } from "../messages/Catalogue.ts"
import { otherRecordsOf } from "../records/Misfits.ts"
import { otherRecordsTold } from "../report/Summary.ts"

// One line of `nightjar doctor`: what was checked and what was found. Whatever is not in order has a message
// of the catalogue, which says what to do about it.

export interface Check {
  readonly what: string
  readonly verdict: "ok" | "warning" | "failed"
  readonly says: string
  /** Only for lines that are not ok. */
  readonly id?: MessageId
}

export const ok = (what: string, says: string): Check => ({ what, verdict: "ok", says })

const found =
  (verdict: "warning" | "failed") =>
  <Id extends MessageId>(what: string, id: Id, ...values: ValuesOf<Id>): Check => ({
    what,
    verdict,
    says: happened(id, ...values),
    id,
  })
export const warning = found("warning")
export const failed = found("failed")

/** With less than this, even a small run may not fit. */
const freeBytesMin = 1024 ** 3
/** The nights that the growth is measured from, and those that have to fit. */
const nightsMeasured = 7
const nightsMin = 14

const sizeOf = (path: string): number => statSync(path, { throwIfNoEntry: false })?.size ?? 0

/** Of a folder that holds files only, one level deep or two; it may be missing. */
const folderBytes = (folder: string): number =>
  statSync(folder, { throwIfNoEntry: false }) === undefined
    ? 0
    : readdirSync(folder, { recursive: true, encoding: "utf8" })
        .map((name) => sizeOf(join(folder, name)))
        .reduce((sum, size) => sum + size, 0)

const gibibytes = (bytes: number): string => `${(bytes / 1024 ** 3).toFixed(1)} GiB`

/**
 * A night lands its bodies, publishes about as much again, and builds the new database beside the old one.
 * Runs that landed nothing say nothing about the next one.
 */
export const nightsThatFit = (measured: {
  readonly freeBytes: number
  readonly databaseBytes: number
  readonly landed: ReadonlyArray<number>
}): number | undefined => {
  const nights = measured.landed.filter((bytes) => bytes > 0)
  if (nights.length === 0) return undefined
  const perNight = (2 * nights.reduce((sum, bytes) => sum + bytes, 0)) / nights.length
  return Math.max(0, Math.floor((measured.freeBytes - measured.databaseBytes) / perNight))
}

export const spaceCheck = (output: string, runs: ReadonlyArray<RunHeader>): Check => {
  const what = "free space"
  const { bavail, bsize } = statfsSync(output)
  const freeBytes = bavail * bsize
  const space = gibibytes(freeBytes)
  if (freeBytes < freeBytesMin) return warning(what, "space-low", { space })
  const nights = nightsThatFit({
    freeBytes,
    databaseBytes: sizeOf(join(output, "nightjar.duckdb")),
    landed: runs.slice(-nightsMeasured).map(({ fact }) => folderBytes(join(output, "landing", fact.run_id))),
  })
  if (nights === undefined) return ok(what, `${space} free`)
  return nights < nightsMin
    ? warning(what, "space-for-nights", { space, nights: counted(nights, "night") })
    : ok(what, `${space} free, enough for ${nights > 1_000 ? "more than 1000 nights" : `${nights} nights`}`)
}

const privateFiles = [
  "ledger.sqlite",
  "ledger-archive",
  "tokens.sqlite",
  "landing",
  "attachments",
  "documents",
]

/** Who may read what is never shared, whatever the job shares. */
export const modesCheck = (output: string): Check => {
  const what = "private files"
  const open = privateFiles.flatMap((name) => {
    const mode = statSync(join(output, name), { throwIfNoEntry: false })?.mode
    if (mode === undefined || (mode & 0o077) === 0) return []
    return [`${name} (${(mode & 0o777).toString(8).padStart(4, "0")})`]
  })
  return open.length === 0
    ? ok(what, "only their owner can read them")
    : failed(what, "files-open-to-others", { output, names: open.join(", ") })
}

/** How many runs the ledger knows, and what it takes of the disk. */
export const ledgerCheck = (output: string, runs: number, archived: number): Check => {
  const all = `${counted(runs, "run")}, ${bytesText(sizeOf(join(output, "ledger.sqlite")))}`
  if (archived === 0) return ok("ledger", all)
  const bytes = folderBytes(join(output, archiveName))
  return ok("ledger", `${all}; ${archived} of them archived, ${bytesText(bytes)}`)
}

/** The newest runs only: what is older than a month is no longer read again. */
const runsMax = 100

export const leftoversCheck = (runs: ReadonlyArray<RunHeader>): Check => {
  const what = "left at the service"
  const newest = runs.slice(-runsMax)
  const open = newest.filter(({ ended }) => ended === undefined || ended.leftovers)
  const [oldest] = open
  if (oldest !== undefined)
    return warning(what, "runs-left-open", { runs: counted(open.length, "run"), oldest: oldest.fact.run_id })
  const kept = newest.reduce((sum, { ended }) => sum + (ended?.kept ?? 0), 0)
  return ok(what, kept === 0 ? "nothing" : `${counted(kept, "execution")} kept on purpose`)
}

/** Of the newest run that is published; the tables say what is so now, also after `rebuild`. */
const otherSql = `
  SELECT product, sub_family, count(*)::INTEGER AS records FROM other_records
  WHERE run_id = (SELECT run_id FROM runs ORDER BY started_at DESC, run_id DESC LIMIT 1) GROUP BY ALL`
const OtherRows = Schema.Array(
  Schema.Struct({ product: Schema.String, sub_family: Schema.String, records: Schema.Int }),
)

/** No line if nothing is published, or the tables cannot be read, which another line says. */
export const schemasCheck = (output: string) =>
  withPublished(output, ({ rows }) =>
    Effect.flatMap(rows(otherSql), Schema.decodeUnknownEffect(OtherRows)),
  ).pipe(
    Effect.map((found): ReadonlyArray<Check> => {
      const what = "record schemas"
      if (found === undefined) return []
      return found.length === 0
        ? [ok(what, "every record of the newest run has one")]
        : [warning(what, "records-without-schema", otherRecordsTold(otherRecordsOf(found)))]
    }),
    Effect.orElseSucceed((): ReadonlyArray<Check> => []),
  )
