/** The tables and columns that users were promised are there, under these names. */
import { assert, describe, it } from "@effect/vitest"
import { dataDictionary, publishedTables } from "../../src/tables/DataDictionary.ts"
import { referencesOf } from "../../src/tables/Dimensions.ts"
import { promisedTables } from "../acceptance/PromisedTables.ts"
import { families } from "../records/families.ts"

describe("every table", () => {
  it("has the columns that were promised, and none without a name", () => {
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
    for (const { table, of, columns } of referencesOf(families))
      for (const one of [table, of])
        assert.includeMembers(
          (found.get(one) ?? []).map(({ name }) => name),
          [...columns],
          `${table} of ${of}`,
        )
  })
})
