/**
 * Tables derived again from landed bodies: equal under equal schemas, different where a schema changed, all in one
 * version or not at all.
 */
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { DuckDb } from "../../src/base/DuckDb.ts"
import { Ledger } from "../../src/ledger/Ledger.ts"
import { publishStage } from "../../src/run/PublishMeanwhile.ts"
import { placeOf } from "../../src/tables/DataDictionary.ts"
import { layoutOf, nothingPublished, readManifest } from "../../src/tables/Manifest.ts"
import { Publisher } from "../../src/tables/Publisher.ts"
import { compareRows, rebuild } from "../../src/tables/Rebuild.ts"
import { verify } from "../../src/tables/Verify.ts"
import {
  account,
  append,
  begin,
  engine,
  layers,
  opened,
  profileOf,
  publisherOptions,
  resultsOf,
  rowsOf,
  succeed,
  storeOf,
} from "./night.ts"
import { families } from "../records/families.ts"
import { copiesOf } from "../harness/CopiesOf.ts"
import { anId } from "../harness/Id.ts"

const first = "nightly.2026-11-20"
const second = "nightly.2026-11-21"

const night = Effect.fnUntraced(function* (run_id: string, id: string, name: string) {
  const { cacheForm } = yield* Ledger
  const body = JSON.stringify({ name: "Bank", status: `of ${name}` })
  yield* cacheForm({ engine_reference: anId(engine), fetched_at: Number(id), body })
  yield* append([begin(run_id, run_id.slice("nightly.".length))])
  yield* succeed(run_id, id, "c-1", resultsOf(profileOf(name), account))
  yield* publishStage(anId(run_id))
  // The end of a run is published again: only then its row in `runs` has all its times.
  yield* Effect.flatMap(Publisher, (publisher) => publisher.publishOutcome(anId(run_id)))
})
const afterNights = copiesOf((root) =>
  Effect.provide(Effect.andThen(night(first, "1", "Ana"), night(second, "2", "Bea")), layers(root)),
)

/** The schemas with one column less in the profiles. */
const withoutGender = (root: string): string => {
  const schemasOwn = join(root, "schemas-own")
  mkdirSync(schemasOwn)
  cpSync(publisherOptions(root).schemasFolder, schemasOwn, { recursive: true })
  const path = join(schemasOwn, "customer_profiles.yaml")
  const text = readFileSync(path, "utf8")
  const without = text.replace(/^ +gender:.*\n/m, "")
  assert.notStrictEqual(without, text)
  writeFileSync(path, without)
  return schemasOwn
}

const rebuilt = (root: string) => Effect.flatMap(storeOf(root), (store) => rebuild(store, true))
const tables = ["runs", "tasks", "executions", "coverage", "customer_profiles", "emails", "other_records"]
const everything = (root: string) =>
  Effect.flatMap(opened(root), ({ rows }) =>
    Effect.forEach(tables, (table) => rows(`SELECT * FROM ${placeOf(table)} ORDER BY ALL`)),
  ).pipe(Effect.scoped)
const versionIn = (root: string) => rowsOf(root, "SELECT published_version() AS version")

describe("rebuild", () => {
  it.live("under equal schemas publishes equal rows as one new version", () =>
    Effect.gen(function* () {
      const root = yield* afterNights
      yield* Effect.gen(function* () {
        const before = yield* everything(root)
        assert.deepStrictEqual(yield* rebuilt(root), {
          version: 5,
          runs: 2,
          changes: [],
          kept: [],
          left_out: [],
          unknown: [],
          models: [],
        })
        assert.deepStrictEqual(yield* everything(root), before)
        // What the catalogue said of an engine stays as each run found it, whatever it says since.
        const described = yield* rowsOf(root, "SELECT status FROM ops.engine_descriptions ORDER BY ALL")
        assert.deepStrictEqual(described, [{ status: "of Ana" }, { status: "of Bea" }])
        assert.deepStrictEqual(yield* versionIn(root), [{ version: 5 }])
        assert.deepStrictEqual(yield* verify(yield* storeOf(root)), [])
        // Each run says with which schemas it was derived: a later change of them is noticed.
        const { schemas, runs } = readManifest(join(root, "tables/manifest.json")) ?? nothingPublished
        assert.deepStrictEqual(schemas, { customer_profiles: 1 })
        const ofRuns = Object.values(runs).map((run) => run.schemas)
        assert.deepStrictEqual(ofRuns, [schemas, schemas])
      }).pipe(Effect.provide(layers(root)))
    }).pipe(Effect.scoped),
  )

  it.live("under the schemas that a later run put in force says which rows differ", () =>
    Effect.gen(function* () {
      const root = yield* afterNights
      const third = "nightly.2026-11-22"
      yield* Effect.provide(night(third, "3", "Eva"), layers(root, { schemasFolder: withoutGender(root) }))
      yield* Effect.gen(function* () {
        // A value in \`extra\` is another content than one in a column; a list has its record's content_id.
        const changes = [first, second].flatMap((run_id) =>
          ["customer_profiles", "emails"].map((table) => ({
            run_id,
            table,
            before: 1,
            after: 1,
            added: 1,
            gone: 1,
          })),
        )
        assert.deepInclude(yield* rebuilt(root), { version: 7, runs: 3, changes })
        assert.deepStrictEqual(
          yield* rowsOf(
            root,
            "SELECT name, json(extra)->>'gender' AS gender FROM nights.customer_profiles ORDER BY ALL",
          ),
          ["Ana", "Bea", "Eva"].map((name) => ({ name, gender: "female" })),
        )
      }).pipe(Effect.provide(layers(root)))
    }).pipe(Effect.scoped),
  )
})

const compared = mkdtempSync(join(tmpdir(), "nightjar-compared-"))
afterAll(() => rmSync(compared, { recursive: true, force: true }))

const side = Effect.fnUntraced(function* (name: string, tables: Readonly<Record<string, string>>) {
  const { open } = yield* DuckDb
  const { run } = yield* open({ path: ":memory:", access: "read-write" })
  return yield* Effect.forEach(Object.entries(tables), ([table, rows]) => {
    const path = `${name}-${table}.parquet`
    const ofRun = `SELECT 'r' AS run_id, * FROM (${rows}) UNION ALL SELECT 'other', * FROM (${rows})`
    const copied = run(`COPY (${ofRun}) TO '${join(compared, path)}' (FORMAT parquet)`)
    return Effect.map(copied, (count) => ({ table, path, rows: count / 2, bytes: 1, sha256: "" }))
  })
}, Effect.scoped)

describe("the tables of a run", () => {
  it.live("differ where a row was added, is gone, or is another one, in the order of the dictionary", () =>
    Effect.gen(function* () {
      const before = yield* side("before", {
        unheard: "SELECT 1 AS a",
        emails: "SELECT unnest(['one', 'two']) AS email",
        phones: "SELECT unnest(['one', 'one']) AS phone",
        tasks: "SELECT 1 AS attempts",
        runs: "SELECT 'same' AS job",
      })
      const after = yield* side("after", {
        emails: "SELECT unnest(['one', 'other']) AS email",
        phones: "SELECT 'one' AS phone",
        tasks: "SELECT 1 AS attempts, NULL::VARCHAR AS reason",
        runs: "SELECT 'same' AS job",
      })
      assert.deepStrictEqual(
        yield* compareRows({ layout: layoutOf(compared), families }, "r", { before, after }),
        [
          { table: "emails", before: 2, after: 2, added: 1, gone: 1 },
          { table: "phones", before: 2, after: 1, added: 0, gone: 1 },
          { table: "unheard", before: 1, after: 0, added: 0, gone: 1 },
        ],
      )
    }).pipe(Effect.provide(DuckDb.layer)),
  )
})
