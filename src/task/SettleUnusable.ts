/**
 * The wall around each task of a run: an answer that it could not use, or a defect of ours, settles that
 * task with `ANSWER_UNUSABLE` and is reported; every other task continues. An execution that may still be
 * open blocks its customer and its account, and releases its slot; its login counts as one that may have
 * failed, because nothing lowers what its intent raised.
 */
import { Cause, Effect, Result } from "effect"
import { EngineOfCalls } from "../client/Service.ts"
import type { TaskId } from "../service/Ids.ts"
import { cutText } from "../service/BodyBounds.ts"
import { own } from "../service/Ends.ts"
import type { Fact } from "../ledger/Fact.ts"
import { courseOf, isUnseen, type AttemptState, type ClosedAttempt, type Course } from "../ledger/RunState.ts"
import { attemptKeys } from "../ledger/FactKeys.ts"
import { leave, settle, type Failure, type Night, type Row } from "./Night.ts"
import { noteFailed } from "./Outage.ts"
import { AnswerUnusable, defectOf, defectText, unusableText } from "./Quarantine.ts"
import type { Reading } from "./Verdict.ts"

/** The part of a cause that concerns only its task; undefined if it concerns the whole run. */
const unusableOf = (cause: Cause.Cause<unknown>): AnswerUnusable | undefined => {
  if (Cause.hasInterrupts(cause)) return undefined
  const failed = Cause.findError(cause)
  if (Result.isSuccess(failed)) return failed.success instanceof AnswerUnusable ? failed.success : undefined
  const found = defectOf(cause)
  return found && new AnswerUnusable({ what: "task", why: defectText(found.defect) })
}

const catchUnusable = <A, E, R, B, R2>(
  task: Effect.Effect<A, E, R>,
  instead: (failure: AnswerUnusable) => Effect.Effect<B, Failure, R2>,
): Effect.Effect<A | B, Exclude<E, AnswerUnusable> | Failure, R | R2> =>
  Effect.catchCause(task, (cause): Effect.Effect<B, Exclude<E, AnswerUnusable> | Failure, R2> => {
    const failure = unusableOf(cause)
    if (failure !== undefined) return Effect.andThen(Effect.logDebug(cause), instead(failure))
    return Effect.failCause(cause as Cause.Cause<Exclude<E, AnswerUnusable>>)
  })

/** A task for which an execution may exist. */
export const guarded = <R>(night: Night, row: Row, task: Effect.Effect<void, Failure | AnswerUnusable, R>) =>
  catchUnusable(Effect.provideService(task, EngineOfCalls, row.work.engine_reference), (failure) =>
    settleUnusable(night, row, failure),
  )

/** Only reads: a session that its customer ran alone, or a closed execution that was kept. */
export const guardedReading = <R>(
  night: Night,
  task_id: TaskId,
  task: Effect.Effect<void, Failure | AnswerUnusable, R>,
  last?: ClosedAttempt,
) =>
  catchUnusable(
    Effect.provideService(task, EngineOfCalls, night.states.get(task_id)?.planned.engine_reference),
    (failure) => settleAs(night, task_id, failure, last),
  )

/** Results that cannot be used stay at the service, like those that cannot be reached. */
export const keptWhereUnusable = <R>(
  night: Pick<Night, "run_id">,
  reading: Effect.Effect<Reading, Failure | AnswerUnusable, R>,
) =>
  catchUnusable(reading, (failure) => {
    const message = cutText(unusableText(failure, night.run_id))
    return Effect.succeed<Reading>({ _tag: "Kept", reason: "ANSWER_UNUSABLE", families: [], message })
  })

/** A task that is cut off meanwhile has this verdict, and gets no other. */
const settleUnusable = Effect.fnUntraced(function* (night: Night, row: Row, failure: AnswerUnusable) {
  const { task_id } = row.work
  const course = foundOf(night, row)
  const last = course === undefined || course._tag === "Planned" ? undefined : course.last
  yield* settleAs(night, task_id, failure, last)
  const isUntold = course === undefined || night.broken.has(task_id)
  if (isUntold || isUnseen(course)) yield* noteFailed(night, row, last?.probed === true)
  if (isUntold) night.schedule.abandon(task_id)
  else yield* leave(night, row)
}, Effect.uninterruptible)

/** As far as its facts could be read; undefined if its past itself meets a defect of ours. */
const foundOf = ({ states }: Night, { work }: Row): Course | undefined => {
  try {
    return courseOf(states.get(work.task_id) ?? { attempts: [] })
  } catch {
    return undefined
  }
}

const settleAs = (night: Night, task_id: TaskId, failure: AnswerUnusable, last: AttemptState | undefined) => {
  const message = cutText(unusableText(failure, night.run_id))
  return settle(night, task_id, { ...own("ANSWER_UNUSABLE"), message }, keptFacts(last, message))
}

/** Whatever was proved before, nothing is deleted of a task that went wrong. */
const keptFacts = (last: AttemptState | undefined, message: string): ReadonlyArray<Fact> => {
  const closed = last?.closed?.fact
  if (closed?.landed === undefined || last?.deletion !== undefined) return []
  const ids = { ...attemptKeys(closed), execution_id: closed.execution_id }
  return [{ _tag: "AttemptKept", ...ids, reason: "ANSWER_UNUSABLE", families: [], message }]
}
