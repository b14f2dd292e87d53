/**
 * `nightjar validate JOB…`: checks job files offline; reports every error with its file, line and column,
 * all at once.
 */
import { Effect } from "effect"
import { Command } from "effect/cli"
import { jobArguments, jsonFlag } from "../CommonFlags.ts"
import { exitCodes } from "../../messages/ExitCodes.ts"
import { endWith } from "../Failures.ts"
import { checkJobs, tellProblems } from "../Jobs.ts"
import { say, sayJson } from "../Output.ts"
import { counted } from "../../base/Text.ts"

export const validate = Command.make(
  "validate",
  { jobs: jobArguments, json: jsonFlag },
  Effect.fn("Validate.handle")(function* ({ jobs, json }) {
    const checked = yield* checkJobs(jobs)
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
    const errors = yield* tellProblems(checked)
    for (const { path, job } of checked) {
      if (job === undefined || json) continue
      const tasks = counted(job.assignments.length, "task")
      const sessions = job.sessions.length === 0 ? "" : `, ${counted(job.sessions.length, "session")}`
      yield* say(`${path}: valid, ${tasks}${sessions}`)
    }
    yield* endWith(errors > 0 ? exitCodes.usage : exitCodes.ok)
  }),
).pipe(Command.withDescription("Checks job files offline; each error with file:line:column"))
