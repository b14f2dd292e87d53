/**
 * The only place where the embedded service's state changes: events go to the journal first, then into the
 * fold, then to listeners. A decision and its events are settled in one synchronous step, so that the state
 * that was decided on is the state that changes.
 */
import { Clock, Context, Effect } from "effect"
import type { CallWatch } from "./CallWatch.ts"
import { CallingApplication } from "../state/Application.ts"
import type { Application } from "../state/Application.ts"
import type { Journal } from "../state/Journal.ts"
import type { FullReading } from "../state/Reading.ts"
import type { SandboxEvent } from "../state/SandboxEvent.ts"
import { applyEvent } from "../state/SandboxState.ts"
import type { SandboxState } from "../state/SandboxState.ts"

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
