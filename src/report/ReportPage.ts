/**
 * The report of a run as a page: from a `Report` to what `page.html` shows, which makes elements and texts
 * of it and never markup. Pure.
 */
import { andMore, counted, shellWord, sumOf } from "../base/Text.ts"
import { exitCodes } from "../messages/ExitCodes.ts"
import { actings, actionNeeded, outcomes } from "../service/EndTable.ts"
import { changeKinds, changeTitles, nameOf, type ChangeKind, type WorkGroup } from "./Changes.ts"
import { fillPage, momentIn, type Inline, type Look, type Page, type Part } from "./Page.ts"
import { capital, meaningOfExit, outcomeLooks, tellOutcomes } from "./RenderSummary.ts"
import { dataChanges, type Report, type TableChanges } from "./Report.ts"
import { duration, share } from "./TextTable.ts"

const changeLooks = { new: "trouble", still: "warn", mended: "good" } as const

const exitLooks: Readonly<Record<number, Look>> = { 0: "good", 3: "warn", 4: "warn" }

/** How the run ended, in words that a page without a script shows too. */
const headlines = ({ summary, timezone }: Report) => {
  const { exit_code, started_at, ended_at, elapsed_ms, parent, part } = summary
  const momentOf = (iso: string) => momentIn(timezone, Date.parse(iso))
  const ended =
    ended_at === undefined ? "not ended yet" : `ended ${momentOf(ended_at)}, took ${duration(elapsed_ms)}`
  const rerun = parent === undefined ? "" : ` A rerun of ${parent}.`
  const whole = part === undefined ? "" : " A part of the job, which is not its night."
  return {
    status: exit_code === undefined ? "Not ended" : `Exit code ${exit_code}`,
    meaning: exit_code === undefined ? "" : ` ${meaningOfExit(summary) ?? ""}.`,
    when: `Started ${momentOf(started_at)}, ${ended}. Times in ${timezone}.${rerun}${whole}`,
  }
}

const headOf = (report: Report): ReadonlyArray<Part> => {
  const { summary, since, worklist } = report
  const { status, meaning, when } = headlines(report)
  const { exit_code, finish } = summary
  const look = exit_code === undefined ? "warn" : (exitLooks[exit_code] ?? "trouble")
  const ends = outcomes.filter((outcome) => summary.outcomes[outcome] > 0)
  const ofChange = (kind: ChangeKind) => worklist.filter(({ change }) => change === kind).length
  return [
    { p: [{ status, look }, meaning] },
    { p: when, look: "soft" },
    {
      tiles: [
        [summary.tasks, "tasks"],
        ...ends.map((end) => [summary.outcomes[end], end, outcomeLooks[end]] as const),
        ...(since === undefined ? [] : changeKinds).map(
          (kind) => [ofChange(kind), changeTitles[kind].toLowerCase(), changeLooks[kind]] as const,
        ),
        [summary.records_counted, "products counted"],
      ],
    },
    { p: { prose: finish.why } },
    ...(finish.command === undefined ? [] : [{ command: finish.command }]),
  ]
}

const groupOf = ({ change, count, outcome, reason, examples, means, what_to_do }: WorkGroup) => {
  const title = [{ b: String(count) }, change === "mended" ? " had " : " ", { code: reason }]
  const names = andMore(examples, count)
  const lines: ReadonlyArray<Inline> =
    change === "mended"
      ? [title, names]
      : [[...title, ` (${outcome})`], names, { prose: `${means} ${what_to_do}` }]
  return { look: changeLooks[change], lines }
}

const changeParts = (kind: ChangeKind, all: Report["groups"], title: string): ReadonlyArray<Part> => {
  const of = all.filter(({ change }) => change === kind)
  if (of.length === 0) return []
  const head = { h: `${title}: ${counted(sumOf(of.map(({ count }) => count)), "task")}` }
  if (kind === "mended") return [head, { groups: of.map(groupOf) }]
  const parts = [...Map.groupBy(of, ({ acting }) => acting)].map(([acting, theirs]): ReadonlyArray<Part> => [
    { p: { b: capital(actionNeeded[acting]) } },
    { groups: theirs.map(groupOf) },
  ])
  return [head, ...parts.flat()]
}

const changesOf = ({ groups, since, summary }: Report): ReadonlyArray<Part> => {
  // Without trouble, a run ends with 3 if its tables lack something: the warnings say what.
  const hasWork =
    groups.some(({ change }) => change !== "mended") || summary.exit_code === exitCodes.peopleMustAct
  const { warnings } = summary
  return [
    {
      p:
        since === undefined
          ? "This is the first run of the job: there is nothing to compare it with."
          : ["Compared with how each customer and engine stood after ", { code: since }, "."],
    },
    ...(hasWork ? [] : [{ p: "Nobody has to do anything." }]),
    ...changeKinds.flatMap((kind) =>
      changeParts(kind, groups, since === undefined ? "To do" : changeTitles[kind]),
    ),
    ...(warnings.length === 0 ? [] : [{ h: "Warnings" }, { list: warnings.map((prose) => ({ prose })) }]),
  ]
}

/** More rows are in the CSV only. */
const worklistRowsMax = 5_000

const worklistParts = ({ worklist }: Report): ReadonlyArray<Part> => {
  const rest = worklist.length - worklistRowsMax
  return [
    {
      p: [
        `${counted(worklist.length, "row")}, also as `,
        { file: "worklist.csv" },
        rest > 0 ? `. The last ${counted(rest, "row")} are only there.` : ".",
      ],
    },
    {
      table: "Worklist",
      headings: ["change", "who acts", "customer, engine", "outcome", "reason", "what to do"],
      rows: worklist
        .slice(0, worklistRowsMax)
        .map((row) => [
          row.change,
          row.acting,
          nameOf(row),
          row.outcome,
          { code: row.reason },
          [row.message === "" ? "" : `“${row.message}” `, { prose: row.what_to_do }],
        ]),
      stacked: true,
      filter: { label: "Who acts", all: "everybody", column: 1, options: actings },
    },
  ]
}

/** Names of tables have no hyphen. */
const idOfChanges = (table: string): string => `changes-${table}`

const changedRecords = (all: typeof TableChanges.Type): Part => {
  const { table, records } = all
  const count = sumOf(dataChanges.map((change) => all[change]))
  const shown = `${records.length < count ? `${records.length} of ` : ""}${counted(count, "record")}`
  return {
    details: `${table}: ${shown}`,
    id: idOfChanges(table),
    parts: [
      {
        table: `Changes of ${table}`,
        headings: ["change", "customer, engine", "columns that changed"],
        rows: records.map(({ change, customer_id, engine_reference, columns }) => [
          change,
          [customer_id ?? "", " ", engine_reference ?? ""],
          columns.join(", "),
        ]),
        stacked: true,
      },
    ],
  }
}

/** Far more than the tables that a job has; the command shows the others. */
const changedTablesMax = 100

const dataOf = ({ published, output, summary }: Report): ReadonlyArray<Part> => {
  if (published?.changes === undefined)
    return [{ p: "The published tables do not tell what this run changed." }]
  const { since, tables, hasPseudonyms } = published.changes
  if (since === undefined)
    return [{ p: "This is the first night of the job in the tables: all that it read is new." }]
  if (tables.length === 0) return [{ p: ["No record changed since ", { code: since }, "."] }]
  const there = output === undefined ? "" : ` --output ${shellWord(output)}`
  const sql = `FROM changes('${since}', '${summary.run_id}') WHERE starts_with(run_id, '${summary.job}.')`
  const headings = ["table", ...dataChanges.map((change) => `#${change}`).toReversed()]
  const shown = tables.slice(0, changedTablesMax)
  const hasRows = new Set(hasPseudonyms ? [] : shown.map(({ table }) => table))
  const rows = tables.map((one): ReadonlyArray<Inline> => [
    hasRows.has(one.table) ? { link: one.table, to: idOfChanges(one.table) } : { code: one.table },
    ...dataChanges.map((change) => one[change]).toReversed(),
  ])
  return [
    {
      p: [
        "Records that this job's runs changed since ",
        { code: since },
        ", with their lists. Tables that are not named are as they were.",
      ],
    },
    { table: "Changes in the tables", headings, rows, stacked: true },
    ...(hasPseudonyms
      ? [{ p: "Customers have pseudonyms in the tables and names in this report, so it shows no rows." }]
      : shown.map(changedRecords)),
    { p: "All of them, with every column:" },
    { command: `nightjar query${there} "${sql}"` },
  ]
}

/** As many as a browser draws and moves without delay. */
const timelineRowsMax = 20_000

/** As small as it gets: tenths of a second, engines by their place. */
const zoomPart = ({ timeline: { beginAt, endAt, rows }, timezone }: Report): Part => {
  const engines = [...new Set(rows.map((row) => row.engine_reference))]
  const places = new Map(engines.map((engine, index) => [engine, index]))
  const zoom = rows.map(({ engine_reference, outcome, customer, ...row }) => [
    places.get(engine_reference) ?? 0,
    ...[row.waiting_at, row.asked_at, row.closed_at].map((at) => Math.round((at - beginAt) / 100)),
    outcome === "succeeded" ? 0 : 1,
    customer,
  ])
  return { zoom, begin: beginAt, end: endAt, zone: timezone, engines }
}

const timelineParts = (report: Report): ReadonlyArray<Part> => {
  const { rows, beginAt, endAt } = report.timeline
  if (rows.length === 0) return [{ p: "Nothing was started." }]
  const moment = (at: number) => momentIn(report.timezone, at)
  return [
    { p: `${counted(rows.length, "execution")} from ${moment(beginAt)} to ${moment(endAt)}.` },
    {
      legend: [
        ["waiting", "waiting for a retry"],
        ["running", "at the service"],
        ["bad", "did not succeed"],
      ],
    },
    rows.length <= timelineRowsMax
      ? zoomPart(report)
      : { p: "They are too many to draw: `ops.executions` of the database has them all." },
  ]
}

const unreadable: ReadonlyArray<Part> = [{ p: "The published tables could not be read." }]

const enginesOf = ({ published }: Report): ReadonlyArray<Part> => {
  if (published === undefined) return unreadable
  const rows = [...Map.groupBy(published.engines, (night) => night.engine_reference)].map(
    ([engine, nights]): ReadonlyArray<Inline> => {
      const newest = nights.at(-1)
      const sum = (key: "tasks" | "not_succeeded") => nights.reduce((all, night) => all + night[key], 0)
      const [half, most] = [duration(newest?.p50_ms ?? undefined), duration(newest?.p95_ms ?? undefined)]
      const within = `half within ${half}, 95 % within ${most}`
      const spark = nights.map(({ p50_ms, p95_ms, tasks, not_succeeded }) => [
        p50_ms,
        p95_ms,
        not_succeeded / Math.max(1, tasks),
      ])
      return [
        engine,
        nights.length,
        half,
        most,
        share(newest?.not_succeeded ?? 0, newest?.tasks ?? 0),
        share(sum("not_succeeded"), sum("tasks")),
        { spark, label: `Over ${counted(nights.length, "run")}; the newest: ${within}.` },
      ]
    },
  )
  return [
    {
      p: "A task's time is from its first start to its last end. “Not succeeded” is every other outcome.",
      look: "soft",
    },
    {
      legend: [
        ["running", "half within (solid line)"],
        ["waiting", "95 % within (dashed line)"],
        ["bad", "not succeeded (bars below)"],
      ],
    },
    {
      table: "Engines",
      headings: [
        "engine",
        "#runs",
        "#half within",
        "#95 % within",
        "#not succeeded",
        "#over all runs",
        "runs, oldest first",
      ],
      rows,
    },
  ]
}

const coverageOf = ({ published }: Report): ReadonlyArray<Part> => {
  if (published === undefined) return unreadable
  const groups = Map.groupBy(published.coverage, ({ engine_reference, feature }) =>
    JSON.stringify([engine_reference, feature]),
  )
  const rows = [...groups.values()].map((counts): ReadonlyArray<Inline> => {
    const of = (outcome: string) =>
      counts.reduce((sum, one) => sum + (one.outcome === outcome ? one.customers : 0), 0)
    const [{ engine_reference = "", feature = "" } = {}] = counts
    const [good, all] = [of("succeeded"), counts.reduce((sum, { customers }) => sum + customers, 0)]
    const others = outcomes.filter((outcome) => outcome !== "succeeded" && of(outcome) > 0)
    return [
      engine_reference,
      feature === "" ? "(the engine's own)" : feature,
      `${good} of ${all}`,
      { bar: good / Math.max(1, all), label: `${share(good, all)} succeeded` },
      others.map((outcome) => `${of(outcome)} ${outcome}`).join(", "),
    ]
  })
  const headings = ["engine", "feature", "#customers", "succeeded", "others"]
  return [
    { p: "For how many customers each feature was read.", look: "soft" },
    { table: "Coverage", headings, rows },
  ]
}

const callsOf = ({ calls }: Report): ReadonlyArray<Part> => [
  { p: "What the ledger recorded. Polls that showed nothing new leave no trace in it.", look: "soft" },
  {
    table: "Calls and retries",
    headings: ["what", "#count"],
    rows: calls,
  },
]

const deletionsOf = ({
  deletions: { deleted, gone, pending, kept },
  summary,
}: Report): ReadonlyArray<Part> => {
  const { kept_by_setting } = summary.deletions
  return [
    {
      table: "Deletions",
      headings: ["executions", "#count"],
      rows: [
        ["deleted at the service (204)", deleted],
        ["already gone there (404)", gone],
        ["not deleted yet", pending],
        ...(kept_by_setting > 0 ? [["kept there (`after_export: keep`)", kept_by_setting]] : []),
        ...kept.map(({ reason, count, means }) => [`kept there on purpose, ${reason}: ${means}`, count]),
      ],
    },
  ]
}

const reportPage = (report: Report): Page => ({
  title: report.summary.run_id,
  head: headOf(report),
  sections: [
    { id: "changes", title: "What to do", parts: changesOf(report) },
    ...(report.worklist.length === 0
      ? []
      : [{ id: "work", title: "Worklist", parts: worklistParts(report) }]),
    { id: "tables", title: "Changes in the tables", parts: dataOf(report) },
    { id: "timeline", title: "Timeline", parts: timelineParts(report) },
    { id: "engines", title: "Engines over the last runs", parts: enginesOf(report) },
    { id: "coverage", title: "Coverage", parts: coverageOf(report) },
    { id: "calls", title: "Calls and retries", parts: callsOf(report) },
    { id: "deletions", title: "Deletions", parts: deletionsOf(report) },
  ],
  foot: [
    {
      p: [
        { code: "nightjar explain ID" },
        " tells everything about a customer, task or reason; ",
        { code: `nightjar report ${report.summary.run_id}` },
        " writes this page again.",
      ],
    },
  ],
})

/** `template`: the text of `page.html`. */
export const renderReport = (template: string, report: Report): string => {
  const { summary, newest } = report
  const { status, meaning, when } = headlines(report)
  const { finish } = summary
  return fillPage(template, reportPage(report), {
    newest,
    summary: [
      summary.run_id,
      `${status}${meaning}`,
      when,
      `${counted(summary.tasks, "task")}: ${tellOutcomes(summary.outcomes)}.`,
      `${finish.why} ${finish.command ?? ""}`,
      "The rest of this page needs JavaScript; `nightjar status` shows the same in a terminal.",
    ],
  })
}
