/**
 * The report's tables: the engines over the last runs, coverage, calls and deletions. From a `Report` to
 * HTML, pure.
 */
import { outcomes } from "../service/EndRow.ts"
import type { Outcome } from "../service/EndRow.ts"
import { dataTable, scrollable } from "./DataTable.ts"
import type { Heading } from "./DataTable.ts"
import { html } from "./Html.ts"
import type { Html, Value } from "./Html.ts"
import type { EngineNight, Report } from "./Report.ts"
import { chip, engineSpark } from "./ReportCharts.ts"
import { duration, share } from "./ReportText.ts"

const byEngine = (nights: ReadonlyArray<EngineNight>): ReadonlyMap<string, ReadonlyArray<EngineNight>> => {
  const found = new Map<string, Array<EngineNight>>()
  for (const night of nights) {
    const same = found.get(night.engine_reference)
    if (same === undefined) found.set(night.engine_reference, [night])
    else same.push(night)
  }
  return found
}

const lineLegend = [
  chip("running", "half within (solid line)"),
  chip("waiting", "95 % within (dashed line)"),
  chip("bad", "not succeeded (bars below)"),
]

const unreadable = html`<p>The published tables could not be read.</p>`

const engineHeadings: ReadonlyArray<Heading> = [
  "engine",
  { number: "runs" },
  { number: "half within" },
  { number: "95 % within" },
  { number: "not succeeded" },
  { number: "over all runs" },
  "runs, oldest first",
]

export const enginesSection = ({ published }: Report): Html => {
  const engines = [...byEngine(published?.engines ?? [])]
  const rows = engines.map(([engine, nights]) => {
    const newest = nights.at(-1)
    const tasks = nights.reduce((sum, night) => sum + night.tasks, 0)
    const bad = nights.reduce((sum, night) => sum + night.not_succeeded, 0)
    return [
      engine,
      nights.length,
      duration(newest?.p50_ms),
      duration(newest?.p95_ms),
      share(newest?.not_succeeded ?? 0, newest?.tasks ?? 0),
      share(bad, tasks),
      engineSpark(nights),
    ]
  })
  return html`<section id="engines">
    <h2>Engines over the last runs</h2>
    ${
      published === undefined
        ? unreadable
        : html`<p class="soft">
              A task's time is from its first start to its last end. “Not succeeded” counts every other
              outcome.
            </p>
            <ul class="legend">
              ${lineLegend}
            </ul>
            ${scrollable("Engines", dataTable({ headings: engineHeadings, rows }))}`
    }
  </section>`
}

const coverageRow = (
  engine: string,
  feature: string,
  counts: ReadonlyMap<Outcome, number>,
): ReadonlyArray<Value> => {
  const all = [...counts.values()].reduce((sum, one) => sum + one, 0)
  const good = counts.get("succeeded") ?? 0
  const others = outcomes.filter((outcome) => outcome !== "succeeded" && (counts.get(outcome) ?? 0) > 0)
  const told = others.map((outcome) => `${counts.get(outcome)} ${outcome}`).join(", ")
  const bar = html`<svg
    class="bar"
    viewBox="0 0 100 10"
    preserveAspectRatio="none"
    role="img"
    aria-label="${share(good, all)} succeeded"
  >
    <rect class="rest" width="100" height="10" />
    <rect class="good" width="${Math.round((100 * good) / Math.max(1, all))}" height="10" />
  </svg>`
  return [engine, feature === "" ? "(the engine's own)" : feature, `${good} of ${all}`, bar, told]
}

const coverageHeadings: ReadonlyArray<Heading> = [
  "engine",
  "feature",
  { number: "customers" },
  "succeeded",
  "others",
]

export const coverageSection = ({ published }: Report): Html => {
  const groups = new Map<string, { engine: string; feature: string; counts: Map<Outcome, number> }>()
  for (const { engine_reference, feature, outcome, customers } of published?.coverage ?? []) {
    const key = JSON.stringify([engine_reference, feature])
    const group = groups.get(key) ?? { engine: engine_reference, feature, counts: new Map() }
    groups.set(key, group)
    group.counts.set(outcome, (group.counts.get(outcome) ?? 0) + customers)
  }
  const rows = [...groups.values()].map(({ engine, feature, counts }) => coverageRow(engine, feature, counts))
  return html`<section id="coverage">
    <h2>Coverage</h2>
    ${
      published === undefined
        ? unreadable
        : html`<p class="soft">For how many customers each feature was read.</p>
            ${scrollable("Coverage", dataTable({ headings: coverageHeadings, rows }))}`
    }
  </section>`
}

export const callsSection = ({ calls }: Report): Html =>
  html`<section id="calls">
    <h2>Calls and retries</h2>
    <p class="soft">What the ledger recorded. Polls that showed nothing new leave no trace in it.</p>
    ${dataTable({
      headings: ["what", { number: "count" }],
      rows: calls.map(({ what, count }) => [what, count]),
    })}
  </section>`

export const deletionsSection = ({ deletions: { deleted, gone, pending, kept } }: Report): Html =>
  html`<section id="deletions">
    <h2>Deletions</h2>
    ${dataTable({
      headings: ["executions", { number: "count" }],
      rows: [
        ["deleted at the service (204)", deleted],
        ["already gone there (404)", gone],
        ["not deleted yet", pending],
        ...kept.map(({ reason, count, means }) => [`kept there on purpose, ${reason}: ${means}`, count]),
      ],
    })}
  </section>`
