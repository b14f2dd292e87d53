/**
 * What really happened at the embedded service, for the observers of tests: every start, every execution
 * with its life, and every rule that the caller broke. Plain data, derived from the state; the service
 * itself never uses it.
 */
import type { CallWatch } from "../core/CallWatch.ts"
import { deliveredBy, retrievedBy, undelivered } from "./Delivered.ts"
import type { FamilyCounts } from "./Delivered.ts"
import type { StartRefused } from "../state/SandboxEvent.ts"
import { sessionsSeen } from "../flows/SessionsSeen.ts"
import type { SessionSeen } from "../flows/SessionsSeen.ts"
import { deliveriesSeen } from "../state/HookState.ts"
import type { DeliverySeen } from "../state/HookState.ts"
import { closesAt } from "../state/SandboxState.ts"
import type { SessionRead } from "../state/ReadLimit.ts"
import type { Execution, SandboxState } from "../state/SandboxState.ts"
import type { AuthenticationStatus, Phase } from "../state/Timeline.ts"
import type { ExchangeRefused } from "../state/TokenEvent.ts"
import type { RuleBreak } from "./RuleBreak.ts"
import { flowBreaks, stateReadsSeen, watchedBreaks, watchSeen } from "./WatchSeen.ts"
import type { StateReadsSeen, WatchSeen } from "./WatchSeen.ts"
import { tokensSeen } from "../tokens/TokensSeen.ts"
import type { TokenSeen } from "../tokens/TokensSeen.ts"

/** `execution_id`: the new execution, or the one in flight that refused it. */
export type StartRequestSeen = Omit<StartRefused, "_tag" | "outcome"> & {
  readonly outcome: "accepted" | StartRefused["outcome"]
}

export interface ExecutionSeen {
  readonly execution_id: string
  readonly session_id: string
  readonly application: string
  readonly customer_id: string
  readonly engine_reference: string
  readonly external_execution_id?: string
  /** Somebody else's run. */
  readonly foreign: boolean
  readonly started_at: number
  /** Infinite as long as nothing will close it. */
  readonly closes_at: number
  readonly phases: ReadonlyArray<Phase>
  /** When the source judged the login, and what it said; undefined if it never did. */
  readonly login?: { readonly at: number; readonly verdict: AuthenticationStatus }
  readonly login_key: string
  /** The token that started it. */
  readonly token_id?: string
  readonly final_state_read_at?: number
  /** Since the service began; reads create no event. */
  readonly state_reads?: StateReadsSeen
  readonly results_reads: ReadonlyArray<SessionRead>
  /** Reads of its results that found the session locked (504). */
  readonly results_locked_at: ReadonlyArray<number>
  /**
   * Records by sub-family that it has when it closes, or had when it was deleted: the service's own count,
   * whatever `products_count` showed. Absent as long as nothing will close it.
   */
  readonly retrieved?: FamilyCounts
  /** Records by sub-family, the most that one source's newest final answer carried. */
  readonly delivered: FamilyCounts
  readonly aborted_at?: number
  readonly deleted_at?: number
}

export interface Truth extends WatchSeen {
  /** In the order of their times. */
  readonly starts: ReadonlyArray<StartRequestSeen>
  readonly executions: ReadonlyArray<ExecutionSeen>
  readonly ruleBreaks: ReadonlyArray<RuleBreak>
  /** Flow sessions without an execution, in the order in which they became known. */
  readonly sessions: ReadonlyArray<SessionSeen>
  /** In the order of their exchanges. */
  readonly tokens: ReadonlyArray<TokenSeen>
  readonly refusedExchanges: ReadonlyArray<ExchangeRefused>
  /** Webhooks that were tried, by execution or flow session, in the order of their first attempts. */
  readonly deliveries: ReadonlyArray<DeliverySeen>
}

const tokenId = ({ token_id }: { readonly token_id?: string }) => (token_id === undefined ? {} : { token_id })
const external = (id: string | undefined) => (id === undefined ? {} : { external_execution_id: id })

const loginOf = (execution: Execution): ExecutionSeen["login"] => {
  const judged = execution.phases.find((phase) => phase.authentication_status !== "not-performed")
  return judged === undefined ? undefined : { at: judged.from, verdict: judged.authentication_status }
}

const executionSeen = (execution: Execution, watch: CallWatch): ExecutionSeen => {
  const reads = watch.stateReads.get(execution.started.execution_id)
  const { started, finalStateReadAt, stop, deletedAt } = execution
  const login = loginOf(execution)
  const retrieved = retrievedBy(execution)
  return {
    execution_id: started.execution_id,
    session_id: started.session_id,
    application: started.application,
    customer_id: started.customer_id,
    engine_reference: started.engine_reference,
    ...external(started.external_execution_id),
    foreign: started.foreign,
    started_at: started.at,
    closes_at: closesAt(execution),
    phases: execution.phases,
    ...(login === undefined ? {} : { login }),
    login_key: started.login_key,
    ...tokenId(started),
    ...(finalStateReadAt === undefined ? {} : { final_state_read_at: finalStateReadAt }),
    ...(reads === undefined ? {} : { state_reads: stateReadsSeen(reads) }),
    results_reads: execution.session.reads,
    results_locked_at: execution.session.lockedAt,
    ...(retrieved === undefined ? {} : { retrieved }),
    delivered: deliveredBy(execution),
    ...(stop?.reason === "CLIENT_CANCELLED" ? { aborted_at: stop.at } : {}),
    ...(deletedAt === undefined ? {} : { deleted_at: deletedAt }),
  }
}

const startsSeen = (state: SandboxState): ReadonlyArray<StartRequestSeen> => {
  const accepted = [...state.executions.values()]
    .filter(({ started }) => !started.foreign)
    .map(({ started }): StartRequestSeen => ({
      at: started.at,
      application: started.application,
      customer_id: started.customer_id,
      engine_reference: started.engine_reference,
      ...external(started.external_execution_id),
      outcome: "accepted",
      execution_id: started.execution_id,
      ...tokenId(started),
    }))
  const refused = state.refusals.map(({ _tag, ...seen }): StartRequestSeen => seen)
  return [...accepted, ...refused].sort((a, b) => a.at - b.at)
}

/** For the logins with one key: when the first refusal was given, and where in the sequence one was read. */
interface Refusals {
  readonly at: number
  readonly readSequence: number
}

const refusalOf = (execution: Execution): Refusals | undefined => {
  const login = loginOf(execution)
  if (login === undefined || login.verdict === "AUTH_OK") return undefined
  return { at: login.at, readSequence: execution.finalStateReadSequence ?? Number.POSITIVE_INFINITY }
}

/** A refused login that was sent again unchanged: institutions lock accounts because of it (section 6.1). */
const repeatedLogins = (
  pairs: ReadonlyArray<readonly [ExecutionSeen, Execution]>,
): ReadonlyArray<RuleBreak> => {
  const refusals = new Map<string, Refusals>()
  return pairs.flatMap(([seen, execution]) => {
    const { login_key, at } = execution.started
    const earlier = refusals.get(login_key)
    const refused = refusalOf(execution)
    if (refused !== undefined)
      refusals.set(login_key, {
        at: Math.min(refused.at, earlier?.at ?? refused.at),
        readSequence: Math.min(refused.readSequence, earlier?.readSequence ?? refused.readSequence),
      })
    if (earlier === undefined || earlier.at > at) return []
    const answer_read = earlier.readSequence < execution.startedSequence
    return [{ ...breakOf(seen, "rejected_login_repeated", at), answer_read }]
  })
}

const breakOf = (seen: ExecutionSeen, rule: RuleBreak["rule"], at: number): RuleBreak => ({
  at,
  rule,
  application: seen.application,
  execution_id: seen.execution_id,
  customer_id: seen.customer_id,
  engine_reference: seen.engine_reference,
})

/** Reported for every deletion, whether the caller wanted the records or not: the observer knows no jobs. */
const unreadOf = (seen: ExecutionSeen): ReadonlyArray<RuleBreak> => {
  const { deleted_at, retrieved = {}, delivered } = seen
  const families = undelivered(retrieved, delivered)
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

export const truthOf = (state: SandboxState, watch: CallWatch): Truth => {
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
  const tokens = tokensSeen(state)
  const { refusedExchanges } = state.tokens
  const sessions = sessionsSeen(state.flows)
  const deliveries = deliveriesSeen(state.hooks)
  const rest = { sessions, tokens, refusedExchanges, deliveries, ...watchSeen(watch) }
  return { starts: startsSeen(state), executions, ruleBreaks, ...rest }
}
