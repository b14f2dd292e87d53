/** When a run counts as over: the tables must say it before anybody relies on it. */
import { expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { Ledger } from "../../src/ledger/Ledger.ts"
import { anId, type AnyId } from "../harness/Id.ts"

const begin = (run_id: AnyId) =>
  ({
    _tag: "RunStarted",
    run_id,
    job: "nightly",
    job_path: "nightly.yaml",
    run_date: "2026-11-20",
    tool_version: "0.1.0",
  }) as const

layer(Ledger.layer({ path: ":memory:" }))((it) => {
  it.effect("a run is over once its end is published, and no longer when it is resumed", () =>
    Effect.gen(function* () {
      const ledger = yield* Ledger
      const run_id = anId("nightly.2026-11-20")
      const ends = Effect.map(ledger.runs, (runs) => runs.map(({ ended }) => ended))
      yield* ledger.append([
        begin(run_id),
        { _tag: "RunEnded", run_id, exit_code: 3, leftovers: false, kept: 0 },
      ])
      expect(yield* ends).toEqual([undefined])
      yield* ledger.append([{ _tag: "OutcomePublished", run_id }])
      expect(yield* ends).toEqual([{ at: expect.any(Number), exit_code: 3, leftovers: false, kept: 0 }])
      yield* ledger.append([{ _tag: "RunResumed", run_id }])
      expect(yield* ends).toEqual([undefined])
    }),
  )
})
