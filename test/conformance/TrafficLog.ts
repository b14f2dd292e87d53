/**
 * What the validating proxy has seen: exchanges by operation and status, and everything that did not fit
 * the document. Repeated complaints are counted, not repeated.
 */
import type { Exchange, Finding, TrafficCheck } from "./TrafficCheck.ts"

export interface TrafficLog {
  readonly record: (exchange: Exchange) => void
  readonly exchanges: () => number
  /** By `<operation> <status>`. */
  readonly counts: ReadonlyMap<string, number>
  /** Requests that do not fit the document and were refused, as they should be; by `<operation> <status>`. */
  readonly refused: ReadonlyMap<string, number>
  readonly mismatches: ReadonlyMap<string, number>
}

const increase = (counts: Map<string, number>, key: string) => counts.set(key, (counts.get(key) ?? 0) + 1)

export const makeTrafficLog = (
  check: TrafficCheck,
  seen: (exchange: Exchange, finding: Finding) => void = () => undefined,
): TrafficLog => {
  const counts = new Map<string, number>()
  const refused = new Map<string, number>()
  const mismatches = new Map<string, number>()
  let exchanges = 0
  return {
    counts,
    refused,
    mismatches,
    exchanges: () => exchanges,
    record: (exchange) => {
      exchanges += 1
      const finding = check(exchange)
      increase(counts, finding.at)
      if (finding.invalidRequest) increase(refused, finding.at)
      for (const mismatch of finding.mismatches) increase(mismatches, `${finding.at}: ${mismatch}`)
      seen(exchange, finding)
    },
  }
}

/** One line per operation: `readExecution  200 × 39, 202 × 140`. */
export const renderCounts = (counts: ReadonlyMap<string, number>): ReadonlyArray<string> => {
  const byOperation = new Map<string, Array<string>>()
  for (const [at, count] of [...counts].toSorted(([a], [b]) => (a < b ? -1 : 1))) {
    const split = at.lastIndexOf(" ")
    const [operation, status] = [at.slice(0, split), at.slice(split + 1)]
    const line = byOperation.get(operation) ?? []
    line.push(`${status} × ${count}`)
    byOperation.set(operation, line)
  }
  return [...byOperation].map(([operation, answers]) => `  ${operation.padEnd(20)}${answers.join(", ")}`)
}
