/**
 * The tables as other tools are told of them, a data contract and dbt's sources: the shape is the tool's, the tables are
 * those of the database, and the checks hold on a published night.
 */
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { DuckDb } from "../../src/duckdb/DuckDb.ts"
import { contractObjects, dataContract } from "../../src/publishing/DataContract.ts"
import { dbtSources } from "../../src/publishing/DbtSources.ts"
import type { DbtTable } from "../../src/publishing/DbtSources.ts"
import { Publisher } from "../../src/publishing/Publisher.ts"
import { anId } from "../harness/Id.ts"
import { dbtStatements } from "./DbtTests.ts"
import { append, begin, folder, layers, profileOf, resultsOf, rowsOf, storeOf, succeed } from "./night.ts"

/**
 * The parts of the standard's JSON Schema (3.0.2) that the contract uses, written by hand, and closed as they are there:
 * a name that the standard does not know is refused.
 */
const isDate = Schema.Struct({ format: Schema.String })
const Item = Schema.Struct({ logicalType: Schema.Literal("string"), physicalType: Schema.String })
const property = {
  name: Schema.String,
  physicalType: Schema.String,
  description: Schema.NonEmptyString,
  required: Schema.Boolean,
  primaryKey: Schema.optionalKey(Schema.Literal(true)),
  primaryKeyPosition: Schema.optionalKey(Schema.Int),
}
const Property = Schema.Union([
  Schema.Struct(property),
  Schema.Struct({ ...property, logicalType: Schema.Literals(["string", "boolean", "number"]) }),
  Schema.Struct({ ...property, logicalType: Schema.Literal("date"), logicalTypeOptions: isDate }),
  Schema.Struct({
    ...property,
    logicalType: Schema.Literal("integer"),
    logicalTypeOptions: Schema.Struct({ format: Schema.Literals(["i32", "i64"]) }),
  }),
  Schema.Struct({
    ...property,
    logicalType: Schema.Literal("number"),
    logicalTypeOptions: Schema.Struct({ format: Schema.Literal("f64") }),
  }),
  Schema.Struct({ ...property, logicalType: Schema.Literal("array"), items: Item }),
])
const rule = { description: Schema.String, dimension: Schema.Literals(["uniqueness", "timeliness"]) }
const Contract = Schema.Struct({
  apiVersion: Schema.Literal("v3.0.1"),
  kind: Schema.Literal("DataContract"),
  id: Schema.String,
  name: Schema.String,
  version: Schema.String,
  status: Schema.String,
  description: Schema.Struct({ purpose: Schema.String, usage: Schema.String, limitations: Schema.String }),
  servers: Schema.Array(
    Schema.Union([
      Schema.Struct({ server: Schema.String, type: Schema.Literal("duckdb"), database: Schema.String }),
      Schema.Struct({
        server: Schema.String,
        type: Schema.Literal("local"),
        path: Schema.String,
        format: Schema.String,
      }),
    ]),
  ),
  schema: Schema.Array(
    Schema.Struct({
      logicalType: Schema.Literal("object"),
      name: Schema.String,
      physicalType: Schema.Literals(["table", "view"]),
      description: Schema.NonEmptyString,
      properties: Schema.Array(Property),
      quality: Schema.optionalKey(
        Schema.Array(
          Schema.Union([
            Schema.Struct({ ...rule, type: Schema.Literal("text") }),
            Schema.Struct({
              ...rule,
              type: Schema.Literal("sql"),
              query: Schema.String,
              mustBe: Schema.Literal(0),
            }),
          ]),
        ),
      ),
    }),
  ),
})

describe("the data contract", () => {
  it.live("has the shape of the standard, and the tables and columns of the database; its checks hold", () =>
    Effect.gen(function* () {
      const root = yield* folder
      yield* Effect.gen(function* () {
        yield* append([begin("nightly.2026-11-20", "2026-11-20")])
        yield* succeed("nightly.2026-11-20", "n-1", "c-1", resultsOf(profileOf("Ana"), profileOf("Ana")))
        yield* Effect.flatMap(Publisher, (publisher) => publisher.publish(anId("nightly.2026-11-20")))
        const { families } = yield* storeOf(root)
        const written: unknown = JSON.parse(JSON.stringify(dataContract(contractObjects(families), "0.1.0")))
        const contract = yield* Schema.decodeUnknownEffect(Contract)(written, { onExcessProperty: "error" })
        const told = contract.schema.flatMap(({ name, properties }) =>
          properties.map((each) => `${name}.${each.name} ${each.physicalType}`),
        )
        const found = yield* rowsOf(
          root,
          `SELECT table_name || '.' || column_name || ' ' ||
             CASE data_type WHEN 'TIMESTAMP WITH TIME ZONE' THEN 'TIMESTAMPTZ' ELSE data_type END AS one
           FROM duckdb_columns() WHERE NOT internal`,
        )
        assert.deepStrictEqual(told.toSorted(), found.map(({ one }) => String(one)).toSorted())
        const keyed = contract.schema.flatMap(({ name, properties, quality = [] }) =>
          quality.flatMap((each) => {
            if (each.type !== "sql") return []
            const key = properties
              .filter(({ primaryKey }) => primaryKey)
              .toSorted((a, b) => (a.primaryKeyPosition ?? 0) - (b.primaryKeyPosition ?? 0))
            return [{ name, key: key.map((column) => column.name), query: each.query }]
          }),
        )
        assert.deepStrictEqual(keyed.find(({ name }) => name === "emails")?.key, [
          "run_id",
          "task_id",
          "session_id",
          "record_id",
          "position",
        ])
        for (const { name, query } of keyed)
          assert.deepStrictEqual([name, Object.values((yield* rowsOf(root, query))[0] ?? {})], [name, [0]])
      }).pipe(Effect.provide(layers(root)))
    }),
  )
})

/**
 * What dbt's documentation asks of a `sources.yml` (1.10.5 and later), as far as this one uses it, written by hand, and
 * closed: a key that dbt does not know is refused.
 */
const Where = Schema.Struct({ where: Schema.String })
const dbtTest = <A>(name: string, given: Schema.Codec<A>) =>
  Schema.Struct({ [name]: Schema.Struct({ arguments: given, config: Schema.optionalKey(Where) }) })
const DbtTest = Schema.Union([
  Schema.Literals(["unique", "not_null"]),
  dbtTest("unique", Schema.Struct({ column_name: Schema.String })),
  dbtTest("accepted_values", Schema.Struct({ values: Schema.NonEmptyArray(Schema.String) })),
  dbtTest(
    "relationships",
    Schema.Struct({ column_name: Schema.String, to: Schema.String, field: Schema.String }),
  ),
])
const Age = Schema.Struct({ count: Schema.Int, period: Schema.Literals(["minute", "hour", "day"]) })
const DbtSources = Schema.Struct({
  version: Schema.Literal(2),
  sources: Schema.Tuple([
    Schema.Struct({
      name: Schema.String,
      description: Schema.String,
      database: Schema.String,
      schema: Schema.String,
      loader: Schema.String,
      tables: Schema.Array(
        Schema.Struct({
          name: Schema.String,
          description: Schema.NonEmptyString,
          config: Schema.optionalKey(
            Schema.Struct({
              loaded_at_field: Schema.String,
              freshness: Schema.Struct({ warn_after: Age, error_after: Age }),
            }),
          ),
          data_tests: Schema.optionalKey(Schema.NonEmptyArray(DbtTest)),
          columns: Schema.NonEmptyArray(
            Schema.Struct({
              name: Schema.String,
              description: Schema.NonEmptyString,
              data_type: Schema.String,
              data_tests: Schema.optionalKey(Schema.NonEmptyArray(DbtTest)),
            }),
          ),
        }),
      ),
    }),
  ]),
})

/** The tests that fail when these statements have changed a copy of the published tables. */
const failures = Effect.fnUntraced(function* (
  root: string,
  tables: ReadonlyArray<DbtTable>,
  ...changes: ReadonlyArray<string>
) {
  const duckdb = yield* DuckDb
  const { run, rows } = yield* duckdb.open({ path: ":memory:", access: "read-write" })
  yield* run(`ATTACH '${join(root, "nightjar.duckdb")}' AS published (READ_ONLY); ATTACH ':memory:' AS nightjar;
    COPY FROM DATABASE published TO nightjar; USE nightjar`)
  for (const change of changes) yield* run(change)
  const found: Array<string> = []
  for (const { test, sql } of dbtStatements(tables)) if ((yield* rows(sql)).length > 0) found.push(test)
  return found
}, Effect.scoped)

describe("the sources of dbt", () => {
  it.live("have the form that dbt asks for, all tables and views, and tests that hold and can fail", () =>
    Effect.gen(function* () {
      const root = yield* folder
      yield* Effect.gen(function* () {
        yield* append([begin("nightly.2026-11-20", "2026-11-20")])
        yield* succeed("nightly.2026-11-20", "n-1", "c-1", resultsOf(profileOf("Ana"), profileOf("Ana")))
        yield* Effect.flatMap(Publisher, (publisher) => publisher.publish(anId("nightly.2026-11-20")))
        const { families } = yield* storeOf(root)
        const written: unknown = JSON.parse(JSON.stringify(dbtSources(families, () => true, "0.1.0")))
        const told = yield* Schema.decodeUnknownEffect(DbtSources)(written, { onExcessProperty: "error" })
        const [{ tables }] = told.sources
        const columns = contractObjects(families).map(({ name, properties }) => [
          name,
          properties.map((each) => `${each.name} ${each.physicalType} ${each.description}`),
        ])
        assert.deepStrictEqual(
          tables.map((table) => [
            table.name,
            table.columns.map((each) => `${each.name} ${each.data_type} ${each.description}`),
          ]),
          columns,
        )
        const typed = dbtSources(families, () => true, "0.1.0").sources[0].tables
        assert.deepStrictEqual(yield* failures(root, typed), [])
        assert.deepStrictEqual(
          yield* failures(
            root,
            typed,
            "INSERT INTO emails FROM emails LIMIT 1",
            "UPDATE tasks SET outcome = 'odd'",
            "UPDATE sessions SET session_id = 'another'",
            "UPDATE deletions SET outcome = NULL",
            "UPDATE runs SET job = NULL",
          ),
          [
            "runs not_null job",
            "tasks accepted_values outcome",
            'consents relationships row("run_id", "task_id", "session_id")',
            'customer_profiles relationships row("run_id", "task_id", "session_id")',
            'emails unique row("run_id", "task_id", "session_id", "record_id", "position")',
          ],
        )
      }).pipe(Effect.provide(layers(root)))
    }),
  )

  it("have one table with nothing that refers to another, and freshness where every night leaves a time", () => {
    const only = (name: string) => dbtSources([], (one) => one === name, "0.1.0").sources[0].tables
    const text = (name: string, description: string) => ({ name, description, data_type: "VARCHAR" })
    const features = only("features")
    assert.deepStrictEqual(
      features.map(({ name, columns }) => [name, columns[0]]),
      [["features", { ...text("code", "Code of the feature."), data_tests: ["unique", "not_null"] }]],
    )
    const aged = dbtSources([], () => true, "0.1.0").sources[0].tables.flatMap(({ name, config }) =>
      config === undefined ? [] : [`${name}.${config.loaded_at_field}`],
    )
    assert.deepStrictEqual(aged, ["runs.published_at", "coverage.as_of", "coverage_current.fresh_as_of"])
    assert.deepStrictEqual(only("tasks")[0]?.data_tests, [
      { unique: { arguments: { column_name: 'row("run_id", "task_id")' } } },
    ])
  })
})
