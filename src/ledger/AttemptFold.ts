/**
 * The part of a run's fold that is about one attempt: pure. How each fact of a start, an execution or a
 * deletion changes what is known about it.
 */
import type { Fact, StartIntended } from "./Fact.ts"
import type { AttemptState } from "./RunState.ts"
import { loginKeysOf } from "../privacy/Fingerprint.ts"
import type { LoginKeys } from "../privacy/Fingerprint.ts"

/** The login as it was sent; that somebody wrote it out matters only before it is. */
const keysOf = ({ fingerprint, login }: typeof StartIntended.Type): LoginKeys =>
  loginKeysOf({
    fingerprint,
    account: login && { ...login, former: login.former ?? [], isByHand: false },
  })

export const emptyAttempt = (intended: typeof StartIntended.Type, at: number): AttemptState => ({
  attempt: intended.attempt,
  external_execution_id: intended.external_execution_id,
  ...keysOf(intended),
  ...(intended.token_id === undefined ? {} : { token_id: intended.token_id }),
  intended_at: at,
  probed: false,
  answer: undefined,
  accepted_at: undefined,
  execution_id: undefined,
  session_id: undefined,
  status_code: undefined,
  status_reason: undefined,
  authentication_status: undefined,
  abort: undefined,
  closed: undefined,
  orphanSuspected: false,
  drained: false,
  deletion: undefined,
})

/**
 * The same attempt sent once more. Until its own answer is known, this request may have had an effect,
 * whatever the answer to an earlier one.
 */
export const startAgain = (attempt: AttemptState, intended: typeof StartIntended.Type): AttemptState => {
  const { token_id, probe } = intended
  const { token_id: _, account: __, ...rest } = attempt
  const keys = keysOf(intended)
  const login = token_id === undefined ? keys : { ...keys, token_id }
  return { ...rest, answer: undefined, ...login, probed: attempt.probed || probe }
}

/** The result of a poll; once a session is known, it stays known. */
const told = (
  attempt: AttemptState,
  fact: Extract<Fact, { _tag: "AttemptObserved" | "AttemptClosed" }>,
): AttemptState => ({
  ...attempt,
  status_code: fact.status_code,
  status_reason: fact.status_reason,
  authentication_status: fact.authentication_status,
  session_id: fact.session_id ?? attempt.session_id,
})

export const foldAttempt = (
  attempt: AttemptState,
  fact: Extract<Fact, { attempt: number }>,
  place: { readonly seq: number; readonly at: number },
): AttemptState => {
  switch (fact._tag) {
    case "StartAnswered": {
      const { answer, execution_id, session_id } = fact
      const answered = { ...attempt, answer: fact }
      return answer === "accepted" || answer === "adopted"
        ? { ...answered, accepted_at: place.at, execution_id, session_id }
        : answered
    }
    case "OrphanSuspected":
      return { ...attempt, orphanSuspected: true }
    case "AttemptDrained": {
      const { kept: _, ...rest } = attempt
      return { ...rest, drained: true, ...(fact.proof === undefined ? {} : { proof: fact.proof }) }
    }
    case "AttemptDisowned":
      return { ...attempt, disowned: true }
    case "AttemptKept":
      // The newest fact counts: an execution that is kept after all no longer counts as drained.
      return { ...attempt, kept: fact, drained: false }
    case "AttemptObserved":
      return told(attempt, fact)
    case "AbortIntended":
      return { ...attempt, abort: fact.why }
    case "AttemptClosed":
      return { ...told(attempt, fact), closed: { ...place, fact } }
    default:
      return attempt
  }
}
