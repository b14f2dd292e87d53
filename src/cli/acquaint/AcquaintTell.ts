/**
 * How `acquaint` ends: it judges the run, writes the files, and tells people and programs the same. The
 * exit code says whether a normal run can follow.
 */
import { dirname, relative } from "node:path"
import { Effect } from "effect"
import { judge } from "./Judge.ts"
import type { Picture } from "./Judge.ts"
import type { Recorder } from "./Recorder.ts"
import { missingFamilies, renderMarkdown, renderSections, reportSections } from "./Report.ts"
import type { About, Section } from "./Report.ts"
import { rowOf } from "../../service/Ends.ts"
import type { Assignment, Job } from "../../jobs/Job.ts"
import { sectionOf, writeRecord, writeSources } from "./AcquaintFiles.ts"
import type { acquaintedNight } from "./AcquaintRun.ts"
import { endingFor } from "../Failures.ts"
import { exitCodes } from "../../messages/ExitCodes.ts"
import { note, Output, say, sayJson } from "../Output.ts"

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
const jsonOf = (about: About, picture: Picture, exit_code: number, files: object) => {
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
  else yield* sayJson(jsonOf(about, picture, exit_code, { ...files, sources }))
  return exit_code
})
