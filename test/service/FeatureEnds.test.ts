/** What became of a feature (section 2.4), word by word; what the reference does not list is no success. */
import { describe, expect, it } from "vitest"
import { featureEnd, featureEnds } from "../../src/service/EndTable.ts"

const told = (reason: string | undefined) => {
  const end = featureEnd(reason)
  return end === undefined ? "its task's" : `${end.outcome} ${end.who_acts}`
}

describe("the end of a feature", () => {
  it("is its own if the service gave one, and its task's if it is open or stopped with it", () => {
    expect(Object.fromEntries(Object.keys(featureEnds).map((reason) => [reason, told(reason)]))).toEqual({
      FEATURE_ACCEPTED: "its task's",
      FEATURE_WAITING: "its task's",
      FEATURE_RUNNING: "its task's",
      FEATURE_ASYNC_WAIT: "its task's",
      FEATURE_ACTION_REQUIRED: "its task's",
      FEATURE_ABORTED: "its task's",
      FEATURE_ACTION_REJECTED: "failed customer",
      FEATURE_ACTION_TIMEOUT: "failed customer",
      FEATURE_CUSTOMER_INTERVENTION_REQUIRED: "failed customer",
      FEATURE_INCORRECT_PARAMETERS_FORMAT: "failed engineer",
      FEATURE_CONFIGURATION_ERROR: "failed engineer",
      FEATURE_TIMEOUT: "failed engineer",
      FEATURE_FAILED: "failed engineer",
      FEATURE_DISABLED: "failed engineer",
      FEATURE_NOT_IMPLEMENTED: "failed engineer",
      FEATURE_INTERNAL_ERROR: "failed engineer",
      FEATURE_TEMPORARY_ERROR: "unfinished service",
      FEATURE_COMPLETED: "succeeded nobody",
      FEATURE_PARTIAL: "partial engineer",
    })
  })

  it("is its task's if nothing was given, and an engineer's if it is not listed", () => {
    expect([undefined, "FEATURE_OF_TOMORROW", "toString"].map(told)).toEqual([
      "its task's",
      "failed engineer",
      "failed engineer",
    ])
  })
})
