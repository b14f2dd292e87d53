/**
 * `nightjar init NAME`: writes a commented job file, but never over an existing one. The job is valid as
 * written, except for what it cannot know: who the customers are.
 */
import { mkdirSync } from "node:fs"
import { Effect } from "effect"
import { Argument, Command } from "effect/cli"
import { codeOf, durableFiles } from "../../base/DurableFile.ts"
import { jsonFlag } from "../CommonFlags.ts"
import { refuse } from "../Failures.ts"
import { say, sayJson } from "../Output.ts"

const namePattern = /^[a-z0-9](?:[a-z0-9-]{0,62}[a-z0-9])?$/

export const init = Command.make(
  "init",
  {
    name: Argument.String("NAME").pipe(
      Argument.withDescription("The job's name: a-z, 0-9 and hyphens"),
      Argument.withDefault("nightly"),
    ),
    json: jsonFlag,
  },
  Effect.fn("Init.handle")(function* ({ name, json }) {
    if (!namePattern.test(name)) return yield* refuse("job-name-invalid")
    const { jobTemplate } = yield* Effect.promise(() => import("../../jobs/Template.ts"))
    const path = `jobs/${name}.yaml`
    const files = yield* durableFiles
    yield* Effect.try({
      try: () => {
        mkdirSync("jobs", { recursive: true })
        files.create(path, jobTemplate(name))
      },
      catch: (cause) =>
        codeOf(cause) === "EEXIST"
          ? refuse("job-file-exists", { path })
          : refuse("job-file-unwritable", { path, why: codeOf(cause) }),
    })
    if (json) return yield* sayJson({ path })
    yield* say(
      `${path} was written. Fill it in, then run ` +
        `\`nightjar validate ${path}\` and \`nightjar plan ${path}\`.`,
    )
  }),
).pipe(Command.withDescription("Writes jobs/NAME.yaml, a commented job file to fill in"))
