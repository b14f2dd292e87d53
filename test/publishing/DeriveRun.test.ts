/** A receipt stands for every body of its execution, those that become no rows too. */
import { createHash } from "node:crypto"
import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { bodyBounds } from "../../src/contract/BodyBounds.ts"
import { Landing } from "../../src/landing/Landing.ts"
import type { Fact } from "../../src/ledger/Fact.ts"
import { Ledger, LedgerFailed } from "../../src/ledger/Ledger.ts"
import { deriveRun, receiptOf } from "../../src/publishing/DeriveRun.ts"
import { loadPicture } from "../../src/publishing/RunPicture.ts"
import { append, begin, engine, folder, foundation, profileOf, resultsOf, stateOf, succeed } from "./night.ts"
import { anId } from "../harness/Id.ts"

const run_id = anId("nightly.2026-11-20")
const derive = Effect.gen(function* () {
  const picture = yield* loadPicture(run_id)
  return yield* deriveRun(picture, { families: [], tables: [], sink: () => Effect.void })
})

describe("a receipt", () => {
  it.effect.each(["state", "results"] as const)(
    "is not given if an older %s body that becomes no row has changed since it was landed",
    (kind) =>
      Effect.gen(function* () {
        const root = yield* folder
        yield* Effect.gen(function* () {
          const landing = yield* Landing
          yield* append([begin(run_id, "2026-11-20")])
          const older =
            kind === "state" ? stateOf("1", "c-1", { is_closed: false }) : resultsOf(profileOf("Old"))
          const ref = yield* landing.land(
            {
              kind,
              run_id,
              task_id: anId(`${run_id}/c-1/${engine}`),
              attempt: 1,
              execution_id: anId("e-1"),
              session_id: anId("s-1"),
              http_status: 200,
              received_at: 1,
            },
            new TextEncoder().encode(JSON.stringify(older)),
          )
          yield* succeed(run_id, "1", "c-1", resultsOf(profileOf("Ana")))
          assert.lengthOf((yield* derive).receipts, 1)
          const path = join(root, "landing", run_id, ref.segment)
          const bytes = readFileSync(path)
          bytes[ref.offset + 20]! ^= 1
          writeFileSync(path, bytes)
          const failed = yield* Effect.flip(derive)
          assert.include(failed.message, `the body at offset ${ref.offset} is not what was landed`)
        }).pipe(Effect.provide(foundation(root)))
      }).pipe(Effect.scoped),
  )

  it.effect("is not given either where there are no results and an older state has changed", () =>
    Effect.gen(function* () {
      const root = yield* folder
      yield* Effect.gen(function* () {
        const landing = yield* Landing
        const task = { run_id, task_id: anId(`${run_id}/c-1/${engine}`) }
        const execution = { ...task, attempt: 1, execution_id: anId("e-1") }
        const land = (state: unknown) =>
          landing.land(
            { ...execution, kind: "state", http_status: 200, received_at: 1 },
            new TextEncoder().encode(JSON.stringify(state)),
          )
        const older = yield* land(stateOf("1", "c-1", { is_closed: false }))
        yield* append([
          begin(run_id, "2026-11-20"),
          { _tag: "TaskPlanned", ...task, features: [] },
          { _tag: "StartIntended", ...task, attempt: 1, external_execution_id: "x-1", probe: false },
          { _tag: "StartAnswered", ...execution, answer: "accepted" },
          {
            _tag: "AttemptClosed",
            ...execution,
            status_code: "COMPLETED",
            status_reason: "COMPLETED",
            landed: yield* land(stateOf("1", "c-1")),
          },
        ])
        assert.lengthOf((yield* derive).receipts, 1)
        const path = join(root, "landing", run_id, older.segment)
        const bytes = readFileSync(path)
        bytes[older.offset + 20]! ^= 1
        writeFileSync(path, bytes)
        assert.include((yield* Effect.flip(derive)).message, "is not what was landed")
      }).pipe(Effect.provide(foundation(root)))
    }).pipe(Effect.scoped),
  )

  const counting = (id: string, count: number, rest: object = {}) =>
    stateOf(id, `c-${id}`, {
      products_count: { "customer_information:user_profile@customer_information": count },
      ...rest,
    })
  const taskOf = (id: string) => anId(`${run_id}/c-${id}/${engine}`)
  const one = (name: string) => resultsOf(profileOf(name))
  /** Whether the receipt of each execution says that all of it is here; after this night of `succeed`. */
  const wholeOf = <E>(night: Effect.Effect<unknown, E, Ledger | Landing>) =>
    Effect.gen(function* () {
      const root = yield* folder
      const found = Effect.gen(function* () {
        yield* append([begin(run_id, "2026-11-20")])
        yield* night
        const { receipts } = yield* derive
        return receipts.map(({ execution_id, whole }) => [execution_id, whole])
      })
      return yield* Effect.provide(found, foundation(root))
    }).pipe(Effect.scoped)

  it.effect("says that all of an execution is here if its own session has as much as it counted", () =>
    Effect.gen(function* () {
      const night = Effect.gen(function* () {
        yield* succeed(run_id, "1", "c-1", one("Ana"), counting("1", 1))
        yield* succeed(run_id, "2", "c-2", one("Eva"), counting("2", 2))
        yield* succeed(run_id, "3", "c-3", { ...one("Eve"), is_closed: false }, counting("3", 1))
        yield* succeed(run_id, "4", "c-4", one("Bob"), stateOf("4", "c-4", { products_count: "?" }))
        yield* succeed(run_id, "5", "c-5", "no JSON", counting("5", 1))
        yield* succeed(run_id, "6", "c-6", resultsOf(), "no JSON")
        yield* succeed(run_id, "7", "c-7", resultsOf(), counting("7", 0))
      })
      assert.deepStrictEqual(yield* wholeOf(night), [
        ["e-1", true],
        ["e-2", false],
        ["e-3", false],
        ["e-4", false],
        ["e-5", false],
        ["e-6", false],
        ["e-7", true],
      ])
    }),
  )

  it.effect("says so of what the job does not want, unless one of its bodies could not be used", () =>
    Effect.gen(function* () {
      const unwanted = (id: string): Fact => ({
        _tag: "AttemptDrained",
        run_id,
        task_id: taskOf(id),
        attempt: 1,
        execution_id: anId(`e-${id}`),
        proof: { basis: "unwanted", families: [] },
      })
      const deep = `${"[".repeat(bodyBounds.depthMax + 1)}${"]".repeat(bodyBounds.depthMax + 1)}`
      const night = Effect.gen(function* () {
        yield* succeed(run_id, "1", "c-1", resultsOf(), counting("1", 2))
        yield* succeed(run_id, "2", "c-2", `{"is_closed":true,"data":${deep}}`, counting("2", 0))
        yield* succeed(run_id, "3", "c-3", resultsOf(), counting("3", 2))
        yield* append([unwanted("1"), unwanted("2")])
      })
      assert.deepStrictEqual(yield* wholeOf(night), [
        ["e-1", true],
        ["e-2", false],
        ["e-3", false],
      ])
    }),
  )

  it.effect(
    "is given once a final state is landed, and stands for the hashes of all bodies in any order",
    () =>
      Effect.gen(function* () {
        const root = yield* folder
        yield* Effect.gen(function* () {
          const landing = yield* Landing
          yield* append([begin(run_id, "2026-11-20")])
          yield* succeed(run_id, "1", "c-1", one("Ana"), counting("1", 1))
          yield* append([
            { _tag: "TaskPlanned", run_id, task_id: taskOf("2"), features: [] },
            {
              _tag: "StartIntended",
              run_id,
              task_id: taskOf("2"),
              attempt: 1,
              external_execution_id: "x-2",
              probe: false,
            },
            {
              _tag: "StartAnswered",
              run_id,
              task_id: taskOf("2"),
              attempt: 1,
              answer: "accepted",
              execution_id: anId("e-2"),
            },
          ])
          const hashes = (yield* landing.list(run_id)).map(({ ref }) => ref.sha256)
          const text = hashes.toSorted().join("\n")
          const landed_sha256 = createHash("sha256").update(text).digest("hex")
          const expected = [{ execution_id: anId("e-1"), landed_sha256, whole: true }]
          assert.deepStrictEqual((yield* derive).receipts, expected)
          assert.strictEqual(receiptOf(hashes.toReversed()), landed_sha256)
        }).pipe(Effect.provide(foundation(root)))
      }).pipe(Effect.scoped),
  )
})

describe("what ledger and landing say of a run", () => {
  it.effect("is called damaged only if the ledger itself is: what cannot be read now may be read later", () =>
    Effect.gen(function* () {
      const root = yield* folder
      const found = Effect.gen(function* () {
        const real = yield* Ledger
        yield* append([begin(run_id, "2026-11-20")])
        yield* succeed(run_id, "1", "c-1", resultsOf(profileOf("Ana")))
        const told = (failing: (failure: Effect.Effect<never, LedgerFailed>) => Partial<Ledger["Service"]>) =>
          Effect.forEach([false, true], (damaged) =>
            loadPicture(run_id).pipe(
              Effect.provideService(Ledger, {
                ...real,
                ...failing(Effect.fail(new LedgerFailed({ message: "disk gone", damaged }))),
              }),
              Effect.flip,
              Effect.map((failed) => [failed.message, failed.damaged]),
            ),
          )
        return [
          yield* told((failure) => ({ state: () => failure })),
          yield* told((pruned) => ({ pruned })),
          yield* told((failure) => ({ cachedForm: () => failure })),
        ]
      })
      const message = "the ledger: disk gone"
      const both = [
        [message, false],
        [message, true],
      ]
      assert.deepStrictEqual(yield* Effect.provide(found, foundation(root)), [both, both, both])
    }).pipe(Effect.scoped),
  )
})
