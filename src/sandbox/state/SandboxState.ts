/**
 * The state of the embedded service: a fold of its events. Decisions read it and return events; only
 * `applyEvent` changes it. An execution is a plan and the actions on it; its records are derived when they
 * are read.
 */
import type { Application } from "./Application.ts"
import { isFlowSessionEvent } from "./FlowEvent.ts"
import { applyFlowEvent, emptyFlowState } from "./FlowSession.ts"
import type { FlowState } from "./FlowSession.ts"
import { isHookEvent } from "./HookEvent.ts"
import { applyHookEvent, emptyHooks } from "./HookState.ts"
import { afterLock, afterRead, afterRefusal, unread } from "./ReadLimit.ts"
import type { SessionReads } from "./ReadLimit.ts"
import type { HookState } from "./HookState.ts"
import type { ErrorItem, Retrieval } from "./ResultsPlan.ts"
import type { SandboxEvent, Started, StartRefused } from "./SandboxEvent.ts"
import { isClosedPhase, lifeOf, momentOf } from "./Timeline.ts"
import type { ChallengeAnswer, Moment, Phase, Stop } from "./Timeline.ts"
import { isTokenEvent } from "./TokenEvent.ts"
import {
  addConflict,
  addRun,
  applyTokenEvent,
  dropExpired,
  dropTicket,
  emptyTokenState,
} from "./TokenState.ts"
import type { TokenState } from "./TokenState.ts"

export interface Execution {
  readonly started: Started
  readonly phases: readonly [Phase, ...ReadonlyArray<Phase>]
  readonly answers: ReadonlyArray<ChallengeAnswer & { readonly payload_errors: ReadonlyArray<ErrorItem> }>
  readonly stop?: Stop
  readonly deletedAt?: number
  readonly finalStateReadAt?: number
  /** Positions in the sequence of all events: equal times do not always show what came first. */
  readonly startedSequence: number
  readonly finalStateReadSequence?: number
  readonly session: SessionReads
  /** What the newest final answer of each results source carried: records by sub-family. */
  readonly delivered: ReadonlyMap<string, Readonly<Record<string, number>>>
}

export interface SandboxState {
  /**
   * Every execution there ever was, in the order of their starts; deleted ones are kept as a trace for
   * observers.
   */
  readonly executions: Map<string, Execution>
  readonly bySession: Map<string, string>
  /** Execution ids by application and customer, for conflicts. */
  readonly byCustomer: Map<string, Array<string>>
  /** How many runs of a customer on an engine there were; somebody else's do not count. */
  readonly runs: Map<string, number>
  readonly refusals: Array<StartRefused>
  readonly tokens: TokenState
  readonly hooks: HookState
  /** Flow sessions without an execution. */
  readonly flows: FlowState
  /** How many events there were. */
  sequence: number
}

export const emptyState = (): SandboxState => ({
  executions: new Map(),
  bySession: new Map(),
  byCustomer: new Map(),
  runs: new Map(),
  refusals: [],
  tokens: emptyTokenState(),
  hooks: emptyHooks(),
  flows: emptyFlowState(),
  sequence: 0,
})

const key = (...parts: ReadonlyArray<string>): string => JSON.stringify(parts)
export const runsOf = (state: SandboxState, application: string, customer: string, engine: string): number =>
  state.runs.get(key(application, customer, engine)) ?? 0

/** The state as one application sees it. */
interface Asked {
  readonly state: SandboxState
  readonly application: Application
}

/** What the application can see under an id; deleted ones look as if they never existed (section 7). */
export const findExecution = (
  { state, application: { app_id } }: Asked,
  execution_id: string,
): Execution | undefined => {
  const execution = state.executions.get(execution_id)
  return execution?.started.application === app_id && execution.deletedAt === undefined
    ? execution
    : undefined
}

export const findSession = (asked: Asked, session_id: string): Execution | undefined => {
  const execution_id = asked.state.bySession.get(session_id)
  return execution_id === undefined ? undefined : findExecution(asked, execution_id)
}

/** The customer's executions that are neither deleted nor closed at `at`. */
export const openExecutions = (asked: Asked, customer_id: string, at: number): ReadonlyArray<Execution> =>
  (asked.state.byCustomer.get(key(asked.application.app_id, customer_id)) ?? []).flatMap((execution_id) => {
    const execution = findExecution(asked, execution_id)
    return execution === undefined || momentAt(execution, at).closed ? [] : [execution]
  })

export const momentAt = (retrieval: Retrieval, at: number): Moment => momentOf(retrieval.phases, at)

/** When the run is or will be over, if nothing more is done to it. */
export const closesAt = (retrieval: Retrieval): number => {
  const last = retrieval.phases.at(-1)
  return last !== undefined && isClosedPhase(last) ? last.from : Number.POSITIVE_INFINITY
}

const relive = (execution: Execution): Execution => {
  const { started, answers, stop } = execution
  const [first, ...rest] = lifeOf(started.timeline, started.at, answers, stop)
  return first === undefined ? execution : { ...execution, phases: [first, ...rest] }
}

const applyStarted = (state: SandboxState, started: Started): void => {
  const [first, ...rest] = lifeOf(started.timeline, started.at, [], undefined)
  if (first === undefined) return
  const { application, customer_id, engine_reference, execution_id } = started
  state.executions.set(execution_id, {
    started,
    phases: [first, ...rest],
    answers: [],
    startedSequence: state.sequence,
    session: unread,
    delivered: new Map(),
  })
  state.bySession.set(started.session_id, execution_id)
  const customer = key(application, customer_id)
  const siblings = state.byCustomer.get(customer)
  if (siblings === undefined) state.byCustomer.set(customer, [execution_id])
  else siblings.push(execution_id)
  if (started.token_id !== undefined) addRun(state.tokens, started.token_id, execution_id)
  if (started.foreign) return
  const run = key(application, customer_id, engine_reference)
  state.runs.set(run, (state.runs.get(run) ?? 0) + 1)
}

const applyRefused = (state: SandboxState, refused: StartRefused): void => {
  state.refusals.push(refused)
  if (refused.token_id !== undefined && refused.outcome === "conflict") {
    addConflict(state.tokens, refused.token_id)
  }
}

const dropFromCustomer = (state: SandboxState, execution: Execution): void => {
  const { application, customer_id, execution_id } = execution.started
  const siblings = state.byCustomer.get(key(application, customer_id))
  const index = siblings?.indexOf(execution_id) ?? -1
  if (index >= 0) siblings?.splice(index, 1)
}

/** The fold. Events about executions that do not exist are ignored: a journal may have lost its beginning. */
export const applyEvent = (state: SandboxState, event: SandboxEvent): void => {
  if (event._tag === "TimeKept") return
  state.sequence += 1
  if (isFlowSessionEvent(event)) return applyFlowEvent(state.flows, event)
  dropExpired(state.tokens, event.at, (id) => state.executions.get(id)?.phases ?? [])
  if (event._tag === "Started") return applyStarted(state, event)
  if (event._tag === "StartRefused") return applyRefused(state, event)
  if (isTokenEvent(event)) return applyTokenEvent(state.tokens, event)
  if (isHookEvent(event)) return applyHookEvent(state.hooks, event)
  const execution = state.executions.get(event.execution_id)
  if (execution === undefined) return
  const change = (next: Execution) => void state.executions.set(event.execution_id, next)
  switch (event._tag) {
    case "Resumed":
      return change(relive({ ...execution, answers: [...execution.answers, event] }))
    case "Aborted":
      return change(
        relive({ ...execution, stop: { at: event.stops_at ?? event.at, reason: "CLIENT_CANCELLED" } }),
      )
    case "Parted":
      return change(relive({ ...execution, stop: { at: event.at, reason: "ENGINE_UNAVAILABLE" } }))
    case "Deleted":
      dropFromCustomer(state, execution)
      dropTicket(state.tokens, event.execution_id, "deleted")
      return change({ ...execution, deletedAt: event.at })
    case "FinalStateRead":
      return change({ ...execution, finalStateReadAt: event.at, finalStateReadSequence: state.sequence })
    case "ResultsRead":
      return change({ ...execution, session: afterRead(execution.session, event) })
    case "ResultsLocked":
      return change({ ...execution, session: afterLock(execution.session, event.at) })
    case "RecordsDelivered": {
      const delivered = new Map(execution.delivered).set(event.source, event.counts)
      return change({ ...execution, delivered })
    }
    case "ResultsRefused":
      return change({ ...execution, session: afterRefusal(execution.session, event.at) })
  }
}
