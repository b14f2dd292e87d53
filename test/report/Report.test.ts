/** The report of a run: what it says as a value, and as a page. */
import { createHash } from "node:crypto"
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { reportOf, type PublishedFacts, type Report } from "../../src/report/Report.ts"
import { fillPage, newestFactIn } from "../../src/report/Page.ts"
import { mentionsIn } from "../../src/folder/Mentions.ts"
import { renderReport } from "../../src/report/ReportPage.ts"
import { worklistCsv } from "../../src/report/Changes.ts"
import { forTerminal } from "../../src/report/TextTable.ts"
import type { Fact } from "../../src/ledger/Fact.ts"
import { nightFacts, publishedSample, stateOf } from "./NightSamples.ts"
import { all, linesOf, readPage, template, type Element } from "./ReadPage.ts"
import { deleted, executed, idOf, planned, recorded, run_id, settled, started } from "./Samples.ts"
import { said } from "../service/Said.ts"
import { anId } from "../harness/Id.ts"
import { aFact } from "../harness/Facts.ts"

const ended = (exit_code: number, leftovers = false): Fact =>
  aFact("RunEnded", { run_id, exit_code, leftovers })
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
        "Ask the customer to have it unblocked there. The same login, or any after two rejections, is sent only after `nightjar credentials release`.",
    })
  })

  it("writes the worklist as CSV that no spreadsheet takes for a formula", () => {
    expect(worklistCsv(mixed().worklist).split("\r\n").slice(0, 2)).toEqual([
      "change,who_acts,customer_id,engine_reference,session_id,outcome,reason,message,what_to_do,task_id",
      `new,customer,c-2,bank:website,,failed,BLOCKED_USER,'=HYPERLINK(1),"Ask the customer to have it unblocked there. The same login, or any after two rejections, is sent only after \`nightjar credentials release\`.",${idOf("c-2")}`,
    ])
  })

  it("writes a row of the worklist as a line without control characters, whatever the service said", () => {
    const hostile = "a\u001b[2Jb\tc\r\nd\u009b\u202ee\u2028f"
    const end = { ...settledAs("c", "failed", "TIMEOUT"), reason: said(hostile), message: hostile } as Fact
    const shown = "a\\u001b[2Jb\\u0009c\\u000d\\u000ad\\u009b\\u202ee\\u2028f"
    const [, row, ...rest] = worklistCsv(reportFrom([planned("c"), end]).worklist).split("\r\n")
    expect([row?.split(",").slice(6, 8), rest]).toEqual([[shown, shown], [""]])
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
    expect(report.summary.finish).toEqual({
      command: undefined,
      why: "No command can finish the rest: the warnings say what has to be done.",
    })
    const lines = linesOf(readPage(renderReport(template, report))).join("\n")
    expect(lines).not.toContain("Nobody has to do anything")
    expect(lines).toContain("### Warnings\n1 answer not in the tables")
  })

  it("quotes a job's path and a reason for the shell", () => {
    const facts = [
      { ...started, job_path: "my jobs/it's.yaml" } as Fact,
      planned("c"),
      settled("c", "unfinished", "$(reboot)", "service"),
    ]
    const of = (...more: ReadonlyArray<Fact>) =>
      reportOf({ facts: recorded([...facts, ...more]), before: [], published: undefined, timezone: "UTC" })
        ?.summary.finish.command
    expect([of(ended(4)), of()]).toEqual([
      `nightjar rerun ${run_id} --only '$(reboot)'`,
      `nightjar run 'my jobs/it'\\''s.yaml'`,
    ])
  })
})

describe("the timeline", () => {
  const ids = { run_id, task_id: idOf("c-1"), execution_id: anId("e") }
  const start = (attempt: number) => aFact("StartIntended", { ...ids, attempt, external_execution_id: "nj" })
  const accepted = (attempt: number) => aFact("StartAnswered", { ...ids, attempt, answer: "accepted" })
  const closed = (attempt: number) =>
    aFact("AttemptClosed", { ...ids, attempt, status_code: "X", status_reason: "X" })
  const timesOf = (...told: ReadonlyArray<readonly [second: number, fact: Fact]>) => {
    const own = [[0, started], [0, planned("c-1")], ...told] as const
    const facts = own.map(([second, fact], index) => ({ seq: index + 1, at: second * 1_000, fact }))
    const report = reportOf({ facts, before: [], published: undefined, timezone: "UTC" })
    return report?.timeline.rows.map(({ waiting_at, asked_at, closed_at }) => [
      waiting_at,
      asked_at,
      closed_at,
    ])
  }

  it("shows each execution, and the wait before a further attempt", () => {
    const first = [
      [1, start(1)],
      [2, accepted(1)],
      [20, closed(1)],
    ] as const
    expect(timesOf(...first, [50, start(2)], [60, accepted(2)])).toEqual([
      [1_000, 1_000, 20_000],
      [20_000, 50_000, 60_000],
    ])
  })

  it("keeps times in order, whatever the clocks said", () => {
    const moment = fc.integer({ min: 0, max: 100 })
    fc.assert(
      fc.property(fc.array(moment, { minLength: 6, maxLength: 6 }), (moments) => {
        const facts = [start(1), accepted(1), closed(1), start(2), accepted(2), closed(2)]
        for (const times of timesOf(...facts.map((fact, index) => [moments[index] ?? 0, fact] as const)) ??
          [])
          expect(times.toSorted((a, b) => a - b)).toEqual(times)
      }),
    )
  })

  it("leaves out starts that the service did not accept, and waits from them", () => {
    const refused = aFact("StartAnswered", { ...ids, attempt: 1, answer: "not_created", http_status: 503 })
    const second = [
      [30, start(2)],
      [31, accepted(2)],
      [40, closed(2)],
    ] as const
    expect(timesOf([1, start(1)], [2, refused], ...second)).toEqual([[1_000, 30_000, 40_000]])
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
  return report === undefined ? "" : renderReport(template, report)
}
const contentOf = (page: string, element: string): string =>
  new RegExp(`<${element}>([^]*?)</${element}>`).exec(page)?.[1] ?? ""

describe("the page", () => {
  it("says everything about a small night, in full", async () => {
    // Delete the file to have it written anew.
    await expect(`${linesOf(readPage(nightPage(8))).join("\n")}\n`).toMatchFileSnapshot("small-night.txt")
  })

  it("says how the run ended and what to do next where no script runs, and which fact it is from", () => {
    const page = nightPage(8)
    expect(contentOf(page, "noscript").trim().split("\n")).toEqual([
      "<p>nightly-spain.2026-11-21</p>",
      "<p>Exit code 4 something is left that a rerun can finish.</p>",
      "<p>Started 2026-11-21 22:30, ended 2026-11-21 22:43, took 13 min. Times in Europe/Madrid.</p>",
      "<p>8 tasks: 5 succeeded, 2 failed, 1 unfinished.</p>",
      "<p>This command collects what is still at the service and runs again what did not finish: " +
        "nightjar rerun nightly-spain.2026-11-21 --only OUT_OF_SERVICE</p>",
      "<p>The rest of this page needs JavaScript; `nightjar status` shows the same in a terminal.</p>",
    ])
    expect([newestFactIn(page), newestFactIn("<body>")]).toEqual([66, 0])
  })

  it("allows its own style and script by their hashes, and nothing else", () => {
    const page = nightPage(8)
    const hash = (text: string) => `'sha256-${createHash("sha256").update(text).digest("base64")}'`
    const [style, script] = [contentOf(page, "style"), contentOf(page, "script")]
    expect(page.match(/http-equiv="Content-Security-Policy" content="([^"]*)"/)?.[1]).toBe(
      `default-src 'none'; style-src ${hash(style)}; script-src ${hash(script)}; base-uri 'none'; form-action 'none'`,
    )
    const tags = page.replace(/<script[^]*?<\/script>/g, "").match(/<[^>]*>/g) ?? []
    expect(tags.filter((tag) => / (?:src|style|on\w+)=|https?:/.test(tag))).toEqual([])
    expect(style).not.toMatch(/url\(|@import/)
    expect(script).not.toMatch(/innerHTML|outerHTML|insertAdjacent|document\.write|\beval\b|Function\(/)
  })

  it("shows hostile ids, reasons and messages as text, in markup and in data [promise 13 report]", () => {
    const page = nightPage(40)
    expect([page.includes("<img"), page.includes("\u202e"), page.split("</script>").length]).toEqual([
      false,
      false,
      3,
    ])
    const body = readPage(page)
    expect(new Set(all(body, () => true).map(({ tag }) => tag))).toEqual(
      new Set(
        (
          "a b button canvas code details div footer h1 h2 h3 header input label li main nav option output p " +
          "polyline rect section select span summary svg table tbody td th thead tr ul"
        ).split(" "),
      ),
    )
    const shown = `<img src=x onerror="alert('1')">&\\u202e</script>=1+1`
    expect(all(body, ({ textContent }) => textContent === shown).map(({ tag }) => tag)).toContain("code")
  })

  it("has one heading level after another, and a name for every picture and every part that scrolls", () => {
    const body = readPage(nightPage(40))
    const levels = all(body, ({ tag }) => /^h\d$/.test(tag)).map(({ tag }) => Number(tag[1]))
    expect(levels.every((level, index) => level - (levels[index - 1] ?? 0) <= 1)).toBe(true)
    expect(levels[0]).toBe(1)
    const isNamed = (one: Element) => ["aria-label", "aria-hidden"].some((name) => one.attributes.has(name))
    const named = all(body, (one) => /svg|canvas/.test(one.tag) || one.getAttribute("role") === "region")
    expect(named.filter((one) => !isNamed(one))).toEqual([])
    expect(template).toContain('<html lang="en">')
  })

  it("says what the night changed in the tables; a link opens the records, but for customers with pseudonyms", () => {
    const changesIn = (changes: PublishedFacts["changes"], output?: string) => {
      const report = { ...mixed(), output, published: { ...publishedSample(), changes } }
      const body = readPage(renderReport(template, report))
      const lines = linesOf(body)
      const from = lines.indexOf("## Changes in the tables")
      return { body, lines: lines.slice(from + 1, lines.indexOf("## Timeline")) }
    }
    const sample = publishedSample().changes!
    const { body, lines } = changesIn(sample, "/data/it's")
    const [link] = all(body, (one) => one.getAttribute("href") === "#changes-customer_profiles")
    const [records] = all(body, (one) => one.getAttribute("id") === "changes-customer_profiles")
    expect([link?.listeners.has("click"), records?.tag, lines.at(-1)]).toEqual([
      true,
      "details",
      `nightjar query --output '/data/it'\\''s' "FROM changes('nightly-spain.2026-11-20', '${run_id}') ` +
        `WHERE starts_with(run_id, 'demo.')"`,
    ])
    // `forget` finds the report by the customer's id in it.
    const [{ records: [record] } = { records: [] }] = sample.tables
    const theirs = {
      ...sample,
      tables: [{ ...sample.tables[0]!, records: [{ ...record!, customer_id: "c-77" }] }],
    }
    const named = { customer_id: "c-77", tasks: new Set<string>(), ids: [] }
    const published = { ...publishedSample(), changes: theirs }
    expect(mentionsIn(named, renderReport(template, { ...mixed(), published }))).toBe(true)
    const withheld = { ...sample, hasPseudonyms: true, tables: sample.tables.slice(1) }
    expect(changesIn(withheld).lines).toEqual([
      "Records that this job's runs changed since nightly-spain.2026-11-20, with their lists. " +
        "Tables that are not named are as they were.",
      "table | added | changed | gone | rejected",
      "loans | 0 | 0 | 1 | 2",
      "Customers have pseudonyms in the tables and names in this report, so it shows no rows.",
      "All of them, with every column:",
      expect.stringMatching(/^nightjar query "FROM changes/),
    ])
    expect(changesIn({ ...sample, tables: [] }).lines).toEqual([
      "No record changed since nightly-spain.2026-11-20.",
    ])
    expect(changesIn({ ...sample, since: undefined, tables: [] }).lines).toEqual([
      "This is the first night of the job in the tables: all that it read is new.",
    ])
    expect(changesIn(undefined).lines).toEqual(["The published tables do not tell what this run changed."])
  })

  it("filters its worklist by words and by who acts, and sorts it by a column, up and down", () => {
    const body = readPage(nightPage(8))
    const [list] = all(body, (one) => one.getAttribute("aria-label") === "Worklist")
    const act = (one: Element | undefined, event: string, value = "") => {
      if (one !== undefined) one.value = value
      one?.listeners.get(event)?.({})
    }
    const rows = () =>
      all(
        list!,
        ({ tag, hidden, parentElement }) => tag === "tr" && !hidden && parentElement?.tag === "tbody",
      )
    const [words] = all(body, ({ tag }) => tag === "input")
    const [actor] = all(body, ({ tag }) => tag === "select")
    act(words, "input", "WEBSITE")
    const found = [rows().length]
    act(actor, "change", "engineer")
    found.push(rows().length)
    act(actor, "change")
    act(words, "input")
    const [, , customer] = all(list!, ({ tag }) => tag === "button")
    const sorted = ["click", "click"].map((event) => {
      act(customer, event)
      return rows().map((row) => row.children[2]?.textContent.slice(0, 7))
    })
    expect([found, sorted[0]?.toReversed(), sorted[1]]).toEqual([[5, 2], sorted[1], sorted[0]?.toReversed()])
    expect(sorted[0]).toEqual(
      [...(sorted[0] ?? [])].toSorted((one = "", other = "") => one.localeCompare(other)),
    )
    expect(customer?.parentElement?.getAttribute("aria-sort")).toBe("descending")
  })

  it("stays light: 3,000 tasks of which one in twenty failed, and a night in which nearly half failed", () => {
    const sizes = [0.05, 0.4].map((badShare) => Buffer.byteLength(nightPage(3_000, badShare)))
    expect(sizes.map((size, index) => size < (index === 0 ? 320_000 : 1_400_000))).toEqual([true, true])
  })
})

it("a page escapes every value, and its data ends no element", () => {
  const short = `<title>%TITLE%</title><noscript>%SUMMARY%</noscript><script id="data">%DATA%</script>`
  const marks = (text: string) => text.match(/[<>"]/g)?.length
  fc.assert(
    fc.property(fc.string({ unit: "binary" }), (text) => {
      const page = { title: text, head: [], sections: [], foot: [{ p: text }] }
      const filled = fillPage(short, page, { summary: [text] })
      const [, before, data = "", after] = /^([^]*id="data">)([^]*?)(<\/script>)$/.exec(filled) ?? []
      expect(marks(`${before}${after}`)).toBe(2 + marks(short.replace(/%\w+%/g, ""))! + 2)
      expect([data.includes("<"), JSON.parse(data).foot[0].p]).toEqual([false, forTerminal(text, false)])
    }),
  )
})
