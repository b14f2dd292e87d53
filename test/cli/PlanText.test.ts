/** A plan as people read it: a large one fits a screen, and everything is there when it is asked for. */
import { Duration, Redacted } from "effect"
import { describe, expect, it } from "vitest"
import { renderPreview, turnLines, type Preview } from "../../src/cli/PlanText.ts"
import type { Task, TaskVerdict } from "../../src/task/Assignment.ts"
import type { WaitReason } from "../../src/task/SideBySide.ts"
import { own } from "../../src/service/Ends.ts"
import { anId } from "../harness/Id.ts"
import { jobOf } from "../harness/SmallNights.ts"
import { said } from "../service/Said.ts"

const taskOf = (index: number): Task => ({
  task_id: anId(`job.2026-11-21/c-${index}/bank-${index % 2}`),
  customer_id: anId(`c-${index}`),
  engine_reference: anId(`bank-${index % 2}`),
  features: [],
  lacking: [],
  outside: [],
  start: {
    login: { _tag: "Parameters", parameters: Redacted.make({}), tokenized_access: false },
    configurations: {},
    hooks_extra_data: {},
  },
  fingerprint: `f-${index}`,
  account: {
    account: `a-${index}`,
    identity: [`a-${index}`],
    password: `f-${index}`,
    former: [],
    isByHand: true,
  },
  isByHand: true,
  availability: "ready",
  expected: Duration.minutes(index % 2 === 0 ? 2 : 5),
  source: "job.yaml:1:1",
})
const verdictOf = (index: number): TaskVerdict => ({
  task_id: anId(`job.2026-11-21/d-${index}/ghost`),
  customer_id: anId(`d-${index}`),
  engine_reference: anId("ghost"),
  features: [],
  outcome: "skipped",
  reason: said("ENGINE_UNKNOWN"),
  who_acts: "engineer",
  message: "the service has no such engine",
})

const now = Date.UTC(2026, 10, 21, 22)
const previewOf = (tasks: number, verdicts: number, more: Partial<Preview> = {}): Preview => {
  const all = Array.from({ length: tasks }, (_, index) => taskOf(index))
  return {
    job: { ...jobOf([]), timezone: "Europe/Madrid" },
    how: "new",
    isLeft: false,
    collect: [],
    elsewhere: [],
    plan: {
      run_id: anId("job.2026-11-21"),
      tasks: all,
      settled: Array.from({ length: verdicts }, (_, index) => verdictOf(index)),
      sessions: [],
      warnings: [],
      expiring: [],
      expired: [],
      conflicts: Array.from({ length: Math.floor(tasks / 250) }, (_, index) => ({
        why: "same_credentials",
        task_ids: all.slice(index * 100, index * 100 + (index + 1) * 4).map(({ task_id }) => task_id),
      })),
    },
    starting: all,
    over: [],
    followed: [],
    waiting: [],
    removed: [],
    leaving: 0,
    added: 0,
    notStarted: Array.from({ length: verdicts }, (_, index) => verdictOf(index)),
    unasked: [],
    carried: new Set(),
    expected: Duration.minutes(40),
    end: undefined,
    calls: 0,
    now,
    deadlineAt: undefined,
    sources: [],
    ...more,
  }
}
const told = (preview: Preview, all = false, width = 80) =>
  renderPreview(preview, { width, colour: false }, all).split("\n")

describe("a plan of three thousand tasks", () => {
  const end = { p50: Duration.hours(3), p95: Duration.minutes(250), late: 4, maybeLate: 31 }
  const preview = previewOf(3_000, 120, { end, calls: 61_000, deadlineAt: now + 4 * 60 * 60_000 })

  it("is told by engine, reason and count, with its end and what will not be over by the deadline", () => {
    expect(told(preview)).toEqual(
      [
        "job.2026-11-21 would start: 3000 tasks to start, 0 already finished, 120 that",
        "will not start, 0 sessions to read; takes at least 40 min",
        "Expected end: 02:00, in 3 h 0 min; 19 times out of 20 before 03:10. About 61000",
        "requests to the service.",
        "Deadline: 03:00. 4 tasks will probably not finish by then, 31 in a bad night.",
        "",
        "engine  tasks  engine is  expected each",
        "bank-0   1500  ready      2 min 0 s",
        "bank-1   1500  ready      5 min 0 s",
        "",
        "`--all` shows every task.",
        "",
        "Will not start:",
        "  120 tasks skipped, ENGINE_UNKNOWN (engineer): d-0 ghost, d-1 ghost, d-2 ghost",
        "    and 117 more",
        "",
        "Will run one after the other:",
      ].concat(told(preview).slice(17)),
    )
    expect(told(preview).length).toBeLessThan(70)
    expect(Math.max(...told(preview).map(({ length }) => length))).toBeLessThanOrEqual(80)
    expect(told(preview)[17]).toBe("  same credentials, 2 h 48 min: job.2026-11-21/c-1100/bank-0,")
  })

  it("is told whole when all of it is asked for", () => {
    const lines = told(preview, true, Infinity)
    expect(lines.filter((line) => /^c-\d+ +bank/.test(line))).toHaveLength(3_000)
    expect(lines.filter((line) => /^ {2}d-\d+ ghost: skipped, ENGINE_UNKNOWN/.test(line))).toHaveLength(120)
  })
})

describe("a plan of a few tasks", () => {
  it("shows the deadline before anything is known about the end, unless nothing would start [plan deadline]", () => {
    const deadlineAt = now + 4 * 60 * 60_000
    expect(told(previewOf(1, 0, { deadlineAt })).slice(0, 3)).toEqual([
      "job.2026-11-21 would start: 1 task to start, 0 already finished, 0 that will not",
      "start, 0 sessions to read; takes up to 2 min 0 s",
      "Deadline: 03:00.",
    ])
    const over = previewOf(1, 0, { how: "nothing", deadlineAt, starting: [], over: [taskOf(0)] })
    expect(told(over).join(" ")).not.toContain("Deadline")
  })

  it("is told task by task, and says nothing about an end that is not known", () => {
    const carried = new Set(["job.2026-11-21/c-1/bank-1"])
    expect(told(previewOf(2, 1, { collect: ["job.2026-11-20"], carried }))).toEqual([
      "job.2026-11-21 would start: 2 tasks to start, 0 already finished, 1 that will",
      "not start, 0 sessions to read; each takes up to 5 min 0 s",
      "First, what job.2026-11-20 left at the service is collected.",
      "1 task left over from the last run comes first.",
      "",
      "customer  engine  features                 engine is  expected",
      "c-0       bank-0  (the engine's defaults)  ready      2 min 0 s",
      "c-1       bank-1  (the engine's defaults)  ready      5 min 0 s",
      "",
      "Will not start:",
      "  d-0 ghost: skipped, ENGINE_UNKNOWN (engineer): the service has no such engine",
    ])
  })

  it("says which engines the service did not answer for, and when their forms were read [plan unasked]", () => {
    const unasked = [
      { engine_reference: "bank-1", why: "connection refused", fetched_at: now },
      { engine_reference: "bank-9", why: "connection refused", fetched_at: now - 60_000 },
    ]
    expect(told(previewOf(2, 0, { unasked })).slice(2)).toEqual([
      "Not known whether bank-1, bank-9 can be used now, their forms are those of",
      "2026-11-21T21:59:00.000Z or later: connection refused",
      "",
      "customer  engine  features                 engine is  expected",
      "c-0       bank-0  (the engine's defaults)  ready      2 min 0 s",
      "c-1       bank-1  (the engine's defaults)  not known  5 min 0 s",
    ])
  })

  it("names who waits for a login that is in use, and who left the job since the night began [plan names]", () => {
    const [followed, waiting] = [taskOf(1), taskOf(2)]
    const removed = { ...verdictOf(1), ...own("NOT_IN_JOB"), message: "the job no longer names it" }
    const some = { followed: [followed, waiting], waiting: [waiting], removed: [removed], leaving: 1 }
    expect(told(previewOf(0, 0, { how: "resume", ...some }))).toEqual([
      "job.2026-11-21 would be resumed: 0 tasks to start, 0 already finished, 2 in",
      "progress, 1 waiting for a login that is in use, 1 that will not start, 0",
      "sessions to read",
      "",
      "Wait until what earlier runs left open with their customer or login is over:",
      "  c-2 bank-0",
      "",
      "Will not start:",
      "  d-1 ghost: skipped, NOT_IN_JOB (engineer): the job no longer names it",
    ])
  })

  it("of a night that ended with something left says how to finish it", () => {
    const preview = previewOf(1, 0, { how: "nothing", isLeft: true, starting: [], over: [taskOf(0)] })
    expect(told(preview)).toEqual([
      "job.2026-11-21 starts nothing more: `nightjar rerun` starts what is left of its",
      "night: 0 tasks to start, 1 already finished, 0 that will not start, 0 sessions",
      "to read",
    ])
  })
})

// What is said of jobs that are given together before any of them starts.

const example = { customer_id: anId("c-1"), engine_reference: anId("sandbox-bank:website") }

it("the turns of jobs are told in a line for those that start at once, and one for each that waits", () => {
  const reasons: ReadonlyArray<WaitReason> = [
    { why: "after" },
    { why: "time" },
    { why: "customer", shared: 1, example },
    { why: "customer", shared: 3, example },
    { why: "session", shared: 1, example: "s-1" },
    { why: "session", shared: 2, example: "s-1" },
  ]
  const waiting = reasons.map((reason, index) => ({ job: `j-${index}`, waits: [{ ...reason, job: "a" }] }))
  const time = { why: "time" } as const
  const both = {
    job: "c",
    waits: [
      { ...time, job: "a" },
      { ...time, job: "b" },
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
    "c starts after a (they do not run on the same clock), b (they do not run on the same clock).",
  ])
  expect(turnLines([{ job: "a", waits: [] }])).toEqual([])
})
