/**
 * The report's timeline: how many executions were open over the run, each of them as a bar (all in the page's
 * data, for its script to zoom into), and the slowest ones. From a `Report` to HTML, pure.
 */
import { counted } from "../base/Counted.ts"
import { dataTable, scrollable } from "./DataTable.ts"
import type { Heading } from "./DataTable.ts"
import { html, jsonText, nothing, visible } from "./Html.ts"
import type { Html } from "./Html.ts"
import type { Report, TimelineRow } from "./Report.ts"
import { barsMax, chip, executionBars, loadChart } from "./ReportCharts.ts"
import { duration } from "./ReportText.ts"
import type { Clock } from "./ReportText.ts"

/** Beyond this, single executions are left out of the page: the load chart shows them all. */
const timelineRowsMax = 20_000

const tenths = (at: number, beginAt: number): number => Math.round((at - beginAt) / 100)

/** Everything that the script draws, as small as it gets: tenths of a second, engines by their place. */
const timelineData = ({ timeline: { beginAt, endAt, rows }, timezone }: Report): Html => {
  const engines = [...new Set(rows.map((row) => row.engine_reference))]
  const places = new Map(engines.map((engine, index) => [engine, index]))
  const data = rows.map((row) => [
    places.get(row.engine_reference) ?? 0,
    tenths(row.waiting_at, beginAt),
    tenths(row.asked_at, beginAt),
    tenths(row.running_at, beginAt),
    tenths(row.closed_at, beginAt),
    row.outcome === "succeeded" ? 0 : 1,
    visible(row.customer),
  ])
  return jsonText({ begin: beginAt, end: endAt, zone: timezone, engines: engines.map(visible), rows: data })
}

const button = (act: string, label: string, sign: string) =>
  html`<button type="button" data-act="${act}" aria-label="${label}">${sign}</button>`

const zoomable = (report: Report): Html =>
  html`<div class="tools" hidden>
      ${button("in", "Zoom in", "+")}
      ${button("out", "Zoom out", "−")}${button("left", "Earlier", "←")}${button("right", "Later", "→")}
      ${button("all", "Whole run", "All")}
    </div>
    <canvas
      id="zoom"
      hidden
      tabindex="0"
      role="img"
      aria-describedby="zoomhelp"
      aria-label="Executions as bars; plus, minus, arrow keys and 0 zoom and move"
    ></canvas>
    <output id="said" aria-live="polite"></output>
    <p id="zoomhelp" class="soft">
      With a script: drag over a part to zoom in, or use + − ← → 0 on the keyboard.
    </p>
    <script type="application/json" id="executions">
      ${timelineData(report)}
    </script>`

const slowestShown = 10
const slowestHeadings: ReadonlyArray<Heading> = [
  "customer",
  "engine",
  { number: "waited" },
  { number: "queued" },
  { number: "ran" },
  "outcome",
]

const slowest = (rows: ReadonlyArray<TimelineRow>): Html => {
  const longest = rows
    .toSorted((a, b) => b.closed_at - b.asked_at - (a.closed_at - a.asked_at))
    .slice(0, slowestShown)
  const cells = longest.map((row) => [
    row.customer,
    row.engine_reference,
    duration(row.asked_at - row.waiting_at),
    duration(row.running_at - row.asked_at),
    duration(row.closed_at - row.running_at),
    row.isClosed ? row.outcome : "not closed",
  ])
  return html`<h3>Slowest executions</h3>
    ${scrollable("Slowest executions", dataTable({ headings: slowestHeadings, rows: cells }))}`
}

export const timelineSection = (report: Report, clock: Clock): Html => {
  const { rows, beginAt, endAt } = report.timeline
  if (rows.length === 0)
    return html`<section id="timeline">
      <h2>Timeline</h2>
      <p>Nothing was started.</p>
    </section>`
  const window = { beginAt, endAt }
  return html`<section id="timeline">
    <h2>Timeline</h2>
    <p>${counted(rows.length, "execution")} from ${clock.moment(beginAt)} to ${clock.moment(endAt)}.</p>
    <ul class="legend">
      ${chip("waiting", "waiting for a retry")}${chip("queued", "in the queue")}${chip(
        "running",
        "running",
      )}${chip("bad", "did not succeed")}
    </ul>
    ${scrollable("Executions at the same time", loadChart(rows, window, clock))}
    ${
      rows.length <= barsMax
        ? scrollable("Every execution", executionBars(rows, window, clock), "tall plain")
        : nothing
    }
    ${rows.length <= timelineRowsMax ? zoomable(report) : nothing}${slowest(rows)}
  </section>`
}
