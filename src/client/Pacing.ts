/**
 * Pure: how fast one host may be called. A host that never complains is not paced. After its first complaint
 * the rate doubles until the next one, or until the host is known to bear everything; after that it is
 * careful: it stays near what the host bore, and goes further only if that rate was used for a while. A host
 * that refuses everybody is not called for a while; one that refuses one subject alone is called as before.
 * Which calls a Retry-After holds back is part of it.
 */
import { Duration, Effect } from "effect"
import { retrySchedule, type WaitPolicy } from "../base/Time.ts"
import type { CallAbout, CallFailure } from "./Service.ts"

/** Limits of a lane's rate in requests per second; from the upper one on, it is not paced. */
const rateMin = 0.2
const rateMax = 1_000
/** A host is taken to bear this at least when it first complains, and at most after it refused everybody. */
const firstRate = 20
/** In use for so long, a careful rate is back at its ceiling; for three times as long, at twice that. */
const flatMs = 10_000
/** Every so many clean answers double the rate, but not sooner than this after the last time. */
const doublingAnswers = 4
const doublingMs = 100
/** So many complaints this soon after a cut, without one clean answer: the host refuses everybody. */
const refusedMax = 4
const refusedWithinMs = 1_000
/** Such a pause lasts as long as asked, at least this, doubled each time until answers are clean again. */
const pauseMs = 1_000
const pauseMaxMs = 30_000
const pauseEndAnswers = 8
/** So many subjects that were refused and not answered since are remembered. */
const refusedSubjectsMax = 1_000
/** A 503 about one engine is the engine's, unless another engine had one within this time. */
const unavailableMs = 2_000
/** A slot that was missed by so little is used later: timers are a few milliseconds late. */
const lateMaxMs = 10

type Mode =
  | { readonly _tag: "Unpaced" }
  /** Up to the ceiling, which is Infinity until one is known. */
  | { readonly _tag: "Doubling"; readonly rate: number; readonly ceiling: number; readonly sinceMs: number }
  /** Around the ceiling; `usedMs` is how long at least half of the rate was used. */
  | { readonly _tag: "Careful"; readonly ceiling: number; readonly usedMs: number }

export interface Pace {
  readonly mode: Mode
  /** When the rate was last cut; complaints about requests sent before do not cut it again. */
  readonly cutMs: number
  readonly sentMs: number
  /** When the next request may be sent. */
  readonly nextMs: number
  /** Clean answers in the second that began at `secondMs`, and in the one before. */
  readonly secondMs: number
  readonly thisSecond: number
  readonly lastSecond: number
  /** Complaints since the last cut; none after a clean answer. */
  readonly refused: number
  /** Pauses without enough clean answers between them, and when the last one began. */
  readonly pauses: number
  readonly pausedMs: number
  /** Clean answers since then. */
  readonly answers: number
  /** Clean answers, less the complaints that were the host's. */
  readonly balance: number
  /** The balance after the last complaint about a subject that was not answered since. */
  readonly refusedAt: ReadonlyMap<string, number>
  /** The engine that the last 503 was about, and when another engine last had one. */
  readonly unavailable: { readonly engine: string; readonly atMs: number; readonly otherMs: number }
  /** What the service asked to wait for: bounded by the executions and sessions of a run. */
  readonly closures: ReadonlyMap<string, Closure>
}

const never = Number.NEGATIVE_INFINITY

export const openPace: Pace = {
  mode: { _tag: "Unpaced" },
  cutMs: never,
  sentMs: never,
  nextMs: never,
  secondMs: never,
  thisSecond: 0,
  lastSecond: 0,
  refused: 0,
  pauses: 0,
  pausedMs: never,
  answers: 0,
  balance: 0,
  refusedAt: new Map(),
  unavailable: { engine: "", atMs: never, otherMs: never },
  closures: new Map(),
}

const withinLimits = (rate: number): number => Math.max(rateMin, Math.min(rateMax, rate))

const careful = (ceiling: number): Mode => ({ _tag: "Careful", ceiling: withinLimits(ceiling), usedMs: 0 })

/** Requests per second; Infinity if the lane is not paced. */
export const rateOf = ({ mode }: Pace): number => {
  switch (mode._tag) {
    case "Unpaced":
      return Infinity
    case "Doubling":
      return mode.rate
    case "Careful": {
      // Cubic: from 0.85 of the ceiling fast towards it, slowly past it, then fast again.
      return withinLimits(mode.ceiling * (1 + 0.15 * ((mode.usedMs - flatMs) / flatMs) ** 3))
    }
  }
}

export const noteSent = (before: Pace, nowMs: number): Pace => {
  const { mode } = before
  const rate = rateOf(before)
  const gapMs = nowMs - before.sentMs
  const nextMs = Math.max(before.nextMs, nowMs - lateMaxMs) + 1000 / rate
  const pace = { ...before, sentMs: nowMs, nextMs }
  // A rate that is not used proves nothing: it would grow between bursts, and be too high for each.
  if (mode._tag !== "Careful" || gapMs > 2000 / rate) return pace
  if (rate >= rateMax) return { ...pace, mode: { _tag: "Unpaced" } }
  return { ...pace, mode: { ...mode, usedMs: mode.usedMs + gapMs } }
}

const countAnswer = (pace: Pace, nowMs: number): Pace => {
  const elapsedMs = nowMs - pace.secondMs
  if (elapsedMs < 1000) return { ...pace, thisSecond: pace.thisSecond + 1 }
  return elapsedMs < 2000
    ? { ...pace, secondMs: pace.secondMs + 1000, thisSecond: 1, lastSecond: pace.thisSecond }
    : { ...pace, secondMs: nowMs, thisSecond: 1, lastSecond: 0 }
}

/** How many clean answers there were in the last second. */
const bore = ({ secondMs, thisSecond, lastSecond }: Pace, nowMs: number): number => {
  const elapsed = (nowMs - secondMs) / 1000
  return elapsed < 1 ? thisSecond + lastSecond * (1 - elapsed) : thisSecond * Math.max(0, 2 - elapsed)
}

const subjectOf = ({ endpoint, subject }: Asked): string => JSON.stringify([endpoint, subject])

const without = (refusedAt: Pace["refusedAt"], asked: Asked): Pace["refusedAt"] => {
  const subject = subjectOf(asked)
  return refusedAt.has(subject) ? new Map([...refusedAt].filter(([other]) => other !== subject)) : refusedAt
}

/** A request that was sent at `sentMs` has a clean answer. */
export const noteAnswered = (before: Pace, asked: Asked, sentMs: number, nowMs: number): Pace => {
  const refusedAt = before.refusedAt.size === 0 ? before.refusedAt : without(before.refusedAt, asked)
  const counted = { ...countAnswer(before, nowMs), refused: 0, refusedAt, balance: before.balance + 1 }
  // What was under way at the last cut says nothing about the rate after it.
  if (sentMs <= before.cutMs) return counted
  const answers = before.answers + 1
  const pace = { ...counted, answers, pauses: answers < pauseEndAnswers ? before.pauses : 0 }
  const { mode } = before
  const isSoon = mode._tag === "Doubling" && nowMs - mode.sinceMs < doublingMs
  if (mode._tag !== "Doubling" || isSoon || answers % doublingAnswers !== 0) return pace
  const rate = mode.rate * 2
  if (rate < Math.min(rateMax, 0.85 * mode.ceiling))
    return { ...pace, mode: { ...mode, rate, sinceMs: nowMs } }
  return { ...pace, mode: mode.ceiling === Infinity ? { _tag: "Unpaced" } : careful(mode.ceiling) }
}

const cut = (pace: Pace, nowMs: number): Mode => {
  const rate = rateOf(pace)
  const known = bore(pace, nowMs)
  switch (pace.mode._tag) {
    case "Unpaced":
      return { _tag: "Doubling", rate: Math.max(firstRate, known / 2), ceiling: Infinity, sinceMs: nowMs }
    case "Doubling":
      return careful(Math.max(Math.min(known, rate), 0.6 * rate))
    case "Careful":
      return careful(Math.min(rate, Math.max(known, rate / 2)))
  }
}

/** The host refuses everybody: nothing is sent for a while, then little, then soon as much as before. */
const pause = (pace: Pace, nowMs: number, askedMs: number): Pace => {
  const { mode } = pace
  const known = mode._tag === "Unpaced" ? Infinity : mode.ceiling
  // Refusing everybody once may be an accident; one who does so again, after answers, has a limit.
  const hasLimit = known === Infinity && pace.pausedMs !== never && pace.answers > 0
  const ceiling = hasLimit ? Math.max(firstRate, bore(pace, nowMs)) : known
  const rate = withinLimits(Math.min(firstRate, rateOf(pace) / 2))
  return {
    ...pace,
    mode: { _tag: "Doubling", rate, ceiling, sinceMs: nowMs },
    cutMs: nowMs,
    nextMs: nowMs + Math.min(pauseMaxMs, Math.max(askedMs, pauseMs * 2 ** pace.pauses)),
    refused: 0,
    pauses: pace.pauses + 1,
    pausedMs: nowMs,
    answers: 0,
  }
}

export interface Complaint {
  readonly http_status: number
  readonly asked: Asked
  /** The engine that the call was about, if it was about one. */
  readonly engine: string | undefined
  readonly sentMs: number
  readonly nowMs: number
  /** Its Retry-After. */
  readonly askedMs: number
}

/**
 * A request was refused with 429 or 503. A subject that was refused before, and not answered since, has a
 * reason of its own, unless the host meanwhile refused others more often than it answered them.
 */
export const noteComplaint = (before: Pace, complaint: Complaint): Pace => {
  const { asked } = complaint
  if (asked.subject === undefined) return judge(before, complaint)
  const isOwn = before.balance >= (before.refusedAt.get(subjectOf(asked)) ?? Infinity)
  const pace = isOwn ? before : judge(before, complaint)
  const others = [...without(pace.refusedAt, asked)].slice(1 - refusedSubjectsMax)
  return { ...pace, refusedAt: new Map([...others, [subjectOf(asked), pace.balance]]) }
}

/** A 503 about an engine is the host's only if another engine had one too. */
const judge = (pace: Pace, complaint: Complaint): Pace => {
  const { http_status, engine, nowMs } = complaint
  if (http_status !== 503 || engine === undefined) return slowDown(pace, complaint)
  const { unavailable: last } = pace
  const otherMs = last.engine === engine ? last.otherMs : last.atMs
  const noted = { ...pace, unavailable: { engine, atMs: nowMs, otherMs } }
  return nowMs - otherMs > unavailableMs ? noted : slowDown(noted, complaint)
}

const slowDown = (before: Pace, { sentMs, nowMs, askedMs }: Complaint): Pace => {
  const pace = { ...before, balance: before.balance - 1 }
  const isNew = sentMs > pace.cutMs
  if (isNew && pace.pauses > 0 && pace.answers === 0) return pause(pace, nowMs, askedMs)
  // Until there is a clean answer, these may all have the reason of the first one.
  if (pace.refused > 0 && nowMs - pace.cutMs <= refusedWithinMs) {
    const refused = pace.refused + 1
    return refused < refusedMax ? { ...pace, refused } : pause(pace, nowMs, askedMs)
  }
  if (!isNew) return pace
  const slower = { ...pace, mode: cut(pace, nowMs), cutMs: nowMs, refused: 1 }
  return { ...slower, nextMs: nowMs + 1000 / rateOf(slower) }
}

// A Retry-After counts in full for the execution, session or login of the call, and for its endpoint only if
// it names none: an absurd wait affects only its own task.

/** A call, and whom it asks. */
export interface Asked extends CallAbout {
  readonly host: string
}

export interface Closure {
  readonly closedUntilMs: number
  readonly http_status: number
}

const keyOf = ({ endpoint, subject, part }: Asked): string => JSON.stringify([endpoint, subject, part])

/** The service asked us to wait, in answer to this call; an earlier, longer wait still counts. */
export const noteRetryAfter = (
  pace: Pace,
  asked: Asked,
  nowMs: number,
  { http_status, askedMs }: Pick<Complaint, "http_status" | "askedMs">,
): Pace => {
  const closedUntilMs = nowMs + askedMs
  if (closedUntilMs <= (closureOf(pace, asked, nowMs)?.closedUntilMs ?? nowMs)) return pace
  const open = [...pace.closures].filter(([, closure]) => closure.closedUntilMs > nowMs)
  return { ...pace, closures: new Map([...open, [keyOf(asked), { closedUntilMs, http_status }]]) }
}

/** How long a call still has to wait, if at all. */
export const closureOf = ({ closures }: Pace, asked: Asked, nowMs: number): Closure | undefined => {
  const closure = closures.size === 0 ? undefined : closures.get(keyOf(asked))
  return closure === undefined || closure.closedUntilMs <= nowMs ? undefined : closure
}

// How repeatable calls are retried: with growing waits and full jitter, never sooner than asked, and within
// bounds. The last failure is the result.

export const callWaits: WaitPolicy = { base: Duration.seconds(1), max: Duration.minutes(1), jitter: 1 }
/** If the service asks for more than this, the tries of a call end, unless the service is waited for. */
export const retryWaitMax = Duration.minutes(10)
/** Tries of a call whose failure a retry is unlikely to fix. */
const hopelessTriesMax = 2

export const askedWait = (failure: CallFailure): Duration.Duration =>
  (failure._tag === "Throttled" ? failure.retry_after : undefined) ?? Duration.zero

export interface RetryOptions {
  /** Calls in total, including the first one. */
  readonly triesMax: number
  /** Milliseconds since 1970: a wait that would end later is not begun. */
  readonly untilAt?: number
  /**
   * The service may be away, and is waited for until `untilAt`, for as long as it asks; what answers in its
   * place, such as a gateway with a 404, is not it.
   */
  readonly isAway?: boolean
}

const triesAllowed = (failure: CallFailure, options: RetryOptions): number => {
  switch (failure._tag) {
    case "NotSent":
    case "AnswerLost":
      return options.triesMax
    case "Throttled": {
      const asksLittle = !Duration.isGreaterThan(askedWait(failure), retryWaitMax)
      return asksLittle || options.isAway === true ? options.triesMax : 1
    }
    case "SecretRefused":
    case "UnexpectedAnswer":
      if (options.isAway === true && failure._tag === "UnexpectedAnswer") return options.triesMax
      return Math.min(options.triesMax, hopelessTriesMax)
  }
}

export const retryCall = <A, R>(
  call: Effect.Effect<A, CallFailure, R>,
  options: RetryOptions,
): Effect.Effect<A, CallFailure, R> =>
  Effect.retry(
    call,
    retrySchedule(callWaits, {
      triesMax: (failure) => triesAllowed(failure, options),
      asked: askedWait,
      untilAt: options.untilAt,
    }),
  )
