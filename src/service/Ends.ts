/**
 * The table of ends: every reason a task can end with, the service's own and ours, and what follows from
 * it. Planning, execution, publishing and the report read it here, and the tables for people are generated
 * from it. This module also decides what no row says: refused starts, refused logins, unlisted values.
 */
import { Schema } from "effect"
import { statusReasonsByCode, type StatusCode } from "./Vocabulary.ts"
import { featureEnds, ownEnds, serviceEnds, unlisted } from "./EndTable.ts"
import type { Acting, EndRow, Outcome, ServiceReason, WhoActs } from "./EndTable.ts"

export type Reason = ServiceReason | keyof typeof ownEnds
export const ends: { readonly [R in Reason]: EndRow } = { ...serviceEnds, ...ownEnds }

/** A word of the service, possibly one that the reference does not list. */
const SaidReason = Schema.String.pipe(Schema.brand("SaidReason"))
/** What a task is settled with: a reason of the table, or a word of the service. */
export const SettledReason = Schema.Union([
  Schema.Literals(Object.keys(ends) as ReadonlyArray<Reason>),
  SaidReason,
])
export type SettledReason = typeof SettledReason.Type

export interface Verdict {
  readonly outcome: Outcome
  readonly reason: SettledReason
  readonly who_acts: WhoActs
  /** For people, if the reason alone does not say enough; contains no value of a parameter. */
  readonly message?: string
  /** As in the fact. */
  readonly not_before?: number | "next_date"
}

const verdict = ({ outcome, who_acts }: Pick<EndRow, "outcome" | "who_acts">, reason: SettledReason) => ({
  outcome,
  reason,
  who_acts,
})

/** The verdict for a reason of the table. */
export const own = (reason: Reason): Verdict => verdict(ends[reason], reason)

/** The same for a task that is never started. */
export const beforeStart = (reason: Reason): Verdict =>
  verdict(ends[reason].unstarted ?? ends[reason], reason)

/** A success is not a success if one of its bodies is missing from the tables. */
export const notInTables: Verdict = { ...own("ANSWER_UNUSABLE"), outcome: "partial" }

/** Of a feature that was not asked for, and of one that is missing where the others are named. */
export const outsideToken = own("TOKEN_FEATURES")
export const passedOver = own("FEATURE_NOT_RETRIEVED")

/** Whether tasks can end with this reason; otherwise it may be one of a feature. */
export const isReason = (reason: string): reason is Reason => Object.hasOwn(ends, reason)

/** The row of a reason of a task or a feature, if it has one. */
export const knownEnd = (reason: string): EndRow | undefined =>
  isReason(reason)
    ? ends[reason]
    : Object.hasOwn(featureEnds, reason)
      ? featureEnds[reason as keyof typeof featureEnds]
      : undefined

/** The row for any reason, listed or not. */
export const rowOf = (reason: string): EndRow => knownEnd(reason) ?? unlisted

/** How a task ended, as it is told; no outcome: of a problem that no task has. */
interface Told extends Pick<Verdict, "who_acts"> {
  readonly outcome: Outcome | null
  readonly reason: string
}

/**
 * The row for such an end: a listed reason whose end was taken for an unlisted one has the row of these. A
 * start may be refused with what ends a task that is never started (4.1): that is listed, too.
 */
export const rowOfEnd = ({ outcome, reason, who_acts }: Told): EndRow => {
  const row = rowOf(reason)
  const isUnlisted = outcome === unlisted.outcome && who_acts === unlisted.who_acts
  if (row.unstarted?.who_acts === who_acts) return row
  return isUnlisted && (row.outcome !== outcome || row.who_acts !== who_acts) ? unlisted : row
}

/** Who acts next on a task that ended like this: every text for people takes it from here. */
export const actingOf = (told: Told): Acting => rowOfEnd(told).acting ?? told.who_acts

const serviceEnd = (reason: string): EndRow | undefined =>
  Object.hasOwn(serviceEnds, reason) ? serviceEnds[reason as ServiceReason] : undefined

/** Whatever the reason, the refused request itself is at fault, so whoever wrote the job acts. */
const requestAtFault = { outcome: "failed", who_acts: "engineer" } as const

/**
 * For a start that was refused before anything ran (section 4.1, 400, 404 and 422). Only reasons that mean
 * a fault of the service, or a refused login, at the end of an execution mean one here too.
 */
export const verdictOfRefusal = (status_reason: string): Verdict => {
  if (status_reason === "ENGINE_UNKNOWN") return own(status_reason)
  if (isRejecting(status_reason)) return verdictOfRejected(status_reason)
  const listed = serviceEnd(status_reason)
  const isOfService = listed?.outcome === "unfinished"
  return verdict(isOfService ? listed : requestAtFault, SaidReason.make(status_reason))
}

/** Whether this reason, at an end or in the answer to a start, says that the login was refused. */
export const isRejecting = (reason: string): boolean => serviceEnd(reason)?.opensBreaker === true

/** For a login that the source refused, in this run or an earlier one: it is not sent again. */
export const verdictOfRejected = (reason: string): Verdict => {
  const listed = serviceEnd(reason)
  return verdict(listed?.opensBreaker === true ? listed : unlisted, SaidReason.make(reason))
}

/** Why we aborted one of our executions. */
export const abortCauses = ["challenge", "max_wait", "deadline"] as const

interface Closed {
  readonly status_code: string
  readonly status_reason: string
  readonly authentication_status?: string
  /** Absent if the service no longer knows the execution. */
  readonly landed?: object
}

export interface AttemptEnd {
  readonly verdict: Verdict
  /** Another execution in the same run may succeed. */
  readonly retry: boolean
  /** The reason with which its login was refused, or may have been: the login is not sent again. */
  readonly rejection: string | undefined
}

/**
 * How a closed execution ended. A reason outside its family, or a value that the reference does not list,
 * is `unlisted`. If we abort because of a challenge, it means the same as when the service itself ends
 * because of one. An `authentication_status` other than acceptance rejects the login, and is the end of the
 * task too, as it is of the next one with this login; unless the reason already asks the customer to act.
 */
export const endOfAttempt = (closed: Closed, abort: (typeof abortCauses)[number] | undefined): AttemptEnd => {
  const { status_code, status_reason, authentication_status } = closed
  const refusal = refusalOf(authentication_status)
  if (status_reason === "EXECUTION_GONE" && closed.landed === undefined) {
    const verdict = refusal === undefined ? own("EXECUTION_GONE") : verdictOfRejected(refusal)
    return { verdict, retry: false, rejection: refusal }
  }
  const isChallenged = abort === "challenge" && status_reason === "CLIENT_CANCELLED"
  const reason = isChallenged ? "CUSTOMER_INTERVENTION_REQUIRED" : SaidReason.make(status_reason)
  const listed = isListed(status_code, status_reason) ? ends[reason as ServiceReason] : unlisted
  if (refusal === undefined) {
    // A login that the source accepted was not refused, whatever the unlisted word for the end means.
    const isOpen = isAccepted(closed) && (listed === unlisted || reason === "UNHANDLED_AUTH_ERROR")
    const rejection = listed.opensBreaker && !isOpen ? status_reason : undefined
    return { verdict: verdict(listed, reason), retry: listed.retry, rejection }
  }
  const isTold = listed.who_acts === "customer"
  const told = isTold ? verdict(listed, reason) : verdictOfRejected(refusal)
  return { verdict: told, retry: false, rejection: refusal }
}

const isListed = (status_code: string, status_reason: string): boolean =>
  serviceEnd(status_reason) !== undefined &&
  Object.hasOwn(statusReasonsByCode, status_code) &&
  (statusReasonsByCode[status_code as StatusCode] as ReadonlyArray<string>).includes(status_reason)

/**
 * The refusal that `authentication_status` names, if it names one (section 2.4): `not-performed` until a
 * login was tried, `AUTH_OK` when it was accepted, otherwise the refusal.
 */
export const refusalOf = (authentication_status: string | undefined): string | undefined =>
  authentication_status === "not-performed" || isAccepted({ authentication_status })
    ? undefined
    : authentication_status

/** Families that say that the source refused the login (3.1). */
export const refusingCodes: ReadonlySet<string> = new Set(["AUTH_ERROR", "UNHANDLED_AUTH_ERROR"])

/** What an answer says about a login: that to a start, or a state. */
interface SaysOfLogin {
  readonly status_code?: string | undefined
  readonly status_reason?: string | undefined
  readonly authentication_status?: string | undefined
}

/** The refusal of a login that an answer names, whatever its status means by itself, open or closed. */
export const refusalIn = (said: SaysOfLogin): string | undefined => {
  const { status_code, status_reason, authentication_status } = said
  if (status_reason !== undefined && isRejecting(status_reason)) return status_reason
  if (status_code !== undefined && refusingCodes.has(status_code)) return status_reason ?? status_code
  return refusalOf(authentication_status)
}

/** Families that end without any records: whatever is read later, nothing of it changes (3.1). */
export const isRefusedCode = (status_code: string): boolean =>
  refusingCodes.has(status_code) || status_code === "CONFIGURATION_ERROR"

/** Whether the source took the login, as far as a state said so. */
export const isAccepted = (said: Pick<SaysOfLogin, "authentication_status">): boolean =>
  said.authentication_status === "AUTH_OK"

/**
 * What the states of an execution say about its login so far: a refusal, in whichever field a state names it,
 * stays one until a state says that the login was accepted, or names another refusal.
 */
export const toldOfLogin = (before: string | undefined, now: SaysOfLogin): string | undefined => {
  const { authentication_status } = now
  if (isAccepted(now)) return authentication_status
  return refusalIn(now) ?? refusalOf(before) ?? authentication_status
}

const openCodes: ReadonlySet<string> = new Set(["ONGOING", "ACTION_REQUIRED"])

/** Whether this family of section 3.1 means that the execution is still running. */
export const isOpenCode = (status_code: string): boolean => openCodes.has(status_code)
