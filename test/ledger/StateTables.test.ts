/** The states that the ledger's file keeps: the fold of its facts, and never anything else. */
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import type { DatabaseSync } from "node:sqlite"
import * as fc from "fast-check"
import type { Fact } from "../../src/ledger/Fact.ts"
import { foldRun } from "../../src/ledger/FoldRun.ts"
import { Ledger, type LedgerFailed } from "../../src/ledger/Ledger.ts"
import { openLedger } from "../../src/ledger/LedgerSchema.ts"
import { briefOf } from "../../src/ledger/RunState.ts"
import { foldVersion, statesIn } from "../../src/ledger/StateTables.ts"
import { summarise } from "../../src/report/Summary.ts"
import { sha256, sha256Hex } from "../../src/base/Hashes.ts"
import { begun, lives, recorded, run_id } from "../task/Lives.ts"
import { anyFacts } from "./AnyFacts.ts"
import { counting } from "./CountedReads.ts"
import { everyFact, everyRun } from "./AnyFacts.ts"
import { anId } from "../harness/Id.ts"
import { effect } from "../harness/Steps.ts"
import { aFact } from "../harness/Facts.ts"

const life = lives.map((facts) => [...begun, ...facts])
const taskOf = (customer: number) => `${run_id}/c-${customer}/bank:website`
const planned = (customer: number): Fact =>
  aFact("TaskPlanned", {
    run_id,
    task_id: taskOf(customer),
    customer_id: `c-${customer}`,
    engine_reference: "bank:website",
  })
const [start = begun[0]] = begun
const many = [start, ...Array.from({ length: 600 }, (_, customer) => planned(customer))].flatMap(
  (fact) => fact ?? [],
)
const settled = (customer: number): Fact =>
  aFact("TaskSettled", { run_id, task_id: taskOf(customer), who_acts: "nobody" })

/** In a process of its own. */
const within = <A>(
  database: DatabaseSync,
  look: (ledger: Ledger["Service"]) => Effect.Effect<A, LedgerFailed>,
) => Effect.orDie(Effect.provide(Effect.flatMap(Ledger, look), Ledger.layerOver(database), { local: true }))

const stateIn = (database: DatabaseSync) => within(database, (ledger) => ledger.state(run_id))
const briefIn = (database: DatabaseSync) => within(database, (ledger) => ledger.brief(run_id))
const foldIn = (database: DatabaseSync) =>
  within(database, (ledger) => Effect.map(ledger.facts(run_id), (facts) => foldRun(facts)))
const rowsIn = (database: DatabaseSync): number =>
  Number(database.prepare("SELECT count(*) AS n FROM run_states").get()?.["n"])

const changed = `the state of the run ${run_id} has changed since it was written`

/** A ledger whose file keeps the state of 600 tasks. */
const kept = Effect.gen(function* () {
  const database = openLedger({ path: ":memory:" })
  yield* within(database, (ledger) => ledger.append(many))
  expect(rowsIn(database)).toBe(0)
  yield* stateIn(database)
  expect(rowsIn(database)).toBe(601)
  return database
})

const end: Fact = { _tag: "RunEnded", run_id, exit_code: 3, leftovers: false }
const keptEnd = Effect.gen(function* () {
  const database = yield* kept
  yield* within(database, (ledger) => ledger.append([end]))
  yield* stateIn(database)
  return database
})

/** How many facts of the run a process folds to know its state. */
const foldedBy = Effect.fnUntraced(function* (database: DatabaseSync) {
  const read: Array<number> = []
  yield* stateIn(counting(database, read))
  return read.reduce((sum, facts) => sum + facts, 0)
})

describe("the state that a file keeps", () => {
  it("comes back as it was, and goes on as if all facts were folded", () => {
    const states = statesIn(openLedger({ path: ":memory:" }))
    fc.assert(
      fc.property(fc.oneof(anyFacts, life), fc.nat(45), fc.nat(45), (facts, one, other) => {
        const all = recorded(facts)
        const cuts = [one, other].toSorted((a, b) => a - b)
        let before: ReturnType<typeof foldRun>
        let read: ReturnType<typeof foldRun>
        for (const cut of cuts) {
          const state = foldRun(all.slice(0, cut))
          if (state === undefined) return
          states?.write(state, before)
          read = states?.read(run_id)
          // What it has of the last one is not written again.
          before = state
        }
        const whole = foldRun(all.slice(cuts.at(-1)), read)
        expect(whole).toEqual(foldRun(all))
        expect([...(whole?.tasks.keys() ?? [])]).toEqual([...(foldRun(all)?.tasks.keys() ?? [])])
      }),
      { numRuns: 150 },
    )
  })

  it("is summarised from what it keeps for that as from the whole, once its run has ended [decision 10 brief] [decision 10 brief resumed]", () => {
    const states = statesIn(openLedger({ path: ":memory:" }))
    fc.assert(
      fc.property(fc.oneof(anyFacts, life), (facts) => {
        const resumption: Fact = { _tag: "RunResumed", run_id }
        const lives = [facts, [...facts, end], [...facts, end, resumption]]
        const [open, ended, resumed] = lives.map((all) => foldRun(recorded(all)))
        if (open?.ended !== undefined || !open || !ended || !resumed) return
        states?.write(open, undefined)
        expect(states?.readBrief(run_id)).toBeUndefined()
        states?.write(ended, open)
        const brief = states?.readBrief(run_id)
        expect(brief && summarise(brief)).toEqual(summarise(ended))
        states?.write(resumed, ended)
        expect(states?.readBrief(run_id)).toBeUndefined()
      }),
      { numRuns: 100 },
    )
  })

  it("has another version as soon as a fact comes to something else in it", () => {
    const ofRun = everyFact.map((fact) => ("run_id" in fact ? { ...fact, run_id: everyRun } : fact))
    // And back, so that each comes after every other one; and after each of them, as the next may take it back.
    const facts = recorded([...ofRun, ...ofRun.toReversed()])
    const states = facts.map((_, index) => {
      const state = foldRun(facts.slice(0, index + 1))
      return [state, ...(state?.tasks ?? []), ...[...(state?.tasks.values() ?? [])].map(briefOf)]
    })
    // Whoever changes the hash, be it by a field of a fact, raises the version: no state of an older one is believed.
    expect([foldVersion, sha256Hex(JSON.stringify(states)).slice(0, 16)]).toEqual([14, "931ea1a930131d25"])
  })

  effect("is read instead of the facts before it, by the next process, too", function* () {
    const database = yield* kept
    expect(yield* foldedBy(database)).toBe(0)
    yield* within(database, (ledger) => ledger.append([settled(1), settled(2)]))
    expect(yield* foldedBy(database)).toBe(2)
    expect(yield* stateIn(database)).toEqual(yield* foldIn(database))
  })

  effect(
    "is kept once its run has ended, however little is left to fold [decision 10 ended state] [decision 10 brief newest]",
    function* () {
      const database = openLedger({ path: ":memory:" })
      yield* within(database, (ledger) => ledger.append([...begun, planned(1), settled(1)]))
      yield* stateIn(database)
      expect(rowsIn(database)).toBe(0)
      yield* within(database, (ledger) => ledger.append([end]))
      yield* stateIn(database)
      expect(yield* foldedBy(database)).toBe(0)
      expect(yield* stateIn(database)).toEqual(yield* foldIn(database))
      expect((yield* briefIn(database))?.tasks.get(taskOf(1))).not.toHaveProperty("planned_at")
      yield* within(database, (ledger) => ledger.append([planned(2)]))
      expect(yield* briefIn(database)).toEqual(yield* foldIn(database))
    },
  )

  effect("is there after a process that was killed before it asked for one", function* () {
    const database = openLedger({ path: ":memory:" })
    yield* within(database, (ledger) =>
      Effect.forEach(many.flatMap((fact) => [fact, fact, fact, fact]).slice(3), (fact) =>
        ledger.append([fact]),
      ),
    )
    expect(yield* foldedBy(database)).toBeLessThan(450)
  })

  effect("is not believed once something of it has changed", function* () {
    const cases = [
      "UPDATE run_states SET body = replace(body, 'c-7/', 'c-8/') WHERE place = 8",
      "UPDATE run_states SET body = replace(body, '\"tasks\":600', '\"tasks\":601') WHERE place = 0",
      "DELETE FROM run_states WHERE place = 600",
      "DELETE FROM run_states WHERE place = 0",
    ]
    const database = yield* kept
    for (const damage of cases) {
      database.exec(damage)
      expect(yield* within(database, (ledger) => ledger.problems)).toEqual([changed])
      expect([damage, yield* foldedBy(database)]).toEqual([damage, 601])
      expect(yield* stateIn(database)).toEqual(yield* foldIn(database))
      // Who reads it for writing has made it again.
      expect(yield* within(database, (ledger) => ledger.problems)).toEqual([])
    }
  })

  effect(
    "is not believed either once what a summary reads has changed [decision 10 brief changed]",
    function* () {
      const database = yield* keptEnd
      for (const damage of [
        "UPDATE run_states SET body = replace(body, 'c-7/', 'c-8/') WHERE place = -1",
        "DELETE FROM run_states WHERE place = -1",
      ]) {
        database.exec(damage)
        expect(yield* within(database, (ledger) => ledger.problems)).toEqual([changed])
        expect(yield* briefIn(database)).toEqual(yield* foldIn(database))
        expect(yield* within(database, (ledger) => ledger.problems)).toEqual([])
      }
    },
  )

  effect(
    "has only the rows of a task written again that changes after the end, and keeps the order of all [decision 10 brief rows] [decision 10 brief order]",
    function* () {
      const database = yield* keptEnd
      const writes: Array<number> = []
      database.function("written", (place) => {
        writes.push(Number(place))
        return 0
      })
      database.exec(
        "CREATE TEMP TRIGGER told AFTER INSERT ON run_states BEGIN SELECT written(new.place); END",
      )
      yield* within(database, (ledger) => ledger.append([settled(77)]))
      yield* stateIn(database)
      expect(writes.toSorted((one, other) => one - other)).toEqual([-2, 0, 78])
      const ids = [...((yield* briefIn(database))?.tasks.keys() ?? [])]
      expect(ids).toEqual(many.slice(1).map((_, customer) => taskOf(customer)))
    },
  )

  effect("is compared with the facts where its hash is right, too [decision 10 brief proved]", function* () {
    const database = yield* keptEnd
    const { body: brief } = { ...database.prepare("SELECT body FROM run_states WHERE place = -1").get() }
    const body = String(brief).replace("c-7/", "c-8/")
    const change = database.prepare("UPDATE run_states SET body = ?, sha256 = ? WHERE place = -1")
    change.run(body, sha256(`${run_id} -1 ${body}`))
    expect(yield* within(database, (ledger) => ledger.problems)).toEqual([changed])
  })

  effect("leaves the word to the facts where one of these has changed", function* () {
    const database = yield* kept
    database.exec("UPDATE facts SET body = replace(body, 'c-7', 'c-8') WHERE seq = 9")
    expect(yield* within(database, (ledger) => ledger.problems)).toEqual([
      "fact 9 has changed since it was written",
    ])
  })

  effect("is written whole where another process has written one meanwhile", function* () {
    const database = yield* kept
    const facts = Array.from({ length: 500 }, (_, customer) => settled(customer))
    yield* within(database, (ledger) =>
      Effect.gen(function* () {
        yield* ledger.state(run_id)
        yield* ledger.append(facts)
        yield* stateIn(database)
        yield* ledger.append([...facts, ...facts])
        yield* ledger.state(run_id)
      }),
    )
    expect(yield* within(database, (ledger) => ledger.problems)).toEqual([])
    expect(yield* stateIn(database)).toEqual(yield* foldIn(database))
  })

  it("stays for the newest runs only", () => {
    const database = openLedger({ path: ":memory:" })
    const states = statesIn(database)
    const state = foldRun(recorded(many))
    const ids = Array.from({ length: 25 }, (_, night) => anId(`job.${night}`))
    for (const [sequence, id] of ids.entries())
      if (state !== undefined)
        states?.write({ ...state, sequence, started: { ...state.started, run_id: id } }, undefined)
    expect(ids.map((id) => states?.read(id)?.tasks.size)).toEqual(
      ids.map((_, at) => (at < 5 ? undefined : 600)),
    )
  })

  effect("names nobody who was forgotten [decision 10 forgotten state]", function* () {
    const database = yield* kept
    const zero = { bodies: 0, documents: 0, rows: 0, held: 0, tokens: 0, recordings: 0, deleted: 0 }
    const counts = { ...zero, runs: 1, facts: 1, given_up: 0, left_at_service: 0, logins_kept: 0 }
    yield* within(database, (ledger) =>
      ledger.forget(
        { customer_id: anId("c-7"), tasks: new Set([taskOf(7)]), executions: new Set() },
        { receipt: "r-1", ...counts },
      ),
    )
    expect(
      database.prepare("SELECT count(*) AS n FROM run_states WHERE body LIKE '%c-7/%'").get()?.["n"],
    ).toBe(0)
    expect((yield* stateIn(database))?.tasks.size).toBe(599)
    expect(yield* within(database, (ledger) => ledger.problems)).toEqual([])
  })
})
