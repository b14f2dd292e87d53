/**
 * The admin page as one HTML text: no script, no external resources, readable on a phone. Anything that a
 * caller sent is hostile text: it is escaped, and isolated so that it cannot change the direction of the
 * text around it.
 */
import { escapeHtml } from "../../base/Text.ts"
import { adminStyle } from "./AdminStyle.ts"
import type { AdminView, ExecutionRow } from "./AdminView.ts"
import { tooSoonMax } from "../core/SandboxCore.ts"

/** A cell's HTML, already escaped. */
interface Html {
  readonly html: string
}
const raw = (html: string): Html => ({ html })
const text = (value: unknown): Html =>
  raw(value === null || value === undefined || value === "" ? "–" : `<bdi>${escapeHtml(String(value))}</bdi>`)
const code = (value: unknown): Html =>
  raw(value === null || value === undefined || value === "" ? "–" : `<code>${text(value).html}</code>`)
/** To the second; in full as a tooltip. */
const moment = (value: string | null): Html => {
  if (value === null) return text(value)
  const whole = escapeHtml(value)
  return raw(`<time datetime="${whole}" title="${whole}">${whole.slice(5, 19).replace("T", " ")}</time>`)
}
const tag = (value: string, kind: "good" | "bad" | "open" | "plain"): Html =>
  raw(`<span class="tag ${kind}">${escapeHtml(value)}</span>`)
const lines = (...parts: ReadonlyArray<Html | undefined>): Html =>
  raw(parts.flatMap((part) => (part === undefined ? [] : [`<div>${part.html}</div>`])).join(""))

type Columns<Row> = ReadonlyArray<readonly [title: string, cell: (row: Row) => Html]>

const table = <Row>(rows: ReadonlyArray<Row>, columns: Columns<Row>): string => {
  const head = columns.map(([title]) => `<th scope="col">${escapeHtml(title)}</th>`).join("")
  const body = rows.map((row) => {
    const cells = columns.map(
      ([title, cell]) => `<td data-title="${escapeHtml(title)}"><div>${cell(row).html}</div></td>`,
    )
    return `<tr>${cells.join("")}</tr>`
  })
  return `<table><thead><tr>${head}</tr></thead><tbody>${body.join("\n")}</tbody></table>`
}

/** A section appears if there is something in it; it says so if it shows only the newest entries. */
const section = <Row>(
  title: string,
  { total, rows }: { readonly total: number; readonly rows: ReadonlyArray<Row> },
  columns: Columns<Row>,
  count = rows.length < total ? `the newest ${rows.length} of ${total}` : String(total),
): string =>
  total === 0
    ? ""
    : `<section><h2>${escapeHtml(title)} <small>${escapeHtml(count)}</small></h2>` +
      `${table(rows, columns)}</section>`

const kindOf = (row: ExecutionRow) => {
  if (row.is_closed !== true) return "open"
  return row.status_code === "COMPLETED" ? "good" : row.status_code === "PARTIAL" ? "plain" : "bad"
}

const durationOf = (ms: number): string => (ms < 1_000 ? `${ms} ms` : `${Number((ms / 1_000).toFixed(1))} s`)

const readsOf = ({ state_reads, results_reads }: ExecutionRow): Html => {
  const { count, too_soon } = state_reads
  const shortest = "shortest_ms" in state_reads ? state_reads.shortest_ms : undefined
  return lines(
    text(count === 0 ? "" : `state ${count}×`),
    shortest === undefined ? undefined : text(`at least ${durationOf(shortest)} apart`),
    too_soon === 0 ? undefined : tag(`${too_soon} too soon`, too_soon > tooSoonMax ? "bad" : "plain"),
    results_reads === 0 ? undefined : text(`results ${results_reads}×`),
  )
}

const executionColumns: Columns<ExecutionRow> = [
  ["Customer, engine", (row) => lines(text(row.customer_id), code(row.engine_reference))],
  [
    "State",
    (row) =>
      lines(
        tag(row.status_reason ?? "–", kindOf(row)),
        row.foreign ? tag("somebody else’s", "plain") : undefined,
        row.deleted_at === null ? undefined : tag("deleted", "plain"),
        row.aborted_at === null ? undefined : tag("aborted", "plain"),
      ),
  ],
  ["Created, closes", (row) => lines(moment(row.date_created), moment(row.closes_at))],
  ["Read", readsOf],
  ["Final state read, deleted", (row) => lines(moment(row.final_state_read_at), moment(row.deleted_at))],
  [
    "Execution, session, external id",
    (row) =>
      lines(
        code(row.execution_id),
        code(row.session_id),
        row.external_execution_id === null ? undefined : code(row.external_execution_id),
      ),
  ],
  ["Application", (row) => code(row.application)],
]

const about = (row: { readonly customer_id?: string; readonly engine_reference?: string }): Html =>
  lines(text(row.customer_id), row.engine_reference === undefined ? undefined : code(row.engine_reference))

const breaksOf = ({ rule_breaks }: AdminView): string =>
  rule_breaks.total === 0
    ? `<section><h2>Rules broken</h2><p class="calm">None.</p></section>`
    : section("Rules broken", rule_breaks, [
        ["When", ({ at }) => moment(at)],
        [
          "Rule",
          ({ rule, answer_read, families }) =>
            lines(
              tag(rule.replaceAll("_", " "), answer_read === false ? "plain" : "bad"),
              answer_read === false ? text("the refusal had not been read yet: no fault") : undefined,
              families === undefined ? undefined : text(`never answered in full: ${families.join(", ")}`),
            ),
        ],
        ["Customer, engine", about],
        ["Execution or session", ({ execution_id, session_id }) => code(execution_id ?? session_id)],
        ["Application", ({ application }) => code(application)],
      ])

const faultsOf = ({ faults }: AdminView): string => {
  if (faults === null) return ""
  const injected = { total: faults.total, rows: faults.injected }
  const recent = { total: faults.recent.length, rows: faults.recent }
  if (faults.total === 0) return `<section><h2>Faults injected</h2><p class="calm">None so far.</p></section>`
  return (
    section(
      "Faults injected",
      injected,
      [
        ["Fault", ({ fault }) => code(fault)],
        ["On", ({ on }) => text(on.join(", "))],
        ["Times", ({ count }) => text(count)],
      ],
      String(faults.total),
    ) +
    section("Newest faults", recent, [
      ["When", ({ at }) => moment(at)],
      ["Call", ({ endpoint }) => code(endpoint)],
      ["Fault", ({ fault }) => code(fault)],
      ["Customer", ({ customer_id }) => text(customer_id)],
    ])
  )
}

const refusedOf = ({ refused_starts }: AdminView): string =>
  section("Starts refused", refused_starts, [
    ["When", ({ at }) => moment(at)],
    ["Outcome", ({ outcome }) => tag(outcome.replaceAll("_", " "), "plain")],
    ["Customer, engine", about],
    ["In its way", ({ execution_id }) => code(execution_id)],
    ["External id", ({ external_execution_id }) => code(external_execution_id)],
  ])

const tokensOf = ({ tokens, refused_exchanges }: AdminView): string =>
  section("Tokens", tokens, [
    ["Token", ({ token_id }) => code(token_id)],
    ["State", ({ state }) => tag(state, state === "active" ? "good" : "bad")],
    ["Customer, engine", about],
    ["Exchanged, expires", ({ exchanged_at, expires_at }) => lines(moment(exchanged_at), moment(expires_at))],
    ["Runs, conflicts", ({ runs, conflicts }) => text(`${runs}, ${conflicts}`)],
  ]) +
  section("Ticket exchanges refused", refused_exchanges, [
    ["When", ({ at }) => moment(at)],
    ["Why", ({ fault }) => tag(fault.replaceAll("_", " "), "plain")],
    ["Execution", ({ execution_id }) => code(execution_id)],
    ["Application", ({ application }) => code(application)],
  ])

const sessionsOf = ({ sessions }: AdminView): string =>
  section("Flow sessions of their own", sessions, [
    ["Session", ({ session_id }) => code(session_id)],
    ["Customer", ({ customer_id }) => text(customer_id)],
    ["State", ({ status_code, is_closed }) => tag(status_code, is_closed ? "plain" : "open")],
    ["Cursor", ({ cursor }) => code(cursor)],
    [
      "Results read, too soon, locked",
      (row) => text(`${row.results_reads}, ${row.refused_reads}, ${row.locked_reads}`),
    ],
    ["Created", ({ created_at }) => moment(created_at)],
  ])

const hooksOf = ({ hooks }: AdminView): string =>
  section("Webhook rules", hooks.rules, [
    ["Target", ({ target }) => code(target)],
    ["Events", ({ events }) => text(events.join(", "))],
    ["Enabled", ({ enabled }) => text(enabled ? "yes" : "no")],
    ["Application", ({ application }) => code(application ?? "all")],
  ]) +
  section("Webhook deliveries", hooks.deliveries, [
    ["Last attempt", ({ at }) => moment(at)],
    ["Event", ({ event }) => code(event)],
    ["Outcome", ({ outcome }) => tag(outcome, outcome === "delivered" ? "good" : "bad")],
    ["Attempts, duplicates", ({ attempts, duplicates }) => text(`${attempts}, ${duplicates}`)],
    ["Next", ({ next_at }) => moment(next_at)],
    ["Execution or session", ({ subject }) => code(subject)],
  ])

const tiles = (view: AdminView): string =>
  [
    ["executions", view.executions.total],
    ["open now", view.open],
    ["starts refused", view.refused_starts.total],
    ["rules broken", view.rule_breaks.total],
    ["faults injected", view.faults?.total ?? 0],
    ["tokens", view.tokens.total],
    ["flow sessions", view.sessions.total],
    ["deliveries", view.hooks.deliveries.total],
    ["catalogue reads", view.catalogue_reads.reduce((sum, { count }) => sum + count, 0)],
  ]
    .map(
      ([name, count]) => `<li><strong>${escapeHtml(String(count))}</strong> ${escapeHtml(String(name))}</li>`,
    )
    .join("")

const form = ({ filter }: AdminView): string => {
  const field = (label: string, name: string, value: string) =>
    `<label>${label} <input name="${name}" value="${escapeHtml(value)}"></label>`
  return (
    `<form method="get" action="/admin">` +
    field("Customer", "customer", filter.customer ?? "") +
    field("Application", "application", filter.application ?? "") +
    field("Rows", "limit", String(filter.limit)) +
    `<button>Show</button> <a href="/admin">all</a> <a href="/admin/truth">as JSON</a></form>`
  )
}

/** The whole page. */
export const adminPage = (view: AdminView): string =>
  `<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>The sandbox's truth</title>
<style>${adminStyle}</style></head>
<body><header><h1>What really happened</h1>
<p>The embedded service at <time>${escapeHtml(view.at ?? "")}</time>, its own time. All times are UTC.</p>
${form(view)}</header>
<main><ul class="tiles">${tiles(view)}</ul>
${breaksOf(view)}
${faultsOf(view)}
${section("Executions", view.executions, executionColumns)}
${refusedOf(view)}
${tokensOf(view)}
${sessionsOf(view)}
${hooksOf(view)}
</main></body></html>
`
