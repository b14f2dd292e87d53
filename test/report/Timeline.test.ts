/** Which facts an id names, and how they read. */
import { describe, expect, it } from "vitest"
import { factsAbout, renderRecorded } from "../../src/report/Timeline.ts"
import { executed, idOf, planned, recorded, run_id, settled, started } from "./Samples.ts"

const facts = recorded([
  started,
  planned("a"),
  planned("b"),
  ...executed("a", { "accounts@x": 3 }),
  settled("a", "failed", "BLOCKED_USER", "customer", { message: "why" }),
  { _tag: "RunEnded", run_id, exit_code: 3, leftovers: true },
])

describe("factsAbout", () => {
  it("finds a task by its own id, its customer's, execution's and session's, and nothing else", () => {
    for (const id of [idOf("a"), "a", "e-a", "s"])
      expect([...factsAbout(facts, id)].map(([task_id, found]) => [task_id, found.length])).toEqual([
        [idOf("a"), 5],
      ])
    expect([...factsAbout(facts, "b")].map(([task_id, found]) => [task_id, found.length])).toEqual([
      [idOf("b"), 1],
    ])
    expect(factsAbout(facts, "accounts_read").size).toBe(0)
  })
})

describe("renderRecorded", () => {
  it("prints each fact on one line with its time", () => {
    expect(facts.map(renderRecorded)).toEqual([
      "2026-11-21 02:00:00  run demo.2026-11-21 of jobs/demo.yaml began",
      "2026-11-21 02:00:01  planned: accounts_read",
      "2026-11-21 02:00:02  planned: accounts_read",
      "2026-11-21 02:00:03  attempt 1: start, external id nj-1",
      "2026-11-21 02:00:04  attempt 1: the service accepted the start (202); execution e-a, session s",
      "2026-11-21 02:00:05  attempt 1: closed with COMPLETED / COMPLETED, 3 products counted; " +
        "10 bytes landed in segment-000001.njl at 0",
      "2026-11-21 02:00:06  settled: failed, BLOCKED_USER, action needed from the customer: why",
      "2026-11-21 02:00:07  run ended with exit code 3; something is left at the service",
    ])
  })
})
