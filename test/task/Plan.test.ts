/** Whole plans: order, sessions, warnings, conflicts, and how long tasks are expected to take. */
import { it } from "@effect/vitest"
import { Array as Arr, Duration } from "effect"
import { describe, expect } from "vitest"
import type { Assignment } from "../../src/jobs/Job.ts"
import { foldRun } from "../../src/ledger/FoldRun.ts"
import type { Fact } from "../../src/ledger/Fact.ts"
import { estimateNight, expectedDurations, neededBefore, tailsOf } from "../../src/task/Expectations.ts"
import { takesOf, expectedDuration } from "../../src/task/Expectations.ts"
import type { ResolvedLogin } from "../../src/task/Assignment.ts"
import { findConflicts, planTasks, type PlanInput } from "../../src/task/Plan.ts"
import { assignment, fitOf, grounds, known, login, noExpectations } from "./Samples.ts"
import { anId } from "../harness/Id.ts"
import { aFact } from "../harness/Facts.ts"

const job = (assignments: ReadonlyArray<Assignment>, sessions: PlanInput["sessions"] = []) => ({
  assignments,
  sessions,
})
/** `logins`: one for each assignment, in the same order. */
const input = ({
  job: { assignments, sessions },
  logins,
  ...changes
}: Partial<PlanInput> & {
  readonly job: ReturnType<typeof job>
  readonly logins: ReadonlyArray<ResolvedLogin>
}): PlanInput => {
  const engines = changes.engines ?? new Map([["bank:website", known()]])
  const fitted = Arr.zipWith(assignments, logins, (assignment, login) => ({
    assignment,
    login,
    fit: fitOf(assignment, login, engines.get(assignment.engine_reference)),
  }))
  return { fitted, sessions, engines, grounds: grounds({ run_id: anId("n.2026-11-21") }), ...changes }
}
const place = { file: "job.yaml", line: 1, column: 1 }
const customer = (id: string, changes: Partial<Assignment> = {}) =>
  assignment({ customer_id: anId(id), source: `a.csv:${id}`, ...changes })

const accountNamed = (account: string) => {
  const keys = { account, identity: [account], password: account }
  return { ...keys, former: [], isByHand: true }
}

describe("a plan", () => {
  it("contains every assignment once, as task or verdict, with sessions, warnings and conflicts", () => {
    const loans = [{ code: "loans_read", configurations: undefined }]
    const plan = planTasks(
      input({
        job: job(
          [
            customer("1", { features: loans }),
            customer("2"),
            customer("3", { features: loans }),
            customer("4", { engine_reference: anId("away:api") }),
          ],
          [
            { session_id: anId("s1"), customer_id: anId("c-7"), place },
            { session_id: anId("s2"), customer_id: undefined, place },
          ],
        ),
        logins: [
          login({ username: "one", password: "pass" }),
          login({ username: "two" }),
          login({ username: "one", password: "pass" }),
          login({}),
        ],
      }),
    )
    const idOf = (customer_id: string, engine = "bank:website") => `n.2026-11-21/${customer_id}/${engine}`
    expect({
      ...plan,
      tasks: plan.tasks.map(({ task_id, availability }) => [task_id, availability]),
      settled: plan.settled.map(({ task_id, reason }) => [task_id, reason]),
    }).toEqual({
      run_id: anId("n.2026-11-21"),
      tasks: [
        [idOf("1"), "ready"],
        [idOf("3"), "ready"],
        [idOf("4", "away:api"), "unavailable"],
      ],
      settled: [[idOf("2"), "INCORRECT_PARAMETERS_FORMAT"]],
      sessions: [
        { task_id: anId("n.2026-11-21/session/s1"), session_id: anId("s1"), customer_id: anId("c-7") },
        { task_id: anId("n.2026-11-21/session/s2"), session_id: anId("s2") },
      ],
      warnings: [
        {
          engine_reference: anId("bank:website"),
          message: "loans_read is not offered by this engine: it would return no data",
          source: "a.csv:1",
          count: 2,
        },
      ],
      expiring: [],
      expired: [],
      conflicts: [{ why: "same_credentials", task_ids: [idOf("1"), idOf("3")] }],
    })
  })

  it("names tasks of one customer on one engine, across jobs, or on several of one source; each group once", () => {
    const task = (task_id: string, customer_id: string, account: string, engine_reference = "e") => ({
      task_id: anId(task_id),
      customer_id: anId(customer_id),
      engine_reference: anId(engine_reference),
      account: accountNamed(account),
    })
    const [website, api, other] = ["bank:website", "bank:api", "tax:website"] as const
    expect([
      findConflicts([task("a", "1", "x"), task("b", "1", "x"), task("c", "2", "y"), task("d", "2", "z")]),
      findConflicts([
        task("a", "1", "x", website),
        task("b", "1", "y", other),
        task("c", "1", "z", api),
        task("d", "2", "u", api),
      ]),
    ]).toEqual([
      [
        { why: "same_customer_and_engine", task_ids: ["a", "b"] },
        { why: "same_customer_and_engine", task_ids: ["c", "d"] },
      ],
      [{ why: "same_customer_and_source", task_ids: ["a", "c"] }],
    ])
  })
})

describe("expected durations", () => {
  const polling = { min: Duration.millis(4), max: Duration.minutes(1) }
  const run = (
    durations: ReadonlyArray<
      readonly [engine: string, ms: number, aborted?: boolean, took?: number, customer?: string]
    >,
    { endedAt, resumedAt }: { readonly endedAt?: number; readonly resumedAt?: number } = {},
  ) => {
    const facts: Array<{ seq: number; at: number; fact: Fact }> = []
    const add = (at: number, fact: Fact) => facts.push({ seq: facts.length, at, fact })
    const run_id = anId("r")
    add(0, { _tag: "RunStarted", run_id, job: "r", job_path: "", run_date: "2026-11-21", tool_version: "" })
    durations.forEach(([engine_reference, ms, aborted, took, customer = "c"], index) => {
      const task = { run_id, task_id: anId(String(index)) }
      const one = { ...task, attempt: 1 }
      const execution_id = anId(`x${index}`)
      add(0, aFact("TaskPlanned", { ...task, customer_id: customer, engine_reference }))
      add(0, { _tag: "StartIntended", ...one, external_execution_id: execution_id, probe: false })
      add(1_000, { _tag: "StartAnswered", ...one, answer: "accepted", execution_id })
      if (aborted === true) add(1_000, { _tag: "AbortIntended", ...one, execution_id, why: "max_wait" })
      const status = { status_code: "COMPLETED", status_reason: "COMPLETED" }
      add(1_000 + ms, aFact("AttemptClosed", { ...one, execution_id, ...status, took }))
    })
    if (resumedAt !== undefined) add(resumedAt, { _tag: "RunResumed", run_id })
    if (endedAt !== undefined) add(endedAt, { _tag: "RunEnded", run_id, exit_code: 0, leftovers: false })
    const state = foldRun(facts)
    return state === undefined ? [] : [state]
  }

  it("are medians from acceptance to closed, without what was aborted or collected late, or a clock that jumped", () => {
    const runs = [
      ...run([
        ["a", 10],
        ["a", 30],
        ["b", 100],
      ]),
      ...run([
        ["a", 20],
        ["a", 99, true],
        // Nobody looked at this one until long after its time was up.
        ["a", 101],
        ["b", -5],
      ]),
    ]
    const expectations = expectedDurations(runs, Duration.millis(100), polling)
    expect(expectations).toEqual({
      byEngine: new Map([
        ["a", [10, 20, 30]],
        ["b", [100]],
      ]),
      own: new Map(),
      all: [10, 20, 30, 100],
      ends: new Map([
        ["a", [10, 20, 30]],
        ["b", [100]],
      ]),
      closing: 0,
    })
    const [known, week] = [[expectations, noExpectations], Duration.days(7)]
    expect(known.map((one) => expectedDuration(one, anId("c"), week))).toEqual([Duration.millis(25), week])
    expect(expectedDuration(expectations, anId("a"), week)).toEqual(Duration.millis(20))
  })

  it("tell when executions ended by the service's dates, unless these say that they ended after that was seen", () => {
    const runs = run([
      ["a", 30, false, 21],
      ["a", 10, false, 600],
    ])
    const { ends, all } = expectedDurations(runs, Duration.millis(100), polling)
    expect([ends.get("a"), all]).toEqual([
      [10, 21],
      // Looked at after 4, 8, 14 and 21 milliseconds.
      [14, 21],
    ])
  })

  it("are a customer's own where customers differ from each other more than from themselves", () => {
    const twice = (msOf: (customer: number, night: number) => number) =>
      expectedDurations(
        [1, 2].flatMap((night) =>
          run([1, 2, 3, 4, 5].map((one) => ["a", msOf(one, night), false, 1_000, `c-${one}`] as const)),
        ),
        Duration.millis(1_000),
        polling,
      )
    const steady = twice((customer, night) => 100 * customer + night)
    expect(steady.own.get("c-3/a")).toEqual([302, 302])
    const task = (customer: string) => ({ customer_id: anId(customer), engine_reference: anId("a") })
    expect(["c-5", "c-6"].map((customer) => takesOf(steady, task(customer)))).toEqual([503, 302])
    const alike = twice((customer, night) => 100 * ((3 * customer * night) % 7))
    expect([alike.own.size, takesOf(alike, task("c-5"))]).toEqual([0, 350])
  })

  it("of a task and of those that must follow it are its tail, the longest first [decision 7 tails]", () => {
    const one = (task_id: string, takesMs: number | undefined, more: object) => ({
      task_id: anId(task_id),
      customer_id: anId(task_id),
      engine_reference: anId("a:x"),
      fingerprint: undefined,
      ...(takesMs === undefined ? {} : { takesMs }),
      ...more,
    })
    const tails = tailsOf(
      [
        one("alone", 50, {}),
        one("short", 10, { account: "shared" }),
        one("long", 40, { account: "shared" }),
        one("middle", 20, { account: "shared", customer_id: anId("m") }),
        one("other", 100, { customer_id: anId("m"), engine_reference: anId("a:y") }),
        one("new", undefined, {}),
      ],
      7,
    )
    const rows = { alone: 50, short: 10, long: 70, middle: 30, other: 120, new: 7 }
    expect(Object.fromEntries(tails)).toEqual(rows)
  })

  it("are not those of executions that were open when their run was resumed", () => {
    const taken = (resumedAt: number) =>
      expectedDurations(
        run(
          [
            ["a", 10],
            ["a", 30],
          ],
          { resumedAt },
        ),
        Duration.minutes(1),
        polling,
      ).all
    // Accepted at 1,000, over at 1,010 and 1,030.
    const times = [1_000, 1_001, 1_010, 1_011, 1_030, 1_031]
    expect(times.map(taken)).toEqual([[10, 30], [], [], [10], [10], [10, 30]])
  })

  it("leave room for 19 of 20 before a deadline, or for half where a whole night is too short for those", () => {
    const taken = Array.from({ length: 21 }, (_, index) => index + 1)
    const needed = (durations: ReadonlyArray<number>, windowMs: number) => {
      const needs = neededBefore(durations, windowMs)
      return needs === undefined ? undefined : Duration.toMillis(needs)
    }
    expect([20, 19, Infinity].map((windowMs) => needed(taken, windowMs))).toEqual([20, 11, 20])
    expect([needed([], 20), needed([7], 20)]).toEqual([undefined, 7])
  })

  it("of what follows the last execution are medians too, and never negative", () => {
    const closingOf = (...runs: ReadonlyArray<Parameters<typeof run>>) =>
      expectedDurations(
        runs.flatMap((one) => run(...one)),
        Duration.millis(100),
        polling,
      ).closing
    const executions = [
      ["a", 30],
      ["a", 10],
    ] as const
    expect(closingOf([executions, { endedAt: 1_037 }])).toBe(7)
    expect(closingOf([executions, { endedAt: 1_037 }], [executions, { endedAt: 1_040 }], [executions])).toBe(
      9,
    )
    expect(closingOf([executions, { endedAt: 1_020 }])).toBe(0)
    expect(closingOf([[], { endedAt: 1_020 }], [executions])).toBe(0)
  })

  it("of a run are limited by all slots, by those of one engine, or by a row of conflicts", () => {
    const tasks = [1, 2, 3, 4].map((n) => ({
      task_id: anId(`${n}`),
      engine_reference: anId(n < 4 ? "a" : "b"),
      expected: Duration.millis(10),
    }))
    // A task that is over already counts nothing, though those of its row have to wait for each other.
    const conflict = [{ task_ids: [anId("1"), anId("over"), anId("4")] }]
    const nights = [
      estimateNight(tasks, { max_in_flight: 1, per_engine: 9 }),
      estimateNight(tasks, { max_in_flight: 9, per_engine: 1 }),
      estimateNight(tasks, { max_in_flight: 9, per_engine: 9 }),
      estimateNight(tasks, { max_in_flight: 9, per_engine: 9 }, conflict),
      estimateNight([], { max_in_flight: 9, per_engine: 9 }),
      estimateNight([{ ...tasks[0]!, expected: Duration.zero }], { max_in_flight: 9, per_engine: 9 }),
    ]
    expect(nights.map(Duration.toMillis)).toEqual([40, 30, 10, 20, 0, 0])
  })
})
