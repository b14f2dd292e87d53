/**
 * The life of one execution as decisions: what a start answer, a state answer or a failed call means, and
 * what follows. Pure and complete over the port's answers; `StartAttempt.ts` and
 * `FollowAttempt.ts` carry the decisions out.
 */
import type { Duration } from "effect"
import type { AbortAnswer, CallFailure, StartAnswer, StateAnswer, StateView } from "../client/Service.ts"
import type { AttemptState } from "../ledger/RunState.ts"
import { isOpenCode, isTerminal } from "../ends/Ends.ts"

/** What a start answer means. Only `Lost` leaves it open whether an execution exists. */
export type Started =
  | {
      readonly _tag: "Open"
      readonly how: "accepted" | "adopted"
      readonly execution_id: string
      readonly session_id: string | undefined
      /** The probe of a lost start was accepted: the first one may have run unseen. */
      readonly orphanSuspected: boolean
    }
  /** A 409 that may be about our own run: only the state of that execution tells whose it is. */
  | { readonly _tag: "Identify"; readonly execution_id: string; readonly session_id: string | undefined }
  | { readonly _tag: "Foreign" }
  /** Answered with the id of another attempt's execution: whatever runs now has no name here. */
  | { readonly _tag: "Taken"; readonly http_status: 202 | 409 }
  | { readonly _tag: "NeverStarted"; readonly http_status: number; readonly status_reason: string }
  | { readonly _tag: "EngineUnavailable"; readonly retry_after: Duration.Duration | undefined }
  | {
      readonly _tag: "NotCreated"
      readonly http_status: number | undefined
      readonly retry_after: Duration.Duration | undefined
    }
  /** Answered, so that it is never sent again; but what was started, if anything, cannot be followed. */
  | { readonly _tag: "Unusable"; readonly http_status: number }
  | { readonly _tag: "Lost"; readonly http_status: number | undefined }

export const readStart = (
  sent: {
    readonly external_execution_id: string
    readonly probe: boolean
    /** A token logs in: then 404 speaks of the token, as that of 4.7 does. */
    readonly withToken?: boolean
  },
  answer: StartAnswer | CallFailure,
): Started => {
  switch (answer._tag) {
    case "Accepted":
      if (answer.body.unusable !== undefined) return { _tag: "Unusable", http_status: 202 }
      // An acceptance without an id cannot be followed; the 409 to the probe will name it.
      return answer.view.execution_id === undefined
        ? { _tag: "Lost", http_status: 202 }
        : open("accepted", answer.view.execution_id, answer.view.session_id, sent.probe)
    case "AlreadyExecuting": {
      const { execution_id, session_id, external_execution_id } = answer.view
      if (execution_id === undefined || answer.body.unusable !== undefined) return { _tag: "Foreign" }
      // Whose external id a 409 carries is not shown: ours may be an echo of the request.
      return external_execution_id === undefined || external_execution_id === sent.external_execution_id
        ? { _tag: "Identify", execution_id, session_id }
        : { _tag: "Foreign" }
    }
    case "Refused":
      if (answer.body.unusable !== undefined) return { _tag: "Unusable", http_status: answer.http_status }
      return {
        _tag: "NeverStarted",
        http_status: answer.http_status,
        status_reason:
          answer.view.status_reason ??
          (answer.http_status === 422 ? "BAD_CONFIGURATIONS" : "UNEXPECTED_ANSWER"),
      }
    case "EngineUnavailable":
      return { _tag: "EngineUnavailable", retry_after: answer.retry_after }
    case "NotSent":
      return { _tag: "NotCreated", http_status: undefined, retry_after: undefined }
    case "Throttled":
      return { _tag: "NotCreated", http_status: answer.http_status, retry_after: answer.retry_after }
    case "SecretRefused":
      return { _tag: "NotCreated", http_status: answer.http_status, retry_after: undefined }
    case "AnswerLost":
      return { _tag: "Lost", http_status: answer.http_status }
    case "UnexpectedAnswer":
      if (answer.http_status >= 500) return { _tag: "Lost", http_status: answer.http_status }
      return {
        _tag: "NeverStarted",
        http_status: answer.http_status,
        status_reason:
          answer.http_status !== 404
            ? "UNEXPECTED_ANSWER"
            : sent.withToken === true
              ? "TOKEN_UNKNOWN"
              : "ENGINE_UNKNOWN",
      }
  }
}

const open = (
  how: "accepted" | "adopted",
  execution_id: string,
  session_id: string | undefined,
  orphanSuspected: boolean,
): Started => ({ _tag: "Open", how, execution_id, session_id, orphanSuspected })

/**
 * How a start with a token looks is not shown (4.12): a service that wants another form, or has no such
 * endpoint, answers so, and nothing ran. What a 404 says is about the token itself.
 */
export const refusesTokenizedStart = (http_status: number): boolean =>
  http_status === 405 || http_status === 415 || http_status === 422

/** What a look at an open execution means. */
export type Looked =
  | { readonly _tag: "Working"; readonly view: StateView }
  | {
      readonly _tag: "Closed"
      readonly view: StateView
      readonly status_code: string
      readonly status_reason: string
    }
  /** The source asks for a person; nobody answers at night. */
  | { readonly _tag: "Challenge" }
  | { readonly _tag: "Gone" }

/**
 * Section 4.2. `is_closed` decides; where it is missing, or where 200 carries the rejection of a request, the
 * family does. A value that the reference does not list never ends a run by itself, and a 200 that says
 * nothing at all ends nothing: the next look will say more.
 */
export const readState = (answer: StateAnswer): Looked => {
  switch (answer._tag) {
    case "NotFound":
      return { _tag: "Gone" }
    case "ActionRequired":
      return { _tag: "Challenge" }
    case "Closed":
    case "Working": {
      const { view } = answer
      const over =
        view.is_closed === true ||
        (answer._tag === "Closed" && (isTerminal(view.status_code) || saysOver(view)))
      if (over)
        return {
          _tag: "Closed",
          view,
          status_code: view.status_code ?? "UNKNOWN",
          status_reason: view.status_reason ?? "UNKNOWN",
        }
      return view.status_code === "ACTION_REQUIRED" ? { _tag: "Challenge" } : { _tag: "Working", view }
    }
  }
}

const saysOver = ({ is_closed, status_code }: StateView): boolean =>
  is_closed === undefined && status_code !== undefined && !isOpenCode(status_code)

/** What a run is known by: who started it says so in each of these. */
export interface RunIdentity {
  readonly external_execution_id: string
  readonly customer_id: string
  readonly engine_reference: string
}

const identityFields = ["external_execution_id", "customer_id", "engine_reference"] as const

/** Whether a state names somebody else's run: an external id, a customer or an engine that is not ours. */
export const isStranger = (answer: StateAnswer, ours: RunIdentity): boolean => {
  if (!("view" in answer)) return false
  const { view } = answer
  return identityFields.some((field) => view[field] !== undefined && view[field] !== ours[field])
}

/**
 * Whether a state is that of our own run: it names our external id, and nothing in it is somebody else's. A
 * state that names none, or a challenge without its state, proves nothing.
 */
export const isOurs = (answer: StateAnswer, ours: RunIdentity): boolean =>
  "view" in answer &&
  answer.view.external_execution_id === ours.external_execution_id &&
  !isStranger(answer, ours)

/**
 * After an abort the state is read again in every case; only "not stoppable" asks to abort once more first.
 */
export const readAbort = (answer: AbortAnswer | CallFailure): "look" | "again" =>
  answer === "aborted" || answer === "already_closed" || answer === "not_found" ? "look" : "again"

/** Where an attempt of the ledger goes on after a restart. */
export type Resumption =
  | { readonly _tag: "Start" }
  /** The answer is not known: ask once more with the same external id. */
  | { readonly _tag: "Probe" }
  | { readonly _tag: "GiveUpStart" }
  /** Answered with the id of another attempt's execution. */
  | { readonly _tag: "NotOurs" }
  | { readonly _tag: "Follow"; readonly execution_id: string; readonly session_id: string | undefined }
  | { readonly _tag: "Closed" }
  | { readonly _tag: "NeverStarted"; readonly status_reason: string }
  /** The start was answered, and nothing can be made of the answer. */
  | { readonly _tag: "Unusable" }

export const resumeAttempt = (attempt: AttemptState): Resumption => {
  if (attempt.closed !== undefined) return { _tag: "Closed" }
  if (attempt.execution_id !== undefined)
    return { _tag: "Follow", execution_id: attempt.execution_id, session_id: attempt.session_id }
  switch (attempt.answer?.answer) {
    case "refused":
      return { _tag: "NeverStarted", status_reason: attempt.answer.status_reason ?? "UNEXPECTED_ANSWER" }
    case "taken":
      return { _tag: "NotOurs" }
    case "unusable":
      return { _tag: "Unusable" }
    case "not_created":
    case "foreign":
      return attempt.probed ? { _tag: "Probe" } : { _tag: "Start" }
    default:
      return attempt.probed ? { _tag: "GiveUpStart" } : { _tag: "Probe" }
  }
}
