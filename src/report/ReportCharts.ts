/**
 * The report's charts as SVG: the load over the run, single executions, and lines over the last runs. Written
 * by hand, because the three of them are rectangles and polylines, and a chart library would be larger than
 * the page. Each has a text for readers who do not see it; colours come from the page's style.
 */
import { counted } from "../base/Text.ts"
import { loadOver } from "./Report.ts"
import type { EngineNight, Report, TimelineRow } from "./Report.ts"
import { Html, dataTable, html, jsonText, nothing, scrollable, visible } from "./Html.ts"
import type { Heading } from "./Html.ts"
import { duration } from "./TextTable.ts"
import type { Clock } from "./TextTable.ts"

/** All charts are drawn in these units and scaled to the page. */
const width = 960
const slices = 240

const rounded = (value: number): number => Math.round(value * 100) / 100

const rect = (className: string, x: number, y: number, w: number, h: number) =>
  html`<rect
    class="${className}"
    x="${rounded(x)}"
    y="${rounded(y)}"
    width="${rounded(Math.max(0.5, w))}"
    height="${rounded(h)}"
  />`

const minute = 60_000
const steps = [1, 2, 5, 10, 15, 30, 60, 120, 180, 360, 720, 1_440].map((minutes) => minutes * minute)

const longest = 1_440 * minute

/** Moments for an axis: at most nine, on round minutes of the epoch. */
export const ticksOf = (beginAt: number, endAt: number): ReadonlyArray<number> => {
  const step =
    steps.find((one) => (endAt - beginAt) / one <= 8) ?? Math.ceil((endAt - beginAt) / 8 / longest) * longest
  const first = Math.ceil(beginAt / step) * step
  const ticks: Array<number> = []
  for (let at = first; at <= endAt && ticks.length < 9; at += step) ticks.push(at)
  return ticks
}

interface Window {
  readonly beginAt: number
  readonly endAt: number
}

const placeIn = ({ beginAt, endAt }: Window) => {
  const scale = width / Math.max(1, endAt - beginAt)
  return (at: number) => (at - beginAt) * scale
}

const axis = (window: Window, y: number, clock: Clock): ReadonlyArray<Html> => {
  const place = placeIn(window)
  return ticksOf(window.beginAt, window.endAt).map((at) => {
    const x = rounded(Math.min(width - 28, Math.max(18, place(at))))
    return html`<line
        class="tick"
        x1="${rounded(place(at))}"
        x2="${rounded(place(at))}"
        y1="0"
        y2="${y}"
      /><text class="axis" x="${x}" y="${y + 15}">${clock.time(at)}</text>`
  })
}

/** One entry of a legend. */
export const chip = (className: string, words: string) =>
  html`<li>
    <svg viewBox="0 0 14 14" aria-hidden="true"><rect class="${className}" width="14" height="14" /></svg
    >${words}
  </li>`

/** How many executions were waiting for a retry, in the queue and running, over the whole run. */
const loadChart = (rows: ReadonlyArray<TimelineRow>, window: Window, clock: Clock): Html => {
  const height = 150
  const load = loadOver(rows, { ...window, slices })
  const most = load.reduce((max, one) => Math.max(max, one.waiting + one.queued + one.running), 0)
  const scale = height / Math.max(1, most)
  const step = width / slices
  const bars = (["running", "queued", "waiting"] as const).map((state) => {
    const path = load
      .map((one, index) => {
        const below = state === "running" ? 0 : state === "queued" ? one.running : one.running + one.queued
        if (one[state] === 0) return ""
        const [x, h] = [rounded(index * step), rounded(one[state] * scale)]
        return `M${x} ${rounded(height - below * scale)}v-${h}h${rounded(step)}v${h}z`
      })
      .join("")
    return html`<path class="${state}" d="${new Html(path)}" />`
  })
  const label = `At most ${most} executions were waiting, queued or running at the same time.`
  return html`<svg class="chart" viewBox="0 -14 ${width} ${height + 34}" role="img" aria-label="${label}">
    <text class="axis start" x="0" y="-3">${most} at once</text>
    ${axis(window, height, clock)}${bars}
  </svg>`
}

/** More rows than this are only drawn by the script, or as load. */
const barsMax = 300

/** One bar per execution, in the order in which they began. */
const executionBars = (rows: ReadonlyArray<TimelineRow>, window: Window, clock: Clock): Html => {
  const place = placeIn(window)
  const row = rows.length > 60 ? 4 : 10
  const height = rows.length * row
  const bars = rows.map(({ waiting_at, asked_at, running_at, closed_at, outcome, ...one }, index) => {
    const y = index * row
    const parts = [
      ...(asked_at > waiting_at
        ? [rect("waiting", place(waiting_at), y, place(asked_at) - place(waiting_at), row - 1)]
        : []),
      ...(running_at > asked_at
        ? [rect("queued", place(asked_at), y, place(running_at) - place(asked_at), row - 1)]
        : []),
      rect("running", place(running_at), y, place(closed_at) - place(running_at), row - 1),
      ...(outcome === "succeeded" ? [] : [rect("bad", place(closed_at) - 4, y, 4, row - 1)]),
    ]
    const what = `${one.customer} ${one.engine_reference}: ${duration(closed_at - asked_at)}, ${outcome}`
    return html`<g><title>${what}</title>${parts}</g>`
  })
  const label = `${counted(rows.length, "execution")}, each from its start to its end.`
  return html`<svg class="chart" viewBox="0 0 ${width} ${height + 20}" role="img" aria-label="${label}">
    ${axis(window, height, clock)}${bars}
  </svg>`
}

const sparkWidth = 180
const sparkHeight = 36

/** One engine over the last runs: the median and the slowest twentieth as lines, failures as bars below. */
export const engineSpark = (nights: ReadonlyArray<EngineNight>): Html => {
  const most = nights.reduce((max, { p95_ms }) => Math.max(max, p95_ms ?? 0), 1)
  const step = sparkWidth / Math.max(1, nights.length)
  const x = (index: number) => rounded(index * step + step / 2)
  const line = (className: string, of: (night: EngineNight) => number | undefined) => {
    const points = nights.flatMap((night, index) => {
      const ms = of(night)
      return ms === undefined
        ? []
        : [`${x(index)},${rounded(sparkHeight - 2 - ((sparkHeight - 4) * ms) / most)}`]
    })
    return points.length === 1
      ? html`<circle
          class="${className}"
          r="2"
          cx="${points[0]?.split(",")[0]}"
          cy="${points[0]?.split(",")[1]}"
        />`
      : html`<polyline class="${className}" points="${points.join(" ")}" />`
  }
  const failures = nights.flatMap(({ tasks, not_succeeded }, index) =>
    not_succeeded === 0
      ? []
      : [rect("bad", index * step + 0.5, sparkHeight, step - 1, Math.max(1, (12 * not_succeeded) / tasks))],
  )
  const newest = nights.at(-1)
  const within = `half within ${duration(newest?.p50_ms)}, 95 % within ${duration(newest?.p95_ms)}`
  const label = `Over ${counted(nights.length, "run")}; the newest: ${within}.`
  return html`<svg
    class="spark"
    viewBox="0 0 ${sparkWidth} ${sparkHeight + 14}"
    role="img"
    aria-label="${label}"
  >
    ${failures}${line("p95", (night) => night.p95_ms)}${line("p50", (night) => night.p50_ms)}
  </svg>`
}

// The report's timeline: how many executions were open over the run, each of them as a bar (all in the page's
// data, for its script to zoom into), and the slowest ones. From a `Report` to HTML, pure.

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
