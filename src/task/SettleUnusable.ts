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
import type { AttemptClosed, Fact } from "../ledger/Fact.ts"
import { attemptKeys } from "../ledger/FactKeys.ts"
import type { Failure, Night, Book } from "./Night.ts"
import { noteEnd, release } from "./Night.ts"
import { append } from "../ledger/Ledger.ts"
import { noteFailed } from "./Outage.ts"
import { tell } from "./Progress.ts"
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
export const guarded = <R>(
  night: Night,
  book: Book,
  task: Effect.Effect<void, Failure | AnswerUnusable, R>,
) =>
  catchUnusable(Effect.provideService(task, EngineOfCalls, book.work.engine_reference), (failure) =>
    Effect.andThen(settleUnusable(night, book, failure), tellUnusable(book.work.task_id)),
  )

/** Only reads: a session that its customer ran alone, or a closed execution that was kept. */
export const guardedReading = <R>(
  night: Night,
  task_id: TaskId,
  task: Effect.Effect<void, Failure | AnswerUnusable, R>,
  closed?: typeof AttemptClosed.Type,
) =>
  catchUnusable(
    Effect.provideService(task, EngineOfCalls, night.run.tasks.get(task_id)?.planned.engine_reference),
    (failure) => {
      const message = unusableText(failure, night.run_id)
      const written = writeUnusable(night, task_id, message, keptFacts(closed, cutText(message)))
      return Effect.andThen(Effect.uninterruptible(written), tellUnusable(task_id))
    },
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
const settleUnusable = Effect.fnUntraced(function* (night: Night, book: Book, failure: AnswerUnusable) {
  const { task_id } = book.work
  const message = unusableText(failure, night.run_id)
  book.isOver = true
  yield* writeUnusable(night, task_id, message, keptFacts(book.closed, cutText(message)))
  if (book.stage === "sent") yield* noteFailed(night, book)
  if (book.stage === "sent" || book.stage === "open") night.schedule.abandon(task_id)
  else yield* release(night, task_id)
}, Effect.uninterruptible)

const writeUnusable = Effect.fnUntraced(function* (
  night: Night,
  task_id: TaskId,
  message: string,
  beside: ReadonlyArray<Fact>,
) {
  const verdict = { ...unusable, message: cutText(message) }
  yield* append(...beside, { _tag: "TaskSettled", run_id: night.run_id, task_id, ...verdict })
  noteEnd(night, task_id, verdict.outcome)
})

const unusable = own("ANSWER_UNUSABLE")
const tellUnusable = (task_id: TaskId) =>
  tell({ _tag: "Settled", task_id, outcome: unusable.outcome, reason: unusable.reason })

/** Whatever was proved before, nothing is deleted of a task that went wrong. */
const keptFacts = (closed: typeof AttemptClosed.Type | undefined, message: string): ReadonlyArray<Fact> => {
  if (closed?.landed === undefined) return []
  const ids = { ...attemptKeys(closed), execution_id: closed.execution_id }
  return [{ _tag: "AttemptKept", ...ids, reason: "ANSWER_UNUSABLE", families: [], message }]
}
