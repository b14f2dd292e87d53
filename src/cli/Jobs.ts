/**
 * Job files as commands take them: all of them loaded before anything is done with one, every problem told at
 * once, warnings on stderr.
 */
import { Effect } from "effect"
import type { Job } from "../jobs/Job.ts"
import type { Problem } from "../jobs/Problem.ts"
import { exitCodes, Ended, UsageRefused } from "./Failures.ts"
import { note } from "./Output.ts"

export interface CheckedJob {
  readonly path: string
  readonly job: Job | undefined
  readonly errors: ReadonlyArray<Problem>
  readonly warnings: ReadonlyArray<Problem>
}

export const checkJobs = Effect.fnUntraced(function* (paths: ReadonlyArray<string>) {
  const { loadJob } = yield* Effect.promise(() => import("../jobs/LoadJob.ts"))
  return yield* Effect.forEach(paths, (path) =>
    loadJob(path).pipe(
      Effect.match({
        onSuccess: ({ job, warnings }): CheckedJob => ({ path, job, errors: [], warnings }),
        onFailure: ({ problems, warnings }): CheckedJob => ({
          path,
          job: undefined,
          errors: problems,
          warnings,
        }),
      }),
    ),
  )
})

export const renderPlace = ({ file, line, column, message }: Problem): string =>
  `${file}:${line}:${column}: ${message}`

/** The jobs, or exit code 2 after every problem was told. */
export const loadJobs = Effect.fnUntraced(function* (paths: ReadonlyArray<string>) {
  const checked = yield* checkJobs(paths)
  for (const warning of checked.flatMap(({ warnings }) => warnings))
    yield* note(`warning: ${renderPlace(warning)}`)
  const errors = checked.flatMap((one) => one.errors)
  if (errors.length > 0) {
    yield* note(errors.map(renderPlace).join("\n"))
    yield* note("Nothing was started. Correct the job file; `nightjar validate` checks it.")
    return yield* new Ended({ exit_code: exitCodes.usage })
  }
  const jobs = checked.flatMap(({ job }) => (job === undefined ? [] : [job]))
  const faults = jobs.find(({ service }) => service._tag === "Embedded" && service.faults !== undefined)
  if (faults !== undefined)
    return yield* new UsageRefused({
      message: `${faults.path}: \`faults\` is not supported by the embedded service yet: remove it`,
    })
  const names = new Map<string, string>()
  for (const { name, path } of jobs) {
    const other = names.get(name)
    if (other !== undefined)
      return yield* new UsageRefused({
        message: `${path} and ${other} are both named \`${name}\`: a job's name begins its run_id`,
      })
    names.set(name, path)
  }
  return jobs
})
