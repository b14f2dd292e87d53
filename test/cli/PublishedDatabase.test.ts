/** What pages show of the published tables: what a night changed, and the first rows; of anything large a part. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { DuckDb } from "../../src/base/DuckDb.ts"
import { firstRows, publishedFacts } from "../../src/cli/PublishedDatabase.ts"
import { Wiring } from "../../src/cli/Wiring.ts"
import { append, begin, folder, layers, profileOf, publish, resultsOf, succeed } from "../tables/night.ts"

const first = "nightly.2026-11-20"
const second = "nightly.2026-11-21"
const rerun = "nightly.2026-11-21.2"

const night = Effect.fnUntraced(function* (
  run: string,
  customers: Readonly<Record<string, object>>,
  more = {},
) {
  yield* append([
    { ...begin(run, /\d{4}-\d\d-\d\d/.exec(run)?.[0] ?? ""), ...more } as ReturnType<typeof begin>,
  ])
  for (const [customer, record] of Object.entries(customers))
    yield* succeed(run, `${run}-${customer}`, customer, resultsOf(record))
  yield* publish(run)
})

const inNights = <A, E, R>(work: (root: string) => Effect.Effect<A, E, R>) =>
  Effect.gen(function* () {
    const root = yield* folder
    yield* Effect.provide(work(root), layers(root))
  }).pipe(Effect.provideService(Wiring, { database: DuckDb.layer } as Wiring["Service"]), Effect.scoped)

const changesOf = (root: string, run_id: string, job = "nightly", hasPseudonyms = false) =>
  Effect.map(publishedFacts(root, { job, run_id, hasPseudonyms }), (facts) => facts?.changes)

describe("what a night changed", () => {
  it.live("is what its job's runs changed since the night before, with the first records of each table", () =>
    inNights((root) =>
      Effect.gen(function* () {
        assert.isUndefined(
          yield* publishedFacts(root, { job: "nightly", run_id: first, hasPseudonyms: false }),
        )
        yield* night(first, { "c-1": profileOf("Ana"), "c-2": profileOf("Bob"), "c-3": profileOf("Cleo") })
        yield* night(second, { "c-1": { ...profileOf("Ana"), name: "Anne" }, "c-3": profileOf("Cleo") })
        yield* night("other.2026-11-21", { "c-9": profileOf("Yan") }, { job: "other" })
        yield* night(rerun, { "c-3": profileOf("Clio") }, { parent: second })
        const engine_reference = "es-tax-agency:website"
        const cleo = {
          change: "changed" as const,
          customer_id: "c-3",
          engine_reference,
          columns: ["name", "emails"],
        }
        const ana = { change: "changed" as const, customer_id: "c-1", engine_reference, columns: ["name"] }
        const bob = { change: "gone" as const, customer_id: "c-2", engine_reference, columns: [] }
        const table = { table: "customer_profiles", added: 0, gone: 1, rejected: 0 }
        const told = { since: first, hasPseudonyms: false }
        assert.deepStrictEqual(yield* changesOf(root, second), {
          ...told,
          tables: [{ ...table, changed: 1, records: [bob, ana] }],
        })
        // A rerun belongs to its night: what the night changed before it is told again.
        assert.deepStrictEqual(yield* changesOf(root, rerun), {
          ...told,
          tables: [{ ...table, changed: 2, records: [bob, ana, cleo] }],
        })
        assert.deepStrictEqual(yield* changesOf(root, rerun, "nightly", true), {
          since: first,
          tables: [{ ...table, changed: 2, records: [] }],
          hasPseudonyms: true,
        })
        assert.deepStrictEqual(yield* changesOf(root, first), {
          since: undefined,
          tables: [],
          hasPseudonyms: false,
        })
        assert.isUndefined(yield* changesOf(root, "nightly.2026-11-22"))
      }),
    ),
  )
})

it.live(
  "the first rows of a table, and its changes, are ten at most, in the order of customers, each cell as text or its beginning",
  () =>
    inNights((root) =>
      Effect.gen(function* () {
        const looked = ["customer_profiles", "missing"].map((name) => ({ name, isModel: false }))
        assert.isUndefined(yield* firstRows(root, looked))
        const ids = Array.from({ length: 15 }, (_, n) => `c-${String(n).padStart(2, "0")}`)
        const recordOf = (id: string, index: number) => ({
          ...profileOf(id),
          alias: index === 1 ? "z".repeat(1_000_000) : index === 2 ? "" : null,
        })
        const records = ids.map((id, index) => [id, recordOf(id, index)] as const)
        yield* night(first, Object.fromEntries(records.slice(14)))
        yield* night(second, Object.fromEntries(records))
        const [profiles, ...others] = (yield* changesOf(root, second))?.tables ?? []
        assert.deepStrictEqual(
          [
            others,
            profiles?.added,
            profiles?.changed,
            profiles?.records.map(({ customer_id }) => customer_id),
          ],
          [[], 14, 0, ids.slice(0, 10)],
        )
        const found = yield* firstRows(root, looked)
        assert.deepStrictEqual([...(found?.keys() ?? [])], ["customer_profiles"])
        const { count, columns = [], rows = [] } = found?.get("customer_profiles") ?? {}
        const cells = (name: string) => rows.map((row) => row[columns.indexOf(name)])
        assert.deepStrictEqual([count, cells("customer_id")], [15, ids.slice(0, 10)])
        assert.deepStrictEqual(cells("alias"), [
          null,
          `${"z".repeat(200)}… [cut: 1000000 characters]`,
          "",
          ...Array.from({ length: 7 }, () => null),
        ])
        assert.deepStrictEqual(cells("fetch_date")[0], "2026-11-20 03:04:05+00")
      }),
    ),
)
