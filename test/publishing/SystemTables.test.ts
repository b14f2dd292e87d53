/** The tables and columns that users were promised are there, under these names. */
import { assert, describe, it } from "@effect/vitest"
import { dataDictionary } from "../../src/publishing/DataDictionary.ts"
import { recordLineage } from "../../src/publishing/RecordViews.ts"
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
    for (const [table, columns] of found)
      for (const { name } of columns) assert.match(name, /^[a-z][a-z0-9_]*$/, table)
  })

  it("of records says where a row comes from, and that is no part of what it says", () => {
    assert.deepStrictEqual(recordLineage, [...recordColumns, "product", "sub_family"])
  })
})
