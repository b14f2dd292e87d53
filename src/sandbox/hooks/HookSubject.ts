/**
 * Executions and flow sessions as webhooks see them (section 6): what happened to each and when, and what is
 * sent about it. Payloads and delivery of flow events are not shown; own choice: the envelope of execution
 * events, with the results body under `results` if the reference says that the event carries data.
 */
import { findEngine, raisesEvent } from "../engines/EngineCatalogue.ts"
import { flowResultsBody, sessionStatusAt } from "../executions/Results.ts"
import { statusMessage } from "../executions/StateBody.ts"
import { flowSessionBody } from "../flows/AnswerFlows.ts"
import { flowMoves } from "../state/FlowMoves.ts"
import type { FlowMove } from "../state/FlowMoves.ts"
import { flowEventsOf } from "../state/FlowTimeline.ts"
import type { FlowSession } from "../state/FlowTimeline.ts"
import { closesAt } from "../state/SandboxState.ts"
import type { Execution, SandboxState } from "../state/SandboxState.ts"
import { isClosedPhase, isJudged } from "../state/Timeline.ts"
import type { AuthenticationStatus, Phase } from "../state/Timeline.ts"
import type { ExecutionEvent, FlowEvent } from "../../service/Execution.ts"
import type { FlowEventName, StatusReason, engineEvents } from "../../service/Vocabulary.ts"

// 6.1: read from the phases, so no event disagrees with a state. Own choice: payloads like `auth_ended`'s.

type EngineEventName = (typeof engineEvents)[number]

interface RaisedEvent {
  readonly event: EngineEventName
  /** A run may pause more than once: counts the events of one name from 0. */
  readonly ordinal: number
  readonly at: number
  readonly status_reason: StatusReason | AuthenticationStatus
  /** 6.1: `engine`, or the feature that asks. */
  readonly producer: string
  /** The source had judged the login by then, so there is a `locking_hash`. */
  readonly judged: boolean
  readonly data?: Readonly<Record<string, unknown>>
}

type Raised = Omit<RaisedEvent, "event" | "ordinal">

const raisedIn = (phase: Phase): Raised => ({
  at: phase.from,
  status_reason: phase.status_reason,
  producer: phase.challenge === undefined ? "engine" : (phase.heldBy ?? "engine"),
  judged: isJudged(phase),
})

/** Own choice: a run refused because of its form, or stopped while it was queued, has no `started`. */
const startedOf = ({ phases, started, stop }: Execution): ReadonlyArray<Raised> => {
  const begun = phases.find((phase) => phase.spends !== "queue")
  if (begun === undefined || started.timeline.stillborn) return []
  if (stop !== undefined && isClosedPhase(begun) && begun.from >= stop.at) return []
  // A run without work begins when it pauses or ends.
  const status_reason = begun.spends === "work" ? begun.status_reason : "WAITING"
  return [{ ...raisedIn(begun), status_reason, producer: "engine" }]
}

/** Only a run that may pause has phases with a challenge (4.1, `customer_interaction_available`). */
const pausesOf = ({ phases }: Execution): ReadonlyArray<Raised> =>
  phases.flatMap((phase) => {
    if (phase.challenge === undefined) return []
    const action_required_expires = new Date(phase.challenge.expires).toISOString()
    return [{ ...raisedIn(phase), data: { action_required_expires } }]
  })

/** Rules 1 and 2 for `auth_ended`: the verdict on the login, accepted or not. */
const loginEndOf = ({ phases }: Execution): ReadonlyArray<Raised> => {
  const resolved = phases.find((phase) => phase.authentication_status !== "not-performed")
  return resolved === undefined
    ? []
    : [
        {
          ...raisedIn(resolved),
          status_reason: resolved.authentication_status,
          producer: "engine",
          judged: true,
        },
      ]
}

const endOf = ({ phases }: Execution): ReadonlyArray<Raised> => {
  const last = phases.at(-1)
  return last !== undefined && isClosedPhase(last) ? [raisedIn(last)] : []
}

/**
 * In the order in which they are raised; simultaneous ones in the order of a run's life. Events later than
 * now are what will happen if nobody does anything.
 */
const executionEventsOf = (execution: Execution): ReadonlyArray<RaisedEvent> =>
  (
    [
      ["started", startedOf(execution)],
      ["action_required", pausesOf(execution)],
      ["auth_ended", loginEndOf(execution)],
      ["ended", endOf(execution)],
    ] as const
  )
    .flatMap(([event, raised]) => raised.map((one, ordinal) => ({ ...one, event, ordinal })))
    .toSorted((one, other) => one.at - other.at)

/** The payload (6.1). */
const executionEventBody = ({ started }: Execution, raised: RaisedEvent): ExecutionEvent => ({
  app_id: started.application,
  customer_id: started.customer_id,
  execution_id: started.execution_id,
  session_id: started.session_id,
  ...(started.external_execution_id === undefined
    ? {}
    : { external_execution_id: started.external_execution_id }),
  event: raised.event,
  event_class: "ExecutionEvent",
  date: new Date(raised.at).toISOString(),
  customer_available: started.timeline.interaction,
  status_reason: raised.status_reason,
  status_message: messageOf(raised.status_reason),
  producer: raised.producer,
  ...(raised.judged ? { locking_hash: started.locking_hash } : {}),
  ...(raised.data === undefined ? {} : { data: raised.data }),
})

const messageOf = (reason: RaisedEvent["status_reason"]): string =>
  reason === "AUTH_OK"
    ? "La fuente ha aceptado el acceso."
    : reason === "not-performed"
      ? "Sin acceso."
      : statusMessage(reason)

/** Something that happened, and what is sent about it. */
export interface Occasion {
  readonly event: string
  /** A run may pause more than once: counts the events of one name from 0. */
  readonly ordinal: number
  readonly at: number
  readonly status_reason: string
  readonly body: () => unknown
}

export interface Subject {
  readonly id: string
  readonly application: string
  readonly external_execution_id?: string
  /** 4.1: appended to every delivery. */
  readonly extra: Readonly<Record<string, string>>
  readonly occasions: ReadonlyArray<Occasion>
}

/** What every event of a session carries; the customer where one is known. */
const flowEvent = (
  about: { readonly application: string; readonly session_id: string; readonly customer_id?: string },
  event: FlowEventName,
  at: number,
  session_status: string,
): FlowEvent => ({
  app_id: about.application,
  session_id: about.session_id,
  ...(about.customer_id === undefined ? {} : { customer_id: about.customer_id }),
  event,
  event_class: "FlowEvent",
  producer: "es-public-administration",
  date: new Date(at).toISOString(),
  session_status,
})

/**
 * 6.2, own choice: the session of an execution at a public administration belongs to that flow. It starts
 * when its source accepts the login and ends with its final results. No customer uses it: there is no
 * consent form to sign and no widget to close, so it raises neither `consent` nor `partial`. A session that
 * the flow API does not have raises nothing.
 */
const sessionOccasions = (seed: number, execution: Execution): ReadonlyArray<Occasion> => {
  const { engine_reference, results } = execution.started
  const accepted = execution.phases.find((phase) => phase.authentication_status === "AUTH_OK")
  const isPublic = findEngine(engine_reference)?.category === "public"
  if (!isPublic || results.session !== "answers" || accepted === undefined) return []
  const told = (event: FlowEventName, at: number, status: string, more: () => object): Occasion => ({
    event,
    ordinal: 0,
    at,
    status_reason: status,
    body: () => ({ ...flowEvent(execution.started, event, at, status), ...more() }),
  })
  const started = told("es-public-administration:started", accepted.from, "WAITING", () => ({}))
  const endsAt = closesAt(execution) + results.lateMs
  if (results.neverFinal || !Number.isFinite(endsAt)) return [started]
  const final = () => ({ results: flowResultsBody(seed, execution, endsAt) })
  const status = sessionStatusAt(execution, endsAt)
  return [started, told("es-public-administration:ended", endsAt, status, final)]
}

const executionSubject = (seed: number, execution: Execution): Subject => {
  const { application, execution_id, external_execution_id, hooks_extra_data } = execution.started
  return {
    id: execution_id,
    application,
    ...(external_execution_id === undefined ? {} : { external_execution_id }),
    extra: hooks_extra_data ?? {},
    occasions: [
      ...executionEventsOf(execution)
        .filter(({ event }) => raisesEvent(execution.started.engine_reference, event))
        .map((raised) => ({ ...raised, body: () => executionEventBody(execution, raised) })),
      ...sessionOccasions(seed, execution),
    ],
  }
}

const carriesResults: ReadonlySet<FlowEventName> = new Set<FlowEventName>([
  "es-public-administration:partial",
  "es-public-administration:ended",
])

/** The status that the event's own move caused: the next one may follow in the same moment. */
const statusAfter = (session: FlowSession, event: FlowEventName): string => {
  const raises = ({ move }: FlowSession["phases"][number]): boolean => {
    const { event: raised }: FlowMove = flowMoves[move]
    return raised === event
  }
  return (session.phases.find(raises) ?? session.phases[0]).status
}

/** `{status_reason}` is the session's status code (own choice); what came before it was found is past. */
const flowSubject = (seed: number, session: FlowSession): Subject => ({
  id: session.created.session_id,
  application: session.created.application,
  extra: {},
  occasions: flowEventsOf(session)
    .filter(({ at }) => session.foundAt === undefined || at >= session.foundAt)
    .map(({ event, at }) => {
      const status = statusAfter(session, event)
      const results = () => (carriesResults.has(event) ? { results: flowSessionBody(seed, session, at) } : {})
      return {
        event,
        ordinal: 0,
        at,
        status_reason: status,
        body: () => ({ ...flowEvent(session.created, event, at, status), ...results() }),
      }
    }),
})

/** For a deleted execution nothing more is delivered: it is as if it had never existed (own choice). */
export const findSubject = (state: SandboxState, seed: number, id: string): Subject | undefined => {
  const execution = state.executions.get(id)
  if (execution !== undefined) {
    return execution.deletedAt === undefined ? executionSubject(seed, execution) : undefined
  }
  const session = state.flows.sessions.get(id)
  return session === undefined ? undefined : flowSubject(seed, session)
}
