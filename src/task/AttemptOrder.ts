/**
 * What one attempt needs to know, and what all its steps share: the function that lands the bodies of the
 * answers that it gets.
 */
import { Clock, Effect, type Duration } from "effect"
import { given } from "../base/Schemas.ts"
import type { Body, StateView } from "../client/Service.ts"
import { Landing, type BodyMeta } from "../landing/Landing.ts"
import type { AnswerRefused, AttemptObserved } from "../ledger/Fact.ts"
import { attemptKeys, type AttemptKeys } from "../ledger/FactKeys.ts"
import { keyedHashOf, type LoginKeys } from "../privacy/Fingerprint.ts"
import { toldOfLogin } from "../service/Ends.ts"
import { accessOf, type Access, type ExecutionId, type SessionId, type TaskId } from "../service/Ids.ts"

/** What an attempt needs to know. */
export interface AttemptOrder extends AttemptKeys, Access, LoginKeys {
  readonly external_execution_id: string
  /** The stored token that logs in; absent if parameters do. */
  readonly token_id?: string
  /** Features that it does not cover, and that are not requested. */
  readonly outside?: ReadonlyArray<string>
  /** The job wants no results of it. */
  readonly results_off?: true
  /** Where it is sent, if that is another service than the one at which its run began. */
  readonly service?: string
  /** Answers that this task could not use before. */
  readonly refused: ReadonlyArray<typeof AnswerRefused.Type>
  /** What the states so far say about the login, also those that an earlier process read. */
  readonly said: () => string | undefined
  readonly polling: { readonly min: Duration.Duration; readonly max: Duration.Duration }
  readonly max_wait: Duration.Duration
  /** When to look at its execution, as `planLooks` gives it. */
  readonly looks: ReadonlyArray<number>
  /** Clock time at which an open execution is aborted. */
  readonly deadlineAt: number | undefined
}

export const landBody = Effect.fnUntraced(function* (
  order: AttemptOrder,
  body: Body,
  about: Pick<BodyMeta, "kind" | "http_status"> & {
    execution_id?: ExecutionId | undefined
    session_id?: SessionId | undefined
  },
) {
  const landing = yield* Landing
  const received_at = Math.trunc(yield* Clock.currentTimeMillis)
  const { kind, http_status, execution_id, session_id } = about
  const ids = { ...attemptKeys(order), ...accessOf(order), ...given({ execution_id, session_id }) }
  return yield* landing.land({ kind, http_status, received_at, ...ids }, body.bytes)
})

/** The fact of a state that was read while the execution went on; what it says of the login is remembered. */
export const observed = (
  order: AttemptKeys & Pick<AttemptOrder, "said">,
  of: { readonly execution_id: ExecutionId; readonly session_id: SessionId | undefined },
  view: StateView,
): typeof AttemptObserved.Type => {
  const { status_code = "UNKNOWN", status_reason = "UNKNOWN" } = view
  const authentication_status = toldOfLogin(order.said(), view)
  return {
    _tag: "AttemptObserved",
    ...attemptKeys(order),
    execution_id: of.execution_id,
    status_code,
    status_reason,
    ...given({ authentication_status, session_id: of.session_id }),
  }
}

// The external id of an execution: derived from task and attempt, so that a start whose answer was lost finds
// its own execution again, and keyed by this output folder, so that nobody else's is ever taken for ours.

export const externalExecutionId = (key: Uint8Array, task_id: TaskId, attempt: number): string =>
  `nj-${keyedHashOf(key, JSON.stringify([task_id, attempt])).slice(0, 40)}`
