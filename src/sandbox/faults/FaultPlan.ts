/**
 * Decides which calls go wrong: a fold of calls over a file of faults. A draw depends on the file's seed,
 * the rule, the endpoint, the customer and the number of that customer's call there, never on what other
 * customers do meanwhile, so that a run is repeatable whatever the order of its calls.
 */
import type { Fault, Faults } from "./Faults.ts"
import { seeded } from "../state/Seeded.ts"

/** A call as the rules see it; what a request does not show is absent. */
export interface Call {
  readonly endpoint: string
  readonly customer?: string | undefined
  readonly engine?: string | undefined
  readonly application?: string | undefined
}

/** What was counted so far. It belongs to one service; only `judgeCall` changes it. */
export interface FaultTally {
  /** Calls that each rule is about, by the rule's position in the file. */
  readonly matched: Map<number, number>
  /** Calls of one customer (or of no particular one) to one endpoint. */
  readonly calls: Map<string, number>
  /** Faults that happened, by the rule's position in the file. */
  readonly injected: Map<number, number>
}

export const emptyTally = (): FaultTally => ({ matched: new Map(), calls: new Map(), injected: new Map() })

const increase = <Key>(counts: Map<Key, number>, key: Key): number => {
  const count = (counts.get(key) ?? 0) + 1
  counts.set(key, count)
  return count
}

const isAbout = (fault: Fault, call: Call): boolean => {
  const endpoints = typeof fault.on === "string" ? [fault.on] : fault.on
  const endpoint = endpoints.includes("*") || endpoints.includes(call.endpoint)
  const agrees = (wanted: string | undefined, is: string | undefined) => wanted === undefined || wanted === is
  return (
    endpoint &&
    agrees(fault.customer, call.customer) &&
    agrees(fault.engine, call.engine) &&
    agrees(fault.application, call.application)
  )
}

/** Whether the rule applies to its `matched`-th call, which is the customer's `nth` at this endpoint. */
const strikes = (
  seed: number,
  index: number,
  fault: Fault,
  call: Call,
  { matched, nth }: { readonly matched: number; readonly nth: number },
): boolean => {
  if (fault.script !== undefined) return fault.script.includes(matched)
  if (fault.first !== undefined) return matched <= fault.first
  if (fault.rate === undefined) return true
  return seeded("fault", seed, index, call.endpoint, call.customer ?? "", nth).chance(fault.rate)
}

/** What happens to this call, if anything: the first rule of the file that applies wins. */
export const judgeCall = (faults: Faults, tally: FaultTally, call: Call): Fault | undefined => {
  const nth = increase(tally.calls, JSON.stringify([call.endpoint, call.customer ?? null]))
  const struck = faults.faults.flatMap((fault, index) => {
    if (!isAbout(fault, call)) return []
    const matched = increase(tally.matched, index)
    return strikes(faults.seed ?? 1, index, fault, call, { matched, nth }) ? [{ fault, index }] : []
  })
  const [first] = struck
  if (first === undefined) return undefined
  increase(tally.injected, first.index)
  return first.fault
}
