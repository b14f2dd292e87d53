/** What analysts find without joins: what is current, since when, what changed, who left, and how fresh it is. */
import { assert, describe } from "@effect/vitest"
import { Effect } from "effect"
import { Ledger } from "../../src/ledger/Ledger.ts"
import { changeColumns } from "../../src/tables/Changes.ts"
import { rebuild } from "../../src/tables/Rebuild.ts"
import { anId } from "../harness/Id.ts"
import {
  append,
  begin,
  engine,
  profileOf,
  publish,
  resultsOf,
  rowsOf,
  stateOf,
  storeOf,
  succeed,
  liveIn,
} from "./night.ts"

const first = "nightly.2026-11-20"
const second = "nightly.2026-11-21"
const rerun = "nightly.2026-11-21.2"

const ana = profileOf("Ana")
const account = (balance: string) => ({ product: "accounts", sub_family: "bank:account", balance })
const card = { product: "cards", sub_family: "card:debit", number: "1" }

/** The outcome of each feature, and the records that came. */
const night = Effect.fnUntraced(function* (
  run: string,
  customers: Readonly<
    Record<string, readonly [cards: "COMPLETED" | "FAILED", ...data: ReadonlyArray<object>]>
  >,
  more: {
    readonly parent?: string
    readonly began_at?: number
  } = {},
) {
  const begun = begin(run, /\d{4}-\d\d-\d\d/.exec(run)?.[0] ?? "")
  yield* append([{ ...begun, ...more } as typeof begun])
  for (const [customer, [cards, ...data]] of Object.entries(customers)) {
    const id = `${run}-${customer}`
    const features = [
      { code: "customer_information_read", status_reason: "FEATURE_COMPLETED" },
      { code: "accounts_read", status_reason: "FEATURE_COMPLETED" },
      { code: "cards_read", status_reason: `FEATURE_${cards}` },
    ]
    yield* succeed(run, id, customer, resultsOf(...data), stateOf(id, customer, { features }))
  }
  yield* publish(run)
})

/** Both nights are over; between them, the catalogue said something of the engine. */
const twoNights = Effect.gen(function* () {
  yield* night(first, {
    "c-1": ["COMPLETED", ana, account("1"), card],
    "c-2": ["COMPLETED", profileOf("Bob")],
  })
  const body = JSON.stringify({ name: "Tax agency", markets: ["ES"], status: 7 })
  const { cacheForm } = yield* Ledger
  yield* cacheForm({ engine_reference: anId(engine), fetched_at: 1, body })
  // Another time of fetching, another balance, no cards today; and one customer has left.
  yield* night(second, {
    "c-1": ["FAILED", { ...ana, fetch_date: "2026-11-21T03:04:05Z" }, account("2")],
  })
})
/** The same date once more: another address, and the card is really gone. */
const secondNightAgain = night(
  rerun,
  { "c-1": ["COMPLETED", { ...ana, emails: ["new@example.test"] }, account("2")] },
  { parent: second },
)

/** The cells of each row, in the order of the query. */
const cellsOf = (root: string, sql: string) =>
  Effect.map(rowsOf(root, sql), (rows): ReadonlyArray<ReadonlyArray<unknown>> =>
    rows.map((row) => Object.values(row)),
  )

describe("published tables and views", () => {
  liveIn()(
    "tell who left, which features there are, how fresh everything is, since when a record is as it is, and what changed between two nights, but for times; versions that begin and end on one day have their own lists [decision 10 version key] [promise 18 order]",
    function* (root) {
      yield* twoNights
      assert.deepStrictEqual(yield* cellsOf(root, "SELECT * FROM customers ORDER BY 1"), [
        ["c-1", ["nightly"], [engine], "2026-11-20", "2026-11-21"],
      ])
      assert.deepStrictEqual(
        yield* rowsOf(root, "SELECT engine_reference, name, markets, first_seen, last_seen FROM engines"),
        [
          {
            engine_reference: engine,
            name: "Tax agency",
            markets: ["ES"],
            first_seen: "2026-11-20",
            last_seen: "2026-11-21",
          },
        ],
      )
      assert.deepStrictEqual(yield* cellsOf(root, "SELECT * FROM features ORDER BY 1"), [
        ["customer_information_read", [engine], "2026-11-20", "2026-11-21"],
      ])
      assert.deepStrictEqual(
        yield* cellsOf(
          root,
          `SELECT customer_id, feature, outcome, records, fresh_date,
               age_days = date_diff('day', fresh_date, current_date) FROM coverage WHERE feature <> 'accounts_read' ORDER BY ALL`,
        ),
        [
          ["c-1", "cards_read", "failed", 0, "2026-11-20", true],
          ["c-1", "customer_information_read", "succeeded", 1, "2026-11-21", true],
        ],
      )
      yield* secondNightAgain
      assert.deepStrictEqual(
        yield* cellsOf(
          root,
          `SELECT customer_id, valid_from, valid_to, ended_by, email
             FROM history.emails ORDER BY customer_id, valid_to NULLS LAST`,
        ),
        [
          ["c-1", "2026-11-20", "2026-11-21", "changed", "Ana@example.test"],
          ["c-1", "2026-11-21", null, null, "new@example.test"],
          ["c-2", "2026-11-20", "2026-11-21", "not requested", "Bob@example.test"],
        ],
      )
      const changes = (earlier: string, later: string) =>
        cellsOf(
          root,
          `SELECT table_name, change, customer_id, sub_family, record_key, changed_columns, run_id
             FROM changes('${earlier}', '${later}') ORDER BY sub_family, change`,
        )
      const other = (change: string, sub_family: string, run: string) => [
        "other_records",
        change,
        "c-1",
        sub_family,
        null,
        null,
        run,
      ]
      const left = ["customer_profiles", "gone", "c-2", ana.sub_family, '{"type":"person"}', null, second]
      const accounts = [other("added", "bank:account", second), other("gone", "bank:account", second)]
      const onRerun = [
        other("gone", "card:debit", rerun),
        ["customer_profiles", "changed", "c-1", ana.sub_family, '{"type":"person"}', ["emails"], rerun],
      ]
      assert.deepStrictEqual(yield* changes(first, second), [...accounts, left])
      assert.deepStrictEqual(yield* changes(second, rerun), onRerun)
      assert.deepStrictEqual(yield* changes("2026-11-20", "2026-11-21"), [...accounts, ...onRerun, left])
      assert.deepStrictEqual(yield* changes("2026-11-21", "2026-11-21"), [])
      const described = yield* cellsOf(
        root,
        `SELECT column_name FROM (DESCRIBE SELECT * FROM changes('${first}', '${second}'))`,
      )
      assert.deepStrictEqual(
        described.flat(),
        changeColumns.map(({ name }) => name),
      )
      const wrong = yield* Effect.flip(changes("yesterday", second))
      assert.match(wrong.message, /yesterday is neither a run nor a date/)
      const turned = yield* Effect.flip(changes(second, first))
      assert.match(turned.message, /the first run or date is later than the second/)
      const third = `${second}.3`
      yield* night(third, { "c-1": ["COMPLETED", { ...ana, emails: ["newer@example.test"] }] })
      assert.deepStrictEqual(
        yield* cellsOf(
          root,
          `SELECT email, v.valid_from, v.valid_to, run_id FROM history.customer_profiles AS v
             JOIN history.emails USING (record_id, since_sequence)
             JOIN ops.runs ON sequence = since_sequence WHERE v.customer_id = 'c-1' ORDER BY sequence`,
        ),
        [
          ["Ana@example.test", "2026-11-20", "2026-11-21", first],
          ["new@example.test", "2026-11-21", "2026-11-21", rerun],
          ["newer@example.test", "2026-11-21", null, third],
        ],
      )
    },
  )

  liveIn()(
    "are not younger than today where the clock of a run was ahead, and have right dates after the run that began last, but since when: those by a rebuild [promise 9 as_of] [promise 9 valid_from]",
    function* (root) {
      const at = (date: string) => ({ began_at: Date.parse(`${date}T22:30:00Z`) })
      const [bob, cy] = [profileOf("Bob"), profileOf("Cy")]
      yield* night(first, { "c-1": ["COMPLETED", ana], "c-2": ["COMPLETED", bob] }, at("2026-11-20"))
      const ahead = { "c-1": ["COMPLETED", ana, cy], "c-2": ["COMPLETED", bob] } as const
      yield* night("nightly.2099-01-02", ahead, at("2099-01-02"))
      const ages = "SELECT age_days FROM customer_profiles UNION SELECT age_days FROM coverage"
      assert.deepStrictEqual(yield* cellsOf(root, ages), [[0]])
      yield* night(second, { "c-1": ["COMPLETED", ana, cy], "c-2": ["COMPLETED"] }, at("2026-11-21"))
      const dates = Effect.all([
        cellsOf(root, "SELECT name, valid_from, as_of FROM customer_profiles ORDER BY ALL"),
        cellsOf(
          root,
          `SELECT DISTINCT customer_id, fresh_date FROM coverage
              WHERE feature = 'customer_information_read' ORDER BY ALL`,
        ),
        cellsOf(
          root,
          "SELECT name, valid_from, valid_to FROM history.customer_profiles WHERE valid_to IS NOT NULL",
        ),
        cellsOf(root, "SELECT last_seen FROM customers WHERE customer_id = 'c-1'"),
      ])
      const fresh = [
        ["c-1", "2026-11-21"],
        ["c-2", "2026-11-21"],
      ]
      assert.deepStrictEqual(yield* dates, [
        [
          ["Ana", "2026-11-20", "2026-11-21"],
          ["Cy", "2099-01-02", "2026-11-21"],
        ],
        fresh,
        [["Bob", "2026-11-20", "2099-01-02"]],
        [["2099-01-02"]],
      ])
      yield* rebuild(yield* storeOf(root), true)
      assert.deepStrictEqual(yield* dates, [
        [
          ["Ana", "2026-11-20", "2026-11-21"],
          ["Cy", "2026-11-21", "2026-11-21"],
        ],
        fresh,
        [["Bob", "2026-11-20", "2026-11-21"]],
        [["2026-11-21"]],
      ])
    },
  )
})
