/**
 * `tables` is the data dictionary of what is published, from the same source as the database's comments, also
 * for other tools (without models, which are not ours) and as a page; `infer` drafts schemas for records
 * without one.
 */
import { existsSync, lstatSync, realpathSync } from "node:fs"
import { dirname, join, resolve, sep } from "node:path"
import { Clock, Effect, Option, Schema, Stream } from "effect"
import { stringify } from "yaml"
import type { Connection } from "../../base/DuckDb.ts"
import { codeOf, durableFiles } from "../../base/DurableFile.ts"
import { counted, suggestion } from "../../base/Text.ts"
import { machineZone } from "../../base/Time.ts"
import { command } from "../CommandRow.ts"
import { refuse, toolVersion } from "../Failures.ts"
import { choiceFlag, note, optionalArgument, optionalFlag, say, warn } from "../Output.ts"
import { familiesOf, policyOf } from "../OutputFolder.ts"
import { firstRows, ourRows, withPublished } from "../PublishedDatabase.ts"
import { pageTemplate } from "../RunReport.ts"
import { Wiring } from "../Wiring.ts"
import { KeyCandidates, draftSchema, draftText } from "../../records/DraftSchema.ts"
import { parseBody } from "../../records/FindRecords.ts"
import { programTables, type RecordFamily } from "../../records/RecordSchema.ts"
import { SeenObject } from "../../records/SeenFields.ts"
import { renderTablesPage } from "../../report/TablesPage.ts"
import { table, wrap } from "../../report/TextTable.ts"
import { feedersOf } from "../../tables/CoverageRows.ts"
import { contractObjects, dataContract, dbtSources } from "../../tables/DataContract.ts"
import {
  dataDictionary,
  nameInSql,
  placeOf,
  publishedTables,
  publishedViews,
} from "../../tables/DataDictionary.ts"
import type { DictionaryTable } from "../../tables/DataDictionary.ts"
import { mainJoins, referencesOf } from "../../tables/Dimensions.ts"
import { publishedModels } from "../../tables/Models.ts"
import type { PseudonymPolicy } from "../../tables/Treatments.ts"

/** Links followed, as far as there is anything. */
const realPath = (path: string): string => (existsSync(path) ? realpathSync(path) : resolve(path))

const isBelow = (folder: string, path: string): boolean =>
  `${realPath(dirname(path))}${sep}`.startsWith(`${realPath(folder)}${sep}`)

/**
 * Only a page that is not there yet, or a file, is written: never a device, a link or a folder. In the output
 * folder, `forget` would have to find the customer's rows in it.
 */
const writePage = Effect.fnUntraced(function* (output: string, path: string, page: string) {
  const files = yield* durableFiles
  if (path === "-") return yield* refuse("page-unwritable", { path, why: "the page is a file" })
  if (lstatSync(path, { throwIfNoEntry: false })?.isFile() === false)
    return yield* refuse("page-unwritable", { path, why: "it is not a file" })
  if (isBelow(output, path))
    return yield* refuse("page-unwritable", { path, why: "it is in the output folder" })
  yield* Effect.try({
    try: () => files.replace(path, page, 0o600),
    catch: (cause) => refuse("page-unwritable", { path, why: codeOf(cause) }),
  })
})

/** A page of all tables; it says the same of each, and shows rows. */
const tablesPage = Effect.fnUntraced(function* (
  output: string,
  families: ReadonlyArray<RecordFamily>,
  policy: PseudonymPolicy | undefined,
  all: ReadonlyArray<DictionaryTable>,
) {
  const own = publishedViews(families, policy)
  const keys = new Map(own.map((view) => [nameInSql(view), view.key]))
  const views = all.map((view) => ({ ...view, name: nameInSql(view), key: keys.get(nameInSql(view)) ?? [] }))
  const main = views.filter(({ schema }) => schema === "main")
  const looked = main.filter(({ kind }) => kind !== "macro")
  const models = looked.map(({ name }) => ({ name, isModel: !keys.has(name) }))
  const rows = yield* firstRows(output, models)
  return renderTablesPage(yield* pageTemplate, {
    toolVersion,
    madeAt: yield* Clock.currentTimeMillis,
    timezone: machineZone(),
    hasPseudonyms: policy !== undefined,
    isPublished: rows !== undefined,
    main: main.map((view) => ({ ...view, rows: rows?.get(view.name) })),
    history: views.filter(({ schema }) => schema === "history"),
    nights: publishedTables(families, policy).map((spec) => ({
      ...spec,
      kind: "table",
      name: placeOf(spec.name),
    })),
    joins: [
      ...mainJoins(families, own),
      ...referencesOf(families).map(({ table, of, columns }) => ({
        table: placeOf(table),
        of: placeOf(of),
        columns,
      })),
    ],
  })
})

/** Models of jobs in the published database; none before anything is published. */
const modelsIn = Effect.fnUntraced(function* (output: string, families: ReadonlyArray<RecordFamily>) {
  const { database } = yield* Wiring
  const path = join(output, "nightjar.duckdb")
  return existsSync(path) ? yield* Effect.provide(publishedModels(path, families), database) : []
})

/** A plain name is what it means in SQL; if `main` has none of that name, those of the other schemas. */
const namedSo = (all: ReadonlyArray<DictionaryTable>, name: string): ReadonlyArray<DictionaryTable> => {
  const inSql = all.filter((each) => nameInSql(each) === name)
  return inSql.length > 0 ? inSql : all.filter((each) => each.name === name)
}

export const tables = command("tables", {
  more: `
    \`--format dbt\` is for a dbt project that builds on the tables (dbt 1.10.5 or later, with dbt-duckdb
    and nightjar.duckdb attached): a sources.yml with the descriptions and types of all columns, tests of
    keys, relations and closed lists of values, and freshness. \`--format odcs\` is an Open Data Contract.

    The page of \`--html\` shows rows as the database has them, with pseudonyms if it has any. Keep it like
    the database, outside the output folder.`,
  examples: {
    "nightjar tables customer_profiles": "One table",
    "nightjar tables --html tables.html": "A page: what each table is for, how to join it, its first rows",
    "nightjar tables --format dbt > models/sources.yml": "For a dbt project",
  },
  flags: {
    name: optionalArgument("TABLE", "One table (default: all of them)"),
    format: choiceFlag("format", ["text", "odcs", "dbt"], "odcs, dbt: as YAML"),
    html: optionalFlag("html", "FILE", "Write a page of all tables with some rows"),
  },
  run: function* ({ name, format, html }, output) {
    const [families, policy] = [yield* familiesOf(output), yield* policyOf(output)]
    const own = dataDictionary(families, policy)
    const all = format === "text" ? [...own, ...(yield* modelsIn(output, families))] : own
    if (Option.isSome(html)) {
      if (Option.isSome(name) || format !== "text") return yield* refuse("page-of-all-tables")
      const path = html.value
      yield* writePage(output, path, yield* tablesPage(output, families, policy, all))
      return { page: { path } }
    }
    const chosen = Option.isNone(name) ? all : namedSo(all, name.value)
    if (chosen.length === 0 && Option.isSome(name)) {
      const names = all.map(nameInSql)
      return yield* refuse("table-unknown", { suggestion: suggestion(name.value, names) })
    }
    if (format === "text") return { chosen }
    const names = new Set(chosen.map(nameInSql))
    const isChosen = (one: string) => names.has(one)
    if (format === "dbt") return { document: dbtSources(families, isChosen, toolVersion, policy) }
    const objects = contractObjects(families, policy).filter((one) => isChosen(one.name))
    return { document: dataContract(objects, toolVersion) }
  },
  json: ({ page, document, chosen }) => page ?? document ?? chosen,
  text: ({ page, document, chosen = [] }, out, { name }) => {
    if (page !== undefined) return page.path
    if (document !== undefined)
      return stringify(document, { lineWidth: 0, aliasDuplicateObjects: false }).trimEnd()
    return chosen.flatMap((one) => {
      const rows = one.columns.map((column) => ["", column.name, column.type, column.comment])
      const columns = `${table(["", "column", "type", "meaning"], rows, out)}\n`
      const about = wrap(`${nameInSql(one)} (${one.kind}): ${one.comment}`, out.width)
      return one.schema === "main" || Option.isSome(name) ? [about, columns] : [about]
    })
  },
})

// `infer`: one draft for each product in `other_records`. Reads no more than the newest records of each, and
// writes nothing.

/** Of one draft; more records say little more. */
const recordsMax = 200_000
/** Far more kinds of records than any service has. */
const kindsMax = 10_000

const kindsSql = `
  SELECT product, sub_family, count(*)::INTEGER AS records FROM nights.other_records
  WHERE product <> '' AND sub_family <> '' GROUP BY ALL ORDER BY ALL LIMIT ${kindsMax}`
const Kind = Schema.Struct({
  product: Schema.String,
  sub_family: Schema.String,
  records: Schema.Int,
})
export type Kind = typeof Kind.Type

const chosenSql = `nights.other_records
  WHERE product = $1 AND sub_family IN (SELECT unnest($2::VARCHAR[]))`

/** The newest records; those of one answer and kind stand together. */
const recordsSql = `
  SELECT concat_ws(' ', run_id, task_id, session_id, sub_family), customer_id, record::VARCHAR FROM (
    FROM ${chosenSql} ORDER BY run_date DESC, run_id DESC LIMIT ${recordsMax}
  ) ORDER BY run_date, run_id, task_id, session_id, sub_family`

const featuresSql = `
  WITH holding AS (SELECT DISTINCT run_id, task_id FROM ${chosenSql})
  SELECT feature, count(DISTINCT (run_id, task_id))::INTEGER AS tasks,
    (SELECT count(*) FROM holding)::INTEGER AS held
  FROM ops.coverage JOIN holding USING (run_id, task_id)
  WHERE feature <> '' GROUP BY ALL ORDER BY feature LIMIT ${kindsMax}`
const Feature = Schema.Struct({ feature: Schema.String, tasks: Schema.Int, held: Schema.Int })

/** What one draft is made from. */
interface Basis {
  readonly product: string
  readonly sub_families: ReadonlyArray<string>
  readonly records: number
}

/** Which drafts the kinds of records need; `waiting`: records from before their family had a schema. Pure. */
export const basesOf = (kinds: ReadonlyArray<Kind>, families: ReadonlyArray<RecordFamily>) => {
  const bases = new Map<string, Basis>()
  let waiting = 0
  for (const { product, sub_family, records } of kinds) {
    if (families.some((each) => each.product === product && each.subFamilies.includes(sub_family))) {
      waiting += records
      continue
    }
    const before = bases.get(product) ?? { sub_families: [], records: 0 }
    bases.set(product, {
      product,
      sub_families: [...before.sub_families, sub_family],
      records: before.records + records,
    })
  }
  return { bases: [...bases.values()], waiting }
}

const slug = (text: string): string =>
  text
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, "_")
    .replace(/^[^a-z]+|_+$/g, "")
    .slice(0, 40)

/** A name that no table, view or other draft has. */
export const tableName = ({ product, sub_families }: Basis, taken: ReadonlySet<string>): string => {
  const first = slug(product) || "records"
  const isFree = (name: string) => !taken.has(name)
  const [only, ...more] = sub_families
  const longer = only !== undefined && more.length === 0 ? `${first}_${slug(only)}` : `${first}_records`
  for (const name of [first, longer]) if (isFree(name)) return name
  for (let n = 2; ; n++) if (isFree(`${first}_${n}`)) return `${first}_${n}`
}

const kindOf = ({ product, sub_families }: Basis) => [product, sub_families] as const

const observe = Effect.fnUntraced(function* (connection: Connection, basis: Basis) {
  const object = new SeenObject()
  const keys = new KeyCandidates()
  const { chunks } = yield* connection.stream(recordsSql, kindOf(basis))
  yield* Stream.runForEach(chunks, (rows) =>
    Effect.sync(() => {
      for (const [group, customer, text] of rows) {
        const parsed = parseBody(new TextEncoder().encode(String(text)))
        if (parsed._tag === "UnreadableBody") continue
        const record = parsed.value as Readonly<Record<string, unknown>>
        object.add(record, String(customer))
        keys.add(String(group), record)
      }
    }),
  )
  return { object, keys }
}, Effect.scoped)

const draftOf = Effect.fnUntraced(function* (
  connection: Connection,
  basis: Basis,
  table: string,
  others: ReadonlyArray<string>,
  families: ReadonlyArray<RecordFamily>,
) {
  const { object, keys } = yield* observe(connection, basis)
  const asked = yield* ourRows(Feature, connection.rows(featuresSql, kindOf(basis)))
  const features = feedersOf(basis.product, asked[0]?.held ?? 0, asked, others, families)
  const { product, sub_families } = basis
  const known = features.length > 0 ? features : [product]
  const draft = draftSchema({ table, product, sub_families, features: known }, object, keys)
  const unknown =
    "It is not known which features feed these records: the product's name stands in their place."
  return { object, draft: features.length > 0 ? draft : { ...draft, notes: [unknown, ...draft.notes] } }
})

/** The kinds of records in `other_records`. */
export const looseKinds = ({ rows }: Connection) => ourRows(Kind, rows(kindsSql))

/** Each draft with its YAML, which the schemas' own parser has read. */
export const inferDrafts = Effect.fn("InferDrafts.draft")(function* (
  connection: Connection,
  bases: ReadonlyArray<Basis>,
  families: ReadonlyArray<RecordFamily>,
) {
  const taken = new Set([...programTables, ...publishedViews(families).map(({ name }) => name)])
  const products = [...bases, ...families].map(({ product }) => product)
  return yield* Effect.forEach(
    bases,
    Effect.fnUntraced(function* (basis) {
      const { product, sub_families, records } = basis
      const table = tableName(basis, taken)
      const others = products.filter((one) => one !== product)
      const { object, draft } = yield* draftOf(connection, basis, table, others, families)
      const children = Object.values(draft.file.children ?? {})
      for (const name of [table, ...children.map((child) => child.table ?? "")]) taken.add(name)
      const newest = object.count < records ? `the newest ${object.count} of ` : ""
      const about = `Drafted from ${newest}${counted(records, "record")}.`
      return {
        table,
        product,
        sub_families,
        records: object.count,
        notes: draft.notes,
        schema: draft.file,
        yaml: yield* draftText(draft, `${table}.yaml. ${about} Check types, comments and features.`),
      }
    }),
  )
})

const named = (name: Option.Option<string>, value: string) => Option.isNone(name) || name.value === value

export const infer = command("infer", {
  examples: {
    "nightjar infer --product accounts > schemas/records/accounts.yaml":
      "A draft to complete, for a job with `schemas: ./schemas`",
  },
  flags: {
    product: optionalFlag("product", "PRODUCT", "Only records of this product"),
    subFamily: optionalFlag("sub-family", "SUB_FAMILY", "Only records of this sub_family"),
  },
  run: function* ({ product, subFamily }, output) {
    if ((yield* policyOf(output)) !== undefined) return yield* refuse("records-withheld")
    const families = yield* familiesOf(output)
    const found = yield* withPublished(
      output,
      Effect.fnUntraced(function* (connection) {
        const kinds = yield* looseKinds(connection)
        const chosen = kinds.filter(
          (each) => named(product, each.product) && named(subFamily, each.sub_family),
        )
        if (chosen.length === 0 && kinds.length > 0) {
          const isProduct = Option.isSome(product) && kinds.every((each) => each.product !== product.value)
          const wanted = isProduct ? product.value : Option.getOrElse(subFamily, () => "")
          const known = new Set(kinds.map((each) => (isProduct ? each.product : each.sub_family)))
          return yield* refuse("family-unknown", { suggestion: suggestion(wanted, [...known]) })
        }
        const { bases, waiting } = basesOf(chosen, families)
        return { drafts: yield* inferDrafts(connection, bases, families), waiting }
      }),
    )
    if (found === undefined) return yield* refuse("nothing-published", { output })
    const { drafts, waiting } = found
    if (waiting > 0) yield* warn("records-have-schema", { records: counted(waiting, "record") })
    if (drafts.length === 0) yield* note("There is nothing to draft: every family has a schema.")
    return drafts
  },
  text: (drafts) =>
    Effect.gen(function* () {
      if (drafts.length === 0) return
      yield* say(drafts.map(({ yaml }) => yaml.trimEnd()).join("\n---\n"))
      yield* note(
        `${counted(drafts.length, "draft")}. Put each in a file of its own in records/ of the job's ` +
          "`schemas` folder; --product and --sub-family choose one.",
      )
    }),
})
