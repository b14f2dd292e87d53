/** The queries that come with the program, each on the same two published nights. */
import { fileURLToPath } from "node:url"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Stream } from "effect"
import { readSavedQueries } from "../../src/cli/commands/Query.ts"
import { Landing } from "../../src/landing/Landing.ts"
import { Publisher } from "../../src/tables/Publisher.ts"
import { anId } from "../harness/Id.ts"
import { live } from "../harness/Steps.ts"
import {
  append,
  begin,
  engine,
  folder,
  layers,
  opened,
  profileOf,
  resultsOf,
  rowsOf,
  stateOf,
  succeed,
} from "../tables/night.ts"

const queries = readSavedQueries(fileURLToPath(new URL("../../", import.meta.url)))

const account = (balance: string) => ({ product: "accounts", sub_family: "bank:account", balance })
const refused = { ...profileOf("Eva"), type: "company", emails: "a list?" }

/** The outcome of cards, and the records that came. */
type Came = Readonly<Record<string, readonly ["COMPLETED" | "FAILED", ...data: ReadonlyArray<object>]>>

const night = Effect.fnUntraced(function* (date: string, customers: Came) {
  const run_id = `nightly.${date}`
  yield* append([begin(run_id, date)])
  for (const [customer, [cards, ...data]] of Object.entries(customers)) {
    const id = `${run_id}-${customer}`
    const features = [
      { code: "customer_information_read", status_reason: "FEATURE_COMPLETED" },
      { code: "accounts_read", status_reason: "FEATURE_COMPLETED" },
      { code: "cards_read", status_reason: `FEATURE_${cards}` },
    ]
    const state = stateOf(id, customer, { features, products_count: { "account:checking@accounts": 3 } })
    yield* succeed(run_id, id, customer, resultsOf(...data), state)
    if (data.some((record) => "attachment_id" in record)) yield* download(run_id, id, customer)
  }
  yield* Effect.flatMap(Publisher, (publisher) => publisher.publish(anId(run_id)))
})

const download = Effect.fnUntraced(function* (run_id: string, id: string, customer: string) {
  const landing = yield* Landing
  const landed = yield* landing.landAttachment(Stream.make(new TextEncoder().encode(customer)))
  const task = { run_id: anId(run_id), task_id: anId(`${run_id}/${customer}/${engine}`) }
  const read = { session_id: anId(`s-${id}`), attachment_id: "doc-1", status: "downloaded" as const }
  yield* append([{ _tag: "AttachmentRead", ...task, ...read, ...landed }])
})

const answersOf = Effect.fnUntraced(function* (root: string) {
  const connection = yield* opened(root)
  const found: Record<string, ReadonlyArray<string>> = {}
  for (const { name, sql } of queries)
    found[name] = (yield* connection.rows(sql)).map((row) =>
      Object.values(row).join(" | ").replaceAll(engine, "bank"),
    )
  return found
}, Effect.scoped)

describe("the saved queries", () => {
  it("are ten, each with what it answers in one line", () => {
    assert.deepStrictEqual(
      queries.map(({ name, description }) => [name, /^[A-Z].{20,110}\.$/.test(description)]),
      "changed counted documents former freshness missing rejected reliability slowest unschemed"
        .split(" ")
        .map((name) => [name, true]),
    )
  })

  live(
    "answer from two nights with a change, a failure, a rejected record, a document and a customer who left",
    function* () {
      const root = yield* folder
      yield* Effect.gen(function* () {
        yield* night("2026-11-20", {
          "c-1": ["COMPLETED", profileOf("Ana"), account("1")],
          "c-2": ["COMPLETED", profileOf("Bob")],
        })
        yield* night("2026-11-21", {
          "c-1": [
            "FAILED",
            { ...profileOf("Eva"), emails: "a list?" },
            { ...account("2"), attachment_id: "doc-1" },
          ],
        })
        const found = yield* answersOf(root)
        const [{ today, before } = {}] = yield* rowsOf(
          root,
          `SELECT (current_date - DATE '2026-11-21')::INTEGER AS today,
             (current_date - DATE '2026-11-20')::INTEGER AS before`,
        )
        assert.deepStrictEqual(found, {
          changed: [
            "customer_profiles | gone | customer_information | customer_information:user_profile |  | 1 | 1",
            "customer_profiles | rejected | customer_information | customer_information:user_profile |  | 1 | 1",
            "other_records | added | accounts | bank:account |  | 1 | 1",
            "other_records | gone | accounts | bank:account |  | 1 | 1",
          ],
          counted: ["c-1 | bank | accounts_read | 3 | 1 | 2 | succeeded | COMPLETED | nightly.2026-11-21"],
          documents: ["c-1 | bank |  | 1 | 1 | 3"],
          former: ["c-2 | nightly | 2026-11-20 | 2026-11-20"],
          freshness: [
            `bank | accounts_read | 1 | 1 | ${today} | 0`,
            `bank | cards_read | 1 | 0 | ${before} | 0`,
            `bank | customer_information_read | 1 | 1 | ${today} | 0`,
          ],
          missing: [`c-1 | bank | cards_read | failed | FEATURE_FAILED | engineer | 2026-11-20 | ${before}`],
          rejected: [
            "customer_information | customer_information:user_profile | expected list, got text | data[].emails | " +
              "1 | 1 | nightly.2026-11-21",
          ],
          reliability: ["bank | 2026-11-16 | 3 | 3 | 100 | 0"],
          slowest: ["c-1 | bank | 0 | 1 | succeeded | COMPLETED | nightly.2026-11-21/c-1/bank"],
          unschemed: ["accounts | bank:account | 1 | 1 | 2026-11-20 | 2026-11-21"],
        })
      }).pipe(Effect.provide(layers(root)))
    },
  )

  live(
    "call a record rejected only if one was rejected since then that it may be [decision 10 rejected]",
    function* () {
      const root = yield* folder
      yield* Effect.gen(function* () {
        const strange = { ...account("1"), sub_family: 7 }
        yield* night("2026-11-20", {
          "c-0": ["COMPLETED", refused, profileOf("Ana")],
          "c-1": ["COMPLETED", profileOf("Bob"), account("1")],
          "c-2": ["COMPLETED", profileOf("Cia"), account("1")],
        })
        yield* night("2026-11-21", {
          "c-0": ["COMPLETED", refused],
          "c-1": ["COMPLETED", refused],
          "c-2": ["COMPLETED", strange],
        })
        const rows = yield* rowsOf(
          root,
          "SELECT customer_id, table_name, change FROM changes('2026-11-20', '2026-11-21') ORDER BY ALL",
        )
        assert.deepStrictEqual(
          rows.map((row) => Object.values(row).join(" | ")),
          [
            "c-0 | customer_profiles | gone",
            "c-1 | customer_profiles | rejected",
            "c-1 | other_records | gone",
            "c-2 | customer_profiles | gone",
            "c-2 | other_records | rejected",
          ],
        )
      }).pipe(Effect.provide(layers(root)))
    },
  )
})
