/** The checker itself, on an inventory of three rows: it must see what is missing and what is too much. */
import { describe, expect, it } from "vitest"
import { coverageOf, plainTitle, tagsOf } from "./Coverage.ts"
import { renderConformance } from "./ConformanceDocument.ts"

const row = (id: string) => ({ id, section: "3.2", says: `what ${id} says`, part: "states" as const })
const rows = [row("move 1"), row("reason TIMEOUT"), row("startExecution 409")]
const test = (title: string) => ({ file: "test/sandbox/Some.test.ts", title })
const both = test("a run [move 1] times out [reason TIMEOUT]")
const conflict = test("[startExecution 409] one at a time")

describe("the checker of the inventory", () => {
  const seen = coverageOf(rows, [both, conflict], rows)
  it("passes when every row has a test and every tag a row", () => {
    expect(seen.problems).toEqual([])
    expect(seen.rows.map(({ id, tests }) => [id, tests])).toEqual([
      ["move 1", [both]],
      ["reason TIMEOUT", [both]],
      ["startExecution 409", [conflict]],
    ])
  })

  const bugs = [...rows.slice(0, 2), ...rows.slice(1, 2), row("reason TIMEUOT")]
  it.each([
    [[both, test("one at a time")], rows, rows, ["[startExecution 409] of section 3.2 has no test"]],
    [
      [both, conflict, test("[reason TIMEUOT] typing")],
      [...rows, row("move 1")],
      rows,
      [
        "[move 1] is in the inventory twice",
        "[reason TIMEUOT] in a title of test/sandbox/Some.test.ts names no row",
      ],
    ],
    [
      [both, conflict],
      rows,
      bugs,
      [
        "[startExecution 409] has no bug that its tests must catch",
        "[reason TIMEOUT] has two bugs",
        "the bug of [reason TIMEUOT] is for no row",
      ],
    ],
  ])("names what is missing and what is too much (%#)", (tests, inventory, planted, problems) => {
    expect(coverageOf(inventory, tests, planted).problems).toEqual(problems)
  })

  it("treats brackets as tags only if they contain a word and more, and shows titles without them", () => {
    const title = '[event es-public-administration:partial] lists [] and ["a b"] and [1] [move 3] stay'
    expect(tagsOf(title)).toEqual(["event es-public-administration:partial", "move 3"])
    expect(plainTitle(title)).toBe('lists [] and ["a b"] and [1] stay')
  })

  it("renders each row with its tests, one behaviour once however it was reached", () => {
    const twice = [
      { ...conflict, title: `a start, in-process > ${conflict.title}` },
      { ...conflict, title: `a start, over HTTP > ${conflict.title}` },
    ]
    const text = renderConformance(coverageOf(rows, [both, ...twice], rows).rows, [
      { section: "2.6", open: "the lifetime of a ticket", service: "an hour", client: "guesses nothing" },
    ])
    expect(text).toContain(
      "3 rows of the reference, 0 additions of our own, 0 rows of the pipeline, 1 parts not shown.",
    )
    expect(text).toContain(
      "| `startExecution 409` | what startExecution 409 says | `sandbox/Some.test.ts`: a start: one at a time |",
    )
    expect(text).toContain("| 2.6 | the lifetime of a ticket | an hour | guesses nothing |")
  })
})
