/**
 * What the counted calls show an observer: how often states were read, who polled too fast or listed the
 * catalogue in a loop, which faults happened. Plain data without a parameter, a secret or a body.
 */
import type { CallWatch, FaultSeen, FaultWatch, StateReads } from "../core/CallWatch.ts"
import { faultName } from "../faults/Faults.ts"
import type { SandboxState } from "../state/SandboxState.ts"
import type { RuleBreak } from "./RuleBreak.ts"

export interface StateReadsSeen {
  readonly count: number
  /** The shortest time between two of them, in milliseconds; absent after only one. */
  readonly shortest_ms?: number
  /** Reads less than a second after the one before. */
  readonly too_soon: number
}

export interface FaultsSeen {
  /** In the order of the file, those that happened. */
  readonly injected: ReadonlyArray<{
    readonly fault: string
    readonly on: ReadonlyArray<string>
    readonly count: number
  }>
  /** The newest ones, oldest first. */
  readonly recent: ReadonlyArray<FaultSeen>
}

export interface WatchSeen {
  /** Absent if the service has no file of faults. */
  readonly faults?: FaultsSeen
  /** Lists of engines since the service began. */
  readonly catalogueReads: ReadonlyArray<{ readonly application: string; readonly count: number }>
}

export const stateReadsSeen = ({ count, shortestMs, tooSoon }: StateReads): StateReadsSeen => ({
  count,
  ...(Number.isFinite(shortestMs) ? { shortest_ms: shortestMs } : {}),
  too_soon: tooSoon,
})

const faultsSeen = ({ file, tally, recent }: FaultWatch): FaultsSeen => ({
  injected: file.faults.flatMap((fault, index) => {
    const count = tally.injected.get(index)
    if (count === undefined) return []
    return [{ fault: faultName(fault), on: typeof fault.on === "string" ? [fault.on] : fault.on, count }]
  }),
  recent: [...recent],
})

export const watchSeen = (watch: CallWatch): WatchSeen => ({
  ...(watch.faults === undefined ? {} : { faults: faultsSeen(watch.faults) }),
  catalogueReads: [...watch.catalogueReads].map(([application, { count }]) => ({
    application,
    count,
  })),
})

const pollingBreaks = (state: SandboxState, watch: CallWatch): ReadonlyArray<RuleBreak> =>
  [...watch.stateReads].flatMap(([execution_id, { brokenAt }]) => {
    const started = state.executions.get(execution_id)?.started
    if (brokenAt === undefined || started === undefined) return []
    const { application, customer_id, engine_reference } = started
    const about = { application, execution_id, customer_id, engine_reference }
    return [{ at: brokenAt, rule: "state_polled_too_fast", ...about }]
  })

const catalogueBreaks = (watch: CallWatch): ReadonlyArray<RuleBreak> =>
  [...watch.catalogueReads].flatMap(([application, { brokenAt }]) =>
    brokenAt === undefined ? [] : [{ at: brokenAt, rule: "catalogue_polled_in_loop", application }],
  )

/** Each once: for the execution that was polled, for the application that listed. */
export const watchedBreaks = (state: SandboxState, watch: CallWatch): ReadonlyArray<RuleBreak> => [
  ...pollingBreaks(state, watch),
  ...catalogueBreaks(watch),
]

/** 4.10: flow sessions that were read again within five seconds. */
export const flowBreaks = (state: SandboxState): ReadonlyArray<RuleBreak> =>
  [...state.flows.sessions.values()].flatMap(({ created, refusedAt }) =>
    refusedAt.map((at): RuleBreak => ({
      at,
      rule: "results_read_too_soon",
      application: created.application,
      session_id: created.session_id,
      ...(created.customer_id === undefined ? {} : { customer_id: created.customer_id }),
    })),
  )
