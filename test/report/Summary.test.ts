/**
 * What the summary says of a run: counts, who must act on what and what to do next, and what is left.
 */
import { describe, expect, it } from "vitest"
import { given } from "../../src/base/Schemas.ts"
import { cutText } from "../../src/service/BodyBounds.ts"
import { rowOf } from "../../src/service/Ends.ts"
import type { Fact } from "../../src/ledger/Fact.ts"
import type { OtherRecords } from "../../src/ledger/RunFacts.ts"
import { noticeOf } from "../../src/report/Notice.ts"
import { exitCodeOf } from "../../src/report/Finish.ts"
import { renderReport } from "../../src/report/ReportPage.ts"
import { renderSummary } from "../../src/report/RenderSummary.ts"
import { reportOf } from "../../src/report/Report.ts"
import { summarise } from "../../src/report/Summary.ts"
import { renderRecorded } from "../../src/report/Timeline.ts"
import { linesOf, readPage, template } from "./ReadPage.ts"
import { deleted, executed, idOf, planned, recorded, run_id, runOf, settled, started } from "./Samples.ts"
import { anId } from "../harness/Id.ts"
import { aFact } from "../harness/Facts.ts"

const escape = String.fromCharCode(27)

const blocked = {
  means: "The source blocked the user.",
  next: "Ask the customer to have it unblocked there. The same login, or any after two rejections, is sent only after `nightjar credentials release`.",
}
const unknown = {
  means: "The service has no such engine.",
  next: "Correct the reference; `nightjar engines list` lists all engines.",
}

const peopleFirst =
  `People have to act before a command can finish the rest. After that, \`nightjar rerun ${run_id}\` ` +
  "runs again what did not succeed. If a rejected login is correct after all, release it first: " +
  "`nightjar credentials list` shows it."

const night = () =>
  runOf(
    ...["a", "b", "c", "d", "e", "f"].map((id) => planned(id)),
    ...executed("a", { "accounts@x": 3, "cards@x": 2 }),
    settled("a", "succeeded", "COMPLETED", "nobody"),
    ...["b", "c", "d", "e"].map((id) => settled(id, "failed", "BLOCKED_USER", "customer")),
    settled("f", "skipped", "ENGINE_UNKNOWN", "engineer", { message: "no such engine" }),
    ...deleted("a"),
    { _tag: "RunEnded", run_id, exit_code: 3, leftovers: false },
  )

describe("summary", () => {
  it("counts outcomes, products and deletions, and groups what did not succeed by who must act", () => {
    expect(summarise(night())).toEqual({
      run_id,
      job: "demo",
      job_path: "jobs/demo.yaml",
      run_date: "2026-11-21",
      parent: undefined,
      started_at: "2026-11-21T02:00:00.000Z",
      ended_at: "2026-11-21T02:00:18.000Z",
      elapsed_ms: 18_000,
      exit_code: 3,
      changes: null,
      tasks: 6,
      outcomes: { succeeded: 1, partial: 0, failed: 4, skipped: 1, unfinished: 0 },
      executions: 1,
      records_counted: 5,
      attachments: { downloaded: 0, missing: 0, refused: 0, not_delivered: 0, failed: 0 },
      troubles: [
        {
          who_acts: "customer",
          acting: "customer",
          outcome: "failed",
          reason: "BLOCKED_USER",
          count: 4,
          examples: ["b bank:website", "c bank:website", "d bank:website"],
          message: undefined,
          means: blocked.means,
          advice: blocked.next,
        },
        {
          who_acts: "engineer",
          acting: "engineer",
          outcome: "skipped",
          reason: "ENGINE_UNKNOWN",
          count: 1,
          examples: ["f bank:website"],
          message: "no such engine",
          means: unknown.means,
          advice: unknown.next,
        },
      ],
      deletions: { done: 1, pending: 0, kept: 0, kept_by_setting: 0 },
      orphans_suspected: [],
      published_version: undefined,
      misfits: [],
      rejected: [],
      other_records: null,
      warnings: [],
      finish: { command: undefined, why: peopleFirst },
    })
  })

  it("shows what is still open at the service, what is kept there and what may be an orphan", () => {
    const attempt = { run_id, task_id: idOf("b"), attempt: 1 }
    const summary = summarise(
      runOf(
        planned("a"),
        planned("b"),
        ...executed("a", {}),
        settled("a", "partial", "RECORDS_UNREACHABLE", "engineer"),
        { _tag: "StartIntended", ...attempt, external_execution_id: "nj-2", probe: true },
        { _tag: "OrphanSuspected", ...attempt, external_execution_id: "nj-2" },
        { _tag: "StartAnswered", ...attempt, answer: "accepted", execution_id: anId("e-b") },
      ),
    )
    const { deletions, orphans_suspected, warnings, troubles, outcomes } = summary
    expect({ deletions, orphans_suspected, warnings, outcomes }).toEqual({
      deletions: { done: 0, pending: 0, kept: 1, kept_by_setting: 0 },
      orphans_suspected: [idOf("b")],
      outcomes: { succeeded: 0, partial: 1, failed: 0, skipped: 0, unfinished: 1 },
      warnings: [
        "1 execution still in flight at the service [executions-in-flight]",
        "1 start sent again because the answer was lost: the first may have run at the service [start-repeated]",
        "1 execution kept at the service, because records may be missing here [executions-kept]",
      ],
    })
    expect(troubles.map(({ reason, who_acts }) => [reason, who_acts])).toEqual([
      ["RECORDS_UNREACHABLE", "engineer"],
      ["IN_PROGRESS", "nobody"],
    ])
  })

  it("tells of documents that are not here, and for what executions are kept", () => {
    const keptFor = (customer: string, reason: "DOCUMENTS_SHORT" | "RECORDS_SHORT"): Fact =>
      aFact("AttemptKept", {
        run_id,
        task_id: idOf(customer),
        execution_id: `e-${customer}`,
        reason,
        message: "",
      })
    const read = (attachment_id: string, status: "not_delivered" | "failed"): Fact => {
      const ids = { run_id, task_id: idOf("a"), session_id: anId("s-a"), attachment_id }
      return { _tag: "AttachmentRead", ...ids, status }
    }
    const of = (customer: string, ...facts: ReadonlyArray<Fact>) => [
      planned(customer),
      ...executed(customer, {}),
      ...facts,
      settled(customer, "succeeded", "COMPLETED", "nobody"),
    ]
    const a = of("a", read("d-1", "not_delivered"), read("d-2", "failed"), keptFor("a", "DOCUMENTS_SHORT"))
    const { warnings, deletions } = summarise(runOf(...a))
    expect([warnings, deletions]).toEqual([
      [
        "1 execution kept at the service, because documents may be missing here [executions-kept]",
        "1 attachment not delivered: the service answers, but not with the document [attachments-not-delivered]",
        "1 attachment could not be downloaded: there was no usable answer in time [attachments-failed]",
      ],
      { done: 0, pending: 0, kept: 1, kept_by_setting: 0 },
    ])
    expect(summarise(runOf(...a, ...of("b", keptFor("b", "RECORDS_SHORT")))).warnings[0]).toBe(
      "2 executions kept at the service, because records or documents may be missing here [executions-kept]",
    )
  })
})

/** Every text for people about one task that ended like this. */
const textsAbout = (...facts: ReadonlyArray<Fact>) => {
  const ended: ReadonlyArray<Fact> = [planned("a"), ...facts]
  const report = reportOf({
    facts: recorded([started, ...ended, { _tag: "RunEnded", run_id, exit_code: 4, leftovers: true }]),
    before: [],
    published: undefined,
    timezone: "UTC",
  })
  if (report === undefined) throw new Error("the facts hold no beginning")
  const { summary } = report
  const ending = { job: "demo", exit_code: 4, summary, recovered: false, news: [] }
  return {
    summary: renderSummary(summary, { width: Infinity, colour: false }),
    notice: noticeOf(["failed"], ending, { host: "etl-1", job: "demo", run_date: summary.run_date }).text,
    report: linesOf(readPage(renderReport(template, report))).join("\n"),
    explain: recorded(ended).map(renderRecorded).join("\n"),
  }
}

describe("tasks that failed alike", () => {
  const troubles = (...messages: ReadonlyArray<string | undefined>) =>
    summarise(
      runOf(
        ...messages.map((_, index) => planned(`c-${index}`)),
        ...messages.map((message, index) =>
          settled(`c-${index}`, "failed", "UNEXPECTED_ANSWER", "engineer", given({ message })),
        ),
      ),
    ).troubles.map(({ count, message }) => [count, message])

  it("are told with their message only if all of them have it [summary message]", () => {
    expect(troubles("answer 418", "answer 418")).toEqual([[2, "answer 418"]])
    expect(troubles("answer 418", "answer 451")).toEqual([[2, undefined]])
    expect(troubles("answer 418", undefined)).toEqual([[2, undefined]])
  })

  it("with a listed reason outside its family get the advice of an unlisted one", () => {
    const state = runOf(planned("a"), settled("a", "failed", "CLIENT_CANCELLED", "engineer"))
    const { means, next: advice } = rowOf("OF_TOMORROW")
    expect(summarise(state).troubles).toMatchObject([{ acting: "engineer", means, advice }])
  })
})

describe("a task that this program itself stopped", () => {
  it.each([
    ["at its deadline, before it began", "DEADLINE_REACHED", "service"],
    ["at `max_wait` or the deadline, by an abort", "CLIENT_CANCELLED", "service"],
    ["because the run was drained", "RUN_DRAINED", "engineer"],
    ["because its night was over", "NIGHT_OVER", "service"],
  ] as const)("is left for the next run in every text, and nobody has to act: %s", (_, reason, who_acts) => {
    for (const [text, said] of Object.entries(textsAbout(settled("a", "unfinished", reason, who_acts)))) {
      expect([text, said.toLowerCase().includes("left for the next run")]).toEqual([text, true])
      expect([text, /action needed|from the service|service acts/i.exec(said)?.[0]]).toEqual([
        text,
        undefined,
      ])
    }
  })

  it("or has not finished yet is not the service's either", () => {
    const { summary, notice, report } = textsAbout()
    for (const said of [summary, notice, report]) {
      expect(said.toLowerCase()).toContain("not finished yet")
      expect(said).not.toMatch(/action needed|from the service|service acts/i)
    }
  })
})

/** A run that succeeded, and what was said of its publication. */
const publishedWith = (more: Omit<Parameters<typeof aFact<"RunPublished">>[1], "run_id">) => {
  const fact = aFact("RunPublished", { run_id, ...more })
  const run = runOf(planned("a"), settled("a", "succeeded", "COMPLETED", "nobody"), fact)
  return { ...summarise(run), exit: exitCodeOf(run, "keep") }
}

describe("what was published", () => {
  const where = "segment-000001.njl:7"
  const reason = "the body cannot be used: it is too deep"
  const left = { task_id: idOf("a"), where, reason }
  it.each<readonly [string, number, Parameters<typeof publishedWith>[0], string]>([
    [
      "without some answers is a warning that names the first, and an engineer has to act",
      3,
      { left_out: [left, { ...left, where: "x" }] },
      `2 answers not in the tables: landing/${run_id}/${where}: ${reason} [answers-left-out]`,
    ],
    [
      "of another encoding than UTF-8 is a warning with their number",
      0,
      { garbled: 2 },
      "2 answers with results in another encoding than UTF-8 [answers-garbled]",
    ],
    [
      "whose Parquet files are not where readers look for them is named",
      0,
      { taken: ["current"] },
      "the published Parquet files are not in `current/`, because something else has that name [parquet-taken]",
    ],
    [
      "without a list that its record schema no longer has is named, with when its table comes back [lists told]",
      0,
      { lists: ["holders (of accounts)"] },
      "the record schema no longer has the list holders (of accounts), so it has no table [lists-gone]",
    ],
  ])("%s", (_, exit, more, warning) => {
    expect(publishedWith(more)).toMatchObject({ exit, warnings: [warning] })
  })

  it("with values that do not fit is warnings by table, with the columns that have most of them", () => {
    const misfits = ["gender", "birth_date", "language", "alias"].map((column, at) => ({
      table: "customer_profiles",
      column,
      count: 10 + at,
    }))
    const rejected = [
      { table: null, count: 2 },
      { table: "customer_profiles", count: 1 },
      { table: "higher_education", count: 4 },
    ]
    const all = [...misfits, { table: "emails", column: "email", count: 1 }]
    const columns = ["alias (13)", "language (12)", "birth_date (11)"].map(
      (each) => `customer_profiles.${each}`,
    )
    expect(publishedWith({ misfits: all, rejected })).toMatchObject({
      exit: 0,
      misfits: { length: 5 },
      rejected,
      warnings: [
        `46 values did not fit the record schema: ${columns.join(", ")} and 1 more [values-misfit]`,
        "1 value did not fit the record schema: emails.email (1) [values-misfit]",
        "5 records rejected by the record schema of higher_education (4), customer_profiles (1) [records-rejected]",
        "2 values in the results that are not records or cannot be read [values-stray]",
      ],
    })
  })
})

const family = (product: string, records: number) => ({ product, sub_family: "x:y", records })
const one = (product: string): OtherRecords => ({ records: 1, families: 1, most: [family(product, 1)] })

describe("records of families without a schema", () => {
  it("are a warning that names the families with the most and `nightjar infer`, and change no exit code", () => {
    const other = { records: 18, families: 7, most: [9, 4, 2, 1].map((count) => family(`p${count}`, count)) }
    expect(publishedWith({ other })).toMatchObject({
      exit: 0,
      other_records: other,
      warnings: [
        "18 records of 7 families without a schema, in `other_records`: p9 of x:y (9), p4 of x:y (4), p2 of x:y (2) and " +
          "4 more; `nightjar infer` drafts a schema [records-without-schema]",
      ],
    })
    expect(publishedWith({ other: one("p") }).warnings).toEqual([
      "1 record of 1 family without a schema, in `other_records`: p of x:y (1); " +
        "`nightjar infer` drafts a schema [records-without-schema]",
    ])
    const none = { records: 0, families: 0, most: [] }
    expect(publishedWith({ other: none })).toMatchObject({ other_records: none, warnings: [] })
  })
})

describe("features that did not succeed in tasks that did", () => {
  it("are a warning with the most frequent, and change no exit code", () => {
    const reason = "FEATURE_TEMPORARY_ERROR"
    const most = [5, 3, 2, 1].map((count) => ({ feature: `f${count}`, reason, count }))
    expect(publishedWith({ features_left: { count: 11, most } })).toMatchObject({
      exit: 0,
      warnings: [
        `in tasks that succeeded, 11 features did not: f5 ${reason} (5), f3 ${reason} (3), f2 ${reason} (2) and ` +
          "1 more [features-left]",
      ],
    })
  })
})

describe("the rendered summary", () => {
  it("has no colour and no broken sentence in a pipe", () => {
    expect(renderSummary(summarise(night()), { width: Infinity, colour: false })).toBe(
      `demo.2026-11-21: took 18 s, exit code 3
6 tasks: 1 succeeded, 4 failed, 1 skipped
1 execution, 5 products counted

Action needed from the customer (4 tasks)
   4  BLOCKED_USER (failed)
      b bank:website, c bank:website, d bank:website and 1 more
      ${blocked.means} ${blocked.next}

Action needed from an engineer (1 task)
   1  ENGINE_UNKNOWN (skipped)
      f bank:website
      “no such engine”
      ${unknown.means} ${unknown.next}

Executions: 1 deleted at the service.
Exit code 3: the run has ended; some tasks need the customer or an engineer, and would fail again until then.

${peopleFirst}`,
    )
  })

  it("fits 40 and 200 columns, not counting colours", () => {
    for (const width of [40, 200]) {
      const text = renderSummary(summarise(night()), { width, colour: true })
      const bare = text.replaceAll(new RegExp(`${escape}\\[\\d+m`, "g"), "")
      expect(bare.split("\n").filter((line) => line.length > width)).toEqual([])
      expect(bare.replaceAll(/\s+/g, " ")).toBe(
        renderSummary(summarise(night()), { width: Infinity, colour: false }).replaceAll(/\s+/g, " "),
      )
    }
  })

  it("says in one line what changed since the run before, and why an old trouble is no alarm", () => {
    const changes = { since: "demo.2026-11-20", new: 0, still: 2, mended: 1 }
    const run = runOf(
      planned("a"),
      settled("a", "failed", "BLOCKED_USER", "customer"),
      aFact("RunEnded", { run_id, changes }),
    )
    const lines = renderSummary(summarise(run), { width: Infinity, colour: false }).split("\n")
    expect([lines[2], lines.at(-3)]).toEqual([
      "Problems compared with demo.2026-11-20: 2 unchanged, 1 resolved",
      "Exit code 0: no new problems: all of them were there after demo.2026-11-20 (`exit_on: new`).",
    ])
    expect(summarise(run).changes).toEqual(changes)
  })

  it("is short even if the service gave a reason or a message of three million characters", () => {
    const long = "LONG_".repeat(600_000)
    const state = runOf(planned("a"), settled("a", "failed", long, "engineer", { message: long }))
    const summary = summarise(state)
    expect(summary.troubles.map(({ reason, message }) => [reason, message])).toEqual([
      [cutText(long, 200), cutText(long, 1_000)],
    ])
    expect(renderSummary(summary, { width: Infinity, colour: false }).length).toBeLessThan(2_000)
  })

  it("shows no control character of a reason or a family, nor in the command that finishes the rest", () => {
    const left = settled("a", "unfinished", `${escape}[32mX\nY`, "service")
    const run = runOf(planned("a"), left, { _tag: "RunEnded", run_id, exit_code: 4, leftovers: true })
    const text = renderSummary(summarise(run), { width: Infinity, colour: false })
    expect(text).toContain("--only '\\u001b[32mX\\u000aY'")
    expect(text).not.toContain(escape)
    const family = publishedWith({ other: one(`${escape}[2J<script>\u202e`) })
    expect(renderSummary(family, { width: 80, colour: false })).not.toMatch(/[^\P{Cc}\n]|\p{Cf}/u)
  })
})
