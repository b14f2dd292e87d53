/**
 * Runs the nights of jobs in a locked output folder, side by side as far as they share nothing, and writes
 * and prints each summary. `run`, `rerun` and `demo` are this with different options.
 */
import { hostname } from "node:os"
import { Cause, Clock, Duration, Effect, Layer, Option, type Context } from "effect"
import type { HeldLock } from "../base/FolderLock.ts"
import { isLoopback, isoTime } from "../base/Text.ts"
import {
  NoProgressFlag,
  Output,
  namedOutput,
  note,
  optionalFlag,
  say,
  sayJson,
  sayPainted,
  warn,
} from "./Output.ts"
import { endingOfCause, leaving, refuse, toolVersion } from "./Failures.ts"
import { openDesk } from "./NightDesk.ts"
import { announced, endingWithoutRun, refuseSilent, toldUnbegun, watchedForLate } from "./Notices.ts"
import type { ToldEnd } from "./Notices.ts"
import { ProgressDisplay, type Display } from "./ProgressDisplay.ts"
import { applyRetain, nameDocumentsAfterNight } from "./PruneJobs.ts"
import { holdOutput, inFolder, writeRunFile } from "./OutputFolder.ts"
import { isReportDue, reportAfterRun } from "./RunReport.ts"
import { addedLines, tellTurns } from "./PlanText.ts"
import { Wiring, type NightsBeside } from "./Wiring.ts"
import { Hints } from "../client/Hints.ts"
import type { ListenAt } from "../client/HookReceiver.ts"
import type { Job } from "../jobs/Job.ts"
import { nightExitCode } from "../ledger/WholeNight.ts"
import { toldWhole } from "../messages/Catalogue.ts"
import { exitCodes } from "../messages/ExitCodes.ts"
import { renderSummary } from "../report/RenderSummary.ts"
import { summarise, withUnpublished, type Summary } from "../report/Summary.ts"
import { inTurns, turnsOf, type Place } from "../run/JobTurns.ts"
import { subjectsAfter } from "../run/PlanJob.ts"
import { runNight, type NightOptions, type NightResult } from "../run/Nightly.ts"
import type { Progress } from "../task/Progress.ts"
import { isAhead, startsPossibleUntil } from "../task/ChooseRun.ts"
import type { Turn } from "../task/SideBySide.ts"
import { Worker } from "../task/StartAttempt.ts"

// What follows a night, whether `run` or `accept` ended it, also of older runs that came to their end then.
// Nothing but the summary can fail.

const folderOf = ({ share }: Job, output: string, { run_id }: NightResult) => ({ output, run_id, share })

const writeOne = Effect.fnUntraced(function* (job: Job, output: string, result: NightResult) {
  const ownSummary = summarise(result.state, result.night, namedOutput(output))
  const summary = withUnpublished(ownSummary, result.unpublished)
  yield* writeRunFile(folderOf(job, output, result), "summary.json", `${JSON.stringify(summary, null, 2)}\n`)
  return summary
})

export const writeSummary = Effect.fnUntraced(function* (job: Job, output: string, result: NightResult) {
  for (const other of result.others) yield* writeOne(job, output, other)
  return yield* writeOne(job, output, result)
})

/** The report, unless there was nothing to do and it says all of the run; never fails. */
export const reportNight = Effect.fnUntraced(function* (job: Job, output: string, result: NightResult) {
  for (const one of [...result.others, result]) {
    const target = folderOf(job, output, one)
    if (!one.nothingToDo || (yield* isReportDue(target, one.state.newest))) yield* reportAfterRun(target)
  }
})

/** Names for documents, and what `retain` says: once no other run writes here. Never fails. */
export const tidyAfterNight = Effect.fnUntraced(function* (job: Job, output: string, result: NightResult) {
  if (!result.nothingToDo) yield* nameDocumentsAfterNight(output, job)
  yield* inFolder(output, applyRetain(output, job)).pipe(
    Effect.catchTag("LedgerFailed", ({ message }) => warn("prune-failed", { why: message })),
  )
})

export const webhooksFlag = optionalFlag(
  "webhooks",
  "[HOST:]PORT",
  "Receive the service's events here (0: any free port)",
)

export const readWebhooksFlag = Effect.fnUntraced(function* (written: Option.Option<string>) {
  if (Option.isNone(written)) return undefined
  const { parseListenAt } = yield* Effect.promise(() => import("../client/HookReceiver.ts"))
  return parseListenAt(written.value) ?? (yield* refuse("webhooks-address-invalid"))
})

/** The receiver of the service's events, which are hints to poll sooner; it closes after the last run. */
const openWebhooks = Effect.fnUntraced(function* (at: ListenAt | undefined) {
  const { Hints, makeHintBoard } = yield* Effect.promise(() => import("../client/Hints.ts"))
  if (at === undefined) return { source: yield* Hints, url: undefined }
  const { openReceiver } = yield* Effect.promise(() => import("../client/HookReceiver.ts"))
  const board = makeHintBoard()
  const url = yield* openReceiver(at, board.offer)
  yield* note(`webhooks: events are received at ${url}`)
  if (!isLoopback(at.host)) yield* warn("webhooks-exposed", { host: at.host })
  return { source: board.source, url }
})

interface NightsOptions {
  readonly output: string
  readonly json: boolean
  readonly further: boolean
  readonly wait?: Duration.Duration
  readonly parent?: string
  readonly only?: ReadonlySet<string>
  /** Of a part of a job, or the rerun of one. */
  readonly isPart?: boolean
  /** By job, what is asked for of a part of it, as `subjectOf` names it. */
  readonly parts?: ReadonlyMap<string, ReadonlySet<string>> | undefined
  readonly webhooks?: ListenAt | undefined
}

/** Returns the exit code for all runs together. */
export const runNights = Effect.fn("Nights.run")(function* (
  jobs: ReadonlyArray<Job>,
  options: NightsOptions,
) {
  const { output } = options
  const nights = Effect.fnUntraced(function* ({ lock, waitedMs }: Held) {
    const works = worksOf(jobs, lock)
    const { source, night, turns } = yield* prepareNights(jobs, options).pipe(unbegun(jobs, output))
    yield* tellTurns(turns)
    const silent = yield* NoProgressFlag
    const desk = yield* openDesk(output)
    const display = yield* ProgressDisplay.open(!silent, desk.look)
    const told = yield* inTurns(jobs, turns, (job, { isInTime, beside }) => {
      const name = jobs.length > 1 ? job.name : undefined
      const run = isInTime ? oneNight(job, { ...options, waitedMs }, night(job), beside) : tooLate(job, turns)
      return desk.join(works.told(job, display.join(name))).pipe(
        Effect.flatMap((watched) => Effect.provide(run, watched)),
        Effect.scoped,
        tellFailure(job, name, display),
        Effect.tap((one) => display.quietly(tellNight(one, options.json))),
        announced(job, output),
        Effect.provideService(Hints, source),
        Effect.ensuring(works.isOver(job)),
      )
    })
    // Only now: what is removed by age, or named for people, may be what another run is writing.
    const over = told.flatMap(({ ofRun }) => ofRun ?? [])
    for (const { job, result } of over) yield* tidyAfterNight(job, output, result)
    if (options.json)
      yield* sayJson(over.map(({ result, summary }) => ({ ...summary, nothing_to_do: result.nothingToDo })))
    return joinedExitCode(told.map(({ exit_code }) => exit_code))
  })
  return yield* Effect.scoped(
    Effect.flatMap(awaitOutput(jobs, options), (held) =>
      Effect.onInterrupt(nights(held), () =>
        note(toldWhole(options.isPart === true ? "interrupted-part" : "interrupted")),
      ),
    ),
  )
})

/** Before any run has begun: the command and the receivers of its jobs are told so. */
const unbegun =
  (jobs: ReadonlyArray<Job>, output: string) =>
  <A, E, R>(work: Effect.Effect<A, E, R>) =>
    work.pipe(leaving(nothingStarted), toldUnbegun(jobs, output))

const nothingStarted = { kept: "Nothing was started.", next: "Then run the same command again." }

/** What all runs need before the first of them begins; if it fails, no job has a night. */
const prepareNights = Effect.fnUntraced(function* (jobs: ReadonlyArray<Job>, options: NightsOptions) {
  const wiring = yield* Wiring
  const { source, url } = yield* openWebhooks(options.webhooks)
  const { ledger, night } = yield* wiring.nights(jobs, options.output, url)
  const turns = yield* Effect.provide(turnsOf(jobs), Layer.merge(ledger, wiring.secrets))
  return { source, night, turns }
})

const notBegun = ({ name }: Job): string => `job ${name}, without a run yet`

/** No longer than until the last job starts nothing more; receivers are told if that fails. */
const awaitOutput = Effect.fnUntraced(function* (jobs: ReadonlyArray<Job>, options: NightsOptions) {
  const { output, wait: longest = Duration.zero } = options
  const now = yield* Clock.currentTimeMillis
  const shares = jobs.map(({ share }) => share)
  const until = startsPossibleUntil(jobs, now)
  const held = holdOutput(output, shares, jobs.map(notBegun), longest, until).pipe(
    Effect.onInterrupt(() => note(toldWhole("interrupted-waiting"))),
  )
  yield* refuseSilent(jobs).pipe(unbegun(jobs, output))
  return yield* held.pipe(unbegun(jobs, output))
})

type Held = Effect.Success<ReturnType<typeof holdOutput>>

/** Keeps what others read of this process's work true while its jobs go on. */
const worksOf = (jobs: ReadonlyArray<Job>, lock: HeldLock) => {
  const works = new Map(jobs.map((job) => [job.name, notBegun(job)]))
  const tellWorks = Effect.suspend(() => lock.worksOn([...works.values()]))
  const told = ({ name }: Job, { tell }: ProgressShape): ProgressShape => ({
    tell: (event) => {
      if (event._tag !== "Planned") return tell(event)
      works.set(name, `run ${event.run_id}`)
      return Effect.andThen(tellWorks, tell(event))
    },
  })
  const isOver = ({ name }: Job) =>
    Effect.suspend(() => {
      works.delete(name)
      return tellWorks
    })
  return { told, isOver }
}
type ProgressShape = Context.Service.Shape<typeof Progress>

const tooLate = (job: Job, turns: ReadonlyArray<Turn>) => {
  const waits = turns.find((turn) => turn.job === job.name)?.waits ?? []
  const others = waits.length === 0 ? "a free place" : waits.map((wait) => wait.job).join(", ")
  return Effect.fail(refuse("job-turn-late", { job: job.name, others }))
}

interface ToldNight extends ToldEnd {
  /** Absent if there was no run that came to its end. */
  readonly ofRun?: {
    readonly job: Job
    readonly result: NightResult
    readonly added: number
    readonly summary: Summary
  }
}

/** A failure of one job must not stop the others; an interrupt stops them all. */
const tellFailure =
  (job: Job, name: string | undefined, display: Display) =>
  <E, R>(night: Effect.Effect<ToldNight, E, R>) =>
    Effect.catchCause(night, (cause) => {
      if (Cause.hasInterruptsOnly(cause)) return Effect.interrupt
      const ended = endingOfCause(cause)
      const { exit_code, lines } = ended
      const heading = name === undefined || lines.length === 0 ? [] : [`${name}:`]
      return display
        .quietly(Effect.forEach([...heading, ...lines], note, { discard: true }))
        .pipe(
          Effect.andThen(Effect.logDebug(cause)),
          Effect.as<ToldNight>({ exit_code, ending: endingWithoutRun(job, ended) }),
        )
    })

/** A run with its summary written; nothing is printed yet. */
export const summarisedNight = Effect.fnUntraced(function* (job: Job, output: string, options: NightOptions) {
  const result = yield* Effect.provideService(runNight(job, options), Worker, `${hostname()}:${process.pid}`)
  const added = result.nothingToDo ? (yield* subjectsAfter(job, result.state)).size : 0
  return { result, added, summary: yield* writeSummary(job, output, result) }
})

const oneNight = Effect.fnUntraced(function* (
  job: Job,
  options: NightsOptions & Pick<Held, "waitedMs">,
  services: ReturnType<NightsBeside["night"]>,
  beside: Place["beside"],
) {
  const { further, parent, output, waitedMs, parts } = options
  const [only, isPart] = parts === undefined ? [options.only, false] : [parts.get(job.name), true]
  const run = summarisedNight(job, output, { further, parent, only, isPart, waitedMs, toolVersion })
  const { result, added, summary } = yield* beside(run).pipe(
    watchedForLate(job, yield* Clock.Clock),
    Effect.provide(services),
  )
  yield* reportNight(job, output, result)
  const { exit_code, recovered, news } = result
  return {
    exit_code,
    ending: result.nothingToDo ? undefined : { job: job.name, exit_code, summary, recovered, news },
    ofRun: { job, result, added, summary },
  } satisfies ToldNight as ToldNight
})

/** Why nothing is started, and what would start something. */
export const nothingToDoText = (
  {
    run_id,
    night,
    state: { started: fact, started_at: at },
  }: Pick<NightResult, "run_id" | "night" | "state">,
  now: number,
): string => {
  if (isAhead({ at, fact }, now))
    return (
      `${run_id} began at ${isoTime(at)}, which is still to come: the clock was wrong ` +
      "then, or is now. Nothing was started; if the clock is right now, `--new` starts this night."
    )
  return (nightExitCode(night) ?? exitCodes.leftovers) === exitCodes.leftovers
    ? `${run_id} starts nothing more: \`nightjar rerun\` starts what is left of its night.`
    : `${run_id} is already finished: nothing to do (\`--new\` forces a further run).`
}

const tellNight = Effect.fnUntraced(function* ({ ofRun }: ToldNight, json: boolean) {
  if (ofRun === undefined || json) return
  const { result, added, summary } = ofRun
  const { out } = yield* Output
  if (result.nothingToDo) yield* say(nothingToDoText(result, yield* Clock.currentTimeMillis))
  for (const line of addedLines(added)) yield* say(line)
  yield* sayPainted(renderSummary(summary, out))
})

/** What a rerun can finish wins over what people must do; a service that never answered has its own code. */
export const joinedExitCode = (codes: ReadonlyArray<number>): number => {
  if (codes.includes(exitCodes.defect)) return exitCodes.defect
  if (codes.length > 0 && codes.every((code) => code === codes[0])) return codes[0] ?? exitCodes.ok
  const started = codes.filter((code) => code === exitCodes.ok || code === exitCodes.peopleMustAct)
  if (started.length < codes.length) return exitCodes.leftovers
  return started.includes(exitCodes.peopleMustAct) ? exitCodes.peopleMustAct : exitCodes.ok
}
