/**
 * Whether the service answers, as far as the calls of a run show: a call without an answer may be chance, ten
 * seconds without any answer are an outage; a request to slow down counts at once, and is over after a quiet
 * minute. Beginnings and ends become facts, so that no outage passes without a trace; both are rare, however
 * many calls fail.
 */
import { Clock, Duration, Effect } from "effect"
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
  lastAnswerAt: number | undefined
  silent: Failing | undefined
  throttled: Failing | undefined
  /** What became known and is not in the ledger yet. */
  readonly news: Array<Trouble>
}

export const noTroubles = (): Troubles => ({
  lastAnswerAt: undefined,
  silent: undefined,
  throttled: undefined,
  news: [],
})

const timeText = (ms: number): string => new Date(Math.trunc(ms)).toISOString()

interface About {
  readonly since: number
  readonly engine?: EngineReference
}

const aboutTrouble = (run_id: RunId, trouble: Trouble["trouble"], { since, engine }: About) => ({
  run_id,
  trouble,
  ...(engine === undefined ? {} : { engine_reference: engine }),
  since: timeText(since),
})

export const began = (
  run_id: RunId,
  trouble: Trouble["trouble"],
  about: About & { readonly message: string },
): Trouble => ({
  _tag: "TroubleBegan",
  ...aboutTrouble(run_id, trouble, about),
  message: cutText(about.message),
})

export const ended = (
  run_id: RunId,
  trouble: Trouble["trouble"],
  about: About & { readonly failures: number },
): Trouble => ({ _tag: "TroubleEnded", ...aboutTrouble(run_id, trouble, about), failures: about.failures })

const isSilence = ({ _tag }: CallFailure): boolean => _tag === "NotSent" || _tag === "AnswerLost"

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

/** A call failed; returns whether that is news. */
export const noteFailure = (
  troubles: Troubles,
  run_id: RunId,
  failure: CallFailure,
  now: number,
): boolean => {
  if (!isSilence(failure)) {
    const isNews = noteAnswer(troubles, run_id, now, !isThrottle(failure))
    if (!isThrottle(failure)) return isNews
    const throttled = failAgain(troubles.throttled, now, failure.message)
    troubles.throttled = { ...throttled, isTold: true }
    if (!throttled.isTold) troubles.news.push(began(run_id, "throttled", throttled))
    return isNews || !throttled.isTold
  }
  const silent = failAgain(troubles.silent, now, failure.message)
  const isOutage = now - silent.since >= Duration.toMillis(silentAfter)
  troubles.silent = { ...silent, isTold: silent.isTold || isOutage }
  if (silent.isTold || !isOutage) return false
  troubles.news.push(began(run_id, "silent", silent))
  return true
}

/** A call was answered; returns whether that is news. */
export const noteAnswer = (troubles: Troubles, run_id: RunId, now: number, isCalm = true): boolean => {
  const { silent, throttled, news } = troubles
  const before = news.length
  troubles.lastAnswerAt = now
  if (silent !== undefined) {
    troubles.silent = undefined
    const isOutage = now - silent.since >= Duration.toMillis(silentAfter)
    if (isOutage && !silent.isTold) news.push(began(run_id, "silent", silent))
    if (isOutage) news.push(ended(run_id, "silent", silent))
  }
  if (isCalm && throttled !== undefined && now - throttled.lastAt >= Duration.toMillis(quietAfter)) {
    troubles.throttled = undefined
    news.push(ended(run_id, "throttled", throttled))
  }
  return news.length > before
}

const callFailures: ReadonlySet<string> = new Set<CallFailure["_tag"]>([
  "NotSent",
  "AnswerLost",
  "Throttled",
  "SecretRefused",
  "UnexpectedAnswer",
])
/** A failure of the caller says nothing about the service. */
const isCallFailure = (failure: Tagged): failure is CallFailure => callFailures.has(failure._tag)

/** The service, with every answer and every failure noted; `told` runs when something became known. */
export const noting = (
  service: Service["Service"],
  troubles: Troubles,
  { run_id, told }: { readonly run_id: RunId; readonly told: Effect.Effect<unknown> },
): Service["Service"] => {
  const note = (happened: (now: number) => boolean) =>
    Effect.flatMap(Clock.currentTimeMillis, (now) => (happened(now) ? told : Effect.void))
  return everyCall(service, (call) =>
    call.pipe(
      Effect.tap(() => note((now) => noteAnswer(troubles, run_id, now))),
      Effect.tapError((failure: Tagged) =>
        isCallFailure(failure) ? note((now) => noteFailure(troubles, run_id, failure, now)) : Effect.void,
      ),
    ),
  )
}
