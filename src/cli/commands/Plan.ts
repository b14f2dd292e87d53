/**
 * `plan JOB…`: what `run` would start now, without starting anything, by the same decision as `run` and
 * `rerun --dry-run`.
 */
import { Duration, Effect, Layer } from "effect"
import type { Job } from "../../jobs/Job.ts"
import { nightAround, nightExitCode } from "../../ledger/WholeNight.ts"
import { exitCodes } from "../../messages/ExitCodes.ts"
import { accessKey } from "../../service/Ids.ts"
import { command } from "../CommandRow.ts"
import { jobArguments, outputFolder, switchFlag } from "../Output.ts"
import { refuseSilent } from "../Notices.ts"
import { isPartial, loadNights, partFlags, partsOf } from "../Jobs.ts"
import { openedLedger, refuseLostLedger, refuseOlderLedger } from "../OutputFolder.ts"
import { refuseOtherPseudonyms } from "../OutputFolder.ts"
import { renderPreview, tokenName, turnLines, type Preview } from "../PlanText.ts"
import type { Task } from "../../task/Assignment.ts"
import { wrap } from "../../report/TextTable.ts"
import { Wiring } from "../Wiring.ts"
import { isoTime } from "../../base/Text.ts"
import { inStartOrder, looksOf, type Unasked } from "../../run/PlanJob.ts"
import { previewNight } from "../../run/Preview.ts"
import { differences } from "../../jobs/ResultsSources.ts"
import { expectedCalls, expectEnd } from "../../task/ExpectedEnd.ts"
import type { Request } from "../../task/ChooseRun.ts"
import { estimateNight } from "../../task/Expectations.ts"
import { turnsOf } from "../../run/JobTurns.ts"

const hows = { New: "new", Resume: "resume", NothingToDo: "nothing" } as const

const previewHere = Effect.fnUntraced(function* (job: Job, asked: Request) {
  const ledger = yield* openedLedger
  yield* refuseOlderLedger(yield* outputFolder)
  const preview = yield* previewNight(job, asked)
  const { chosen, plan, over, run, learnt, now, deadlineAt } = preview
  const isNothing = chosen._tag === "NothingToDo"
  const isLeft =
    isNothing &&
    run !== undefined &&
    nightExitCode(yield* nightAround(ledger, run, ledger.state)) === exitCodes.leftovers
  const overIds = new Set<string>(over.map(({ task_id }) => task_id))
  const ahead = isNothing ? [] : plan.tasks.filter(({ task_id }) => !overIds.has(task_id))
  const kept = new Set(learnt.carried)
  const carried = preview.starting.filter((task) => kept.has(accessKey(task)))
  const deadlineIn = deadlineAt === undefined ? undefined : deadlineAt - now
  const candidates = inStartOrder(ahead, learnt).map(asCandidate)
  return {
    ...preview,
    how: hows[chosen._tag],
    isLeft,
    carried: new Set<string>(carried.map(({ task_id }) => task_id)),
    expected: estimateNight(ahead, job.concurrency, plan.conflicts),
    end:
      ahead.length === 0
        ? undefined
        : expectEnd(candidates, job.concurrency, learnt.expectations, deadlineIn),
    calls: expectedCalls(ahead, job.polling, looksOf(learnt, job)),
    sources: differences(job.sources),
  } satisfies Preview
})

/** What the run that is asked for would start now. */
export const previewJob = Effect.fnUntraced(function* (job: Job, asked: Request) {
  const wiring = yield* Wiring
  const output = yield* outputFolder
  yield* refuseOtherPseudonyms(output, job)
  return yield* previewHere(job, asked).pipe(
    Effect.provide(Layer.merge(wiring.plan(job.service, output), wiring.tokenStore(job, output))),
  )
})

export type Previewed = Effect.Success<ReturnType<typeof previewJob>>

const asCandidate = <Work extends Task>(task: Work) => ({ ...task, account: task.account.account })

export const plan = command("plan", {
  flags: { jobs: jobArguments, ...partFlags, all: switchFlag("all", "Every task, however many there are") },
  run: function* ({ jobs, ...part }, output) {
    yield* refuseLostLedger(output)
    const wiring = yield* Wiring
    const loaded = yield* loadNights(jobs, isPartial(part))
    const parts = yield* partsOf(loaded, part)
    yield* refuseSilent(loaded)
    const isPart = parts !== undefined
    const previews = yield* Effect.forEach(loaded, (job) =>
      previewJob(job, { further: isPart, parent: undefined, only: parts?.get(job.name), isPart }),
    )
    const [first] = loaded
    const turns = first && (yield* Effect.provide(turnsOf(loaded), wiring.plan(first.service, output)))
    return { previews, turns: turns ?? [] }
  },
  json: ({ previews, turns }) =>
    previews.map((preview) => ({
      ...previewJson(preview),
      waits_for: turns.find(({ job }) => job === preview.job.name)?.waits ?? [],
    })),
  text: ({ previews, turns }, out, { all }) => [
    ...previews.map((preview) => renderPreview(preview, out, all)),
    ...turnLines(turns).map((line) => wrap(line, out.width)),
  ],
})

const unaskedJson = ({ fetched_at, ...unasked }: Unasked) => ({ ...unasked, form_of: isoTime(fetched_at) })

/** Only the fingerprint of a login, or the name of its token. */
const previewJson = ({ job, how, collect, elsewhere, plan, expected, end, calls, ...preview }: Preview) => {
  const starting = new Set(preview.starting.map(({ task_id }) => task_id))
  const waiting = new Set(preview.waiting.map(({ task_id }) => task_id))
  const reasons = new Map(preview.notStarted.map(({ task_id, reason }) => [task_id, reason]))
  const silent = new Set(preview.unasked.map(({ engine_reference }) => engine_reference))
  const after = (duration: Duration.Duration) =>
    new Date(preview.now + Duration.toMillis(duration)).toISOString()
  return {
    job: job.name,
    run_id: plan.run_id,
    how,
    collect_first: collect,
    elsewhere,
    tasks: plan.tasks.map(
      ({ task_id, customer_id, engine_reference, features, lacking, availability, ...task }) => ({
        task_id,
        customer_id,
        engine_reference,
        features: features.map(({ code }) => code),
        lacking,
        availability: silent.has(engine_reference) ? "not_known" : availability,
        fingerprint: task.fingerprint,
        token: tokenName(task.start),
        expected_ms: Duration.toMillis(task.expected),
        source: task.source,
        starts: starting.has(task_id),
        waits_for_login: waiting.has(task_id),
        not_started: reasons.get(task_id) ?? null,
        carried: preview.carried.has(task_id),
      }),
    ),
    settled: [
      ...plan.settled.map(({ features, ...verdict }) => ({
        ...verdict,
        features: features.map(({ code }) => code),
      })),
      ...preview.removed,
    ],
    sessions: plan.sessions,
    sources: job.sources,
    conflicts: plan.conflicts,
    warnings: plan.warnings,
    unasked: preview.unasked.map(unaskedJson),
    expected_ms: Duration.toMillis(expected),
    expected_end: end
      ? { p50: after(end.p50), p95: after(end.p95), late: end.late, late_p95: end.maybeLate }
      : null,
    deadline: preview.deadlineAt === undefined ? null : new Date(preview.deadlineAt).toISOString(),
    requests: calls,
  }
}
