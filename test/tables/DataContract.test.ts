/**
 * The tables as other tools are told of them, a data contract and dbt's sources: the shape is the tool's, the tables are
 * those of the database, and the checks hold on a published night. The whole text of both is in the oracle.
 */
import { join } from "node:path"
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Schema } from "effect"
import { DuckDb } from "../../src/base/DuckDb.ts"
import { contractObjects, dataContract, dbtSources } from "../../src/tables/DataContract.ts"
import {
  operatorTables,
  publishedTables,
  publishedViews,
  dataDictionary,
} from "../../src/tables/DataDictionary.ts"
import { referencesOf } from "../../src/tables/Dimensions.ts"
import { families } from "../records/families.ts"
import { copiesOf } from "../harness/CopiesOf.ts"
import { dbtStatements, type DbtSource } from "./DbtTests.ts"
import {
  append,
  begin,
  layers,
  opened,
  profileOf,
  publish,
  resultsOf,
  storeOf,
  succeed,
  liveIn,
} from "./night.ts"
import { promisedTables } from "../acceptance/PromisedTables.ts"

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

/** A night in which a customer has one profile twice. */
const published = copiesOf((root) =>
  Effect.gen(function* () {
    const run_id = "nightly.2026-11-20"
    yield* append([begin(run_id, "2026-11-20")])
    yield* succeed(run_id, "n-1", "c-1", resultsOf(profileOf("Ana"), profileOf("Ana")))
    yield* publish(run_id)
  }).pipe(Effect.provide(layers(root))),
)
describe("the data contract", () => {
  const contract = dataContract(contractObjects(families), "0.1.0")

  it("has the shape of the standard; every name can be one, every type is known, nothing is there twice", () => {
    const written: unknown = JSON.parse(JSON.stringify(contract))
    const { schema } = Schema.decodeUnknownSync(Contract)(written, { onExcessProperty: "error" })
    const isName = /^[a-z][a-z0-9_]*$/
    const isPlace = /^(?:(?:history|nights|ops)\.)?[a-z][a-z0-9_]*$/
    const isType = /^(VARCHAR(\[\])?|BOOLEAN|INTEGER|BIGINT|DOUBLE|DATE|TIMESTAMPTZ|JSON|DECIMAL\(\d+,\d+\))$/
    assert.deepStrictEqual(new Set(schema.map(({ name }) => name)).size, schema.length)
    for (const { name, properties } of schema) {
      assert.match(name, isPlace)
      for (const each of properties) {
        assert.match(each.name, isName, `a column of ${name}`)
        assert.match(each.physicalType, isType, `${name}.${each.name}`)
      }
      assert.strictEqual(new Set(properties.map((each) => each.name)).size, properties.length, name)
      assert.isAbove(properties.length, 3, name)
    }
    assert.deepStrictEqual(
      ["table", "view"].map((kind) => schema.filter(({ physicalType }) => physicalType === kind).length),
      [operatorTables().length, publishedViews(families).length],
    )
  })

  it("says to which table each belongs, by columns that both have, after the one that it belongs to", () => {
    const columnsOf = new Map(
      publishedTables(families).map(({ name, columns }) => [name, new Set(columns.map((each) => each.name))]),
    )
    const relations = referencesOf(families)
    const seen = ["runs"]
    for (const { table, of, columns } of relations) {
      assert.include(seen, of, `${table} belongs to a table that is told later`)
      for (const name of columns)
        assert.isTrue(
          columnsOf.get(table)?.has(name) === true && columnsOf.get(of)?.has(name) === true,
          `${table}.${name}`,
        )
      const key = new Set(publishedTables(families).find(({ name }) => name === of)?.key)
      // What is written of an execution names its task too, which the key of executions does not need.
      if (of !== "executions") assert.deepStrictEqual(new Set(columns), key, `${table} of ${of}`)
      seen.push(table)
    }
    assert.deepStrictEqual(seen.toSorted(), [...columnsOf.keys()].toSorted())
  })

  it.live("has the tables and columns of the database; its checks hold in a night with a record twice", () =>
    Effect.gen(function* () {
      const root = yield* published
      const { rows } = yield* opened(root)
      const { families } = yield* storeOf(root)
      const { schema } = dataContract(contractObjects(families), "0.1.0")
      const told = schema.flatMap(({ name, properties }) =>
        properties.map((each) => `${name}.${each.name} ${each.physicalType}`),
      )
      const found = yield* rows(
        `SELECT CASE schema_name WHEN 'main' THEN '' ELSE schema_name || '.' END || table_name || '.' || column_name || ' ' ||
           CASE data_type WHEN 'TIMESTAMP WITH TIME ZONE' THEN 'TIMESTAMPTZ' ELSE data_type END AS one
         FROM duckdb_columns() WHERE NOT internal AND schema_name <> 'store'`,
      )
      assert.deepStrictEqual(told.toSorted(), found.map(({ one }) => String(one)).toSorted())
      for (const { name, quality = [] } of schema)
        for (const each of quality)
          if (each.query !== undefined)
            assert.deepStrictEqual([name, Object.values((yield* rows(each.query))[0] ?? {})], [name, [0]])
    }).pipe(Effect.scoped, Effect.provide(Layer.merge(DuckDb.layer, NodeFileSystem.layer))),
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
  sources: Schema.Array(
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
  ),
})

/** The tests that fail when these statements have changed a copy of the published tables. */
const failures = Effect.fnUntraced(function* (
  root: string,
  sources: ReadonlyArray<DbtSource>,
  ...changes: ReadonlyArray<string>
) {
  const duckdb = yield* DuckDb
  const { run, rows } = yield* duckdb.open({ path: ":memory:", access: "read-write" })
  yield* run(`ATTACH '${join(root, "nightjar.duckdb")}' AS published (READ_ONLY); ATTACH ':memory:' AS nightjar;
    COPY FROM DATABASE published TO nightjar; USE nightjar`)
  for (const change of changes) yield* run(change)
  const found: Array<string> = []
  for (const { test, sql } of dbtStatements(sources)) if ((yield* rows(sql)).length > 0) found.push(test)
  return found
}, Effect.scoped)

describe("the sources of dbt", () => {
  liveIn(published)(
    "have the form that dbt asks for, all tables and views, and tests that hold and can fail",
    function* (root) {
      const { families } = yield* storeOf(root)
      const written: unknown = JSON.parse(JSON.stringify(dbtSources(families, () => true, "0.1.0")))
      const told = yield* Schema.decodeUnknownEffect(DbtSources)(written, { onExcessProperty: "error" })
      const columns = contractObjects(families).map(({ name, properties }) => [
        name,
        properties.map((each) => `${each.name} ${each.physicalType} ${each.description}`),
      ])
      assert.deepStrictEqual(
        told.sources
          .flatMap(({ schema, tables }) =>
            tables.map((table) => [
              schema === "main" ? table.name : `${schema}.${table.name}`,
              table.columns.map((each) => `${each.name} ${each.data_type} ${each.description}`),
            ]),
          )
          .toSorted(),
        columns.toSorted(),
      )
      const typed = dbtSources(families, () => true, "0.1.0").sources
      assert.deepStrictEqual(yield* failures(root, typed), [])
      assert.deepStrictEqual(
        yield* failures(
          root,
          typed,
          "INSERT INTO store.emails FROM store.emails LIMIT 1",
          "UPDATE ops.tasks SET outcome = 'odd'",
          "UPDATE ops.sessions SET session_id = 'another'",
          "UPDATE ops.deletions SET outcome = NULL",
          "UPDATE ops.runs SET job = NULL",
        ),
        [
          'main.emails unique row("record_id", "position")',
          'history.emails unique row("record_id", "since_sequence", "position")',
          'nights.customer_profiles relationships row("run_id", "task_id", "session_id")',
          'nights.emails unique row("run_id", "task_id", "session_id", "record_id", "position")',
          "ops.runs not_null job",
          "ops.tasks accepted_values outcome",
          'ops.consents relationships row("run_id", "task_id", "session_id")',
        ],
      )
    },
  )

  it("have one table with nothing that refers to another, and freshness where every night leaves a time", () => {
    const only = (name: string) =>
      dbtSources([], (one) => one === name, "0.1.0").sources.flatMap(({ tables }) => tables)
    const text = (name: string, description: string) => ({ name, description, data_type: "VARCHAR" as const })
    const features = only("features")
    assert.deepStrictEqual(
      features.map(({ name, columns }) => [name, columns[0]]),
      [["features", { ...text("code", "Code of the feature."), data_tests: ["unique", "not_null"] }]],
    )
    const aged = dbtSources([], () => true, "0.1.0").sources.flatMap(({ schema, tables }) =>
      tables.flatMap(({ name, config }) =>
        config === undefined ? [] : [`${schema}.${name}.${config.loaded_at_field}`],
      ),
    )
    assert.deepStrictEqual(aged, ["main.coverage.as_of", "ops.runs.published_at", "ops.coverage.as_of"])
    assert.deepStrictEqual(only("ops.tasks")[0]?.data_tests, [
      { unique: { arguments: { column_name: 'row("run_id", "task_id")' } } },
    ])
  })
})

describe("every table", () => {
  it("has the columns that were promised", () => {
    const dictionary = dataDictionary(families)
    const found = new Map(
      dictionary.map(({ schema, name, columns }): readonly [string, typeof columns] => [
        `${schema}.${name}`,
        columns,
      ]),
    )
    for (const [table, promised] of Object.entries(promisedTables))
      assert.includeMembers(
        (found.get(table) ?? []).map(({ name }) => name),
        [...promised],
        table,
      )
  })
})
