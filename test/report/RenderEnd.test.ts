/** A reason as `explain` tells it: what it means, what follows, and what to do next. */
import { describe, expect, it } from "vitest"
import { rowOf } from "../../src/service/Ends.ts"
import { endJson, renderEnd } from "../../src/report/RenderSummary.ts"

const told = (reason: string) => renderEnd(reason, rowOf(reason), Infinity)

describe("a reason that is explained", () => {
  it("says what it means, what follows, whether it is tried again, and what to do next", () => {
    expect(told("DUPLICATED_SESSION")).toBe(
      `DUPLICATED_SESSION: The user already had a session open at the source.
Outcome: failed, action needed from the customer, exit code 3
Tried again in the same run: never with the same credentials
Next: Agree on a time with the customer, then run \`nightjar credentials release\`.`,
    )
    expect(told("OUT_OF_SERVICE")).toBe(
      `OUT_OF_SERVICE: The source is out of service.
Outcome: unfinished, action needed from the service, exit code 4
Tried again in the same run: yes, with growing waits
Next: \`nightjar run JOB\` tries again.`,
    )
  })

  it("does not call on the service for what this program itself stopped", () => {
    const outcomeOf = (reason: string) => told(reason).split("\n")[1]
    expect(["CLIENT_CANCELLED", "DEADLINE_REACHED", "RUN_DRAINED", "IN_PROGRESS"].map(outcomeOf)).toEqual([
      "Outcome: unfinished, left for the next run, exit code 4",
      "Outcome: unfinished, left for the next run, exit code 4",
      "Outcome: unfinished, left for the next run, exit code 4",
      "Outcome: unfinished, not finished yet, exit code 4",
    ])
  })

  it("says what it means for a task that was never started, if that is different", () => {
    expect(told("CUSTOMER_INTERVENTION_REQUIRED").split("\n").slice(1, 4)).toEqual([
      "Outcome: failed, action needed from the customer, exit code 3",
      "If it was never started: skipped, action needed from an engineer, exit code 3",
      "Tried again in the same run: no",
    ])
  })

  it("leaves out exit code and retries if it is one of a feature: they are its task's", () => {
    expect(told("FEATURE_DISABLED")).toBe(
      `FEATURE_DISABLED: The feature is disabled.
Outcome: failed, action needed from an engineer
Next: Remove it from the job.`,
    )
    expect(endJson("FEATURE_DISABLED", rowOf("FEATURE_DISABLED"))).toEqual({
      reason: "FEATURE_DISABLED",
      outcome: "failed",
      who_acts: "engineer",
      means: "The feature is disabled.",
      next: "Remove it from the job.",
    })
  })

  it("is one object for a program", () => {
    expect(endJson("COMPLETED", rowOf("COMPLETED"))).toEqual({
      reason: "COMPLETED",
      outcome: "succeeded",
      who_acts: "nobody",
      retry: false,
      opens_breaker: false,
      exit_code: 0,
      means: "Everything was read.",
      next: "Nothing to do.",
    })
  })

  it("keeps to a narrow terminal", () => {
    const lines = renderEnd("INCORRECT_MFA", rowOf("INCORRECT_MFA"), 40).split("\n")
    expect(lines.filter((line) => line.length > 40)).toEqual([])
  })
})
