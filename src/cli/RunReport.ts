/**
 * `runs/<run_id>/report.html` and `worklist.csv`: made from the ledger and the published tables, by `report`
 * on request and at the end of each run. At that end nothing depends on it any more: if it cannot be written,
 * a warning is all that follows.
 */
import { existsSync, readFileSync } from "node:fs"
import { Cause, Duration, Effect } from "effect"
import type { RunId } from "../service/Ids.ts"
import type { Job } from "../jobs/Job.ts"
import { nightAround } from "../ledger/WholeNight.ts"
import { newestFactIn, renderReport } from "../report/RenderReport.ts"
import { reportOf } from "../report/Report.ts"
import { machineZone } from "../base/MachineZone.ts"
import { worklistCsv } from "../report/Worklist.ts"
import { reasonOfCause, refuse } from "./Failures.ts"
import { namedOutput } from "./CommonFlags.ts"
import { openedLedger } from "./LedgerOf.ts"
import { warn } from "./Output.ts"
import { publishedFacts } from "./PublishedFacts.ts"
import { runFolder, writeRunFile } from "./RunFolder.ts"
import { Wiring } from "./Wiring.ts"

const worklistName = "worklist.csv"
const reportName = "report.html"

export interface ReportTarget {
  readonly output: string
  readonly run_id: RunId
  readonly share: Job["share"]
}

export interface WrittenReport {
  readonly run_id: RunId
  readonly report: string
  readonly worklist: string
  readonly worklist_rows: number
}

/** Needs a ledger that may be read-only; returns the paths of both files. */
export const writeReport = Effect.fn("RunReport.write")(function* (target: ReportTarget) {
  const { output, run_id } = target
  const ledger = yield* openedLedger
  const { earlierRuns } = yield* Effect.promise(() => import("../run/EarlierRuns.ts"))
  const facts = yield* ledger.facts(run_id)
  const { before } = yield* earlierRuns(run_id)
  const job = (yield* ledger.runs).find(({ fact }) => fact.run_id === run_id)?.fact.job ?? ""
  // Without the tables, the report says so, and contains everything else.
  const published = yield* publishedFacts(output, { job, run_id }).pipe(Effect.orElseSucceed(() => undefined))
  const state = yield* ledger.state(run_id)
  const night = state === undefined ? {} : { night: yield* nightAround(ledger, state) }
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
  yield* writeRunFile(target, reportName, renderReport(report))
  const folder = runFolder(output, run_id)
  const written: WrittenReport = {
    run_id,
    report: `${folder}/${reportName}`,
    worklist: `${folder}/${worklistName}`,
    worklist_rows: report.worklist.length,
  }
  return written
})

/** A run of 10,000 executions takes a second or two. */
const writtenWithin = Duration.minutes(1)

/** Whatever goes wrong costs a warning; returns whether it was written. */
const orWarn =
  ({ output, run_id }: ReportTarget) =>
  <E, R>(writing: Effect.Effect<WrittenReport, E, R>) => {
    const path = `${runFolder(output, run_id)}/${reportName}`
    const unwritten = (why: string) => Effect.as(warn("report-unwritten", { path, why }), false)
    return Effect.as(writing, true).pipe(
      Effect.timeoutOrElse({
        duration: writtenWithin,
        orElse: () => unwritten(`it was not ready within ${Duration.format(writtenWithin)}`),
      }),
      Effect.catchCause((cause) =>
        Cause.hasInterruptsOnly(cause)
          ? Effect.interrupt
          : Effect.tap(unwritten(reasonOfCause(cause)), Effect.logDebug(cause)),
      ),
    )
  }

/** In the middle of something that must end without it too; needs a ledger. */
export const rewriteReport = (target: ReportTarget) => orWarn(target)(writeReport(target))

/**
 * A process ended before it had written these files: one is not there, not under its name yet, or older than
 * the `newest` fact of the run. The page is written last, and says which fact that was. One that cannot be
 * read is due.
 */
export const isReportDue = ({ output, run_id }: ReportTarget, newest: number) =>
  Effect.try(() => {
    const pathOf = (name: string): string => `${runFolder(output, run_id)}/${name}`
    const isWritten = (path: string): boolean => existsSync(path) && !existsSync(`${path}.tmp`)
    if (!isWritten(pathOf(worklistName)) || !isWritten(pathOf(reportName))) return true
    return newestFactIn(readFileSync(pathOf(reportName), "utf8")) < newest
  }).pipe(Effect.orElseSucceed(() => true))

/** After everything that a run is for. */
export const reportAfterRun = Effect.fnUntraced(function* (target: ReportTarget) {
  const wiring = yield* Wiring
  const ledger = wiring.ledger(target.output, "read-only")
  yield* orWarn(target)(Effect.provide(writeReport(target), ledger))
})
