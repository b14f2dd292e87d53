/** What a finished run answers its caller, and the one command that finishes a night of several runs. */
import { describe, expect, it } from "vitest"
import { foldRun } from "../../src/ledger/FoldRun.ts"
import type { Fact } from "../../src/ledger/Fact.ts"
import type { Outcome } from "../../src/service/EndTable.ts"
import { exitCodeOf, finishOf, hasLeftovers, nothingLeft } from "../../src/report/Finish.ts"
import { anId } from "../harness/Id.ts"
import { executed, idOf, planned, recorded, run_id, runOf, settled, started } from "./Samples.ts"
import { aFact } from "../harness/Facts.ts"

const ended = (exit_code: number): Fact => ({ _tag: "RunEnded", run_id, exit_code, leftovers: false })
const away = (id: string) => settled(id, "unfinished", "NETWORK_ERROR", "service")
const ok = (id: string) => settled(id, "succeeded", "COMPLETED", "nobody")

/** What both runs of a night say: the first, and a rerun of it with these facts. */
const finishes = (first: ReadonlyArray<Fact>, rerun: ReadonlyArray<Fact>, output?: string) => {
  const second = [started, ...rerun].map((fact) => ({ ...fact, run_id: anId(`${run_id}.2`) }) as Fact)
  const night = [runOf(...first), foldRun(recorded(second))].flatMap((run) => run ?? [])
  return night.map((run) => finishOf(run, night, output))
}

const rerunOf = (id: string, output = "") => ({
  command: `nightjar rerun ${id} --only NETWORK_ERROR${output}`,
  why: "This command collects what is still at the service and runs again what did not finish:",
})
const peopleFirst = (output = "") => ({
  command: undefined,
  why:
    `People have to act before a command can finish the rest. After that, \`nightjar rerun ${run_id}${output}\` ` +
    "runs again what did not succeed. If a rejected login is correct after all, release it first: " +
    `\`nightjar credentials list${output}\` shows it.`,
})

describe("what finishes a night of two runs", () => {
  const both = [planned("b"), planned("c"), away("b"), away("c")]
  const blocked = [planned("a"), settled("a", "failed", "BLOCKED_USER", "customer")]

  it("is a rerun of the run that has all that is left", () => {
    const partly = [planned("b"), ok("b"), ended(0)]
    expect(finishes([...both, ended(4)], partly)).toEqual([rerunOf(run_id), rerunOf(run_id)])
    const still = [planned("b"), planned("c"), ok("b"), away("c"), ended(4)]
    expect(finishes([...both, ended(4)], still)).toEqual([rerunOf(run_id), rerunOf(`${run_id}.2`)])
  })

  it("names the output folder if it is not the one that is meant without a name", () => {
    const [folder, named] = ["/data/our nights", " --output '/data/our nights'"]
    const there = rerunOf(run_id, named)
    const partly = [planned("b"), ok("b"), ended(0)]
    expect(finishes([...both, ended(4)], partly, folder)).toEqual([there, there])
    const byHand = finishes([...blocked, planned("b"), ok("b"), ended(3)], partly, folder)
    expect(byHand).toEqual([peopleFirst(named), peopleFirst(named)])
  })

  it("is people's work first if only that is left, and nothing if nothing is", () => {
    const rest = [planned("b"), planned("c"), ok("b"), ok("c"), ended(0)]
    expect(finishes([...blocked, ...both, ended(4)], rest)).toEqual([peopleFirst(), peopleFirst()])
    const nothing = { command: undefined, why: nothingLeft }
    expect(finishes([...both, ended(4)], rest)).toEqual([nothing, nothing])
  })

  it("is the run again for a document that may still come, also if its task succeeded [exit 4 documents]", () => {
    const ids = { run_id, task_id: idOf("b"), session_id: anId("s-b"), attachment_id: "d-1" }
    const first = (status: "failed" | "not_delivered"): ReadonlyArray<Fact> => [
      planned("b"),
      { _tag: "AttachmentRead", ...ids, status },
      ok("b"),
    ]
    expect(exitCodeOf(runOf(...first("not_delivered")), "keep")).toBe(0)
    expect(exitCodeOf(runOf(...first("failed")), "keep")).toBe(4)
    const again = {
      command: "nightjar run jobs/demo.yaml",
      why: "This command collects, publishes and deletes what is still at the service:",
    }
    const rerun = [planned("c"), ok("c"), ended(0)]
    expect(finishes([...first("failed"), ended(4)], rerun)).toEqual([again, again])
  })

  const collects = "collects, publishes and deletes what is still at the service"
  const starts = "starts 2 tasks that did not finish"
  it.each([
    [false, false, false, "publishes how the run ended"],
    [false, false, true, "deletes what is still at the service"],
    [false, true, false, starts],
    [false, true, true, `deletes what is still at the service, and ${starts}`],
    [true, false, false, collects],
    [true, false, true, collects],
    [true, true, false, `${collects}, and ${starts}`],
    [true, true, true, `${collects}, and ${starts}`],
  ])(
    "is the run again, open: %s, to start: %s, to delete: %s [finish starts]",
    (isOpen, isStarted, isDue, what) => {
      const unreachable = (id: string) => settled(id, "unfinished", "SERVICE_UNREACHABLE", "service")
      const run = runOf(
        ...(isOpen ? [planned("a"), ...executed("a", {}).slice(0, 2), unreachable("a")] : []),
        ...(isStarted ? [planned("b"), unreachable("b"), planned("d"), unreachable("d")] : []),
        ...(isDue ? exported : []),
        ended(4),
      )
      const command = "nightjar run jobs/demo.yaml"
      expect(finishOf(run, [run])).toEqual({ command, why: `This command ${what}:` })
    },
  )

  it("is nothing yet while logins may be open, and the others meanwhile", () => {
    const waits = (id: string, not_before: number | "next_date") => ({
      ...settled(id, "unfinished", "START_UNKNOWN", "engineer"),
      not_before,
    })
    const [first, last] = [Date.parse("2099-11-20T04:00:00Z"), Date.parse("2099-11-20T05:12:00Z")]
    const run = runOf(planned("b"), planned("c"), waits("b", first), waits("c", last), ended(4))
    expect(finishOf(run, [run])).toEqual({
      command: undefined,
      why:
        "Until 2099-11-20T05:12:00.000Z logins may be open at the service, and no others are sent. " +
        `After that, \`nightjar rerun ${run_id} --only START_UNKNOWN\` runs again what did not finish.`,
    })
    const held = runOf(planned("b"), waits("b", "next_date"), ended(4))
    expect(finishOf(held, [held])).toEqual({
      command: undefined,
      why: "What did not finish waits for the next nightly run: it is not known how the last logins to these accounts ended, so no more are sent tonight.",
    })
    const both = runOf(...blocked, planned("b"), waits("b", "next_date"), ended(4))
    expect(finishOf(both, [both])).toEqual({
      command: undefined,
      why: `${finishOf(held, [held]).why} ${peopleFirst().why}`,
    })
    const over = runOf(planned("b"), waits("b", 0), ended(4))
    expect(finishOf(over, [over]).command).toBe(`nightjar rerun ${run_id} --only START_UNKNOWN`)
    const mixed = runOf(planned("b"), planned("c"), waits("b", first), away("c"), ended(4))
    expect(finishOf(mixed, [mixed])).toEqual(rerunOf(run_id))
  })

  it("is the run again where the service could not be used, and where it was cut off", () => {
    const command = "nightjar run jobs/demo.yaml"
    const runs = [runOf(ended(6)), runOf(planned("b"))]
    expect(runs.map((run) => finishOf(run, [run]))).toEqual([
      { command, why: "The service could not be used. This command begins the run again:" },
      {
        command,
        why: "The run has not ended. If no process is working on it, this command resumes it:",
      },
    ])
  })

  it("is its acceptance if a gate holds its tables back", () => {
    const gates = [{ gate: "rows", expected: "at least 10", found: "1", what: "" }]
    const held = { _tag: "RunHeld", run_id, database: "published/held/x.duckdb", gates } as unknown as Fact
    expect(finishOf(runOf(held, ended(3)), [runOf(held, ended(3))])).toEqual({
      command: undefined,
      why:
        "A gate holds the tables back. If the version that was set aside is right, " +
        `\`nightjar accept ${run_id}\` publishes it.`,
    })
  })
})

const codesOf = (facts: ReadonlyArray<Fact>, after_export: "delete" | "keep" = "delete") => [
  exitCodeOf(runOf(...facts), after_export),
  hasLeftovers(runOf(...facts), after_export),
]
const endedAs = (...outcomes: ReadonlyArray<Outcome>) =>
  outcomes.flatMap((outcome, index) => [planned(`c${index}`), settled(`c${index}`, outcome, "R", "nobody")])

const succeeded = [planned("c"), ...executed("c", {}), settled("c", "succeeded", "COMPLETED", "nobody")]
const drained: Fact = aFact("AttemptDrained", { run_id, task_id: idOf("c"), execution_id: "e-c" })
const exported = [...succeeded.slice(0, -1), drained, ...succeeded.slice(-1)]
const deletion = (outcome: "deleted" | "gone" | "pending"): Fact => ({
  _tag: "DeleteAnswered",
  run_id,
  task_id: anId(idOf("c")),
  execution_id: anId("e-c"),
  http_status: 204,
  outcome,
})

describe("the exit code", () => {
  it("is 0 if every task succeeded, or there was nothing to do [exit 0]", () => {
    expect([codesOf([]), codesOf(endedAs("succeeded", "succeeded"))]).toEqual([
      [0, false],
      [0, false],
    ])
  })

  it.each(["partial", "failed", "skipped"] as const)("is 3 if a task is %s [exit 3]", (outcome) => {
    expect(codesOf(endedAs("succeeded", outcome))).toEqual([3, false])
  })

  it("is 4 if a rerun can finish something, and takes precedence over 3 [exit 4]", () => {
    expect(codesOf(endedAs("succeeded", "unfinished"))).toEqual([4, false])
    expect(codesOf(endedAs("failed", "unfinished", "skipped"))).toEqual([4, false])
    expect(codesOf([...endedAs("failed"), planned("open")])).toEqual([4, true])
  })

  it("is 4 until every deletion is answered by 204 or 404, unless the job keeps executions [exit 4]", () => {
    expect([
      codesOf(exported),
      codesOf([...exported, deletion("pending")]),
      codesOf([...exported, deletion("deleted")]),
      codesOf([...exported, deletion("gone")]),
      codesOf(exported, "keep"),
    ]).toEqual([
      [4, true],
      [4, true],
      [0, false],
      [0, false],
      [0, false],
    ])
  })

  it("waits for no deletion of what is kept at the service because it could not be read", () => {
    expect(codesOf(succeeded)).toEqual([0, false])
  })
})

it("what is left at the service is an execution without an end, and results that are still partial", () => {
  const open = [planned("c"), ...executed("c", {}).slice(0, 2)]
  expect(codesOf([...open, settled("c", "unfinished", "NOT_STOPPABLE", "service")], "keep")).toEqual([
    4,
    true,
  ])
  const partial = [...succeeded.slice(0, -1), settled("c", "unfinished", "RESULTS_PARTIAL", "service")]
  expect(codesOf(partial, "keep")).toEqual([4, true])
})
