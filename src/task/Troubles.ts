/**
 * Whether the service answers, as far as the calls of a run show: a call without an answer may be chance, ten
 * seconds without any answer are an outage; a request to slow down counts at once, and is over after a quiet
 * minute. Beginnings and ends become facts, so that no outage passes without a trace; both are rare, however
 * many calls fail.
 */
import { Clock, Duration, Effect } from "effect"
import { given } from "../base/Schemas.ts"
import { everyCall, type CallFailure, type Service, type Tagged } from "../client/Service.ts"
import { cutText } from "../service/BodyBounds.ts"
import type { EngineReference, RunId } from "../service/Ids.ts"
import type { Trouble } from "../ledger/Fact.ts"

/** So long without an answer, and it is an outage. */
export const silentAfter = Duration.seconds(10)
/** So long without a request to slow down, and the service is no longer throttling. */
export const quietAfter = Duration.minutes(1)

interface Failing {
  readonly since: number
  readonly lastAt: number
  readonly failures: number
  readonly message: string
  readonly isTold: boolean
}

/** What is known about the service at a moment. */
export interface Troubles {
  readonly run_id: RunId
  readonly lastAnswerAt: number | undefined
  readonly silent: Failing | undefined
  readonly throttled: Failing | undefined
  /** What became known and is not in the ledger yet. */
  readonly news: ReadonlyArray<Trouble>
}

export const noTroubles = (run_id: RunId): Troubles => ({
  run_id,
  lastAnswerAt: undefined,
  silent: undefined,
  throttled: undefined,
  news: [],
})

interface About {
  readonly since: number
  readonly engine?: EngineReference
}

const about = ({ run_id }: Troubles, trouble: Trouble["trouble"], { since, engine }: About) => ({
  run_id,
  trouble,
  ...given({ engine_reference: engine }),
  since: new Date(Math.trunc(since)).toISOString(),
})

export const began = (
  troubles: Troubles,
  trouble: Trouble["trouble"],
  of: About & { readonly message: string },
): Troubles => {
  const news = {
    _tag: "TroubleBegan",
    ...about(troubles, trouble, of),
    message: cutText(of.message),
  } as const
  return { ...troubles, news: [...troubles.news, news] }
}

export const ended = (
  troubles: Troubles,
  trouble: Trouble["trouble"],
  of: About & { readonly failures: number },
): Troubles => {
  const news = { _tag: "TroubleEnded", ...about(troubles, trouble, of), failures: of.failures } as const
  return { ...troubles, news: [...troubles.news, news] }
}

/** A secret that is refused, too: revoked in mid-night, it gets no usable answer until somebody acts. */
const isSilence = ({ _tag }: CallFailure): boolean =>
  _tag === "NotSent" || _tag === "AnswerLost" || _tag === "SecretRefused"

/** A 504 is the lock of one flow session (4.10). */
const isThrottle = (failure: CallFailure): boolean =>
  failure._tag === "Throttled" && failure.http_status !== 504

const failAgain = (known: Failing | undefined, now: number, message: string): Failing => ({
  since: known?.since ?? now,
  lastAt: now,
  failures: (known?.failures ?? 0) + 1,
  message,
  isTold: known?.isTold ?? false,
})

const isOutage = ({ since }: Failing, now: number): boolean => now - since >= Duration.toMillis(silentAfter)

/** A call was answered, or failed in this way. */
export const noteCall = (before: Troubles, failure: CallFailure | undefined, now: number): Troubles => {
  if (failure !== undefined && isSilence(failure)) {
    const silent = failAgain(before.silent, now, failure.message)
    if (silent.isTold || !isOutage(silent, now)) return { ...before, silent }
    return began({ ...before, silent: { ...silent, isTold: true } }, "silent", silent)
  }
  const { silent, throttled } = before
  let troubles: Troubles = { ...before, lastAnswerAt: now, silent: undefined }
  if (silent !== undefined && isOutage(silent, now)) {
    if (!silent.isTold) troubles = began(troubles, "silent", silent)
    troubles = ended(troubles, "silent", silent)
  }
  if (failure !== undefined && isThrottle(failure)) {
    const again = failAgain(throttled, now, failure.message)
    troubles = { ...troubles, throttled: { ...again, isTold: true } }
    return again.isTold ? troubles : began(troubles, "throttled", again)
  }
  if (throttled === undefined || now - throttled.lastAt < Duration.toMillis(quietAfter)) return troubles
  return ended({ ...troubles, throttled: undefined }, "throttled", throttled)
}

const callFailures: ReadonlySet<string> = new Set<CallFailure["_tag"]>([
  "NotSent",
  "AnswerLost",
  "Throttled",
  "SecretRefused",
  "UnexpectedAnswer",
])
/** A failure of the caller says nothing about the service. */
export const isCallFailure = (failure: Tagged): failure is CallFailure => callFailures.has(failure._tag)

/** The service, with every answer and every failure noted; `told` runs when something became known. */
export const noting = (
  service: Service["Service"],
  held: { troubles: Troubles },
  told: Effect.Effect<unknown>,
): Service["Service"] => {
  const note = (failure?: CallFailure) =>
    Effect.flatMap(Clock.currentTimeMillis, (now) => {
      const { news } = held.troubles
      held.troubles = noteCall(held.troubles, failure, now)
      return held.troubles.news === news ? Effect.void : told
    })
  return everyCall(service, (call) =>
    call.pipe(
      Effect.tap(() => note()),
      Effect.tapError((failure: Tagged) => (isCallFailure(failure) ? note(failure) : Effect.void)),
    ),
  )
}
