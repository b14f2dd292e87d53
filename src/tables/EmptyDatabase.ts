/**
 * Every table, view and comment without any row: hundreds of statements, with which a database begins that is
 * built of all files.
 */
import { readFileSync } from "node:fs"
import { Effect } from "effect"
import { sha256Hex } from "../base/Hashes.ts"
import { identifier, literal } from "../base/DuckDbFailed.ts"
import type { TableSpec } from "../records/Columns.ts"
import { openDatabase, withoutLog } from "./BuildDatabase.ts"
import { changesSql } from "./Changes.ts"
import { dataDictionary, operatorTables, publishedViews, type DictionaryTable } from "./DataDictionary.ts"
import { gatheredTables } from "./Dimensions.ts"
import { fileStep, type Store } from "./Manifest.ts"
import { shapeOf } from "./OtherSchema.ts"
import { inDatabase } from "./Publisher.ts"
import { keptTables, storeTables, type StoreTable } from "./RecordStore.ts"
import type { PseudonymPolicy } from "./Treatments.ts"

/**
 * DuckDB keeps a text of 4 KB and more outside its column, and reads it again, into memory of its own, for
 * each NULL that follows: one of 1 MB before 1,000 NULLs takes 1 GB. With zstd, none is kept outside.
 */
const typeSql = (type: string): string =>
  type === "VARCHAR" || type === "JSON" ? `${type} USING COMPRESSION zstd` : type

const tableSql = (schema: string, { name, columns }: TableSpec | StoreTable): string => {
  const declared = columns.map((each) => `${identifier(each.name)} ${typeSql(each.type)}`)
  return `CREATE TABLE ${schema}.${identifier(name)} (${declared.join(", ")})`
}

interface Commented extends Pick<DictionaryTable, "kind" | "name" | "comment"> {
  readonly schema: string
  readonly columns: ReadonlyArray<{ readonly name: string; readonly comment: string }>
}

/** The columns of a macro's result cannot have comments; `nightjar tables` describes them. */
const commentsOf = ({ schema, kind, name, comment, columns }: Commented): ReadonlyArray<string> => {
  const place = `${schema}.${identifier(name)}`
  return [
    `COMMENT ON ${kind === "macro" ? "MACRO TABLE" : kind} ${place} IS ${literal(comment)}`,
    ...(kind === "macro" ? [] : columns).map(
      (each) => `COMMENT ON COLUMN ${place}.${identifier(each.name)} IS ${literal(each.comment)}`,
    ),
  ]
}

const schemas = ["history", "nights", "ops", "store"]

/** A process that begins many databases, as tests do, begins with few sets of schemas. */
const madeMax = 8

/** In one transaction: otherwise each statement is a version of the file. */
const statementsOf = (families: Store["families"], policy: PseudonymPolicy | undefined): string => {
  const tables = keptTables(families)
  const kept = [...storeTables(tables), ...gatheredTables]
  return [
    "BEGIN",
    ...schemas.map((name) => `CREATE SCHEMA ${name}`),
    ...operatorTables().map((table) => tableSql("ops", table)),
    ...kept.map((table) => tableSql("store", table)),
    ...publishedViews(families).map(
      ({ schema, name, sql }) => `CREATE VIEW ${schema}.${identifier(name)} AS ${sql}`,
    ),
    `CREATE MACRO changes(earlier, later) AS TABLE ${changesSql(tables)}`,
    ...dataDictionary(families, policy).flatMap(commentsOf),
    ...kept.flatMap((table) => commentsOf({ ...table, schema: "store", kind: "table" })),
    "COMMIT",
  ].join(";\n")
}

/** By what they follow from: a publication asks for them several times, and the next one again. */
const written = new Map<string, string>()

export const emptyStatements = ({ families, pseudonyms }: Pick<Store, "families" | "pseudonyms">): string => {
  const of = JSON.stringify([families, pseudonyms?.policy])
  const known = written.get(of)
  if (known !== undefined) return known
  const statements = statementsOf(families, pseudonyms?.policy)
  if (written.size === madeMax) written.clear()
  written.set(of, statements)
  return statements
}

/**
 * Equal for two databases whose tables, views and comments are the same, with rows made by the same program
 * under the same schemas.
 */
export const madeBy = (store: Pick<Store, "families" | "pseudonyms" | "toolVersion">): string =>
  sha256Hex([store.toolVersion, ...store.families.map(shapeOf), emptyStatements(store)].join("\n"))

/** By their statements. */
const made = new Map<string, Uint8Array>()

/** Makes an empty database where the next version is built; nothing may be there yet. */
export const makeEmptyDatabase = Effect.fn("Publishing.makeEmptyDatabase")(function* (store: Store) {
  const { layout, files, modes } = store
  const statements = emptyStatements(store)
  const known = made.get(statements)
  if (known !== undefined) return yield* fileStep(() => files.write(layout.build, known, modes.file))
  yield* Effect.scoped(
    Effect.flatMap(openDatabase(layout.build, "read-write"), (connection) =>
      connection.run(`${withoutLog}; ${statements}`),
    ),
  )
  if (made.size === madeMax) made.clear()
  made.set(statements, yield* fileStep(() => readFileSync(layout.build)))
}, inDatabase)
