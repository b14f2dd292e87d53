/** The life of a flow session as a pure function of its steps: moves, events, random walks, replays. */
import { isDeepStrictEqual } from "node:util"
import { describe, expect, it } from "@effect/vitest"
import { Clock, Effect, Schema } from "effect"
import * as fc from "fast-check"
import { flowEvents, sessionCursors, sessionStatusCodes } from "../../../src/service/Vocabulary.ts"
import { allowedSteps, createSession, flowSessionBody } from "../../../src/sandbox/flows/FlowSessions.ts"
import { readFlowResults, takeStep } from "../../../src/sandbox/flows/FlowSessions.ts"
import type { StepRequest } from "../../../src/sandbox/flows/FlowSessions.ts"
import { flowMoves } from "../../../src/sandbox/state/FlowMoves.ts"
import { flowEventsOf, flowLifeOf, flowMomentOf } from "../../../src/sandbox/state/FlowTimeline.ts"
import { newFlowSession } from "../../../src/sandbox/state/FlowTimeline.ts"
import type { FlowSession } from "../../../src/sandbox/state/FlowTimeline.ts"
import { planStanding, readFlowPlan, sessionWords } from "../../../src/sandbox/flows/StandingSessions.ts"
import { standingScripts, standingSessionId } from "../../../src/sandbox/flows/StandingSessions.ts"
import {
  CallingApplication,
  SandboxEvent,
  applyEvent,
  emptyState,
} from "../../../src/sandbox/state/SandboxState.ts"
import type { Application, SandboxState } from "../../../src/sandbox/state/SandboxState.ts"
import { Core, newCallWatch, type SandboxCore } from "../../../src/sandbox/core/SandboxCore.ts"
import { todaysReading } from "../../../src/sandbox/state/Reading.ts"
import { connection, nightStart } from "../flows/FlowWalk.ts"

const seed = 7
const application = "65f0c0ffee00000000000001"

const scripted = (script: number): FlowSession => {
  const plan = planStanding(seed, nightStart, standingSessionId(script))
  if (plan === undefined) throw new Error(`no script ${script}`)
  return newFlowSession(plan.created, plan.steps, nightStart)
}
const named = (name: string) => scripted(standingScripts.findIndex((script) => script.name === name))

/** Handlers of the service without HTTP, at moments of the walk's choosing, with the events they caused. */
class DirectCaller {
  readonly events: Array<SandboxEvent> = []
  readonly core: SandboxCore = {
    seed: 7,
    reading: todaysReading,
    state: emptyState(),
    journal: { append: (events) => void this.events.push(...events) },
    inputs: new Map(),
    listeners: new Set(),
    watch: newCallWatch(7, undefined, 0),
  }
  now: number

  constructor(now: number) {
    this.now = now
  }

  /** The answer, or the refusal. */
  call<Answer, Refusal>(
    app_id: string,
    handler: Effect.Effect<Answer, Refusal, Core | CallingApplication>,
  ): Answer | Refusal {
    const application: Application = { app_id, mayTokenize: app_id !== "incapable" }
    const millis = () => this.now
    const nanos = () => BigInt(this.now) * 1_000_000n
    const clock: Clock.Clock = {
      currentTimeMillisUnsafe: millis,
      currentTimeMillis: Effect.sync(millis),
      currentTimeNanosUnsafe: nanos,
      currentTimeNanos: Effect.sync(nanos),
      monotonicTimeNanosUnsafe: nanos,
      monotonicTimeNanos: Effect.sync(nanos),
      sleep: () => Effect.never,
    }
    return Effect.runSync(
      handler.pipe(
        Effect.match({ onFailure: (refusal) => refusal, onSuccess: (answer) => answer }),
        Effect.provideService(Core, this.core),
        Effect.provideService(CallingApplication, application),
        Effect.provideService(Clock.Clock, clock),
      ),
    )
  }
}

/** A move of a walk: how long it waits first, and what it then tries. */
const tries: ReadonlyArray<StepRequest> = [
  { _tag: "start", user_ip: "198.51.100.1" },
  { _tag: "consent" },
  { _tag: "consent", features: ["academic_data"], documents: [] },
  { _tag: "connect", ...connection("queue-1+run-40+records-6+late-600") },
  { _tag: "connect", ...connection("queue-0+run-0+records-3+end-INCORRECT_CREDENTIALS") },
  { _tag: "connect", ...connection("queue-2+run-9+records-4+challenge-1+expire-60") },
  { _tag: "connect", ...connection("queue-0+end-TIMEOUT+run-30+records-5", "sandbox-tax:website") },
  { _tag: "connect", ...connection("neverfinal+run-3", "sandbox-tax:website") },
  { _tag: "answer", code: "1" },
  { _tag: "answer", code: "2" },
  { _tag: "leave" },
  { _tag: "cancel" },
  { _tag: "client-cancel" },
]
const moves = fc.array(
  fc.record({
    seconds: fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 90 }), fc.integer({ min: 0, max: 4_000 })),
    request: fc.constantFrom(...tries),
  }),
  { maxLength: 14 },
)
const words = fc.constantFrom("", "", "noconsent", "idle-60", "system-100", "broken", "company")

interface Walked {
  readonly state: SandboxState
  readonly events: ReadonlyArray<SandboxEvent>
  readonly session_id: string
  readonly end: number
  /** What the walk saw while it lasted. */
  readonly bodies: ReadonlyArray<{ readonly at: number; readonly body: ReturnType<typeof flowSessionBody> }>
}

const walkAtRandom = (
  behaviour: string,
  steps: typeof moves extends fc.Arbitrary<infer A> ? A : never,
): Walked => {
  const caller = new DirectCaller(nightStart)
  const bodies: Array<Walked["bodies"][number]> = []
  const features = ["academic_data", ...taxFeatures] as const
  const created = caller.call(application, createSession({ customer_id: "c-1", behaviour, features }))
  const session_id = "session_id" in created ? created.session_id : ""
  const look = () => {
    const session = caller.core.state.flows.sessions.get(session_id)
    if (session === undefined) throw new Error("the session is gone")
    bodies.push({ at: caller.now, body: flowSessionBody(seed, session, caller.now) })
    return session
  }
  for (const { seconds, request } of steps) {
    caller.now += seconds * 1_000
    const allowed = allowedSteps(look(), caller.now)
    const answer = caller.call(application, takeStep(session_id, request))
    if (!("_tag" in answer) || answer._tag === "Invalid") expect(allowed).toContain(request._tag)
    caller.call(application, readFlowResults(session_id))
    look()
  }
  return { state: caller.core.state, events: caller.events, session_id, end: caller.now, bodies }
}
const taxFeatures = [
  "customer_information_read",
  "yearly_individual_tax",
  "properties_data",
  "vehicles_data",
] as const

const statuses: ReadonlySet<string> = new Set(sessionStatusCodes)
const cursors: ReadonlySet<string> = new Set(sessionCursors)

/** Promises of every walk. */
const brokenPromises = ({ state, events, session_id, end, bodies }: Walked): ReadonlyArray<string> => {
  const session = state.flows.sessions.get(session_id)
  if (session === undefined) return ["the session is there"]
  const broken = new Set<string>()
  const promise = (name: string, kept: boolean) => void (kept || broken.add(name))
  const { phases } = session
  for (const { status, cursor } of phases) {
    promise("documented statuses and cursors only", statuses.has(status) && cursors.has(cursor))
  }
  promise(
    "phases in order",
    phases.every(({ from }, index) => from >= (phases[index - 1]?.from ?? from)),
  )
  promise(
    "nothing after the end",
    phases.slice(0, -1).every(({ closed }) => !closed),
  )
  const raised = flowEventsOf(session)
  const names = raised.map(({ event }) => event)
  promise("every event at most once", new Set(names).size === names.length)
  promise(
    "events in their order",
    names.every((name, index) => flowEvents.indexOf(name) >= flowEvents.indexOf(names[index - 1] ?? name)),
  )
  const last = phases.at(-1) ?? phases[0]
  promise("ended always", last.closed === names.includes("es-public-administration:ended"))
  const finals = bodies.filter(({ body }) => body.is_closed)
  const later = flowSessionBody(seed, session, Math.max(end, last.from) + 1_000_000)
  const reference = JSON.stringify(later)
  promise(
    "final results never change",
    finals.every(({ body }) => JSON.stringify(body) === reference),
  )
  promise(
    "partial before, final after",
    bodies.every(({ at, body }) => at === last.from || body.is_closed === (last.closed && at > last.from)),
  )
  const replayed = emptyState()
  const journal = events.map((event) => JSON.stringify(event))
  for (const line of journal) {
    applyEvent(replayed, Schema.decodeUnknownSync(Schema.fromJsonString(SandboxEvent))(line))
  }
  promise("replaying the events gives the same state", isDeepStrictEqual(replayed.flows, state.flows))
  promise("no parameter in an event", !journal.some((line) => line.includes("correct horse")))
  return [...broken]
}

const stepsOf = (...steps: ReadonlyArray<readonly [seconds: number, request: number]>) =>
  steps.flatMap(([seconds, index]) => {
    const request = tries[index]
    return request === undefined ? [] : [{ seconds, request }]
  })

it("random walks through the widget [flow-rule 3] keep every promise, and take every move of the table and no other status or cursor", () => {
  const taken = new Set<string>()
  const note = (session: FlowSession | undefined) => {
    for (const { move } of session?.phases ?? []) taken.add(move)
  }
  const noteWalk = ({ state, session_id }: Walked) => note(state.flows.sessions.get(session_id))
  noteWalk(walkAtRandom("", stepsOf([0, 0], [0, 1], [0, 5], [5, 9], [1, 8])))
  fc.assert(
    fc.property(words, moves, (behaviour, steps) => {
      const walk = walkAtRandom(behaviour, steps)
      expect(brokenPromises(walk)).toEqual([])
      noteWalk(walk)
    }),
    { numRuns: 100, seed: 1 },
  )
  for (const script of standingScripts.keys()) note(scripted(script))
  expect([...taken].toSorted()).toEqual(Object.keys(flowMoves).toSorted())
})

describe("flow events", () => {
  const times = (session: FlowSession) =>
    flowEventsOf(session).map(({ event, at }) => [event.split(":")[1], (at - nightStart) / 1_000])

  it("[event es-public-administration:partial] once, when the customer leaves while a source works", () => {
    expect(times(named("partial"))).toEqual([
      ["started", -300],
      ["consent", -285],
      ["partial", -200],
      ["ended", 360],
    ])
    expect(times(named("completed")).map(([name]) => name)).toEqual(["started", "consent", "ended"])
    // Two sources work when the customer leaves, and one is done before the other.
    const { state, session_id } = walkAtRandom("", stepsOf([0, 0], [0, 1], [0, 3], [0, 6], [9, 10]))
    const session = state.flows.sessions.get(session_id)
    expect(session === undefined ? [] : times(session)).toEqual([
      ["started", 0],
      ["consent", 0],
      ["partial", 9],
      ["ended", 641],
    ])
  })
})

describe("the life of a session", () => {
  it("ignores steps that are not allowed where they stand", () => {
    const { created, steps } = named("partial")
    const late = { at: nightStart, step: { _tag: "consent" as const, features: [], documents: [] } }
    expect(flowLifeOf({ created, steps: [...steps, late] })).toEqual(flowLifeOf({ created, steps }))
  })

  it("survives a clock that is set back between two steps", () => {
    const { created, steps } = named("client_cancelled")
    const jumped = steps.map((taken, index) =>
      index === 0 ? taken : { ...taken, at: taken.at - 86_400_000 },
    )
    const { phases } = flowLifeOf({ created, steps: jumped })
    expect(phases.map(({ move }) => move)).toEqual(["created", "started", "consented", "client_cancelled"])
    expect(new Set(phases.slice(1).map(({ from }) => from)).size).toBe(1)
  })

  it("reads as its first phase before it began", () => {
    const { phases } = named("completed")
    expect(flowMomentOf(phases, phases[0].from - 1)).toBe(phases[0])
  })

  it("every word of a session changes its plan, and unknown ones do not", () => {
    const usual = readFlowPlan("")
    for (const [word] of sessionWords) {
      expect([word, readFlowPlan(word.replace("-N", "-77"))]).not.toEqual([word, usual])
    }
    expect(readFlowPlan("idle-x+whatever+locked")).toEqual(usual)
  })
})
