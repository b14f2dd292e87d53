import { cpSync, existsSync, mkdtempSync, rmSync, statSync } from "node:fs"
import { join } from "node:path"
import { assert, describe } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { DuckDb } from "../../src/base/DuckDb.ts"
import { DuckDbFailed } from "../../src/base/DuckDbFailed.ts"
import { memoryLimits } from "../../src/tables/BuildDatabase.ts"
import { layoutOf, readManifest } from "../../src/tables/Manifest.ts"
import { Publisher } from "../../src/tables/Publisher.ts"
import { dataDictionary } from "../../src/tables/DataDictionary.ts"
import { PublisherDuckDb } from "../../src/tables/PublisherDuckDb.ts"
import { Ledger } from "../../src/ledger/Ledger.ts"
import { summarise } from "../../src/report/Summary.ts"
import { publishStage } from "../../src/run/PublishMeanwhile.ts"
import { verify } from "../../src/tables/Verify.ts"
import {
  account,
  append,
  begin,
  engine,
  folder,
  foundation,
  layers,
  liveNight,
  namesIn,
  profileOf,
  publisherOptions,
  readListed,
  resultsOf,
  rowsOf,
  storeOf,
  succeed,
  liveIn,
  liveDuckDb,
  deletes,
} from "./night.ts"
import { copiesOf } from "../harness/CopiesOf.ts"
import { anId } from "../harness/Id.ts"
import { live } from "../harness/Steps.ts"

const run_id = anId("nightly.2026-11-20")
const publish = (run: string) => Effect.flatMap(Publisher, (publisher) => publisher.publish(anId(run)))
const publishOutcome = (run: string) =>
  Effect.flatMap(Publisher, (publisher) => publisher.publishOutcome(anId(run)))

const oneNight = Effect.gen(function* () {
  yield* append([begin(run_id, "2026-11-20")])
  yield* succeed(run_id, "1", "c-1", resultsOf(profileOf("Ana"), account, { ...profileOf("Eve"), type: 1 }))
})

/** The night, published, for all tests that begin with it, and what its publication said. */
const said: Array<Effect.Success<ReturnType<typeof publish>>> = []
const published = copiesOf((root) =>
  Effect.gen(function* () {
    yield* oneNight
    said.push(yield* publish(run_id))
  }).pipe(Effect.provide(layers(root))),
)

const ended = { _tag: "RunEnded", run_id, exit_code: 0, leftovers: false } as const

const parquetCount = (root: string, table: string) =>
  Effect.gen(function* () {
    const duckdb = yield* DuckDb
    const connection = yield* duckdb.open({ path: ":memory:", access: "read-write" })
    const [row] = yield* connection.rows(
      "SELECT count(*)::INTEGER AS n FROM read_parquet(?, hive_partitioning = false)",
      [`${root}/tables/${table}/**/*.parquet`],
    )
    return row?.["n"]
  }).pipe(Effect.scoped)

const problems = (root: string) =>
  storeOf(root).pipe(
    Effect.flatMap(verify),
    Effect.map((all) => all.map(({ problem, where }) => ({ problem, where }))),
  )

describe("PublisherDuckDb", () => {
  liveIn(published)("publishes complete rows of everything that a run knows", function* (root) {
    const [told] = said
    assert.deepStrictEqual(
      told?.receipts.map(({ execution_id, whole }) => [execution_id, whole]),
      [["e-1", true]],
    )
    const { files = [] } = readManifest(layoutOf(root).manifest)?.runs[run_id] ?? {}
    assert.deepStrictEqual(Object.fromEntries(files.map(({ table, rows }) => [table, rows])), {
      runs: 1,
      tasks: 1,
      executions: 1,
      execution_features: 1,
      execution_messages: 1,
      execution_errors: 1,
      products_count: 2,
      sessions: 1,
      consents: 1,
      consent_documents: 1,
      coverage: 1,
      customer_profiles: 1,
      emails: 1,
      other_records: 1,
      rejected_records: 1,
    })
    const first = {
      run_id,
      run_date: "2026-11-20",
      task_id: anId(`${run_id}/c-1/${engine}`),
      customer_id: anId("c-1"),
      engine_reference: engine,
    }
    assert.deepStrictEqual(yield* rowsOf(root, "SELECT * FROM ops.executions"), [
      {
        ...first,
        worker: null,
        attempt: 1,
        execution_id: anId("e-1"),
        session_id: anId("s-1"),
        app_id: "app",
        external_execution_id: "x-1",
        auth_origin: null,
        status_code: "COMPLETED",
        status_reason: "COMPLETED",
        status_message: null,
        authentication_status: "AUTH_OK",
        is_closed: true,
        end_hook: "skipped",
        warnings_count: 1,
        errors_count: null,
        locking_hash: null,
        date_created: "2026-11-20T01:00:00Z",
        date_started: null,
        date_ended: null,
        execution_time: 1.5,
        running_time: null,
        total_elapsed_time: null,
        action_required_expires: null,
        next_kick_date: null,
        deleted_at: null,
        extra: '{"errors_count":"none","flavour":"new"}',
      },
    ])
    assert.deepStrictEqual(yield* rowsOf(root, "SELECT * FROM ops.consent_documents"), [
      {
        ...first,
        execution_id: anId("e-1"),
        session_id: anId("s-1"),
        document_id: "../d'1",
        version: "1",
        hash: "h",
        sign_date: null,
        signature_provider: null,
        signature_metadata: '{"k":1}',
        extra: null,
      },
    ])
    assert.deepStrictEqual(yield* rowsOf(root, "SELECT name FROM customer_profiles"), [{ name: "Ana" }])
    yield* append([{ _tag: "RunPublished", run_id, version: 1, receipts: [] }])
    assert.deepStrictEqual(yield* problems(root), [])
    const { open } = yield* DuckDb
    const database = open({ path: join(root, "nightjar.duckdb"), access: "read-write" })
    yield* Effect.scoped(Effect.flatMap(database, ({ run }) => run("DELETE FROM ops.executions")))
    assert.deepStrictEqual(yield* problems(root), [
      { problem: "the database is not the file that was published", where: "nightjar.duckdb" },
      { problem: `0 rows of run ${run_id} in the database, 1 in its files`, where: "executions" },
      { problem: "missing from the table executions", where: "e-1" },
    ])
  })

  liveIn(published)(
    "has every table, view and column of the dictionary with its type and comment",
    function* (root) {
      const { families } = yield* storeOf(root)
      const columns = yield* rowsOf(
        root,
        `SELECT schema_name || '.' || table_name AS name, column_name, data_type, comment FROM duckdb_columns()
           WHERE NOT internal AND schema_name <> 'store' ORDER BY 1, column_index`,
      )
      const expected = dataDictionary(families)
        .filter(({ kind }) => kind !== "macro")
        .toSorted((a, b) => (`${a.schema}.${a.name}` < `${b.schema}.${b.name}` ? -1 : 1))
        .flatMap((table) =>
          table.columns.map(({ name, type, comment }) => ({
            name: `${table.schema}.${table.name}`,
            column_name: name,
            data_type: type.replace("TIMESTAMPTZ", "TIMESTAMP WITH TIME ZONE"),
            comment,
          })),
        )
      assert.deepStrictEqual(columns, expected)
      const bare = `SELECT schema_name, table_name FROM duckdb_tables() WHERE coalesce(comment, '') = ''
          UNION ALL SELECT schema_name, table_name || '.' || column_name FROM duckdb_columns()
          WHERE NOT internal AND coalesce(comment, '') = ''`
      assert.deepStrictEqual(yield* rowsOf(root, bare), [])
    },
  )

  liveIn()(
    "says of JSON that it is the text of its content's first reading, and keeps each night's own in its files [decision 10 first text]",
    function* (root) {
      const first = { ...account, fetch_date: "2026-11-20T03:00:00Z" }
      const second = { fetch_date: "2026-11-21T03:00:00Z", ...account, alias: null }
      yield* liveNight("nightly.2026-11-20", "1", first)
      yield* liveNight("nightly.2026-11-21", "2", second)
      const texts = [JSON.stringify(first), JSON.stringify(second)]
      const told = (from: string) =>
        Effect.map(rowsOf(root, `SELECT record::VARCHAR AS text FROM ${from} ORDER BY run_date`), (rows) =>
          rows.map(({ text }) => text),
        )
      assert.deepStrictEqual(yield* told("nights.other_records"), [texts[0], texts[0]])
      assert.deepStrictEqual(yield* told(`'${root}/tables/other_records/run_date=*/*.parquet'`), texts)
      const comments = yield* rowsOf(
        root,
        `SELECT schema_name, comment FROM duckdb_columns() WHERE column_name = 'record'
               AND schema_name IN ('main', 'history', 'nights') ORDER BY ALL`,
      )
      const comment =
        "The whole record. The text of the first reading of this content: in other nights, order of " +
        "members, null members and times of fetching in it may differ."
      assert.deepStrictEqual(
        comments,
        ["history", "main", "nights"].map((schema_name) => ({ schema_name, comment })),
      )
    },
  )

  liveIn(published)(
    "publishes deletions without touching records, and no file is counted twice",
    function* (root) {
      const landed_sha256 = said[0]?.receipts[0]?.landed_sha256 ?? ""
      yield* deletes(run_id, "1", landed_sha256)
      yield* append([ended])
      yield* publishOutcome(run_id)
      assert.deepStrictEqual(
        yield* rowsOf(root, "SELECT execution_id, http_status, outcome, landed_sha256 FROM ops.deletions"),
        [{ execution_id: anId("e-1"), http_status: 204, outcome: "deleted", landed_sha256 }],
      )
      const told =
        "SELECT status, exit_code, deleted_at IS NOT NULL AS gone FROM ops.runs JOIN ops.executions USING (run_id)"
      assert.deepStrictEqual(yield* rowsOf(root, told), [{ status: "finished", exit_code: 0, gone: true }])
      assert.deepStrictEqual(yield* rowsOf(root, "SELECT records, counted FROM ops.coverage"), [
        { records: 1, counted: 1 },
      ])
      assert.strictEqual(yield* parquetCount(root, "executions"), 1)
      // A new process has no memory of what the bodies held, and comes to the same rows.
      yield* publishOutcome(run_id).pipe(
        Effect.provide(PublisherDuckDb.layer(publisherOptions(root)), { local: true }),
      )
      assert.deepStrictEqual(yield* rowsOf(root, "SELECT records, counted FROM ops.coverage"), [
        { records: 1, counted: 1 },
      ])
      yield* publish(run_id)
      assert.strictEqual(yield* parquetCount(root, "customer_profiles"), 1)
      assert.deepStrictEqual(yield* problems(root), [])
    },
  )

  liveIn(published)("leaves an open reader its version, and a moved folder still answers", function* (root) {
    const duckdb = yield* DuckDb
    const reader = yield* duckdb.open({ path: join(root, "nightjar.duckdb"), access: "read-only" })
    const next = "nightly.2026-11-21"
    yield* append([begin(next, "2026-11-21")])
    yield* succeed(next, "2", "c-1", resultsOf(profileOf("Bea")))
    yield* publish(next)
    const names = "SELECT name FROM nights.customer_profiles ORDER BY name"
    assert.deepStrictEqual(yield* reader.rows(names), [{ name: "Ana" }])
    const moved = yield* Effect.acquireRelease(
      Effect.sync(() => mkdtempSync(`${root} moved '[1]`)),
      (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true })),
    )
    cpSync(root, moved, { recursive: true })
    assert.deepStrictEqual(yield* rowsOf(moved, names), [{ name: "Ana" }, { name: "Bea" }])
    const latest = "SELECT name FROM customer_profiles"
    assert.deepStrictEqual(yield* rowsOf(moved, latest), [{ name: "Bea" }])
    yield* publish(next).pipe(Effect.provide(PublisherDuckDb.layer(publisherOptions(moved)), { local: true }))
    assert.deepStrictEqual(yield* rowsOf(moved, names), [{ name: "Ana" }, { name: "Bea" }])
    const file = statSync(join(root, "nightjar.duckdb"))
    assert.strictEqual(file.mode & 0o777, 0o600)
  })

  liveDuckDb("takes more memory for the database if the first limit is too little", function* () {
    const root = yield* folder
    const duckdb = yield* DuckDb
    const limits: Array<string | undefined> = []
    const cramped = DuckDb.of({
      ...duckdb,
      open: (options) =>
        Effect.gen(function* () {
          if (options.memoryLimit !== undefined) limits.push(options.memoryLimit)
          const connection = yield* duckdb.open(options)
          const message = "Out of Memory Error: failed to allocate data of size 32.0 MiB"
          const failing = Effect.fail(new DuckDbFailed({ statement: "CREATE TABLE", message }))
          const isCramped = options.memoryLimit === memoryLimits[0] && options.access === "read-write"
          return isCramped ? { ...connection, run: () => failing } : connection
        }),
    })
    yield* Effect.gen(function* () {
      yield* oneNight
      yield* publish(run_id)
    }).pipe(
      Effect.provide(
        PublisherDuckDb.layer(publisherOptions(root)).pipe(
          Layer.provideMerge(Layer.succeed(DuckDb, cramped)),
          Layer.provideMerge(foundation(root)),
        ),
      ),
    )
    assert.deepStrictEqual(limits, memoryLimits.slice(0, 2))
    assert.deepStrictEqual(yield* namesIn(root), ["Ana"])
  })

  liveIn()(
    "reads one long text among thousands of missing ones with little memory [promise 11 long text]",
    function* (root) {
      const length = 1_000_000
      const others = Array.from({ length: 2_000 }, (_, index) => profileOf(`Bea ${index}`))
      // The second night changes a field without a column: the version that is found again keeps both.
      for (const [day, sign] of [
        ["2026-11-20", "x"],
        ["2026-11-21", "y"],
      ] as const) {
        const id = anId(`nightly.${day}`)
        yield* append([begin(id, day)])
        const first = { ...profileOf("Ana"), alias: "x".repeat(length), unknown: sign.repeat(length) }
        yield* succeed(id, "1", "c-1", resultsOf(first, ...others))
        yield* publish(id)
      }
      const { open } = yield* DuckDb
      const path = join(root, "nightjar.duckdb")
      const { rows } = yield* open({ path, access: "read-only", memoryLimit: memoryLimits[0] })
      const found = yield* rows(
        `SELECT count(*)::INTEGER AS n, sum(length(alias))::INTEGER AS length,
          max(length(extra->>'unknown'))::INTEGER AS unknown, max(left(extra->>'unknown', 1)) AS sign
        FROM customer_profiles`,
      )
      assert.deepStrictEqual(found, [{ n: others.length + 1, length, unknown: length, sign: "y" }])
    },
  )

  live(
    "publishes nothing if a body that the ledger refers to is not in landing [promise 5] [decision 3 landed]",
    function* () {
      const root = yield* folder
      yield* oneNight.pipe(Effect.provide(foundation(root)))
      rmSync(join(root, "landing"), { recursive: true })
      yield* Effect.gen(function* () {
        const failure = yield* Effect.flip(publish(run_id))
        assert.match(failure.message, /no body at offset/)
        assert.isFalse(existsSync(join(root, "nightjar.duckdb")))
      }).pipe(Effect.provide(layers(root)))
    },
  )

  live("warns of a session that the tables have for two customers [session shared]", function* () {
    const root = yield* folder
    const warnings = Effect.fnUntraced(function* (day: number, customer: string) {
      const run = anId(`nightly.2026-11-${day}`)
      yield* append([begin(run, `2026-11-${day}`)])
      yield* readListed(run, "s-9", customer, resultsOf(profileOf("Ana")))
      yield* readListed(run, "s-8", "c-8", resultsOf(profileOf("Eve")))
      yield* publishStage(run)
      const state = yield* Effect.flatMap(Ledger, (ledger) => ledger.state(run))
      return state === undefined ? [] : summarise(state).warnings
    })
    const seen = Effect.gen(function* () {
      return [yield* warnings(20, "c-1"), yield* warnings(21, "c-2")]
    })
    // Another session is there again, for the same customer.
    assert.deepStrictEqual(yield* Effect.provide(seen, layers(root)), [
      [],
      ["the tables have 1 session of this run for another customer, too [sessions-shared]"],
    ])
  })
})
