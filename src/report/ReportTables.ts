/**
 * The report's tables: the engines over the last runs, coverage, calls and deletions. From a `Report` to
 * HTML, pure.
 */
import { outcomes } from "../ends/EndRow.ts"
import type { Outcome } from "../ends/EndRow.ts"
import { html } from "./Html.ts"
import type { Html } from "./Html.ts"
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

export const enginesSection = ({ published }: Report): Html => {
  const engines = [...byEngine(published?.engines ?? [])]
  const rows = engines.map(([engine, nights]) => {
    const newest = nights.at(-1)
    const tasks = nights.reduce((sum, night) => sum + night.tasks, 0)
    const bad = nights.reduce((sum, night) => sum + night.not_succeeded, 0)
    return html`<tr>
      <td>${engine}</td>
      <td class="n">${nights.length}</td>
      <td class="n">${duration(newest?.p50_ms)}</td>
      <td class="n">${duration(newest?.p95_ms)}</td>
      <td class="n">${share(newest?.not_succeeded ?? 0, newest?.tasks ?? 0)}</td>
      <td class="n">${share(bad, tasks)}</td>
      <td>${engineSpark(nights)}</td>
    </tr>`
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
            <div class="scroll" tabindex="0" role="region" aria-label="Engines">
              <table>
                <thead>
                  <tr>
                    <th scope="col">engine</th>
                    <th scope="col" class="n">runs</th>
                    <th scope="col" class="n">half within</th>
                    <th scope="col" class="n">95 % within</th>
                    <th scope="col" class="n">not succeeded</th>
                    <th scope="col" class="n">over all runs</th>
                    <th scope="col">runs, oldest first</th>
                  </tr>
                </thead>
                <tbody>
                  ${rows}
                </tbody>
              </table>
            </div>`
    }
  </section>`
}

const coverageRow = (engine: string, feature: string, counts: ReadonlyMap<Outcome, number>): Html => {
  const all = [...counts.values()].reduce((sum, one) => sum + one, 0)
  const good = counts.get("succeeded") ?? 0
  const others = outcomes.filter((outcome) => outcome !== "succeeded" && (counts.get(outcome) ?? 0) > 0)
  const told = others.map((outcome) => `${counts.get(outcome)} ${outcome}`).join(", ")
  return html`<tr>
    <td>${engine}</td>
    <td>${feature === "" ? "(the engine's own)" : feature}</td>
    <td class="n">${good} of ${all}</td>
    <td>
      <svg
        class="bar"
        viewBox="0 0 100 10"
        preserveAspectRatio="none"
        role="img"
        aria-label="${share(good, all)} succeeded"
      >
        <rect class="rest" width="100" height="10" />
        <rect class="good" width="${Math.round((100 * good) / Math.max(1, all))}" height="10" />
      </svg>
    </td>
    <td>${told}</td>
  </tr>`
}

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
            <div class="scroll" tabindex="0" role="region" aria-label="Coverage">
              <table>
                <thead>
                  <tr>
                    <th scope="col">engine</th>
                    <th scope="col">feature</th>
                    <th scope="col" class="n">customers</th>
                    <th scope="col">succeeded</th>
                    <th scope="col">others</th>
                  </tr>
                </thead>
                <tbody>
                  ${rows}
                </tbody>
              </table>
            </div>`
    }
  </section>`
}

export const callsSection = ({ calls }: Report): Html => {
  const rows = calls.map(
    ({ what, count }) =>
      html`<tr>
        <td>${what}</td>
        <td class="n">${count}</td>
      </tr>`,
  )
  return html`<section id="calls">
    <h2>Calls and retries</h2>
    <p class="soft">What the ledger recorded. Polls that showed nothing new leave no trace in it.</p>
    <table>
      <thead>
        <tr>
          <th scope="col">what</th>
          <th scope="col" class="n">count</th>
        </tr>
      </thead>
      <tbody>
        ${rows}
      </tbody>
    </table>
  </section>`
}

export const deletionsSection = ({ deletions: { deleted, gone, pending, kept } }: Report): Html => {
  const row = (what: string, count: number) =>
    html`<tr>
      <td>${what}</td>
      <td class="n">${count}</td>
    </tr>`
  const rows = [
    row("deleted at the service (204)", deleted),
    row("already gone there (404)", gone),
    row("not deleted yet", pending),
    ...kept.map(({ reason, count, means }) => row(`kept there on purpose, ${reason}: ${means}`, count)),
  ]
  return html`<section id="deletions">
    <h2>Deletions</h2>
    <table>
      <thead>
        <tr>
          <th scope="col">executions</th>
          <th scope="col" class="n">count</th>
        </tr>
      </thead>
      <tbody>
        ${rows}
      </tbody>
    </table>
  </section>`
}
