/**
 * What the admin page shows, as plain data: the truth at one moment, filtered and limited, newest first. It
 * contains no login parameter, no secret and no keyed hash of one.
 */
import { Struct } from "effect"
import { flowMomentOf } from "../state/FlowTimeline.ts"
import type { FlowSession } from "../state/FlowTimeline.ts"
import { momentAt } from "../state/SandboxState.ts"
import type { SandboxState } from "../state/SandboxState.ts"
import type { ExecutionSeen, Truth } from "./Truth.ts"

export interface AdminFilter {
  /** The most rows of each list. */
  readonly limit: number
  readonly customer?: string
  readonly application?: string
}

const iso = (at: number | undefined): string | null =>
  at === undefined || !Number.isFinite(at) ? null : new Date(at).toISOString()

interface About {
  readonly application?: string | undefined
  readonly customer_id?: string | undefined
}
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
export type ExecutionRow = ReturnType<ReturnType<typeof executionRow>>

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
  const deliveries = [...state.hooks.deliveries].flatMap(([subject, records]) => {
    const customer_id =
      state.executions.get(subject)?.started.customer_id ??
      state.flows.sessions.get(subject)?.created.customer_id
    if (filter.customer !== undefined && customer_id !== filter.customer) return []
    return records.filter(({ rule }) => shown.has(rule)).map((record) => ({ subject, ...record }))
  })
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

/** The truth as observers request it. */
export const adminView = (state: SandboxState, truth: Truth, at: number, filter: AdminFilter) => {
  const asked = isAsked(filter)
  const executions = truth.executions.filter(asked)
  const open = executions.filter(({ closes_at, deleted_at }) => deleted_at === undefined && closes_at > at)
  const refused = truth.starts.filter((start) => start.outcome !== "accepted" && asked(start))
  const sessions = [...state.flows.sessions.values()].filter(({ created }) => asked(created))
  return {
    at: iso(at),
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
