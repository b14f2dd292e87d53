/**
 * The state of the embedded service: a fold of its events. Decisions read it and return events; only
 * `applyEvent` changes it. An execution is a plan and the actions on it; its records are derived when they
 * are read.
 */
import { Context, Schema } from "effect"
import { FlowSessionEvents } from "./FlowMoves.ts"
import { applyFlowEvent, type FlowState } from "./FlowTimeline.ts"
import { HookEvents, applyHookEvent, type HookState } from "./HookState.ts"
import { ErrorItem, ResultsPlan, type Retrieval } from "./ResultsPlan.ts"
import { Timeline, afterAsking, endIn, lifeOf, momentOf, unread } from "./Timeline.ts"
import type { ChallengeAnswer, Moment, Phases, SessionReads, Stop } from "./Timeline.ts"
import { TokenEvents, addConflict, addRun, applyTokenEvent, dropExpired, dropTicket } from "./TokenState.ts"
import { emptyTokenState, type TokenState } from "./TokenState.ts"

export interface Execution {
  readonly started: Started
  readonly phases: Phases
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
  /** Every execution there ever was, in the order of the starts; deleted ones too, for observers. */
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
  hooks: { rules: new Map(), deliveries: new Map() },
  flows: { sessions: new Map() },
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
export const findExecution = ({ state, application: { app_id } }: Asked, execution_id: string) => {
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

/** Infinite as long as nothing will close it. */
export const closesAt = (retrieval: Retrieval): number =>
  endIn(retrieval.phases)?.from ?? Number.POSITIVE_INFINITY

const relive = (execution: Execution): Execution => {
  const { started, answers, stop } = execution
  return { ...execution, phases: lifeOf(started.timeline, started.at, answers, stop) }
}

const applyStarted = (state: SandboxState, started: Started): void => {
  const { application, customer_id, engine_reference, execution_id } = started
  state.executions.set(execution_id, {
    started,
    phases: lifeOf(started.timeline, started.at),
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

/** Whether it is one of a union's events. */
const isOf = <Event>(
  { cases }: { readonly Type: Event; readonly cases: object },
  event: SandboxEvent,
): event is SandboxEvent & Event => Object.hasOwn(cases, event._tag)

/** The fold. Events about executions that do not exist are ignored: a journal may have lost its beginning. */
export const applyEvent = (state: SandboxState, event: SandboxEvent): void => {
  if (event._tag === "TimeKept" || event._tag === "Seeded") return
  state.sequence += 1
  if (isOf(FlowSessionEvents, event)) return applyFlowEvent(state.flows, event)
  dropExpired(state.tokens, event.at, (id) => state.executions.get(id)?.phases ?? [])
  if (event._tag === "Started") return applyStarted(state, event)
  if (event._tag === "StartRefused") return applyRefused(state, event)
  if (isOf(TokenEvents, event)) return applyTokenEvent(state.tokens, event)
  if (isOf(HookEvents, event)) return applyHookEvent(state.hooks, event)
  const execution = state.executions.get(event.execution_id)
  if (execution === undefined) return
  const change = (next: Partial<Execution>) =>
    void state.executions.set(event.execution_id, { ...execution, ...next })
  const stop = (at: number, reason: Stop["reason"]) => change(relive({ ...execution, stop: { at, reason } }))
  switch (event._tag) {
    case "Resumed":
      return change(relive({ ...execution, answers: [...execution.answers, event] }))
    case "Aborted":
      return stop(event.stops_at ?? event.at, "CLIENT_CANCELLED")
    case "Parted":
      return stop(event.at, "ENGINE_UNAVAILABLE")
    case "Deleted":
      dropFromCustomer(state, execution)
      dropTicket(state.tokens, event.execution_id, "deleted")
      return change({ deletedAt: event.at })
    case "FinalStateRead":
      return change({ finalStateReadAt: event.at, finalStateReadSequence: state.sequence })
    case "ResultsRead":
    case "ResultsLocked":
    case "ResultsRefused":
      return change({ session: afterAsking(execution.session, event) })
    case "RecordsDelivered":
      return change({ delivered: new Map(execution.delivered).set(event.source, event.counts) })
  }
}

// The journal is the NDJSON of these events: of logins, secrets, tickets and keys it holds keyed hashes only.

const at = Schema.Finite

export const Started = Schema.TaggedStruct("Started", {
  at,
  application: Schema.String,
  execution_id: Schema.String,
  session_id: Schema.String,
  customer_id: Schema.String,
  engine_reference: Schema.String,
  external_execution_id: Schema.optionalKey(Schema.String),
  /** Somebody else's run, created by a behaviour word. */
  foreign: Schema.Boolean,
  timeline: Timeline,
  results: ResultsPlan,
  /** Keyed hash of the login as it was sent: equal logins have equal hashes, and nothing else can be seen. */
  login_key: Schema.String,
  locking_hash: Schema.String,
  /** The token that it was started with (4.12). */
  token_id: Schema.optionalKey(Schema.String),
  parameters_errors: Schema.Array(ErrorItem),
  configurations_errors: Schema.Array(ErrorItem),
  /** 4.1: appended to every webhook about this execution. */
  hooks_extra_data: Schema.optionalKey(Schema.Record(Schema.String, Schema.String)),
})
export type Started = typeof Started.Type

const startOutcomes = [
  "conflict",
  "intervention_required",
  "t10n_forbidden",
  "unknown_token",
  "unavailable",
  "invalid",
] as const
/** A start that created nothing. */
export const StartRefused = Schema.TaggedStruct("StartRefused", {
  at,
  application: Schema.String,
  customer_id: Schema.String,
  engine_reference: Schema.String,
  external_execution_id: Schema.optionalKey(Schema.String),
  outcome: Schema.Literals(startOutcomes),
  /** For a conflict: the run in flight. */
  execution_id: Schema.optionalKey(Schema.String),
  /** For a start with a token that the application has. */
  token_id: Schema.optionalKey(Schema.String),
})
export type StartRefused = typeof StartRefused.Type

const ofExecution = { at, execution_id: Schema.String }

const Resumed = Schema.TaggedStruct("Resumed", {
  ...ofExecution,
  right: Schema.Boolean,
  fault: Schema.optionalKey(Schema.Literals(["form", "encryption"])),
  payload_errors: Schema.Array(ErrorItem),
})
const Aborted = Schema.TaggedStruct("Aborted", {
  ...ofExecution,
  /** For a reading in which the state shows an abort only later. */
  stops_at: Schema.optionalKey(at),
})
/** The engine became unavailable while the run was waiting for the answer to a challenge. */
const Parted = Schema.TaggedStruct("Parted", ofExecution)
const Deleted = Schema.TaggedStruct("Deleted", ofExecution)
/** The caller read the final state for the first time. */
const FinalStateRead = Schema.TaggedStruct("FinalStateRead", ofExecution)
const ResultsRead = Schema.TaggedStruct("ResultsRead", {
  ...ofExecution,
  is_closed: Schema.Boolean,
  /** Until when this read holds the session's exclusive lock. */
  heldUntil: Schema.optionalKey(at),
})
/** Answered 504: somebody else held the lock. */
const ResultsLocked = Schema.TaggedStruct("ResultsLocked", ofExecution)
/** A final answer of one results source, sent completely: how many records of each sub-family it carried. */
const RecordsDelivered = Schema.TaggedStruct("RecordsDelivered", {
  ...ofExecution,
  source: Schema.String,
  counts: Schema.Record(Schema.String, Schema.Int),
})
/** The caller read it again within five seconds (4.10). */
const ResultsRefused = Schema.TaggedStruct("ResultsRefused", ofExecution)

/** Nothing happened; time must not go back before `at`, whatever happens to the process. */
const TimeKept = Schema.TaggedStruct("TimeKept", { at })

/** What all records and draws of this journal come from, for good: written by a server. */
const Seeded = Schema.TaggedStruct("Seeded", { at, seed: Schema.Int })

export const SandboxEvent = Schema.Union([
  TimeKept,
  Seeded,
  Started,
  StartRefused,
  Resumed,
  Aborted,
  Parted,
  Deleted,
  FinalStateRead,
  ResultsRead,
  ResultsLocked,
  ResultsRefused,
  RecordsDelivered,
  ...TokenEvents.members,
  ...FlowSessionEvents.members,
  ...HookEvents.members,
])
export type SandboxEvent = typeof SandboxEvent.Type

/** Executions, sessions and tokens belong to an application (section 5); no other can see them. */
export interface Application {
  readonly app_id: string
  readonly mayTokenize: boolean
}

/** Behind the secret `sandbox-app-1`. */
export const firstApplication: Application = { app_id: "65f0c0ffee00000000000001", mayTokenize: true }

/** The application whose secret a request carries. */
export class CallingApplication extends Context.Service<CallingApplication, Application>()(
  "nightjar/sandbox/CallingApplication",
) {}
