/**
 * The only place where the embedded service's state changes: events go to the journal first, then into the
 * fold, then to listeners. A decision and its events are settled in one synchronous step, so that the state
 * that was decided on is the state that changes.
 */
import { Clock, Context, Effect } from "effect"
import { given } from "../../base/Schemas.ts"
import { emptyTally, faultName } from "../faults/Faults.ts"
import type { Fault, FaultTally, Faults, JudgedCall } from "../faults/Faults.ts"
import type { Journal } from "../state/Journal.ts"
import type { FullReading } from "../state/Reading.ts"
import { CallingApplication, applyEvent } from "../state/SandboxState.ts"
import type { Application, SandboxEvent, SandboxState } from "../state/SandboxState.ts"

/** Receives new events once they are in the state; it must neither fail nor record events itself. */
export type Listener = (events: ReadonlyArray<SandboxEvent>) => void

export interface SandboxCore {
  readonly seed: number
  readonly reading: FullReading
  readonly state: SandboxState
  readonly journal: Pick<Journal, "append"> | undefined
  /** Values of wrong parameters, for the echo; never journaled, so a restart forgets them. */
  readonly inputs: Map<string, ReadonlyArray<unknown>>
  readonly listeners: Set<Listener>
  /** What creates no event: reads that were counted, faults that happened. */
  readonly watch: CallWatch
}

/** What the handlers of one service share. */
export class Core extends Context.Service<Core, SandboxCore>()("nightjar/sandbox/Core") {}

/** Records what the current call's answer delivers, once all of it is sent: never, if it reaches nobody. */
export const WhenSent = Context.Reference<(record: () => void) => void>("nightjar/sandbox/WhenSent", {
  defaultValue: () => (record) => record(),
})

/** What a call is decided upon: the state, the moment in which it came, and who makes it. */
export interface Look extends Pick<SandboxCore, "seed" | "reading" | "state"> {
  readonly at: number
  readonly application: Application
}

/** A call with all that its handler works on. */
export interface Call extends SandboxCore, Look {
  readonly whenSent: (record: () => void) => void
}

export const beginCall = Effect.gen(function* () {
  const core = yield* Core
  const at = yield* Clock.currentTimeMillis
  const call: Call = { ...core, at, application: yield* CallingApplication, whenSent: yield* WhenSent }
  return call
})

type Events = ReadonlyArray<SandboxEvent>
/** What a call answers or is refused with, as the contract's endpoint says it, and what it changes. */
type Decision = { readonly events: Events } & ({ readonly answer: unknown } | { readonly refusal: unknown })
type AnswerOf<Decided> = Decided extends { readonly answer: infer Answer } ? Answer : never
type RefusalOf<Decided> = Decided extends { readonly refusal: infer Refusal } ? Refusal : never

export const answered = <const Answer>(answer: Answer, ...events: Events) => ({ answer, events })
export const refused = <const Refusal>(refusal: Refusal, ...events: Events) => ({ refusal, events })

export const recordEvents = (core: SandboxCore, events: Events): void => {
  core.journal?.append(events)
  for (const event of events) applyEvent(core.state, event)
  if (events.length > 0) for (const listener of core.listeners) listener(events)
}

const isDelivery = ({ _tag }: SandboxEvent): boolean => _tag === "RecordsDelivered"

/** Records what was decided on a call, and answers it; a delivery is recorded once the answer is sent. */
export const settle = <Decided extends Decision>(
  call: Call,
  decision: Decided,
): Effect.Effect<AnswerOf<Decided>, RefusalOf<Decided>> => {
  const delivered = decision.events.filter(isDelivery)
  recordEvents(
    call,
    decision.events.filter((event) => !isDelivery(event)),
  )
  if (delivered.length > 0) call.whenSent(() => recordEvents(call, delivered))
  return "answer" in decision
    ? Effect.succeed(decision.answer as AnswerOf<Decided>)
    : Effect.fail(decision.refusal as RefusalOf<Decided>)
}

/** An endpoint's handler: what it decides on a call is recorded and answered. */
export const decidedBy =
  <Args extends ReadonlyArray<unknown>, Decided extends Decision>(
    decide: (call: Call, ...args: Args) => Decided,
  ) =>
  (...args: Args) =>
    Effect.flatMap(beginCall, (call) => settle(call, decide(call, ...args)))

// Calls that create no event are the most frequent ones: counted in memory since the service began.

/** Polling limits: not shown; own choice: more than five reads less than a second after the one before. */
const tooSoonMs = 1_000
export const tooSoonMax = 5
/** Section 8 advises once or twice a day; own choice: more than sixty lists within one hour are a loop. */
const catalogueWindowMs = 3_600_000
const catalogueMax = 60
const recentMax = 100

const unread = {
  count: 0,
  lastAt: Number.NEGATIVE_INFINITY,
  /** Infinite after one read. */
  shortestMs: Number.POSITIVE_INFINITY,
  /** Reads less than a second after the one before. */
  tooSoon: 0,
}
/** `brokenAt`: when there were too many. */
export type StateReads = typeof unread & { brokenAt?: number }

interface CatalogueReads {
  count: number
  windowFrom: number
  inWindow: number
  brokenAt?: number
}

export interface FaultSeen {
  readonly at: number
  readonly endpoint: string
  readonly fault: string
  readonly customer_id?: string
}

/** The file of faults, what was counted for it, and the newest ones that happened. */
export interface FaultWatch {
  readonly file: Faults
  readonly tally: FaultTally
  readonly recent: Array<FaultSeen>
}

export interface CallWatch {
  /** When counting began: a restart forgets what came before. */
  readonly since: number
  /** By execution. */
  readonly stateReads: Map<string, StateReads>
  /** By application. */
  readonly catalogueReads: Map<string, CatalogueReads>
  readonly faults: FaultWatch | undefined
}

/** Faults without a seed of their own follow the service's. */
export const newCallWatch = (seed: number, faults: Faults | undefined, since: number): CallWatch => ({
  since,
  stateReads: new Map(),
  catalogueReads: new Map(),
  faults: faults === undefined ? undefined : { file: { seed, ...faults }, tally: emptyTally(), recent: [] },
})

/** Only for existing executions: their number limits the memory. */
export const noteStateRead = ({ stateReads }: CallWatch, execution_id: string, at: number): void => {
  const reads: StateReads = stateReads.get(execution_id) ?? { ...unread }
  stateReads.set(execution_id, reads)
  const since = at - reads.lastAt
  reads.lastAt = at
  reads.count += 1
  reads.shortestMs = Math.min(reads.shortestMs, since)
  if (since < tooSoonMs) reads.tooSoon += 1
  if (reads.tooSoon > tooSoonMax) reads.brokenAt ??= at
}

export const noteCatalogueRead = ({ catalogueReads }: CallWatch, application: string, at: number): void => {
  const reads = catalogueReads.get(application) ?? { count: 0, windowFrom: at, inWindow: 0 }
  catalogueReads.set(application, reads)
  reads.count += 1
  if (at - reads.windowFrom >= catalogueWindowMs) {
    reads.windowFrom = at
    reads.inWindow = 0
  }
  reads.inWindow += 1
  if (reads.inWindow > catalogueMax) reads.brokenAt ??= at
}

export const noteFault = ({ recent }: FaultWatch, at: number, call: JudgedCall, fault: Fault): void => {
  const { endpoint, customer } = call
  recent.push({ at, endpoint, fault: faultName(fault), ...given({ customer_id: customer }) })
  if (recent.length > recentMax) recent.shift()
}
