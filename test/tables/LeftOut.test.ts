/**
 * Bodies that publication can make nothing of: each is left out and told, the others' rows stand as if it were
 * not there, and nothing of its execution counts as proved.
 */
import { assert, describe } from "@effect/vitest"
import { Effect } from "effect"
import { bodyBounds } from "../../src/service/BodyBounds.ts"
import { Publisher } from "../../src/tables/Publisher.ts"
import { Normaliser } from "../../src/records/Normalise.ts"
import {
  append,
  begin,
  engine,
  folder,
  layers,
  problemsIn,
  profileOf,
  resultsOf,
  rowsOf,
  stateOf,
  succeed,
} from "./night.ts"
import { anId } from "../harness/Id.ts"
import { live } from "../harness/Steps.ts"

const run_id = anId("nightly.2026-11-20")
const task_id = anId(`${run_id}/c-2/${engine}`)
const deep = `${"[".repeat(bodyBounds.depthMax + 1)}${"]".repeat(bodyBounds.depthMax + 1)}`

const publishWith = Effect.fnUntraced(function* (
  root: string,
  results: unknown,
  state: unknown = stateOf("2", "c-2"),
) {
  yield* succeed(run_id, "1", "c-1", resultsOf(profileOf("Ana")))
  yield* succeed(run_id, "2", "c-2", results, state)
  yield* succeed(run_id, "3", "c-3", resultsOf(profileOf("Eve")))
  const publisher = yield* Publisher
  const published = yield* publisher.publish(run_id)
  const names = yield* rowsOf(root, "SELECT customer_id, name FROM nights.customer_profiles ORDER BY ALL")
  const coverage = yield* rowsOf(root, "SELECT customer_id, outcome, reason FROM ops.coverage ORDER BY ALL")
  const rejected = yield* rowsOf(root, "SELECT customer_id, reason FROM ops.rejected_records ORDER BY ALL")
  return { published, names, coverage, rejected }
})

const others = [
  { customer_id: "c-1", name: "Ana" },
  { customer_id: "c-3", name: "Eve" },
]
const succeeded = (customer_id: string) => ({
  customer_id,
  outcome: "succeeded",
  reason: "FEATURE_COMPLETED",
})

describe("a body in another encoding than UTF-8", () => {
  live("has its records in the tables, and is counted for a warning [bodies garbled]", function* () {
    const root = yield* folder
    const latin1 = new Uint8Array(Buffer.from(JSON.stringify(resultsOf(profileOf("José"))), "latin1"))
    const night = Effect.andThen(append([begin(run_id, "2026-11-20")]), publishWith(root, latin1))
    const { published, names } = yield* Effect.provide(night, layers(root))
    assert.strictEqual(published.garbled, 1)
    assert.deepInclude(names, { customer_id: "c-2", name: "Jos\uFFFD" })
  })
})

describe("a body that publishing cannot use", () => {
  live(
    "is left out when it exceeds a limit: reported with its place, unproved, without affecting others",
    function* () {
      const root = yield* folder
      const night = Effect.gen(function* () {
        // Nothing counted, so that nothing but the body itself speaks against a deletion.
        const counted = stateOf("2", "c-2", { products_count: {} })
        yield* append([begin(run_id, "2026-11-20")])
        // A state: the row of its execution has what the ledger knows.
        yield* succeed(run_id, "4", "c-4", resultsOf(profileOf("Bob")), `{"features":${deep}}`)
        const found = yield* publishWith(root, `{"is_closed":true,"data":${deep}}`, counted)
        const sql = "SELECT status_code, extra FROM ops.executions WHERE execution_id = 'e-4'"
        return { ...found, executions: yield* rowsOf(root, sql) }
      })
      const { published, names, coverage, rejected, executions } = yield* Effect.provide(night, layers(root))
      const reason = `the body cannot be used: it is nested deeper than ${bodyBounds.depthMax} levels`
      assert.deepStrictEqual(names, [...others, { customer_id: "c-4", name: "Bob" }])
      assert.deepStrictEqual(rejected, [{ customer_id: "c-2", reason }])
      assert.deepStrictEqual(executions, [{ status_code: "COMPLETED", extra: null }])
      const left = published.left_out.filter(({ execution_id }) => execution_id === "e-2")
      assert.deepStrictEqual(left, [
        { task_id, attempt: 1, execution_id: anId("e-2"), where: left[0]?.where ?? "", reason },
      ])
      assert.match(left[0]?.where ?? "", /^segment-000001\.njl:\d+$/)
      const whole = published.receipts.map((one) => [one.execution_id, one.whole])
      assert.deepStrictEqual(whole, [
        ["e-4", false],
        ["e-1", true],
        ["e-2", false],
        ["e-3", true],
      ])
      assert.deepStrictEqual(coverage.slice(0, 3), [
        succeeded("c-1"),
        { customer_id: "c-2", outcome: "partial", reason: "ANSWER_UNUSABLE" },
        succeeded("c-3"),
      ])
      assert.deepStrictEqual(yield* Effect.provide(problemsIn(root), layers(root)), [])
    },
  )

  live(
    "is left out when a defect occurs half-way or once all its rows are there, with every one of them [promise 11 rows]",
    function* () {
      const root = yield* folder
      const addRecords = Normaliser.prototype.add
      Normaliser.prototype.add = function (this: Normaliser, lineage, data, beside) {
        const isTrapped = lineage.customer_id === "c-4" && Array.isArray(data)
        let looks = 0
        // The second record throws once the first one is in the builders.
        const trap = new Proxy(profileOf("Eva"), {
          ownKeys: (target) => {
            looks += 1
            // Found as a record first; then its neighbour is written, and then it is read.
            if (looks > 1) throw new TypeError("quotes a body")
            return Reflect.ownKeys(target)
          },
        })
        const counts = addRecords.call(this, lineage, isTrapped ? [...data, trap] : data, beside)
        if (lineage.customer_id === "c-2") throw new TypeError("quotes a body")
        return counts
      }
      const night = Effect.gen(function* () {
        yield* append([begin(run_id, "2026-11-20")])
        yield* succeed(run_id, "4", "c-4", resultsOf(profileOf("Ida")))
        return yield* publishWith(root, resultsOf(profileOf("Bob")))
      })
      const undone = Effect.sync(() => void (Normaliser.prototype.add = addRecords))
      const { published, names, rejected } = yield* Effect.ensuring(
        Effect.provide(night, layers(root)),
        undone,
      )
      const reason = "a defect in the program (TypeError)"
      assert.deepStrictEqual(names, others)
      assert.deepStrictEqual(rejected, [
        { customer_id: "c-2", reason },
        { customer_id: "c-4", reason },
      ])
      assert.deepStrictEqual(
        published.left_out.map((left) => [left.execution_id, left.reason]),
        [
          ["e-4", reason],
          ["e-2", reason],
        ],
      )
      assert.deepStrictEqual(
        published.receipts.map(({ whole }) => whole),
        [false, true, false, true],
      )
    },
  )
})
