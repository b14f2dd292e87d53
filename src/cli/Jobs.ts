/**
 * Job files as commands take them: all of them loaded before anything is done with one, every problem told at
 * once, warnings on stderr.
 */
import { Effect } from "effect"
import type { Job } from "../jobs/Job.ts"
import type { Problem } from "../foundation/FileProblem.ts"
import { exitCodes, Ended, UsageRefused } from "./Failures.ts"
import { note } from "./Output.ts"

export interface CheckedJob {
  readonly path: string
  readonly job: Job | undefined
  readonly errors: ReadonlyArray<Problem>
  readonly warnings: ReadonlyArray<Problem>
}

const problemsIn = <A>(read: Effect.Effect<A, { readonly problems: ReadonlyArray<Problem> }>) =>
  Effect.match(read, {
    onSuccess: (): ReadonlyArray<Problem> => [],
    onFailure: ({ problems }) => problems,
  })

/** What is wrong with the files that the embedded service of a job is to follow: faults and a reading. */
const problemsOfService = Effect.fnUntraced(function* ({ service }: Job) {
  if (service._tag !== "Embedded") return []
  const { readFaults } = yield* Effect.promise(() => import("../sandbox/faults/FaultsFile.ts"))
  const { readReading } = yield* Effect.promise(() => import("../sandbox/readings/ReadingFile.ts"))
  return [
    ...(service.faults === undefined ? [] : yield* problemsIn(readFaults(service.faults))),
    ...(service.reading === undefined ? [] : yield* problemsIn(readReading(service.reading))),
  ]
})

const checkService = (checked: CheckedJob) =>
  checked.job === undefined
    ? Effect.succeed(checked)
    : Effect.map(problemsOfService(checked.job), (errors): CheckedJob =>
        errors.length === 0 ? checked : { ...checked, job: undefined, errors },
      )

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
      Effect.flatMap(checkService),
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
