/** What became of a feature (section 2.4), word by word; what the reference does not list is no success. */
import { describe, expect, it } from "vitest"
import { featureEnd, featureEnds } from "../../src/service/EndTable.ts"

const told = (reason: string | undefined) => {
  const end = featureEnd(reason)
  return end === undefined ? "its task's" : `${end.outcome} ${end.who_acts}`
}

describe("the end of a feature", () => {
  it("is its own if the service gave one, and its task's if it is open or stopped with it", () => {
    const alike = Object.groupBy(Object.keys(featureEnds), told)
    const words = Object.entries(alike).map(([end, reasons = []]) => [
      end,
      reasons.map((reason) => reason.replace("FEATURE_", "")).join(" "),
    ])
    expect(Object.fromEntries(words)).toEqual({
      "its task's": "ACCEPTED WAITING RUNNING ASYNC_WAIT ACTION_REQUIRED ABORTED",
      "failed customer": "ACTION_REJECTED ACTION_TIMEOUT CUSTOMER_INTERVENTION_REQUIRED",
      "failed engineer":
        "INCORRECT_PARAMETERS_FORMAT TIMEOUT CONFIGURATION_ERROR FAILED DISABLED NOT_IMPLEMENTED INTERNAL_ERROR",
      "unfinished service": "TEMPORARY_ERROR",
      "succeeded nobody": "COMPLETED",
      "partial engineer": "PARTIAL",
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
