/**
 * Decides an execution's life from what its login asks for and, if that says nothing, from the seed:
 * minutes to hours, as in a real night. Pure: equal inputs give equal lives.
 */
import type { StatusReason } from "../../service/Vocabulary.ts"
import { foreverMs, isOpenOutcome } from "./Behaviour.ts"
import type { Behaviour } from "./Behaviour.ts"
import { fingerprint, seeded } from "../state/Seeded.ts"
import { isOpenReason, statusCodeOf } from "../state/Timeline.ts"
import type { AuthenticationStatus, Timeline } from "../state/Timeline.ts"

const secondMs = 1_000
const minuteMs = 60_000

export interface TimelineInput {
  readonly seed: number
  readonly application: string
  readonly customer_id: string
  readonly engine_reference: string
  /** How many runs of this customer on this engine came before. */
  readonly ordinal: number
  readonly behaviour: Behaviour
  readonly interaction: boolean
  readonly timeoutMs: number
  /** The features that will be read; absent if no word is about them. */
  readonly asked?: ReadonlyArray<string>
}

/** The login has no verdict if the run ends before its source gave one. */
const endsBeforeVerdict: ReadonlySet<StatusReason> = new Set<StatusReason>([
  "CUSTOMER_INTERVENTION_REQUIRED",
  "ACTION_TIMEOUT",
  "ACCEPTED",
  "WAITING",
  "MFA_REQUIRED",
  "INPUT_REQUIRED",
])

export const loginVerdictOf = (end: StatusReason): AuthenticationStatus => {
  const code = statusCodeOf(end)
  if (code === "AUTH_ERROR" || code === "UNHANDLED_AUTH_ERROR") return end as AuthenticationStatus
  if (code === "CONFIGURATION_ERROR" || endsBeforeVerdict.has(end)) return "not-performed"
  return code === "TEMPORARY_ERROR" && end !== "INTERNAL_ERROR" ? "not-performed" : "AUTH_OK"
}

/** How the run ends by its words, including healing. */
export const endOf = (behaviour: Behaviour, ordinal: number, features = 2): StatusReason => {
  const { heal, turn, end, partial, featureEnd } = behaviour
  if (heal !== undefined && ordinal < heal.runs) return heal.reason
  if (turn !== undefined && ordinal >= turn.runs) return turn.reason
  if (end !== undefined) return end
  if (featureEnd === undefined || featureEnd === "FEATURE_COMPLETED" || isOpenOutcome(featureEnd)) {
    return partial === true ? "PARTIAL" : "COMPLETED"
  }
  return features === 1 && featureEnd !== "FEATURE_PARTIAL" ? "FAILED" : "PARTIAL"
}

/** Keyed by the sandbox's seed, so that a timeline does not reveal the answer that it waits for. */
export const challengeHash = (seed: number, code: string): string => fingerprint("challenge", seed, code)

/** Section 4.1: without a person up to three hours in the queue; with one, its turn comes within seconds. */
const seededDurations = (input: TimelineInput) => {
  const draw = seeded(
    "timeline",
    input.seed,
    input.application,
    input.customer_id,
    input.engine_reference,
    input.ordinal,
  )
  const night = minuteMs + Math.floor(draw.unit() ** 2.5 * 178 * minuteMs)
  const day = draw.int(1, 30) * secondMs
  const runMs = draw.int(60, 540) * secondMs
  const asyncMs = draw.chance(0.12) ? draw.int(5, 45) * minuteMs : 0
  return { queueMs: input.interaction ? day : night, runMs, asyncMs }
}

const challengeOf = (input: TimelineInput, end: StatusReason): Timeline["challenge"] => {
  const expireMs = input.behaviour.expireMs ?? 2 * minuteMs
  const { challengeCode, challengeReason = "MFA_REQUIRED", askedBy, cancelMs } = input.behaviour
  if (askedBy !== undefined && input.asked?.includes(askedBy) !== true) return undefined
  const more = {
    expireMs,
    ...(askedBy === undefined ? {} : { producer: askedBy }),
    ...(cancelMs === undefined ? {} : { cancelMs }),
  }
  if (challengeCode !== undefined) {
    return { codeHash: challengeHash(input.seed, challengeCode), reason: challengeReason, ...more }
  }
  // A run that asks forever: no answer has this hash.
  return end === "MFA_REQUIRED" || end === "INPUT_REQUIRED"
    ? { codeHash: "unanswerable", reason: end, ...more }
    : undefined
}

export const planTimeline = (input: TimelineInput): Timeline => {
  const end = endOf(input.behaviour, input.ordinal, input.asked?.length)
  const login = loginVerdictOf(end)
  const unsaid = seededDurations(input)
  const runMs = input.behaviour.runMs ?? unsaid.runMs
  // A word that sets a time sets all of it: nothing is added to a run that a test depends on.
  const quiet = input.behaviour.runMs !== undefined || input.behaviour.queueMs !== undefined
  const warmMs = login === "AUTH_OK" ? Math.min(Math.floor(runMs / 10), 5 * secondMs) : runMs
  const challenge = challengeOf(input, end)
  return {
    queueMs: end === "ACCEPTED" ? foreverMs : (input.behaviour.queueMs ?? unsaid.queueMs),
    warmMs: end === "WAITING" ? foreverMs : warmMs,
    workMs: end === "RUNNING" ? foreverMs : runMs - Math.min(warmMs, runMs),
    asyncMs: end === "ASYNC_WAIT" ? foreverMs : (input.behaviour.asyncMs ?? (quiet ? 0 : unsaid.asyncMs)),
    timeoutMs: input.timeoutMs,
    login,
    end: isOpenReason(end) ? "COMPLETED" : end,
    interaction: input.interaction,
    stillborn: false,
    ...(challenge === undefined ? {} : { challenge }),
    unstoppableMs: input.behaviour.unstoppableMs ?? 0,
    parts: input.behaviour.parted ?? false,
  }
}

/** The life of a run that is refused because of its parameters, their encryption or its configurations. */
export const stillbornTimeline = (end: StatusReason, timeoutMs: number): Timeline => ({
  queueMs: 0,
  warmMs: 0,
  workMs: 0,
  asyncMs: 0,
  timeoutMs,
  login: "not-performed",
  end,
  interaction: false,
  stillborn: true,
  unstoppableMs: 0,
  parts: false,
})
