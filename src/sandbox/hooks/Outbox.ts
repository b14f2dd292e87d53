/**
 * What webhooks deliver (section 6): what happened to executions and flow sessions and when, what is sent
 * about it, and when it is due. The dispatcher asks for the next delivery, is notified when that may have
 * changed, and reports the result of each attempt. Payloads and delivery of flow events are not shown; own
 * choice: the envelope of execution events, with the results under `results` where the event carries data.
 */
import { Duration } from "effect"
import { given } from "../../base/Schemas.ts"
import { recordEvents, type SandboxCore } from "../core/SandboxCore.ts"
import { findEngine, raisesEvent } from "../engines/EngineCatalogue.ts"
import { flowResultsBody, sessionStatusAt } from "../executions/Results.ts"
import { statusMessage } from "../executions/StateBody.ts"
import { flowSessionBody } from "../flows/FlowSessions.ts"
import { flowEventsOf, type FlowSession } from "../state/FlowTimeline.ts"
import { findRecord, rulesFor, type HookEvent, type HookRule, type HookState } from "../state/HookState.ts"
import { fingerprint, seeded } from "../state/Reading.ts"
import { closesAt, type Execution, type SandboxEvent, type SandboxState } from "../state/SandboxState.ts"
import { acceptedIn, isClosedPhase, isJudged, iso } from "../state/Timeline.ts"
import type { AuthenticationStatus, Phase } from "../state/Timeline.ts"
import type { FlowEventName, StatusReason, engineEvents } from "../../service/Vocabulary.ts"

// 6.1: read from the phases, so no event disagrees with a state. Own choice: payloads like `auth_ended`'s.

type EngineEventName = (typeof engineEvents)[number]

/** Something that happened, and what is sent about it. */
interface Occasion {
  readonly event: string
  /** A run may pause more than once: counts the events of one name from 0. */
  readonly ordinal: number
  readonly at: number
  readonly status_reason: string
  readonly body: () => unknown
}

interface RaisedEvent extends Omit<Occasion, "body"> {
  readonly event: EngineEventName
  readonly status_reason: StatusReason | AuthenticationStatus
  /** 6.1: `engine`, or the feature that asks. */
  readonly producer: string
  /** The source had judged the login by then, so there is a `locking_hash`. */
  readonly judged: boolean
  readonly data?: Readonly<Record<string, unknown>>
}

/** The event of each of these phases, with what it says otherwise than its phase. */
const raisedIn = (
  event: EngineEventName,
  phases: ReadonlyArray<Phase>,
  otherwise: (phase: Phase) => Partial<RaisedEvent> = () => ({}),
) =>
  phases.map((phase, ordinal): RaisedEvent => ({
    event,
    ordinal,
    at: phase.from,
    status_reason: phase.status_reason,
    producer: phase.challenge === undefined ? "engine" : (phase.heldBy ?? "engine"),
    judged: isJudged(phase),
    ...otherwise(phase),
  }))

/** Own choice: a run refused because of its form, or stopped while it was queued, has no `started`. */
const beginOf = ({ phases, started, stop }: Execution): ReadonlyArray<Phase> => {
  const begun = phases.find((phase) => phase.spends !== "queue")
  if (begun === undefined || started.timeline.stillborn) return []
  return stop !== undefined && isClosedPhase(begun) && begun.from >= stop.at ? [] : [begun]
}

/**
 * In the order in which they are raised; simultaneous ones in the order of a run's life. Events later than
 * now are what will happen if nobody does anything.
 */
const executionEventsOf = (execution: Execution): ReadonlyArray<RaisedEvent> => {
  const { phases } = execution
  // Only a run that may pause has phases with a challenge (4.1, `customer_interaction_available`).
  const pauses = phases.filter(({ challenge }) => challenge !== undefined)
  return [
    // A run without work begins when it pauses or ends.
    ...raisedIn("started", beginOf(execution), ({ spends, status_reason }) => ({
      status_reason: spends === "work" ? status_reason : "WAITING",
      producer: "engine",
    })),
    ...raisedIn("action_required", pauses, ({ challenge }) =>
      given({ data: challenge && { action_required_expires: iso(challenge.expires) } }),
    ),
    // Rules 1 and 2 for `auth_ended`: the verdict on the login, accepted or not.
    ...raisedIn("auth_ended", phases.filter(isJudged).slice(0, 1), ({ authentication_status }) => ({
      status_reason: authentication_status,
      producer: "engine",
    })),
    ...raisedIn("ended", phases.filter(isClosedPhase)),
  ].toSorted((one, other) => one.at - other.at)
}

/** 6.1 */
const executionEventBody = ({ started }: Execution, raised: RaisedEvent) => ({
  app_id: started.application,
  customer_id: started.customer_id,
  execution_id: started.execution_id,
  session_id: started.session_id,
  ...given({ external_execution_id: started.external_execution_id }),
  event: raised.event,
  event_class: "ExecutionEvent",
  date: iso(raised.at),
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

interface Subject {
  readonly id: string
  readonly application: string
  readonly external_execution_id?: string
  /** 4.1: appended to every delivery. */
  readonly extra: Readonly<Record<string, string>>
  readonly occasions: ReadonlyArray<Occasion>
}

/** What every event of a session carries; the customer where one is known, results where it has them. */
const flowOccasion = (
  about: { readonly application: string; readonly session_id: string; readonly customer_id?: string },
  event: FlowEventName,
  at: number,
  session_status: string,
  results?: () => unknown,
): Occasion => ({
  event,
  ordinal: 0,
  at,
  status_reason: session_status,
  body: () => ({
    app_id: about.application,
    session_id: about.session_id,
    ...given({ customer_id: about.customer_id }),
    event,
    event_class: "FlowEvent",
    producer: "es-public-administration",
    date: iso(at),
    session_status,
    ...given({ results: results?.() }),
  }),
})

/**
 * 6.2, own choice: the session of an execution at a public administration belongs to that flow. It starts
 * when its source accepts the login and ends with its final results. No customer uses it: there is no
 * consent form to sign and no widget to close, so it raises neither `consent` nor `partial`. A session that
 * the flow API does not have raises nothing.
 */
const sessionOccasions = (seed: number, execution: Execution): ReadonlyArray<Occasion> => {
  const { started } = execution
  const accepted = acceptedIn(execution.phases)
  const isPublic = findEngine(started.engine_reference)?.category === "public"
  if (!isPublic || started.results.session !== "answers" || accepted === undefined) return []
  const begun = flowOccasion(started, "es-public-administration:started", accepted.from, "WAITING")
  const endsAt = closesAt(execution) + started.results.lateMs
  if (started.results.neverFinal || !Number.isFinite(endsAt)) return [begun]
  const status = sessionStatusAt(execution, endsAt)
  const final = () => flowResultsBody(seed, execution, endsAt)
  return [begun, flowOccasion(started, "es-public-administration:ended", endsAt, status, final)]
}

const executionSubject = (seed: number, execution: Execution): Subject => {
  const { application, execution_id, external_execution_id, hooks_extra_data } = execution.started
  return {
    id: execution_id,
    application,
    ...given({ external_execution_id }),
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

/** `{status_reason}` is the session's status code (own choice); what came before it was found is past. */
const flowSubject = (seed: number, session: FlowSession): Subject => ({
  id: session.created.session_id,
  application: session.created.application,
  extra: {},
  occasions: flowEventsOf(session)
    .filter(({ at }) => session.foundAt === undefined || at >= session.foundAt)
    .map(({ event, at, status }) => {
      const results = carriesResults.has(event) ? () => flowSessionBody(seed, session, at) : undefined
      return flowOccasion(session.created, event, at, status, results)
    }),
})

/** For a deleted execution nothing more is delivered: it is as if it had never existed (own choice). */
const findSubject = (state: SandboxState, seed: number, id: string): Subject | undefined => {
  const execution = state.executions.get(id)
  if (execution !== undefined) {
    return execution.deletedAt === undefined ? executionSubject(seed, execution) : undefined
  }
  const session = state.flows.sessions.get(id)
  return session === undefined ? undefined : flowSubject(seed, session)
}

// 4.1 and 6: pure. Not shown; own choice: 2xx is delivered, else there are six attempts with growing waits.

const secondMs = 1_000
/** Own choice: after this many waits, a failed delivery is given up. */
const retryWaits = [
  Duration.seconds(10),
  Duration.minutes(1),
  Duration.minutes(5),
  Duration.minutes(30),
  Duration.hours(2),
] as const

/** One sending, now or later. */
export interface Delivery {
  readonly subject: Subject
  readonly occasion: Occasion
  readonly rule: HookRule
  /** From 1. */
  readonly attempt: number
  readonly repeats: boolean
  readonly dueAt: number
}

/** Own choice: a shuffled first attempt comes 2 to 180 seconds late, so that later events overtake it. */
const firstAttemptAt = (seed: number, rule: HookRule, subject: Subject, occasion: Occasion): number => {
  if (rule.order === "timely") return occasion.at
  const { event, ordinal, at } = occasion
  return at + seeded("hook-delay", seed, rule.id, subject.id, event, ordinal).int(2, 180) * secondMs
}

/** Everything that is still to be sent about a subject, as far as is known now; earliest first. */
const planDeliveries = (hooks: HookState, seed: number, subject: Subject): ReadonlyArray<Delivery> =>
  subject.occasions
    .flatMap((occasion) =>
      rulesFor(hooks, subject.application, occasion.event).flatMap((rule): ReadonlyArray<Delivery> => {
        // A rule that was removed and bound again has the same id: what was to be repeated is not.
        if (occasion.at < rule.since) return []
        const { event, ordinal } = occasion
        const record = findRecord(hooks, subject.id, { event, ordinal, rule: rule.id })
        const about = { subject, occasion, rule }
        if (record === undefined) {
          const dueAt = firstAttemptAt(seed, rule, subject, occasion)
          return [{ ...about, attempt: 1, repeats: false, dueAt }]
        }
        if (record.nextAt === undefined) return []
        const repeats = record.outcome === "delivered"
        return [{ ...about, attempt: record.attempts + 1, repeats, dueAt: record.nextAt }]
      }),
    )
    .toSorted((one, other) => one.dueAt - other.dueAt)

/** The result of an attempt: `unclear` if it may have arrived anyway. */
export type Answer = "taken" | "refused" | "unclear"

/** Own choice: with `duplicates`, about half of what was delivered comes once more within a minute. */
const repeatedAt = (seed: number, { rule, subject, occasion }: Delivery, at: number): number | undefined => {
  if (!rule.duplicates) return undefined
  const draw = seeded("hook-duplicate", seed, rule.id, subject.id, occasion.event, occasion.ordinal)
  return draw.chance(0.5) ? at + draw.int(1, 60) * secondMs : undefined
}

const decideAttempt = (seed: number, delivery: Delivery, at: number, answer: Answer): HookEvent => {
  const { subject, occasion, rule, attempt, repeats } = delivery
  const { event, ordinal } = occasion
  const which = { at, subject: subject.id, event, ordinal, rule: rule.id }
  if (repeats) return { _tag: "HookRepeated", ...which }
  if (answer === "taken") {
    return { _tag: "HookDelivered", ...which, ...given({ next_at: repeatedAt(seed, delivery, at) }) }
  }
  const wait = retryWaits[attempt - 1]
  const retryAt = wait === undefined ? undefined : at + Duration.toMillis(wait)
  return { _tag: "HookFailed", ...which, doubtful: answer === "unclear", ...given({ next_at: retryAt }) }
}

/** 4.1: the three variables that are shown; one without a value is empty, others are sent verbatim. */
const valueOf = (value: string, { subject, occasion }: Delivery): string => {
  if (value === "{external_execution_id}") return subject.external_execution_id ?? ""
  if (value === "{event}") return occasion.event
  if (value === "{status_reason}") return occasion.status_reason
  return value
}

/** Half a surrogate pair has no encoding. */
const percentEncoded = (text: string): string => encodeURIComponent(text.toWellFormed())

/** Pairs of the start come after the target's own. */
const targetOf = (delivery: Delivery): string => {
  const target = new URL(delivery.rule.url)
  const pairs = Object.entries(delivery.subject.extra).map(
    ([name, value]) => `${percentEncoded(name)}=${percentEncoded(valueOf(value, delivery))}`,
  )
  const kept = target.search === "" ? [] : [target.search.slice(1)]
  target.search = [...kept, ...pairs].join("&")
  target.hash = ""
  return target.href
}

const idsIn = (event: SandboxEvent): ReadonlyArray<string> => [
  ...("execution_id" in event && event.execution_id !== undefined ? [event.execution_id] : []),
  ...("session_id" in event && event.session_id !== undefined ? [event.session_id] : []),
  // A standing flow session is found, not created.
  ...("created" in event ? [event.created.session_id] : []),
]

const isRuleEvent = ({ _tag }: SandboxEvent): boolean => _tag === "HookBound" || _tag === "HookUnbound"

/** Own choice: all attempts of a delivery have one id, so that the receiver can recognise duplicates. */
const headersOf = (seed: number, { rule, subject, attempt, occasion: { event, ordinal } }: Delivery) => ({
  "user-agent": "nightjar-sandbox",
  "x-nightjar-event": event,
  "x-nightjar-delivery": fingerprint("hook", seed, rule.id, subject.id, event, ordinal).slice(0, 32),
  "x-nightjar-attempt": String(attempt),
})

export const outboxOf = (core: SandboxCore) => ({
  /** Every execution and session that may have something to deliver. */
  subjects: function* () {
    yield* core.state.executions.keys()
    yield* core.state.flows.sessions.keys()
  },
  /** Its earliest delivery, due now or later. */
  next: (id: string): Delivery | undefined => {
    if (core.state.hooks.rules.size === 0) return undefined
    const subject = findSubject(core.state, core.seed, id)
    return subject === undefined ? undefined : planDeliveries(core.state.hooks, core.seed, subject)[0]
  },
  /** A delivery as it is sent. */
  requestOf: (delivery: Delivery) => ({
    url: targetOf(delivery),
    headers: headersOf(core.seed, delivery),
    body: delivery.occasion.body(),
  }),
  settle: (delivery: Delivery, at: number, answer: Answer): void =>
    recordEvents(core, [decideAttempt(core.seed, delivery, at, answer)]),
  /** Calls back with the subjects of a change, or with nothing when a rule changed; returns how to stop. */
  watch: (listener: (subjects: ReadonlyArray<string> | undefined) => void) => {
    const heard = (events: ReadonlyArray<SandboxEvent>) => {
      if (events.some(isRuleEvent)) listener(undefined)
      else if (core.state.hooks.rules.size > 0) listener(events.flatMap(idsIn))
    }
    core.listeners.add(heard)
    return () => void core.listeners.delete(heard)
  },
})
export type Outbox = ReturnType<typeof outboxOf>
