/**
 * An execution's life, decided when it starts: how long it queues, works, waits for its source, how the
 * login and the run end. `lifeOf` lays that plan out as phases, with any later answers and aborts;
 * `momentOf` reads the state at any time from them. Both are pure: nothing runs in the background and no
 * time passes by itself.
 */
import { Schema, Struct } from "effect"
import { authenticationStatuses, statusReasons, statusReasonsByCode } from "../../service/Vocabulary.ts"
import type { StatusCode, StatusReason } from "../../service/Vocabulary.ts"

export type AuthenticationStatus = (typeof authenticationStatuses)[number]

/** A timeline reveals no login parameter: the expected answer to a challenge is stored as a hash. */
export const Timeline = Schema.Struct({
  queueMs: Schema.Finite,
  /** Active work before the login is resolved, and after it. */
  warmMs: Schema.Finite,
  workMs: Schema.Finite,
  /** The source's own schedule, in the middle of the longer piece of work; not active. */
  asyncMs: Schema.Finite,
  timeoutMs: Schema.Finite,
  login: Schema.Literals(authenticationStatuses),
  end: Schema.Literals(statusReasons),
  interaction: Schema.Boolean,
  /** Refused because of its form or encryption: closes as soon as it is accepted. */
  stillborn: Schema.Boolean,
  challenge: Schema.optionalKey(
    Schema.Struct({
      codeHash: Schema.String,
      expireMs: Schema.Finite,
      reason: Schema.Literals(["MFA_REQUIRED", "INPUT_REQUIRED"]),
      /** The feature that asks, after the login was accepted; if absent, the login asks. */
      producer: Schema.optionalKey(Schema.String),
      /** When the customer cancels, counted from the challenge. */
      cancelMs: Schema.optionalKey(Schema.Finite),
    }),
  ),
  unstoppableMs: Schema.Finite,
  /** The engine is unavailable once a challenge is answered (4.3, 503). */
  parts: Schema.Boolean,
})
export type Timeline = typeof Timeline.Type

/** What ended a run from outside its timeline: the caller's abort, or an engine that became unavailable. */
export interface Stop {
  readonly at: number
  readonly reason: "CLIENT_CANCELLED" | "ENGINE_UNAVAILABLE"
}

/** A customer's answer to a challenge; whether it is right was judged when it came. */
export interface ChallengeAnswer {
  readonly at: number
  readonly right: boolean
  /** What was wrong with it beyond its value. */
  readonly fault?: "form" | "encryption"
}

/** A period of an execution's life in which its state does not change; in milliseconds since the epoch. */
export interface Phase {
  readonly from: number
  readonly status_code: StatusCode
  readonly status_reason: StatusReason
  readonly authentication_status: AuthenticationStatus
  readonly spends: "queue" | "work" | "person" | "source" | "nothing"
  /** True once the login was sent to the source, judged or not. */
  readonly attempted: boolean
  /** For ASYNC_WAIT: when the platform continues by itself. */
  readonly kicks?: number
  readonly challenge?: { readonly expires: number; readonly wrongAnswers: number }
  /** The feature whose challenge keeps the run from its records. */
  readonly heldBy?: string
}

/** A life has at least its end. */
export type Phases = readonly [Phase, ...ReadonlyArray<Phase>]

/** How long an answered challenge is queued again before its source judges it. */
const requeueMs = 300
const wrongAnswersMax = 3

const codeOfReason = new Map<StatusReason, StatusCode>(
  (Object.keys(statusReasonsByCode) as ReadonlyArray<StatusCode>).flatMap((code) =>
    statusReasonsByCode[code].map((reason) => [reason, code] as const),
  ),
)
export const statusCodeOf = (reason: StatusReason): StatusCode => codeOfReason.get(reason) ?? "FAILED"
const openCodes: ReadonlySet<StatusCode> = new Set<StatusCode>(["ONGOING", "ACTION_REQUIRED"])
export const isOpenReason = (reason: StatusReason): boolean => openCodes.has(statusCodeOf(reason))
export const isClosedPhase = (phase: Phase): boolean => !openCodes.has(phase.status_code)

/**
 * 2.4: `locking_hash` is present "once a login was attempted" and `authentication_status` is `not-performed`
 * "until a login was tried". Both are read in the same way, so that no state contradicts itself: a login
 * counts as tried once its source has judged it. A pending second factor is not a verdict yet.
 */
export const isJudged = ({ authentication_status }: Pick<Phase, "authentication_status">): boolean =>
  authentication_status !== "not-performed"

/** Where the source has accepted the login. */
export const acceptedIn = (phases: ReadonlyArray<Phase>): Phase | undefined =>
  phases.find((phase) => phase.authentication_status === "AUTH_OK")

/** Where the run is or will be over, if nothing more is done to it. */
export const endIn = (phases: ReadonlyArray<Phase>): Phase | undefined => phases.find(isClosedPhase)

/** As the service writes times. */
export const iso = (at: number): string => new Date(at).toISOString()

/** Lays out phases one after another and counts active work against the limit. */
class Course {
  readonly phases: Array<Phase> = []
  at: number
  activeMs = 0
  authentication: AuthenticationStatus = "not-performed"
  attempted = false
  heldBy: string | undefined
  readonly timeoutMs: number
  constructor(at: number, timeoutMs: number) {
    this.at = at
    this.timeoutMs = timeoutMs
  }
  lay(
    status_reason: StatusReason,
    spends: Phase["spends"],
    ms: number,
    more: Pick<Phase, "kicks" | "challenge"> = {},
  ) {
    this.phases.push({
      from: this.at,
      status_code: statusCodeOf(status_reason),
      status_reason,
      authentication_status: this.authentication,
      attempted: this.attempted,
      spends,
      ...(this.heldBy === undefined ? {} : { heldBy: this.heldBy }),
      ...more,
    })
    this.at += ms
  }
  /** False if the active limit was reached first: the run is then over. */
  work(status_reason: StatusReason, ms: number): boolean {
    const spent = Math.min(ms, this.timeoutMs - this.activeMs)
    if (spent > 0) this.lay(status_reason, "work", spent)
    this.activeMs += spent
    if (spent === ms) return true
    this.close("TIMEOUT")
    return false
  }
  /** Work with the source's own wait in the middle. */
  workAround(status_reason: StatusReason, ms: number, asyncMs: number): boolean {
    if (asyncMs === 0) return this.work(status_reason, ms)
    if (!this.work(status_reason, Math.floor(ms / 2))) return false
    this.lay("ASYNC_WAIT", "source", asyncMs, { kicks: this.at + asyncMs })
    return this.work(status_reason, ms - Math.floor(ms / 2))
  }
  close(status_reason: StatusReason) {
    this.lay(status_reason, "nothing", 0)
  }
}

/**
 * How often a source asks again is not shown; own choice: the third refused answer ends the run, by what
 * was wrong with it. An answer that cannot be decrypted ends it at once.
 */
const refusedEnd = ({ fault }: ChallengeAnswer, refused: number) => {
  if (fault === "encryption") return "ENCRYPTION_ERROR" as const
  if (refused < wrongAnswersMax) return undefined
  return fault === "form" ? ("INCORRECT_RESUME_FORMAT" as const) : ("INCORRECT_MFA" as const)
}

/** Lays out the challenge and its answers; false if the run ended during it. */
const layChallenge = (
  course: Course,
  interaction: boolean,
  planned: NonNullable<Timeline["challenge"]>,
  answers: ReadonlyArray<ChallengeAnswer>,
): boolean => {
  const { expireMs, reason, cancelMs = Number.POSITIVE_INFINITY } = planned
  if (!interaction) {
    course.close("CUSTOMER_INTERVENTION_REQUIRED")
    return false
  }
  for (let asked = 0; ; asked += 1) {
    const expires = course.at + expireMs
    const answer = answers[asked]
    const challenge = { expires, wrongAnswers: asked }
    if (answer === undefined) {
      course.lay(reason, "person", Math.min(expireMs, cancelMs), { challenge })
      course.close(cancelMs < expireMs ? "USER_CANCELLED" : "ACTION_TIMEOUT")
      return false
    }
    course.lay(reason, "person", answer.at - course.at, { challenge })
    course.lay("ACCEPTED", "queue", requeueMs)
    if (answer.right) return true
    const end = refusedEnd(answer, asked + 1)
    if (end !== undefined) {
      // An accepted login stays accepted, whatever answers one of its features gets.
      if (end === "INCORRECT_MFA" && planned.producer === undefined) course.authentication = end
      course.close(end)
      return false
    }
  }
}

/** The work after the login; a feature's challenge comes in the middle of it. */
const layWork = (course: Course, timeline: Timeline, answers: ReadonlyArray<ChallengeAnswer>): boolean => {
  const { workMs, asyncMs, challenge, interaction } = timeline
  if (challenge?.producer === undefined) return course.workAround("RUNNING", workMs, asyncMs)
  course.heldBy = challenge.producer
  if (!course.workAround("RUNNING", Math.floor(workMs / 2), asyncMs)) return false
  if (!layChallenge(course, interaction, challenge, answers)) return false
  course.heldBy = undefined
  return course.work("RUNNING", workMs - Math.floor(workMs / 2))
}

const layLife = (course: Course, timeline: Timeline, answers: ReadonlyArray<ChallengeAnswer>): void => {
  if (timeline.stillborn) return course.close(timeline.end)
  course.lay("ACCEPTED", "queue", timeline.queueMs)
  const loginFails = timeline.login !== "AUTH_OK"
  if (!course.workAround("WAITING", timeline.warmMs, loginFails ? timeline.asyncMs : 0)) return
  const { challenge, interaction } = timeline
  course.attempted = timeline.login !== "not-performed" || challenge !== undefined
  if (challenge !== undefined && challenge.producer === undefined) {
    if (!layChallenge(course, interaction, challenge, answers)) return
  }
  course.authentication = timeline.login
  if (loginFails) return course.close(timeline.end)
  if (layWork(course, timeline, answers)) course.close(timeline.end)
}

const lived = ([first, ...rest]: ReadonlyArray<Phase>): Phases => {
  if (first === undefined) throw new Error("a life without a phase")
  return [first, ...rest]
}

/** The phases of an execution accepted at `startedAt`; only the end may have no length. */
export const lifeOf = (
  timeline: Timeline,
  startedAt: number,
  answers: ReadonlyArray<ChallengeAnswer> = [],
  stop?: Stop,
): Phases => {
  const course = new Course(startedAt, timeline.timeoutMs)
  layLife(course, timeline, answers)
  const phases = course.phases.filter(
    (phase, index) => isClosedPhase(phase) || phase.from !== course.phases[index + 1]?.from,
  )
  // A clock that was set back must not put an abort before its run.
  const from = Math.max(stop?.at ?? startedAt, startedAt)
  const last = phases.findLast((phase) => phase.from <= from)
  if (stop === undefined || last === undefined || isClosedPhase(last)) return lived(phases)
  const { reason: status_reason } = stop
  const end = { from, status_code: statusCodeOf(status_reason), status_reason, spends: "nothing" } as const
  return lived([
    ...phases.filter((phase) => phase.from < from),
    { ...Struct.omit(last, ["kicks", "challenge"]), ...end },
  ])
}

/** A run that was refused when it was accepted, or stopped in the queue, never saw its engine begin. */
const isEngineAtWork = (phase: Phase, index: number): boolean =>
  phase.spends !== "queue" &&
  (index > 0 || phase.spends !== "nothing" || phase.attempted) &&
  phase.status_reason !== "CLIENT_CANCELLED"

/** The state of an execution at one moment. Durations in milliseconds. */
export interface Moment {
  readonly phase: Phase
  readonly closed: boolean
  readonly activeMs: number
  readonly personMs: number
  /** Work done since the login was accepted. */
  readonly workedMs: number
  /** When the engine began; undefined as long as the run is queued for the first time. */
  readonly engineStartedAt: number | undefined
}

/** Reads the phases at `at`; a time before the first phase reads as the first phase. */
export const momentOf = (phases: Phases, at: number): Moment => {
  let phase = phases[0]
  let activeMs = 0
  let personMs = 0
  let workedMs = 0
  let engineStartedAt: number | undefined
  for (let index = 0; index < phases.length; index += 1) {
    const candidate = phases[index]
    if (candidate === undefined || (index > 0 && candidate.from > at)) break
    phase = candidate
    if (engineStartedAt === undefined && isEngineAtWork(phase, index)) engineStartedAt = phase.from
    const until = Math.min(at, phases[index + 1]?.from ?? at)
    const ms = Math.max(0, until - phase.from)
    if (phase.spends === "work") activeMs += ms
    if (phase.spends === "person") personMs += ms
    if (phase.spends === "work" && phase.authentication_status === "AUTH_OK") workedMs += ms
  }
  return { phase, closed: isClosedPhase(phase), activeMs, personMs, workedMs, engineStartedAt }
}

// 8: one read of a session's results per five seconds, under an exclusive lock.

const resultsIntervalMs = 5_000
/** Not shown; own choice: a read holds the lock for a millisecond per record, and others do not wait. */
const heldMsPerRecord = 1

/** What was requested of a session so far; all times in milliseconds since the epoch. */
export interface SessionReads {
  readonly reads: ReadonlyArray<{ readonly at: number; readonly is_closed: boolean }>
  /** Reads that found the lock held by somebody else (504). */
  readonly lockedAt: ReadonlyArray<number>
  /** Reads that came too soon. */
  readonly refusedAt: ReadonlyArray<number>
  /** Until when the last read holds the lock. */
  readonly heldUntil: number
}

export const unread: SessionReads = {
  reads: [],
  lockedAt: [],
  refusedAt: [],
  heldUntil: Number.NEGATIVE_INFINITY,
}

interface Asked {
  readonly _tag: `${"Flow" | ""}Results${"Read" | "Locked" | "Refused"}`
  readonly at: number
  readonly is_closed?: boolean
  readonly heldUntil?: number
}

/** What was asked of a session, and what it answered. */
export const afterAsking = <Session extends SessionReads>(session: Session, asked: Asked): Session => {
  const { _tag, at, is_closed = false } = asked
  const { reads, lockedAt, refusedAt } = session
  if (_tag.endsWith("Locked")) return { ...session, lockedAt: [...lockedAt, at] }
  if (_tag.endsWith("Refused")) return { ...session, refusedAt: [...refusedAt, at] }
  return { ...session, reads: [...reads, { at, is_closed }], heldUntil: asked.heldUntil ?? at }
}

export const heldUntil = (at: number, records: number): number => at + records * heldMsPerRecord

/** A read, and one that found the session locked, count as requests; one that came too soon does not. */
const lastRequestAt = ({ reads, lockedAt }: SessionReads): number =>
  Math.max(reads.at(-1)?.at ?? Number.NEGATIVE_INFINITY, lockedAt.at(-1) ?? Number.NEGATIVE_INFINITY)

/** `elsewhere`: whether somebody else holds the lock. A clock that was set back locks nobody out. */
export const judgeRead = (
  session: SessionReads,
  at: number,
  elsewhere: boolean,
): "FlowResults" | "TooManyRequests" | "LockTimeout" => {
  const last = lastRequestAt(session)
  if (at >= last && at - last < resultsIntervalMs) return "TooManyRequests"
  const held = at >= (session.reads.at(-1)?.at ?? at) && at < session.heldUntil
  return held || elsewhere ? "LockTimeout" : "FlowResults"
}
