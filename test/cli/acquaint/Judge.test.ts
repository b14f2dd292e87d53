/**
 * The picture of a run: which results sources fit, what is left for an engineer, and what does not fit.
 */
import { describe, expect, it } from "vitest"
import { parse } from "yaml"
import {
  isStillThere,
  judge,
  missingFamilies,
  renderMarkdown,
  renderSections,
  reportSections,
  sourcesLine,
} from "../../../src/cli/acquaint/Judge.ts"
import { builtInSources } from "../../../src/service/FlowResults.ts"
import { calls, closedState, execution_id, incomeSource, salary, withIncome } from "./calling.ts"
import type { Written } from "./calling.ts"
import { anId } from "../../harness/Id.ts"

const closed: Written = ["state", 200, closedState]
const { products_count: _, ...uncountedState } = closedState
const uncounted: Written = ["state", 200, uncountedState]
const results = (data: unknown, more: object = { is_closed: true }): Written => [
  "results",
  200,
  { data, retrieved_features: [], ...more },
]
const two = [salary, salary]
const noFlows: Written = ["results", 404, "<html>"]
const income: Written = ["income", 200, { records: two, is_final: true }]

const judged = (written: ReadonlyArray<Written>, { sources = builtInSources } = {}) =>
  judge({ calls: calls(...written), sources })

/** The files as a job reads them, and what stands in them as a comment for somebody to decide. */
const files = (picture: ReturnType<typeof judged>) =>
  Object.fromEntries(
    picture.fitted.flatMap(({ name, text }) =>
      text === undefined ? [] : [[name, [parse(text), /^# (\w+: \w+)$/m.exec(text)?.[1]]]],
    ),
  )
const isWhole = ({ proof }: ReturnType<typeof judged>) => proof.isWhole

describe("results sources that fit", () => {
  it("are the built-in ones if they return everything", () => {
    const picture = judged([closed, results(two)])
    expect([isWhole(picture), files(picture), picture.misfits]).toEqual([true, {}, []])
  })

  it("do not include the flow API if it is absent, forbidden or refuses the session ids", () => {
    for (const refusal of [
      noFlows,
      ["results", 403, {}],
      ["results", 422, { detail: "no ObjectId" }],
    ] as const) {
      const picture = judged([closed, refusal, income], { sources: withIncome })
      const { name: __, ...row } = incomeSource
      expect([isWhole(picture), files(picture)]).toEqual([
        true,
        { flow_results: [{ enabled: false }, undefined], income: [row, undefined] },
      ])
    }
  })

  it("keep the flow API if a 404 only says that there is no session", () => {
    const picture = judged([closed, ["results", 404, { detail: "no session" }]])
    expect([isWhole(picture), files(picture), missingFamilies(picture.proof)]).toEqual([
      false,
      {},
      ["income:salary 0 of 2"],
    ])
  })

  it("leave out a row of the job that did not answer", () => {
    const picture = judged([closed, results(two), ["income", 404, { detail: "no" }]], { sources: withIncome })
    expect([files(picture), picture.fitted.at(-1)?.says]).toEqual([
      {},
      "not usable: answered 404: no data here",
    ])
  })

  it("count by product if records match the counts only that way", () => {
    const counts = { ...closedState, products_count: { "work@income": 2 } }
    expect(files(judged([["state", 200, counts], results(two)]))).toEqual({
      flow_results: [{ counts: "product" }, undefined],
    })
  })

  it("delete without a count only once an engineer allows it", () => {
    const asked = judged([uncounted, results(two)])
    expect([isWhole(asked), files(asked), asked.decisions.length]).toEqual([
      false,
      { flow_results: [null, "counts: none"] },
      1,
    ])
  })

  it("are never trusted to be complete if they cannot return everything", () => {
    const picture = judged([uncounted, noFlows, ["profile", 200, { data: two }]])
    expect([isWhole(picture), files(picture), picture.decisions]).toEqual([
      false,
      { flow_results: [{ enabled: false }, undefined] },
      [],
    ])
  })

  it("treat an answer that never says that it is final as partial, until an engineer decides", () => {
    const picture = judged([closed, results(two, {})])
    expect([isWhole(picture), files(picture)]).toEqual([false, { flow_results: [null, "final: always"] }])
  })

  it("are not derived from temporary answers", () => {
    const picture = judged([closed, results(two), ["results", 429, {}], ["results", 504, {}]])
    expect([isWhole(picture), files(picture)]).toEqual([true, {}])
  })
})

describe("what does not fit", () => {
  it("does not include a deviation that an observed reading explains", () => {
    expect(judged([uncounted, noFlows, ["poll", 405]]).misfits).toEqual([])
    expect(judged([["state", 200, { ...closedState, products_count: null }]]).misfits).toEqual([])
  })

  it("is a deviation that no reading explains", () => {
    const broken: Written = ["state", 200, { ...closedState, is_closed: "yes" }]
    expect(judged([broken]).misfits.map(({ says }) => says)).toEqual([
      "`is_closed` is a string; the reference says true or false",
    ])
  })
})

describe("the report", () => {
  const about = {
    customer_id: anId("c_1"),
    engine_reference: anId("bank:website"),
    run_id: anId("acquaint-a.2026-11-22"),
    outcome: "partial",
    reason: "RECORDS_UNREACHABLE",
    execution_id: anId(execution_id),
    kept: true,
    deletion: undefined,
    calls: 3,
    took_ms: 61_000,
  }
  const picture = judged([closed, noFlows, income], { sources: withIncome })

  it("fits a narrow terminal and reads as sentences in a pipe", () => {
    const sections = reportSections(about, picture)
    const narrow = renderSections(sections, 60).split("\n")
    expect(narrow.filter((line) => line.length > 60)).toEqual([])
    expect(renderSections(sections, Number.POSITIVE_INFINITY)).toContain(
      "Ended as partial, RECORDS_UNREACHABLE, with the job's current results sources, after 1 min 1 s and " +
        "3 recorded calls.\n  2 records counted, and all of them can be read.",
    )
  })

  it("says of an execution whether it stays at the service, was deleted, or is gone [acquaint gone]", () => {
    const told = ([undefined, "pending", "deleted", "gone"] as const).map((deletion) => {
      const sections = reportSections({ ...about, deletion, kept: isStillThere(deletion) }, picture)
      return sections[0]?.lines[2]?.replace(execution_id, "X")
    })
    const stays =
      "Execution X and its data stay at the service. With `--delete` it is deleted once everything in it has been " +
      "proved to be read."
    expect(told).toEqual([
      stays,
      stays,
      "Execution X was deleted at the service: everything in it was read.",
      "Execution X is no longer at the service, which answered its deletion with 404: everything in it was read.",
    ])
  })

  it("says where results sources belong, also if the job has such a folder already [acquaint sources]", () => {
    const said = (schemas: string | undefined) => {
      const job = { path: "jobs/a.yaml", ...(schemas === undefined ? {} : { schemas }) }
      return sourcesLine(job, "output/acquaint/c/schemas", picture, ["results/income.yaml"])
    }
    const then = "`nightjar plan` then names the results sources."
    expect([undefined, "jobs/own", "./output/acquaint/c/schemas"].map(said)).toEqual([
      `Put \`schemas: ../output/acquaint/c/schemas\` into jobs/a.yaml; ${then}`,
      `Move the files in output/acquaint/c/schemas/results to jobs/own/results; ${then}`,
      "Run `nightjar plan jobs/a.yaml`, which names the results sources.",
    ])
  })

  it("contains no Markdown mark-up from a service", () => {
    const [call] = calls(["state", 200, { ...closedState, status_code: "<b>x</b>" }])
    const sections = reportSections(about, judge({ calls: call === undefined ? [] : [call], sources: [] }))
    const text = renderMarkdown(sections)
    expect(text).toContain("# c_1 on bank:website")
    expect(text).not.toContain("<b>")
  })
})
