/** The tables and columns that users were promised are there, under these names. */
import { assert, describe, it } from "@effect/vitest"
import { dataDictionary, publishedTables } from "../../src/tables/DataDictionary.ts"
import { recordLineage } from "../../src/tables/RecordViews.ts"
import { relationsOf } from "../../src/tables/Dimensions.ts"
import { promisedTables, recordColumns } from "../acceptance/PromisedTables.ts"
import { families } from "../records/families.ts"

describe("every table", () => {
  it("has the columns that were promised, and none without a name", () => {
    const found = new Map(dataDictionary(families).map(({ name, columns }) => [name, columns] as const))
    for (const [table, promised] of Object.entries(promisedTables))
      assert.includeMembers(
        (found.get(table) ?? []).map(({ name }) => name),
        [...promised],
        table,
      )
    for (const [table, columns] of found) {
      assert.isNotEmpty(columns, table)
      for (const { name } of columns) assert.match(name, /^[a-z][a-z0-9_]*$/, table)
    }
  })

  it("says what it and each of its columns is, and of which type", () => {
    for (const { name: table, comment, columns } of dataDictionary(families)) {
      assert.match(comment, /\.$/, table)
      for (const { name, type, comment: of } of columns)
        assert.isTrue(of !== "" && type.length > 0, `${table}.${name}`)
    }
  })

  it("belongs to one that there is, by columns that both have", () => {
    const found = new Map(publishedTables(families).map((spec) => [spec.name, spec.columns] as const))
    for (const { table, of, columns } of relationsOf(families))
      for (const one of [table, of])
        assert.includeMembers(
          (found.get(one) ?? []).map(({ name }) => name),
          [...columns],
          `${table} of ${of}`,
        )
  })

  it("of records says where a row comes from, and that is no part of what it says", () => {
    assert.deepStrictEqual(recordLineage, [...recordColumns, "product", "sub_family"])
  })
})
