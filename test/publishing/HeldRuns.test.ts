/** Which runs a gate is asked about, and which that were held back become current with another one: both let deletions begin. */
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import type { Fact } from "../../src/ledger/Fact.ts"
import { foldRun } from "../../src/ledger/FoldRun.ts"
import { Ledger, LedgerFailed } from "../../src/ledger/Ledger.ts"
import type { RunState } from "../../src/ledger/RunState.ts"
import { isAsked } from "../../src/publishing/AskGates.ts"
import { heldBefore, heldRuns } from "../../src/publishing/HeldRuns.ts"
import { PublishFailed } from "../../src/publishing/Publisher.ts"
import { factsOf, idOf } from "../ledger/ToldRuns.ts"
import type { Told } from "../ledger/ToldRuns.ts"
import { executed, planned, run_id, settled, started } from "../report/Samples.ts"

const fold = (facts: ReadonlyArray<Fact>): RunState => {
  const run = foldRun(facts.map((fact, seq) => ({ seq: seq + 1, at: seq, fact })))
  if (run === undefined) throw new Error("no beginning")
  return run
}

describe("the gates of a job are asked", () => {
  const published: Fact = { _tag: "RunPublished", run_id, version: 1, receipts: [] }
  const held: Fact = { _tag: "RunHeld", run_id, database: "held", gates: [] }
  const end = settled("c", "succeeded", "COMPLETED", "nobody")
  const night = [started, planned("c"), ...executed("c", { a: 1 }), end]
  const asked = (...facts: ReadonlyArray<Fact>) => isAsked(fold(facts))

  it("of a run with tasks that was never published, or was held back since", () => {
    expect([asked(...night), asked(...night, held), asked(...night, published, held)]).toEqual([
      true,
      true,
      true,
    ])
  })

  it("not of one without tasks, and not of one that a person let through", () => {
    expect([asked(started), asked(started, held)]).toEqual([false, false])
    expect(asked(...night, held, { _tag: "RunAccepted", run_id })).toBe(false)
  })

  it("not again of one to which nothing came since it was published, but of one to which something did", () => {
    expect(asked(...night, published)).toBe(false)
    // A closed execution, and a verdict after it.
    expect(asked(...night.slice(0, -1), published, end)).toBe(true)
    expect(asked(...night.slice(0, 2), published, ...night.slice(2))).toBe(true)
    // A task that still has no verdict may be anything by now.
    expect(asked(...night, planned("d"), published)).toBe(true)
    const deletion: Fact = {
      _tag: "DeleteIntended",
      run_id,
      task_id: end._tag === "TaskSettled" ? end.task_id : ("" as never),
      execution_id: "e-c" as never,
      landed_sha256: "aa",
    }
    expect(asked(...night, published, deletion)).toBe(false)
  })
})

type Runs = ReadonlyArray<readonly [number, Told]>
const held: Told = { tasks: { "c-1": "succeeded" }, exit_code: 3, leftovers: true, isHeld: true }
const open: Told = { tasks: { "c-1": "succeeded" } }
const on = (run_date: string, told: Told): Told => ({ ...told, run_date })
const accepted = (number: number): Fact => ({ _tag: "RunAccepted", run_id: idOf(number) })

/** Those that become current with the newest of these runs, and all that wait for it. */
const heldWith = (runs: Runs, more: ReadonlyArray<Fact> = []) =>
  Effect.gen(function* () {
    const ledger = yield* Ledger
    for (const [number, told] of runs) yield* ledger.append(factsOf(number, told))
    yield* ledger.append(more)
    const [number, { run_date }] = runs.at(-1) ?? [0, open]
    const state = yield* ledger.state(idOf(number, run_date))
    if (state === undefined) throw new Error("no such run")
    const all = (yield* heldRuns).map((one) => one.started.run_id)
    return { with: yield* heldBefore(state), all }
  }).pipe(Effect.provide(Ledger.layer({ path: ":memory:" })))

describe("a version contains the runs that were held back before it", () => {
  it.effect("of the same job and night or an earlier one, oldest first", () =>
    Effect.gen(function* () {
      const runs: Runs = [
        [1, on("2026-11-20", held)],
        [2, on("2026-11-20", { ...held, isHeld: false })],
        [3, { ...held, job: "other" }],
        [1, on("2026-11-22", held)],
        [1, held],
        [2, { ...held, isHeld: false, leftovers: false, exit_code: 0 }],
        [4, open],
      ]
      expect(yield* heldWith(runs)).toEqual({
        with: [idOf(1, "2026-11-20"), idOf(1)],
        all: [idOf(1, "2026-11-20"), idOf(3), idOf(1, "2026-11-22"), idOf(1)],
      })
    }),
  )

  it.effect("but not itself, not a later one, and none that is let through and published already", () =>
    Effect.gen(function* () {
      expect(yield* heldWith([[1, held]])).toEqual({ with: [], all: [idOf(1)] })
      const through: ReadonlyArray<Fact> = [
        { _tag: "RunPublished", run_id: idOf(1), version: 2, receipts: [] },
        accepted(1),
      ]
      const runs: Runs = [
        [1, held],
        [2, open],
      ]
      expect(yield* heldWith(runs, through)).toEqual({ with: [], all: [idOf(1)] })
      const ledger = Ledger.layer({ path: ":memory:" })
      const earlier = Effect.gen(function* () {
        const { append, state } = yield* Ledger
        yield* append(factsOf(1, open))
        yield* append(factsOf(2, held))
        const first = yield* state(idOf(1))
        return first === undefined ? undefined : yield* heldBefore(first)
      })
      expect(yield* Effect.provide(earlier, ledger)).toEqual([])
    }),
  )

  it.effect("only if its own gates were asked, or a person let it through", () =>
    Effect.gen(function* () {
      const runs = (newest: Told): Runs => [
        [1, held],
        [2, newest],
      ]
      expect((yield* heldWith(runs({}))).with).toEqual([])
      expect((yield* heldWith(runs({}), [accepted(2)])).with).toEqual([idOf(1)])
      expect((yield* heldWith(runs(open), [accepted(2)])).with).toEqual([idOf(1)])
    }),
  )

  it.effect(
    "unless the ledger cannot be read: then nothing is published, and it says whether it is damaged",
    () =>
      Effect.gen(function* () {
        const real = yield* Ledger
        const told = (failure: LedgerFailed) =>
          heldBefore(fold(factsOf(1, open))).pipe(
            Effect.provideService(Ledger, { ...real, runs: Effect.fail(failure) }),
            Effect.flip,
          )
        const message = "disk gone"
        expect([
          yield* told(new LedgerFailed({ message })),
          yield* told(new LedgerFailed({ message, damaged: true })),
        ]).toEqual([
          new PublishFailed({ message: "the ledger: disk gone", damaged: false }),
          new PublishFailed({ message: "the ledger: disk gone", damaged: true }),
        ])
      }).pipe(Effect.provide(Ledger.layer({ path: ":memory:" }))),
  )
})
