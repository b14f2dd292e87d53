/** Who comes first after a night that was too short: whoever the deadline kept waiting longest. */
import { describe, expect, it } from "vitest"
import { own } from "../../src/service/Ends.ts"
import type { Fact } from "../../src/ledger/Fact.ts"
import { foldRun } from "../../src/ledger/FoldRun.ts"
import type { RunState } from "../../src/ledger/RunState.ts"
import { carriedOver, inLine, namedInOrder } from "../../src/task/Plan.ts"
import { anId } from "../harness/Id.ts"
import { assignment } from "./Samples.ts"

type End = Parameters<typeof own>[0] | "succeeded" | "aborted" | "open"

/** A run in which these customers were in line, in this order. */
const runOf = (run: string, ends: Readonly<Record<string, End>>): RunState => {
  const run_id = anId(run)
  const facts: Array<Fact> = [
    { _tag: "RunStarted", run_id, job: "job", job_path: "j", run_date: "2026-11-20", tool_version: "0" },
  ]
  for (const [customer, end] of Object.entries(ends)) {
    const task = { run_id, task_id: anId(`${run}/${customer}/bank`) }
    const execution_id = anId(`e-${run}-${customer}`)
    const one = { ...task, attempt: 1 }
    const access = { customer_id: anId(customer), engine_reference: anId("bank") }
    facts.push({ _tag: "TaskPlanned", ...task, ...access, features: [] })
    if (end === "open") continue
    if (end === "aborted") {
      facts.push({ _tag: "StartIntended", ...one, external_execution_id: "x", probe: false })
      facts.push({ _tag: "StartAnswered", ...one, answer: "accepted", execution_id })
      facts.push({ _tag: "AbortIntended", ...one, execution_id, why: "deadline" })
      facts.push({ _tag: "TaskSettled", ...task, ...own("NOT_STOPPABLE") })
    } else if (end === "succeeded") {
      const well = { outcome: "succeeded", reason: "COMPLETED", who_acts: "nobody" } as const
      facts.push({ _tag: "TaskSettled", ...task, ...well })
    } else facts.push({ _tag: "TaskSettled", ...task, ...own(end) })
  }
  const state = foldRun(facts.map((fact, index) => ({ fact, seq: index + 1, at: index, night: undefined })))
  if (state === undefined) throw new Error("no run")
  return state
}
const carried = (...runs: ReadonlyArray<Readonly<Record<string, End>>>) =>
  carriedOver(runs.map((ends, index) => runOf(`job.${index}`, ends))).join(" ")

describe("what a night leaves to the next one", () => {
  it("is what its deadline stopped or never started, and no later run finished, the oldest first [night carry]", () => {
    expect(
      carried({
        c: "DEADLINE_REACHED",
        b: "succeeded",
        a: "aborted",
        d: "RUN_DRAINED",
        e: "ENGINE_UNAVAILABLE",
        f: "open",
      }),
    ).toBe("c/bank a/bank d/bank")
    expect(
      carried(
        { a: "DEADLINE_REACHED", b: "DEADLINE_REACHED", c: "DEADLINE_REACHED" },
        { c: "succeeded" },
        { d: "DEADLINE_REACHED", b: "DEADLINE_REACHED" },
      ),
    ).toBe("a/bank d/bank b/bank")
  })
})

it("the line of the next night has those first, in their order, and the others as the job names them", () => {
  const line = (first: ReadonlyArray<string>) => inLine(["a", "b", "c", "d"], (one) => one, first).join(" ")
  expect([line([]), line(["c"]), line(["d", "gone", "b"])]).toEqual(["a b c d", "c a b d", "d b a c"])
})

describe("what a job names, where the tables have pseudonyms,", () => {
  const customers = ["a", "b", "c", "d", "e", "f"]
  const place = { file: "job.yaml", line: 1, column: 1 }
  const pseudonyms = { key: { _tag: "Env", name: "KEY" }, columns: {}, places: new Map() } as const
  const codes = [
    { code: "x", configurations: undefined },
    { code: "b", configurations: undefined },
  ]
  const jobOf = (ids: ReadonlyArray<string>) => ({
    assignments: ids.map((id) => assignment({ customer_id: anId(id), features: codes })),
    sessions: ids.map((id) => ({ session_id: anId(`s-${id}`), customer_id: undefined, place })),
  })
  const by = { key: new Uint8Array(32).fill(1), run_id: anId("job.1") }
  const orderOf = (ids: ReadonlyArray<string>, other: Partial<typeof by> = {}) => {
    const { assignments, sessions } = namedInOrder({ ...jobOf(ids), pseudonyms }, { ...by, ...other })
    const whole = [
      ...assignments.map(({ customer_id }) => customer_id),
      ...sessions.map((one) => one.session_id),
    ]
    return { assignments, text: whole.join(" "), all: whole.toSorted() }
  }

  it("comes in the order of the key and the run, with its features by name, else as the job has it", () => {
    const { text, all, assignments } = orderOf(customers)
    expect(all).toEqual([...customers, ...customers.map((id) => `s-${id}`)].map((id) => anId(id)))
    expect(orderOf(customers.toReversed()).text).toBe(text)
    expect(assignments.map(({ features }) => features.map(({ code }) => code).join())).toEqual(
      customers.map(() => "b,x"),
    )
    const others = [{ key: new Uint8Array(32).fill(2) }, { run_id: anId("job.2") }]
    expect([all.join(" "), ...others.map((other) => orderOf(customers, other).text)]).not.toContain(text)
    expect(namedInOrder(jobOf(customers), by)).toEqual(jobOf(customers))
  })
})
