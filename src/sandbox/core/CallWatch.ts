/**
 * Calls that create no event but that observers want to know about: how often an execution's state and the
 * catalogue were read, and which faults happened. Counted cheaply and only in memory, because these are the
 * most frequent calls; a restart forgets it.
 */
import type { FaultTally, Call } from "../faults/FaultPlan.ts"
import { emptyTally } from "../faults/FaultPlan.ts"
import { faultName } from "../faults/Faults.ts"
import type { Fault, Faults } from "../faults/Faults.ts"

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

export interface CatalogueReads {
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

export const noteFault = ({ recent }: FaultWatch, at: number, call: Call, fault: Fault): void => {
  recent.push({
    at,
    endpoint: call.endpoint,
    fault: faultName(fault),
    ...(call.customer === undefined ? {} : { customer_id: call.customer }),
  })
  if (recent.length > recentMax) recent.shift()
}
