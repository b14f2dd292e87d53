/**
 * `nightjar plan JOB…`: what `run` would start now, without starting anything: tasks, conflicts, which
 * tasks are skipped and why, form errors, and the expected duration.
 */
import { Duration, Effect, Layer } from "effect"
import { Command } from "effect/cli"
import { resumeTask } from "../../execution/TaskResumption.ts"
import type { Job } from "../../jobs/Job.ts"
import type { Task } from "../../planning/Assignment.ts"
import type { Plan } from "../../planning/Plan.ts"
import type { Style } from "../../report/RenderSummary.ts"
import { counted } from "../../foundation/Counted.ts"
import { span, table, wrap } from "../../report/TextTable.ts"
import { nightAround, nightExitCode } from "../../ledger/WholeNight.ts"
import { exitCodes } from "../../messages/ExitCodes.ts"
import { jobArguments, jsonFlag, outputFolder } from "../CommonFlags.ts"
import { loadJobs } from "../Jobs.ts"
import { openedLedger, refuseLostLedger } from "../LedgerOf.ts"
import { Output, say, sayJson } from "../Output.ts"
import { Wiring } from "../Wiring.ts"

interface Preview {
  readonly job: Job
  readonly how: "new" | "resume" | "nothing"
  /** Nothing starts by itself, but `rerun` can finish something. */
  readonly isLeft: boolean
  readonly collect: ReadonlyArray<string>
  readonly plan: Plan
  /** Tasks of the plan that are already over in the run that would be resumed. */
  readonly over: ReadonlySet<string>
  /** How the job's results sources differ from the built-in ones, one line each. */
  readonly sources: ReadonlyArray<string>
}

const hows = { New: "new", Resume: "resume", NothingToDo: "nothing" } as const

const previewJob = Effect.fnUntraced(function* (job: Job) {
  const { planJob } = yield* Effect.promise(() => import("../../night/PlanJob.ts"))
  const { chooseNight } = yield* Effect.promise(() => import("../../night/ChooseNight.ts"))
  const { differences } = yield* Effect.promise(() => import("../../jobs/ResultsSources.ts"))
  const ledger = yield* openedLedger
  const asked = { further: false, parent: undefined, only: undefined }
  const { chosen, collect, only } = yield* chooseNight(job, asked)
  const { plan } = yield* planJob(job, chosen.run_id, only)
  const state = yield* ledger.state(chosen.run_id)
  const isLeft =
    chosen._tag === "NothingToDo" && state !== undefined
      ? nightExitCode(yield* nightAround(ledger, state)) === exitCodes.leftovers
      : false
  const over = plan.tasks.filter(
    ({ task_id }) =>
      chosen._tag === "NothingToDo" || resumeTask(state?.tasks.get(task_id), "night")._tag === "Nothing",
  )
  return {
    job,
    how: hows[chosen._tag],
    isLeft,
    collect,
    plan,
    over: new Set(over.map(({ task_id }) => task_id)),
    sources: differences(job.sources),
  } satisfies Preview as Preview
})

export const plan = Command.make(
  "plan",
  { jobs: jobArguments, json: jsonFlag },
  Effect.fn("Plan.handle")(function* ({ jobs, json }) {
    const output = yield* outputFolder
    yield* refuseLostLedger(output)
    const wiring = yield* Wiring
    const loaded = yield* loadJobs(jobs)
    const { out } = yield* Output
    const previews = yield* Effect.forEach(loaded, (job) =>
      previewJob(job).pipe(
        Effect.provide(Layer.merge(wiring.plan(job.service, output), wiring.tokenStore(job, output))),
      ),
    )
    if (json) return yield* sayJson(previews.map(previewJson))
    for (const preview of previews) yield* say(renderPreview(preview, out))
  }),
).pipe(Command.withDescription("Shows what `run` would start, without starting anything"))

/** The stored token that logs in; undefined if parameters do. */
const tokenName = ({ login }: Task["start"]): string | undefined =>
  login._tag === "Token" ? login.token.name : undefined

/** Only the fingerprint of a login, or the name of its token. */
const previewJson = ({ job, how, collect, plan, over }: Preview) => ({
  job: job.name,
  run_id: plan.run_id,
  how,
  collect_first: collect,
  tasks: plan.tasks.map(
    ({ task_id, customer_id, engine_reference, features, lacking, availability, ...task }) => ({
      task_id,
      customer_id,
      engine_reference,
      features: features.map(({ code }) => code),
      lacking,
      availability,
      fingerprint: task.fingerprint,
      token: tokenName(task.start),
      expected_ms: Duration.toMillis(task.expected),
      source: task.source,
      starts: !over.has(task_id),
    }),
  ),
  settled: plan.settled.map(({ features, ...verdict }) => ({
    ...verdict,
    features: features.map(({ code }) => code),
  })),
  sessions: plan.sessions,
  sources: job.sources,
  conflicts: plan.conflicts,
  warnings: plan.warnings,
  expected_ms: Duration.toMillis(plan.expected),
})

const headlines = {
  new: "would start",
  resume: "would be resumed",
  nothing: "is finished: `run` would do nothing (`--new` starts another run)",
} as const

const leftHeadline = "starts nothing more: `nightjar rerun` starts what is left of its night"

const renderPreview = (preview: Preview, { width }: Style): string => {
  const { how, isLeft, collect, plan, over, sources } = preview
  const starting = plan.tasks.filter(({ task_id }) => !over.has(task_id))
  const withTokens = starting.some((task) => tokenName(task.start) !== undefined)
  const rows = starting.map((task) => [
    task.customer_id,
    task.engine_reference,
    task.features.map(({ code }) => code).join(" ") || "(the engine's defaults)",
    task.availability,
    span(Duration.toMillis(task.expected)),
    ...(withTokens ? [tokenName(task.start) === undefined ? "parameters" : "token"] : []),
  ])
  const header = ["customer", "engine", "features", "engine is", "expected"]
  const item = (text: string) => wrap(`  ${text}`, width, "", "    ")
  const headline = isLeft ? leftHeadline : headlines[how]
  const sections = [
    wrap(
      `${plan.run_id} ${headline}: ${counted(starting.length, "task")} to start, ` +
        `${over.size} already finished, ${plan.settled.length} that will not start, ` +
        `${counted(plan.sessions.length, "session")} to read; ` +
        `takes at least ${span(Duration.toMillis(plan.expected))}`,
      width,
    ),
    ...collect.map((run_id) => wrap(`First, what ${run_id} left at the service is collected.`, width)),
    ...(rows.length === 0 ? [] : ["", table(withTokens ? [...header, "login"] : header, rows, { width })]),
    ...(plan.settled.length === 0 ? [] : ["", "Will not start:"]),
    ...plan.settled.map(({ customer_id, engine_reference, outcome, reason, who_acts, message }) =>
      item(`${customer_id} ${engine_reference}: ${outcome}, ${reason} (${who_acts}): ${message}`),
    ),
    ...(sources.length === 0 ? [] : ["", "Results sources that differ from the built-in ones:"]),
    ...sources.map(item),
    ...(plan.conflicts.length === 0 ? [] : ["", "Will run one after the other:"]),
    ...plan.conflicts.map(({ why, task_ids }) => item(`${why.replaceAll("_", " ")}: ${task_ids.join(", ")}`)),
    ...(plan.warnings.length === 0 ? [] : ["", "Warnings:"]),
    ...plan.warnings.map(({ engine_reference, message, source, count }) =>
      item(`${source}: ${engine_reference}: ${message}${count > 1 ? ` (${count} times)` : ""}`),
    ),
  ]
  return sections.join("\n")
}
