/**
 * The table of ends: what each `status_code` and `status_reason` of section 3.1, and each end of our own,
 * means for the night. Data, not code: whether a second try follows, who must act, and whether the credential
 * breaker opens.
 */
import type { AttemptClosed, Outcome, WhoActs } from "../ledger/Fact.ts"
import type { AttemptState } from "../ledger/RunState.ts"
import { statusReasonsByCode } from "../contract/Vocabulary.ts"
import type { StatusCode, StatusReason } from "../contract/Vocabulary.ts"

export interface End {
  readonly outcome: Outcome
  readonly who_acts: WhoActs
  /** A further execution in the same night may go better. */
  readonly retry: boolean
  /** These credentials are not sent again until they change or are released. */
  readonly opensBreaker: boolean
}

const end = (outcome: Outcome, who_acts: WhoActs): End => ({
  outcome,
  who_acts,
  retry: false,
  opensBreaker: false,
})
const temporary: End = { ...end("unfinished", "service"), retry: true }
const rejected: End = { ...end("failed", "customer"), opensBreaker: true }
/**
 * Whatever the reference does not list is treated like a rejected login: no second try, an engineer looks.
 */
export const unlisted: End = { ...end("failed", "engineer"), opensBreaker: true }

/** Every closed reason of section 3.1. Those of `ONGOING` and `ACTION_REQUIRED` are no ends. */
const ends: { readonly [R in Exclude<StatusReason, OpenReason>]: End } = {
  COMPLETED: end("succeeded", "nobody"),
  PARTIAL: end("partial", "engineer"),
  FAILED: end("failed", "engineer"),
  TIMEOUT: end("failed", "engineer"),
  CLIENT_CANCELLED: end("unfinished", "service"),
  SYSTEM_CANCELLED: temporary,
  USER_CANCELLED: end("failed", "customer"),
  ACTION_TIMEOUT: end("failed", "customer"),
  CUSTOMER_INTERVENTION_REQUIRED: end("failed", "customer"),
  INCORRECT_CREDENTIALS: rejected,
  INCORRECT_MFA: rejected,
  BLOCKED_USER: rejected,
  FRIEZED_CREDENTIALS: rejected,
  CHANGE_PASSWORD: rejected,
  MANUAL_INTERVENTION: rejected,
  INCOMPATIBLE_ACCESS: rejected,
  DUPLICATED_SESSION: rejected,
  UNHANDLED_AUTH_ERROR: unlisted,
  BAD_CONFIGURATIONS: end("failed", "engineer"),
  INCORRECT_PARAMETERS_FORMAT: end("failed", "engineer"),
  INCORRECT_RESUME_FORMAT: end("failed", "engineer"),
  ENCRYPTION_ERROR: end("failed", "engineer"),
  T10N_FORBIDDEN: end("failed", "engineer"),
  T10N_NOT_AVAILABLE: end("failed", "engineer"),
  T10N_REJECTED: end("failed", "engineer"),
  T10N_EXCEPTION: end("failed", "engineer"),
  BAD_PROXY_CONFIGURATION: end("unfinished", "service"),
  OUT_OF_SERVICE: temporary,
  ENGINE_UNAVAILABLE: temporary,
  ALREADY_EXECUTING: temporary,
  ENGINE_BANNED: temporary,
  AUTO_CAPTCHA_ERROR: temporary,
  PROXY_ERROR: temporary,
  NETWORK_ERROR: temporary,
  INTERNAL_ERROR: temporary,
}
type OpenReason = (typeof statusReasonsByCode)["ONGOING" | "ACTION_REQUIRED"][number]

/** Ends that the service has no word for, in the same spelling. */
export const ownEnds = {
  START_UNKNOWN: end("unfinished", "engineer"),
  /** A state read answers 404: the service no longer knows the execution. */
  EXECUTION_GONE: end("unfinished", "service"),
  /** The service did not answer for as long as the task could wait; the execution is left as it is. */
  SERVICE_UNREACHABLE: end("unfinished", "service"),
  /** The service would not abort an execution whose time was over; it stays in flight for the next run. */
  NOT_STOPPABLE: end("unfinished", "service"),
  /** The id of the execution shows another external id, customer or engine: it is somebody else's run. */
  NOT_OURS: end("failed", "engineer"),
  ENGINE_UNAVAILABLE: end("unfinished", "service"),
  ALREADY_EXECUTING: end("unfinished", "service"),
  /** An older night was collected; this task had not begun in it. */
  NIGHT_OVER: end("unfinished", "service"),
  DEADLINE_REACHED: end("unfinished", "service"),
  RESULTS_PARTIAL: end("unfinished", "service"),
  RECORDS_UNREACHABLE: end("partial", "engineer"),
  /** Final results hold fewer records of a family than were counted. */
  RECORDS_SHORT: end("partial", "engineer"),
  /**
   * An answer breaks a bound, or we failed over it: what it was about stays at the service. Where it was an
   * engine's form, nothing was started.
   */
  ANSWER_UNUSABLE: end("failed", "engineer"),
  /** The start was refused in a way that the reference does not list. */
  UNEXPECTED_ANSWER: end("failed", "engineer"),
  ENGINE_UNKNOWN: end("skipped", "engineer"),
  /** A listed flow session that the service does not know, or that its customer never started (404, 412). */
  SESSION_UNKNOWN: end("failed", "engineer"),
  /** A start with a stored token answers 404: not this application's token, or none any more (4.7). */
  TOKEN_UNKNOWN: end("failed", "engineer"),
  COMPLETED: ends.COMPLETED,
} satisfies Record<string, End>
export type OwnReason = keyof typeof ownEnds

const isListed = (status_code: string, status_reason: string): status_reason is keyof typeof ends =>
  Object.hasOwn(ends, status_reason) &&
  Object.hasOwn(statusReasonsByCode, status_code) &&
  (statusReasonsByCode[status_code as StatusCode] as ReadonlyArray<string>).includes(status_reason)

/**
 * The end of a start that was refused before anything ran (section 4.1, 400, 404 and 422). The request was at
 * fault, whatever the reason would mean as the end of an execution: who wrote the job acts.
 */
export const endOfRefusal = (status_reason: string): End => {
  if (status_reason === "ENGINE_UNKNOWN") return ownEnds.ENGINE_UNKNOWN
  const isListedEnd = Object.hasOwn(ends, status_reason)
  const listed = isListedEnd ? ends[status_reason as keyof typeof ends] : unlisted
  return listed.outcome === "unfinished" ? { ...listed, retry: false } : end("failed", "engineer")
}

/** What a login that the source refused comes to, tonight and in every later night: it is not sent again. */
export const endOfRejected = (reason: string): End =>
  (statusReasonsByCode.AUTH_ERROR as ReadonlyArray<string>).includes(reason)
    ? end("failed", "customer")
    : end("failed", "engineer")

interface EndedState {
  readonly status_code: string
  readonly status_reason: string
  readonly authentication_status: string | undefined
}

/**
 * The end of a closed execution, and the reason that is told of it. A reason outside its family, or a value
 * that the reference does not list, is `unlisted`. An `authentication_status` that is no acceptance opens the
 * breaker, whatever the end says; where the end would say nothing of it, it is the end.
 */
const endWithReason = (state: EndedState): { readonly end: End; readonly reason: string } => {
  const { status_code, status_reason } = state
  const listed = isListed(status_code, status_reason) ? ends[status_reason] : unlisted
  const refusal = refusalOf(state.authentication_status)
  if (refusal === undefined) return { end: listed, reason: status_reason }
  if (listed.outcome === "failed")
    return { end: { ...listed, retry: false, opensBreaker: true }, reason: status_reason }
  return { end: { ...endOfRejected(refusal), opensBreaker: true }, reason: refusal }
}

export const endOf = (state: EndedState): End => endWithReason(state).end

/**
 * What a closed attempt of the ledger came to. An abort of ours over a challenge means what the service's own
 * end over a challenge means: the customer must act.
 */
export const endOfAttempt = (
  closed: Pick<typeof AttemptClosed.Type, "status_code" | "status_reason" | "authentication_status">,
  abort: AttemptState["abort"],
): { readonly end: End; readonly reason: string } => {
  const { status_code, status_reason, authentication_status } = closed
  if (status_reason === "EXECUTION_GONE") return { end: ownEnds.EXECUTION_GONE, reason: status_reason }
  if (abort === "challenge" && status_reason === "CLIENT_CANCELLED")
    return { end: ends.CUSTOMER_INTERVENTION_REQUIRED, reason: "CUSTOMER_INTERVENTION_REQUIRED" }
  return endWithReason({ status_code, status_reason, authentication_status })
}

/** The refusal that `authentication_status` names, if it names one. */
export const refusalOf = (authentication_status: string | undefined): string | undefined =>
  refusesLogin(authentication_status) ? authentication_status : undefined

/**
 * Section 2.4: `not-performed` until a login was tried, `AUTH_OK` when it was accepted, otherwise the
 * refusal.
 */
const refusesLogin = (authentication_status: string | undefined): boolean =>
  authentication_status !== undefined &&
  authentication_status !== "not-performed" &&
  authentication_status !== "AUTH_OK"

const openCodes: ReadonlySet<string> = new Set(["ONGOING", "ACTION_REQUIRED"])

/** Whether a family of section 3.1 is one in which the run goes on. */
export const isOpenCode = (status_code: string): boolean => openCodes.has(status_code)

/**
 * Whether a family of section 3.1 is one in which the run is over. An unlisted family is not taken for an
 * end.
 */
export const isTerminal = (status_code: string | undefined): boolean =>
  status_code !== undefined && Object.hasOwn(statusReasonsByCode, status_code) && !isOpenCode(status_code)
