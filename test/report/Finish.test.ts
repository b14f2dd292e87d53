/** The one command that finishes a night of several runs, and what is said where people have to act first. */
import { describe, expect, it } from "vitest"
import { foldRun } from "../../src/ledger/FoldRun.ts"
import type { Fact } from "../../src/ledger/Fact.ts"
import { finishOf, nothingLeft } from "../../src/report/Finish.ts"
import { anId } from "../harness/Id.ts"
import { planned, recorded, run_id, runOf, settled, started } from "./Samples.ts"

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
const peopleFirst = {
  command: undefined,
  why:
    `People have to act before a command can finish the rest. After that, \`nightjar rerun ${run_id}\` ` +
    "runs again what did not succeed. If a rejected login is correct after all, release it first: " +
    "`nightjar credentials list` shows it.",
}

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
    const there = rerunOf(run_id, " --output '/data/our nights'")
    expect(finishes([...both, ended(4)], [planned("b"), ok("b"), ended(0)], "/data/our nights")).toEqual([
      there,
      there,
    ])
  })

  it("is people's work first if only that is left, and nothing if nothing is", () => {
    const rest = [planned("b"), planned("c"), ok("b"), ok("c"), ended(0)]
    expect(finishes([...blocked, ...both, ended(4)], rest)).toEqual([peopleFirst, peopleFirst])
    const nothing = { command: undefined, why: nothingLeft }
    expect(finishes([...both, ended(4)], rest)).toEqual([nothing, nothing])
  })

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
      why: `${finishOf(held, [held]).why} ${peopleFirst.why}`,
    })
    const over = runOf(planned("b"), waits("b", 0), ended(4))
    expect(finishOf(over, [over]).command).toBe(`nightjar rerun ${run_id} --only START_UNKNOWN`)
    const mixed = runOf(planned("b"), planned("c"), waits("b", first), away("c"), ended(4))
    expect(finishOf(mixed, [mixed])).toEqual(rerunOf(run_id))
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
