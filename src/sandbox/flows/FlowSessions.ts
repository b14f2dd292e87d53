/**
 * The flow API's calls (sections 4.10 and 4.12): a session's current results and its documents; and the
 * widget's own, whose shapes are this service's, since the reference shows none of them.
 */
import { Effect, Schema } from "effect"
import { given } from "../../base/Schemas.ts"
import { answered, beginCall, decidedBy, refused, settle, type Call, type Look } from "../core/SandboxCore.ts"
import { consentDocuments, defaultSignature, documentBytes, documentsOf } from "../data/Documents.ts"
import { givenConsent } from "../data/Documents.ts"
import { checkForm } from "../engines/AnswerEngines.ts"
import { findEngine } from "../engines/EngineCatalogue.ts"
import { whyUnavailable } from "../engines/EngineDefinition.ts"
import { deliveryOf, judgeCode, wordsIn } from "../executions/Executions.ts"
import { openParameters } from "../executions/JudgeRequest.ts"
import { resultsAreFinal, resultsAreWhole, retrievedAt } from "../executions/PlanResults.ts"
import { flowResultsBody, retrievalData, retrievedFeatures } from "../executions/Results.ts"
import { featuresOf, planSource, planStanding, readFlowPlan, publicSources } from "./StandingSessions.ts"
import { shapeResults } from "../readings/ShapeAnswer.ts"
import { refusalOf } from "../state/FlowMoves.ts"
import type { FlowSessionCreated, FlowSessionEvent, FlowStep, FlowStepName } from "../state/FlowMoves.ts"
import { flowEventsOf, flowMomentOf, newFlowSession } from "../state/FlowTimeline.ts"
import type { FlowSession, FlowSource, FlowState } from "../state/FlowTimeline.ts"
import { fingerprint } from "../state/Reading.ts"
import type { ErrorItem, Retrieval } from "../state/ResultsPlan.ts"
import { closesAt, findSession, momentAt, type Execution, type SandboxEvent } from "../state/SandboxState.ts"
import { heldUntil, iso, judgeRead, type SessionReads } from "../state/Timeline.ts"
import { features as featureCodes } from "../../service/Vocabulary.ts"

/** The sources that were connected by then. */
const connectedAt = (session: FlowSession, at: number): ReadonlyArray<FlowSource> =>
  session.sources.filter((source) => source.started.at <= at)

/** How many records a read of the session carries. */
const recordsShownAt = (session: FlowSession, at: number): number =>
  connectedAt(session, at).reduce((total, source) => total + retrievedAt(source, at), 0)

/** 2.7. `session_status` and `session_cursor` are this service's own names: the reference shows none. */
export const flowSessionBody = (seed: number, session: FlowSession, at: number) => {
  const phase = flowMomentOf(session.phases, at)
  const { session_id, customer_id } = session.created
  const sources = connectedAt(session, at).map((source) => ({
    retrieval: source,
    final: phase.closed || resultsAreFinal(source, at),
  }))
  const codes = sources.flatMap(({ retrieval }) => retrievedFeatures(retrieval, at))
  return {
    session_id,
    ...given({ customer_id, consent: givenConsent(session, at) }),
    data: retrievalData(seed, sources, at),
    retrieved_features: [...new Set(codes)],
    is_closed: phase.closed,
    session_status: phase.status,
    session_cursor: phase.cursor,
  }
}

/** 4.12: the documents that can be downloaded by now. */
const wholeDocuments = (source: Retrieval, at: number) =>
  resultsAreWhole(source, at) ? documentsOf(source) : []
export const sessionDocuments = (session: FlowSession, at: number) =>
  connectedAt(session, at).flatMap((source) => wholeDocuments(source, at))

interface FoundSession {
  readonly session: FlowSession
  /** What the read itself caused. */
  readonly found: ReadonlyArray<FlowSessionEvent>
}

/** Another application's session looks as if it never existed (sections 5 and 7). */
const findFlowSession = (look: Look, session_id: string): FoundSession | undefined => {
  const { state, seed, at, application } = look
  const known = state.flows.sessions.get(session_id)
  if (known !== undefined) {
    return known.created.application === application.app_id ? { session: known, found: [] } : undefined
  }
  const standing = planStanding(seed, at, session_id)
  if (standing === undefined || standing.created.application !== application.app_id) return undefined
  const { created, steps } = standing
  return {
    session: newFlowSession(created, steps, at),
    found: [{ _tag: "FlowSessionFound", at, created, steps }],
  }
}

/** Not shown; own choice: the flow API's errors have the shape of most others, `{detail: string}`. */
const refusals = {
  NotFound: "session not found",
  NeverStarted: "the customer never started this session",
  TooManyRequests: "one request per five seconds",
  LockTimeout: "the session is locked",
} as const
const refuse = <Tag extends keyof typeof refusals>(_tag: Tag, ...events: ReadonlyArray<SandboxEvent>) =>
  refused({ _tag, detail: refusals[_tag] }, ...events)

type Body = ReturnType<typeof flowResultsBody> | ReturnType<typeof flowSessionBody>

/** A session about to be read, what each outcome leaves, and whether somebody else holds its lock. */
interface Readable extends Record<ReturnType<typeof judgeRead>, SandboxEvent> {
  readonly session: SessionReads
  readonly elsewhere: boolean
  readonly body: () => Body
  /** What its final records leave. */
  readonly delivered?: (data: Body["data"]) => ReadonlyArray<SandboxEvent>
}

/** Section 8: one read per five seconds, under an exclusive lock. `found`: what came before the read. */
const readSession = (call: Call, read: Readable, ...found: ReadonlyArray<SandboxEvent>) => {
  const _tag = judgeRead(read.session, call.at, read.elsewhere)
  if (_tag !== "FlowResults") return refuse(_tag, ...found, read[_tag])
  const body = read.body()
  const delivered = read.delivered?.(body.data) ?? []
  return answered(shapeResults(call.reading, { _tag, ...body }), ...found, read[_tag], ...delivered)
}

const isLockedElsewhere = (session: FlowSession, at: number): boolean => {
  const started = session.phases.find((phase) => phase.started)
  return started !== undefined && at < started.from + session.created.plan.lockedMs
}

const readOwnSession = (call: Call, session_id: string) => {
  const { at } = call
  const there = findFlowSession(call, session_id)
  if (there === undefined) return refuse("NotFound")
  const { session, found } = there
  const phase = flowMomentOf(session.phases, at)
  if (!phase.started) return refuse("NeverStarted", ...found)
  const until = heldUntil(at, recordsShownAt(session, at))
  const read: Readable = {
    session,
    elsewhere: isLockedElsewhere(session, at),
    body: () => flowSessionBody(call.seed, session, at),
    TooManyRequests: { _tag: "FlowResultsRefused", at, session_id },
    LockTimeout: { _tag: "FlowResultsLocked", at, session_id },
    FlowResults: { _tag: "FlowResultsRead", at, session_id, is_closed: phase.closed, heldUntil: until },
  }
  return readSession(call, read, ...found)
}

/** The flow API has an execution's session once its login was accepted; before that nobody started it. */
const readExecutionSession = (call: Call, execution: Execution) => {
  const { at, seed } = call
  const { execution_id, results } = execution.started
  if (results.session === "unknown") return refuse("NotFound")
  const { phase, closed } = momentAt(execution, at)
  if (results.session === "unstarted" || phase.authentication_status !== "AUTH_OK") {
    return refuse("NeverStarted")
  }
  const is_closed = resultsAreFinal(execution, at)
  const until = heldUntil(at, retrievedAt(execution, at))
  return readSession(call, {
    session: execution.session,
    elsewhere: closed && at < closesAt(execution) + results.lockedMs,
    body: () => flowResultsBody(seed, execution, at),
    delivered: (data) => (is_closed ? deliveryOf(call, execution, "flow", Object.values(data).flat()) : []),
    TooManyRequests: { _tag: "ResultsRefused", at, execution_id },
    LockTimeout: { _tag: "ResultsLocked", at, execution_id },
    FlowResults: { _tag: "ResultsRead", at, execution_id, is_closed, heldUntil: until },
  })
}

/** ObjectId: any other form is not a session identifier (422), unless a reading accepts any text. */
const isObjectId = (text: string): boolean => /^[0-9a-f]{24}$/i.test(text)

/** 4.10 */
export const readFlowResults = decidedBy((call, session_id: string) => {
  if (call.reading.flow_session_ids === "object_id" && !isObjectId(session_id)) {
    const item = { loc: ["path", "session_id"], msg: "not an ObjectId", type: "value_error" }
    return refused({ _tag: "Invalid", detail: [item] })
  }
  if (!call.state.bySession.has(session_id)) return readOwnSession(call, session_id)
  const execution = findSession(call, session_id)
  return execution === undefined ? refuse("NotFound") : readExecutionSession(call, execution)
})

/** 4.12: a document is there once its session's records are complete. */
export const downloadAttachment = decidedBy((call, session_id: string, attachment_id: string) => {
  const { at, state } = call
  const execution = findSession(call, session_id)
  const own = state.bySession.has(session_id) ? undefined : findFlowSession(call, session_id)
  const documents = [
    ...(execution === undefined ? [] : wholeDocuments(execution, at)),
    ...(own === undefined ? [] : sessionDocuments(own.session, at)),
  ]
  const document = documents.find((candidate) => candidate.attachment_id === attachment_id)
  const found = own?.found ?? []
  if (document === undefined) return refused({ _tag: "NotFound", detail: "no such attachment" }, ...found)
  return answered({ media_type: document.media_type, bytes: documentBytes(document) }, ...found)
})

/** For observers. Phases are those so far and, if no further step is taken, in the future. */
export const sessionsSeen = (state: FlowState) =>
  [...state.sessions.values()].map((session) => {
    const { session_id, application, customer_id } = session.created
    return {
      session_id,
      application,
      ...given({ customer_id, found_at: session.foundAt }),
      phases: session.phases,
      events: flowEventsOf(session).map(({ event, at }) => ({ event, at })),
      results_reads: session.reads,
      locked_at: session.lockedAt,
      too_soon_at: session.refusedAt,
    }
  })

// The widget's calls are answered with the session as the code that draws a widget needs it.

const text = Schema.optionalKey(Schema.String)
const codes = Schema.optionalKey(Schema.Array(Schema.Literals(featureCodes)))
/** A bare identifier is accepted without a signature. */
const SignedDocument = Schema.Union([
  Schema.String,
  Schema.Struct({
    document_id: Schema.String,
    signature_provider: text,
    signature_metadata: Schema.optionalKey(Schema.Record(Schema.String, Schema.Unknown)),
  }),
])

/** The bodies of the calls that have one. */
export const widgetBodies = {
  create: Schema.Struct({ customer_id: text, features: codes, behaviour: text }),
  start: Schema.Struct({ user_ip: text, user_agent: text, origin: text }),
  consent: Schema.Struct({ features: codes, documents: Schema.optionalKey(Schema.Array(SignedDocument)) }),
  connect: Schema.Struct({
    engine_reference: Schema.String,
    parameters: Schema.Record(Schema.String, Schema.Unknown),
    features: codes,
  }),
  answer: Schema.Struct({ code: Schema.String }),
}
type BodyOf<Name extends keyof typeof widgetBodies> = (typeof widgetBodies)[Name]["Type"]
type StepWithBody = Exclude<keyof typeof widgetBodies, "create">
type StepOf<Name extends StepWithBody> = BodyOf<Name> & { readonly _tag: Name }
export type StepRequest =
  | { [Name in StepWithBody]: StepOf<Name> }[StepWithBody]
  | { readonly _tag: "leave" | "cancel" | "client-cancel" }

const sessionNotFound = refused({ _tag: "NotFound", detail: "session not found" })
const conflict = (detail: string) => ({ _tag: "Conflict", detail }) as const
const invalid = (detail: ReadonlyArray<ErrorItem>) => ({
  _tag: "Invalid" as const,
  detail: detail.map((item) => ({ ...item, loc: ["body", ...item.loc] })),
})
const wrongValue = (loc: ErrorItem["loc"], msg: string) => invalid([{ loc, msg, type: "value_error" }])

/** What a consent form offers if the session is created without naming features. */
const usualFeatures = featuresOf(publicSources)

const decideCreate = (look: Look, request: BodyOf<"create">) => {
  const { state, seed, at } = look
  const application = look.application.app_id
  const ordinal = state.flows.sessions.size
  const created: FlowSessionCreated = {
    _tag: "FlowSessionCreated",
    at,
    application,
    session_id: fingerprint("flow-session", seed, application, ordinal, at).slice(0, 24),
    ...given({ customer_id: request.customer_id }),
    features: [...new Set(request.features ?? usualFeatures)],
    plan: readFlowPlan(request.behaviour ?? ""),
  }
  return answered(created.session_id, created)
}

/** A step ready to be recorded, or why there is none. */
type Prepared = FlowStep | ReturnType<typeof conflict | typeof invalid>

const prepareConsent = ({ created }: FlowSession, { features, documents }: StepOf<"consent">): Prepared => {
  const accepted = [...new Set(features ?? created.features)]
  const foreign = accepted.find((code) => !created.features.includes(code))
  if (foreign !== undefined) return wrongValue(["features"], `${foreign} is not offered`)
  const all = consentDocuments.map(({ document_id }) => ({ document_id }))
  const signed = (documents ?? all).map((document) => {
    if (typeof document === "string") return { document_id: document }
    return { ...defaultSignature, ...document }
  })
  const known = consentDocuments.flatMap(({ document_id, version, hash }) => {
    const signature = signed.find((document) => document.document_id === document_id)
    return signature === undefined ? [] : [{ ...signature, version, hash }]
  })
  if (known.length !== consentDocuments.length || signed.length !== known.length) {
    return wrongValue(["documents"], "every document of the form is accepted once, and no other")
  }
  return { _tag: "consent", features: accepted, documents: known }
}

/** The features that the customer let this session read. */
const acceptedFeatures = (session: FlowSession, at: number): ReadonlyArray<string> =>
  session.created.plan.asksConsent
    ? (givenConsent(session, at)?.accepted_features ?? [])
    : session.created.features

const prepareConnect = ({ seed, at }: Look, session: FlowSession, request: StepOf<"connect">): Prepared => {
  const engine = findEngine(request.engine_reference)
  if (engine === undefined) return wrongValue(["engine_reference"], "no such engine")
  const unavailable = whyUnavailable(engine, session.created.application, at)
  if (unavailable !== undefined) return conflict(unavailable)
  const { values, findings } = openParameters(request.parameters)
  const wrong = findings.length > 0 ? findings : checkForm(engine.parameters, values)
  const errors = wrong.map(({ error }) => error)
  if (errors.length > 0) {
    return invalid(errors.map((error) => ({ ...error, loc: ["parameters", ...error.loc] })))
  }
  const accepted = acceptedFeatures(session, at)
  const foreign = request.features?.find((code) => !accepted.includes(code))
  if (foreign !== undefined) return wrongValue(["features"], `${foreign} was not accepted`)
  const features = (request.features ?? accepted).filter((code) =>
    engine.features.some((one) => one === code),
  )
  if (features.length === 0) return conflict("the source offers nothing that the customer accepted")
  const ordinal = session.sources.filter(
    (source) => source.started.engine_reference === engine.reference,
  ).length
  const words = wordsIn(engine, values)
  const { created } = session
  return { _tag: "connect", source: planSource({ seed, at, created, engine, features, words, ordinal }) }
}

/** The source that waits for an answer of the customer. */
const askingAt = (session: FlowSession, at: number): FlowSource | undefined =>
  connectedAt(session, at).find((source) => momentAt(source, at).phase.challenge !== undefined)

const prepareAnswer = ({ seed, at }: Look, session: FlowSession, code: string): Prepared => {
  const asking = askingAt(session, at)
  if (asking === undefined) return conflict("no source asks for anything")
  const { challenge } = asking.started.timeline
  return { _tag: "answer", source_id: asking.source_id, ...judgeCode(seed, challenge?.codeHash, code) }
}

const prepare = (look: Look, session: FlowSession, request: StepRequest): Prepared => {
  switch (request._tag) {
    case "consent":
      return prepareConsent(session, request)
    case "connect":
      return prepareConnect(look, session, request)
    case "answer":
      return prepareAnswer(look, session, request.code)
    default:
      return request
  }
}

/** The steps that a session currently allows, for code that draws a widget or chooses steps at random. */
export const allowedSteps = (session: FlowSession, at: number): ReadonlyArray<FlowStepName> => {
  const phase = flowMomentOf(session.phases, at)
  const names = ["start", "consent", "connect", "answer", "leave", "cancel", "client-cancel"] as const
  const asks = askingAt(session, at) !== undefined
  return names.filter(
    (name) =>
      refusalOf(phase, session.created.plan.asksConsent, name) === undefined && (name !== "answer" || asks),
  )
}

const decideStep = (look: Look, session_id: string, request: StepRequest) => {
  const { at } = look
  const there = findFlowSession(look, session_id)
  if (there === undefined) return sessionNotFound
  const { session, found } = there
  const engine = request._tag === "connect" ? request.engine_reference : undefined
  const phase = flowMomentOf(session.phases, at)
  const detail = refusalOf(phase, session.created.plan.asksConsent, request._tag, engine)
  const step = detail === undefined ? prepare(look, session, request) : conflict(detail)
  return "detail" in step
    ? refused(step, ...found)
    : answered(session_id, ...found, { _tag: "FlowStepTaken", at, session_id, step })
}

const sourceView = (source: FlowSource, at: number) => {
  const { phase } = momentAt(source, at)
  return {
    engine_reference: source.started.engine_reference,
    status_reason: phase.status_reason,
    ...given({ action_required_expires: phase.challenge && iso(phase.challenge.expires) }),
  }
}

const sessionView = (session: FlowSession, at: number) => {
  const phase = flowMomentOf(session.phases, at)
  const { session_id, customer_id, features, plan } = session.created
  return {
    session_id,
    ...given({ customer_id }),
    session_status: phase.status,
    session_cursor: phase.cursor,
    is_closed: phase.closed,
    features,
    documents: plan.asksConsent ? consentDocuments : [],
    sources: connectedAt(session, at).map((source) => sourceView(source, at)),
    steps: allowedSteps(session, at),
    events: flowEventsOf(session)
      .filter((event) => event.at <= at)
      .map((event) => ({ event: event.event, date: iso(event.at) })),
  }
}

/** The session as it is once what was decided is recorded. */
const viewOf = (decide: (call: Call) => ReturnType<typeof decideCreate | typeof decideStep>) =>
  Effect.gen(function* () {
    const call = yield* beginCall
    const session = call.state.flows.sessions.get(yield* settle(call, decide(call)))
    return session === undefined ? yield* settle(call, sessionNotFound) : sessionView(session, call.at)
  })

export const createSession = (request: BodyOf<"create">) => viewOf((call) => decideCreate(call, request))

/** 4.10 has no such call: code that draws the widget reads the session here. */
export const viewSession = (session_id: string) =>
  viewOf((call) => {
    const there = findFlowSession(call, session_id)
    return there === undefined ? sessionNotFound : answered(session_id, ...there.found)
  })

export const takeStep = (session_id: string, request: StepRequest) =>
  viewOf((call) => decideStep(call, session_id, request))
