/**
 * A night with pseudonyms, of a service and a source that repeat the customer wherever they can: nobody who
 * holds only the tables finds the customer in them, and rows that belonged together still do.
 */
import { hash } from "node:crypto"
import { copyFileSync, cpSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Redacted } from "effect"
import { DuckDb } from "../../src/base/DuckDb.ts"
import { literal } from "../../src/base/DuckDbFailed.ts"
import { nameDocuments } from "../../src/folder/NamedDocuments.ts"
import { Ledger } from "../../src/ledger/Ledger.ts"
import { staleIn } from "../../src/tables/AskGates.ts"
import { compact } from "../../src/tables/Compact.ts"
import { revealer } from "../../src/tables/Disguise.ts"
import { forgetRows, countRowsOfCustomer } from "../../src/tables/ForgetRows.ts"
import { keyPlace, openStore, openStoreAsked } from "../../src/tables/OpenStore.ts"
import { filesBelow, layoutOf, nothingPublished, readManifest } from "../../src/tables/Manifest.ts"
import type { Pseudonyms } from "../../src/tables/Manifest.ts"
import { Publisher } from "../../src/tables/Publisher.ts"
import { inOrder, readPseudonymKey } from "../../src/tables/Treatments.ts"
import { rebuild } from "../../src/tables/Rebuild.ts"
import { repair } from "../../src/tables/Repair.ts"
import { rollback } from "../../src/tables/Rollback.ts"
import { verify } from "../../src/tables/Verify.ts"
import { anId } from "../harness/Id.ts"
import {
  append,
  begin,
  engine,
  folder,
  foundation,
  layers,
  profileOf,
  publish,
  publisherOptions,
  resultsOf,
  rowsOf,
  schemasFolder,
  stateOf,
  succeed,
  unsortedIn,
  relationsIn,
  liveIn,
  document,
} from "./night.ts"
import { live } from "../harness/Steps.ts"

const keyOf = (name: string) => {
  const key = readPseudonymKey(Redacted.make(hash("sha256", name, "hex")))
  assert.isDefined(key)
  return key
}
const asking = (columns: Readonly<Record<string, ReadonlyArray<string>>>, key = keyOf("of the night")) => ({
  key,
  reference: { _tag: "Env", name: "KEY" } as const,
  policy: { check: key.check, columns: inOrder(columns) },
})
const asked = asking({ customer_profiles: ["name", "alias"], emails: ["email"] })
const within = (root: string, pseudonyms: Pseudonyms | undefined = asked) =>
  layers(root, pseudonyms && { pseudonyms })
const opened = (root: string) => openStore(publisherOptions(root), asked.key)
const manifestIn = (root: string) => readManifest(layoutOf(root).manifest) ?? nothingPublished

const run = "nightly.2026-11-20"
const [ana, bea] = ["customer-0001", "customer-0002"] as const
/** Values of the chosen columns, and the ids: nothing of them may be in the tables. */
const secrets = [ana, bea, "Anastasia", "Beatrice", "example.test"]

const repeating = (id: string, customer: string, name: string) => ({
  ...stateOf(id, customer),
  status_message: `${customer} waited`,
  locking_hash: hash("sha256", customer, "hex"),
  app_id: `app of ${customer}`,
  // As a service may spell it: the row is the customer's all the same.
  customer_id: `${customer}/spelled otherwise`,
  features: [{ code: "customer_information_read", status_reason: "FEATURE_COMPLETED", status_message: name }],
  messages: [{ date: "2026-11-20T01:00:01Z", type: "info", id: "m-1", loc: [customer], message: name }],
  parameters_errors: [{ loc: [customer], msg: name, type: "format", ctx: { who: customer } }],
  products_count: { "customer_information:user_profile@customer_information": 1, [`odd ${customer}`]: 0 },
  unknown: { deep: [customer, name] },
})

const recordsOf = (customer: string, name: string) => {
  const profile = { ...profileOf(name), alias: name, unknown: name, emails: [`${name}@example.test`, 7] }
  const misfit = { ...profileOf(name), name: { first: name }, unknown: customer }
  const { fetch_date: _, ...rejected } = profileOf(name)
  const loose = { product: "accounts", sub_family: "bank:account", holder: name, of: customer }
  const named = { ...loose, attachment_id: "doc-1", title: `Deed of ${name}` }
  return { ...resultsOf(profile, misfit, rejected, named, name), hint: customer }
}

const night = Effect.fnUntraced(function* (run_id: string, suffix = "") {
  yield* append([begin(run_id, run_id.slice("nightly.".length))])
  for (const [customer, name] of [
    [ana, "Anastasia"],
    [bea, "Beatrice"],
  ] as const) {
    const id = `${customer.at(-1)}${suffix}`
    yield* succeed(run_id, id, customer, recordsOf(customer, name), repeating(id, customer, name))
    yield* document(run_id, id, "doc-1", name, customer)
  }
  return yield* publish(run_id)
})

/** Every cell of every table as text, from the database and from each Parquet file. */
const cellsIn = Effect.fnUntraced(function* (root: string) {
  const duckdb = yield* DuckDb
  const connection = yield* duckdb.open({ path: join(root, "nightjar.duckdb"), access: "read-only" })
  const tables = yield* relationsIn(connection)
  const files = filesBelow(join(root, "tables")).filter((path) => path.endsWith(".parquet"))
  const parquet = files.map((path) => `read_parquet(${literal(join(root, "tables", path))})`)
  const texts: Array<string> = []
  for (const source of [...tables, ...parquet])
    for (const row of yield* connection.rows(`SELECT to_json(t)::VARCHAR AS row FROM ${source} AS t`))
      texts.push(String(row["row"]))
  return texts
}, Effect.scoped)

const nameIn = Effect.fnUntraced(function* (root: string, reveal: (customer_id: string) => string) {
  const duckdb = yield* DuckDb
  const connection = yield* duckdb.open({ path: join(root, "nightjar.duckdb"), access: "read-only" })
  yield* nameDocuments(yield* opened(root), connection, reveal)
}, Effect.scoped)

/** A version that a gate held back when the tables still named the customers. */
const leaveAside = (root: string): void => {
  mkdirSync(join(root, "published/held"), { recursive: true })
  writeFileSync(join(root, "published/held/nightly.2026-11-19.duckdb"), secrets.join())
}

/** What of the customers is in the tables, by query and in the bytes of every file that analysts get. */
const foundIn = Effect.fnUntraced(function* (root: string, of: ReadonlyArray<string> = secrets) {
  const texts = yield* cellsIn(root)
  assert.isAbove(texts.length, 100)
  const paths = ["nightjar.duckdb", ...filesBelow(join(root, "tables")).map((path) => `tables/${path}`)]
  const kept = filesBelow(join(root, "published")).map((path) => `published/${path}`)
  const bytes = [...paths, ...kept].map((path) => readFileSync(join(root, path), "latin1"))
  return of.filter((secret) => [...texts, ...bytes].some((text) => text.includes(secret)))
})

describe("tables with pseudonyms", () => {
  liveIn(folder, within)(
    "hold no id and no chosen value, whatever service and source repeat, also derived again; a customer is found and removed",
    function* (root) {
      leaveAside(root)
      yield* night(run)
      const rejected = yield* rowsOf(root, "SELECT count(*)::INTEGER AS n FROM ops.rejected_records")
      assert.deepStrictEqual(rejected, [{ n: 4 }])
      yield* Effect.flatMap(Publisher, (publisher) => publisher.publishOutcome(anId(run)))
      assert.deepStrictEqual(yield* foundIn(root), [])
      const ids = [ana, bea].map((id) => asked.key.pseudonymOf("customer_id", id)).toSorted()
      assert.deepStrictEqual(
        yield* rowsOf(root, "SELECT customer_id FROM customers ORDER BY ALL"),
        ids.map((customer_id) => ({ customer_id })),
      )
      // Rows of one record, task and session still join, and equal values of two columns have one pseudonym.
      assert.deepStrictEqual(
        yield* rowsOf(
          root,
          `SELECT count(*)::INTEGER AS n, bool_and(p.name = p.alias) AS same,
              bool_and(len(e.email) = 32) AS short, bool_and(d.title IS NULL) AS untitled
            FROM nights.customer_profiles AS p JOIN nights.emails AS e USING (run_id, task_id, session_id, record_id)
              JOIN ops.tasks AS t ON t.task_id = p.task_id AND t.customer_id = p.customer_id
              JOIN ops.documents AS d ON d.task_id = p.task_id WHERE p.name IS NOT NULL AND e.email IS NOT NULL`,
        ),
        [{ n: 2, same: true, short: true, untitled: true }],
      )
      assert.deepStrictEqual(
        yield* rowsOf(
          root,
          `SELECT DISTINCT task_id = run_id || '/' || customer_id || '/' || engine_reference AS whole FROM ops.tasks`,
        ),
        [{ whole: true }],
      )
      const store = yield* opened(root)
      assert.deepStrictEqual(yield* verify(store), [])
      const reveal = yield* revealer(store)
      assert.deepStrictEqual(ids.map(reveal).toSorted(), [ana, bea])
      yield* nameIn(root, reveal)
      // What is told of the tables stays with the operator, and names the customer.
      copyFileSync(join(root, "nightjar.duckdb"), layoutOf(root).build)
      const asOf = { job: "nightly", run_date: "2026-12-20" }
      const { failed } = yield* staleIn(store, asOf, { error_after: 2 }, reveal)
      assert.deepStrictEqual(
        failed?.examples.toSorted(),
        [ana, bea].map((customer) => `${customer} ${engine} customer_information_read`),
      )
      const folders = filesBelow(join(root, "documents")).map((path) => path.split("/", 1)[0])
      assert.deepStrictEqual(folders, [".nightjar-documents", ana, bea])
      assert.deepStrictEqual(yield* Effect.flatMap(Ledger, ({ customers }) => customers), [
        anId(ana),
        anId(bea),
      ])
      assert.deepStrictEqual(yield* keyPlace(layoutOf(root).pseudonyms, asked.key.check), asked.reference)
      assert.deepStrictEqual((yield* rebuild(store, true)).changes, [])
      const forgotten = {
        customer_id: anId(ana),
        tasks: new Set([`${run}/${ana}/${engine}`]),
        executions: new Set<string>(),
      }
      assert.isAbove(yield* countRowsOfCustomer(store, forgotten), 10)
      // Also where the ledger no longer knows the tasks.
      assert.isAbove(yield* countRowsOfCustomer(store, { ...forgotten, tasks: new Set() }), 10)
      const keyless = yield* Effect.flip(
        countRowsOfCustomer(yield* openStore(publisherOptions(root)), forgotten),
      )
      assert.match(keyless.message, /their key is not known here/)
      yield* forgetRows(store, forgotten)
      assert.strictEqual(yield* countRowsOfCustomer(store, forgotten), 0)
      assert.deepStrictEqual(
        yield* rowsOf(
          root,
          "SELECT customer_id FROM ops.tasks WHERE task_id IN (SELECT task_id FROM ops.executions)",
        ),
        [{ customer_id: asked.key.pseudonymOf("customer_id", bea) }],
      )
      assert.deepStrictEqual(yield* rowsOf(root, "SELECT count(*)::INTEGER AS n FROM ops.executions"), [
        { n: 1 },
      ])
      // A lost manifest is read off the files, with what they say of their pseudonyms.
      const before = manifestIn(root).pseudonyms
      const { files } = store
      files.remove(layoutOf(root).manifest)
      yield* repair(yield* opened(root))
      assert.deepStrictEqual(manifestIn(root).pseudonyms, before)
      assert.isDefined(before)
    },
  )

  it.live("may be of columns of a table that does not exist yet, if the job has its schema", () =>
    Effect.gen(function* () {
      const root = yield* folder
      const pseudonyms = asking({ accounts: ["iban"] })
      const options = { ...publisherOptions(root), schemasFolder, pseudonyms }
      const refused = yield* Effect.flip(openStoreAsked(options))
      assert.match(refused.message, /^accounts cannot have pseudonyms: no record schema has a table/)
      const readings = { _tag: "Named", tables: ["accounts"] } as const
      const store = yield* openStoreAsked({ ...options, readings })
      assert.deepStrictEqual(store.pseudonyms?.policy.columns, pseudonyms.policy.columns)
      assert.isTrue(store.families.some(({ table }) => table === "accounts"))
    }).pipe(Effect.provide(NodeFileSystem.layer), Effect.scoped),
  )

  live(
    "withhold what a schema no longer has a column for, of earlier rows and in the file of a month too [decision 10 withheld]",
    function* () {
      const base = yield* folder
      const [root, schemas, second] = [join(base, "output"), join(base, "records"), "nightly.2026-11-21"]
      mkdirSync(root)
      cpSync(publisherOptions(root).schemasFolder, schemas, { recursive: true })
      const withSchemas = Effect.provide(layers(root, { pseudonyms: asked, schemasFolder: schemas }))
      const rows = (run_id: string, columns: string) =>
        rowsOf(
          root,
          `SELECT ${columns} FROM nights.customer_profiles WHERE run_id = '${run_id}' ORDER BY ALL`,
        )
      yield* Effect.gen(function* () {
        yield* withSchemas(night(run))
        const ids = yield* rows(run, "record_id, name")
        const file = join(schemas, "customer_profiles.yaml")
        writeFileSync(file, readFileSync(file, "utf8").replace(/ {2}gender: .*\n/, ""))
        yield* withSchemas(night(second, "b"))
        assert.deepStrictEqual(yield* rows(run, "record_id, name"), ids)
        const rest = "customer_id, name, misfits, extra"
        assert.deepStrictEqual(yield* rows(run, rest), yield* rows(second, rest))
        assert.deepStrictEqual(
          yield* rows(run, "count(misfits)::INTEGER AS unfit, count(extra)::INTEGER AS extra"),
          [{ unfit: 2, extra: 0 }],
        )
        assert.deepStrictEqual(yield* foundIn(root), [])
        // The file of a month says what its pseudonyms are, and has its rows in their order.
        const store = openStore({ ...publisherOptions(root), schemasFolder: schemas }, asked.key)
        const choice = { overBy: Date.parse("2026-12-01"), isDry: false, monthsMax: 1 }
        const { left, tables } = yield* compact(yield* store, choice)
        assert.deepStrictEqual([left, tables.length > 10], [[], true])
        rmSync(layoutOf(root).manifest)
        yield* repair(yield* store)
        assert.strictEqual(manifestIn(root).pseudonyms?.check, asked.key.check)
        assert.deepStrictEqual([yield* unsortedIn(root), yield* foundIn(root)], [[], []])
      }).pipe(Effect.provide(foundation(root)))
    },
  )

  live(
    "come into force for all rows at once, and nothing of the rows before is left beside them",
    function* () {
      const root = yield* folder
      const second = "nightly.2026-11-21"
      yield* Effect.gen(function* () {
        yield* night(run)
        yield* night(second, "b")
      }).pipe(Effect.provide(layers(root)))
      // The job is refused before it starts anything.
      const refused = yield* Effect.flip(Effect.scoped(Layer.build(within(root))))
      assert.deepStrictEqual(
        [refused._tag, refused.message],
        ["PseudonymsRefused", "the published tables name the customers, and the job asks for pseudonyms"],
      )
      yield* Effect.gen(function* () {
        const store = yield* openStoreAsked({ ...publisherOptions(root), pseudonyms: asked })
        // The landed bodies of one run are gone: nothing is published, unless its rows are given up.
        yield* append([{ _tag: "LandingPruned", run_id: anId(second), bytes: 0 }])
        const held = yield* rebuild(store, true)
        assert.deepStrictEqual(
          [held.version, held.left_out.map(({ run_id }) => run_id), manifestIn(root).pseudonyms],
          [undefined, [second], undefined],
        )
        leaveAside(root)
        const { version, runs, left_out } = yield* rebuild(store, true, true)
        assert.deepStrictEqual([version, runs, left_out.length], [3, 1, 1])
        assert.deepStrictEqual(yield* foundIn(root), [])
        assert.deepStrictEqual(yield* verify(yield* opened(root)), [])
        assert.strictEqual((yield* rollback(yield* opened(root)))._tag, "NoEarlierVersion")
      }).pipe(Effect.provide(foundation(root)))
      for (const [other, why] of [
        [undefined, "the published tables have pseudonyms, and the job asks for none"],
        [
          asking(asked.policy.columns, keyOf("another")),
          "the published tables have the pseudonyms of another key",
        ],
        [asking({}), "the published tables have pseudonyms in other columns than the job asks for"],
        [
          asking({ customer_profiles: ["birth_date"] }),
          "customer_profiles.birth_date cannot have pseudonyms: " +
            "it is DATE, and a pseudonym is text: only VARCHAR and VARCHAR[] can be",
        ],
      ] as const) {
        const job = layers(root, other && { pseudonyms: other })
        const refusal = yield* Effect.flip(Effect.scoped(Layer.build(job)))
        assert.strictEqual(refusal.message, why)
      }
      assert.isTrue(existsSync(layoutOf(root).pseudonyms))
    },
  )
})
