/**
 * Before the first night: `init` writes a commented job file, `validate` checks job files offline, `notify
 * test` tries the receivers of a job. None needs an output folder or a service.
 */
import { mkdirSync } from "node:fs"
import { Clock, Effect, Result } from "effect"
import { Argument, Command } from "effect/cli"
import { codeOf, durableFiles, placeText } from "../../base/DurableFile.ts"
import { counted } from "../../base/Text.ts"
import type { Job, Receiver } from "../../jobs/Job.ts"
import { exitCodes } from "../../messages/ExitCodes.ts"
import type { Notice } from "../../report/Notice.ts"
import { table } from "../../report/TextTable.ts"
import { command } from "../CommandRow.ts"
import { argument, jobArguments } from "../Output.ts"
import { refuse } from "../Failures.ts"
import { checkJobs, loadOne, tellProblems, withSql } from "../Jobs.ts"
import { Wiring } from "../Wiring.ts"

const namePattern = /^[a-z0-9](?:[a-z0-9-]{0,62}[a-z0-9])?$/

/** Never over an existing file. Valid as written, but for what it cannot know: its customers. */
export const init = command("init", {
  flags: {
    name: Argument.withDefault(argument("NAME", "The job's name: a-z, 0-9 and hyphens"), "nightly"),
  },
  run: function* ({ name }) {
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
    return { path }
  },
  text: ({ path }) =>
    `${path} was written. Fill it in, then run \`nightjar validate ${path}\` and \`nightjar plan ${path}\`.`,
})

export const validate = command("validate", {
  flags: { jobs: jobArguments },
  run: ({ jobs }) => checkJobs(jobs).pipe(Effect.flatMap(withSql), Effect.tap(tellProblems)),
  json: (checked) =>
    checked.map(({ path, job, errors, warnings }) => ({
      path,
      job: job?.name ?? null,
      valid: errors.length === 0,
      assignments: job?.assignments.length ?? null,
      errors,
      warnings,
    })),
  text: (checked) =>
    checked.flatMap(({ path, job }) => {
      if (job === undefined) return []
      const tasks = counted(job.assignments.length, "task")
      const sessions = job.sessions.length === 0 ? "" : `, ${counted(job.sessions.length, "session")}`
      return [`${path}: valid, ${tasks}${sessions}`]
    }),
  exit: (checked) => (checked.every(({ errors }) => errors.length === 0) ? exitCodes.ok : exitCodes.usage),
})

/** How long it took includes resolving the receiver's address. */
const tryReceiver = Effect.fnUntraced(function* (job: Job, receiver: Receiver, notice: Notice) {
  const { tryOut } = yield* Effect.promise(() => import("../Receivers.ts"))
  const begunAt = yield* Clock.currentTimeMillis
  const answered = yield* Effect.result(tryOut(receiver, notice))
  const told = Result.isSuccess(answered)
  const answer = Result.merge(answered)
  const elapsed_ms = (yield* Clock.currentTimeMillis) - begunAt
  const { alarmPlace } = yield* Effect.promise(() => import("../Notices.ts"))
  const place = placeText(alarmPlace(job, receiver.name))
  return { receiver: receiver.name, kind: receiver._tag.toLowerCase(), place, told, answer, elapsed_ms }
})

const test = command(
  "test",
  {
    more: `
      Sends one notice, marked as a test, to each receiver of a job, whatever its \`on\` says, and shows
      what each answered and how long it took. A \`ping\` gets it at /log, which changes no check. No
      address is shown. The exit code is 0 only if all answered well, else 2.`,
    examples: { "nightjar notify test jobs/nightly.yaml": "Before the first night" },
    flags: { path: argument("JOB", "The job file whose receivers are told") },
    run: function* ({ path }) {
      const job = yield* loadOne(path)
      if (job.notify.length === 0) return yield* refuse("receivers-absent", { path })
      const { originOf } = yield* Effect.promise(() => import("../Notices.ts"))
      const { testNotice } = yield* Effect.promise(() => import("../../report/Notice.ts"))
      const notice = testNotice(yield* originOf(job))
      // All at once: ten dead receivers take as long as one.
      return yield* Effect.forEach(job.notify, (receiver) => tryReceiver(job, receiver, notice), {
        concurrency: "unbounded",
      }).pipe(Effect.scoped, Effect.provide((yield* Wiring).receivers))
    },
    text: (answers, out) => {
      const rows = answers.map(({ receiver, kind, place, told, answer, elapsed_ms }) => [
        told ? "told" : "failed",
        receiver,
        kind,
        `${elapsed_ms} ms`,
        told ? answer : `${place}: ${answer}`,
      ])
      return table(["", "receiver", "kind", "took", "answer"], rows, out)
    },
    exit: (answers) => (answers.every(({ told }) => told) ? exitCodes.ok : exitCodes.usage),
  },
  "Sends one marked notice to each receiver of a job",
)

export const notify = Command.make("notify").pipe(Command.withSubcommands([test]))
