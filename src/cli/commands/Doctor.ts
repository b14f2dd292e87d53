/**
 * `doctor [JOB…]` checks everything that a run depends on, before the run. It starts nothing at a service and
 * sends no login.
 */
import { accessSync, constants, existsSync, readdirSync, statSync } from "node:fs"
import { join } from "node:path"
import { Clock, Effect, Schema } from "effect"
import { HttpClient } from "effect/http"
import { sizeAt, freeBytesAt } from "../../base/DurableFile.ts"
import { bytesText, counted, sumOf } from "../../base/Text.ts"
import { knownZone } from "../../base/Time.ts"
import { command } from "../CommandRow.ts"
import { failed, ok, toolVersion, warning, type Finding } from "../Failures.ts"
import { loadJobs } from "../Jobs.ts"
import { alarmsCheck } from "../Notices.ts"
import { severalArguments, switchFlag } from "../Output.ts"
import { lostLedger, openedLedger, problemsOf, refusalOf } from "../OutputFolder.ts"
import { withPublished } from "../PublishedDatabase.ts"
import { Wiring, type Through } from "../Wiring.ts"
import type { Job } from "../../jobs/Job.ts"
import type { Secrets } from "../../jobs/Secrets.ts"
import type { RunHeader } from "../../ledger/FoldRun.ts"
import { archiveName } from "../../ledger/LedgerArchive.ts"
import { withId } from "../../messages/Catalogue.ts"
import { exitCodes } from "../../messages/ExitCodes.ts"
import { otherRecordsOf } from "../../records/Misfits.ts"
import { otherRecordsTold } from "../../report/Summary.ts"
import { table } from "../../report/TextTable.ts"
import { isStuck, runsAhead } from "../../task/ChooseRun.ts"
import { endsSoon } from "../../tokens/TokenLogin.ts"

/** With less than this, even a small run may not fit. */
const freeBytesMin = 1024 ** 3
/** The nights that the growth is measured from, and those that have to fit. */
const nightsMeasured = 7
const nightsMin = 14

/** Of a folder that holds files only, one level deep or two; it may be missing. */
const folderBytes = (folder: string): number =>
  existsSync(folder)
    ? sumOf(
        readdirSync(folder, { recursive: true, encoding: "utf8" }).map((name) => sizeAt(join(folder, name))),
      )
    : 0

/**
 * A night lands its bodies, publishes about as much, and builds the new database beside the old one. Runs
 * that landed nothing say nothing.
 */
export const nightsThatFit = (measured: {
  readonly freeBytes: number
  readonly databaseBytes: number
  readonly landed: ReadonlyArray<number>
}): number | undefined => {
  const nights = measured.landed.filter((bytes) => bytes > 0)
  if (nights.length === 0) return undefined
  const perNight = (2 * sumOf(nights)) / nights.length
  return Math.max(0, Math.floor((measured.freeBytes - measured.databaseBytes) / perNight))
}

const spaceCheck = (output: string, runs: ReadonlyArray<RunHeader>): Finding => {
  const freeBytes = freeBytesAt(output)
  const space = `${(freeBytes / 1024 ** 3).toFixed(1)} GiB`
  if (freeBytes < freeBytesMin) return warning("space-low", { space })
  const nights = nightsThatFit({
    freeBytes,
    databaseBytes: sizeAt(join(output, "nightjar.duckdb")),
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

const modeText = (mode: number): string => (mode & 0o777).toString(8).padStart(4, "0")

/** Who may read what is never shared, whatever the job shares. */
const modesCheck = (output: string): Finding => {
  const open = privateFiles.flatMap((name) => {
    const mode = statSync(join(output, name), { throwIfNoEntry: false })?.mode ?? 0
    return (mode & 0o077) === 0 ? [] : [`${name} (${modeText(mode)})`]
  })
  return open.length === 0
    ? ok("only their owner can read them")
    : failed("files-open-to-others", { output, names: open.join(", ") })
}

const ledgerCheck = (output: string, runs: number, archived: number): Finding => {
  const all = `${counted(runs, "run")}, ${bytesText(sizeAt(join(output, "ledger.sqlite")))}`
  if (archived === 0) return ok(all)
  const bytes = folderBytes(join(output, archiveName))
  return ok(`${all}; ${archived} of them archived, ${bytesText(bytes)}`)
}

/** Of runs that keep executions: what is older than a month is no longer read again. */
const runsMax = 100

export const leftoversCheck = (runs: ReadonlyArray<RunHeader>): Finding => {
  const open = runs.filter(({ ended }) => ended === undefined || ended.leftovers)
  const stuck = open.filter(isStuck)
  for (const [id, left] of [["runs-stuck", stuck] as const, ["runs-left-open", open] as const]) {
    const [oldest] = left
    if (oldest !== undefined)
      return warning(id, { runs: counted(left.length, "run"), oldest: oldest.fact.run_id })
  }
  const keeping = runs.slice(-runsMax).filter(({ ended }) => (ended?.kept ?? 0) > 0)
  const last = keeping.at(-1)
  if (last === undefined) return ok("nothing")
  const kept = sumOf(keeping.map(({ ended }) => ended?.kept ?? 0))
  return warning("runs-keep-executions", {
    executions: counted(kept, "execution"),
    newest: last.fact.run_id,
  })
}

/** No line if all began before now. */
export const runTimesCheck = (runs: ReadonlyArray<RunHeader>, now: number) => {
  const ahead = runsAhead(runs, now)
  const latest = ahead.at(-1)
  if (latest === undefined) return undefined
  return warning("runs-ahead", { runs: counted(ahead.length, "run"), latest: latest.fact.run_id })
}

/** Of the newest run that is published; the tables say what is so now, also after `rebuild`. */
const otherSql = `
  SELECT product, sub_family, count(*)::INTEGER AS records FROM nights.other_records
  WHERE run_id = (SELECT run_id FROM ops.runs ORDER BY started_at DESC, run_id DESC LIMIT 1) GROUP BY ALL`
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

/** A date has whole seconds, and an answer takes a few. */
const clockSecondsMax = 30

const clockCheck = (ahead: number | undefined): Finding => {
  if (ahead === undefined) return ok("the service does not tell the time")
  const seconds = Math.abs(ahead)
  if (seconds <= clockSecondsMax) return ok("agrees with the service's")
  return warning("clock-differs", {
    seconds: counted(seconds, "second"),
    way: ahead > 0 ? "ahead of" : "behind",
  })
}

const subscriptionsCheck = Effect.fnUntraced(function* (job: Job) {
  if (job.service._tag === "Embedded") return undefined
  const wiring = yield* Wiring
  const { Subscriptions } = yield* Effect.promise(() => import("../../client/Subscriptions.ts"))
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

/** Asked once: whether it answers, and by how many seconds our clock is ahead of another machine's. */
const askService = Effect.fnUntraced(function* (job: Job) {
  const wiring = yield* Wiring
  const { Service } = yield* Effect.promise(() => import("../../client/Service.ts"))
  const where = job.service._tag === "Remote" ? new URL(job.service.base_url).host : "the embedded service"
  let ahead: number | undefined
  const through: Through = HttpClient.tap((response) =>
    Effect.map(Clock.currentTimeMillis, (now) => {
      const at = Date.parse(response.headers["date"] ?? "")
      if (Number.isFinite(at)) ahead = Math.round((now - at) / 1_000)
    }),
  )
  const answer = yield* Effect.flatMap(Service, (service) => service.listEngines).pipe(
    Effect.provide(wiring.service(job.service, through)),
    Effect.match({
      onSuccess: () => ok(`${where} answers and takes the application secret`),
      onFailure: ({ message }) => failed("service-unusable", { detail: message }),
    }),
  )
  return { answer, isElsewhere: answer.verdict === "ok" && job.service._tag === "Remote", ahead }
})

/** By its name, how each check looks. No line without a finding; what mends one is in its message. */
type Checks<Subject, R> = Readonly<
  Record<string, (subject: Subject) => Finding | undefined | Effect.Effect<Finding | undefined, never, R>>
>

const lookAt = Effect.fnUntraced(function* <Subject, R>(
  checks: Checks<Subject, R>,
  subject: Subject,
  of = "",
) {
  const lines: Array<Finding & { readonly what: string }> = []
  for (const [what, look] of Object.entries(checks)) {
    const looked = look(subject)
    const finding = Effect.isEffect(looked) ? yield* looked : looked
    if (finding !== undefined) lines.push({ what: `${of}${what}`, ...finding })
  }
  return lines
})

const zoneFinding = (): Finding => {
  const zone = knownZone()
  return zone === undefined ? warning("zone-unknown") : ok(`${zone}; a job's \`timezone\` overrides it`)
}

const folderFinding = (output: string): Finding => {
  if (!existsSync(output)) return ok(`${output} does not exist yet; the first run creates it`)
  try {
    accessSync(output, constants.R_OK | constants.W_OK | constants.X_OK)
  } catch {
    return failed("output-closed", { output })
  }
  const refusal = refusalOf(output)
  if (refusal !== undefined) return failed("output-foreign", { detail: refusal.message })
  const mode = statSync(output).mode & 0o777
  return (mode & 0o007) === 0
    ? ok(`${output}, mode ${modeText(mode)}`)
    : warning("output-open-to-others", { output, mode: modeText(mode) })
}

/** An output folder and its ledger, read once for all checks. */
const folderOf = Effect.fnUntraced(function* (output: string) {
  const now = yield* Clock.currentTimeMillis
  const folder = { output, now, exists: existsSync(output), finding: folderFinding(output) }
  const without = (ledger: Finding, hasLedger = false) => ({ ...folder, ledger, hasLedger, runs: undefined })
  const lost = lostLedger(output)
  if (lost !== undefined) return without(failed("ledger-absent", { output, found: lost }))
  if (!existsSync(`${output}/ledger.sqlite`)) return without(ok("none yet"))
  const wiring = yield* Wiring
  return yield* Effect.flatMap(openedLedger, (ledger) => Effect.all([ledger.runs, ledger.archived])).pipe(
    Effect.provide(wiring.ledger(output, "read-only")),
    Effect.match({
      onSuccess: ([runs, { size }]) => {
        const ledger = ledgerCheck(output, runs.length, size)
        return { ...folder, ledger, hasLedger: true, runs }
      },
      onFailure: ({ message }) => without(failed("ledger-unreadable", { detail: message }), true),
    }),
  )
})
type Folder = Effect.Success<ReturnType<typeof folderOf>>

const contentFinding = (output: string) =>
  problemsOf(output).pipe(
    Effect.match({
      onSuccess: (problems) => {
        const [first] = problems
        if (first === undefined) return ok("they agree with the ledger")
        const { id, where, problem } = first
        if (id === "publication-interrupted" && problems.length === 1) return warning(id)
        const more = problems.length > 1 ? ` (and ${problems.length - 1} more)` : ""
        return failed("folder-disagrees", { where, problem, more })
      },
      onFailure: ({ message }) => failed("folder-unchecked", { output, why: message }),
    }),
  )

const folderChecks: Checks<Folder, Effect.Services<ReturnType<typeof contentFinding>>> = {
  nightjar: () => ok(toolVersion),
  node: () => ok(process.version),
  "time zone": zoneFinding,
  "output folder": ({ finding }) => finding,
  "private files": ({ output, exists, finding }) =>
    exists && finding.verdict !== "failed" ? modesCheck(output) : undefined,
  "free space": ({ output, exists, runs }) => (exists ? spaceCheck(output, runs ?? []) : undefined),
  ledger: ({ ledger }) => ledger,
  "times of runs": ({ runs, now }) => runs && runTimesCheck(runs, now),
  "left at the service": ({ runs }) => runs && leftoversCheck(runs),
  "files and tables": ({ output, hasLedger }) => (hasLedger ? contentFinding(output) : undefined),
  "record schemas": ({ output, hasLedger }) => (hasLedger ? schemasCheck(output) : undefined),
}

interface OfJob {
  readonly job: Job
  readonly output: string
  readonly service: Effect.Success<ReturnType<typeof askService>>
}

const told = 5
/** A fault of the service alone ends with an exit code of its own. */
const serviceName = "service"

const secretsCheck = Effect.fnUntraced(function* (job: Job) {
  const { Secrets } = yield* Effect.promise(() => import("../../jobs/Secrets.ts"))
  const { referencesOf } = yield* Effect.promise(() => import("../../jobs/EnvFile.ts"))
  const { resolve } = yield* Secrets
  // Those of `notify` and `telemetry` have a line of their own.
  const { telemetry: _, ...ofNight } = { ...job, notify: [] }
  const distinct = new Map(referencesOf(ofNight).map((reference) => [JSON.stringify(reference), reference]))
  const [, missing] = yield* Effect.partition(distinct.values(), resolve, { concurrency: 8 })
  const from = job.env_file === undefined ? "" : `, also from ${job.env_file}`
  if (missing.length === 0) return ok(`${counted(distinct.size, "reference")} resolved${from}`)
  const more = missing.length > told ? `; and ${missing.length - told} more` : ""
  const said = missing.slice(0, told).map(({ message }) => message)
  return failed("secrets-unavailable", { detail: `${said.join("; ")}${more}` })
})

const tokensCheck = Effect.fnUntraced(function* ({ job, output }: OfJob) {
  if (job.tokens_key === undefined) return undefined
  const wiring = yield* Wiring
  const { TokenStore } = yield* Effect.promise(() => import("../../tokens/TokenStore.ts"))
  const look = Effect.gen(function* () {
    const store = yield* TokenStore
    if (store._tag === "Closed") return undefined
    const now = yield* Clock.currentTimeMillis
    const kept = (yield* store.tokens).filter(
      ({ service, dropped }) => service === store.service && dropped === undefined,
    )
    const ending = kept.filter((token) => endsSoon(token, now)).length
    const tokens = counted(kept.length, "token")
    return ending === 0
      ? ok(`the key opens it; ${tokens} of this service`)
      : warning("tokens-ending", { tokens, ending })
  })
  return yield* look.pipe(
    Effect.provide(wiring.tokenStore(job, output)),
    Effect.catch((error) => {
      const unusable = error._tag === "LedgerFailed" ? "token-store-unusable" : "store-closed"
      const id = "damaged" in error && error.damaged === true ? "token-store-damaged" : unusable
      return Effect.succeed(failed(id, { detail: error.message }))
    }),
  )
})

const jobChecks: Checks<OfJob, Secrets | Wiring> = {
  secrets: ({ job }) => secretsCheck(job),
  alarms: ({ job }) => alarmsCheck(job),
  "token store": tokensCheck,
  [serviceName]: ({ service }) => service.answer,
  clock: ({ service }) => (service.isElsewhere ? clockCheck(service.ahead) : undefined),
  "flow events": ({ job, service }) => (service.isElsewhere ? subscriptionsCheck(job) : undefined),
}

const canaryLine = Effect.flatMap(
  Effect.promise(() => import("../CanaryNight.ts")),
  ({ canaryCheck }) => canaryCheck,
)

export const doctor = command("doctor", {
  more: `
    --canary also runs a test night on the embedded service, in a temporary folder, and searches all that it
    wrote and showed for its secrets.`,
  flags: {
    jobs: severalArguments("JOB", "Job files whose secrets and services to check"),
    canary: switchFlag("canary", "Also prove that no secret leaks"),
  },
  run: function* ({ jobs, canary }, output) {
    const wiring = yield* Wiring
    const loaded = jobs.length === 0 ? [] : yield* loadJobs(jobs)
    const ofJobs = yield* Effect.forEach(loaded, (job) =>
      Effect.flatMap(askService(job), (service) =>
        lookAt(jobChecks, { job, output, service }, `${job.path}: `),
      ),
    ).pipe(Effect.provide(wiring.secrets))
    return [
      ...(yield* lookAt(folderChecks, yield* folderOf(output))),
      ...ofJobs.flat(),
      ...(canary ? [{ what: "canary", ...(yield* canaryLine) }] : []),
    ]
  },
  text: (checks, out) => {
    const rows = checks.map(({ verdict, what, says, id }) => [
      verdict,
      what,
      id === undefined ? says : withId(id, says),
    ])
    return table(["", "what", "finding"], rows, out)
  },
  exit: (checks) => {
    const faults = checks.filter(({ verdict }) => verdict === "failed")
    if (faults.length === 0) return exitCodes.ok
    const isService = faults.every(({ what }) => what.endsWith(`: ${serviceName}`))
    return isService ? exitCodes.refused : exitCodes.usage
  },
})
