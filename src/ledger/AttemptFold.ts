/**
 * The part of a run's fold that is about one attempt: pure. What each fact of a start, an execution or a
 * deletion changes in what is known of it.
 */
import type { Fact, StartIntended } from "./Fact.ts"
import type { AttemptState, TaskDraft, Writable } from "./RunState.ts"

export const emptyAttempt = (
  { attempt, external_execution_id, fingerprint, token_id }: typeof StartIntended.Type,
  at: number,
): Writable<AttemptState> => ({
  attempt,
  external_execution_id,
  fingerprint,
  ...(token_id === undefined ? {} : { token_id }),
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

export const foldAttempt = (
  task: TaskDraft,
  fact: Extract<Fact, { attempt: number }>,
  place: { readonly seq: number; readonly at: number },
) => {
  const { at } = place
  const attempt = task.attempts.find((candidate) => candidate.attempt === fact.attempt)
  if (attempt === undefined) return
  switch (fact._tag) {
    case "StartAnswered":
      attempt.answer = fact
      if (fact.answer === "accepted" || fact.answer === "adopted") {
        attempt.accepted_at = at
        attempt.execution_id = fact.execution_id
        attempt.session_id = fact.session_id
      }
      return
    case "OrphanSuspected":
      attempt.orphanSuspected = true
      return
    case "AttemptDrained":
      attempt.drained = true
      if (fact.proof !== undefined) attempt.proof = fact.proof
      delete attempt.kept
      return
    case "AttemptDisowned":
      attempt.disowned = true
      return
    case "AttemptKept":
      // The newest word counts: what is kept after all is not taken for drained any more.
      attempt.kept = fact
      attempt.drained = false
      return
    case "AttemptObserved":
      attempt.status_code = fact.status_code
      attempt.status_reason = fact.status_reason
      attempt.authentication_status = fact.authentication_status
      attempt.session_id = fact.session_id ?? attempt.session_id
      return
    case "AbortIntended":
      attempt.abort = fact.why
      return
    case "AttemptClosed":
      attempt.closed = { ...place, fact }
      attempt.status_code = fact.status_code
      attempt.status_reason = fact.status_reason
      attempt.authentication_status = fact.authentication_status
      attempt.session_id = fact.session_id ?? attempt.session_id
      return
    default:
  }
}
