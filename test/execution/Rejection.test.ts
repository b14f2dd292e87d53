/** The fact that opens the credential breaker: for every refused login that is known, and for nothing else. */
import { anId } from "../harness/Id.ts"
import { Duration } from "effect"
import { describe, expect, it } from "vitest"
import { judgedLogin } from "../../src/execution/Rejection.ts"

const order = {
  run_id: anId("job.2026-11-21"),
  task_id: anId("t-1"),
  customer_id: anId("c-1"),
  engine_reference: anId("bank"),
  attempt: 1,
  external_execution_id: "x-1",
  fingerprint: "f-1",
  isDoubted: false,
  refused: [],
  login: { status: undefined },
  polling: { min: Duration.millis(1), max: Duration.millis(1) },
  max_wait: Duration.millis(1),
  deadlineAt: undefined,
}
const { run_id, task_id, customer_id, engine_reference, fingerprint } = order
/** A closing with just what says what became of the login. */
const closed = (status_code: string, status_reason: string, authentication_status?: string) => ({
  _tag: "AttemptClosed" as const,
  run_id,
  task_id,
  attempt: 1,
  execution_id: anId("e-1"),
  status_code,
  status_reason,
  ...(authentication_status === undefined ? {} : { authentication_status }),
})
const opened = (reason: string) => [
  { _tag: "CredentialRejected", run_id, task_id, fingerprint, customer_id, engine_reference, reason },
]

describe("the breaker", () => {
  it("opens for a refused login, with the refusal itself as its reason if the service names it", () => {
    expect([
      judgedLogin(order, closed("AUTH_ERROR", "BLOCKED_USER")),
      judgedLogin(order, closed("FAILED", "FAILED", "CHANGE_PASSWORD")),
      judgedLogin(order, closed("AUTH_ERROR", "BLOCKED_USER", "CHANGE_PASSWORD")),
    ]).toEqual([opened("BLOCKED_USER"), opened("CHANGE_PASSWORD"), opened("CHANGE_PASSWORD")])
  })

  it("does not open for an unknown login, an accepted one, or one of an execution that is gone", () => {
    expect([
      judgedLogin({ ...order, fingerprint: undefined }, closed("AUTH_ERROR", "BLOCKED_USER")),
      judgedLogin(order, closed("COMPLETED", "COMPLETED", "AUTH_OK")),
      judgedLogin(order, closed("UNKNOWN", "EXECUTION_GONE")),
    ]).toEqual([[], [], []])
  })
})
