/** The fact that opens the credential breaker: for every refused login that is known, and for nothing else. */
import { anId } from "../harness/Id.ts"
import { Duration } from "effect"
import { describe, expect, it } from "vitest"
import { judgeEnd } from "../../src/task/StartAttempt.ts"
import { keysOf } from "./ScriptedNight.ts"

const order = {
  run_id: anId("job.2026-11-21"),
  task_id: anId("t-1"),
  customer_id: anId("c-1"),
  engine_reference: anId("bank"),
  attempt: 1,
  external_execution_id: "x-1",
  ...keysOf("f-1"),
  refused: [],
  login: { status: undefined },
  polling: { min: Duration.millis(1), max: Duration.millis(1) },
  max_wait: Duration.millis(1),
  deadlineAt: undefined,
}
const { run_id, task_id, customer_id, engine_reference } = order
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
const login = { account: "f-1", identity: ["f-1"], password: "f-1" }
const opened = (reason: string) => [
  {
    _tag: "CredentialRejected",
    run_id,
    task_id,
    of_attempt: 1,
    fingerprint: "f-1",
    login,
    customer_id,
    engine_reference,
    reason,
  },
]
const verdictsOf = (facts: ReturnType<typeof judgeEnd>) =>
  facts.map((fact) => (fact._tag === "LoginJudged" ? fact.verdict : fact.reason))
const began = { date_started: "2026-11-21T22:31:00Z" }

describe("the end of an execution", () => {
  it("rejects a refused login, with the refusal itself as its reason if the service names it", () => {
    expect([
      judgeEnd(order, closed("AUTH_ERROR", "BLOCKED_USER"), {}),
      judgeEnd(order, closed("FAILED", "FAILED", "CHANGE_PASSWORD"), {}),
      judgeEnd(order, closed("AUTH_ERROR", "BLOCKED_USER", "CHANGE_PASSWORD"), {}),
    ]).toEqual([opened("BLOCKED_USER"), opened("CHANGE_PASSWORD"), opened("CHANGE_PASSWORD")])
  })

  it("says nothing of a login that is not known", () => {
    const unknown = { ...order, fingerprint: undefined, account: undefined }
    expect([
      judgeEnd(unknown, closed("AUTH_ERROR", "BLOCKED_USER"), {}),
      judgeEnd(unknown, closed("COMPLETED", "COMPLETED", "AUTH_OK"), {}),
    ]).toEqual([[], []])
  })

  it.each([
    ["accepted", closed("COMPLETED", "COMPLETED", "AUTH_OK"), {}, "good"],
    ["accepted, and then aborted", closed("ABORTED", "TIMEOUT", "AUTH_OK"), {}, "good"],
    ["accepted, with an unlisted end", closed("FAILED", "NEW_WORD", "AUTH_OK"), {}, "good"],
    ["accepted, and then gone", closed("UNKNOWN", "EXECUTION_GONE", "AUTH_OK"), undefined, "good"],
    ["not mentioned, with results", closed("PARTIAL", "PARTIAL"), {}, "good"],
    ["not mentioned, without", closed("FAILED", "FAILED"), began, "neutral"],
    ["unlisted", closed("FAILED", "NEW_WORD"), began, "NEW_WORD"],
    ["gone before anything was said", closed("UNKNOWN", "EXECUTION_GONE"), undefined, "unproven"],
    ["not tried", closed("TEMPORARY_ERROR", "NETWORK_ERROR", "not-performed"), began, "neutral"],
    [
      "not tried, with a hash of what was sent",
      closed("ABORTED", "SYSTEM_CANCELLED", "not-performed"),
      { locking_hash: "v1.x" },
      "neutral",
    ],
    ["cancelled in the queue", closed("ABORTED", "SYSTEM_CANCELLED", "not-performed"), {}, "not_sent"],
    [
      "a form at fault",
      closed("CONFIGURATION_ERROR", "INCORRECT_PARAMETERS_FORMAT", "not-performed"),
      began,
      "not_sent",
    ],
  ] as const)("judges a login that was %s", (_, end, seen, verdict) => {
    expect(verdictsOf(judgeEnd(order, end, seen))).toEqual([verdict])
  })
})
