/**
 * The events that an execution raises (section 6.1), each at the moment in which its state changes: a pure
 * reading of its phases, so that no event can disagree with a state read. Payloads other than that of
 * `auth_ended` are not shown; own choice: the same shape for all.
 */
import type { ExecutionEvent } from "../../service/Execution.ts"
import type { engineEvents, StatusReason } from "../../service/Vocabulary.ts"
import { statusMessage } from "../executions/Messages.ts"
import type { Execution } from "../state/SandboxState.ts"
import { isClosedPhase, isJudged } from "../state/Timeline.ts"
import type { AuthenticationStatus, Phase } from "../state/Timeline.ts"

export type EngineEventName = (typeof engineEvents)[number]

export interface RaisedEvent {
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
export const executionEventsOf = (execution: Execution): ReadonlyArray<RaisedEvent> =>
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
export const executionEventBody = ({ started }: Execution, raised: RaisedEvent): ExecutionEvent => ({
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
