/** How many accounts an engine may be tried with while nobody knows whether its starts do what they should. */
import { describe, expect, it } from "vitest"
import { EngineBreaker, type Standing } from "../../src/task/EngineBreaker.ts"
import type { Candidate } from "../../src/service/Execution.ts"
import { anId } from "../harness/Id.ts"

const bank = anId("bank")
const minute = 60_000
const fresh = (standings: Readonly<Record<string, Standing>> = {}) =>
  new EngineBreaker(new Map(Object.entries(standings)))
const candidate = (account: string): Candidate => ({
  task_id: anId(account),
  customer_id: anId(account),
  engine_reference: bank,
  fingerprint: account,
  account,
})
const accept = (breaker: EngineBreaker, account: string, now = 0) => {
  breaker.began(bank)
  const doubt = breaker.accepted(bank, account, now)
  breaker.answered(bank)
  return doubt
}
const fail = (breaker: EngineBreaker, account: string, engine = bank) => {
  breaker.began(engine)
  const isInDoubt = breaker.failed(engine, account, 0)
  breaker.answered(engine)
  return isInDoubt
}

describe("an engine at the beginning of a run", () => {
  it("gets one start, and twice as many after each that was accepted, eight at most", () => {
    const breaker = fresh()
    const widths = ["a", "b", "c", "d", "e"].map((account) => {
      const width = breaker.room(bank)
      accept(breaker, account)
      return width
    })
    expect([...widths, breaker.room(bank)]).toEqual([1, 2, 4, 8, 8, 8])
    breaker.began(bank)
    breaker.began(bank)
    expect(breaker.room(bank)).toBe(6)
  })

  it("is in doubt after one start that came to nothing, and after three in a row if one was accepted", () => {
    expect(fail(fresh(), "a")).toBe(true)
    const breaker = fresh()
    accept(breaker, "a")
    expect([fail(breaker, "b"), fail(breaker, "c")]).toEqual([false, false])
    accept(breaker, "d")
    expect(["e", "f", "g"].map((account) => fail(breaker, account))).toEqual([false, false, true])
  })
})

describe("an engine in doubt", () => {
  it("gets one start at a time, and as in the beginning once one was accepted", () => {
    const breaker = fresh()
    for (const account of ["a", "b", "c"]) accept(breaker, account)
    for (const account of ["d", "e", "f"]) fail(breaker, account)
    expect(breaker.room(bank)).toBe(1)
    breaker.began(bank)
    expect(breaker.room(bank)).toBe(0)
    breaker.answered(bank)
    expect(accept(breaker, "g")?.tried).toEqual(new Set(["f"]))
    expect([breaker.isInDoubt(bank), breaker.room(bank)]).toEqual([false, 1])
  })

  it("is tried by nobody twice, then by those without a strike, the one accepted most recently first", () => {
    const breaker = fresh({
      struck: { strikes: 1, goodAt: 9 },
      old: { strikes: 0, goodAt: 1 },
      recent: { strikes: 0, goodAt: 8 },
      tried: { strikes: 0, goodAt: 9 },
    })
    fail(breaker, "tried")
    const all = ["tried", "struck", "unknown", "old", "recent"].map(candidate)
    expect(all.toSorted(breaker.trialOrder(bank)).map(({ account }) => account)).toEqual([
      "recent",
      "old",
      "unknown",
      "struck",
      "tried",
    ])
  })

  it("is tried together with all others once three are: it is the service", () => {
    const breaker = fresh()
    const engines = ["one", "two", "three"].map((engine) => anId(engine) as typeof bank)
    for (const engine of engines.slice(0, 2)) fail(breaker, "a", engine)
    const rooms = () => engines.map((engine) => breaker.room(engine))
    for (const engine of engines.slice(0, 1)) breaker.began(engine)
    expect([breaker.inTrouble(), rooms()]).toEqual([[], [0, 1, 1]])
    fail(breaker, "a", engines[2])
    expect([breaker.inTrouble(), rooms()]).toEqual([engines, [0, 0, 0]])
  })
})

it("an engine that accepts others is well for ten minutes, for every account but the one that was accepted, and never in doubt", () => {
  const breaker = fresh()
  accept(breaker, "a", 0)
  const isWell = (account: string, now: number) => breaker.isWell(bank, account, now)
  expect([isWell("b", 10 * minute), isWell("b", 10 * minute + 1), isWell("a", 1)]).toEqual([
    true,
    false,
    false,
  ])
  expect([breaker.hasPassed(bank, "b"), breaker.hasPassed(bank, "a")]).toEqual([true, false])
  for (const account of ["c", "d", "e"]) fail(breaker, account)
  expect([isWell("b", 1), breaker.hasPassed(bank, "b")]).toEqual([false, false])
})

it("an outage of three hours exposes dozens of 5,000 accounts to a lost login, those whose password was accepted last", () => {
  const ids = Array.from({ length: 5_000 }, (_, index) => `account-${index}`)
  const breaker = fresh(Object.fromEntries(ids.map((id, index) => [id, { strikes: 0, goodAt: index % 100 }])))
  accept(breaker, "first")
  let waiting = ids.map(candidate)
  const lost: Array<string> = []
  // Each finding closes the engine for twice as long, for 15 minutes at most.
  for (let now = 0, findings = 0; now < 180 * minute; findings += 1) {
    for (let room = breaker.room(bank); room > 0; room -= 1) {
      // A lost login keeps its account, and is in no line any more.
      const [trial, ...others] = waiting.toSorted(breaker.trialOrder(bank))
      waiting = others
      fail(breaker, trial?.account ?? "nobody")
      lost.push(trial?.account ?? "nobody")
    }
    now += Math.min(15 * minute, 30_000 * 2 ** findings)
  }
  expect(lost.length).toBeGreaterThan(10)
  expect(lost.length).toBeLessThan(50)
  expect(lost.filter((id) => Number(id.slice("account-".length)) % 100 !== 99)).toEqual([])
})
