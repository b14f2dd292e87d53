/**
 * What observers request: the truth at one moment, filtered, limited and newest first, without any login
 * parameter, secret or keyed hash; and as one HTML text without script or external resources, readable on a
 * phone. Anything that a caller sent is hostile text: it is escaped, and isolated so that it cannot change
 * the direction of the text around it.
 */
import { readFileSync } from "node:fs"
import { findPackageJSON } from "node:module"
import { join } from "node:path"
import { Struct } from "effect"
import { escapeHtml } from "../../base/Text.ts"
import { ownerOf, type ExecutionSeen, type Truth } from "./Truth.ts"
import { tooSoonMax } from "../core/SandboxCore.ts"
import { flowMomentOf, type FlowSession } from "../state/FlowTimeline.ts"
import { momentAt, type SandboxState } from "../state/SandboxState.ts"
import { deliveriesSeen } from "../state/HookState.ts"

export interface AdminFilter {
  /** The most rows of each list. */
  readonly limit: number
  readonly customer?: string
  readonly application?: string
}

const iso = (at: number | undefined): string | null =>
  at === undefined || !Number.isFinite(at) ? null : new Date(at).toISOString()

type About = Partial<Record<"application" | "customer_id", string | undefined>>
const isAsked =
  ({ customer, application }: AdminFilter) =>
  (about: About): boolean =>
    (customer === undefined || about.customer_id === customer) &&
    (application === undefined || about.application === application)

/** How many there are, and the newest of them. */
const newest = <Row, Shown>(rows: ReadonlyArray<Row>, { limit }: AdminFilter, show: (row: Row) => Shown) => ({
  total: rows.length,
  rows: rows.slice(-limit).toReversed().map(show),
})

const dated = <Row extends { readonly at: number }>(row: Row) => ({ ...row, at: iso(row.at) })

/** Without what identifies a login, and with a field for everything. */
const executionRow = (state: SandboxState, at: number) => (seen: ExecutionSeen) => {
  const execution = state.executions.get(seen.execution_id)
  const moment = execution && momentAt(execution, at)
  return {
    external_execution_id: null,
    token_id: null,
    state_reads: { count: 0, too_soon: 0 },
    retrieved: null,
    ...Struct.omit(seen, ["login", "login_key", "phases", "results_locked_at", "started_at"]),
    status_code: moment?.phase.status_code ?? null,
    status_reason: moment?.phase.status_reason ?? null,
    authentication_status: moment?.phase.authentication_status ?? null,
    is_closed: moment?.closed ?? null,
    date_created: iso(seen.started_at),
    closes_at: iso(seen.closes_at),
    final_state_read_at: iso(seen.final_state_read_at),
    results_reads: seen.results_reads.length,
    aborted_at: iso(seen.aborted_at),
    deleted_at: iso(seen.deleted_at),
  }
}
type ExecutionRow = ReturnType<ReturnType<typeof executionRow>>

const sessionRow = (at: number) => (session: FlowSession) => {
  const { created, phases, steps, reads, lockedAt, refusedAt } = session
  const { status, cursor, closed } = flowMomentOf(phases, at)
  return {
    session_id: created.session_id,
    application: created.application,
    customer_id: created.customer_id ?? null,
    created_at: iso(created.at),
    status_code: status,
    cursor,
    is_closed: closed,
    steps: steps.filter((step) => step.at <= at).map(({ step }) => step._tag),
    results_reads: reads.length,
    refused_reads: refusedAt.length,
    locked_reads: lockedAt.length,
  }
}

/** The part after the host of a target may be one of the receiver's secrets. */
const targetOf = (url: string): string => (URL.canParse(url) ? new URL(url).origin : "")

const hooksView = (state: SandboxState, filter: AdminFilter) => {
  const ofApplication = ({ application }: About) =>
    application === undefined || filter.application === undefined || application === filter.application
  const rules = [...state.hooks.rules.values()].filter(ofApplication)
  const shown = new Set(rules.map(({ id }) => id))
  const isOf = (subject: string) => ownerOf(state, { execution_id: subject, session_id: subject }).customer_id
  const deliveries = deliveriesSeen(state.hooks).filter(
    ({ subject, rule }) =>
      shown.has(rule) && (filter.customer === undefined || isOf(subject) === filter.customer),
  )
  return {
    rules: newest(rules, filter, ({ url, since, ...rule }) => ({
      ...rule,
      target: targetOf(url),
      since: iso(since),
    })),
    deliveries: newest(
      deliveries.toSorted((a, b) => a.at - b.at),
      filter,
      ({ nextAt, at, ...delivery }) => ({ ...delivery, at: iso(at), next_at: iso(nextAt) }),
    ),
  }
}

const tokenState = (token: Truth["tokens"][number], at: number) => {
  if (token.revoked_at !== undefined) return "revoked"
  if (token.expires_at <= at) return "expired"
  return token.locks_at !== undefined && token.locks_at <= at ? "locked" : "active"
}

const tokensView = (truth: Truth, filter: AdminFilter, at: number) =>
  newest(truth.tokens.filter(isAsked(filter)), filter, (token) => ({
    ...Struct.omit(token, ["locks_at", "revoked_at", "holds_credentials"]),
    state: tokenState(token, at),
    exchanged_at: iso(token.exchanged_at),
    expires_at: iso(token.expires_at),
    runs: token.runs.length,
  }))

const faultsView = ({ faults }: Truth, filter: AdminFilter) => {
  if (faults === undefined) return null
  const { customer } = filter
  const recent = faults.recent.filter((seen) => customer === undefined || seen.customer_id === customer)
  return {
    total: faults.injected.reduce((sum, { count }) => sum + count, 0),
    injected: faults.injected,
    recent: newest(recent, filter, dated).rows,
  }
}

export const adminView = (state: SandboxState, truth: Truth, at: number, filter: AdminFilter) => {
  const asked = isAsked(filter)
  const executions = truth.executions.filter(asked)
  const open = executions.filter(({ closes_at, deleted_at }) => deleted_at === undefined && closes_at > at)
  const refused = truth.starts.filter((start) => start.outcome !== "accepted" && asked(start))
  const sessions = [...state.flows.sessions.values()].filter(({ created }) => asked(created))
  return {
    at: iso(at),
    counted_since: iso(truth.countedSince),
    filter,
    open: open.length,
    rule_breaks: newest(truth.ruleBreaks.filter(asked), filter, dated),
    faults: faultsView(truth, filter),
    executions: newest(executions, filter, executionRow(state, at)),
    refused_starts: newest(refused, filter, dated),
    tokens: tokensView(truth, filter, at),
    refused_exchanges: newest(truth.refusedExchanges.filter(asked), filter, ({ _tag, ...refusal }) =>
      dated(refusal),
    ),
    sessions: newest(sessions, filter, sessionRow(at)),
    hooks: hooksView(state, filter),
    catalogue_reads: truth.catalogueReads.filter(asked),
  }
}
export type AdminView = ReturnType<typeof adminView>

const isEmpty = (value: unknown): boolean => value === null || value === undefined || value === ""
const tag = (value: string, kind: "good" | "bad" | "open" | "plain"): string =>
  `<span class="tag ${kind}">${escapeHtml(value)}</span>`
const words = (value: unknown): string => String(value).replaceAll("_", " ")

/** How a field's value becomes HTML. */
const shown = {
  text: (value: unknown) => (isEmpty(value) ? "–" : `<bdi>${escapeHtml(String(value))}</bdi>`),
  code: (value: unknown) => (isEmpty(value) ? "–" : `<code>${shown.text(value)}</code>`),
  list: (value: unknown): string => shown.text(Array.isArray(value) ? value.join(", ") : value),
  /** To the second; in full as a tooltip. */
  time: (value: unknown): string => {
    if (isEmpty(value)) return "–"
    const whole = escapeHtml(String(value))
    return `<time datetime="${whole}" title="${whole}">${whole.slice(5, 19).replace("T", " ")}</time>`
  },
  plain: (value: unknown) => tag(words(value), "plain"),
} as const

/** A field and how it is shown (`?`: a line only if it has a value), or the HTML of a row, if any. */
type Line<Row> = `${keyof typeof shown}${"" | "?"} ${keyof Row & string}` | ((row: Row) => string | undefined)
type Columns<Row> = ReadonlyArray<readonly [title: string, ...lines: ReadonlyArray<Line<Row>>]>

const lineOf = <Row extends object>(row: Row, line: Line<Row>): string | undefined => {
  if (typeof line === "function") return line(row)
  const [how = "", name = ""] = line.split(" ")
  const value: unknown = Reflect.get(row, name)
  if (how.endsWith("?") && isEmpty(value)) return undefined
  return shown[how.replace("?", "") as keyof typeof shown](value)
}

const cellOf = <Row extends object>(row: Row, lines: ReadonlyArray<Line<Row>>): string => {
  const parts = lines.flatMap((line) => lineOf(row, line) ?? [])
  return lines.length === 1 ? parts.join("") : parts.map((part) => `<div>${part}</div>`).join("")
}

/** A section appears if it holds something or says that it is empty, and says if rows are left out. */
const section = <Row extends object>(
  title: string,
  { total, rows }: { readonly total: number; readonly rows: ReadonlyArray<Row> },
  columns: Columns<Row>,
  { count, empty = "" }: { readonly count?: string; readonly empty?: string } = {},
): string => {
  if (total === 0)
    return empty === "" ? "" : `<section><h2>${title}</h2><p class="calm">${empty}</p></section>`
  const part = count ?? (rows.length < total ? `the newest ${rows.length} of ${total}` : String(total))
  const head = columns.map(([name]) => `<th scope="col">${name}</th>`).join("")
  const body = rows.map((row) => {
    const cells = columns.map(
      ([name, ...lines]) => `<td data-title="${name}"><div>${cellOf(row, lines)}</div></td>`,
    )
    return `<tr>${cells.join("")}</tr>`
  })
  return (
    `<section><h2>${title} <small>${part}</small></h2><table><thead><tr>${head}</tr></thead>` +
    `<tbody>${body.join("\n")}</tbody></table></section>`
  )
}

const kindOf = (row: ExecutionRow) => {
  if (row.is_closed !== true) return "open"
  return row.status_code === "COMPLETED" ? "good" : row.status_code === "PARTIAL" ? "plain" : "bad"
}
const durationOf = (ms: number): string => (ms < 1_000 ? `${ms} ms` : `${Number((ms / 1_000).toFixed(1))} s`)
const tooSoon = (count: number): string | undefined =>
  count === 0 ? undefined : tag(`${count} too soon`, count > tooSoonMax ? "bad" : "plain")

const executions: Columns<ExecutionRow> = [
  ["Customer, engine", "text customer_id", "code engine_reference"],
  [
    "State",
    (row) => tag(row.status_reason ?? "–", kindOf(row)),
    ({ foreign }) => (foreign ? tag("somebody else’s", "plain") : undefined),
    ({ deleted_at }) => (deleted_at === null ? undefined : tag("deleted", "plain")),
    ({ aborted_at }) => (aborted_at === null ? undefined : tag("aborted", "plain")),
  ],
  ["Created, closes", "time date_created", "time closes_at"],
  [
    "Read",
    ({ state_reads: { count } }) => shown.text(count === 0 ? "" : `state ${count}×`),
    ({ state_reads: reads }) =>
      "shortest_ms" in reads && reads.shortest_ms !== undefined
        ? shown.text(`at least ${durationOf(reads.shortest_ms)} apart`)
        : undefined,
    ({ state_reads }) => tooSoon(state_reads.too_soon),
    ({ results_reads }) => (results_reads === 0 ? undefined : shown.text(`results ${results_reads}×`)),
  ],
  ["Final state read, deleted", "time final_state_read_at", "time deleted_at"],
  ["Execution, session, external id", "code execution_id", "code session_id", "code? external_execution_id"],
  ["Application", "code application"],
]

const happened = (view: AdminView): ReadonlyArray<string> => [
  section(
    "Rules broken",
    view.rule_breaks,
    [
      ["When", "time at"],
      [
        "Rule",
        ({ rule, answer_read }) => tag(words(rule), answer_read === false ? "plain" : "bad"),
        ({ answer_read }) =>
          answer_read === false ? shown.text("the refusal had not been read yet: no fault") : undefined,
        ({ families }) => families && shown.text(`never answered in full: ${families.join(", ")}`),
      ],
      ["Customer, engine", "text customer_id", "code? engine_reference"],
      ["Execution or session", ({ execution_id, session_id }) => shown.code(execution_id ?? session_id)],
      ["Application", "code application"],
    ],
    { empty: "None." },
  ),
  view.faults === null
    ? ""
    : section(
        "Faults injected",
        { total: view.faults.total, rows: view.faults.injected },
        [
          ["Fault", "code fault"],
          ["On", "list on"],
          ["Times", "text count"],
        ],
        { count: String(view.faults.total), empty: "None so far." },
      ) +
      section("Newest faults", { total: view.faults.recent.length, rows: view.faults.recent }, [
        ["When", "time at"],
        ["Call", "code endpoint"],
        ["Fault", "code fault"],
        ["Customer", "text customer_id"],
      ]),
  section("Executions", view.executions, executions),
]

const calledUpon = (view: AdminView): ReadonlyArray<string> => [
  section("Starts refused", view.refused_starts, [
    ["When", "time at"],
    ["Outcome", "plain outcome"],
    ["Customer, engine", "text customer_id", "code? engine_reference"],
    ["In its way", "code execution_id"],
    ["External id", "code external_execution_id"],
  ]),
  section("Tokens", view.tokens, [
    ["Token", "code token_id"],
    ["State", ({ state }) => tag(state, state === "active" ? "good" : "bad")],
    ["Customer, engine", "text customer_id", "code? engine_reference"],
    ["Exchanged, expires", "time exchanged_at", "time expires_at"],
    ["Runs, conflicts", ({ runs, conflicts }) => shown.text(`${runs}, ${conflicts}`)],
  ]) +
    section("Ticket exchanges refused", view.refused_exchanges, [
      ["When", "time at"],
      ["Why", "plain fault"],
      ["Execution", "code execution_id"],
      ["Application", "code application"],
    ]),
  section("Flow sessions of their own", view.sessions, [
    ["Session", "code session_id"],
    ["Customer", "text customer_id"],
    ["State", ({ status_code, is_closed }) => tag(status_code, is_closed ? "plain" : "open")],
    ["Cursor", "code cursor"],
    [
      "Results read, too soon, locked",
      (row) => shown.text(`${row.results_reads}, ${row.refused_reads}, ${row.locked_reads}`),
    ],
    ["Created", "time created_at"],
  ]),
  section("Webhook rules", view.hooks.rules, [
    ["Target", "code target"],
    ["Events", "list events"],
    ["Enabled", ({ enabled }) => shown.text(enabled ? "yes" : "no")],
    ["Application", ({ application }) => shown.code(application ?? "all")],
  ]) +
    section("Webhook deliveries", view.hooks.deliveries, [
      ["Last attempt", "time at"],
      ["Event", "code event"],
      ["Outcome", ({ outcome }) => tag(outcome, outcome === "delivered" ? "good" : "bad")],
      ["Attempts, duplicates", ({ attempts, duplicates }) => shown.text(`${attempts}, ${duplicates}`)],
      ["Next", "time next_at"],
      ["Execution or session", "code subject"],
    ]),
]

const tiles = (view: AdminView): string =>
  Object.entries({
    executions: view.executions.total,
    "open now": view.open,
    "starts refused": view.refused_starts.total,
    "rules broken": view.rule_breaks.total,
    "faults injected": view.faults?.total ?? 0,
    tokens: view.tokens.total,
    "flow sessions": view.sessions.total,
    deliveries: view.hooks.deliveries.total,
    "catalogue reads": view.catalogue_reads.reduce((sum, { count }) => sum + count, 0),
  })
    .map(([name, count]) => `<li><strong>${count}</strong> ${name}</li>`)
    .join("")

const field = (label: string, name: string, value: string | number = "") =>
  `<label>${label} <input name="${name}" value="${escapeHtml(String(value))}"></label>`

/** Plain and dense, in the reader's own light or dark mode; on a phone each row becomes a card. */
const readStyle = (): string =>
  readFileSync(join(findPackageJSON(import.meta.url) ?? "", "../src/sandbox/admin/page.css"), "utf8")

export const adminPage = (view: AdminView): string =>
  `<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>The sandbox's truth</title>
<style>
${readStyle()}</style></head>
<body><header><h1>What really happened</h1>
<p>The embedded service at <time>${escapeHtml(view.at ?? "")}</time>, its own time. All times are UTC.
Reads of states, polls that came too fast, catalogue reads and faults are counted since \
<time>${escapeHtml(view.counted_since ?? "")}</time>, when the service was started.</p>
<form method="get" action="/admin">${field("Customer", "customer", view.filter.customer)}\
${field("Application", "application", view.filter.application)}${field("Rows", "limit", view.filter.limit)}\
<button>Show</button> <a href="/admin">all</a> <a href="/admin/truth">as JSON</a></form></header>
<main><ul class="tiles">${tiles(view)}</ul>
${[...happened(view), ...calledUpon(view)].join("\n")}
</main></body></html>
`
