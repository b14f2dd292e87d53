/**
 * What happens with each end, row by row as the contract tells its users: outcome, who acts, whether the night
 * tries a second time, whether the login is sent again, and the exit code of a run with that task alone.
 */
import { describe, expect, it } from "vitest"
import { statusReasonsByCode } from "../../src/contract/Vocabulary.ts"
import { endOf, endOfAttempt, endOfRefusal, ownEnds } from "../../src/ends/Ends.ts"
import type { End } from "../../src/ends/Ends.ts"
import { foldRun } from "../../src/ledger/FoldRun.ts"
import { exitCodeOf } from "../../src/report/ExitCode.ts"
import { planned, settled, started } from "../report/Samples.ts"

type Outcome = "succeeded" | "partial" | "failed" | "skipped" | "unfinished"
type Actor = "nobody" | "customer" | "engineer" | "service"

/** What the table of the contract says: the outcome, who acts, and the exit code. */
interface Told {
  readonly outcome: Outcome
  readonly who_acts: Actor
  readonly exit: 0 | 3 | 4
  readonly retry: boolean
  readonly opensBreaker: boolean
}

const told = (outcome: Outcome, who_acts: Actor, exit: 0 | 3 | 4, more: Partial<Told> = {}): Told => ({
  outcome,
  who_acts,
  exit,
  retry: false,
  opensBreaker: false,
  ...more,
})

const exitWith = (outcome: Outcome): number => {
  const facts = [started, planned("c"), settled("c", outcome, "R", "nobody")]
  const run = foldRun(facts.map((fact, seq) => ({ seq, at: seq, fact })))
  return run === undefined ? -1 : exitCodeOf(run, "delete")
}

const shown = ({ outcome, who_acts, retry, opensBreaker }: End): Told => ({
  outcome,
  who_acts,
  exit: exitWith(outcome) === 0 ? 0 : exitWith(outcome) === 3 ? 3 : 4,
  retry,
  opensBreaker,
})

const closed = (status_code: string, status_reason: string): End =>
  endOf({ status_code, status_reason, authentication_status: undefined })

const rejected = { opensBreaker: true }
const again = { retry: true }

const executions: ReadonlyArray<readonly [string, string, ReadonlyArray<string>, Told]> = [
  ["COMPLETED", "COMPLETED", ["COMPLETED"], told("succeeded", "nobody", 0)],
  ["PARTIAL", "PARTIAL", ["PARTIAL"], told("partial", "engineer", 3)],
  ["FAILED", "FAILED", ["FAILED"], told("failed", "engineer", 3)],
  ["TIMEOUT", "ABORTED", ["TIMEOUT"], told("failed", "engineer", 3)],
  [
    "TEMPORARY_ERROR",
    "TEMPORARY_ERROR",
    statusReasonsByCode.TEMPORARY_ERROR,
    told("unfinished", "service", 4, again),
  ],
  ["SYSTEM_CANCELLED", "ABORTED", ["SYSTEM_CANCELLED"], told("unfinished", "service", 4, again)],
  ["CLIENT_CANCELLED", "ABORTED", ["CLIENT_CANCELLED"], told("unfinished", "service", 4)],
  ["AUTH_ERROR", "AUTH_ERROR", statusReasonsByCode.AUTH_ERROR, told("failed", "customer", 3, rejected)],
  [
    "CUSTOMER_INTERVENTION_REQUIRED",
    "ABORTED",
    ["CUSTOMER_INTERVENTION_REQUIRED"],
    told("failed", "customer", 3),
  ],
  ["ACTION_TIMEOUT", "ABORTED", ["ACTION_TIMEOUT"], told("failed", "customer", 3)],
  ["USER_CANCELLED", "ABORTED", ["USER_CANCELLED"], told("failed", "customer", 3)],
  [
    "UNHANDLED_AUTH_ERROR",
    "UNHANDLED_AUTH_ERROR",
    ["UNHANDLED_AUTH_ERROR"],
    told("failed", "engineer", 3, rejected),
  ],
  ["unlisted value", "MOONLIT", ["COMPLETED", "FULL_MOON"], told("failed", "engineer", 3, rejected)],
  [
    "CONFIGURATION_ERROR",
    "CONFIGURATION_ERROR",
    statusReasonsByCode.CONFIGURATION_ERROR.filter((reason) => reason !== "BAD_PROXY_CONFIGURATION"),
    told("failed", "engineer", 3),
  ],
  [
    "BAD_PROXY_CONFIGURATION",
    "CONFIGURATION_ERROR",
    ["BAD_PROXY_CONFIGURATION"],
    told("unfinished", "service", 4),
  ],
]

describe("what happens with each end", () => {
  for (const [row, family, reasons, expected] of executions) {
    it(`an execution that ends with ${row} [end ${row}]`, () => {
      expect(reasons.map((reason) => [reason, shown(closed(family, reason))])).toEqual(
        reasons.map((reason) => [reason, expected]),
      )
    })
  }

  it("our own abort at max_wait or the deadline is the service's, over a challenge the customer's [end CLIENT_CANCELLED]", () => {
    const state = { status_code: "ABORTED", status_reason: "CLIENT_CANCELLED" }
    expect(
      (["max_wait", "deadline", "challenge"] as const).map((abort) => {
        const { end, reason } = endOfAttempt(state, abort)
        return [reason, shown(end)]
      }),
    ).toEqual([
      ["CLIENT_CANCELLED", told("unfinished", "service", 4)],
      ["CLIENT_CANCELLED", told("unfinished", "service", 4)],
      ["CUSTOMER_INTERVENTION_REQUIRED", told("failed", "customer", 3)],
    ])
  })

  it("a start that was answered 400 or 422 [end refused start]", () => {
    const reasons = ["T10N_FORBIDDEN", "CUSTOMER_INTERVENTION_REQUIRED", "INCORRECT_PARAMETERS_FORMAT"]
    expect(reasons.map((reason) => shown(endOfRefusal(reason)))).toEqual(
      reasons.map(() => told("failed", "engineer", 3)),
    )
  })

  for (const [reason, expected] of [
    ["ENGINE_UNKNOWN", told("skipped", "engineer", 3)],
    ["ENGINE_UNAVAILABLE", told("unfinished", "service", 4)],
    ["RESULTS_PARTIAL", told("unfinished", "service", 4)],
    ["START_UNKNOWN", told("unfinished", "engineer", 4)],
    ["ANSWER_UNUSABLE", told("failed", "engineer", 3)],
  ] as const) {
    it(`a task that ends with our own ${reason} [end ${reason}]`, () => {
      expect(shown(ownEnds[reason])).toEqual(expected)
    })
  }
})
