/**
 * `report.html`, `worklist.csv` and `log.ndjson` of a run, from the ledger and the published tables. At the
 * end of a run nothing depends on them: if one cannot be written, a warning is all that follows.
 */
import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { Cause, Duration, Effect, Layer } from "effect"
import { durableFiles, modesOf, ownModes, type AppendedFile, type Share } from "../base/DurableFile.ts"
import { machineZone } from "../base/Time.ts"
import { namedOutput, warn } from "./Output.ts"
import { reasonOfCause, refuse } from "./Failures.ts"
import { openedLedger, policyOf } from "./OutputFolder.ts"
import { refuseOlderLedger, runFolder, writeRunFile } from "./OutputFolder.ts"
import type { FilesOfRun } from "./OutputFolder.ts"
import { publishedFacts } from "./PublishedDatabase.ts"
import { Wiring } from "./Wiring.ts"
import type { Fact } from "../ledger/Fact.ts"
import { cleanFact, logLine } from "../ledger/FactRows.ts"
import { Ledger, telling } from "../ledger/Ledger.ts"
import { nightAround } from "../ledger/WholeNight.ts"
import { KnownSecrets } from "../privacy/KnownSecrets.ts"
import { newestFactIn } from "../report/Page.ts"
import { renderReport } from "../report/ReportPage.ts"
import { reportOf } from "../report/Report.ts"
import { worklistCsv } from "../report/Changes.ts"
import type { RunId } from "../service/Ids.ts"

const worklistName = "worklist.csv"
const reportName = "report.html"

export const pageTemplate = Effect.map(Wiring, ({ packageFolder }) =>
  readFileSync(join(packageFolder, "src/report/page.html"), "utf8"),
)

/** Needs a ledger that may be read-only; returns the paths of both files. */
export const writeReport = Effect.fn("RunReport.write")(function* (target: FilesOfRun) {
  const { output, run_id } = target
  const ledger = yield* openedLedger
  const { earlierRuns } = yield* Effect.promise(() => import("../run/Nightly.ts"))
  const facts = yield* ledger.facts(run_id)
  const { before } = yield* earlierRuns(run_id)
  const job = (yield* ledger.runs).find(({ fact }) => fact.run_id === run_id)?.fact.job ?? ""
  // Without the tables, the report says so, and contains everything else.
  const published = yield* Effect.flatMap(policyOf(output), (policy) =>
    publishedFacts(output, { job, run_id, hasPseudonyms: policy !== undefined }),
  ).pipe(Effect.orElseSucceed(() => undefined))
  const state = yield* ledger.state(run_id)
  const night = state === undefined ? {} : { night: yield* nightAround(ledger, state, ledger.state) }
  const report = reportOf({
    ...night,
    facts,
    before,
    published,
    timezone: machineZone(),
    output: namedOutput(output),
  })
  if (report === undefined) return yield* refuse("run-incomplete", { run_id })
  yield* writeRunFile(target, worklistName, worklistCsv(report.worklist))
  yield* writeRunFile(target, reportName, renderReport(yield* pageTemplate, report))
  const folder = runFolder(output, run_id)
  return {
    run_id,
    report: `${folder}/${reportName}`,
    worklist: `${folder}/${worklistName}`,
    worklist_rows: report.worklist.length,
  }
})

/** A run of 10,000 executions takes a second or two. */
const writtenWithin = Duration.minutes(1)

/** Work that a run can do without: what goes wrong with it costs a warning. Returns whether it was done. */
export const orWarnWithin =
  <E1, R1>(
    duration: Duration.Duration,
    itWas: "it was" | "they were",
    warned: (why: string) => Effect.Effect<void, E1, R1>,
  ) =>
  <E, R>(work: Effect.Effect<unknown, E, R>) =>
    Effect.as(work, true).pipe(
      Effect.timeoutOrElse({
        duration,
        orElse: () => Effect.as(warned(`${itWas} not ready within ${Duration.format(duration)}`), false),
      }),
      Effect.catchCause((cause) =>
        Cause.hasInterruptsOnly(cause)
          ? Effect.interrupt
          : warned(reasonOfCause(cause)).pipe(Effect.andThen(Effect.logDebug(cause)), Effect.as(false)),
      ),
    )

const orWarn = ({ output, run_id }: FilesOfRun) =>
  orWarnWithin(writtenWithin, "it was", (why) =>
    warn("report-unwritten", { path: `${runFolder(output, run_id)}/${reportName}`, why }),
  )

/** In the middle of something that must end without it too; needs a ledger. */
export const rewriteReport = (target: FilesOfRun) => orWarn(target)(writeReport(target))

/**
 * A process ended before it had written these files: one is missing, not under its name yet, or older than
 * the `newest` fact. The page is written last, and says which fact that was. One that cannot be read is due.
 */
export const isReportDue = ({ output, run_id }: FilesOfRun, newest: number) =>
  Effect.try(() => {
    const pathOf = (name: string): string => `${runFolder(output, run_id)}/${name}`
    const isWritten = (path: string): boolean => existsSync(path) && !existsSync(`${path}.tmp`)
    if (!isWritten(pathOf(worklistName)) || !isWritten(pathOf(reportName))) return true
    return newestFactIn(readFileSync(pathOf(reportName), "utf8")) < newest
  }).pipe(Effect.orElseSucceed(() => true))

export const reportAfterRun = Effect.fnUntraced(function* (target: FilesOfRun) {
  const wiring = yield* Wiring
  const ledger = wiring.ledger(target.output, "read-only")
  yield* orWarn(target)(Effect.provide(writeReport(target), ledger))
})

// Every fact of the run as a line of its `log.ndjson`, once the ledger has it. The ledger is authoritative:
// if a line cannot be written, only that line is lost. Secrets are removed as in the ledger.

/** The ledger of a run, with which nothing starts if it knows less than the folder. */
export const ledgerInForce = (output: string) =>
  Layer.effect(Ledger, Effect.tap(Ledger, refuseOlderLedger(output)))

/** The ledger that is there, with the log beside it. */
export const NightLog = {
  layer: (output: string, share: Share) =>
    Layer.effect(
      Ledger,
      Effect.gen(function* () {
        const ledger = yield* Ledger
        const known = yield* KnownSecrets
        const files = yield* durableFiles
        const logs = new Map<RunId, AppendedFile>()
        yield* Effect.addFinalizer(() => Effect.sync(() => logs.forEach((log) => log.close())))
        const open = (run_id: RunId): AppendedFile => {
          const known = logs.get(run_id)
          if (known !== undefined) return known
          const folder = runFolder(output, run_id)
          files.makeFolder(folder, modesOf(share).folder)
          // It has keyed hashes of logins, so that analysts may not read it.
          const log = files.append(join(folder, "log.ndjson"), "a", ownModes.file)
          logs.set(run_id, log)
          return log
        }
        const write = (facts: ReadonlyArray<Fact>, at: number): void => {
          for (const [run_id, ofRun] of Map.groupBy(facts, (fact) => ("run_id" in fact ? fact.run_id : ""))) {
            if (run_id === "") continue
            open(run_id).append(ofRun.map((fact) => logLine(cleanFact(fact, known), at)).join(""))
          }
        }
        return telling(ledger, (facts) =>
          Effect.clockWith((clock) =>
            Effect.ignore(
              Effect.try({
                try: () => write(facts, clock.currentTimeMillisUnsafe()),
                catch: () => "no log line",
              }),
            ),
          ),
        )
      }),
    ),
}
