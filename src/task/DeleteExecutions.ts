/**
 * Deletes at the service what is safe here: only closed executions of settled tasks whose bodies are in the
 * newest published version, each with its receipt, each intent in the ledger before the request (section
 * 4.5). 204 and 404 count as deleted, 404 only if the execution cannot be read any more; what cannot be
 * deleted now stays pending for the next run.
 */
import { isDeepStrictEqual } from "node:util"
import { Clock, Duration, Effect, Option, Struct } from "effect"
import type { EngineReference, ExecutionId, RunId, TaskId } from "../service/Ids.ts"
import { retryCall } from "../client/Pacing.ts"
import { EngineOfCalls, Service, type CallFailure, type DeleteAnswer } from "../client/Service.ts"
import { waitMs, type WaitPolicy } from "../base/Time.ts"
import { Landing } from "../landing/Landing.ts"
import type { Fact } from "../ledger/Fact.ts"
import { append, Ledger } from "../ledger/Ledger.ts"
import { defectOf } from "./Quarantine.ts"
import {
  isToDelete,
  remainsAny,
  type AttemptState,
  type RunState,
  type TaskState,
} from "../ledger/RunState.ts"
import { readState } from "./Attempt.ts"
import { answeredBy, answerOf } from "./Ending.ts"
import { findHere, soughtOf } from "./MovedService.ts"
import { documentMissing } from "./Verdict.ts"

/** How many deletions run at once, and how often each is tried. */
const deletionsAtOnce = 16
const triesMax = 6
/** How often a deletion is repeated if an execution that was read as closed answers 409 "still running". */
const stillRunningMax = 3
const stillRunningStatus = 409
const stillRunningWaits: WaitPolicy = { base: Duration.seconds(4), max: Duration.seconds(8), jitter: 0 }
/** After this many unanswered deletions in a row, the rest stays pending: the service is unreachable. */
const failedInARowMax = 32

export interface DueDeletion {
  readonly task_id: TaskId
  readonly execution_id: ExecutionId
  readonly engine_reference?: EngineReference | undefined
  readonly landed_sha256: string
  /** Only as it closed: what was counted then, and whether an earlier process was told that it still runs. */
  readonly only?: {
    readonly counted: Readonly<Record<string, number>> | undefined
    readonly wasRunning: boolean
  }
}

/**
 * Only of settled tasks, and only with a receipt of published bodies that alone prove that everything is
 * here; nothing of a run that a gate holds back.
 */
export const dueDeletions = (run: RunState): ReadonlyArray<DueDeletion> => {
  // A gate doubts what arrived, and the service still has the original: a person decides, or a later version.
  if (run.held !== undefined) return []
  return [...run.tasks.values()].flatMap((task) =>
    task.attempts.flatMap((attempt) => {
      const { execution_id, receipt: landed_sha256 } = attempt
      if (execution_id === undefined || landed_sha256 === undefined || !mayDelete(run, task, attempt))
        return []
      const { task_id, engine_reference } = task.planned
      const counted = attempt.closed?.fact.products_count
      const only = { counted, wasRunning: attempt.deletion?.http_status === stillRunningStatus }
      return [{ task_id, engine_reference, execution_id, landed_sha256, only }]
    }),
  )
}

/**
 * A document that is not here any more is fetched again, and its execution stays until it is. Returns whether
 * there is one. `prune` removes none of an execution that the service may have.
 */
export const noteLostDocuments = Effect.fn("DeleteExecutions.noteLostDocuments")(function* (run: RunState) {
  const { hasAttachment } = yield* Landing
  const seen = new Map<string | undefined, boolean>()
  const isHere = Effect.fnUntraced(function* (sha256: string | undefined) {
    const found = seen.get(sha256) ?? (yield* hasAttachment(sha256))
    seen.set(sha256, found)
    return found
  })
  const facts: Array<Fact> = []
  for (const { planned, attempts, attachments } of run.tasks.values())
    for (const one of attempts) {
      if (one.execution_id === undefined || !remainsAny(one, "unread", "kept", "due", "asked")) continue
      const { attempt, execution_id, session_id, sessions_before = [], proof } = one
      const about = { run_id: run.started.run_id, task_id: planned.task_id }
      const before = facts.length
      for (const document of attachments) {
        const isOwn = [session_id, ...sessions_before].includes(document.session_id)
        if (!isOwn || document.status !== "downloaded" || (yield* isHere(document.sha256))) continue
        const ids = Struct.pick(document, ["session_id", "attachment_id"])
        facts.push({ _tag: "AttachmentRead", ...about, ...ids, status: "failed" })
      }
      if (facts.length === before || !one.drained) continue
      const kept = {
        reason: "DOCUMENTS_SHORT",
        families: proof?.families ?? [],
        message: documentMissing,
      } as const
      facts.push({ _tag: "AttemptKept", ...about, attempt, execution_id, ...kept })
    }
  if (facts.length > 0) yield* append(...facts)
  return facts.length > 0
})

const mayDelete = ({ published }: RunState, { settled }: TaskState, attempt: AttemptState): boolean =>
  isToDelete(attempt) &&
  // What was learnt after the publication is not part of it.
  [settled, attempt.closed].every((one) => one !== undefined && one.seq < (published?.seq ?? -Infinity))

/** What the deletions are of, and at which service, as `serviceNameOf` names it. */
interface Place {
  readonly run: RunState
  readonly here: string
}

/**
 * Deletes these until a clock time, each intent recorded first; what is not deleted by then stays pending,
 * and so does what was started at another service, unless this one shows it as ours. Whoever calls it answers
 * for what is not safe here.
 */
export const deleteAll = Effect.fn("DeleteExecutions.delete")(function* (
  place: Place,
  all: ReadonlyArray<DueDeletion>,
  untilAt: number,
) {
  let failedInARow = 0
  const deleteNext = Effect.fnUntraced(function* (due: DueDeletion) {
    if (failedInARow >= failedInARowMax || (yield* Clock.currentTimeMillis) >= untilAt) return
    // A defect while handling one answer affects only that deletion: it stays pending, and the next run
    // tries again.
    const deletion = Effect.provideService(
      deleteHere(place, due, untilAt),
      EngineOfCalls,
      due.engine_reference,
    )
    const isFailure = yield* Effect.catchCause(deletion, (cause) =>
      defectOf(cause) === undefined ? Effect.failCause(cause) : Effect.as(Effect.logDebug(cause), true),
    )
    failedInARow = isFailure ? failedInARow + 1 : 0
  })
  yield* Effect.forEach(all, deleteNext, { concurrency: deletionsAtOnce, discard: true })
})

/** Undefined if the service does not say. */
const look = Effect.fnUntraced(function* ({ execution_id }: DueDeletion, untilAt: number) {
  const service = yield* Service
  const reading = answeredBy(retryCall(service.readExecution(execution_id), { triesMax, untilAt }), untilAt)
  return Option.getOrUndefined(Option.map(yield* Effect.option(reading), readState))
})

/**
 * Whether the execution is still as it closed: one that is not closed, although a state said so, may have
 * become more than what was read.
 */
const isAsRead = Effect.fnUntraced(function* (due: DueDeletion, untilAt: number) {
  const { only } = due
  if (only === undefined) return true
  const looked = yield* look(due, untilAt)
  if (looked?._tag !== "Closed") return looked?._tag === "Gone"
  const { products_count } = looked.view
  const counts = products_count?._tag === "Counted" ? products_count.counts : undefined
  return isDeepStrictEqual(counts, only.counted)
})

const soughtFor = ({ run: { started, tasks }, here }: Place, { task_id, execution_id }: DueDeletion) => {
  const { planned, attempts = [] } = tasks.get(task_id) ?? {}
  const attempt = attempts.find((one) => one.execution_id === execution_id)
  const { customer_id, engine_reference } = planned ?? {}
  if (attempt === undefined || customer_id === undefined || engine_reference === undefined) return undefined
  return soughtOf(started, { task_id, customer_id, engine_reference }, attempt, here)
}

/** Deletes one execution, if it is at this service; true if that failed to answer. */
const deleteHere = Effect.fnUntraced(function* (place: Place, due: DueDeletion, untilAt: number) {
  const sought = soughtFor(place, due)
  const found = sought === undefined ? "found" : yield* findHere(sought, untilAt)
  if (found !== "found") return found === "unanswered"
  return yield* deleteOne(place.run.started.run_id, due, untilAt)
})

/** True if the service failed to answer. */
const deleteOne = Effect.fnUntraced(function* (run_id: RunId, due: DueDeletion, untilAt: number) {
  const { task_id, execution_id, landed_sha256, only } = due
  const service = yield* Service
  const ledger = yield* Ledger
  yield* ledger.append([{ _tag: "DeleteIntended", run_id, task_id, execution_id, landed_sha256 }])
  let answer: Answer = "still_running"
  for (let tries = 1; tries <= stillRunningMax && answer === "still_running"; tries++) {
    const grownMs = waitMs(stillRunningWaits, tries - 1, 0)
    const pauseMs = tries > 1 ? grownMs : 0
    if ((yield* Clock.currentTimeMillis) + pauseMs >= untilAt) break
    yield* Effect.sleep(pauseMs)
    if ((only?.wasRunning === true || tries > 1) && !(yield* isAsRead(due, untilAt))) break
    const deletion = retryCall(service.deleteExecution(execution_id), { triesMax, untilAt })
    answer = yield* answerOf(answeredBy(deletion, untilAt))
  }
  // A gateway that knows no such call answers 404, too, and the execution is still there.
  if (answer === "gone" && (yield* look(due, untilAt))?._tag !== "Gone") answer = "there"
  yield* ledger.append([{ _tag: "DeleteAnswered", run_id, task_id, execution_id, ...deletionOf(answer) }])
  return typeof answer !== "string"
})

/** `there`: 404, and the execution can be read, or nobody says that it cannot. */
type Answer = DeleteAnswer | CallFailure | "there"

const answered = {
  deleted: { http_status: 204, outcome: "deleted" },
  gone: { http_status: 404, outcome: "gone" },
  there: { http_status: 404, outcome: "pending" },
  still_running: { http_status: stillRunningStatus, outcome: "pending" },
} as const

const deletionOf = (answer: Answer) => {
  if (typeof answer === "string") return answered[answer]
  const http_status = "http_status" in answer ? answer.http_status : undefined
  return { http_status: http_status ?? 0, outcome: "pending" } as const
}
