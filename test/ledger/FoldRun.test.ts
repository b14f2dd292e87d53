/** A state carried forward: what further facts make of it is what all facts make, and reading costs them once. */
import { describe, expect, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import * as fc from "fast-check"
import type { Fact } from "../../src/ledger/Fact.ts"
import { foldRun } from "../../src/ledger/FoldRun.ts"
import { Ledger } from "../../src/ledger/Ledger.ts"
import { openLedger } from "../../src/ledger/LedgerSchema.ts"
import { begun, lives, recorded, run_id } from "../task/Lives.ts"
import { anyFacts } from "./AnyFacts.ts"
import { counting } from "./CountedReads.ts"
import { anId } from "../harness/Id.ts"
import { effect } from "../harness/Steps.ts"

const life = lives.map((facts) => [...begun, ...facts])

describe("the state of a run, carried forward", () => {
  it("is derived from all its facts, wherever they are cut, and no earlier state changes", () => {
    fc.assert(
      fc.property(
        fc.oneof(anyFacts, life),
        fc.array(fc.nat(45), { minLength: 1, maxLength: 4 }),
        (facts, cuts) => {
          const all = recorded(facts)
          const ends = [...cuts.map((cut) => Math.min(cut, all.length)), all.length].toSorted((a, b) => a - b)
          let begin = 0
          let carried: ReturnType<typeof foldRun>
          const states = ends.map((end) => {
            carried = foldRun(all.slice(begin, end), carried)
            // Without its beginning there is no state to go on from.
            begin = carried === undefined ? 0 : end
            return carried
          })
          expect(states).toStrictEqual(ends.map((end) => foldRun(all.slice(0, end))))
        },
      ),
      { numRuns: 200 },
    )
  })

  it("is the fold of the ledger, whoever wrote it, and whichever run was read before", () => {
    const other = "other.2026-11-21"
    const step = fc.record({
      writer: fc.nat(1),
      of: fc.constantFrom(run_id, other),
      size: fc.integer({ min: 1, max: 6 }),
      asked: fc.constantFrom(run_id, other),
    })
    fc.assert(
      fc.property(anyFacts, fc.array(step, { minLength: 1, maxLength: 12 }), (facts, steps) => {
        const database = openLedger({ path: ":memory:" })
        const process = () => Layer.fresh(Ledger.layerOver(database))
        const open = Effect.provide(Effect.service(Ledger), process())
        const pairs = Effect.gen(function* () {
          const writers = [yield* open, yield* open]
          const left = { [run_id]: [...facts], [other]: [...facts] }
          const found: Array<readonly [unknown, unknown]> = []
          for (const { writer, of, size, asked } of steps) {
            const next = (left[of] ?? []).splice(0, size).map((fact) => inRun(of, fact))
            yield* writers[writer]?.append(next) ?? Effect.void
            const [reader] = writers
            if (reader !== undefined)
              found.push([yield* reader.state(anId(asked)), foldRun(yield* reader.facts(anId(asked)))])
          }
          return found
        })
        const found = Effect.runSync(pairs)
        expect(found.map(([carried]) => carried)).toStrictEqual(found.map(([, fresh]) => fresh))
        database.close()
      }),
      { numRuns: 30 },
    )
  })

  effect("reads each fact once", function* () {
    const read: Array<number> = []
    const database = counting(openLedger({ path: ":memory:" }), read)
    yield* Effect.gen(function* () {
      const ledger = yield* Ledger
      yield* ledger.append([...begun])
      yield* ledger.state(run_id)
      yield* ledger.state(run_id)
      yield* ledger.append([{ _tag: "RunEnded", run_id, exit_code: 0, leftovers: false }])
      expect((yield* ledger.state(run_id))?.ended?.exit_code).toBe(0)
      expect(read).toEqual([2, 0, 1])
    }).pipe(Effect.provide(Ledger.layerOver(database)))
  })
})

const inRun = (of: string, fact: Fact): Fact =>
  "run_id" in fact && fact.run_id !== undefined ? { ...fact, run_id: anId(of) } : fact
