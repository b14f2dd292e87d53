/** Planted bugs: how they are written down, that they exist in memory only, and what the command makes of the tests. */
import { execFileSync } from "node:child_process"
import { readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { describe, expect, it } from "vitest"
import { decodeBugs, misfits } from "./Bugs.ts"
import { figureOf, judge, outcomeOf } from "./PlantedRows.ts"
import { plantAll, plantedVariable } from "./PlantText.ts"
import { openTestProcess } from "./TestProcess.ts"

const root = fileURLToPath(new URL("../../", import.meta.url))
const seen = { passed: [], failed: [], broken: [], planted: [] }

describe("a bug", () => {
  it("is one change, or one for each row of a pattern that has none of its own", () => {
    const ids = ["move 1", "startExecution 401", "readExecution 401", "field a.b", "field b"]
    expect(
      decodeBugs(
        [
          { "src/a.ts": { "move 1": ["one", "two"], "readExecution 401": ["three", "four"] } },
          { "src/b.ts": { "* 401": ["{of}", "not {}"] }, "src/a.ts": { "field *.b": ["{of}", "not {}"] } },
        ],
        ids,
      ),
    ).toEqual([
      { id: "move 1", in: "src/a.ts", replace: "one", by: "two" },
      { id: "readExecution 401", in: "src/a.ts", replace: "three", by: "four" },
      { id: "startExecution 401", in: "src/b.ts", replace: "startExecution", by: "not 401" },
      { id: "field a.b", in: "src/a.ts", replace: "a", by: "not b" },
    ])
    expect(() => decodeBugs([{ "src/a.ts": { "move 1": ["one"] } }], ids)).toThrow()
  })

  it("fits if each of its texts occurs exactly once, and otherwise says so", () => {
    const one = (replace: string, by: string) => ({ in: "a.ts", replace, by })
    expect(plantAll("aba", "a.ts", [one("b", "$&")])).toBe("a$&a")
    expect(plantAll("aba", "a.ts", [one("b", "c"), one("c", "d")])).toBe("ada")
    expect(plantAll("aba", "b.ts", [one("x", "y")])).toBe("aba")
    const bugs = [
      { id: "row 1", ...one("b", "c") },
      { id: "row 2", ...one("a", "c") },
      { id: "row 3", ...one("x", "c") },
      { id: "row 4", ...one("b", "b") },
      { id: "row 5", in: "b.ts", replace: "b", by: "c" },
    ]
    expect(misfits(bugs, (path) => (path === "a.ts" ? "aba" : undefined))).toEqual([
      "the bug of [row 2] replaces what is not exactly once in a.ts",
      "the bug of [row 3] replaces what is not exactly once in a.ts",
      "the bug of [row 4] changes nothing in a.ts",
      "the bug of [row 5] is for b.ts, which is not there",
    ])
  })
})

describe("a row", () => {
  it("is caught if one of its own tests fails, and survives if all of them pass", () => {
    const passed = ["it [move 1] passes"]
    const failed = ["it [move 1] fails"]
    for (const [one, end, said] of [
      [{ ...seen, failed }, "caught", failed[0]],
      [{ ...seen, failed: ["outside any test: Error: x"] }, "caught", "outside any test: Error: x"],
      ["late", "caught", "the time limit"],
      [{ ...seen, passed, planted: ["src/a.ts"] }, "survived", "all of its tests pass"],
      [{ ...seen, passed }, "survived", "its tests do not load the changed source"],
      [{ ...seen, failed: ["it [move 2] fails"] }, "error", "failed elsewhere: it [move 2] fails"],
      [{ ...seen, failed, broken: ["a.test.ts: a syntax error"] }, "error", "a.test.ts: a syntax error"],
      [seen, "error", "none of its tests ran"],
    ] as const)
      expect(judge("move 1", one)).toEqual({ id: "move 1", end, [end === "caught" ? "by" : "why"]: said })
  })

  it("fails the command if it survives without being accepted, or is accepted and caught after all", () => {
    const why = "all of its tests pass"
    const outcome = outcomeOf(
      [
        { id: "move 1", end: "caught", by: "a test" },
        { id: "move 2", end: "survived", why },
        { id: "move 3", end: "survived", why },
        { id: "move 4", end: "caught", by: "a test" },
        { id: "move 5", end: "error", why: "it has no test" },
      ],
      { "move 3": "nothing shows it", "move 4": "nothing showed it" },
    )
    const survivors = [
      { id: "move 2", why },
      { id: "move 3", why, reason: "nothing shows it" },
    ]
    const problems = [
      "[move 2] survived: all of its tests pass",
      "[move 4] is accepted as a survivor, but caught by: a test",
      "[move 5] cannot be judged: it has no test",
    ]
    expect(outcome).toEqual({ rows: 5, caught: 2, late: 0, survivors, problems })
    expect(figureOf(outcome)).toBe("planted bugs: 2 of 5 caught (40.0 %), 2 survivors")
    expect(figureOf({ ...outcome, rows: 3000, caught: 2999, survivors: outcome.survivors.slice(1) })).toBe(
      "planted bugs: 2999 of 3000 caught (99.9 %), 1 survivor",
    )
  })
})

describe("planting", () => {
  const change = { in: "src/sandbox/server/Gates.ts", replace: "refuse(401, ", by: "refuse(403, " }

  it("is seen by the row's tests, by no other run before or after, and not on the disk", async () => {
    const before = readFileSync(`${root}${change.in}`)
    const process = openTestProcess()
    try {
      const run = async (changes: ReadonlyArray<typeof change>) => {
        const wanted = { files: ["test/conformance/Gate.test.ts"], ids: ["readToken 401"], changes }
        const answer = await process.run(wanted, 50_000)
        if (answer === "late") return answer
        return [answer.passed.length, answer.failed.length, answer.broken.length, answer.planted]
      }
      expect([await run([]), await run([change]), await run([])]).toEqual([
        [1, 0, 0, []],
        [0, 1, 0, [change.in]],
        [1, 0, 0, []],
      ])
    } finally {
      process.stop()
    }
    expect(readFileSync(`${root}${change.in}`)).toEqual(before)
  })

  it("reaches processes that tests start, through the preload that they inherit", () => {
    const preload = new URL("PlantedSource.ts", import.meta.url).href
    const code = 'console.log((await import("./src/messages/ExitCodes.ts")).exitCodes.usage)'
    const changes = [{ in: "src/messages/ExitCodes.ts", replace: "usage: 2,", by: "usage: 9," }]
    const env = {
      PATH: process.env["PATH"] ?? "",
      NODE_OPTIONS: `--import=${preload}`,
      [plantedVariable]: JSON.stringify(changes),
    }
    const started = ["--input-type=module", "-e", code]
    expect(execFileSync(process.execPath, started, { cwd: root, encoding: "utf8", env })).toBe("9\n")
  })
})
