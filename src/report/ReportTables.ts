/**
 * The report's tables: the engines over the last runs, coverage, calls and deletions. From a `Report` to
 * HTML, pure.
 */
import { counted } from "../base/Text.ts"
import { exitCodes } from "../messages/ExitCodes.ts"
import { changeTitles, changeKinds, nameOf } from "./Changes.ts"
import type { ChangeKind, WorkGroup } from "./Changes.ts"
import { dataTable, html, nothing, prose, scrollable } from "./Html.ts"
import type { Heading, Html, Value } from "./Html.ts"
import { meaningOfExit } from "./RenderSummary.ts"
import type { EngineNight, Report } from "./Report.ts"
import { chip, engineSpark } from "./ReportCharts.ts"
import { duration, share } from "./TextTable.ts"
import type { Clock } from "./TextTable.ts"
import { actings, actionNeeded, outcomes } from "../service/EndTable.ts"
import type { Outcome } from "../service/EndTable.ts"

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

// The sections of the report about what to do: how the run ended, what is new, still there or mended, and the
// whole worklist. From a `Report` to HTML, pure.

const tile = (value: number | string, label: string, className = "") =>
  html`<li><b class="${className}">${value}</b>${label}</li>`

const outcomeClasses = {
  succeeded: "good",
  partial: "warn",
  failed: "trouble",
  skipped: "warn",
  unfinished: "warn",
} as const

export const headSection = ({ summary, timezone, since, worklist, finish }: Report, clock: Clock): Html => {
  const { run_id, exit_code, started_at, ended_at, elapsed_ms, parent } = summary
  const ended =
    ended_at === undefined || elapsed_ms === undefined
      ? "not ended yet"
      : `ended ${clock.moment(Date.parse(ended_at))}, took ${duration(elapsed_ms)}`
  const status =
    exit_code === undefined
      ? html`<p><span class="status code4">Not ended</span></p>`
      : html`<p>
          <span class="status code${exit_code}">Exit code ${exit_code}</span> ${meaningOfExit(summary) ?? ""}.
        </p>`
  const changes = changeKinds.map((kind) =>
    tile(
      worklist.filter(({ change }) => change === kind).length,
      changeTitles[kind].toLowerCase(),
      kind === "mended" ? "good" : kind === "new" ? "trouble" : "warn",
    ),
  )
  return html`<header>
    <h1>${run_id}</h1>
    ${status}
    <p class="soft">
      Started ${clock.moment(Date.parse(started_at))}, ${ended}. Times in ${timezone}.
      ${parent === undefined ? "" : ` A rerun of ${parent}.`}
    </p>
    <ul class="tiles">
      ${tile(summary.tasks, "tasks")}${outcomes
        .filter((outcome) => summary.outcomes[outcome] > 0)
        .map((outcome) => tile(summary.outcomes[outcome], outcome, outcomeClasses[outcome]))}
      ${since === undefined ? nothing : changes}${tile(summary.records_counted, "products counted")}
    </ul>
    <p>${prose(finish.why)}</p>
    ${finish.command === undefined ? nothing : html`<code class="command">${finish.command}</code>`}
  </header>`
}

const groupItem = ({ change, count, outcome, ...group }: WorkGroup): Html => {
  const more = count > group.examples.length ? ` and ${count - group.examples.length} more` : ""
  const subjects = `${group.examples.join(", ")}${more}`
  return change === "mended"
    ? html`<li class="mended">
        <p><b>${count}</b> had <code>${group.reason}</code></p>
        <p class="soft">${subjects}</p>
      </li>`
    : html`<li class="${change}">
        <p><b>${count}</b> <code>${group.reason}</code> (${outcome})</p>
        <p class="soft">${subjects}</p>
        <p>${prose(`${group.means} ${group.what_to_do}`)}</p>
      </li>`
}

const capital = (text: string): string => text.replace(/^./, (letter) => letter.toUpperCase())

const changeBlock = (kind: ChangeKind, groups: ReadonlyArray<WorkGroup>, title: string): Html => {
  const of = groups.filter(({ change }) => change === kind)
  if (of.length === 0) return nothing
  const total = of.reduce((sum, { count }) => sum + count, 0)
  const head = html`<h3>${title}: ${counted(total, "task")}</h3>`
  if (kind === "mended")
    return html`${head}
      <ul class="groups">
        ${of.map(groupItem)}
      </ul>`
  const parts = actings.map((acting) => {
    const theirs = of.filter((group) => group.acting === acting)
    return theirs.length === 0
      ? nothing
      : html`<p><b>${capital(actionNeeded[acting])}</b></p>
          <ul class="groups">
            ${theirs.map(groupItem)}
          </ul>`
  })
  return html`${head}${parts}`
}

export const changesSection = ({ groups, since, summary }: Report): Html => {
  const compared =
    since === undefined
      ? html`<p>This is the first run of the job: there is nothing to compare it with.</p>`
      : html`<p>Compared with how each customer and engine stood after <code>${since}</code>.</p>`
  const titleOf = (kind: ChangeKind) => (since === undefined ? "To do" : changeTitles[kind])
  // Without trouble, a run ends with 3 if its tables lack something: the warnings say what.
  const hasWork =
    groups.some(({ change }) => change !== "mended") || summary.exit_code === exitCodes.peopleMustAct
  const none = hasWork ? nothing : html`<p>Nobody has to do anything.</p>`
  const warnings =
    summary.warnings.length === 0
      ? nothing
      : html`<h3>Warnings</h3>
          <ul>
            ${summary.warnings.map((warning) => html`<li>${prose(warning)}</li>`)}
          </ul>`
  return html`<section id="changes">
    <h2>What to do</h2>
    ${compared}${none} ${changeKinds.map((kind) => changeBlock(kind, groups, titleOf(kind)))} ${warnings}
  </section>`
}

/** More rows are in the CSV only. */
const worklistRowsMax = 5_000

/** The page's script reads who acts from the second column. */
const workHeadings = ["change", "who acts", "customer, engine", "outcome", "reason", "what to do"]

export const worklistSection = ({ worklist }: Report): Html => {
  if (worklist.length === 0) return nothing
  const shown = worklist.slice(0, worklistRowsMax)
  const rest = worklist.length - shown.length
  const rows = shown.map((row) => [
    row.change,
    row.acting,
    nameOf(row),
    row.outcome,
    html`<code>${row.reason}</code>`,
    html`${row.message === "" ? "" : `“${row.message}” `}${prose(row.what_to_do)}`,
  ])
  const table = dataTable({ headings: workHeadings, rows, id: "worklist", isStacked: true })
  return html`<section id="work">
    <h2>Worklist</h2>
    <p>
      ${counted(worklist.length, "row")}, also as <a href="worklist.csv" download>worklist.csv</a>.
      ${rest > 0 ? `The last ${counted(rest, "row")} are only there.` : ""}
    </p>
    <div class="tools" hidden>
      <label>Filter <input id="filter" type="search" /></label>
      <label
        >Who acts
        <select id="actor">
          <option value="">everybody</option>
          ${actings.map((acting) => html`<option>${acting}</option>`)}
        </select></label
      ><output id="shown" aria-live="polite"></output>
    </div>
    ${scrollable("Worklist", table, "tall")}
  </section>`
}
