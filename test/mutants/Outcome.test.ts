/** What becomes of a mutant, what the figure says, and that no accepted mutant outlives its source. */
import { describe, expect, it } from "vitest"
import { readAccepted, reasonOf, strayEntries } from "./Accepted.ts"
import { mutantsOf, readMutants } from "./Mutant.ts"
import { endOfFile, figureLine, figureOf, type End } from "./Outcome.ts"
import { reaching, withProbes } from "./Reach.ts"
import { parseSource } from "./Syntax.ts"

const seen = { passed: ["a"], failed: [], broken: [], planted: [] }

describe("a mutant", () => {
  it("is caught by a test that fails, a file that does not load or one that does not end", () => {
    expect(
      [seen, { ...seen, failed: ["b fails"] }, { ...seen, broken: ["no such export"] }, "late" as const].map(
        (one) => endOfFile("a.test.ts", one),
      ),
    ).toEqual([
      undefined,
      { _tag: "Caught", by: "a.test.ts: b fails" },
      { _tag: "Caught", by: "a.test.ts: no such export" },
      { _tag: "Late", by: "a.test.ts" },
    ])
  })

  it("is judged by the tests that reach its function: its module's, its room's, then the fastest", () => {
    const test = (elapsedMs: number, ...reached: ReadonlyArray<string>) => ({
      digest: "",
      elapsedMs,
      reached,
    })
    const tests = {
      "test/a.test.ts": test(1, "src/task/B.ts#2"),
      "test/b.test.ts": test(0, "src/task/B.ts#2"),
      "test/task/A.test.ts": test(9, "src/task/B.ts#2"),
      "test/task/B.test.ts": test(99, "src/task/B.ts#2", "src/task/B.ts#1"),
      "test/task/C.test.ts": test(1, "src/task/B.ts#1"),
      "test/task/D.test.ts": test(1),
    }
    const filesFor = (pattern: RegExp) =>
      reaching({ file: "src/task/B.ts", inFunction: 2 }, tests, pattern).map(({ file }) => file)
    expect(filesFor(/./)).toEqual([
      "test/task/B.test.ts",
      "test/task/A.test.ts",
      "test/b.test.ts",
      "test/a.test.ts",
    ])
    expect(filesFor(/^test\/task/).length).toBe(2)
  })
})

describe("the figure", () => {
  it("ignores accepted mutants and counts every survivor", () => {
    const [mutant] = mutantsOf("src/a.ts", "f()")
    const ends: ReadonlyArray<End> = [
      ...Array.from({ length: 1996 }, (): End => ({ _tag: "Caught", by: "a test" })),
      { _tag: "Late", by: "a.test.ts" },
      { _tag: "Accepted", reason: "it is the same" },
      { _tag: "Survived", why: "no test reaches it" },
    ]
    expect(figureLine(figureOf(ends.map((end) => ({ mutant: mutant!, end }))))).toBe(
      "1999 mutants: 1997 caught (1 by the time limit alone), 1 accepted, 1 survived (0.1 %)",
    )
  })
})

describe("the probes", () => {
  it("report every function that was reached, and change nothing else", () => {
    const text = "export const f = (a) => ({ a })\nexport function* g() { yield f(1) }\n"
    const probed = withProbes("src/a.ts", text)
    parseSource(probed)
    const body = probed.slice(probed.indexOf("\n") + 1)
    expect(body).toBe(
      'export const f = (a) => ((reached("src/a.ts#1"), { a }))\n' +
        'export function* g() { reached("src/a.ts#2");  yield f(1) }\n',
    )
  })
})

describe("an accepted mutant", () => {
  it("is identified by its source text, and reported when that is gone", () => {
    const mutants = mutantsOf("src/a.ts", "  const a = b < c\n")
    const entry = { line: "const a = b < c", from: "<", by: "<=", reason: "b is never c" }
    expect(mutants.map((mutant) => reasonOf(mutant, { "src/a.ts": [entry] }))).toEqual([
      "b is never c",
      undefined,
    ])
    expect(
      strayEntries({ "src/a.ts": [entry, { ...entry, by: ">" }] }, (file) =>
        file === "src/a.ts" ? mutants : [],
      ),
    ).toEqual(["accepted.yaml names no mutant of src/a.ts: const a = b < c"])
  })

  it("is in the current sources", () => {
    expect(strayEntries(readAccepted(), (file) => readMutants([file]))).toEqual([])
  })
})
