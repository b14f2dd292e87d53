/** What the figure says, and that no accepted mutant outlives its source. */
import { expect, it } from "vitest"
import { mutantsOf, textOf } from "./Mutant.ts"
import { figureLine, isAccepted, readAccepted, strayEntries, type End } from "./Outcome.ts"

it("the figure ignores accepted mutants and counts every survivor", () => {
  const ends: ReadonlyArray<End> = [
    ...Array.from({ length: 1996 }, (): End => ({ _tag: "Caught", by: "a test" })),
    { _tag: "Late", by: "a.test.ts" },
    { _tag: "Accepted" },
    { _tag: "Survived" },
  ]
  expect(figureLine(ends)).toBe(
    "1999 mutants: 1997 caught (1 by the time limit alone), 1 accepted, 1 survived (0.1 %)",
  )
})

it("an accepted mutant is identified by its source text, and reported when that is gone", () => {
  const mutants = mutantsOf("src/a.ts", "  const a = b < c\n")
  const entry = { line: "const a = b < c", from: "<", by: "<=", reason: "b is never c" }
  expect(mutants.map((mutant) => isAccepted(mutant, { "src/a.ts": [entry] }))).toEqual([true, false])
  expect(strayEntries({ "src/a.ts": [entry, { ...entry, by: ">" }] }, () => mutants.slice(0, 1))).toEqual([
    "accepted.yaml names no mutant of src/a.ts: const a = b < c",
  ])
})

it("every accepted mutant is in the current sources", () => {
  expect(strayEntries(readAccepted(), (file) => mutantsOf(file, textOf(file)))).toEqual([])
})
