/**
 * A run of which a version is published and a newer one is held back by a gate: what rollback, rebuild, repair and a
 * copy of the folder make of it, and that nothing is deleted at the service until it is let through.
 */
import { existsSync, rmSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import type { RunId } from "../../src/service/Ids.ts"
import { dueDeletions } from "../../src/task/DeleteExecutions.ts"
import { backup } from "../../src/folder/Backup.ts"
import type { Fact } from "../../src/ledger/Fact.ts"
import { Ledger } from "../../src/ledger/Ledger.ts"
import { publishStage } from "../../src/run/PublishMeanwhile.ts"
import { Publisher } from "../../src/tables/Publisher.ts"
import { PublisherDuckDb } from "../../src/tables/PublisherDuckDb.ts"
import { readManifest } from "../../src/tables/Manifest.ts"
import { rebuild } from "../../src/tables/Rebuild.ts"
import { repair } from "../../src/tables/Repair.ts"
import { rollback } from "../../src/tables/Rollback.ts"
import { copiesOf } from "../harness/CopiesOf.ts"
import { anId } from "../harness/Id.ts"
import {
  append,
  begin,
  drained,
  engine,
  folder,
  foundation,
  problemsIn,
  profileOf,
  publisherOptions,
  resultsOf,
  rowsOf,
  stateOf,
  storeOf,
  succeed,
} from "./night.ts"

const runOf = (day: number): RunId => anId(`nightly.2026-11-${day}`)
/** Does not pass as soon as anybody is called Eve. */
const gates = {
  keys: true,
  tests: [{ name: "no_eve", sql: "SELECT 1 FROM nights.customer_profiles WHERE name = 'Eve'" }],
}
const models = [{ name: "people", sql: "SELECT DISTINCT name FROM nights.customer_profiles" }]

/** Everybody whom the night asks for has to succeed. */
const covered = (root: string) =>
  PublisherDuckDb.layer({
    ...publisherOptions(root),
    gates: { keys: false, coverage: 1, tests: [] },
  }).pipe(Layer.provideMerge(foundation(root)))

const planned = (run_id: RunId, customer: string): Fact => ({
  _tag: "TaskPlanned",
  run_id,
  task_id: anId(`${run_id}/${customer}/${engine}`),
  customer_id: anId(customer),
  engine_reference: anId(engine),
  features: ["customer_information_read"],
})

const layers = (root: string) =>
  PublisherDuckDb.layer({ ...publisherOptions(root), gates, models }).pipe(
    Layer.provideMerge(foundation(root)),
  )

const arrive = Effect.fnUntraced(function* (run_id: RunId, customer: string, name: string) {
  const id = `${run_id}-${customer}`
  yield* succeed(run_id, id, customer, resultsOf(profileOf(name)), stateOf(id, customer))
  yield* drained(run_id, id, customer)
})

/** Ana's two nights are published; then Eve arrives in the second one, and is held back. */
const heldNights = Effect.gen(function* () {
  for (const day of [20, 21]) {
    yield* append([begin(runOf(day), `2026-11-${day}`)])
    yield* arrive(runOf(day), "c-1", "Ana")
    yield* publishStage(runOf(day))
  }
  yield* arrive(runOf(21), "c-2", "Eve")
  yield* publishStage(runOf(21))
})

const accept = Effect.gen(function* () {
  yield* append([{ _tag: "RunAccepted", run_id: runOf(21) }])
  yield* publishStage(runOf(21))
})

/** Day and name of every profile that readers find. */
const current = (root: string) =>
  Effect.map(rowsOf(root, "SELECT run_id, name FROM nights.customer_profiles ORDER BY ALL"), (rows) =>
    rows.map((row) => `${String(row["run_id"]).slice(-2)} ${String(row["name"])}`),
  )
const due = Effect.gen(function* () {
  const ledger = yield* Ledger
  const state = yield* ledger.state(runOf(21))
  return state === undefined ? undefined : dueDeletions(state).length
})
const people = (root: string) => rowsOf(root, "SELECT count(*)::INTEGER AS n FROM people")
const text = "a gate of its job holds its newest version back: `nightjar accept` publishes it"
const held = "published/held/nightly.2026-11-21.duckdb"

const afterHeldNights = copiesOf((root) => Effect.provide(heldNights, layers(root)))

const inFolder = <E>(
  work: (root: string) => Effect.Effect<void, E, Layer.Success<ReturnType<typeof layers>>>,
) =>
  Effect.gen(function* () {
    const root = yield* afterHeldNights
    yield* Effect.provide(work(root), layers(root))
  }).pipe(Effect.scoped)

describe("a run with a version that is held back", () => {
  it.live("stays held after a rollback, and is published from the newest version once it is accepted", () =>
    inFolder((root) =>
      Effect.gen(function* () {
        assert.deepStrictEqual([yield* current(root), yield* due], [["20 Ana", "21 Ana"], 0])
        yield* Effect.flatMap(storeOf(root), rollback)
        assert.deepStrictEqual([yield* current(root), yield* due], [["20 Ana"], 0])
        // Asked again after the rollback, it leaves what was put back.
        yield* publishStage(runOf(21))
        assert.deepStrictEqual([yield* current(root), yield* people(root)], [["20 Ana"], [{ n: 1 }]])
        assert.isTrue(existsSync(join(root, held)))
        assert.deepStrictEqual(yield* problemsIn(root), [])
        yield* accept
        assert.deepStrictEqual([yield* current(root), yield* due], [["20 Ana", "21 Ana", "21 Eve"], 2])
        assert.deepStrictEqual([yield* people(root), existsSync(join(root, held))], [[{ n: 2 }], false])
        assert.deepStrictEqual(yield* problemsIn(root), [])
      }),
    ),
  )

  it.live(
    "does not come back as what was published of it while it went on, after a rollback [interim back]",
    () =>
      Effect.gen(function* () {
        const root = yield* folder
        const rerun = (number: number) => anId(`nightly.2026-11-20.${number}`) satisfies RunId as RunId
        const others = Effect.fnUntraced(function* (run_id: RunId, name: string) {
          yield* append([begin(run_id, "2026-11-20")])
          yield* arrive(run_id, "c-1", name)
          yield* publishStage(run_id)
        })
        yield* Effect.gen(function* () {
          yield* others(runOf(20), "Ana")
          yield* append([begin(runOf(21), "2026-11-21")])
          yield* arrive(runOf(21), "c-3", "Bea")
          const over = new Set([`${runOf(21)}/c-3/${engine}`])
          yield* Effect.flatMap(Publisher, ({ publishInterim }) => publishInterim(runOf(21), over))
          yield* others(rerun(2), "Cleo")
          assert.deepStrictEqual(yield* current(root), ["20 Ana", ".2 Cleo", "21 Bea"])
          yield* Effect.flatMap(storeOf(root), rollback)
          yield* arrive(runOf(21), "c-2", "Eve")
          yield* publishStage(runOf(21))
          assert.deepStrictEqual(yield* current(root), ["20 Ana"])
          yield* others(rerun(3), "Dora")
          assert.deepStrictEqual(yield* current(root), ["20 Ana", ".2 Cleo", ".3 Dora"])
          assert.deepStrictEqual(yield* problemsIn(root), [])
          yield* accept
          assert.deepStrictEqual(yield* current(root), ["20 Ana", ".2 Cleo", ".3 Dora", "21 Bea", "21 Eve"])
        }).pipe(Effect.provide(layers(root)))
      }).pipe(Effect.scoped),
  )

  it.live("keeps its published tables in `rebuild` and `repair`, which ask no gate [gate rebuilt]", () =>
    inFolder((root) =>
      Effect.gen(function* () {
        const rebuilt = yield* rebuild(yield* storeOf(root), true)
        assert.deepStrictEqual(rebuilt.kept, [{ run_id: runOf(21), reason: text, pruned: false }])
        assert.deepStrictEqual([yield* current(root), yield* due], [["20 Ana", "21 Ana"], 0])
        assert.deepStrictEqual(yield* people(root), [{ n: 1 }])
        const files = readManifest(join(root, "tables/manifest.json"))?.runs[runOf(21)]?.files ?? []
        const lost = files.find(({ table }) => table === "customer_profiles")?.path ?? ""
        rmSync(join(root, lost))
        const { left } = yield* repair(yield* storeOf(root))
        assert.deepStrictEqual(left, [`${runOf(21)}: its tables are not derived again: ${text}`])
        yield* accept
        assert.deepStrictEqual([yield* current(root), yield* due], [["20 Ana", "21 Ana", "21 Eve"], 2])
      }),
    ),
  )

  it.live("is let through in a copy of the folder, which has the models and the version aside", () =>
    inFolder((root) =>
      Effect.gen(function* () {
        const copy = join(yield* folder, "copy")
        yield* backup(root, copy)
        yield* Effect.gen(function* () {
          assert.isTrue(existsSync(join(copy, held)))
          // Without the job's own files: what is published again has the models that are kept.
          rmSync(join(copy, "nightjar.duckdb"))
          yield* repair(yield* storeOf(copy))
          assert.deepStrictEqual(yield* people(copy), [{ n: 1 }])
          yield* accept
          assert.deepStrictEqual(yield* current(copy), ["20 Ana", "21 Ana", "21 Eve"])
        }).pipe(Effect.provide(layers(copy)))
      }).pipe(Effect.scoped),
    ),
  )

  it.live(
    "is not let through by the rerun of an earlier night, whose gates say nothing about it [gate night]",
    () =>
      Effect.gen(function* () {
        const root = yield* folder
        const rerun = anId("nightly.2026-11-21.2") satisfies RunId as RunId
        yield* Effect.gen(function* () {
          for (const day of [21, 22]) {
            const run_id = runOf(day)
            yield* append([begin(run_id, `2026-11-${day}`), planned(run_id, "c-1")])
            assert.deepStrictEqual(yield* publishStage(run_id), [])
          }
          yield* append([begin(rerun, "2026-11-21")])
          yield* arrive(rerun, "c-1", "Ana")
          assert.deepStrictEqual(yield* publishStage(rerun), [runOf(21)])
          assert.deepStrictEqual(yield* rowsOf(root, "SELECT run_id FROM ops.runs ORDER BY ALL"), [
            { run_id: runOf(21) },
            { run_id: rerun },
          ])
        }).pipe(Effect.provide(covered(root)))
      }).pipe(Effect.scoped),
  )

  it.live("is not let through by a later night that is published again with nothing new [gate asked]", () =>
    Effect.gen(function* () {
      const root = yield* folder
      yield* Effect.gen(function* () {
        for (const day of [21, 22]) {
          yield* append([begin(runOf(day), `2026-11-${day}`)])
          yield* arrive(runOf(day), "c-1", "Ana")
          yield* publishStage(runOf(day))
        }
        yield* append([planned(runOf(21), "c-2")])
        yield* publishStage(runOf(21))
        assert.deepStrictEqual([yield* publishStage(runOf(22)), yield* due], [[], 0])
        yield* arrive(runOf(22), "c-2", "Bea")
        assert.deepStrictEqual([yield* publishStage(runOf(22)), yield* due], [[runOf(21)], 1])
      }).pipe(Effect.provide(covered(root)))
    }).pipe(Effect.scoped),
  )
})
