/** What the table of promises says of campaigns and tests that went well, went wrong, or did not run. */
import { existsSync } from "node:fs"
import { describe, expect, it } from "vitest"
import { countByPromise, figuresLine, readFigures } from "./Figure.ts"
import { campaignsFor, decodeTable, promisesIn, readTable, testsOf, wordsOf } from "./PromiseSource.ts"
import { isSound, renderRows, rowOf, summaryOf, type Evidence } from "./PromiseTable.ts"

const nights = { of: "nights", tried: 2000, failed: 1 }
const evidence: Evidence = {
  campaigns: {
    simulate: {
      seconds: 12.4,
      figures: [{ ...nights, byPromise: { 1: { tried: 2000, failed: 0 }, 2: { tried: 2000, failed: 1 } } }],
    },
    faults: {
      seconds: 3,
      figures: [
        { of: "disks", tried: 0, failed: 0, leftOut: "no root" },
        { of: "kills", tried: 2, failed: 0 },
      ],
    },
    bodies: { seconds: 1, broken: "it ended with 1 and without figures" },
  },
  campaignOf: { nights: "simulate", disks: "faults", kills: "faults", bodies: "bodies", lost: "faults" },
  tests: { 1: { tried: 3, failed: 0 }, 6: { tried: 2, failed: 1 } },
}
const told = (number: number, ...tried: ReadonlyArray<string>) => {
  const { state, lines } = rowOf({ number, promise: "p", tried }, evidence)
  return [state, ...lines]
}

describe("a promise", () => {
  it("is kept if something was tested and nothing failed", () => {
    expect(told(1, "nights", "kills")).toEqual([
      "kept",
      "nights: 2,000 tried, 0 violations (12 s)",
      "kills: 2 tried, 0 violations (3 s)",
      "tests: 3 of 3 pass",
    ])
  })

  it("is violated by a single failure, in a campaign or in a test", () => {
    expect(told(2, "nights")).toEqual(["violated", "nights: 2,000 tried, 1 violation (12 s)"])
    expect(told(6, "kills")).toEqual(["violated", "kills: 2 tried, 0 violations (3 s)", "tests: 1 of 2 pass"])
  })

  it("never counts as kept if nothing was tested", () => {
    expect(told(3, "disks")).toEqual(["not tried", "disks: left out (no root)"])
    expect(told(3, "nights")).toEqual(["not tried", "nights: none in this sample"])
    expect(told(3, "unknown")).toEqual(["not tried", "unknown: not run"])
    expect(told(3)).toEqual(["not built yet"])
    expect(told(3, "bodies", "kills")[0]).toBe("broken")
    expect(told(3, "lost")).toEqual(["broken", "lost: the campaign gave no such figure"])
  })

  it("names the files of its tests if somebody else runs them", () => {
    const { state, lines } = rowOf({ number: 3, promise: "p", tried: [] }, { ...evidence, filesLeft: 2 })
    expect([state, ...lines]).toEqual(["not tried", "tests: in 2 files, not run here"])
  })

  it("is a row of the table, and makes the command fail if it is violated or broken", () => {
    const rows = [1, 2, 3].map((number) =>
      rowOf({ number, promise: "It holds.", tried: number === 3 ? [] : ["nights"] }, evidence),
    )
    expect(renderRows(rows.slice(1))).toEqual([
      " 2  violated",
      "    It holds.",
      "      nights: 2,000 tried, 1 violation (12 s)",
      " 3  not built yet",
      "    It holds.",
    ])
    expect(summaryOf(rows)).toBe("3 promises: 1 kept, 1 violated, 1 not built yet")
    expect(
      [rows, [rows[0]!, rows[2]!], [rowOf({ number: 3, promise: "p", tried: ["bodies"] }, evidence)]].map(
        isSound,
      ),
    ).toEqual([false, true, false])
  })
})

describe("a campaign", () => {
  it("prints its figures in the last line of its output, or none", () => {
    expect(readFigures(`2000 nights\n${figuresLine([nights])}\n`)).toEqual([nights])
    expect(readFigures("2000 nights\n1 failed\n")).toBeUndefined()
    expect(readFigures('{"figures":[{"of":"nights"}]}')).toBeUndefined()
  })

  it("counts figures of one promise only for that one", () => {
    expect(
      countByPromise([
        { promise: 5, failed: false },
        { promise: 5, failed: true },
        { promise: 14, failed: false },
      ]),
    ).toEqual({ 5: { tried: 2, failed: 1 }, 14: { tried: 1, failed: 0 } })
    expect(promisesIn("keeps [promise 5 counts] [promise 14] (promise 3)")).toEqual([5, 14])
  })

  it("is identified by its figures, and an unknown figure is refused", () => {
    const campaigns = {
      a: { command: "a.ts", figures: ["x"], sample: '--rows "^promise " --sample 6', full: "" },
      b: { command: "b.ts", figures: ["y"], sample: "", full: "" },
    }
    const row = { number: 1, promise: "p", tried: ["x"] }
    const table = decodeTable({ campaigns, promises: [row] })
    expect(campaignsFor(table, table.promises).map(([name]) => name)).toEqual(["a"])
    expect(wordsOf(campaigns.a.sample)).toEqual(["--rows", "^promise ", "--sample", "6"])
    expect(() => decodeTable({ campaigns, promises: [{ ...row, tried: ["z"] }] })).toThrow(
      "promise 1 is tried by z, which no campaign has",
    )
  })

  it("may be sampled by tests that are there, which are then named for what it tries", () => {
    const { campaigns, promises } = readTable()
    const files = Object.values(campaigns).flatMap((campaign) => testsOf(campaign) ?? [])
    expect(files.length).toBeGreaterThan(0)
    expect(files.filter((file) => !existsSync(new URL(`../../${file}`, import.meta.url)))).toEqual([])
    expect(testsOf({ command: "a.ts", figures: ["x"], sample: "--seeds 2", full: "" })).toBeUndefined()
    expect(
      rowOf(
        { number: 3, promise: "p", tried: ["nights"] },
        { ...evidence, campaigns: { simulate: { sampledBy: "a.test.ts" } } },
      ),
    ).toMatchObject({ state: "not tried", lines: ["nights: a sample is in a.test.ts"] })
    expect(promises.map(({ number }) => number)).toEqual(promises.map((_, index) => index + 1))
  })
})
