/**
 * `acquaint JOB`, day one at a real service: one customer on one engine, one login, one execution, every call
 * recorded and compared with the contract. Nothing is deleted unless requested and proved.
 */
import { rmSync } from "node:fs"
import { join } from "node:path"
import { Effect, Exit, Layer, Option, Result, Schema, Stream } from "effect"
import { folderName } from "../../base/Text.ts"
import { actUnless, command } from "../CommandRow.ts"
import { endingFor, refuse, refuseUnknown, toolVersion } from "../Failures.ts"
import { loadOne } from "../Jobs.ts"
import { summarisedNight } from "../Nights.ts"
import { NoProgressFlag, argument, note, optionalFlag, switchFlag, unknownNames } from "../Output.ts"
import { holdOutput, makePrivate, writeWhole } from "../OutputFolder.ts"
import { ProgressDisplay } from "../ProgressDisplay.ts"
import { Wiring } from "../Wiring.ts"
import { jsonOf, matcherOf, type RecordedCall } from "../acquaint/Compare.ts"
import {
  callLine,
  isStillThere,
  judge,
  renderMarkdown,
  renderSections,
  reportSections,
  sourcesLine,
} from "../acquaint/Judge.ts"
import type { About, FittedSource, Picture } from "../acquaint/Judge.ts"
import { lastAnswer, type Observed } from "../acquaint/Observe.ts"
import { makeRecorder, type Recorder } from "../acquaint/Recorder.ts"
import { Service } from "../../client/Service.ts"
import { acquaintName, type Assignment, type Job } from "../../jobs/Job.ts"
import { Ledger } from "../../ledger/Ledger.ts"
import { exitCodes } from "../../messages/ExitCodes.ts"
import { attachmentIds } from "../../records/ExactNumber.ts"
import { planJob } from "../../run/PlanJob.ts"
import { encodeReading } from "../../sandbox/readings/SettingFiles.ts"
import { Reading } from "../../sandbox/state/Reading.ts"
import { rowOf, rowOfEnd } from "../../service/Ends.ts"
import { isAddressable, type SourceIds } from "../../service/FlowResults.ts"
import { RunId, type EngineReference, type SessionId } from "../../service/Ids.ts"

// The run of `acquaint`: one assignment through the ordinary pipeline, so that all its promises hold, then a
// few reads that a normal run has no reason to make. It starts nothing that a normal run would not start.

/**
 * One assignment, one attempt, no ticket, nothing deleted unless `remove`. One document is enough to see how
 * they are answered; all are needed only before a deletion.
 */
const cutDown = (job: Job, assignment: Assignment, remove: boolean): Job => {
  const { login: given } = assignment
  const login = given._tag === "Parameters" ? { ...given, tokenized_access: false } : given
  return {
    ...job,
    name: acquaintName(job.name),
    assignments: [{ ...assignment, login }],
    sessions: [],
    retry: { ...job.retry, max_attempts: 1 },
    flow_results: { ...job.flow_results, attachments: remove && job.flow_results.attachments },
    deadline: undefined,
    after_export: remove ? "delete" : "keep",
    tokens_key: login._tag === "Token" ? job.tokens_key : undefined,
  }
}

/** How the newest `acquaint` run ended; unfinished work is resumed before any login is sent. */
const newestOf = Effect.fnUntraced(function* (job: Job) {
  const { runs } = yield* Ledger
  const newest = (yield* runs).findLast(({ fact }) => fact.job === job.name)
  if (newest === undefined) return "none"
  return newest.ended !== undefined && newest.ended.exit_code !== 4 ? "over" : "open"
})

const extraWithin = "2 minutes"

/** One document shows how documents are answered; the others are not downloaded. */
const readAttachment = Effect.fnUntraced(function* (job: Job, recorder: Recorder, session_id: SessionId) {
  const service = yield* Service
  const withDocuments = job.sources.filter(({ attachments }) => attachments)
  const bodies = withDocuments.flatMap((source) => lastAnswer(source, recorder.calls) ?? [])
  const [id] = bodies.flatMap((call) => attachmentIds(jsonOf(call)).requestable)
  if (id === undefined) return
  const answer = yield* service.downloadAttachment(session_id, id)
  if (answer._tag === "Document") yield* Stream.runDrain(Stream.take(answer.bytes, 1))
})

/** Calls that a normal run had no reason to make, once each; whatever goes wrong is in the recording. */
const lookFurther = Effect.fnUntraced(function* (
  job: Job,
  recorder: Recorder,
  ids: SourceIds,
  engine_reference: EngineReference | undefined,
) {
  const service = yield* Service
  const { execution_id, session_id } = ids
  if (execution_id === undefined) return
  const asked = (name: string) => recorder.calls.some(({ route }) => route.name === name)
  // The catalogue is cached for half a day, so a second `acquaint` would not see the call.
  if (engine_reference !== undefined && !asked("showEngine"))
    yield* Effect.ignore(service.showEngine(engine_reference))
  if (!asked("pollExecution")) yield* Effect.ignore(service.pollExecution(execution_id))
  for (const source of job.sources) {
    const isAsked = lastAnswer(source, recorder.calls) !== undefined
    const isOpen = source.enabled && !isAsked && isAddressable(source, ids)
    if (isOpen) yield* Effect.ignore(service.readResults(source, ids))
  }
  const wanted = job.flow_results.attachments && !asked("downloadAttachment")
  if (wanted && session_id !== undefined) yield* Effect.ignore(readAttachment(job, recorder, session_id))
})

/** What one call of `acquaint` is about, and where its files go. */
interface Acquainting {
  /** Cut down to one assignment. */
  readonly job: Job
  /** The job before: what it wants beyond one assignment. */
  readonly whole: Job
  readonly assignment: Assignment
  readonly output: string
  readonly recorder: Recorder
  /** Of the recording and its report. */
  readonly folder: string
}

/** Runs the job, and makes the extra reads unless the execution is deleted. */
const acquaintedNight = Effect.fn("Acquaint.night")(function* (asked: Acquainting) {
  const { job, whole, output, recorder } = asked
  const newest = yield* newestOf(job)
  if (newest !== "open") {
    const { plan } = yield* planJob(job, RunId.make(`${job.name}.acquaint`), undefined)
    const [refused] = plan.settled
    if (refused !== undefined) return { _tag: "Refused" as const, refused }
  }
  const options = { further: newest === "over", parent: undefined, only: undefined, toolVersion }
  const { result, summary } = yield* summarisedNight(job, output, options)
  const task = [...result.state.tasks.values()].at(-1)
  const attempt = task?.attempts.at(-1)
  const isKept = attempt?.execution_id !== undefined && isStillThere(attempt.deletion?.outcome)
  if (isKept && attempt?.closed !== undefined) {
    const ids = { execution_id: attempt.execution_id, session_id: attempt.session_id }
    const looks = lookFurther(whole, recorder, ids, task?.planned.engine_reference)
    yield* looks.pipe(Effect.timeout(extraWithin), Effect.ignore)
  }
  return { _tag: "Ran" as const, result, summary, task, attempt, isKept }
})

const namesMax = 5

const some = (names: ReadonlyArray<string>): string =>
  names.length <= namesMax ? names.join(", ") : `${names.slice(0, namesMax).join(", ")} …`

const keys = { customer: "customer_id", engine: "engine_reference" } as const

/** Those of the assignments with the name that the flag gives, or else the only one that they have. */
const narrowed = Effect.fnUntraced(function* (
  of: ReadonlyArray<Assignment>,
  what: keyof typeof keys,
  given: Option.Option<string>,
  where: string,
) {
  const names = [...new Set<string>(of.map((one) => one[keys[what]]))]
  if (Option.isNone(given) && names.length === 0) return yield* refuse("names-missing", { where, what })
  if (Option.isNone(given) && names.length > 1)
    return yield* refuse("names-ambiguous", { where, count: names.length, what, names: some(names) })
  const name = Option.getOrElse(given, () => names[0] ?? "")
  yield* refuseUnknown(unknownNames(where, { [what]: [[name], names] }))
  return of.filter((one) => one[keys[what]] === name)
})

/** No login is sent for a customer who was not chosen. */
const chooseAssignment = Effect.fnUntraced(function* (
  { assignments, path }: Job,
  customer: Option.Option<string>,
  engine: Option.Option<string>,
) {
  const offered = Option.isSome(engine) ? yield* narrowed(assignments, "engine", engine, path) : assignments
  const own = yield* narrowed(offered, "customer", customer, path)
  const [chosen] = yield* narrowed(own, "engine", engine, `${path}: ${own[0]?.customer_id}`)
  return chosen satisfies Assignment | undefined as Assignment
})

// What `acquaint` writes to the output folder: the calls, the report, the reading and the results sources
// that fit, readable by their owner only. The reading contains only what was observed.

const decodeReading = Schema.decodeUnknownResult(Reading)

/** Each key with the call that shows it; a value that no reading has appears only in the report. */
const readingText = (observed: ReadonlyArray<Observed>): string => {
  const parts = observed.flatMap(({ key, value, call }) => {
    const decoded = decodeReading({ [key]: value })
    return Result.isSuccess(decoded) ? [`# Observed in call ${call}.\n${encodeReading(decoded.success)}`] : []
  })
  const head = "# A reading of the reference, as far as one run showed it: `nightjar sandbox --reading FILE`."
  return `${head}\n\n${parts.join("\n")}`
}

/** Of the results sources: written afresh each time, so that none of an earlier run is left. */
const schemasIn = (folder: string): string => join(folder, "schemas")

const writeSources = Effect.fnUntraced(function* (folder: string, fitted: ReadonlyArray<FittedSource>) {
  const results = join(folder, "results")
  const texts = fitted.flatMap(({ name, text }) =>
    text === undefined ? [] : [{ name: `${name}.yaml`, text }],
  )
  if (texts.length > 0) yield* makePrivate(folder)
  for (const { name, text } of texts) yield* writeWhole(results, name, text, "none")
  return texts.map(({ name }) => join(results, name))
})

const writeCalls = Effect.fnUntraced(function* (folder: string, calls: ReadonlyArray<RecordedCall>) {
  // Each folder on the path is closed to others, whoever created it.
  yield* makePrivate(join(folder, ".."))
  yield* writeWhole(folder, "calls.ndjson", calls.map((call) => `${callLine(call)}\n`).join(""), "none")
})

type Ran = Extract<Effect.Success<ReturnType<typeof acquaintedNight>>, { _tag: "Ran" }>

/** Other ends mean, by the reference, that nothing was retrieved, or that somebody has to act first. */
const isDone = ({ attempt }: Ran): boolean =>
  ["COMPLETED", "PARTIAL"].includes(attempt?.closed?.fact.status_code ?? "")

/** It says whether a normal run can follow. */
const exitCodeOf = (ran: Ran, { misfits, changing, proof }: Picture): number => {
  const isUnfinished = ran.task?.settled?.fact.outcome === "unfinished"
  if (isUnfinished && !isDone(ran)) return exitCodes.leftovers
  return actUnless(isDone(ran) && misfits.length === 0 && changing.length === 0 && proof.isWhole)
}

/** Judges the run and writes its files. */
const judged = Effect.fnUntraced(function* (ran: Ran, asked: Acquainting) {
  const { whole, assignment, folder } = asked
  const schemas = schemasIn(folder)
  const { calls, unkept } = asked.recorder
  const picture = judge({ calls, sources: whole.sources })
  const settled = ran.task?.settled?.fact
  const about: About = {
    customer_id: assignment.customer_id,
    engine_reference: assignment.engine_reference,
    run_id: ran.result.run_id,
    outcome: settled?.outcome ?? "unfinished",
    reason: settled?.reason ?? "",
    execution_id: ran.attempt?.execution_id,
    calls: calls.length + unkept(),
    kept: ran.isKept,
    deletion: ran.attempt?.deletion?.outcome,
    took_ms: ran.summary.elapsed_ms ?? 0,
  }
  const sources = yield* writeSources(schemas, picture.fitted)
  const files = {
    calls: join(folder, "calls.ndjson"),
    report: join(folder, "report.md"),
    reading: join(folder, "reading.yaml"),
  }
  const { means, next } = settled === undefined ? rowOf(about.reason) : rowOfEnd(settled)
  const lines = [
    isDone(ran) ? sourcesLine(whole, schemas, picture, sources) : `${about.reason}: ${means} ${next}`,
    `Try runs on an embedded service with this reading: \`nightjar sandbox --reading ${files.reading}\`.`,
    `Every call is in ${files.calls}, this report in ${files.report}.`,
  ]
  const sections = [...reportSections(about, picture), { title: "Next", lines }]
  yield* writeCalls(folder, calls)
  yield* writeWhole(folder, "reading.yaml", readingText(picture.observed), "none")
  yield* writeWhole(folder, "report.md", renderMarkdown(sections), "none")
  return { about, picture, sections, files: { ...files, sources }, exit_code: exitCodeOf(ran, picture) }
})

/** The same for programs, in the words of the other commands. */
const jsonOfRun = ({ about, picture, files, exit_code }: Effect.Success<ReturnType<typeof judged>>) => {
  const { observed, changing, unobserved, misfits, beyond, fitted, counts, proof, decisions } = picture
  return {
    ...about,
    execution_id: about.execution_id ?? null,
    deletion: about.deletion ?? null,
    exit_code,
    files,
    misfits,
    beyond_the_reference: beyond,
    observed,
    changing,
    not_observed: unobserved,
    products_count: counts._tag === "Counted" ? counts.counts : null,
    is_whole: proof.isWhole,
    families: proof.families,
    sources: fitted.map(({ name, says, source }) => ({ name, says, row: source ?? null })),
    decisions,
  }
}

/** The night with its recorder; if it is cut off, the calls so far are written: they are useful too. */
const recorded = Effect.fnUntraced(function* (asked: Acquainting) {
  const { job, output, recorder, folder } = asked
  const wiring = yield* Wiring
  const silent = yield* NoProgressFlag
  const night = Effect.gen(function* () {
    yield* holdOutput(output, [job.share])
    rmSync(schemasIn(folder), { recursive: true, force: true })
    const services = Layer.merge(
      ProgressDisplay.layer(output, !silent),
      wiring.night(job, output, recorder.through),
    )
    return yield* Effect.provide(acquaintedNight(asked), services)
  })
  return yield* Effect.scoped(night).pipe(
    Effect.onExit((exit) =>
      Exit.isFailure(exit) && recorder.calls.length > 0
        ? Effect.andThen(
            writeCalls(folder, recorder.calls),
            note(`The calls so far are in ${folder}/calls.ndjson.`),
          )
        : Effect.void,
    ),
  )
})

export const acquaint = command("acquaint", {
  more: `
    For the first day: runs one customer on one engine, records every call (shapes only: no values of
    records, no secrets), compares each answer with the reference, and writes the reading and the results
    sources that fit. It logs in once, starts one execution, asks for no ticket and deletes nothing unless
    --delete is given. What it reads is in the tables; from the job's next whole night on, the
    customer is current only if the job has them. Exit code 0: every answer fits, and a run with the
    written sources loses nothing; 3: something does not fit, or a person has to act; 4: the execution did
    not end in time.`,
  examples: { "nightjar acquaint jobs/demo.yaml --customer c-003": "Against the embedded service" },
  flags: {
    path: argument("JOB", "A job file, such as jobs/demo.yaml"),
    customer: optionalFlag("customer", "ID", "The customer; required if the job has several"),
    engine: optionalFlag("engine", "REF", "The engine; required if that customer has several"),
    remove: switchFlag("delete", "Delete the execution once all of it has been read"),
  },
  left: {
    kept: "What was recorded is kept. An execution that was started and not deleted stays at the service.",
    next: "Run the same command again to resume.",
  },
  run: function* ({ path, customer, engine, remove }, output) {
    const whole = yield* loadOne(path)
    const assignment = yield* chooseAssignment(whole, customer, engine)
    const job = cutDown(whole, assignment, remove)
    const recorder = makeRecorder(matcherOf(job.sources))
    const { customer_id, engine_reference } = assignment
    const name = `${folderName(customer_id)}.${folderName(engine_reference)}`
    const folder = join(output, "acquaint", name)
    const asked = { job, whole, assignment, output, recorder, folder }
    const ran = yield* recorded(asked)
    if (ran._tag === "Ran") return yield* judged(ran, asked)
    const { reason, message = "" } = ran.refused
    const refused = { customer_id, engine_reference, reason, message }
    const { lines, exit_code } = endingFor("acquaint-not-started", refused)
    for (const line of lines) yield* note(line)
    return { outcome: "skipped", reason, exit_code }
  },
  json: (told) => ("about" in told ? jsonOfRun(told) : told),
  text: (told, out) => ("about" in told ? renderSections(told.sections, out.width) : []),
  exit: ({ exit_code }) => exit_code,
})
