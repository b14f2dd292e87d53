/**
 * The life of a flow session, computed from how it was created and the steps taken in it: `flowLifeOf` lays
 * it out as phases and sources, `flowMomentOf` reads it at any time, `flowEventsOf` says when each event of
 * section 6.2 happens. Pure: no timer runs, and a session that nobody reads costs nothing.
 */
import { flowMoves, refusalOf } from "./FlowMoves.ts"
import type { FlowMove, FlowMoveName, FlowPhase, FlowSessionCreated, FlowSessionEvent } from "./FlowMoves.ts"
import type { FlowSourcePlan, TakenStep } from "./FlowMoves.ts"
import type { ErrorItem, Retrieval } from "./ResultsPlan.ts"
import { acceptedIn, afterAsking, endIn, lifeOf, statusCodeOf, unread } from "./Timeline.ts"
import type { ChallengeAnswer, SessionReads, Stop } from "./Timeline.ts"
import type { FlowEventName, StatusReason } from "../../service/Vocabulary.ts"

interface GivenAnswer extends ChallengeAnswer {
  readonly payload_errors: ReadonlyArray<ErrorItem>
}

/** A source of a session: read like an execution, but inside the widget. */
export interface FlowSource extends Retrieval {
  readonly source_id: string
  readonly answers: ReadonlyArray<GivenAnswer>
}

interface FlowLife {
  readonly phases: readonly [FlowPhase, ...ReadonlyArray<FlowPhase>]
  readonly sources: ReadonlyArray<FlowSource>
}

/** How a session was created, and the steps taken in it. */
export interface FlowInput {
  readonly created: FlowSessionCreated
  readonly steps: ReadonlyArray<TakenStep>
}

/** The customer whose records the sources hold; a session without one has an anonymous customer. */
export const recordsCustomerOf = ({ customer_id, session_id }: FlowSessionCreated): string =>
  customer_id ?? `session-${session_id}`

const liveSource = (
  created: FlowSessionCreated,
  at: number,
  plan: FlowSourcePlan,
  answers: ReadonlyArray<GivenAnswer>,
  stop?: Stop,
): FlowSource => ({
  source_id: plan.source_id,
  answers,
  started: { at, session_id: created.session_id, customer_id: recordsCustomerOf(created), ...plan },
  phases: lifeOf(plan.timeline, at, answers, stop),
})

/** When a source is final. */
const settlesAt = (source: FlowSource): number => {
  const { neverFinal, lateMs } = source.started.results
  const end = endIn(source.phases)
  if (end === undefined || neverFinal) return Number.POSITIVE_INFINITY
  return end.from + (end.authentication_status === "AUTH_OK" ? lateMs : 0)
}

/** How the end of a run ends its session; any other has failed. */
export const sessionEnds: Readonly<Partial<Record<StatusReason, FlowMoveName>>> = {
  COMPLETED: "completed",
  PARTIAL: "completed",
  TIMEOUT: "timed_out",
  ACTION_TIMEOUT: "timed_out",
  SYSTEM_CANCELLED: "system_cancelled",
  CLIENT_CANCELLED: "client_cancelled",
  USER_CANCELLED: "customer_cancelled",
}

/** Not shown; own choice: one successful source completes the session, else the last one's end decides. */
const outcomeOf = (sources: ReadonlyArray<FlowSource>): FlowMoveName => {
  if (sources.length === 0) return "customer_cancelled"
  const ends = sources.map(({ phases }) => endIn(phases))
  if (ends.some((end) => end !== undefined && sessionEnds[end.status_reason] === "completed"))
    return "completed"
  const last = ends.reduce((latest, end) => ((end?.from ?? 0) >= (latest?.from ?? 0) ? end : latest))
  if (last === undefined) return "failed"
  if (statusCodeOf(last.status_reason) === "CONFIGURATION_ERROR") return "misconfigured"
  return sessionEnds[last.status_reason] ?? "failed"
}

/** Something that happens by itself at its time. */
type Turn = { readonly at: number } & (
  | { readonly kind: "login" | "settled"; readonly engine_reference: string }
  | { readonly kind: "system" }
)

const createdPhase = (from: number): FlowPhase => ({
  from,
  move: "created",
  status: flowMoves.created.status,
  cursor: "es-public-administration:welcome:init",
  started: false,
  consented: false,
  left: false,
  closed: false,
  working: [],
})

class Walk {
  readonly input: FlowInput
  readonly phases: [FlowPhase, ...Array<FlowPhase>]
  readonly sources: Array<FlowSource> = []
  turns: ReadonlyArray<Turn> = []
  constructor(input: FlowInput) {
    this.input = input
    this.phases = [createdPhase(input.created.at)]
  }

  get now(): FlowPhase {
    return this.phases.at(-1) ?? this.phases[0]
  }

  lay(at: number, name: FlowMoveName, change: Partial<FlowPhase> = {}) {
    const move: FlowMove = flowMoves[name]
    const cursor = move.cursor === "kept" ? this.now.cursor : move.cursor
    const { status, closes: closed } = move
    const working = closed ? [] : this.now.working
    this.phases.push({ ...this.now, from: at, move: name, status, cursor, closed, working, ...change })
  }

  /** An inactive customer while no source is working: the widget gives up. */
  idleAt(): number {
    const { started, left, closed, working, from } = this.now
    const isIdle = started && !left && !closed && working.length === 0
    return isIdle ? from + this.input.created.plan.idleMs : Number.POSITIVE_INFINITY
  }

  giveUp() {
    const good = this.sources.length > 0 && outcomeOf(this.sources) === "completed"
    this.lay(this.idleAt(), good ? "completed" : "timed_out")
  }

  /** Lets everything happen that happens by itself until `at`. */
  passUntil(at: number) {
    for (;;) {
      if (this.now.closed) return
      const [turn] = this.turns
      const idleAt = this.idleAt()
      const isIdleFirst = Number.isFinite(idleAt) && idleAt <= at && idleAt <= (turn?.at ?? idleAt)
      if (isIdleFirst) return this.giveUp()
      if (turn === undefined || turn.at > at) return
      this.turns = this.turns.slice(1)
      this.take(turn)
    }
  }

  take(turn: Turn) {
    if (turn.kind === "system") return this.lay(turn.at, "system_cancelled")
    if (turn.kind === "login") return this.lay(turn.at, "logged_in")
    const working = this.now.working.filter((engine) => engine !== turn.engine_reference)
    if (working.length > 0) return this.lay(turn.at, this.now.move, { working })
    this.lay(turn.at, this.now.left ? outcomeOf(this.sources) : "source_over", { working })
  }

  wait(turn: Turn) {
    // A stable sort: at equal times a login is accepted before its source is done.
    if (Number.isFinite(turn.at)) this.turns = [...this.turns, turn].sort((a, b) => a.at - b.at)
  }

  connect(at: number, plan: FlowSourcePlan) {
    const answers = this.input.steps.flatMap((taken) =>
      taken.step._tag === "answer" && taken.step.source_id === plan.source_id
        ? [{ at: taken.at, right: taken.step.right, payload_errors: taken.step.payload_errors }]
        : [],
    )
    const source = liveSource(this.input.created, at, plan, answers)
    const { engine_reference } = plan
    this.sources.push(source)
    this.lay(at, "connected", { working: [...this.now.working, engine_reference] })
    const login = acceptedIn(source.phases)
    if (login !== undefined) this.wait({ at: login.from, kind: "login", engine_reference })
    this.wait({ at: settlesAt(source), kind: "settled", engine_reference })
  }

  step(at: number, { step }: TakenStep) {
    const { plan } = this.input.created
    const engine = step._tag === "connect" ? step.source.engine_reference : undefined
    if (refusalOf(this.now, plan.asksConsent, step._tag, engine) !== undefined) return
    switch (step._tag) {
      case "start":
        this.lay(at, "started", { started: true })
        if (plan.broken) return this.lay(at, "misconfigured")
        if (plan.systemMs !== undefined) this.wait({ at: at + plan.systemMs, kind: "system" })
        return
      case "consent":
        return this.lay(at, "consented", { consented: true })
      case "connect":
        return this.connect(at, step.source)
      case "answer":
        return this.lay(at, "answered")
      case "leave":
        if (this.now.working.length > 0) return this.lay(at, "left", { left: true })
        return this.lay(at, outcomeOf(this.sources), { left: true })
      case "cancel":
        return this.lay(at, "customer_cancelled")
      case "client-cancel":
        return this.lay(at, "client_cancelled")
    }
  }
}

/** The sources as the end of the session left them: those that were still working stopped there. */
const cutSources = (walk: Walk): ReadonlyArray<FlowSource> => {
  const { closed, from } = walk.now
  if (!closed) return walk.sources
  return walk.sources.map((source) => {
    if (settlesAt(source) <= from) return source
    const { source_id, started } = source
    const stop = { at: from, reason: "CLIENT_CANCELLED" } as const
    const before = source.answers.filter((answer) => answer.at <= from)
    return liveSource(walk.input.created, started.at, { ...started, source_id }, before, stop)
  })
}

/** Steps are in the order of their times; one that is not allowed at its time changes nothing. */
export const flowLifeOf = (input: FlowInput): FlowLife => {
  const walk = new Walk(input)
  let at = input.created.at
  for (const taken of input.steps) {
    // A clock that was set back must not put a step before the previous one.
    at = Math.max(at, taken.at)
    walk.passUntil(at)
    walk.step(at, taken)
  }
  walk.passUntil(Number.POSITIVE_INFINITY)
  return { phases: walk.phases, sources: cutSources(walk) }
}

/** The state at `at`; a time before the first phase reads as the first phase. */
export const flowMomentOf = (phases: FlowLife["phases"], at: number): FlowPhase =>
  phases.findLast((phase) => phase.from <= at) ?? phases[0]

/**
 * 6.2: every event of the session's life so far and, if no further step is taken, in the future, each with
 * the status that its move caused. `partial` appears at most once; `ended` once, unless a word keeps the
 * session open forever.
 */
export const flowEventsOf = (session: Pick<FlowLife, "phases">) => {
  const seen = new Set<FlowEventName>()
  return session.phases.flatMap(({ move: name, from, status }) => {
    const { event }: FlowMove = flowMoves[name]
    if (event === undefined || seen.has(event)) return []
    seen.add(event)
    return [{ event, at: from, status }]
  })
}

export interface FlowSession extends FlowLife, SessionReads {
  readonly created: FlowSessionCreated
  /** A session that nobody created: it existed when it was first read, at `foundAt`. */
  readonly foundAt?: number
  /** In the order of their times. */
  readonly steps: ReadonlyArray<TakenStep>
}

export interface FlowState {
  readonly sessions: Map<string, FlowSession>
}

export const newFlowSession = (
  created: FlowSessionCreated,
  steps: ReadonlyArray<TakenStep> = [],
  foundAt?: number,
): FlowSession => ({
  created,
  steps,
  ...(foundAt === undefined ? {} : { foundAt }),
  ...flowLifeOf({ created, steps }),
  ...unread,
})

/** A standing session's later steps already exist: a new one takes its place between them. */
const withStep = (session: FlowSession, taken: TakenStep): FlowSession => {
  const later = session.steps.findIndex(({ at }) => at > taken.at)
  const steps = session.steps.toSpliced(later < 0 ? session.steps.length : later, 0, taken)
  return { ...session, steps, ...flowLifeOf({ created: session.created, steps }) }
}

/** The fold. Events about sessions that do not exist are ignored: a journal may have lost its beginning. */
export const applyFlowEvent = (state: FlowState, event: FlowSessionEvent): void => {
  if (event._tag === "FlowSessionCreated") {
    return void state.sessions.set(event.session_id, newFlowSession(event))
  }
  if (event._tag === "FlowSessionFound") {
    const { created, steps, at } = event
    return void state.sessions.set(created.session_id, newFlowSession(created, steps, at))
  }
  const session = state.sessions.get(event.session_id)
  if (session === undefined) return
  const isStep = event._tag === "FlowStepTaken"
  const next = isStep ? withStep(session, { at: event.at, step: event.step }) : afterAsking(session, event)
  state.sessions.set(event.session_id, next)
}
