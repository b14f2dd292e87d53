/**
 * The run of `acquaint`: one assignment through the ordinary pipeline, so that all its promises hold, then a
 * few reads that a normal run has no reason to make. It starts nothing that a normal run would not start.
 */
import { existsSync, readdirSync, rmSync } from "node:fs"
import { dirname, join, relative } from "node:path"
import { Effect, Option, Result, Schema, Stream } from "effect"
import { suggestion } from "../../base/Text.ts"
import { endingFor, refuse, toolVersion } from "../Failures.ts"
import { summarisedNight } from "../Nights.ts"
import { Output, note, say, sayJson } from "../Output.ts"
import { makePrivate, writeWhole } from "../OutputFolder.ts"
import { jsonOf, matcherOf } from "./Compare.ts"
import type { RecordedCall } from "./Compare.ts"
import { lastAnswer } from "./Observe.ts"
import type { Observed } from "./Observe.ts"
import { callLine, judge, missingFamilies, renderMarkdown, renderSections, reportSections } from "./Judge.ts"
import type { About, FittedSource, Picture, Section } from "./Judge.ts"
import { makeRecorder } from "./Recorder.ts"
import type { Recorder } from "./Recorder.ts"
import { Service } from "../../client/Service.ts"
import type { Assignment, Job } from "../../jobs/Job.ts"
import { Ledger } from "../../ledger/Ledger.ts"
import { exitCodes } from "../../messages/ExitCodes.ts"
import { attachmentIds } from "../../records/ExactNumber.ts"
import { planJob } from "../../run/PlanJob.ts"
import { encodeReading } from "../../sandbox/readings/SettingFiles.ts"
import { Reading, readingChoices } from "../../sandbox/state/Reading.ts"
import { rowOf } from "../../service/Ends.ts"
import { isAddressable } from "../../service/FlowResults.ts"
import type { SourceIds } from "../../service/FlowResults.ts"
import { RunId } from "../../service/Ids.ts"
import type { CustomerId, EngineReference, SessionId } from "../../service/Ids.ts"

const nameMax = 64

/**
 * One assignment, one attempt, no ticket, nothing deleted unless `remove`. One document is enough to see how
 * they are answered; all are needed only before a deletion.
 */
export const cutDown = (job: Job, assignment: Assignment, remove: boolean): Job => {
  const { login } = assignment
  return {
    ...job,
    name: `acquaint-${job.name}`.slice(0, nameMax),
    assignments: [
      {
        ...assignment,
        login: login._tag === "Parameters" ? { ...login, tokenized_access: false } : login,
      },
    ],
    sessions: [],
    retry: { ...job.retry, max_attempts: 1 },
    flow_results: { ...job.flow_results, attachments: remove && job.flow_results.attachments },
    deadline: undefined,
    after_export: remove ? "delete" : "keep",
    tokens_key: login._tag === "Token" ? job.tokens_key : undefined,
  }
}

export const recorderFor = (job: Job, probeConflict: boolean): Recorder =>
  makeRecorder({ match: matcherOf(job.sources), probeConflict })

/** Why the plan would not start it; undefined if it would. */
const verdictBefore = Effect.fnUntraced(function* (job: Job) {
  const { plan } = yield* planJob(job, RunId.make(`${job.name}.acquaint`), undefined)
  return plan.settled[0]
})

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
  const bodies = job.sources
    .filter(({ attachments }) => attachments)
    .map((source) => lastAnswer(source, recorder.calls))
  const [id] = bodies.flatMap((call) => (call === undefined ? [] : attachmentIds(jsonOf(call)).requestable))
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

/** Runs the job, which is already cut down, and makes the extra reads unless the execution is deleted. */
export const acquaintedNight = Effect.fn("Acquaint.night")(function* (input: {
  readonly job: Job
  /** The job before it was cut down: what it wants beyond one assignment. */
  readonly whole: Job
  readonly output: string
  readonly recorder: Recorder
}) {
  const { job, whole, output, recorder } = input
  const newest = yield* newestOf(job)
  const refused = newest === "open" ? undefined : yield* verdictBefore(job)
  if (refused !== undefined) return { _tag: "Refused" as const, refused }
  const options = { further: newest === "over", parent: undefined, only: undefined, toolVersion }
  const { result, summary } = yield* summarisedNight(job, output, options)
  const task = [...result.state.tasks.values()].at(-1)
  const attempt = task?.attempts.at(-1)
  const isKept = attempt?.execution_id !== undefined && attempt.deletion?.outcome !== "deleted"
  if (isKept && attempt?.closed !== undefined) {
    const ids = { execution_id: attempt.execution_id, session_id: attempt.session_id }
    const looks = lookFurther(whole, recorder, ids, task?.planned.engine_reference)
    yield* looks.pipe(Effect.timeout(extraWithin), Effect.ignore)
  }
  return { _tag: "Ran" as const, result, summary, task, attempt, isKept }
})

// Which assignment of a job `acquaint` runs: the only one, or the one that its flags name. It never sends a
// login for a customer who was not chosen.

const namesMax = 5

const some = (names: ReadonlyArray<string>): string =>
  names.length <= namesMax ? names.join(", ") : `${names.slice(0, namesMax).join(", ")} …`

const pick = Effect.fnUntraced(function* (
  flag: "customer" | "engine",
  given: Option.Option<string>,
  names: ReadonlyArray<string>,
  whose: string,
) {
  if (Option.isSome(given)) {
    if (names.includes(given.value)) return given.value
    const detail = `--${flag} in ${whose}${suggestion(given.value, names)}`
    return yield* refuse("name-unknown", { detail })
  }
  const [only] = names
  if (only === undefined) return yield* refuse("names-missing", { where: whose, what: flag })
  if (names.length === 1) return only
  const ambiguous = { where: whose, count: names.length, what: flag, names: some(names) }
  return yield* refuse("names-ambiguous", ambiguous)
})

const distinct = (names: ReadonlyArray<string>): ReadonlyArray<string> => [...new Set(names)]

export const chooseAssignment = Effect.fnUntraced(function* (
  job: Job,
  customer: Option.Option<string>,
  engine: Option.Option<string>,
) {
  const wanted = Option.getOrUndefined(engine)
  const known = distinct(job.assignments.map(({ engine_reference }) => engine_reference))
  if (wanted !== undefined) yield* pick("engine", engine, known, job.path)
  const offered = job.assignments.filter(
    ({ engine_reference }) => wanted === undefined || engine_reference === wanted,
  )
  const everybody = distinct(offered.map(({ customer_id }) => customer_id))
  const customer_id = yield* pick("customer", customer, everybody, job.path)
  const ofCustomer = offered.filter((one) => one.customer_id === customer_id)
  const engines = distinct(ofCustomer.map(({ engine_reference }) => engine_reference))
  const engine_reference = yield* pick("engine", engine, engines, `${job.path}: ${customer_id}`)
  return ofCustomer.find((one) => one.engine_reference === engine_reference) satisfies
    | Assignment
    | undefined as Assignment
})

// What `acquaint` writes to the output folder: the calls, the report, the reading and the results sources
// that fit, readable by their owner only. The reading contains only what was observed.

/** A safe folder name, whatever the ids contain. */
const folderName = (text: string): string => text.replaceAll(/[^A-Za-z0-9.-]/g, "_")

export const acquaintFolder = (
  output: string,
  customer_id: CustomerId,
  engine_reference: EngineReference,
): string => join(output, "acquaint", `${folderName(customer_id)}.${folderName(engine_reference)}`)

export const sectionOf = (key: string): string | undefined =>
  readingChoices.find((choice) => choice.key === key)?.section

const decodeReading = Schema.decodeUnknownResult(Reading)

/** Each key with the call that shows it; a value that no reading has appears only in the report. */
export const readingText = (observed: ReadonlyArray<Observed>): string => {
  const parts = observed.flatMap(({ key, value, call }) => {
    const decoded = decodeReading({ [key]: value })
    return Result.isSuccess(decoded) ? [`# Observed in call ${call}.\n${encodeReading(decoded.success)}`] : []
  })
  const head = "# A reading of the reference, as far as one run showed it: `nightjar sandbox --reading FILE`."
  return `${head}\n\n${parts.join("\n")}`
}

/** The user's own rows are never overwritten; our own folder is written afresh each time. */
export const claimSchemas = (folder: string, isOurs: boolean) => {
  const results = join(folder, "results")
  return Effect.suspend(() => {
    const names = existsSync(results) ? readdirSync(results) : []
    if (isOurs) rmSync(folder, { recursive: true, force: true })
    else if (names.length > 0) return Effect.fail(refuse("results-sources-exist", { folder: results }))
    return Effect.void
  })
}

/** Returns the results source files that were written. */
export const writeSources = Effect.fnUntraced(function* (
  folder: string,
  fitted: ReadonlyArray<FittedSource>,
) {
  const results = join(folder, "results")
  const written: Array<string> = []
  for (const { name, text } of fitted) {
    if (text === undefined) continue
    if (written.length === 0) yield* makePrivate(folder)
    yield* writeWhole(results, `${name}.yaml`, text, "none")
    written.push(join(results, `${name}.yaml`))
  }
  return written
})

export const writeCalls = Effect.fnUntraced(function* (folder: string, calls: ReadonlyArray<RecordedCall>) {
  // Each folder on the path is closed to others, whoever created it.
  yield* makePrivate(join(folder, ".."))
  yield* writeWhole(folder, "calls.ndjson", calls.map((call) => `${callLine(call)}\n`).join(""), "none")
})

export const writeRecord = Effect.fnUntraced(function* (input: {
  readonly folder: string
  readonly calls: ReadonlyArray<RecordedCall>
  readonly observed: ReadonlyArray<Observed>
  readonly report: string
}) {
  const { folder, calls } = input
  const files = {
    calls: join(folder, "calls.ndjson"),
    report: join(folder, "report.md"),
    reading: join(folder, "reading.yaml"),
  }
  yield* writeCalls(folder, calls)
  yield* writeWhole(folder, "reading.yaml", readingText(input.observed), "none")
  yield* writeWhole(folder, "report.md", input.report, "none")
  return files
})

// How `acquaint` ends: it judges the run, writes the files, and tells people and programs the same. The
// exit code says whether a normal run can follow.

type Ran = Effect.Success<ReturnType<typeof acquaintedNight>>

interface Told {
  readonly ran: Ran
  readonly whole: Job
  readonly assignment: Assignment
  readonly recorder: Recorder
  readonly folder: string
  readonly schemas: string
  readonly acceptUncounted: boolean
  readonly json: boolean
}

/** Ends that, by the reference, mean that nothing was retrieved, or that somebody has to act first. */
const isDone = (ran: Extract<Ran, { _tag: "Ran" }>): boolean => {
  const code = ran.attempt?.closed?.fact.status_code
  return code === "COMPLETED" || code === "PARTIAL"
}

const exitCodeOf = (ran: Extract<Ran, { _tag: "Ran" }>, picture: Picture): number => {
  const { attempt, task } = ran
  const outcome = task?.settled?.fact.outcome
  if (attempt?.closed === undefined && outcome === "unfinished") return exitCodes.leftovers
  if (!isDone(ran)) return outcome === "unfinished" ? exitCodes.leftovers : exitCodes.peopleMustAct
  const { misfits, changing, proof } = picture
  return misfits.length === 0 && changing.length === 0 && proof.isWhole
    ? exitCodes.ok
    : exitCodes.peopleMustAct
}

const aboutOf = ({
  ran,
  assignment,
  recorder,
}: Told & { readonly ran: Extract<Ran, { _tag: "Ran" }> }): About => {
  const settled = ran.task?.settled?.fact
  return {
    customer_id: assignment.customer_id,
    engine_reference: assignment.engine_reference,
    run_id: ran.result.run_id,
    outcome: settled?.outcome ?? "unfinished",
    reason: settled?.reason ?? "",
    execution_id: ran.attempt?.execution_id,
    isKept: ran.isKept,
    calls: recorder.calls.length + recorder.unkept(),
    tookMs: ran.summary.elapsed_ms ?? 0,
  }
}

/** What to do about results sources. */
const sourcesLine = ({ whole, schemas }: Told, picture: Picture, files: ReadonlyArray<string>): string => {
  const beside = relative(dirname(whole.path), schemas)
  const path = beside.startsWith(".") ? beside : `./${beside}`
  const put = `put \`schemas: ${path}\` into ${whole.path}; \`nightjar plan\` then names the results sources.`
  const missing = missingFamilies(picture.proof)
  if (missing.length > 0) {
    const rest = files.length === 0 ? "" : ` For the others ${put}`
    return `Ask the service how ${missing.join(", ")} can be read, and add a results source.${rest}`
  }
  if (!picture.proof.isWhole && picture.decisions.length === 0) {
    return (
      "Ask the service how to tell that all records have been read; until then, a run keeps every " +
      "execution."
    )
  }
  if (files.length === 0) return "The job's results sources fit as they are."
  return picture.decisions.length === 0
    ? `P${put.slice(1)}`
    : `Decide, and remove the comment in ${files.join(" and ")}; then ${put}`
}

const nextSection = (
  told: Told & { readonly ran: Extract<Ran, { _tag: "Ran" }> },
  about: About,
  picture: Picture,
  files: ReadonlyArray<string>,
): Section => {
  const { folder, ran } = told
  const { means, next } = rowOf(about.reason)
  return {
    title: "Next",
    lines: [
      ...(isDone(ran) ? [] : [`${about.reason}: ${means} ${next}`]),
      ...(isDone(ran) ? [sourcesLine(told, picture, files)] : []),
      "Try runs on an embedded service with this reading: " +
        `\`nightjar sandbox --reading ${folder}/reading.yaml\`.`,
      `Every call is in ${folder}/calls.ndjson, this report in ${folder}/report.md.`,
    ],
  }
}

/** The same for programs, in the words of the other commands. */
const tellJson = (about: About, picture: Picture, exit_code: number, files: object) => {
  const { isKept, tookMs, ...said } = about
  const { observed, changing, unobserved, misfits, beyond, fitted, counts, proof, decisions } = picture
  return {
    ...said,
    execution_id: about.execution_id ?? null,
    kept: isKept,
    took_ms: tookMs,
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

const refusedEnding = (told: Told, ran: Extract<Ran, { _tag: "Refused" }>) => {
  const { customer_id, engine_reference } = told.assignment
  const { reason, message } = ran.refused
  return endingFor("acquaint-not-started", { customer_id, engine_reference, reason, message: message ?? "" })
}

/** Writes the files, prints the report, and returns the exit code. */
export const tellRun = Effect.fnUntraced(function* (told: Told) {
  const { ran, recorder, whole, folder, schemas } = told
  if (ran._tag === "Refused") {
    const { lines, exit_code } = refusedEnding(told, ran)
    for (const line of lines) yield* note(line)
    if (told.json) yield* sayJson({ outcome: "skipped", reason: ran.refused.reason, exit_code })
    return exit_code
  }
  const picture = judge({
    calls: recorder.calls,
    sources: whole.sources,
    acceptUncounted: told.acceptUncounted,
  })
  const about = aboutOf({ ...told, ran })
  const sources = yield* writeSources(schemas, picture.fitted)
  const sections = [
    ...reportSections(about, picture, sectionOf),
    nextSection({ ...told, ran }, about, picture, sources),
  ]
  const { calls } = recorder
  const report = renderMarkdown(sections)
  const files = yield* writeRecord({ folder, calls, observed: picture.observed, report })
  const exit_code = exitCodeOf(ran, picture)
  const { out } = yield* Output
  if (!told.json) yield* say(renderSections(sections, out.width))
  else yield* sayJson(tellJson(about, picture, exit_code, { ...files, sources }))
  return exit_code
})
