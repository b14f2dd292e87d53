/**
 * The rows of a run that was derived with another record schema, as `rebuild` would derive them: each record
 * is put together again, and goes through the schema in force. They are in files of their own while the run
 * is added to the database. With pseudonyms, ids stay: they are of values that the files do not have.
 */
import { join } from "node:path"
import { Effect, Stream } from "effect"
import { quietly } from "../base/DurableFile.ts"
import type { Connection, Json } from "../base/DuckDb.ts"
import { literal, identifier } from "../base/DuckDbFailed.ts"
import type { MisfitCount } from "../ledger/RunFacts.ts"
import type { Cell } from "../records/ColumnData.ts"
import { TableBuilder, text, type ColumnSpec, type TableSpec } from "../records/Columns.ts"
import { compileKeeping, familyIdentity, fetchedIn, fieldsOf, itemOf } from "../records/CompileFamily.ts"
import { lineageCells, misfitName, misfitsIn } from "../records/CompileFamily.ts"
import type { HeldColumn, HeldRow, Lineage } from "../records/CompileFamily.ts"
import { flushAll, flushFull, parquetBytes, type Flushed } from "../records/Flush.ts"
import { addUpMisfits } from "../records/Misfits.ts"
import { ownerOf, recordIds, type RecordIds } from "../records/RecordIdentity.ts"
import { isColumnName, tablesOf } from "../records/RecordSchema.ts"
import type { RecordChild, RecordColumn, RecordFamily } from "../records/RecordSchema.ts"
import { childTable, familyTable, tableSpecs } from "../records/RecordTables.ts"
import { castRows, parquetRows } from "./FileColumns.ts"
import { fileStep, makeFoldersOf, placesOf } from "./Manifest.ts"
import type { Manifest, ManifestFile, Store } from "./Manifest.ts"
import { isItemOf } from "./Step.ts"

type Run = Manifest["runs"][string]
type Versions = Manifest["schemas"]

const shapes = new WeakMap<RecordFamily, string>()

/** What rows and ids are made by: all but comments, and what says which records there are. */
export const shapeOf = (family: RecordFamily): string => {
  const { mode, key, fetched, columns, children } = family
  const uncommented = (name: string, value: unknown) => (name === "comment" ? undefined : value)
  const shape = shapes.get(family) ?? JSON.stringify([mode, key, fetched, columns, children], uncommented)
  shapes.set(family, shape)
  return shape
}

/** Whatever a run has in tables of these names is of another family: it had none of this one. */
export const hadNone = (run: Run, { table }: RecordFamily): boolean =>
  run.schemas !== undefined && run.schemas[table] === undefined

/** A family as a run had it; undefined if nobody knows. */
export const familyThen = (family: RecordFamily, inForce: Versions, run: Run): RecordFamily | undefined => {
  const version = run.schemas?.[family.table]
  if (version === undefined) return undefined
  return family.kept?.[version] ?? (version === inForce?.[family.table] ? family : undefined)
}

/** For which table a run's rows of this one were written; undefined if for none, or if nobody knows. */
export const tableThen = (
  families: ReadonlyArray<RecordFamily>,
  inForce: Versions,
  run: Run | undefined,
  table: string,
): string | undefined => {
  const family = families.find((each) => tablesOf(each).includes(table))
  if (family === undefined || run === undefined) return table
  if (hadNone(run, family)) return undefined
  const list = family.children.find((each) => each.table === table)
  if (list === undefined) return table
  return familyThen(family, inForce, run)?.children.find(({ field }) => field === list.field)?.table
}

/** Lists that a run had, and whose items have neither a table nor a column any more. */
export const listsLost = (
  families: ReadonlyArray<RecordFamily>,
  inForce: Versions,
  run: Run | undefined,
): ReadonlyArray<string> => {
  const tables = new Set(families.flatMap(tablesOf))
  return families.flatMap((family) => {
    const children = (run && familyThen(family, inForce, run)?.children) ?? []
    const known = [...family.columns.map(({ name }) => name), ...family.children.map(({ field }) => field)]
    return children
      .filter(({ field, table }) => !known.includes(field) && !tables.has(table))
      .map(({ table }) => `${table} (of ${family.table})`)
  })
}

// What the files have, as texts.

/** DuckDB's long names in the words of a specification. */
const shortName = (type: string): string =>
  type === "TIMESTAMP WITH TIME ZONE" ? "TIMESTAMPTZ" : type.replaceAll(" ", "")

const isoText = (value: string): string =>
  `replace(strftime(timezone('UTC', ${value}), '%Y-%m-%dT%H:%M:%S.%fZ'), '.000000Z', 'Z')`

const textOf = ({ name, type }: HeldColumn): string => {
  const value = identifier(name)
  if (type === "TIMESTAMPTZ") return isoText(value)
  return `CAST(${type === "VARCHAR[]" ? `to_json(${value})` : value} AS VARCHAR)`
}

/** The rows that a run has in files of a table: `row` is a `HeldRow` as JSON. */
const heldIn = Effect.fnUntraced(function* (
  connection: Connection,
  places: ReadonlyArray<string>,
  run_id: string,
  declared: ReadonlyArray<RecordColumn>,
) {
  const rows = parquetRows(places)
  const types = yield* connection.columnTypes(`SELECT * FROM ${rows}`)
  // JSON is text in Parquet.
  const isJson = new Set(declared.flatMap(({ name, type }) => (type === "JSON" ? [name] : [])))
  const columns = types
    .filter(({ name }) => isColumnName(name))
    .map(({ name, type }): HeldColumn => ({ name, type: isJson.has(name) ? "JSON" : shortName(type) }))
  const has = (name: string) => types.some((each) => each.name === name)
  const cell = (name: string): string => (has(name) ? identifier(name) : "NULL")
  const rest = [`CAST(${cell("extra")} AS VARCHAR)`, `CAST(to_json(${cell("misfits")}) AS VARCHAR)`]
  return {
    columns,
    cells: (names: ReadonlyArray<string>) => names.map((name) => `${cell(name)} AS ${name}`).join(", "),
    row: `to_json([${[...rest, ...columns.map(textOf)].join(", ")}])`,
    source: `${rows} WHERE run_id = ${literal(run_id)}`,
  }
})
type Held = Effect.Success<ReturnType<typeof heldIn>>

/** What comes before the fields of a record. */
const leadingIn = (family: RecordFamily): ReadonlyArray<string> =>
  familyTable({ ...family, columns: [] })
    .columns.slice(0, -restCells)
    .map(({ name }) => name)
/** `misfits` and `extra` come last in a row, and first in a `HeldRow`. */
const restCells = 2
const ownerNames = ["record_id", "session_id", "task_id"]

/**
 * Each record in its order, and after it the items of its lists: 0 or the number of the list, what is
 * `leading`, and a `HeldRow`. Sorted by DuckDB, which puts on disk what does not fit into memory.
 */
const recordsSql = (leading: ReadonlyArray<string>, own: Held, lists: ReadonlyArray<ListThen>): string => {
  const records = `(SELECT ${own.cells(leading)}, ${own.row} AS _row, row_number() OVER () AS _ord
    FROM ${own.source}) AS r`
  const cells = leading.map((name) => `CAST(r.${name} AS VARCHAR) AS ${name}`)
  const items = lists.map(
    ({ held }, at) => `SELECT r._ord, ${at + 1}, i.position, ${leading.map(() => "NULL").join(", ")}, i._row
      FROM (SELECT ${held.cells([...ownerNames, "position"])}, ${held.row} AS _row FROM ${held.source}) AS i
        JOIN ${records} ON ${isItemOf("i", "r", "record_id")}`,
  )
  const all = [`SELECT r._ord, 0 AS _list, 0 AS _at, ${cells.join(", ")}, r._row FROM ${records}`, ...items]
  return `SELECT _list, ${leading.join(", ")}, CAST(_row AS VARCHAR) FROM (${all.join(" UNION ALL ")})
    ${lists.length === 0 ? "" : "ORDER BY _ord, _list, _at"}`
}

// A record again, and its rows under the schema in force.

interface ListThen {
  readonly list: RecordChild
  readonly held: Held
}

/** The columns of a table, as `table.column`, whose type is another one in its files. */
const retyped = (
  { table, columns }: Pick<RecordChild, "table" | "columns">,
  held: Held | undefined,
): ReadonlyArray<string> =>
  columns
    .filter(({ name, type }) => held?.columns.some((each) => each.name === name && each.type !== type))
    .map(({ name }) => `${table}.${name}`)

/** The cells of a row where `extra` is withheld: what did not fit before is not there to be read again. */
const withheld = (
  cells: ReadonlyArray<Cell>,
  columns: ReadonlyArray<RecordColumn>,
  row: HeldRow,
): ReadonlyArray<Cell> => {
  const first = cells.length - columns.length - restCells
  const filled = columns.flatMap(({ name }, at) => (cells[first + at] === null ? [] : [name]))
  const left = misfitsIn(row).filter((each) => !filled.includes(misfitName(each)))
  const all = new Set([...left, ...((cells.at(-restCells) ?? []) as ReadonlyArray<string>)])
  return [...cells.slice(0, -restCells), all.size === 0 ? null : [...all], null]
}

type Leading = Readonly<Record<keyof Lineage | keyof RecordIds | "product" | "sub_family", string | null>>

interface HeldRecord {
  readonly leading: ReadonlyArray<string | null>
  readonly row: HeldRow
  /** By list; none if it has no rows. */
  readonly items: Array<Array<HeldRow> | undefined>
}

/** The record of which a row and those of its lists were made. */
const recordOf = (
  { own, lists }: { readonly own: Held; readonly lists: ReadonlyArray<ListThen> },
  { children }: RecordFamily,
  { row, items }: HeldRecord,
): Record<string, unknown> => {
  const record = fieldsOf(own.columns, row)
  for (const [at, { list, held }] of lists.entries()) {
    const name = list.items === "values" ? list.columns[0]?.name : undefined
    const all = items[at]?.map((each) => itemOf(held.columns, each, name))
    if (all !== undefined) record[list.field] = all
  }
  // Whether a list was empty or missing is told by `misfits` alone.
  const missing = misfitsIn(row).map(misfitName)
  for (const { field, required } of children) if (required && !missing.includes(field)) record[field] ??= []
  return record
}

/** The ids of records that come in the order of their bodies. */
const idsInTurn = () => {
  let [session, idsOf] = ["", recordIds("")]
  return (was: Leading, identity: Parameters<typeof idsOf>[0]): RecordIds => {
    const own = JSON.stringify([was.task_id, was.session_id])
    if (own !== session) [session, idsOf] = [own, recordIds(ownerOf(was))]
    return idsOf(identity)
  }
}

/** The id that a record has in its file: documents name it so. */
const wasId = text("_was", "own", "")

/** A row that is there stays without its key, too. */
const builderOf = (spec: TableSpec, ...more: ReadonlyArray<ColumnSpec>): TableBuilder =>
  new TableBuilder({
    ...spec,
    columns: [...spec.columns, ...more].map((each) => ({ ...each, nullable: true })),
  })

export type Made = Pick<Store, "layout" | "families" | "files" | "modes" | "pseudonyms">

/** Takes rows of `recordsSql`, makes those of the schema in force, and counts values that do not fit it. */
const rowMaker = (
  { families, pseudonyms }: Made,
  family: RecordFamily,
  then: { readonly own: Held; readonly lists: ReadonlyArray<ListThen> },
) => {
  const own = builderOf(familyTable(family), wasId)
  const identity = familyIdentity(family, fetchedIn(families))
  const compiled = compileKeeping(family)
  const idsOf = idsInTurn()
  const leading = leadingIn(family)
  const placeThen = ({ field }: RecordChild) => then.lists.findIndex(({ list }) => list.field === field)
  const lists = family.children.map((child) => ({
    child,
    at: placeThen(child),
    builder: builderOf(childTable(child)),
  }))
  const changed = new Set([
    ...retyped(family, then.own),
    ...lists.flatMap(({ child, at }) => retyped(child, then.lists[at]?.held)),
  ])
  let unfit: ReadonlyArray<MisfitCount> = []
  const shown = (...of: Parameters<typeof withheld>) => (pseudonyms === undefined ? of[0] : withheld(...of))
  const add = (record: HeldRecord): void => {
    const { row, items } = record
    const was = Object.fromEntries(leading.map((name, at) => [name, record.leading[at] ?? null])) as Leading
    const kind = { product: was.product ?? "", sub_family: was.sub_family ?? "" }
    const made = compiled({ ...recordOf(then, family, record), ...kind })
    const ids = pseudonyms === undefined ? idsOf(was, { ...kind, ...identity(made) }) : was
    const first = lineageCells(was, ids)
    own.appendAfter(first, [...shown(made.own, family.columns, row), was.record_id])
    for (const [index, { child, at, builder }] of lists.entries())
      for (const [place, item] of made.children[index]!.entries())
        builder.appendAfter(first, shown(item, child.columns, items[at]?.[place] ?? [null, null]))
    const lost = made.misfits.filter(({ table, column }) => changed.has(`${table}.${column}`))
    if (lost.length > 0) unfit = addUpMisfits([...unfit, ...lost])
  }
  let last: HeldRecord | undefined
  const finish = (): void => {
    if (last !== undefined) add(last)
  }
  return {
    builders: [own, ...lists.map(({ builder }) => builder)],
    unfit: () => unfit,
    add: (rows: ReadonlyArray<ReadonlyArray<Json>>): void => {
      for (const [list, ...cells] of rows) {
        const row = JSON.parse(String(cells.at(-1))) as HeldRow
        if (list !== 0) (last!.items[Number(list) - 1] ??= []).push(row)
        else {
          finish()
          last = { leading: cells as ReadonlyArray<string | null>, row, items: [] }
        }
      }
    },
    finish,
  }
}

/** By table, a query for the rows of a run, until the scope ends; and what does not fit its schema. */
export const rowsAnew = Effect.fn("Tables.rowsAnew")(function* (
  store: Made,
  connection: Connection,
  { family, was }: { readonly family: RecordFamily; readonly was: RecordFamily | undefined },
  run_id: string,
  files: ReadonlyArray<ManifestFile>,
) {
  const heldOf = (table: string, declared: ReadonlyArray<RecordColumn>) => {
    const own = files.filter((file) => file.table === table)
    return own.length === 0 ? Effect.undefined : heldIn(connection, placesOf(store, own), run_id, declared)
  }
  const { table, columns, children } = was ?? family
  const own = yield* heldOf(table, columns)
  const sources = new Map<string, string>()
  if (own === undefined) return { sources, unfit: [] }
  const lists: Array<ListThen> = []
  for (const list of children) {
    const held = yield* heldOf(list.table, list.columns)
    if (held !== undefined) lists.push({ list, held })
  }
  const making = rowMaker(store, family, { own, lists })
  const below = `${store.layout.build}.rows`
  const written: Array<{ readonly name: string; readonly place: string }> = []
  const write = ({ spec, table: rows }: Flushed) =>
    fileStep(() => {
      const place = join(below, `${spec.name}-${written.length}.parquet`)
      makeFoldersOf(store, place)
      store.files.write(place, parquetBytes(spec, rows, {}), store.modes.file)
      written.push({ name: spec.name, place })
    })
  yield* Effect.addFinalizer(() => Effect.sync(() => quietly(() => store.files.remove(below))))
  const records = connection.stream(recordsSql(leadingIn(family), own, lists))
  yield* Stream.runForEach(Stream.unwrap(Effect.map(records, ({ chunks }) => chunks)), (rows) => {
    making.add(rows)
    return Effect.forEach(flushFull(making.builders), write, { discard: true })
  })
  making.finish()
  yield* Effect.forEach(flushAll(making.builders), write, { discard: true })
  const rowsIn = (table: string): string =>
    parquetRows(written.flatMap(({ name, place }) => (name === table ? [place] : [])))
  for (const spec of tableSpecs(family))
    if (written.some(({ name }) => name === spec.name))
      sources.set(spec.name, castRows(spec, spec.columns, rowsIn(spec.name)))
  yield* connection.run(`UPDATE ops.documents SET record_id = r.record_id FROM ${rowsIn(family.table)} AS r
    WHERE documents.run_id = ${literal(run_id)} AND documents.task_id = r.task_id
      AND documents.session_id = r.session_id AND documents.record_id = r._was`)
  return { sources, unfit: making.unfit() }
})
