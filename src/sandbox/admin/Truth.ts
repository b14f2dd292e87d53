/**
 * What really happened at the embedded service, for the observers of tests: every start, every execution
 * with its life, and every rule that the caller broke. Plain data, derived from the state; the service
 * itself never uses it.
 */
import { Struct } from "effect"
import { given } from "../../base/Schemas.ts"
import type { CallWatch, FaultWatch, StateReads } from "../core/SandboxCore.ts"
import { countProducts, retrievedAt } from "../executions/PlanResults.ts"
import { faultName } from "../faults/Faults.ts"
import { sessionsSeen } from "../flows/FlowSessions.ts"
import { deliveriesSeen } from "../state/HookState.ts"
import { closesAt, type Execution, type SandboxState, type StartRefused } from "../state/SandboxState.ts"
import { isJudged } from "../state/Timeline.ts"
import { tokensSeen } from "../tokens/Tokens.ts"

// What an execution had retrieved and what of it was answered: from plan and answers, never `products_count`.

/** Numbers of records by sub-family. */
type FamilyCounts = Readonly<Record<string, number>>

/** What it has when it closes, or had when it was deleted; undefined if it never closes. */
const retrievedBy = (execution: Execution): FamilyCounts | undefined => {
  const at = execution.deletedAt ?? closesAt(execution)
  if (!Number.isFinite(at)) return undefined
  const counted: Record<string, number> = {}
  const products = countProducts(execution.started.results, retrievedAt(execution, at))
  for (const [product, count] of Object.entries(products)) {
    const family = product.slice(0, product.lastIndexOf("@"))
    counted[family] = (counted[family] ?? 0) + count
  }
  return counted
}

/** For each family, the most that one source's newest final answer carried. */
const deliveredBy = ({ delivered }: Execution): FamilyCounts => {
  const most: Record<string, number> = {}
  for (const counts of delivered.values())
    for (const [family, count] of Object.entries(counts)) most[family] = Math.max(most[family] ?? 0, count)
  return most
}

/** The shortest time between two of them is there after the second. */
const stateReadsSeen = ({ count, shortestMs, tooSoon }: StateReads) => ({
  count,
  ...given({ shortest_ms: Number.isFinite(shortestMs) ? shortestMs : undefined }),
  too_soon: tooSoon,
})

/** Rules in the order of the file; the newest faults, oldest first. */
const faultsSeen = ({ file, tally, recent }: FaultWatch) => ({
  injected: file.faults.flatMap((fault, index) => {
    const count = tally.injected.get(index)
    if (count === undefined) return []
    return [{ fault: faultName(fault), on: typeof fault.on === "string" ? [fault.on] : fault.on, count }]
  }),
  recent: [...recent],
})

const watchSeen = (watch: CallWatch) => ({
  countedSince: watch.since,
  ...given({ faults: watch.faults && faultsSeen(watch.faults) }),
  catalogueReads: [...watch.catalogueReads].map(([application, { count }]) => ({ application, count })),
})

/** Each once: for the execution that was polled, for the application that listed. */
const watchedBreaks = (state: SandboxState, watch: CallWatch): ReadonlyArray<RuleBreak> => [
  ...[...watch.stateReads].flatMap(([execution_id, { brokenAt }]) => {
    const started = state.executions.get(execution_id)?.started
    return brokenAt === undefined || started === undefined
      ? []
      : [breakOf(started, "state_polled_too_fast", brokenAt)]
  }),
  ...[...watch.catalogueReads].flatMap(([application, { brokenAt }]): ReadonlyArray<RuleBreak> =>
    brokenAt === undefined ? [] : [{ at: brokenAt, rule: "catalogue_polled_in_loop", application }],
  ),
]

/** 4.10: flow sessions that were read again within five seconds. */
const flowBreaks = (state: SandboxState): ReadonlyArray<RuleBreak> =>
  [...state.flows.sessions.values()].flatMap(({ created, refusedAt }) =>
    refusedAt.map((at): RuleBreak => ({
      at,
      rule: "results_read_too_soon",
      application: created.application,
      session_id: created.session_id,
      ...given({ customer_id: created.customer_id }),
    })),
  )

/** `execution_id`: the new execution, or the one in flight that refused it. */
type StartRequestSeen = Omit<StartRefused, "_tag" | "outcome"> & {
  readonly outcome: "accepted" | StartRefused["outcome"]
}

const named = ["application", "customer_id", "engine_reference", "execution_id", "token_id"] as const

const loginOf = (execution: Execution) => {
  const judged = execution.phases.find(isJudged)
  return judged && { at: judged.from, verdict: judged.authentication_status }
}

const executionSeen = (execution: Execution, watch: CallWatch) => {
  const { started, finalStateReadAt, stop, deletedAt } = execution
  const reads = watch.stateReads.get(started.execution_id)
  return {
    ...Struct.pick(started, [...named, "external_execution_id", "session_id", "foreign", "login_key"]),
    started_at: started.at,
    /** Infinite as long as nothing will close it. */
    closes_at: closesAt(execution),
    phases: execution.phases,
    results_reads: execution.session.reads,
    /** Reads of its results that found the session locked (504). */
    results_locked_at: execution.session.lockedAt,
    /** Records by sub-family, the most that one source's newest final answer carried. */
    delivered: deliveredBy(execution),
    ...given({
      /** When the source judged the login, and what it said. */
      login: loginOf(execution),
      final_state_read_at: finalStateReadAt,
      /** Since the service began; reads create no event. */
      state_reads: reads && stateReadsSeen(reads),
      /** Records by sub-family that it has when it closes: the service's own count, not `products_count`. */
      retrieved: retrievedBy(execution),
      aborted_at: stop?.reason === "CLIENT_CANCELLED" ? stop.at : undefined,
      deleted_at: deletedAt,
    }),
  }
}
export type ExecutionSeen = ReturnType<typeof executionSeen>

const startsSeen = (state: SandboxState): ReadonlyArray<StartRequestSeen> => {
  const accepted = [...state.executions.values()]
    .filter(({ started }) => !started.foreign)
    .map(({ started }): StartRequestSeen => ({
      ...Struct.pick(started, [...named, "external_execution_id", "at"]),
      outcome: "accepted",
    }))
  const refused = state.refusals.map(({ _tag, ...seen }): StartRequestSeen => seen)
  return [...accepted, ...refused].sort((a, b) => a.at - b.at)
}

/** When the first refusal of a login was given, and where in the sequence one was read. */
const refusalOf = (execution: Execution) => {
  const login = loginOf(execution)
  if (login === undefined || login.verdict === "AUTH_OK") return undefined
  return { at: login.at, readSequence: execution.finalStateReadSequence ?? Number.POSITIVE_INFINITY }
}

/** A refused login that was sent again unchanged: institutions lock accounts because of it (section 6.1). */
const repeatedLogins = (
  pairs: ReadonlyArray<readonly [ExecutionSeen, Execution]>,
): ReadonlyArray<RuleBreak> => {
  const refusals = new Map<string, NonNullable<ReturnType<typeof refusalOf>>>()
  return pairs.flatMap(([seen, execution]) => {
    const { login_key, at } = execution.started
    const earlier = refusals.get(login_key)
    const refused = refusalOf(execution)
    if (refused !== undefined) {
      const { at: first, readSequence } = earlier ?? refused
      refusals.set(login_key, {
        at: Math.min(refused.at, first),
        readSequence: Math.min(refused.readSequence, readSequence),
      })
    }
    if (earlier === undefined || earlier.at > at) return []
    const answer_read = earlier.readSequence < execution.startedSequence
    return [{ ...breakOf(seen, "rejected_login_repeated", at), answer_read }]
  })
}

const breakOf = (
  { application, execution_id, customer_id, engine_reference }: Execution["started"] | ExecutionSeen,
  rule: RuleBreak["rule"],
  at: number,
): RuleBreak => ({ at, rule, application, execution_id, customer_id, engine_reference })

/** Families that no single source carried whole, wanted or not: the observer knows no jobs. */
const unreadOf = (seen: ExecutionSeen): ReadonlyArray<RuleBreak> => {
  const { deleted_at, retrieved = {}, delivered } = seen
  const families = Object.keys(retrieved).filter((name) => (delivered[name] ?? 0) < (retrieved[name] ?? 0))
  if (deleted_at === undefined || families.length === 0) return []
  return [{ ...breakOf(seen, "deleted_unread", deleted_at), families }]
}

const breaksOf = (seen: ExecutionSeen, execution: Execution): ReadonlyArray<RuleBreak> => {
  const { deleted_at, final_state_read_at, aborted_at } = seen
  const blind = deleted_at !== undefined && final_state_read_at === undefined
  const touched = [aborted_at, deleted_at, ...seen.results_reads.map(({ at }) => at)]
  return [
    ...execution.session.refusedAt.map((at) => breakOf(seen, "results_read_too_soon", at)),
    ...(blind ? [breakOf(seen, "deleted_before_final_state_read", deleted_at)] : []),
    ...unreadOf(seen),
    ...(seen.foreign
      ? touched.flatMap((at) => (at === undefined ? [] : [breakOf(seen, "foreign_run_touched", at)]))
      : []),
  ]
}

/** Starts and broken rules in the order of their times, all else in the order in which it became known. */
export const truthOf = (state: SandboxState, watch: CallWatch) => {
  const pairs = [...state.executions.values()].map(
    (execution) => [executionSeen(execution, watch), execution] as const,
  )
  const executions = pairs.map(([seen]) => seen)
  const ruleBreaks = [
    ...pairs.flatMap(([seen, execution]) => breaksOf(seen, execution)),
    ...repeatedLogins(pairs),
    ...flowBreaks(state),
    ...watchedBreaks(state, watch),
  ].sort((a, b) => a.at - b.at)
  return {
    starts: startsSeen(state),
    executions,
    ruleBreaks,
    sessions: sessionsSeen(state.flows),
    tokens: tokensSeen(state),
    refusedExchanges: state.tokens.refusedExchanges,
    deliveries: deliveriesSeen(state.hooks),
    ...watchSeen(watch),
  }
}
export type Truth = ReturnType<typeof truthOf>

// Whom an id belongs to, whoever asks: for observers and faults only.

export type Ids = Readonly<Partial<Record<"execution_id" | "session_id" | "token_id", string | undefined>>>
export type Owner = Readonly<Partial<Record<"customer_id" | "engine_reference", string | undefined>>>

export const ownerOf = (state: SandboxState, ids: Ids): Owner => {
  const bySession = ids.session_id === undefined ? undefined : state.bySession.get(ids.session_id)
  const execution = state.executions.get(ids.execution_id ?? bySession ?? "")
  if (execution !== undefined) return execution.started
  if (ids.token_id !== undefined) return state.tokens.tokens.get(ids.token_id)?.exchanged ?? {}
  const flow = ids.session_id === undefined ? undefined : state.flows.sessions.get(ids.session_id)
  return { customer_id: flow?.created.customer_id }
}

/** What the rule is about: an execution, a flow session, or only the application. */
type About = Readonly<
  Partial<Record<"execution_id" | "session_id" | "customer_id" | "engine_reference", string>>
>

interface RuleBreak extends About {
  readonly at: number
  readonly rule:
    | "results_read_too_soon"
    | "rejected_login_repeated"
    | "deleted_before_final_state_read"
    | "deleted_unread"
    | "foreign_run_touched"
    | "state_polled_too_fast"
    | "catalogue_polled_in_loop"
  readonly application: string
  /** For a repeated login: whether the refusal had been read. Repeating an unread one is no fault. */
  readonly answer_read?: boolean
  /** For an execution that was deleted unread: the sub-families that no final answer carried in full. */
  readonly families?: ReadonlyArray<string>
}
