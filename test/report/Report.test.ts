/** The report of a run: what it says as a value, and as a page. */
import { createHash } from "node:crypto"
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { executionSpans, loadOver, reportOf } from "../../src/report/Report.ts"
import type { Report } from "../../src/report/Report.ts"
import { contentPolicy, html, jsonText } from "../../src/report/Html.ts"
import { renderReport, reportScript, reportStyle } from "../../src/report/RenderReport.ts"
import { ticksOf } from "../../src/report/ReportCharts.ts"
import { worklistCsv } from "../../src/report/Changes.ts"
import type { Fact } from "../../src/ledger/Fact.ts"
import { hostile, nightFacts, publishedSample, stateOf } from "./NightSamples.ts"
import { deleted, executed, idOf, planned, recorded, run_id, settled, started } from "./Samples.ts"
import { said } from "../service/Said.ts"
import { anId } from "../harness/Id.ts"

const ended = (exit_code: number, leftovers = false): Fact => ({
  _tag: "RunEnded",
  run_id,
  exit_code,
  leftovers,
})
const settledAs = (customer: string, outcome: "succeeded" | "failed" | "unfinished", reason: string) =>
  settled(
    customer,
    outcome,
    reason,
    outcome === "succeeded" ? "nobody" : outcome === "failed" ? "customer" : "service",
  )

const reportFrom = (facts: ReadonlyArray<Fact>, before: ReadonlyArray<Fact> = []): Report => {
  const report = reportOf({
    facts: recorded([started, ...facts]),
    before:
      before.length === 0
        ? []
        : [stateOf(recorded([{ ...started, run_id: anId("demo.2026-11-20") } as Fact, ...before]))],
    published: undefined,
    timezone: "Europe/Madrid",
  })
  if (report === undefined) throw new Error("the facts hold no beginning")
  return report
}

const mixed = (): Report =>
  reportFrom(
    [
      planned("c-1"),
      planned("c-2"),
      planned("c-3"),
      ...executed("c-1", { "a:b:c": 2 }),
      settledAs("c-1", "succeeded", "COMPLETED"),
      ...deleted("c-1"),
      ...executed("c-2", {}),
      settled("c-2", "failed", "BLOCKED_USER", "customer", { message: "=HYPERLINK(1)" }),
      settledAs("c-3", "unfinished", "DEADLINE_REACHED"),
      ended(4),
    ],
    [
      planned("c-1"),
      planned("c-3"),
      settledAs("c-1", "failed", "TIMEOUT"),
      settledAs("c-3", "unfinished", "DEADLINE_REACHED"),
    ],
  )

describe("the value of a report", () => {
  it("sorts the worklist by change, then by who acts, with what to do", () => {
    const { since, worklist, groups } = mixed()
    expect([
      since,
      worklist.map((row) => [row.change, row.customer_id, row.reason, row.who_acts, row.acting]),
    ]).toEqual([
      "demo.2026-11-20",
      [
        ["new", "c-2", "BLOCKED_USER", "customer", "customer"],
        ["still", "c-3", "DEADLINE_REACHED", "service", "next run"],
        ["mended", "c-1", "TIMEOUT", "customer", "customer"],
      ],
    ])
    expect(groups[0]).toEqual({
      change: "new",
      acting: "customer",
      outcome: "failed",
      reason: "BLOCKED_USER",
      count: 1,
      examples: ["c-2 bank:website"],
      means: "The source blocked the user.",
      what_to_do:
        "Ask the customer to have it unblocked there. The login is not sent again until it changes or `nightjar credentials release` allows it.",
    })
  })

  it("writes the worklist as CSV that no spreadsheet takes for a formula", () => {
    expect(worklistCsv(mixed().worklist).split("\r\n").slice(0, 2)).toEqual([
      "change,who_acts,customer_id,engine_reference,session_id,outcome,reason,message,what_to_do,task_id",
      `new,customer,c-2,bank:website,,failed,BLOCKED_USER,'=HYPERLINK(1),Ask the customer to have it unblocked there. The login is not sent again until it changes or \`nightjar credentials release\` allows it.,${idOf("c-2")}`,
    ])
  })

  it("writes a row of the worklist as a line without control characters, whatever the service said", () => {
    const hostile = "a\u001b[2Jb\tc\r\nd\u009b\u202ee\u2028f"
    const end = { ...settledAs("c", "failed", "TIMEOUT"), reason: said(hostile), message: hostile } as Fact
    const shown = "a\\u001b[2Jb\\u0009c\\u000d\\u000ad\\u009b\\u202ee\\u2028f"
    const [, row, ...rest] = worklistCsv(reportFrom([planned("c"), end]).worklist).split("\r\n")
    expect([row?.split(",").slice(6, 8), rest]).toEqual([[shown, shown], [""]])
  })

  it.each([
    [
      "what did not finish is rerun",
      [settledAs("c", "unfinished", "DEADLINE_REACHED"), ended(4)],
      `nightjar rerun ${run_id} --only DEADLINE_REACHED`,
    ],
    [
      "what is at the service is collected",
      [settledAs("c", "unfinished", "RESULTS_PARTIAL"), ended(4, true)],
      "nightjar run jobs/demo.yaml",
    ],
    ["a run that was cut off is resumed", [], "nightjar run jobs/demo.yaml"],
    ["a night without its service is begun again", [ended(6)], "nightjar run jobs/demo.yaml"],
    ["no command helps where people act", [settledAs("c", "failed", "BLOCKED_USER"), ended(3)], undefined],
    ["nothing is left", [settledAs("c", "succeeded", "COMPLETED"), ended(0)], undefined],
  ] as const)("names the one command that finishes the rest: %s", (_, facts, command) => {
    expect(reportFrom([planned("c"), ...facts]).finish.command).toBe(command)
  })

  it("does not say that nobody has to do anything while an answer is not in the tables", () => {
    const where = { run_id, task_id: idOf("c"), where: "segment-000001.njl:1", reason: "too deep" }
    const left_out = [{ ...where, kind: "results" as const }]
    const report = reportFrom([
      planned("c"),
      settledAs("c", "succeeded", "COMPLETED"),
      { _tag: "RunPublished", run_id, version: 1, receipts: [], left_out },
      ended(3),
    ])
    expect(report.finish).toEqual({
      command: undefined,
      why: "No command can finish the rest: the warnings say what has to be done.",
    })
    const page = renderReport(report)
    expect([page.includes("Nobody has to do anything"), page.includes("1 answer not in the tables")]).toEqual(
      [false, true],
    )
  })

  it("quotes a job's path and a reason for the shell", () => {
    const facts = [
      { ...started, job_path: "my jobs/it's.yaml" } as Fact,
      planned("c"),
      settled("c", "unfinished", "$(reboot)", "service"),
    ]
    const of = (...more: ReadonlyArray<Fact>) =>
      reportOf({ facts: recorded([...facts, ...more]), before: [], published: undefined, timezone: "UTC" })
        ?.finish.command
    expect([of(ended(4)), of()]).toEqual([
      `nightjar rerun ${run_id} --only '$(reboot)'`,
      `nightjar run 'my jobs/it'\\''s.yaml'`,
    ])
  })
})

const at = (second: number, fact: Fact, seq = second) => ({ seq, at: second * 1_000, fact })
const ids = { run_id, task_id: idOf("c-1"), execution_id: anId("e") }
const start = (attempt: number): Fact => ({
  _tag: "StartIntended",
  ...ids,
  attempt,
  external_execution_id: "nj",
  probe: false,
})
const accepted = (attempt: number): Fact => ({ _tag: "StartAnswered", ...ids, attempt, answer: "accepted" })
const seen = (attempt: number, status_reason: string): Fact => ({
  _tag: "AttemptObserved",
  ...ids,
  attempt,
  status_code: "ONGOING",
  status_reason,
})
const closed = (attempt: number): Fact => ({
  _tag: "AttemptClosed",
  ...ids,
  attempt,
  status_code: "X",
  status_reason: "X",
})

describe("the timeline", () => {
  it("shows each execution's queue and work, and the wait before a further attempt", () => {
    const spans = executionSpans(
      [
        at(1, start(1)),
        at(2, accepted(1)),
        at(3, seen(1, "WAITING")),
        at(9, seen(1, "RUNNING")),
        at(20, closed(1)),
        at(50, start(2)),
        at(51, accepted(2)),
        at(52, seen(2, "RUNNING")),
      ],
      60_000,
    )
    const times = { task_id: ids.task_id }
    expect(spans).toEqual([
      {
        ...times,
        attempt: 1,
        waiting_at: 1_000,
        asked_at: 1_000,
        running_at: 9_000,
        closed_at: 20_000,
        isClosed: true,
      },
      {
        ...times,
        attempt: 2,
        waiting_at: 20_000,
        asked_at: 50_000,
        running_at: 51_000,
        closed_at: 60_000,
        isClosed: false,
      },
    ])
  })

  it("keeps times in order, whatever the clocks said", () => {
    const moment = fc.integer({ min: 0, max: 100 })
    fc.assert(
      fc.property(fc.array(moment, { minLength: 8, maxLength: 8 }), (moments) => {
        const facts = [
          start(1),
          accepted(1),
          seen(1, "WAITING"),
          seen(1, "RUNNING"),
          closed(1),
          start(2),
          accepted(2),
          closed(2),
        ]
        for (const span of executionSpans(
          facts.map((fact, index) => at(moments[index] ?? 0, fact, index)),
          50_000,
        )) {
          const { waiting_at, asked_at, running_at, closed_at } = span
          const inOrder = [waiting_at, asked_at, running_at, closed_at]
          expect(inOrder.toSorted((a, b) => a - b)).toEqual(inOrder)
        }
      }),
    )
  })

  it("leaves out starts that the service did not accept, and waits from them", () => {
    const refused: Fact = {
      _tag: "StartAnswered",
      ...ids,
      attempt: 1,
      answer: "not_created",
      http_status: 503,
    }
    expect(
      executionSpans(
        [at(1, start(1)), at(2, refused), at(30, start(2)), at(31, accepted(2)), at(40, closed(2))],
        0,
      ),
    ).toEqual([
      {
        task_id: ids.task_id,
        attempt: 2,
        waiting_at: 2_000,
        asked_at: 30_000,
        running_at: 31_000,
        closed_at: 40_000,
        isClosed: true,
      },
    ])
  })

  it("adds up to the executions that were open at each moment", () => {
    const facts = nightFacts({ run_id, tasks: 60, seed: 5, badShare: 0.2, beginAt: 0, exit_code: 0 })
    const spans = executionSpans(facts, 0)
    const endAt = Math.max(...spans.map(({ closed_at }) => closed_at))
    const load = loadOver(spans, { beginAt: 0, endAt, slices: 50 })
    const middle = (index: number) => ((index + 0.5) * endAt) / 50
    expect(load).toEqual(
      load.map((_, index) => {
        const during = (
          from: "waiting_at" | "asked_at" | "running_at",
          to: "asked_at" | "running_at" | "closed_at",
        ) => spans.filter((span) => span[from] <= middle(index) && middle(index) < span[to]).length
        return {
          waiting: during("waiting_at", "asked_at"),
          queued: during("asked_at", "running_at"),
          running: during("running_at", "closed_at"),
        }
      }),
    )
  })

  it("has an axis of nine marks at most, on round minutes", () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 1e12 }), fc.integer({ min: 1, max: 1e9 }), (beginAt, length) => {
        const ticks = ticksOf(beginAt, beginAt + length)
        expect(ticks.length).toBeLessThanOrEqual(9)
        expect(
          ticks.every((tick) => tick % 60_000 === 0 && tick >= beginAt && tick <= beginAt + length),
        ).toBe(true)
      }),
    )
  })
})

const nightPage = (tasks: number, badShare = 0.4): string => {
  const options = { tasks, badShare, beginAt: Date.UTC(2026, 10, 21, 21, 30), exit_code: 4 }
  const report = reportOf({
    facts: nightFacts({ ...options, run_id: "nightly-spain.2026-11-21", seed: 1 }),
    before: [stateOf(nightFacts({ ...options, run_id: "nightly-spain.2026-11-20", seed: 2 }))],
    published: publishedSample(),
    timezone: "Europe/Madrid",
  })
  return report === undefined ? "" : renderReport(report)
}
const contentsOf = (page: string, element: string): ReadonlyArray<string> =>
  [...page.matchAll(new RegExp(`<${element}>([^]*?)</${element}>`, "g"))].map(([, inside = ""]) => inside)

describe("the page", () => {
  it("says everything about a small night, in full", async () => {
    const page = nightPage(8)
      .replace(/<style>[^]*?<\/style>/, "<style></style>")
      .replace(/<script>[^]*?<\/script>/, "<script></script>")
      .replace(contentPolicy({ style: reportStyle, script: reportScript }), "POLICY")
      .replace(/<\/(t[dh])><(?=\1)/g, "</$1>\n<")
    // Delete the file to have it written anew.
    await expect(page).toMatchFileSnapshot("small-night.txt")
  })

  it("allows its own style and script by their hashes, and nothing else", () => {
    const page = nightPage(8)
    const hash = (text: string) => `'sha256-${createHash("sha256").update(text).digest("base64")}'`
    const [style = ""] = contentsOf(page, "style")
    const [script = ""] = contentsOf(page, "script")
    expect(page.match(/http-equiv="Content-Security-Policy" content="([^"]*)"/)?.[1]).toBe(
      `default-src 'none'; style-src ${hash(style)}; script-src ${hash(script)}; base-uri 'none'; form-action 'none'`,
    )
    const tags = page.replace(/<script>[^]*?<\/script>/, "").match(/<[^>]*>/g) ?? []
    expect(tags.filter((tag) => / (?:src|style|on\w+)=|https?:/.test(tag))).toEqual([])
    expect(style).not.toMatch(/url\(|@import/)
  })

  it("shows hostile ids, reasons and messages as text, in markup and in data [promise 13 report]", () => {
    const page = nightPage(40)
    expect([page.includes("<img"), page.includes("\u202e"), page.split("</script>").length]).toEqual([
      false,
      false,
      3,
    ])
    expect(page).toContain(
      "&lt;img src=x onerror=&quot;alert(&#39;1&#39;)&quot;&gt;&amp;\\u202e&lt;/script&gt;",
    )
  })

  it("has one heading level after another, a language, and a name for every picture", () => {
    const page = nightPage(40)
    const levels = [...page.matchAll(/<h([1-6])/g)].map(([, level]) => Number(level))
    expect(levels.every((level, index) => index === 0 || level - (levels[index - 1] ?? 0) <= 1)).toBe(true)
    expect([levels[0], page.includes('<html lang="en">')]).toEqual([1, true])
    const pictures = [...page.matchAll(/<(?:svg|canvas)[^>]*>/g)].map(([tag]) => tag)
    expect(pictures.filter((tag) => !/aria-(?:label|hidden)=/.test(tag))).toEqual([])
  })

  it("stays light: 3,000 tasks of which one in twenty failed, and a night in which nearly half failed", () => {
    const sizes = [0.05, 0.4].map((badShare) => Buffer.byteLength(nightPage(3_000, badShare)))
    expect(sizes.map((size, index) => size < (index === 0 ? 320_000 : 1_400_000))).toEqual([true, true])
  })
})

describe("markup", () => {
  it("escapes every value, and JSON ends no element", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), (text) => {
        const shown = html`<p title="${text}">${text}</p>`.text
        expect(shown.match(/[<>]/g)).toEqual(["<", ">", "<", ">"])
        expect(shown.match(/"/g)).toEqual(['"', '"'])
        const json = jsonText([text]).text
        expect([json.includes("<"), JSON.parse(json)]).toEqual([false, [text]])
      }),
    )
    expect(html`${hostile}`.text).not.toContain("<img")
  })
})
