/**
 * The data contract: its shape is the standard's, its tables are those of the database, its checks hold on a published
 * night.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { contractObjects, dataContract } from "../../src/publishing/DataContract.ts"
import { Publisher } from "../../src/publishing/Publisher.ts"
import { anId } from "../harness/Id.ts"
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
