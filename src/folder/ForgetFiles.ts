/**
 * A customer leaves the files that are neither ledger, landing nor tables: documents, logs, summaries,
 * reports, recordings, and the journal of the embedded service. Each step may be repeated.
 */
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs"
import { dirname, join } from "node:path"
import { Effect } from "effect"
import { RunId } from "../service/Ids.ts"
import type { CustomerId } from "../service/Ids.ts"
import type { DurableFiles } from "../base/DurableFile.ts"
import { Ledger } from "../ledger/Ledger.ts"
import { isRunId } from "../ledger/RunId.ts"
import { nightAround } from "../ledger/WholeNight.ts"
import type { Store } from "../tables/Store.ts"
import { summarise } from "../report/Summary.ts"
import { step } from "./ForgetFailed.ts"
import { cleanLogLine, mentions, mentionsIn } from "./Mentions.ts"
import type { Named } from "./Mentions.ts"

/** The runs that have a folder below this one. */
export const runsIn = (folder: string): ReadonlyArray<RunId> =>
  existsSync(folder)
    ? readdirSync(folder)
        .filter((name) => isRunId(name))
        .map((name) => RunId.make(name))
    : []

export const removeAll = (files: DurableFiles, paths: ReadonlyArray<string>): void => {
  for (const path of paths) files.remove(path)
  for (const folder of new Set(paths.map((path) => dirname(path)))) files.syncFolder(folder)
}

/** The ledger is clean already: a document that it still knows is another customer's too. */
export const forgetDocuments = Effect.fnUntraced(function* (
  { layout, files }: Store,
  documents: ReadonlyArray<string>,
) {
  const ledger = yield* Ledger
  const theirs: Array<string> = []
  for (const sha256 of documents) {
    const path = join(layout.root, "attachments", sha256)
    if (existsSync(path) && (yield* ledger.runsWithDocument(sha256)).length === 0) theirs.push(path)
  }
  yield* step(() => removeAll(files, theirs))
})

const logName = "log.ndjson"
const summaryName = "summary.json"
const reportNames: ReadonlyArray<string> = ["report.html", "worklist.csv"]

/** The files of a run's report that name the customer, until it is written again. */
interface OldReport {
  readonly run_id: RunId
  readonly paths: ReadonlyArray<string>
}

/**
 * Cleans `runs/` but for the reports that it returns: a removal that is cut off finds them again. Logs lose
 * the lines about the customer; summaries are made again from the ledger; whatever else names the customer is
 * removed.
 */
export const forgetInRuns = Effect.fnUntraced(function* ({ layout, files }: Store, named: Named) {
  const reports: Array<OldReport> = []
  for (const run_id of runsIn(join(layout.root, "runs"))) {
    const folder = join(layout.root, "runs", run_id)
    const found = yield* step(() =>
      readdirSync(folder).filter((name) => mentionsIn(named, readFileSync(join(folder, name), "utf8"))),
    )
    if (found.length === 0) continue
    if (found.includes(logName)) yield* step(() => cleanLog(files, join(folder, logName), named))
    if (found.includes(summaryName)) yield* summariseAgain(files, folder, run_id)
    const pathsOf = (names: ReadonlyArray<string>) => names.map((name) => join(folder, name))
    const ofReport = found.filter((name) => reportNames.includes(name))
    const known = new Set([logName, summaryName, ...ofReport])
    yield* step(() => removeAll(files, pathsOf(found.filter((name) => !known.has(name)))))
    if (ofReport.length > 0) reports.push({ run_id, paths: pathsOf(ofReport) })
  }
  return reports as ReadonlyArray<OldReport>
})

const modeOf = (path: string): number => statSync(path).mode & 0o777

const cleanLog = (files: DurableFiles, path: string, named: Named): void => {
  const lines = readFileSync(path, "utf8").split("\n")
  const clean = lines.flatMap((line) => cleanLogLine(line, named) ?? [])
  files.replace(path, clean.join("\n"), modeOf(path))
}

const summariseAgain = Effect.fnUntraced(function* (files: DurableFiles, folder: string, run_id: RunId) {
  const ledger = yield* Ledger
  const state = yield* ledger.state(run_id)
  const path = join(folder, summaryName)
  if (state === undefined) return yield* step(() => removeAll(files, [path]))
  const summary = summarise(state, yield* nightAround(ledger, state))
  yield* step(() => files.replace(path, `${JSON.stringify(summary, null, 2)}\n`, modeOf(path)))
})

/** The folders of recordings of this customer, below the output folder. */
export const recordingsOf = (root: string, customer_id: CustomerId): ReadonlyArray<string> => {
  const folder = join(root, "acquaint")
  if (!existsSync(folder)) return []
  const named: Named = { customer_id, tasks: new Set(), ids: [] }
  return readdirSync(folder)
    .map((name) => join(folder, name))
    .filter((path) => {
      const calls = join(path, "calls.ndjson")
      return existsSync(calls) && mentionsIn(named, readFileSync(calls, "utf8"))
    })
}

export const forgetRecordings = ({ layout, files }: Store, customer_id: CustomerId) =>
  step(() => {
    const paths = recordingsOf(layout.root, customer_id)
    if (paths.length > 0) removeAll(files, paths)
  })

/**
 * The embedded service in this folder forgets the customer's executions. Its time must not go back, so the
 * newest time of the journal stays in it.
 */
export const forgetInJournal = ({ layout, files }: Store, named: Named) =>
  step(() => {
    const path = join(layout.root, "sandbox.ndjson")
    if (!existsSync(path)) return
    const lines = readFileSync(path, "utf8")
      .split("\n")
      .filter((line) => line !== "")
    const kept = lines.filter((line, index) => {
      const event = eventIn(line)
      // The journal cuts off a last line that a killed process left torn; nothing may come after it.
      if (event === undefined) return index < lines.length - 1 && !mentionsIn(named, line)
      return !mentions(named, event)
    })
    if (kept.length === lines.length) return
    const at = lines.reduce((newest, line) => Math.max(newest, timeOf(eventIn(line))), 0)
    files.replace(path, `${[...kept, JSON.stringify({ _tag: "TimeKept", at })].join("\n")}\n`, 0o600)
  })

/** Undefined of a line that is no event. */
const eventIn = (line: string): unknown => {
  try {
    return JSON.parse(line)
  } catch {
    return undefined
  }
}

const timeOf = (event: unknown): number =>
  typeof event === "object" && event !== null && "at" in event ? Number(event.at) : 0
