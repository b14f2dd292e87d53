/**
 * The life of one execution as decisions: what a start answer, a state answer or a failed call means, and
 * what follows. Pure, and complete over the port's answers; `StartAttempt.ts` and `FollowAttempt.ts` carry
 * the decisions out.
 */
import { Predicate, type Duration } from "effect"
import { given } from "../base/Schemas.ts"
import type { Access, ExecutionId, SessionId } from "../service/Ids.ts"
import type {
  AbortAnswer,
  AcceptanceView,
  CallFailure,
  StartAnswer,
  StateAnswer,
  StateView,
} from "../client/Service.ts"
import { cutText } from "../service/BodyBounds.ts"
import { isOpenCode, isRefusedCode, refusalIn, type Reason } from "../service/Ends.ts"

/**
 * What a start answer means, in the words of its fact (`StartAnswered`). `lost` and `unusable` leave open
 * whether an execution exists; after `unusable` the start is never sent again. `login` says whether a refused
 * start has sent the login to the source.
 */
export type Started =
  | {
      readonly answer: "accepted" | "adopted"
      readonly http_status: number
      readonly execution_id: ExecutionId
      readonly session_id: SessionId | undefined
      /** The state by which an adopted execution is ours; an accepted one has it if its login was refused. */
      readonly seen?: StateView
    }
  | {
      readonly answer: "refused"
      readonly http_status: number
      readonly status_reason: string
      readonly login: "not_sent" | "unproven" | "rejected"
      /** Which fields a 422 refuses. */
      readonly said?: string
    }
  | {
      readonly answer: "not_created"
      readonly http_status: number | undefined
      readonly retry_after: Duration.Duration | undefined
      readonly isEngineAway: boolean
      /** The service refuses the application's secret, also for reads: no start is sent any more. */
      readonly isSecretRefused?: true
    }
  | { readonly answer: "foreign"; readonly http_status: 409 }
  | { readonly answer: "taken"; readonly http_status: number }
  | { readonly answer: "unusable"; readonly http_status: number }
  | { readonly answer: "lost"; readonly http_status: number | undefined }

/** The answer names an execution that may be ours: only the state of that shows whose it is. */
export interface Conflict {
  readonly answer: "conflict"
  readonly execution_id: ExecutionId
  readonly session_id: SessionId | undefined
  /** What the answer means if the execution is somebody else's. */
  readonly otherwise: Started
}

export const foreign = { answer: "foreign", http_status: 409 } as const

/** What was asked of the service after it had answered a start with 401, 403 or 503. */
export interface Asked {
  /** The engine's own page says that it is away, and the service itself answers. */
  readonly isEngineAway: boolean
  /** A read with the same secret is refused as well. */
  readonly isSecretRefused: boolean
}

interface Sent {
  readonly external_execution_id: string
  /** A token logs in: then 404 is about the token, as in 4.7. */
  readonly withToken?: boolean
}

export const readStart = (
  sent: Sent,
  answer: StartAnswer | CallFailure,
  asked: Asked = { isEngineAway: false, isSecretRefused: false },
): Started | Conflict => {
  switch (answer._tag) {
    case "Accepted": {
      const { http_status } = answer
      const { execution_id, session_id } = answer.view
      if (answer.body.unusable !== undefined) return { answer: "unusable", http_status }
      if (execution_id !== undefined) {
        const accepted = { answer: "accepted", http_status, execution_id, session_id } as const
        const refusal = refusalIn(answer.view)
        if (refusal === undefined) return accepted
        const { status_code, status_reason } = answer.view
        return {
          ...accepted,
          seen: { ...given({ status_code, status_reason }), authentication_status: refusal },
        }
      }
      // An acceptance without an id cannot be followed; the 409 to the probe will name it.
      return refusedIn(answer.view, http_status) ?? { answer: "lost", http_status }
    }
    case "AlreadyExecuting":
      if (answer.body.unusable !== undefined) return foreign
      return conflictOf(sent, answer.view, refusedAlone(sent, answer.view) ?? foreign)
    case "Refused":
      return readRefusal(sent, answer)
    case "EngineUnavailable":
      return asked.isEngineAway
        ? { ...notCreated(503, answer.retry_after), isEngineAway: true }
        : { answer: "lost", http_status: 503 }
    case "NotSent":
      return notCreated(undefined)
    case "Throttled":
      return notCreated(answer.http_status, answer.retry_after)
    case "SecretRefused": {
      const { http_status } = answer
      return asked.isSecretRefused
        ? { ...notCreated(http_status), isSecretRefused: true }
        : { answer: "lost", http_status }
    }
    case "AnswerLost":
      return { answer: "lost", http_status: answer.http_status }
    case "UnexpectedAnswer": {
      const { http_status } = answer
      if (http_status >= 500) return { answer: "lost", http_status }
      const unknown = sent.withToken === true ? "TOKEN_UNKNOWN" : "ENGINE_UNKNOWN"
      const isOfToken = sent.withToken === true && (http_status === 404 || refusesTokenizedStart(http_status))
      return {
        answer: "refused",
        http_status,
        status_reason: (http_status === 404 ? unknown : "UNEXPECTED_ANSWER") satisfies Reason,
        login: isOfToken ? "not_sent" : "unproven",
      }
    }
  }
}

const conflictOf = (
  sent: Sent,
  { execution_id, session_id, external_execution_id }: AcceptanceView,
  otherwise: Started,
): Started | Conflict =>
  // Which external id such an answer carries is not shown: ours may be an echo of the request.
  execution_id === undefined ||
  (external_execution_id !== undefined && external_execution_id !== sent.external_execution_id)
    ? otherwise
    : { answer: "conflict", execution_id, session_id, otherwise }

const readRefusal = (
  sent: Sent,
  { http_status, view, body }: Extract<StartAnswer, { readonly _tag: "Refused" }>,
): Started | Conflict => {
  if (body.unusable !== undefined) return { answer: "unusable", http_status }
  const detail = http_status === 422 && Predicate.isObject(body.json) ? body.json["detail"] : undefined
  const isForm = Array.isArray(detail)
  const isOfParameters = isForm && detail.length > 0 && detail.every(namesParameters)
  const otherwise: Reason = isOfParameters
    ? "INCORRECT_PARAMETERS_FORMAT"
    : http_status === 422
      ? "BAD_CONFIGURATIONS"
      : "UNEXPECTED_ANSWER"
  const refusal = refusalIn(view)
  const status_reason = refusal ?? view.status_reason ?? otherwise
  const isListed = http_status === 400 && nothingCreated.has(status_reason) && view.execution_id === undefined
  const isOfToken = sent.withToken === true && refusesTokenizedStart(http_status)
  const login = refusal !== undefined ? "rejected" : isListed || isForm || isOfToken ? "not_sent" : "unproven"
  const said = isForm ? saidOfFields(detail) : ""
  const told = said === "" ? {} : { said }
  return conflictOf(sent, view, { answer: "refused", http_status, status_reason, login, ...told })
}

const fieldsToldMax = 5

/** Section 7, for people: the place and the message of each item; never its `input` or `ctx`. */
const saidOfFields = (detail: ReadonlyArray<unknown>): string => {
  const told = detail.slice(0, fieldsToldMax).map((item) => {
    const { loc, msg } = Predicate.isObject(item) ? item : {}
    const place = Array.isArray(loc) ? loc.filter((part) => part !== "body").join(".") : ""
    return [place, typeof msg === "string" ? msg : ""].filter((text) => text !== "").join(": ")
  })
  const more = detail.length > fieldsToldMax ? [`${detail.length - fieldsToldMax} more`] : []
  return cutText([...told, ...more].filter((text) => text !== "").join("; "))
}

/** 4.1, 422: whether an item of the validation is about the login. Its place may begin with `body`. */
const namesParameters = (item: unknown): boolean =>
  Predicate.isObject(item) && Array.isArray(item["loc"]) && item["loc"].slice(0, 2).includes("parameters")

/** A start that was answered in this way says that the source refused the login: it is not sent again. */
const refusedIn = (view: AcceptanceView, http_status: number): Started | undefined => {
  const status_reason = refusalIn(view)
  return status_reason === undefined
    ? undefined
    : { answer: "refused", http_status, status_reason, login: "rejected" }
}

/** What a 409 says about the login of the run that it names is that run's; our own external id names none. */
const refusedAlone = (
  { external_execution_id: ours }: Sent,
  { execution_id, external_execution_id = ours, ...said }: AcceptanceView,
): Started | undefined =>
  execution_id === undefined && external_execution_id === ours ? refusedIn(said, 409) : undefined

/** 4.1, 400: nothing was created. A token that is broken logs nobody in either (3.1). */
const nothingCreated: ReadonlySet<string> = new Set([
  "CUSTOMER_INTERVENTION_REQUIRED",
  "T10N_FORBIDDEN",
  "T10N_REJECTED",
  "T10N_EXCEPTION",
])

const notCreated = (http_status: number | undefined, retry_after?: Duration.Duration) =>
  ({ answer: "not_created", http_status, retry_after, isEngineAway: false }) as const

/**
 * The reference does not show a start with a token (4.12): a service that wants another form, or has no
 * such endpoint, gives these answers, and nothing ran. A 404 is about the token itself.
 */
export const refusesTokenizedStart = (http_status: number): boolean =>
  http_status === 405 || http_status === 415 || http_status === 422

/** What a poll of an open execution means. */
export type Looked =
  | { readonly _tag: "Working"; readonly view: StateView }
  | {
      readonly _tag: "Closed"
      readonly view: StateView
      readonly status_code: string
      readonly status_reason: string
    }
  /** The source asks for a person; nobody can answer at night. */
  | { readonly _tag: "Challenge" }
  | { readonly _tag: "Gone" }

/**
 * Section 4.2. `is_closed` decides; without it, or where a 200 carries a rejection, the family does. A value
 * that the reference does not list never ends an execution by itself, nor does an empty 200.
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
      const over = view.is_closed === true || (answer._tag === "Closed" && saysOver(view))
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
  status_code !== undefined &&
  (is_closed === undefined ? !isOpenCode(status_code) : isRefusedCode(status_code))

/** The fields that identify a run, as set by whoever started it. */
export interface RunIdentity extends Access {
  readonly external_execution_id: string
  /** The execution that was asked for; absent where its owner is to be found out. */
  readonly execution_id?: ExecutionId
}

const identityFields = ["external_execution_id", "customer_id", "engine_reference"] as const

/** Whether a state names somebody else's run: an external id, a customer, an engine or an id not ours. */
export const isStranger = (answer: StateAnswer, ours: RunIdentity): boolean => {
  if (!("view" in answer)) return false
  const { view } = answer
  const isOther = (field: keyof RunIdentity) =>
    ours[field] !== undefined && view[field] !== undefined && view[field] !== ours[field]
  // Where it names our external id, another spelling of its own says nothing.
  return identityFields.some(isOther) || (view.external_execution_id === undefined && isOther("execution_id"))
}

/** It names our external id and nothing of somebody else. Without an external id it proves nothing. */
export const isOurs = (
  answer: StateAnswer,
  ours: RunIdentity,
): answer is StateAnswer & { readonly view: StateView } =>
  "view" in answer &&
  answer.view.external_execution_id === ours.external_execution_id &&
  !isStranger(answer, ours)

/** The state is read again after each abort; only "not stoppable" is aborted once more before. */
export const readAbort = (answer: AbortAnswer | CallFailure): "look" | "again" =>
  answer === "aborted" || answer === "already_closed" || answer === "not_found" ? "look" : "again"
