/**
 * What is said of jobs that are given together before any of them starts.
 */
import { describe, expect, it } from "vitest"
import { turnLines } from "../../src/cli/PlanText.ts"
import type { WaitReason } from "../../src/task/SideBySide.ts"
import { anId } from "../harness/Id.ts"

const engine_reference = anId("sandbox-bank:website")
const example = { customer_id: anId("c-1"), engine_reference }

describe("the turns of jobs", () => {
  it("are told in a line for those that start at once, and one for each that waits", () => {
    const reasons: ReadonlyArray<WaitReason> = [
      { why: "after" },
      { why: "time" },
      { why: "customer", shared: 1, example },
      { why: "customer", shared: 3, example },
      { why: "session", shared: 1, example: "s-1" },
      { why: "session", shared: 2, example: "s-1" },
      { why: "login", engine_reference },
    ]
    const waiting = reasons.map((reason, index) => ({ job: `j-${index}`, waits: [{ ...reason, job: "a" }] }))
    const login = { why: "login", engine_reference } as const
    const both = {
      job: "c",
      waits: [
        { ...login, job: "a" },
        { ...login, job: "b" },
      ],
    }
    expect(turnLines([{ job: "a", waits: [] }, { job: "b", waits: [] }, ...waiting, both])).toEqual([
      "Side by side: a, b.",
      "j-0 starts after a (as `after` asks).",
      "j-1 starts after a (they do not run on the same clock).",
      "j-2 starts after a (both name c-1 on sandbox-bank:website).",
      "j-3 starts after a (both name c-1 on sandbox-bank:website and 2 more).",
      "j-4 starts after a (both read the session s-1).",
      "j-5 starts after a (both read 2 sessions).",
      "j-6 starts after a (both may send the same login to sandbox-bank:website).",
      "c starts after a (both may send the same login to sandbox-bank:website), " +
        "b (both may send the same login to sandbox-bank:website).",
    ])
    expect(turnLines([{ job: "a", waits: [] }])).toEqual([])
  })
})
