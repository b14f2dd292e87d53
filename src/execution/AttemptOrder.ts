/**
 * What one attempt needs to know, and what every step of it does: landing the bodies that it is answered
 * with.
 */
import type { Duration } from "effect"
import { Clock, Effect } from "effect"
import type { Body } from "../client/Service.ts"
import { Landing } from "../landing/Landing.ts"
import type { BodyMeta } from "../landing/Landing.ts"
import type { AnswerRefused } from "../ledger/Fact.ts"

/** What an attempt needs to know. */
export interface AttemptOrder {
  readonly run_id: string
  readonly task_id: string
  readonly customer_id: string
  readonly engine_reference: string
  readonly attempt: number
  readonly external_execution_id: string
  readonly fingerprint: string | undefined
  /** The stored token that logs in; absent where parameters do. */
  readonly token_id?: string
  /** Answers that this task could not use before. */
  readonly refused: ReadonlyArray<typeof AnswerRefused.Type>
  /** What the newest state said of the login. */
  readonly login: { status: string | undefined }
  readonly polling: { readonly min: Duration.Duration; readonly max: Duration.Duration }
  readonly max_wait: Duration.Duration
  /** Clock time at which whatever is open is aborted. */
  readonly deadlineAt: number | undefined
}

export const attemptKeys = ({ run_id, task_id, attempt }: AttemptOrder) => ({ run_id, task_id, attempt })

export const landBody = Effect.fnUntraced(function* (
  order: AttemptOrder,
  body: Body,
  about: Pick<BodyMeta, "kind" | "http_status"> & {
    execution_id?: string | undefined
    session_id?: string | undefined
  },
) {
  const landing = yield* Landing
  const received_at = Math.trunc(yield* Clock.currentTimeMillis)
  return yield* landing.land(
    {
      kind: about.kind,
      http_status: about.http_status,
      received_at,
      ...attemptKeys(order),
      customer_id: order.customer_id,
      engine_reference: order.engine_reference,
      ...(about.execution_id === undefined ? {} : { execution_id: about.execution_id }),
      ...(about.session_id === undefined ? {} : { session_id: about.session_id }),
    },
    body.bytes,
  )
})
