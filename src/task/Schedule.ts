/**
 * Which tasks may run together and which comes next: the conflict rules of section 4.1, the job's limits, and
 * what would be done last if it started now; turns between engines where nothing is known of that. It has no
 * clock and no effects: the caller passes the time. A blocked candidate is checked again only when what
 * blocked it is gone.
 */
import type { EngineReference, TaskId } from "../service/Ids.ts"
import { DelayQueue } from "../base/Time.ts"
import { hasNext, inLine, lengthOf, newLine, nextOf, shift, sortLine, type Line } from "../base/Text.ts"
import { conflictKeys, type Candidate } from "../service/Execution.ts"
import type { Claim, Limits, SlotShare } from "./SharedSlots.ts"

/** Why a candidate is not started yet: no free slot, its time, its engine, or what it conflicts with. */
export type WaitsFor = "slot" | "time" | "engine" | "conflict"

/** How many starts an engine may get, and who is first while it is in doubt. */
export interface StartGate {
  readonly room: (engine: EngineReference) => number
  readonly isInDoubt: (engine: EngineReference) => boolean
  readonly trialOrder: (engine: EngineReference) => (one: Candidate, other: Candidate) => number
}

const openGate: StartGate = { room: () => Infinity, isInDoubt: () => false, trialOrder: () => () => 0 }

/** A start whose answer was lost, and that is sent once more. */
interface OwedProbe {
  readonly candidate: Candidate
  readonly notBefore: number
}

export class Schedule {
  #limits: Limits
  readonly #gate: StartGate
  /** In the order in which they were lost. Their slots and accounts stay taken meanwhile. */
  #owed: ReadonlyArray<OwedProbe> = []
  /** Engines with candidates; the one that was served last comes last. */
  readonly #ready = new Map<EngineReference, Line<Candidate>>()
  readonly #delayed = new DelayQueue<Candidate>()
  /** Candidates that wait for a conflict key to be released, by that key and by their engine. */
  readonly #parked = new Map<string, Map<EngineReference, Line<Candidate>>>()
  readonly #inFlight = new Map<TaskId, Candidate>()
  readonly #taken = new Map<string, number>()
  readonly #engineCount = new Map<EngineReference, number>()
  readonly #engineClosedUntil = new Map<EngineReference, number>()
  readonly #share: SlotShare | undefined
  readonly #waitingOn = new Map<EngineReference, number>()
  /** How long the candidates that wait on an engine take together (milliseconds), as far as is known. */
  readonly #leftOn = new Map<EngineReference, number>()

  /** `share`: this run's part in the slots of its service, if other runs go on beside it. */
  constructor(limits: Limits, share?: SlotShare, gate: StartGate = openGate) {
    this.#limits = limits
    this.#gate = gate
    this.#share = share
  }

  /** Candidates that are waiting here, for a slot or for their time. */
  get waiting(): number {
    return [...this.#waitingOn.values()].reduce((all, one) => all + one, 0)
  }

  get limits(): Limits {
    return this.#limits
  }

  /** What it could start at once is what waits only for a slot, whatever other runs have open. */
  claim(now: number, engine?: EngineReference): Claim {
    if (engine !== undefined) {
      const line = this.#ready.get(engine)
      const wanted = line === undefined || this.closedUntil(engine) > now ? 0 : lengthOf(line)
      return { limit: this.#limits.per_engine, open: this.#engineCount.get(engine) ?? 0, wanted }
    }
    const claims = [...this.#ready.keys()].map((one) => this.claim(now, one))
    const wanted = claims.reduce(
      (all, one) => all + Math.min(one.wanted, Math.max(0, one.limit - one.open)),
      0,
    )
    return { limit: this.#limits.max_in_flight, open: this.#inFlight.size, wanted }
  }

  /** Only runs beside this one are in the way, and one of them may still move: it will wake this one. */
  isHeldUp(now: number): boolean {
    const share = this.#share
    const { limit, open, wanted } = this.claim(now)
    if (share === undefined || open >= limit || wanted === 0) return false
    const engines = [...this.#ready.keys()].filter((engine) => this.claim(now, engine).wanted > 0)
    const isHeld = [undefined, ...engines].some((engine) => !share.mayOpen(now, engine))
    return isHeld && share.standStill(now)
  }

  /** What is already in flight above a lower limit stays; nothing is taken until there is room again. */
  setLimits(limits: Limits): void {
    this.#limits = limits
    this.#share?.stir()
  }

  /** Queues a candidate; it is not offered before `notBefore` (milliseconds, the caller's clock). */
  add(candidate: Candidate, notBefore = 0): void {
    this.#noteWaiting(candidate, 1)
    if (notBefore <= 0) this.#line(candidate.engine_reference).rest.push(candidate)
    else this.#delayed.add(candidate, notBefore)
  }

  /** It may be open and is not followed here: its customer and its login are kept, without a slot. */
  hold(candidate: Candidate): void {
    for (const key of conflictKeys(candidate)) count(this.#taken, key, 1)
  }

  /** Counts an execution that is already open (found in the ledger), without asking for a slot. */
  occupy(candidate: Candidate): void {
    this.#inFlight.set(candidate.task_id, candidate)
    this.hold(candidate)
    count(this.#engineCount, candidate.engine_reference, 1)
  }

  /** The execution of this task is closed at the service: its slot and its customer are free. */
  release(task_id: TaskId): void {
    const candidate = this.#inFlight.get(task_id)
    if (candidate === undefined) return
    const keys = conflictKeys(candidate)
    for (const key of keys) count(this.#taken, key, -1)
    for (const key of keys) this.#unpark(key)
    this.abandon(task_id)
  }

  /** What became of it cannot be known in this run: only its slot is free, not its customer or its login. */
  abandon(task_id: TaskId): void {
    const candidate = this.#inFlight.get(task_id)
    if (candidate === undefined) return
    this.#inFlight.delete(task_id)
    count(this.#engineCount, candidate.engine_reference, -1)
    this.#share?.stir()
  }

  /** No task on this engine is offered before `until`, or before a later time that was already set. */
  closeEngine(engine_reference: EngineReference, until: number): void {
    this.#engineClosedUntil.set(engine_reference, Math.max(until, this.closedUntil(engine_reference)))
    this.#share?.stir()
  }

  closedUntil(engine_reference: EngineReference): number {
    return this.#engineClosedUntil.get(engine_reference) ?? 0
  }

  /** Queues the probe of a candidate that is in flight; it is not offered before `notBefore`. */
  owe(candidate: Candidate, notBefore: number): void {
    this.#noteWaiting(candidate, 1)
    this.#owed = [...this.#owed, { candidate, notBefore }]
  }

  /** Candidates of this engine that are waiting here. */
  waitingOn(engine: EngineReference): number {
    return this.#waitingOn.get(engine) ?? 0
  }

  /** Those of them that can still start: what they conflict with is in flight here. */
  hopefulOn(engine: EngineReference): ReadonlyArray<Candidate> {
    const moving = new Set([...this.#inFlight.values()].flatMap(conflictKeys))
    return this.whatWaits(0).flatMap(([one, why]) => {
      const isStuck = why === "conflict" && !conflictKeys(one).some((key) => moving.has(key))
      return one.engine_reference === engine && !isStuck ? [one] : []
    })
  }

  /**
   * Takes the next candidate that may start now and counts it as in flight; undefined if there is none. Owed
   * probes go first; while an engine is in doubt they go last, so that it is tried by another account.
   */
  take(now: number): Candidate | undefined {
    const found = this.#takeOwed(now, false) ?? this.#takeReady(now) ?? this.#takeOwed(now, true)
    if (found !== undefined) this.#noteWaiting(found, -1)
    return found
  }

  #owedOn(): ReadonlyMap<EngineReference, ReadonlyArray<OwedProbe>> {
    return Map.groupBy(this.#owed, ({ candidate }) => candidate.engine_reference)
  }

  #takeOwed(now: number, isInDoubt: boolean): Candidate | undefined {
    for (const [engine, owed] of this.#owedOn()) {
      if (this.#gate.isInDoubt(engine) !== isInDoubt) continue
      if (this.closedUntil(engine) > now || this.#gate.room(engine) <= 0) continue
      const found = owed.find(({ notBefore }) => notBefore <= now)
      if (found === undefined) continue
      this.#owed = this.#owed.filter((one) => one !== found)
      return found.candidate
    }
    return undefined
  }

  #noteWaiting({ engine_reference, takesMs = 0 }: Candidate, change: 1 | -1): void {
    count(this.#waitingOn, engine_reference, change)
    count(this.#leftOn, engine_reference, change * takesMs)
  }

  #takeReady(now: number): Candidate | undefined {
    for (let due = this.#delayed.takeDue(now); due !== undefined; due = this.#delayed.takeDue(now))
      this.#line(due.engine_reference).rest.push(due)
    if (this.#inFlight.size >= this.#limits.max_in_flight) return undefined
    if (this.#share?.mayOpen(now) === false) return undefined
    for (const [engine, line] of this.#inTurn(now)) {
      if (this.#share?.mayOpen(now, engine) === false) continue
      if (this.#gate.isInDoubt(engine)) sortLine(line, this.#gate.trialOrder(engine))
      const candidate = this.#next(line)
      this.#ready.delete(engine)
      if (hasNext(line)) this.#ready.set(engine, line)
      if (candidate === undefined) continue
      this.occupy(candidate)
      this.#share?.move()
      return candidate
    }
    return undefined
  }

  /** Removes everything that is still waiting, as at the deadline, or only what waits for one engine. */
  drain(engine_reference?: EngineReference): ReadonlyArray<Candidate> {
    const all: Array<Candidate> = []
    const isMeant = (one: Pick<Candidate, "engine_reference">) =>
      engine_reference === undefined || one.engine_reference === engine_reference
    const empty = (lines: Map<EngineReference, Line<Candidate>>) => {
      for (const [engine, line] of lines) {
        if (!isMeant({ engine_reference: engine })) continue
        for (let one = shift(line); one !== undefined; one = shift(line)) all.push(one)
        lines.delete(engine)
      }
    }
    empty(this.#ready)
    for (const [key, lines] of this.#parked) {
      empty(lines)
      if (lines.size === 0) this.#parked.delete(key)
      this.#unpark(key)
    }
    for (const one of this.#delayed.remove(isMeant)) all.push(one)
    for (const { candidate } of this.#owed) {
      if (!isMeant(candidate)) continue
      this.abandon(candidate.task_id)
      all.push(candidate)
    }
    this.#owed = this.#owed.filter(({ candidate }) => !isMeant(candidate))
    for (const one of all) this.#noteWaiting(one, -1)
    // Past its deadline, a run drains at every step: two of them would wake each other without end.
    if (all.length > 0) this.#share?.stir()
    return all
  }

  /** When `take` may next offer a candidate without a release; undefined if only a release can help. */
  nextWake(now: number): number | undefined {
    let wake = this.#delayed.nextAt
    for (const engine of this.#ready.keys()) {
      const until = this.closedUntil(engine)
      if (until > now && (wake === undefined || until < wake)) wake = until
    }
    for (const [engine, owed] of this.#owedOn()) {
      // Without room, an answer wakes.
      const first = Math.min(...owed.map(({ notBefore }) => notBefore))
      const until = Math.max(first, this.closedUntil(engine))
      if (this.#gate.room(engine) > 0 && (wake === undefined || until < wake)) wake = until
    }
    return wake
  }

  /** Every candidate that is waiting here, and why. */
  whatWaits(now: number): ReadonlyArray<readonly [candidate: Candidate, waitsFor: WaitsFor]> {
    const all: Array<readonly [Candidate, WaitsFor]> = []
    const put = (candidates: ReadonlyArray<Candidate>, waitsFor: WaitsFor) => {
      for (const one of candidates) all.push([one, waitsFor])
    }
    for (const [engine, line] of this.#ready)
      put(inLine(line), this.closedUntil(engine) > now ? "engine" : "slot")
    for (const lines of this.#parked.values())
      for (const line of lines.values()) put(inLine(line), "conflict")
    put(this.#delayed.values(), "time")
    for (const { candidate } of this.#owed)
      put([candidate], this.closedUntil(candidate.engine_reference) > now ? "engine" : "time")
    return all
  }

  /** Engines that may get a start: first the one that would be done last; those alike take turns. */
  #inTurn(now: number): ReadonlyArray<readonly [EngineReference, Line<Candidate>]> {
    const tails = new Map<EngineReference, number>()
    const open = [...this.#ready].filter(([engine, line]) => {
      const { limit, open } = this.claim(now, engine)
      if (open >= limit || this.closedUntil(engine) > now) return false
      if (this.#gate.room(engine) <= 0) return false
      const left = (this.#leftOn.get(engine) ?? 0) / this.#limits.per_engine
      tails.set(engine, Math.max(left, nextOf(line)?.tailMs ?? 0))
      return true
    })
    return open.toSorted(([one], [other]) => longerFirst(tails.get(one) ?? 0, tails.get(other) ?? 0))
  }

  #line(engine: EngineReference): Line<Candidate> {
    const known = this.#ready.get(engine)
    if (known !== undefined) return known
    const line = newLine<Candidate>()
    this.#ready.set(engine, line)
    return line
  }

  /** The first candidate of a line that conflicts with nothing; those before it are parked. */
  #next(line: Line<Candidate>): Candidate | undefined {
    for (let one = shift(line); one !== undefined; one = shift(line)) {
      const key = conflictKeys(one).find((wanted) => this.#taken.has(wanted))
      if (key === undefined) return one
      this.#park(key, one)
      // It was released alone when another key became free; that key now goes to the next one.
      for (const other of conflictKeys(one)) if (other !== key) this.#unpark(other)
    }
    return undefined
  }

  #park(key: string, one: Candidate): void {
    const lines = this.#parked.get(key) ?? new Map<EngineReference, Line<Candidate>>()
    this.#parked.set(key, lines)
    const line = lines.get(one.engine_reference) ?? newLine()
    lines.set(one.engine_reference, line)
    line.rest.push(one)
  }

  /**
   * Releases the candidates that wait for a key, if the key is free: the first of each engine. Only one can
   * start, but an engine that is closed or full must not keep another one's candidate waiting.
   */
  #unpark(key: string): void {
    const lines = this.#parked.get(key)
    if (lines === undefined || this.#taken.has(key)) return
    for (const [engine, line] of lines) {
      const first = shift(line)
      if (!hasNext(line)) lines.delete(engine)
      if (first !== undefined) this.#line(engine).front.push(first)
    }
    if (lines.size === 0) this.#parked.delete(key)
  }
}

const count = (counts: Map<string, number>, key: string, change: number): void => {
  const next = (counts.get(key) ?? 0) + change
  if (next <= 0) counts.delete(key)
  else counts.set(key, next)
}

export const longerFirst = (one: number, other: number): number => (one === other ? 0 : other - one)
