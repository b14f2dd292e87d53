/**
 * The widget's calls as answers: a decision, its events recorded, and the session as the code that draws a
 * widget needs it. All shapes are our own, since the reference shows none of this.
 */
import { Effect } from "effect"
import { consentDocuments } from "../data/Consent.ts"
import { allowedSteps, decideCreate, decideStep, decideView } from "./DecideWidget.ts"
import type { CreateRequest, StepAnswer, StepRequest } from "./DecideWidget.ts"
import { featuresOf } from "./FlowSources.ts"
import type { FlowSession } from "../state/FlowSession.ts"
import { flowEventsOf, flowMomentOf } from "../state/FlowTimeline.ts"
import { beginCall, settle } from "../core/SandboxCore.ts"
import type { Call, Decision } from "../core/SandboxCore.ts"
import { momentAt } from "../state/SandboxState.ts"

const iso = (at: number): string => new Date(at).toISOString()

const sourceView = (source: FlowSession["sources"][number], at: number) => {
  const { phase } = momentAt(source, at)
  return {
    engine_reference: source.started.engine_reference,
    status_reason: phase.status_reason,
    ...(phase.challenge === undefined ? {} : { action_required_expires: iso(phase.challenge.expires) }),
  }
}

const sessionView = (session: FlowSession, at: number) => {
  const phase = flowMomentOf(session.phases, at)
  const { session_id, customer_id, features, plan } = session.created
  return {
    session_id,
    ...(customer_id === undefined ? {} : { customer_id }),
    session_status: phase.status,
    session_cursor: phase.cursor,
    is_closed: phase.closed,
    features,
    documents: plan.asksConsent ? consentDocuments : [],
    sources: session.sources
      .filter((source) => source.started.at <= at)
      .map((source) => sourceView(source, at)),
    steps: allowedSteps(session, at),
    events: flowEventsOf(session)
      .filter((event) => event.at <= at)
      .map((event) => ({ event: event.event, date: iso(event.at) })),
  }
}

const answered = (call: Call, decision: Decision<StepAnswer>) => {
  const answer = settle(call, decision)
  if (answer._tag === "NotFound") return Effect.fail({ ...answer, detail: "session not found" })
  if (answer._tag !== "Taken") return Effect.fail(answer)
  const session = call.state.flows.sessions.get(answer.session_id)
  return session === undefined
    ? Effect.fail({ _tag: "NotFound" as const, detail: "session not found" })
    : Effect.succeed(sessionView(session, call.at))
}

/** What a consent form offers if the session is created without naming features. */
const usualFeatures = featuresOf([
  "es-tax-agency:website",
  "es-social-security:website",
  "es-university:website",
  "es-traffic:website",
])

export const createSession = Effect.fnUntraced(function* (request: CreateRequest) {
  const call = yield* beginCall
  return yield* answered(call, decideCreate(call, request, usualFeatures))
})

export const viewSession = Effect.fnUntraced(function* (session_id: string) {
  const call = yield* beginCall
  return yield* answered(call, decideView(call, session_id))
})

export const takeStep = Effect.fnUntraced(function* (session_id: string, request: StepRequest) {
  const call = yield* beginCall
  return yield* answered(call, decideStep(call, session_id, request))
})
