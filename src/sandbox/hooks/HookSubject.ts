/**
 * Executions and flow sessions as webhooks see them (section 6): what happened to each and when, and what is
 * sent about it. Payloads and delivery of flow events are not shown; own choice: the envelope of execution
 * events, with the results body under `results` if the reference says that the event carries data.
 */
import type { FlowEvent } from "../../service/Execution.ts"
import type { FlowEventName } from "../../service/Vocabulary.ts"
import { findEngine, raisesEvent } from "../engines/EngineCatalogue.ts"
import { flowSessionBody } from "../flows/FlowBody.ts"
import type { FlowSession } from "../state/FlowSession.ts"
import { flowMoves } from "../state/FlowMoves.ts"
import type { FlowMove } from "../state/FlowMoves.ts"
import { flowEventsOf } from "../state/FlowTimeline.ts"
import { executionEventBody, executionEventsOf } from "./RaisedEvents.ts"
import { flowResultsBody, sessionStatusAt } from "../executions/Results.ts"
import { closesAt } from "../state/SandboxState.ts"
import type { Execution, SandboxState } from "../state/SandboxState.ts"

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
