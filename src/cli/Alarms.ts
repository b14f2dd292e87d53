/**
 * Whether an alarm would arrive: what `notify` and `telemetry` of a job refer to is resolved before it is
 * needed, by the same code that uses it then. `doctor`, `plan` and the start of a run ask this; an alarm that
 * nobody would hear is a wrong setting, so a run does not start with one.
 */
import { Effect } from "effect"
import { counted } from "../base/Counted.ts"
import { renderProblem } from "../base/FileProblem.ts"
import type { Problem } from "../base/FileProblem.ts"
import type { Job } from "../jobs/Job.ts"
import type { Secrets } from "../jobs/Secrets.ts"
import { failed, ok } from "./Check.ts"
import type { Check } from "./Check.ts"
import { refuse } from "./Failures.ts"
import { note } from "./Output.ts"
import { Wiring } from "./Wiring.ts"

type Checked = readonly [name: string, check: Effect.Effect<unknown, string, Secrets>]

const checksOf = Effect.fnUntraced(function* ({ notify, telemetry }: Job) {
  const checks: Array<Checked> = []
  if (notify.length > 0) {
    const { checkReceiver } = yield* Effect.promise(() => import("./Receivers.ts"))
    checks.push(...notify.map((receiver): Checked => [receiver.name, checkReceiver(receiver)]))
  }
  if (telemetry !== undefined) {
    const { readEndpoint, readHeaders } = yield* Effect.promise(() => import("./RunTelemetry.ts"))
    const worded = Effect.mapError(({ message }: { readonly message: string }) => message)
    const { otlp, headers } = telemetry
    if (otlp !== undefined) checks.push(["telemetry.otlp", worded(readEndpoint(otlp))])
    checks.push(["telemetry.headers", worded(readHeaders(headers))])
  }
  return checks
})

const problemsOf = Effect.fnUntraced(function* (job: Job) {
  const answers = yield* Effect.forEach(
    yield* checksOf(job),
    ([name, check]) =>
      Effect.match(check, {
        onSuccess: (): ReadonlyArray<Problem> => [],
        onFailure: (why): ReadonlyArray<Problem> => {
          const { file, line, column } = job.alarmPlaces?.get(name) ?? { file: job.path, line: 1, column: 1 }
          return [{ file, line, column, message: `\`${name}\`: ${why}` }]
        },
      }),
    { concurrency: 8 },
  )
  return answers.flat()
})

/** Exit code 2, after every problem was printed with its place in the job. */
export const refuseSilent = Effect.fnUntraced(function* (jobs: ReadonlyArray<Job>) {
  const wiring = yield* Wiring
  const problems = (yield* Effect.forEach(jobs, problemsOf).pipe(Effect.provide(wiring.secrets))).flat()
  for (const problem of problems) yield* note(renderProblem(problem))
  if (problems.length > 0)
    return yield* refuse("alarms-unreachable", { problems: counted(problems.length, "problem") })
})

/** A line of `doctor`; none for a job that tells nobody. */
export const alarmsCheck = Effect.fnUntraced(function* (job: Job) {
  const { notify, telemetry } = job
  if (notify.length === 0 && telemetry === undefined) return []
  const what = `${job.path}: alarms`
  const problems = yield* problemsOf(job)
  const receivers = counted(notify.length, "receiver")
  const says = `${receivers}${telemetry === undefined ? "" : " and telemetry"}, resolved and not told`
  const check: Check =
    problems.length === 0
      ? ok(what, says)
      : failed(what, "alarms-unresolved", { detail: problems.map(renderProblem).join("; ") })
  return [check]
})
