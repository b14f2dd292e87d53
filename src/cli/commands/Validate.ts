/**
 * `nightjar validate JOB…`: checks job files without a network; every error with its file, line and column,
 * all of them at once.
 */
import { Effect } from "effect"
import { Command } from "effect/cli"
import { jobArguments, jsonFlag } from "../CommonFlags.ts"
import { endWith, exitCodes } from "../Failures.ts"
import { checkJobs, renderPlace } from "../Jobs.ts"
import { note, say, sayJson } from "../Output.ts"
import { counted } from "../../report/TextTable.ts"

export const validate = Command.make(
  "validate",
  { jobs: jobArguments, json: jsonFlag },
  Effect.fn("Validate.handle")(function* ({ jobs, json }) {
    const checked = yield* checkJobs(jobs)
    const failed = checked.some(({ errors }) => errors.length > 0)
    if (json) {
      yield* sayJson(
        checked.map(({ path, job, errors, warnings }) => ({
          path,
          job: job?.name ?? null,
          valid: errors.length === 0,
          assignments: job?.assignments.length ?? null,
          errors,
          warnings,
        })),
      )
    }
    for (const { path, job, errors, warnings } of checked) {
      for (const warning of warnings) yield* note(`warning: ${renderPlace(warning)}`)
      for (const error of errors) yield* note(renderPlace(error))
      if (job === undefined || json) continue
      const tasks = counted(job.assignments.length, "task")
      const sessions = job.sessions.length === 0 ? "" : `, ${counted(job.sessions.length, "session")}`
      yield* say(`${path}: valid, ${tasks}${sessions}`)
    }
    yield* endWith(failed ? exitCodes.usage : exitCodes.ok)
  }),
).pipe(Command.withDescription("Checks job files without a network; each error as file:line:column: message"))
