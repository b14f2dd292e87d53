/**
 * What is learnt of a login, as facts: pure. From the answer to its start, and from the closing of its
 * execution. They are written in the same transaction as the answer and the closing, so that no crash comes
 * between the two; without any of them, the login counts as one that may have failed.
 */
import { accessOf } from "../service/Ids.ts"
import type { Access, ExecutionId } from "../service/Ids.ts"
import { endOfAttempt, isAccepted, refusalOf } from "../service/Ends.ts"
import type { LoginVerdict } from "../ledger/Accounts.ts"
import type { AttemptClosed, StartIntended } from "../ledger/Fact.ts"
import type { CredentialRejected, LoginJudged } from "../ledger/LoginFacts.ts"
import { attemptKeys, taskKeys } from "../ledger/FactKeys.ts"
import type { AttemptKeys } from "../ledger/FactKeys.ts"
import type { StateAnswer, StateView } from "../client/Service.ts"
import type { LoginKeys } from "../privacy/Fingerprint.ts"
import type { AttemptOrder } from "./AttemptOrder.ts"
import { readState } from "./Attempt.ts"
import type { Started } from "./Attempt.ts"

/** Whose login it is, and which attempt sent it. */
export type LoginOrder = AttemptKeys & Access & LoginKeys

export type JudgedLogin = typeof CredentialRejected.Type | typeof LoginJudged.Type

/** The account as the facts of a login name it. */
export const sentKeys = ({ account: keys }: LoginKeys): Pick<typeof StartIntended.Type, "login"> => {
  if (keys === undefined) return {}
  const { account, identity, password, row, absorbs } = keys
  const former = absorbs === undefined ? {} : { former: absorbs }
  return { login: { account, identity, password, ...(row === undefined ? {} : { row }), ...former } }
}

const judged = (order: LoginOrder, verdict: LoginVerdict, answer?: string): ReadonlyArray<JudgedLogin> => {
  const { account: keys, fingerprint } = order
  if (keys === undefined) return []
  const { account, password } = keys
  const login = fingerprint === undefined ? {} : { fingerprint }
  const told = answer === undefined ? {} : { said: answer }
  return [{ _tag: "LoginJudged", ...attemptKeys(order), account, password, ...login, verdict, ...told }]
}

const rejected = (order: LoginOrder, reason: string): ReadonlyArray<JudgedLogin> => {
  const { fingerprint, attempt: of_attempt } = order
  if (fingerprint === undefined) return []
  const of = { ...taskKeys(order), of_attempt, fingerprint, ...sentKeys(order), ...accessOf(order) }
  return [{ _tag: "CredentialRejected", ...of, reason }]
}

const said = (http_status: number | undefined): string =>
  http_status === undefined ? "no answer" : String(http_status)

/** Nothing yet of a start that was accepted: its execution will tell. */
export const judgeStart = (
  order: AttemptOrder,
  started: Started,
  isProbe: boolean,
): ReadonlyArray<JudgedLogin> => {
  switch (started.answer) {
    case "accepted":
      return []
    case "adopted":
      // The probe created nothing: what it found is the execution of the request before.
      return isProbe ? judged(order, "not_sent") : []
    case "foreign":
    case "not_created":
      return judged(order, "not_sent")
    case "refused":
      return started.login === "rejected"
        ? rejected(order, started.status_reason)
        : judged(order, started.login, said(started.http_status))
    case "taken":
    case "unusable":
    case "lost":
      return judged(order, "unproven", said(started.http_status))
  }
}

/** Families whose executions end before the source is asked (3.1), if no state says that they began. */
const requestAtFault = "CONFIGURATION_ERROR"

/** `seen` is the last state; undefined if the service no longer knows the execution. */
export const judgeEnd = (
  order: LoginOrder,
  closed: typeof AttemptClosed.Type,
  seen: Pick<StateView, "date_started" | "locking_hash"> | undefined,
): ReadonlyArray<JudgedLogin> => {
  // Whether and why it was aborted does not matter for the login.
  const { rejection } = endOfAttempt(closed, undefined)
  if (rejection !== undefined) return rejected(order, rejection)
  if (isAccepted(closed)) return judged(order, "good")
  const { authentication_status, status_code } = closed
  if (seen === undefined) return judged(order, "unproven", "404")
  const isUntold = authentication_status === undefined
  if (isUntold && (status_code === "COMPLETED" || status_code === "PARTIAL")) return judged(order, "good")
  const isUntried = !isUntold && refusalOf(authentication_status) === undefined
  const isNotSent =
    isUntried &&
    seen.locking_hash === undefined &&
    (seen.date_started === undefined || status_code === requestAtFault)
  return judged(order, isNotSent ? "not_sent" : "neutral")
}

/** Of an execution that was found after its attempt was given up; undefined while it is open. */
export const judgeFound = (
  order: LoginOrder,
  execution_id: ExecutionId,
  answer: StateAnswer,
): ReadonlyArray<JudgedLogin> | undefined => {
  const looked = readState(answer)
  if (looked._tag !== "Closed") return undefined
  const { status_code, status_reason, view } = looked
  const { authentication_status } = view
  const login = authentication_status === undefined ? {} : { authentication_status }
  const closed = { ...attemptKeys(order), execution_id, status_code, status_reason, ...login }
  return judgeEnd(order, { _tag: "AttemptClosed", ...closed }, view)
}
