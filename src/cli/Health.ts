/**
 * What `doctor` finds out about an output folder beside its contents and about the service: whether its
 * disk holds the next nights, who can read its private files, which runs have left something at the
 * service, and whether that answers. Bounded by the newest runs, however many there are.
 */
import { readdirSync, statSync, statfsSync } from "node:fs"
import { join } from "node:path"
import { Clock, Effect, Schema } from "effect"
import { HttpClient } from "effect/http"
import { bytesText, counted } from "../base/Text.ts"
import type { Job } from "../jobs/Job.ts"
import { withPublished } from "./PublishedDatabase.ts"
import { Wiring } from "./Wiring.ts"
import type { Through } from "./Wiring.ts"
import type { RunHeader } from "../ledger/FoldRun.ts"
import { archiveName } from "../ledger/LedgerArchive.ts"
import { happened } from "../messages/Catalogue.ts"
import type { MessageId, ValuesOf } from "../messages/Catalogue.ts"
import { otherRecordsOf } from "../records/Misfits.ts"
import { otherRecordsTold } from "../report/Summary.ts"

/** What a check found. Whatever is not in order has a message of the catalogue, which says what mends it. */
export interface Finding {
  readonly verdict: "ok" | "warning" | "failed"
  readonly says: string
  /** Only for what is not ok. */
  readonly id?: MessageId
}

export const ok = (says: string): Finding => ({ verdict: "ok", says })

const found =
  (verdict: "warning" | "failed") =>
  <Id extends MessageId>(id: Id, ...values: ValuesOf<Id>): Finding => ({
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

export const spaceCheck = (output: string, runs: ReadonlyArray<RunHeader>): Finding => {
  const { bavail, bsize } = statfsSync(output)
  const freeBytes = bavail * bsize
  const space = gibibytes(freeBytes)
  if (freeBytes < freeBytesMin) return warning("space-low", { space })
  const nights = nightsThatFit({
    freeBytes,
    databaseBytes: sizeOf(join(output, "nightjar.duckdb")),
    landed: runs.slice(-nightsMeasured).map(({ fact }) => folderBytes(join(output, "landing", fact.run_id))),
  })
  if (nights === undefined) return ok(`${space} free`)
  return nights < nightsMin
    ? warning("space-for-nights", { space, nights: counted(nights, "night") })
    : ok(`${space} free, enough for ${nights > 1_000 ? "more than 1000 nights" : `${nights} nights`}`)
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
export const modesCheck = (output: string): Finding => {
  const open = privateFiles.flatMap((name) => {
    const mode = statSync(join(output, name), { throwIfNoEntry: false })?.mode
    if (mode === undefined || (mode & 0o077) === 0) return []
    return [`${name} (${(mode & 0o777).toString(8).padStart(4, "0")})`]
  })
  return open.length === 0
    ? ok("only their owner can read them")
    : failed("files-open-to-others", { output, names: open.join(", ") })
}

/** How many runs the ledger knows, and what it takes of the disk. */
export const ledgerCheck = (output: string, runs: number, archived: number): Finding => {
  const all = `${counted(runs, "run")}, ${bytesText(sizeOf(join(output, "ledger.sqlite")))}`
  if (archived === 0) return ok(all)
  const bytes = folderBytes(join(output, archiveName))
  return ok(`${all}; ${archived} of them archived, ${bytesText(bytes)}`)
}

/** The newest runs only: what is older than a month is no longer read again. */
const runsMax = 100

export const leftoversCheck = (runs: ReadonlyArray<RunHeader>): Finding => {
  const newest = runs.slice(-runsMax)
  const open = newest.filter(({ ended }) => ended === undefined || ended.leftovers)
  const [oldest] = open
  if (oldest !== undefined)
    return warning("runs-left-open", { runs: counted(open.length, "run"), oldest: oldest.fact.run_id })
  const kept = newest.reduce((sum, { ended }) => sum + (ended?.kept ?? 0), 0)
  return ok(kept === 0 ? "nothing" : `${counted(kept, "execution")} kept on purpose`)
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
    Effect.map((found) => {
      if (found === undefined) return undefined
      return found.length === 0
        ? ok("every record of the newest run has one")
        : warning("records-without-schema", otherRecordsTold(otherRecordsOf(found)))
    }),
    Effect.orElseSucceed(() => undefined),
  )

// What `doctor` asks a job's service: whether it takes the secret, whether its clock agrees with this
// machine's, and whether the flow events that somebody subscribed are switched on. Reads only, no login.

/** A date has whole seconds, and an answer takes a few. */
const clockSecondsMax = 30

/** Remembers by how many seconds this machine's clock is ahead of the service's. */
const makeClockReader = () => {
  let ahead: number | undefined
  const through: Through = HttpClient.tap((response) =>
    Effect.map(Clock.currentTimeMillis, (now) => {
      const at = Date.parse(response.headers["date"] ?? "")
      if (Number.isFinite(at)) ahead = Math.round((now - at) / 1_000)
    }),
  )
  return { through, ahead: () => ahead }
}

export const clockCheck = (ahead: number | undefined): Finding => {
  if (ahead === undefined) return ok("the service does not tell the time")
  const seconds = Math.abs(ahead)
  if (seconds <= clockSecondsMax) return ok("agrees with the service's")
  return warning("clock-differs", {
    seconds: counted(seconds, "second"),
    way: ahead > 0 ? "ahead of" : "behind",
  })
}

export const subscriptionsCheck = Effect.fnUntraced(function* (job: Job) {
  if (job.service._tag === "Embedded") return undefined
  const wiring = yield* Wiring
  const { Subscriptions } = yield* Effect.promise(() => import("../client/Subscriptions.ts"))
  return yield* Effect.flatMap(Subscriptions, ({ list }) => list).pipe(
    Effect.provide(wiring.subscriptions(job.service)),
    Effect.match({
      onSuccess: (all) => {
        const off = all.filter(({ enabled }) => !enabled).map(({ event }) => event)
        return off.length === 0
          ? ok(all.length === 0 ? "none is subscribed" : `${all.length} subscribed`)
          : warning("hooks-disabled", { events: off.join(", ") })
      },
      // The reference marks the listing as deprecated: a run needs it as little as the events themselves.
      onFailure: () => ok("the service does not list subscriptions"),
    }),
  )
})

/** Asked once: whether it answers, and, if it is another machine, how far its clock is behind ours. */
export const askService = Effect.fnUntraced(function* (job: Job, output: string) {
  const wiring = yield* Wiring
  const { Service } = yield* Effect.promise(() => import("../client/Service.ts"))
  const where = job.service._tag === "Remote" ? new URL(job.service.base_url).host : "the embedded service"
  const clock = makeClockReader()
  const answer = yield* Effect.flatMap(Service, (service) => service.listEngines).pipe(
    Effect.provide(wiring.plan(job.service, output, clock.through)),
    Effect.match({
      onSuccess: () => ok(`${where} answers and takes the application secret`),
      onFailure: ({ message }) => failed("service-unusable", { detail: message }),
    }),
  )
  return {
    answer,
    isElsewhere: answer.verdict === "ok" && job.service._tag === "Remote",
    ahead: clock.ahead(),
  }
})
