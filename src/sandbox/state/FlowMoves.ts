/**
 * How a flow session moves between its status codes and cursors, and which steps are allowed when. The
 * reference shows the values (section 2.7) and the events (section 6.2) but no transitions (section 3.4):
 * this table is this service's own choice, in this one place.
 */
import { Schema } from "effect"
import { ErrorItem, ResultsPlan } from "./ResultsPlan.ts"
import { Timeline } from "./Timeline.ts"
import type { FlowEventName, sessionCursors, sessionStatusCodes } from "../../service/Vocabulary.ts"

type SessionStatusCode = (typeof sessionStatusCodes)[number]
type SessionCursor = (typeof sessionCursors)[number]

export interface FlowMove {
  /** What leads to this move. */
  readonly trigger: string
  readonly status: SessionStatusCode
  /** The last screen with user interaction; `kept` if nobody used a screen. */
  readonly cursor: SessionCursor | "kept"
  /** The session is over: its results are final. */
  readonly closes: boolean
  readonly event?: FlowEventName
}

type Local<Name> = Name extends `es-public-administration:${infer Rest}` ? Rest : never

const move = (
  trigger: string,
  status: SessionStatusCode,
  cursor: "kept" | Local<SessionCursor>,
  event?: Local<FlowEventName>,
): FlowMove => ({
  trigger,
  status,
  cursor: cursor === "kept" ? cursor : `es-public-administration:${cursor}`,
  closes: event === "ended",
  ...(event === undefined ? {} : { event: `es-public-administration:${event}` }),
})

const close = (
  ...about: [trigger: string, status: SessionStatusCode, cursor: "kept" | Local<SessionCursor>]
) => move(...about, "ended")

/** Not shown; own choice: every possible move. */
export const flowMoves = {
  created: move("the client creates the session", "READY", "welcome:init"),
  started: move("the customer starts the widget", "READY", "welcome:init", "started"),
  consented: move("the customer accepts and signs the consent form", "READY", "welcome:consent", "consent"),
  connected: move("the customer connects a source", "WAITING", "connect:source"),
  answered: move("the customer answers a source's challenge", "WAITING", "connect:source"),
  logged_in: move("a source accepts the login", "WAITING", "connect:wait"),
  source_over: move("the last source at work is done, the customer is there", "WAITING", "connect:source"),
  left: move("the customer is done while a source works", "WAITING", "connect:wait", "partial"),
  completed: close("customer and sources are done, a source gave records", "COMPLETED", "bye:completed"),
  failed: close("customer and sources are done, no source gave records", "FAILED", "bye:failure"),
  customer_cancelled: close("the customer cancels", "CUSTOMER_CANCELLED", "bye:failure"),
  client_cancelled: close("the client cancels", "CLIENT_CANCELLED", "kept"),
  timed_out: close("the customer does nothing for too long, or the sources do", "TIMED_OUT", "kept"),
  system_cancelled: close("the platform cancels", "SYSTEM_CANCELLED", "kept"),
  misconfigured: close("the session or its sources are wrongly set up", "CONFIGURATION_ERROR", "bye:failure"),
} as const satisfies Readonly<Record<string, FlowMove>>
export type FlowMoveName = keyof typeof flowMoves

/** A period of a session's life in which its state does not change. */
export interface FlowPhase {
  readonly from: number
  readonly move: FlowMoveName
  readonly status: SessionStatusCode
  readonly cursor: SessionCursor
  readonly started: boolean
  readonly consented: boolean
  /** The customer is done with the widget. */
  readonly left: boolean
  readonly closed: boolean
  /** References of the engines that are still reading. */
  readonly working: ReadonlyArray<string>
}

/** The names of the widget's steps. */
export type FlowStepName = FlowStep["_tag"]

/** Why a step is not allowed in a phase (409 of the widget), if it is not; `connect` names an engine. */
export const refusalOf = (
  phase: FlowPhase,
  asksConsent: boolean,
  name: FlowStepName,
  engine_reference = "",
): string | undefined => {
  if (phase.closed) return "the session is over"
  if (name === "client-cancel") return undefined
  if (name === "start") return phase.started ? "the session was started already" : undefined
  if (!phase.started) return "the session was not started yet"
  if (phase.left) return "the customer has left the widget"
  switch (name) {
    case "consent":
      if (!asksConsent) return "this session asks for no consent"
      return phase.consented ? "the consent was given already" : undefined
    case "connect":
      if (asksConsent && !phase.consented) return "the consent was not given yet"
      return phase.working.includes(engine_reference) ? "this source is being read already" : undefined
    default:
      return undefined
  }
}

// A session's events hold plans and keyed hashes, never a login parameter.

const at = Schema.Finite

/** What the words of a session ask for; durations in milliseconds. */
export const FlowPlan = Schema.Struct({
  /** How long the widget waits for an inactive customer. */
  idleMs: Schema.Finite,
  /** After the start: reads find the session locked. */
  lockedMs: Schema.Finite,
  /** After the start: the platform ends the session. */
  systemMs: Schema.optionalKey(Schema.Finite),
  /** Misconfigured: the start already ends it. */
  broken: Schema.Boolean,
  asksConsent: Schema.Boolean,
  company: Schema.Boolean,
})
export type FlowPlan = typeof FlowPlan.Type

export const FlowSessionCreated = Schema.TaggedStruct("FlowSessionCreated", {
  at,
  application: Schema.String,
  session_id: Schema.String,
  customer_id: Schema.optionalKey(Schema.String),
  /** The features that the consent form offers. */
  features: Schema.Array(Schema.String),
  plan: FlowPlan,
})
export type FlowSessionCreated = typeof FlowSessionCreated.Type

const SignedDocument = Schema.Struct({
  document_id: Schema.String,
  version: Schema.String,
  hash: Schema.String,
  signature_provider: Schema.optionalKey(Schema.String),
  signature_metadata: Schema.optionalKey(Schema.Record(Schema.String, Schema.Unknown)),
})

/** One source that the customer connects, and what it will return. */
export const FlowSourcePlan = Schema.Struct({
  source_id: Schema.String,
  engine_reference: Schema.String,
  timeline: Timeline,
  results: ResultsPlan,
})
export type FlowSourcePlan = typeof FlowSourcePlan.Type

export const FlowStep = Schema.Union([
  Schema.TaggedStruct("start", {
    user_ip: Schema.optionalKey(Schema.String),
    user_agent: Schema.optionalKey(Schema.String),
    origin: Schema.optionalKey(Schema.String),
  }),
  Schema.TaggedStruct("consent", {
    features: Schema.Array(Schema.String),
    documents: Schema.Array(SignedDocument),
  }),
  Schema.TaggedStruct("connect", { source: FlowSourcePlan }),
  Schema.TaggedStruct("answer", {
    source_id: Schema.String,
    right: Schema.Boolean,
    payload_errors: Schema.Array(ErrorItem),
  }),
  Schema.TaggedStruct("leave", {}),
  Schema.TaggedStruct("cancel", {}),
  Schema.TaggedStruct("client-cancel", {}),
])
export type FlowStep = typeof FlowStep.Type

/** A step and its time; those of a standing session may be in the future. */
export const TakenStep = Schema.Struct({ at, step: FlowStep })
export type TakenStep = typeof TakenStep.Type

const FlowStepTaken = Schema.TaggedStruct("FlowStepTaken", { at, session_id: Schema.String, step: FlowStep })

/** A standing session was read for the first time: its life counts from here. */
const FlowSessionFound = Schema.TaggedStruct("FlowSessionFound", {
  at,
  created: FlowSessionCreated,
  steps: Schema.Array(TakenStep),
})

const FlowResultsRead = Schema.TaggedStruct("FlowResultsRead", {
  at,
  session_id: Schema.String,
  is_closed: Schema.Boolean,
  /** Until when this read holds the session's exclusive lock. */
  heldUntil: at,
})
/** Answered 504: somebody else held the lock. */
const FlowResultsLocked = Schema.TaggedStruct("FlowResultsLocked", { at, session_id: Schema.String })
/** The caller read it again within five seconds (4.10). */
const FlowResultsRefused = Schema.TaggedStruct("FlowResultsRefused", { at, session_id: Schema.String })

export const FlowSessionEvents = Schema.Union([
  FlowSessionCreated,
  FlowSessionFound,
  FlowStepTaken,
  FlowResultsRead,
  FlowResultsLocked,
  FlowResultsRefused,
]).pipe(Schema.toTaggedUnion("_tag"))

/** An event of a flow session in the journal; those of section 6.2 are derived from them. */
export type FlowSessionEvent = typeof FlowSessionEvents.Type
