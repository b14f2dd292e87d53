/**
 * Which tasks may run together and which comes next: the conflict rules of section 4.1, the job's limits, and
 * turns between engines so that a slow one starves nobody. No clock and no effect in here: the caller brings
 * the time.
 */

/** A task that wants to start an execution. */
export interface Candidate {
  readonly task_id: string
  readonly customer_id: string
  readonly engine_reference: string
  /** Credentials of one login are never in flight twice, whichever customers they stand for. */
  readonly fingerprint: string | undefined
}

export interface Limits {
  readonly max_in_flight: number
  readonly per_engine: number
}

interface Delayed {
  readonly candidate: Candidate
  readonly notBefore: number
  readonly order: number
}

/** How many conflicting candidates of one engine are passed over in search of a startable one. */
const passedOverMax = 1_000

export class Schedule {
  readonly #limits: Limits
  readonly #ready = new Map<string, Array<Candidate>>()
  readonly #delayed: Array<Delayed> = []
  readonly #inFlight = new Map<string, Candidate>()
  readonly #taken = new Map<string, number>()
  readonly #engineCount = new Map<string, number>()
  readonly #engineClosedUntil = new Map<string, number>()
  #order = 0

  constructor(limits: Limits) {
    this.#limits = limits
  }

  /** Candidates that wait here, for a slot or for their time. */
  get waiting(): number {
    let count = this.#delayed.length
    for (const queue of this.#ready.values()) count += queue.length
    return count
  }

  get inFlight(): number {
    return this.#inFlight.size
  }

  /** Queues a candidate; it is not offered before `notBefore` (milliseconds, the caller's clock). */
  add(candidate: Candidate, notBefore = 0): void {
    if (notBefore <= 0) this.#queue(candidate.engine_reference).push(candidate)
    else insertByTime(this.#delayed, { candidate, notBefore, order: this.#order++ })
  }

  /** Counts an execution that is open already (one found in the ledger), without asking for a slot. */
  occupy(candidate: Candidate): void {
    this.#inFlight.set(candidate.task_id, candidate)
    for (const key of conflictKeys(candidate)) this.#taken.set(key, (this.#taken.get(key) ?? 0) + 1)
    count(this.#engineCount, candidate.engine_reference, 1)
  }

  /** The execution of this task is closed at the service: its slot and its customer are free. */
  release(task_id: string): void {
    const candidate = this.#inFlight.get(task_id)
    if (candidate === undefined) return
    this.#inFlight.delete(task_id)
    for (const key of conflictKeys(candidate)) count(this.#taken, key, -1)
    count(this.#engineCount, candidate.engine_reference, -1)
  }

  /** Nothing of this engine is offered before `until`. */
  closeEngine(engine_reference: string, until: number): void {
    this.#engineClosedUntil.set(engine_reference, until)
  }

  /** Takes the next candidate that may start now and counts it as in flight; undefined when there is none. */
  take(now: number): Candidate | undefined {
    this.#wake(now)
    if (this.#inFlight.size >= this.#limits.max_in_flight) return undefined
    for (const [engine, queue] of this.#ready) {
      if ((this.#engineCount.get(engine) ?? 0) >= this.#limits.per_engine) continue
      if ((this.#engineClosedUntil.get(engine) ?? 0) > now) continue
      const index = queue.findIndex((one, at) => at >= passedOverMax || !this.#conflicts(one))
      const candidate = index < 0 || index >= passedOverMax ? undefined : queue[index]
      if (candidate === undefined) continue
      queue.splice(index, 1)
      this.#ready.delete(engine)
      if (queue.length > 0) this.#ready.set(engine, queue)
      this.occupy(candidate)
      return candidate
    }
    return undefined
  }

  /** Takes away everything that still waits, for instance when the deadline has come. */
  drain(): ReadonlyArray<Candidate> {
    const all = [...this.#ready.values()].flat().concat(this.#delayed.map((one) => one.candidate))
    this.#ready.clear()
    this.#delayed.length = 0
    return all
  }

  /**
   * When `take` may offer something that it does not offer now, releases aside; undefined when only those can
   * help.
   */
  nextWake(now: number): number | undefined {
    let wake = this.#delayed[0]?.notBefore
    for (const engine of this.#ready.keys()) {
      const until = this.#engineClosedUntil.get(engine) ?? 0
      if (until > now && (wake === undefined || until < wake)) wake = until
    }
    return wake
  }

  #queue(engine: string): Array<Candidate> {
    const known = this.#ready.get(engine)
    if (known !== undefined) return known
    const queue: Array<Candidate> = []
    this.#ready.set(engine, queue)
    return queue
  }

  #wake(now: number): void {
    let due = 0
    while (due < this.#delayed.length && (this.#delayed[due]?.notBefore ?? Infinity) <= now) due++
    for (const { candidate } of this.#delayed.splice(0, due))
      this.#queue(candidate.engine_reference).push(candidate)
  }

  #conflicts(candidate: Candidate): boolean {
    return (
      this.#inFlight.has(candidate.task_id) || conflictKeys(candidate).some((key) => this.#taken.has(key))
    )
  }
}

const conflictKeys = ({ customer_id, engine_reference, fingerprint }: Candidate): ReadonlyArray<string> => {
  const customer = JSON.stringify([customer_id, engine_reference])
  return fingerprint === undefined ? [customer] : [customer, fingerprint]
}

const count = (counts: Map<string, number>, key: string, change: number): void => {
  const next = (counts.get(key) ?? 0) + change
  if (next <= 0) counts.delete(key)
  else counts.set(key, next)
}

const insertByTime = (delayed: Array<Delayed>, entry: Delayed): void => {
  let low = 0
  let high = delayed.length
  while (low < high) {
    const middle = (low + high) >>> 1
    const other = delayed[middle]
    if (other !== undefined && other.notBefore <= entry.notBefore) low = middle + 1
    else high = middle
  }
  delayed.splice(low, 0, entry)
}
