/**
 * `nightjar tables [TABLE]`: the data dictionary: every published table and view with its columns, from the
 * same source as the database's comments, then the models of jobs; before anything is published, with the
 * program's own schemas. The same for other tools with `--format odcs` (a data contract) and `--format dbt`,
 * without models, which are not ours, or as a page with what is published of each (`--html`).
 */
import { existsSync, lstatSync } from "node:fs"
import { join } from "node:path"
import { Clock, Effect, Option } from "effect"
import { Argument, Flag } from "effect/cli"
import type { PseudonymPolicy } from "../../tables/Treatments.ts"
import type { RecordFamily } from "../../records/RecordSchema.ts"
import { codeOf, durableFiles } from "../../base/DurableFile.ts"
import { suggestion } from "../../base/Text.ts"
import { machineZone } from "../../base/Time.ts"
import type { PageView } from "../../report/TablesPage.ts"
import { table, wrap } from "../../report/TextTable.ts"
import { command } from "../CommandRow.ts"
import { optionalFlag } from "../CommonFlags.ts"
import { refuse, toolVersion } from "../Failures.ts"
import { familiesOf, policyOf } from "../LookAtFolder.ts"
import { Wiring } from "../Wiring.ts"
import { dbtSources, contractObjects, dataContract } from "../../tables/DataContract.ts"
import { stringify } from "yaml"
import { publishedTables, dataDictionary } from "../../tables/DataDictionary.ts"
import { relationsOf } from "../../tables/Dimensions.ts"
import { renderTablesPage } from "../../report/TablesPage.ts"
import { tableFigures } from "../PublishedDatabase.ts"
import { pageTemplate } from "../RunReport.ts"
import { publishedModels } from "../../tables/Models.ts"

/** The schemas of the tables, and what they have in place of the customers. */
interface Described {
  readonly families: ReadonlyArray<RecordFamily>
  readonly policy: PseudonymPolicy | undefined
}

/** Only a page that is not there yet, or a file, is written: never a device, a link or a folder. */
const writePage = Effect.fnUntraced(function* (path: string, page: string) {
  const files = yield* durableFiles
  if (lstatSync(path, { throwIfNoEntry: false })?.isFile() === false)
    return yield* refuse("page-unwritable", { path, why: "it is not a file" })
  yield* Effect.try({
    try: () => files.replace(path, page, 0o600),
    catch: (cause) => refuse("page-unwritable", { path, why: codeOf(cause) }),
  })
})

/** A page of all tables, for a file; it says the same of each, and how full and fresh it is. */
const tablesPage = Effect.fnUntraced(function* (
  output: string,
  { families, policy }: Described,
  all: ReadonlyArray<PageView>,
) {
  const specs = publishedTables(families, policy)
  const figures = yield* tableFigures(
    output,
    specs.map(({ name }) => name),
  )
  return renderTablesPage(yield* pageTemplate, {
    toolVersion,
    madeAt: yield* Clock.currentTimeMillis,
    timezone: machineZone(),
    tables: specs.map((spec) => ({ ...spec, figures: figures?.get(spec.name) })),
    views: all.filter((one) => !specs.some(({ name }) => name === one.name)),
    relations: relationsOf(families),
  })
})

/** Models of jobs in the published database; none before anything is published. */
const modelsIn = Effect.fnUntraced(function* (output: string, known: ReadonlySet<string>) {
  const { database } = yield* Wiring
  const path = join(output, "nightjar.duckdb")
  if (!existsSync(path)) return []
  return yield* Effect.provide(publishedModels(path, known), database)
})

export const tables = command("tables", {
  more: `
    \`--format dbt\` is for a dbt project that builds on the tables (dbt 1.10.5 or later, with dbt-duckdb and
    nightjar.duckdb attached): a sources.yml with the descriptions and types of all columns, tests of keys, relations
    and closed lists of values, and freshness. \`--format odcs\` is an Open Data Contract.`,
  examples: {
    "nightjar tables coverage_current": "One table",
    "nightjar tables --format dbt > models/sources.yml": "For a dbt project",
  },
  flags: {
    name: Argument.String("TABLE").pipe(
      Argument.withDescription("One table (default: all of them)"),
      Argument.optional,
    ),
    format: Flag.Literals("format", ["text", "odcs", "dbt"]).pipe(
      Flag.withDescription("odcs, dbt: as YAML"),
      Flag.withDefault("text" as const),
    ),
    html: optionalFlag("html", "FILE", "Write a page of all tables, with how full and fresh each is"),
  },
  run: ({ name, format, html }, output) =>
    Effect.gen(function* () {
      const described: Described = { families: yield* familiesOf(output), policy: yield* policyOf(output) }
      const { families, policy } = described
      const own = dataDictionary(families, policy)
      const known = new Set(own.map((one) => one.name))
      const all = format === "text" ? [...own, ...(yield* modelsIn(output, known))] : own
      if (Option.isSome(html)) {
        if (Option.isSome(name) || format !== "text") return yield* refuse("page-of-all-tables")
        yield* writePage(html.value, yield* tablesPage(output, described, all))
        return { page: { path: html.value } }
      }
      const chosen = all.filter((one) => Option.isNone(name) || one.name === name.value)
      if (chosen.length === 0 && Option.isSome(name)) {
        const names = all.map((one) => one.name)
        return yield* refuse("table-unknown", { suggestion: suggestion(name.value, names) })
      }
      if (format === "text") return { chosen }
      const names = new Set(chosen.map((one) => one.name))
      const isChosen = (one: string) => names.has(one)
      if (format === "dbt") return { document: dbtSources(families, isChosen, toolVersion, policy) }
      const objects = contractObjects(families, policy).filter((one) => isChosen(one.name))
      return { document: dataContract(objects, toolVersion) }
    }),
  json: ({ page, document, chosen }) => page ?? document ?? chosen,
  text: ({ page, document, chosen = [] }, out, { name }) => {
    if (page !== undefined) return page.path
    if (document !== undefined)
      return stringify(document, { lineWidth: 0, aliasDuplicateObjects: false }).trimEnd()
    return chosen.flatMap((one) => {
      const rows = one.columns.map((column) => ["", column.name, column.type, column.comment])
      const columns = `${table(["", "column", "type", "meaning"], rows, out)}\n`
      const about = wrap(`${one.name} (${one.kind}): ${one.comment}`, out.width)
      return one.kind === "table" || Option.isSome(name) ? [about, columns] : [about]
    })
  },
})
