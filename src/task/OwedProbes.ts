/**
 * Starts whose answer was lost and that are sent once more, by engine, in the order in which they were lost.
 * Their slots and accounts stay taken meanwhile. And what decides how many starts an engine gets at all.
 */
import type { EngineReference } from "../service/Ids.ts"
import type { Candidate } from "../service/Execution.ts"

/** How many starts an engine may get, and who is first while it is in doubt. */
export interface StartGate {
  readonly room: (engine: EngineReference) => number
  readonly isInDoubt: (engine: EngineReference) => boolean
  readonly trialOrder: (engine: EngineReference) => (one: Candidate, other: Candidate) => number
}

export const openGate: StartGate = { room: () => Infinity, isInDoubt: () => false, trialOrder: () => () => 0 }

interface Owed {
  readonly candidate: Candidate
  readonly notBefore: number
}

export class OwedProbes {
  readonly #engines = new Map<EngineReference, Array<Owed>>()

  add(candidate: Candidate, notBefore: number): void {
    const owed = this.#engines.get(candidate.engine_reference) ?? []
    this.#engines.set(candidate.engine_reference, owed)
    owed.push({ candidate, notBefore })
  }

  /** The first whose time has come, on an engine that may get it. */
  take(now: number, mayStart: (engine: EngineReference) => boolean): Candidate | undefined {
    for (const [engine, owed] of this.#engines) {
      if (!mayStart(engine)) continue
      const at = owed.findIndex(({ notBefore }) => notBefore <= now)
      const [found] = at < 0 ? [] : owed.splice(at, 1)
      if (owed.length === 0) this.#engines.delete(engine)
      if (found !== undefined) return found.candidate
    }
    return undefined
  }

  /** When the first of each engine may be sent. */
  firsts(): ReadonlyArray<readonly [engine: EngineReference, at: number]> {
    return [...this.#engines].map(([engine, owed]) => [
      engine,
      Math.min(...owed.map(({ notBefore }) => notBefore)),
    ])
  }

  values(): ReadonlyArray<Candidate> {
    return [...this.#engines.values()].flatMap((owed) => owed.map(({ candidate }) => candidate))
  }

  remove(isMeant: (candidate: Candidate) => boolean): ReadonlyArray<Candidate> {
    const removed = this.values().filter(isMeant)
    for (const { engine_reference } of removed) this.#engines.delete(engine_reference)
    return removed
  }
}
