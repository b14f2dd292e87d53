/**
 * The only place where the embedded service's state changes: events go to the journal first, then into the
 * fold, then to listeners. A decision and its events are settled in one synchronous step, so that the state
 * that was decided on is the state that changes.
 */
import { Clock, Context, Effect } from "effect"
import { emptyTally, faultName } from "../faults/Faults.ts"
import type { Fault, FaultTally, Faults, JudgedCall } from "../faults/Faults.ts"
import type { Journal } from "../state/Journal.ts"
import type { FullReading } from "../state/Reading.ts"
import { CallingApplication, applyEvent } from "../state/SandboxState.ts"
import type { Application, SandboxEvent, SandboxState } from "../state/SandboxState.ts"

/** Receives new events once they are in the state; it must neither fail nor record events itself. */
export type Listener = (events: ReadonlyArray<SandboxEvent>) => void

/** The answer to a call, and what it changes. */
export interface Decision<Answer> {
  readonly answer: Answer
  readonly events: ReadonlyArray<SandboxEvent>
}

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

/** What a call is decided upon: the state, the moment in which it came, and who makes it. */
export interface Look extends Pick<SandboxCore, "seed" | "reading" | "state"> {
  readonly at: number
  readonly application: Application
}

/** What the handlers of one service share. */
export class Core extends Context.Service<Core, SandboxCore>()("nightjar/sandbox/Core") {}

/** A call with all that its handler works on. */
export type Call = SandboxCore & Look

export const beginCall = Effect.gen(function* () {
  const at = yield* Clock.currentTimeMillis
  const call: Call = { ...(yield* Core), at, application: yield* CallingApplication }
  return call
})

export const recordEvents = (core: SandboxCore, events: ReadonlyArray<SandboxEvent>): void => {
  core.journal?.append(events)
  for (const event of events) applyEvent(core.state, event)
  if (events.length > 0) for (const listener of core.listeners) listener(events)
}

export const settle = <Answer>(core: SandboxCore, decision: Decision<Answer>): Answer => {
  recordEvents(core, decision.events)
  return decision.answer
}

// Calls that create no event are the most frequent ones: counted in memory, forgotten by a restart.

/** Polling limits: not shown; own choice: more than five reads less than a second after the one before. */
const tooSoonMs = 1_000
export const tooSoonMax = 5
/** Section 8 advises once or twice a day; own choice: more than sixty lists within one hour are a loop. */
const catalogueWindowMs = 3_600_000
const catalogueMax = 60
const recentMax = 100

export interface StateReads {
  count: number
  lastAt: number
  /** Infinite after one read. */
  shortestMs: number
  /** Reads less than a second after the one before. */
  tooSoon: number
  /** When there were too many. */
  brokenAt: number | undefined
}

interface CatalogueReads {
  count: number
  windowFrom: number
  inWindow: number
  brokenAt: number | undefined
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
  /** By execution. */
  readonly stateReads: Map<string, StateReads>
  /** By application. */
  readonly catalogueReads: Map<string, CatalogueReads>
  readonly faults: FaultWatch | undefined
}

/** Faults without a seed of their own follow the service's. */
export const newCallWatch = (seed: number, faults: Faults | undefined): CallWatch => ({
  stateReads: new Map(),
  catalogueReads: new Map(),
  faults: faults === undefined ? undefined : { file: { seed, ...faults }, tally: emptyTally(), recent: [] },
})

/** Only for existing executions: their number limits the memory. */
export const noteStateRead = ({ stateReads }: CallWatch, execution_id: string, at: number): void => {
  const reads = stateReads.get(execution_id)
  if (reads === undefined) {
    const first = { count: 1, lastAt: at, shortestMs: Number.POSITIVE_INFINITY, tooSoon: 0 }
    stateReads.set(execution_id, { ...first, brokenAt: undefined })
    return
  }
  const since = at - reads.lastAt
  reads.count += 1
  reads.lastAt = at
  if (since < reads.shortestMs) reads.shortestMs = since
  if (since >= tooSoonMs) return
  reads.tooSoon += 1
  if (reads.tooSoon > tooSoonMax) reads.brokenAt ??= at
}

export const noteCatalogueRead = ({ catalogueReads }: CallWatch, application: string, at: number): void => {
  const reads = catalogueReads.get(application)
  if (reads === undefined) {
    catalogueReads.set(application, { count: 1, windowFrom: at, inWindow: 1, brokenAt: undefined })
    return
  }
  reads.count += 1
  if (at - reads.windowFrom >= catalogueWindowMs) {
    reads.windowFrom = at
    reads.inWindow = 0
  }
  reads.inWindow += 1
  if (reads.inWindow > catalogueMax) reads.brokenAt ??= at
}

export const noteFault = ({ recent }: FaultWatch, at: number, call: JudgedCall, fault: Fault): void => {
  recent.push({
    at,
    endpoint: call.endpoint,
    fault: faultName(fault),
    ...(call.customer === undefined ? {} : { customer_id: call.customer }),
  })
  if (recent.length > recentMax) recent.shift()
}
