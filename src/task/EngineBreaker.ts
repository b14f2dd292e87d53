/**
 * How many accounts an engine may be tried with, while it is not known whether its starts do what they
 * should: pure bookkeeping. A run begins slowly on each engine. An engine whose starts come to nothing is in
 * doubt: it is looked at with growing waits, and tried by one account at a time, another each time. So an
 * outage of any length exposes a few accounts to a lost login, and none to three.
 */
import { Duration } from "effect"
import type { EngineReference } from "../service/Ids.ts"
import { AccountBook, strikesFor, type Account } from "../ledger/Accounts.ts"
import type { StartGate } from "./Schedule.ts"
import type { Candidate } from "../service/Execution.ts"
import type { TaskWork } from "./Work.ts"

/** Starts of an engine that may wait for an answer at once. */
const awaitingMax = 8
/** Starts in a row that came to nothing, and the engine is in doubt; one, if none was accepted before. */
const failedMax = 3
/** An engine that accepted a start so recently is well. */
const wellFor = Duration.toMillis("10 minutes")
/** So many engines in doubt at once, and it is the service: they are tried by one start in all. */
const doubtsMax = 3

export interface Doubt {
  /** Since when no start does what it should (milliseconds), and how often it was found so. */
  readonly since: number
  findings: number
  /** A task was asked to wait longer than we wait for the engine; a second such answer counts for all. */
  isPutOff: boolean
  /** Accounts that have been the trial, the one that was it last at the end. */
  readonly tried: Set<string>
}

/** A task whose login would be the third strike of its account. */
export interface Third {
  readonly candidate: Candidate
  /** Whether it may be sent although nobody else shows that the engine is well. */
  readonly mayLead: boolean
}

interface Line {
  /** Starts that may wait for an answer at once; each that is accepted doubles it. */
  width: number
  awaiting: number
  /** Starts in a row that came to nothing. */
  failed: number
  /** Who was accepted in this run, the newest last, each account once. */
  readonly passed: Map<string, number>
  doubt: Doubt | undefined
  /** Tasks whose third login waits until the engine accepts others, and whether it may lead. */
  readonly thirds: Map<string, boolean>
}

/** What the ledger knows of an account that may be the trial. */
export interface Standing {
  readonly strikes: number
  /** When its present password was last accepted (milliseconds); 0 if it never was. */
  readonly goodAt: number
}

/** Of the accounts of tasks: whose login does no harm if it is lost. */
export const standingsOf = (
  works: ReadonlyArray<TaskWork>,
  accounts: ReadonlyArray<Account>,
): ReadonlyMap<string, Standing> => {
  const book = new AccountBook(accounts)
  return new Map(
    works.flatMap(({ task_id, account: keys }) => {
      if (keys === undefined) return []
      const own = book.of(keys)
      const good = own.flatMap((one) => (one.good?.password === keys.password ? [one.good.at] : []))
      return [[task_id, { strikes: strikesFor(own, keys), goodAt: Math.max(0, ...good) }] as const]
    }),
  )
}

const newcomer: Standing = { strikes: 0, goodAt: 0 }
const nobody = "nobody"

export class EngineBreaker implements StartGate {
  readonly #lines = new Map<EngineReference, Line>()
  /** By task. */
  readonly #standings: ReadonlyMap<string, Standing>

  constructor(standings: ReadonlyMap<string, Standing>) {
    this.#standings = standings
  }

  #line(engine: EngineReference): Line {
    const known = this.#lines.get(engine)
    if (known !== undefined) return known
    const line: Line = {
      width: 1,
      awaiting: 0,
      failed: 0,
      passed: new Map(),
      doubt: undefined,
      thirds: new Map(),
    }
    this.#lines.set(engine, line)
    return line
  }

  isInDoubt(engine: EngineReference): boolean {
    return this.#lines.get(engine)?.doubt !== undefined
  }

  /** Engines that are tried together, because the service itself seems to be in trouble. */
  inTrouble(): ReadonlyArray<EngineReference> {
    const doubted = [...this.#lines].flatMap(([engine, { doubt }]) => (doubt === undefined ? [] : [engine]))
    return doubted.length >= doubtsMax ? doubted : []
  }

  /** Starts that may be sent to it now, besides those that wait for an answer. */
  room(engine: EngineReference): number {
    const { width, awaiting, doubt } = this.#line(engine)
    if (doubt === undefined) return Math.max(0, Math.min(width, awaitingMax) - awaiting)
    const together = this.inTrouble()
    const others = together.reduce((all, one) => all + this.#line(one).awaiting, 0)
    return awaiting + (together.length === 0 ? 0 : others - awaiting) > 0 ? 0 : 1
  }

  /** Nobody twice, nobody with a strike, the one accepted last; in the end, the one tried longest ago. */
  trialOrder(engine: EngineReference): (one: Candidate, other: Candidate) => number {
    const { tried = [] } = this.#line(engine).doubt ?? {}
    const turns = new Map([...tried].map((account, index) => [account, index + 1]))
    const placeOf = ({ task_id, account = nobody }: Candidate): ReadonlyArray<number> => {
      const { strikes, goodAt } = this.#standings.get(task_id) ?? newcomer
      const turn = turns.get(account) ?? 0
      return [Math.min(1, turn), strikes, turn, -goodAt]
    }
    return (one, other) => {
      const mine = placeOf(one)
      const theirs = placeOf(other)
      const at = mine.findIndex((each, index) => each !== theirs[index])
      // The account is a keyed hash: its order says nothing.
      return at < 0
        ? (one.account ?? nobody) < (other.account ?? nobody)
          ? -1
          : 1
        : (mine[at] ?? 0) - (theirs[at] ?? 0)
    }
  }

  /** A start is on its way; until `answered` it counts. */
  began(engine: EngineReference): void {
    this.#line(engine).awaiting += 1
  }

  answered(engine: EngineReference): void {
    const line = this.#line(engine)
    line.awaiting = Math.max(0, line.awaiting - 1)
  }

  /** Returns the doubt that this ends. */
  accepted(engine: EngineReference, account: string | undefined, now: number): Doubt | undefined {
    const line = this.#line(engine)
    const { doubt } = line
    line.doubt = undefined
    line.failed = 0
    line.width = doubt === undefined ? Math.min(awaitingMax, line.width * 2) : 1
    line.passed.delete(account ?? nobody)
    line.passed.set(account ?? nobody, now)
    return doubt
  }

  /** A start came to nothing that is known. Returns whether the engine is in doubt because of it. */
  failed(engine: EngineReference, account: string | undefined, now: number): boolean {
    const line = this.#line(engine)
    line.failed += 1
    if (line.doubt === undefined && line.passed.size > 0 && line.failed < failedMax) return false
    this.refused(engine, account, now)
    return true
  }

  /** It is in doubt, and another account is the next trial: a start failed, or it says that it is away. */
  refused(engine: EngineReference, account: string | undefined, now: number): void {
    const { tried } = this.noteDoubt(engine, now)
    tried.delete(account ?? nobody)
    tried.add(account ?? nobody)
  }

  /** The engine says that it is away, or its starts come to nothing. */
  noteDoubt(engine: EngineReference, now: number): Doubt {
    const line = this.#line(engine)
    return (line.doubt ??= { since: now, findings: 0, isPutOff: false, tried: new Set() })
  }

  noteThird({ candidate, mayLead }: Third): void {
    this.#line(candidate.engine_reference).thirds.set(candidate.task_id, mayLead)
  }

  /**
   * It goes where others passed, and waits for those that could still show it. Where all are third logins,
   * the best trial goes first, so that somebody is read; if it comes to nothing, the others stay for another
   * night.
   */
  turnOfThird({ candidate, mayLead }: Third, waiting: ReadonlyArray<Candidate>): "goes" | "waits" | "stays" {
    const { engine_reference, task_id, account = nobody } = candidate
    const { thirds, doubt } = this.#line(engine_reference)
    thirds.delete(task_id)
    if (waiting.some((other) => !thirds.has(other.task_id))) return "waits"
    if (this.hasPassed(engine_reference, account)) return "goes"
    if ([...(doubt?.tried ?? [])].some((other) => other !== account)) return "stays"
    const leaders = waiting.filter((other) => thirds.get(other.task_id) === true)
    if (!mayLead) return leaders.length === 0 ? "stays" : "waits"
    const isEarlier = this.trialOrder(engine_reference)
    return leaders.every((other) => isEarlier(candidate, other) < 0) ? "goes" : "waits"
  }

  /** Whether it accepts other accounts: only then does a lost login say something about its account. */
  isWell(engine: EngineReference, account: string | undefined, now: number): boolean {
    return this.hasPassed(engine, account, now - wellFor)
  }

  /** Whether it accepted another account in this run since then (milliseconds). */
  hasPassed(engine: EngineReference, account: string | undefined, since = -Infinity): boolean {
    const { doubt, passed } = this.#line(engine)
    return doubt === undefined && [...passed].some(([other, at]) => other !== account && at >= since)
  }
}
