/**
 * The run of `acquaint`: one assignment of a job through the ordinary pipeline, so that all its promises
 * hold (ledger, breaker, proofs), then a few reads that a normal run has no reason to make. It starts
 * nothing that a normal run would not start.
 */
import { Effect, Stream } from "effect"
import { RunId } from "../../service/Ids.ts"
import type { EngineReference, SessionId } from "../../service/Ids.ts"
import { makeRecorder } from "./Recorder.ts"
import type { Recorder } from "./Recorder.ts"
import { jsonOf, matcherOf } from "./Calls.ts"
import { lastAnswer } from "./Evidence.ts"
import { Service } from "../../client/Service.ts"
import { isAddressable } from "../../service/ResultsSource.ts"
import type { SourceIds } from "../../service/ResultsSource.ts"
import type { Assignment, Job } from "../../jobs/Job.ts"
import { Ledger } from "../../ledger/Ledger.ts"
import { planJob } from "../../run/PlanJob.ts"
import { attachmentIds } from "../../records/AttachmentIds.ts"
import { summarisedNight } from "../Nights.ts"
import { toolVersion } from "../Version.ts"

const nameMax = 64

/**
 * The job for `acquaint`: one assignment, one attempt, no ticket, nothing deleted unless `remove`. Every
 * document is needed only before a deletion; otherwise one is enough to see how they are answered.
 */
export const cutDown = (job: Job, assignment: Assignment, remove: boolean): Job => {
  const { login } = assignment
  return {
    ...job,
    name: `acquaint-${job.name}`.slice(0, nameMax),
    assignments: [
      {
        ...assignment,
        login: login._tag === "Parameters" ? { ...login, tokenized_access: false } : login,
      },
    ],
    sessions: [],
    retry: { ...job.retry, max_attempts: 1 },
    flow_results: { ...job.flow_results, attachments: remove && job.flow_results.attachments },
    deadline: undefined,
    after_export: remove ? "delete" : "keep",
    tokens_key: login._tag === "Token" ? job.tokens_key : undefined,
  }
}

export const recorderFor = (job: Job, probeConflict: boolean): Recorder =>
  makeRecorder({ match: matcherOf(job.sources), probeConflict })

/** Why the plan would not start it; undefined if it would. */
const verdictBefore = Effect.fnUntraced(function* (job: Job) {
  const { plan } = yield* planJob(job, RunId.make(`${job.name}.acquaint`), undefined)
  return plan.settled[0]
})

/** How the newest `acquaint` run ended; unfinished work is resumed before any login is sent. */
const newestOf = Effect.fnUntraced(function* (job: Job) {
  const { runs } = yield* Ledger
  const newest = (yield* runs).findLast(({ fact }) => fact.job === job.name)
  if (newest === undefined) return "none"
  return newest.ended !== undefined && newest.ended.exit_code !== 4 ? "over" : "open"
})

const extraWithin = "2 minutes"

/** One document shows how documents are answered; the others are not downloaded. */
const readAttachment = Effect.fnUntraced(function* (job: Job, recorder: Recorder, session_id: SessionId) {
  const service = yield* Service
  const bodies = job.sources
    .filter(({ attachments }) => attachments)
    .map((source) => lastAnswer(source, recorder.calls))
  const [id] = bodies.flatMap((call) => (call === undefined ? [] : attachmentIds(jsonOf(call)).requestable))
  if (id === undefined) return
  const answer = yield* service.downloadAttachment(session_id, id)
  if (answer._tag === "Document") yield* Stream.runDrain(Stream.take(answer.bytes, 1))
})

/** Calls that a normal run had no reason to make, once each; whatever goes wrong is in the recording. */
const lookFurther = Effect.fnUntraced(function* (
  job: Job,
  recorder: Recorder,
  ids: SourceIds,
  engine_reference: EngineReference | undefined,
) {
  const service = yield* Service
  const { execution_id, session_id } = ids
  if (execution_id === undefined) return
  const asked = (name: string) => recorder.calls.some(({ route }) => route.name === name)
  // The catalogue is cached for half a day, so a second `acquaint` would not see the call.
  if (engine_reference !== undefined && !asked("showEngine"))
    yield* Effect.ignore(service.showEngine(engine_reference))
  if (!asked("pollExecution")) yield* Effect.ignore(service.pollExecution(execution_id))
  for (const source of job.sources) {
    const isAsked = lastAnswer(source, recorder.calls) !== undefined
    const isOpen = source.enabled && !isAsked && isAddressable(source, ids)
    if (isOpen) yield* Effect.ignore(service.readResults(source, ids))
  }
  const wanted = job.flow_results.attachments && !asked("downloadAttachment")
  if (wanted && session_id !== undefined) yield* Effect.ignore(readAttachment(job, recorder, session_id))
})

/** Runs the job, which is already cut down, and makes the extra reads unless the execution is deleted. */
export const acquaintedNight = Effect.fn("Acquaint.night")(function* (input: {
  readonly job: Job
  /** The job before it was cut down: what it wants beyond one assignment. */
  readonly whole: Job
  readonly output: string
  readonly recorder: Recorder
}) {
  const { job, whole, output, recorder } = input
  const newest = yield* newestOf(job)
  const refused = newest === "open" ? undefined : yield* verdictBefore(job)
  if (refused !== undefined) return { _tag: "Refused" as const, refused }
  const options = { further: newest === "over", parent: undefined, only: undefined, toolVersion }
  const { result, summary } = yield* summarisedNight(job, output, options)
  const task = [...result.state.tasks.values()].at(-1)
  const attempt = task?.attempts.at(-1)
  const isKept = attempt?.execution_id !== undefined && attempt.deletion?.outcome !== "deleted"
  if (isKept && attempt?.closed !== undefined) {
    const ids = { execution_id: attempt.execution_id, session_id: attempt.session_id }
    const looks = lookFurther(whole, recorder, ids, task?.planned.engine_reference)
    yield* looks.pipe(Effect.timeout(extraWithin), Effect.ignore)
  }
  return { _tag: "Ran" as const, result, summary, task, attempt, isKept }
})
