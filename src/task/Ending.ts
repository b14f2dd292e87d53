/**
 * How a run ends on time, whatever is running: seconds after the deadline, every call is answered or
 * abandoned, and a little later anything still running is cut off. What there was no time for is left at
 * the service for the next run.
 */
import { Clock, Duration, Effect } from "effect"
import { AnswerLost, NotSent, type CallFailure } from "../client/Service.ts"

/** Time enough to stop an execution, see it stopped (four polls at the usual pace), and read its results. */
export const lastAnswerWithin = Duration.seconds(20)
/** What one of these last calls may take, so that an unanswered one leaves time for others. */
export const lastCallWithin = Duration.seconds(5)
/** How long after the deadline everything except publishing is over: ten more seconds, to write it down. */
export const cutWithin = Duration.seconds(30)

/** Clock times of a run that has a deadline ahead of it. */
export interface Ending {
  readonly lastAnswerAt: number
  readonly cutAt: number
}

/** A run that is resumed after its deadline collects what is left; each task has its usual time. */
export const endingOf = (deadlineAt: number | undefined, now: number): Ending | undefined =>
  deadlineAt === undefined || deadlineAt <= now
    ? undefined
    : {
        lastAnswerAt: deadlineAt + Duration.toMillis(lastAnswerWithin),
        cutAt: deadlineAt + Duration.toMillis(cutWithin),
      }

/** A deadline, or the publication that it cut short, ends the deletions too a few seconds later. */
export const deletingUntil = (deadlineAt: number | undefined, begunAt: number, now: number): number => {
  const ending = endingOf(deadlineAt, begunAt)
  return ending === undefined ? Infinity : Math.max(ending.cutAt, now + Duration.toMillis(cutWithin))
}

/** A call whose failure counts as its answer. */
export const answerOf = <A, R>(
  call: Effect.Effect<A, CallFailure, R>,
): Effect.Effect<A | CallFailure, never, R> => Effect.catch(call, (failure) => Effect.succeed(failure))

/** A call that is abandoned at a given time: its answer is then lost; after that time it is not even sent. */
export const answeredBy = <A, R, E = never>(
  call: Effect.Effect<A, CallFailure | E, R>,
  untilAt: number,
): Effect.Effect<A, CallFailure | E, R> =>
  untilAt === Infinity
    ? call
    : Effect.flatMap(Clock.currentTimeMillis, (now) => {
        const lost = () =>
          Effect.fail(new AnswerLost({ message: "there was no answer before the time was up" }))
        return untilAt <= now
          ? Effect.fail(new NotSent({ message: "the time was up; nothing was sent" }))
          : Effect.timeoutOrElse(call, { duration: untilAt - now, orElse: lost })
      })
