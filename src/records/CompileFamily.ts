/**
 * A record family -> a function from a record to its cells and those of its lists, or to the first thing for
 * which its schema refuses it. A value that does not fit its column leaves the record where it is: the column
 * is NULL, `extra` keeps the value, `misfits` says why. Nothing is written before all of it was checked.
 */
import { counted } from "../base/Text.ts"
import type { MisfitCount } from "../ledger/RunFacts.ts"
import { converter, dateCell, isNumberType, misfitReason } from "./ColumnData.ts"
import type { Cell, ColumnType, Convert } from "./ColumnData.ts"
import type { TableBuilder } from "./Columns.ts"
import { exactNumber, isObject, jsonText, type Json } from "./ExactNumber.ts"
import { pathText, type Place } from "./FindRecords.ts"
import { addUpMisfits } from "./Misfits.ts"
import { contentWriter, type ContentColumn, type FetchedOf, type RecordIds } from "./RecordIdentity.ts"
import { defaultFetched, refuses } from "./RecordSchema.ts"
import type { Mode, RecordChild, RecordColumn, RecordFamily } from "./RecordSchema.ts"
import { readJson } from "../service/ReadJson.ts"
import type { CustomerId, EngineReference, ExecutionId, RunId, SessionId, TaskId } from "../service/Ids.ts"

/** What is wrong with a record, and where. */
interface Misfit {
  readonly reason: string
  readonly place: Place
}

export interface RecordCells {
  /** `product`, `sub_family`, fields in the order of the family's columns, `misfits`, `extra`. */
  readonly own: ReadonlyArray<Cell>
  /** Per child: per item its position, its fields, `misfits`, `extra`. */
  readonly children: ReadonlyArray<ReadonlyArray<ReadonlyArray<Cell>>>
  /** What the record and its children's items have that does not fit, added up; usually nothing. */
  readonly misfits: ReadonlyArray<MisfitCount>
}

export const isMisfit = (result: RecordCells | Misfit): result is Misfit => "reason" in result

interface CompiledColumn {
  readonly name: string
  readonly type: ColumnType
  readonly required: boolean
  /** A record is refused if the value does not fit, or is required and missing. */
  readonly refuses: boolean
  readonly convert: Convert
}

const compileColumn =
  (mode: Mode) =>
  (column: RecordColumn): CompiledColumn => ({
    name: column.name,
    type: column.type,
    required: column.required,
    refuses: column.identifies || refuses[mode].misfits,
    convert: converter(column.type, column.takesNumbers),
  })

/** A list reports the item that is wrong, everything else itself. */
const misfit = (type: ColumnType | "list", value: unknown, place: Place): Misfit => {
  if (type === "VARCHAR[]" && Array.isArray(value)) {
    const key = value.findIndex((item) => typeof item !== "string")
    return { reason: misfitReason("VARCHAR", value[key]), place: { above: place, key } }
  }
  return { reason: misfitReason(type, value), place }
}

/** `gender: expected VARCHAR, got number`; never the value. */
const told = (name: string, type: ColumnType | "list", value: unknown): string => {
  const { reason, place } = misfit(type, value, { above: undefined, key: name })
  return `${pathText(place)}: ${reason}`
}

/** Fields of an object that are stored, but not in a column of its table; `isList`: if they are one. */
interface Elsewhere {
  readonly name: string
  readonly required: boolean
  readonly isList?: boolean
}

interface Fields {
  /** Writes a cell per column, `misfits` and `extra`; returns why the record is refused, if it is. */
  (value: Json, cells: Array<Cell>, place: Place, misfits: Array<MisfitCount>): Misfit | undefined
}

const unknownField = "a field that the schema does not have"

/** `table` is where they go, after as many cells as `first`. */
const compileFields = (
  mode: Mode,
  { table, first }: { readonly table: string; readonly first: number },
  columns: ReadonlyArray<RecordColumn>,
  elsewhere: ReadonlyArray<Elsewhere>,
): Fields => {
  const compiled = columns.map(compileColumn(mode))
  const known = new Set([...columns, ...elsewhere].map(({ name }) => name))
  const { misfits: refusesMisfits, unknownFields, notesUnknown } = refuses[mode]
  const last = first + columns.length + 1
  const restOf = (value: Json, unfit: ReadonlyMap<string, string>, cells: Array<Cell>): number => {
    // `fromEntries` defines fields, so a key named __proto__ is a key like any other.
    const rest = Object.keys(value).filter((key) => !known.has(key) || unfit.has(key))
    const unknown = rest.filter((key) => !known.has(key)).length
    const noted = notesUnknown && unknown > 0 ? [`extra: ${counted(unknown, "unknown field")}`] : []
    const texts = [...unfit.values(), ...noted]
    cells[last - 1] = texts.length === 0 ? null : texts
    if (rest.length > 0) cells[last] = jsonText(Object.fromEntries(rest.map((key) => [key, value[key]])))
    return unknown
  }
  return (value, cells, place, misfits) => {
    let present = 0
    let unfit: Map<string, string> | undefined
    for (let i = 0; i < compiled.length; i++) {
      const { name, type, required, convert, refuses: isRefused } = compiled[i]!
      const field = value[name]
      const isMissing = field === undefined || field === null
      const cell = isMissing ? (required ? undefined : null) : convert(field)
      if (cell !== undefined) {
        if (field !== undefined) present++
        cells[first + i] = cell
        continue
      }
      if (isRefused) return misfit(type, field, { above: place, key: name })
      unfit ??= new Map()
      unfit.set(name, told(name, type, field))
      cells[first + i] = null
    }
    cells[last - 1] = null
    cells[last] = null
    for (let i = 0; i < elsewhere.length; i++) {
      const { name, required, isList = false } = elsewhere[i]!
      const field = value[name]
      const isThere = field !== undefined && field !== null
      if (isThere ? !isList || Array.isArray(field) : !required) {
        if (field !== undefined) present++
        continue
      }
      if (refusesMisfits) return misfit("list", field, { above: place, key: name })
      unfit ??= new Map()
      unfit.set(name, told(name, "list", field))
    }
    const keys = Object.keys(value)
    if (unfit === undefined && keys.length === present) return undefined
    unfit ??= new Map()
    const unknown = restOf(value, unfit, cells)
    if (unknown > 0 && unknownFields)
      return { reason: unknownField, place: { above: place, key: keys.find((key) => !known.has(key))! } }
    for (const name of unfit.keys()) misfits.push({ table, column: name, count: 1 })
    if (unknown > 0 && notesUnknown) misfits.push({ table, column: "extra", count: unknown })
    return undefined
  }
}

interface Items {
  (
    list: ReadonlyArray<unknown>,
    rows: Array<ReadonlyArray<Cell>>,
    place: Place,
    misfits: Array<MisfitCount>,
  ): Misfit | undefined
}

/** An item of the wrong kind keeps its place: in `extra` and `misfits` it has this name. */
const wholeItem = "item"
const isWholeItem = (misfit: string): boolean => misfit.startsWith(`${wholeItem}: expected object`)

const compileObjects = (family: RecordFamily, child: RecordChild): Items => {
  const fields = compileFields(family.mode, { table: child.table, first: 1 }, child.columns, [])
  const isRefused = refuses[family.mode].misfits
  const nulls = child.columns.map(() => null)
  const width = child.columns.length + 3
  return (list, rows, place, misfits) => {
    for (let position = 0; position < list.length; position++) {
      const item = list[position]
      const at: Place = { above: place, key: position }
      if (!isObject(item)) {
        const reason = misfitReason("object", item)
        if (isRefused) return { reason, place: at }
        rows.push([position, ...nulls, [`${wholeItem}: ${reason}`], jsonText({ [wholeItem]: item })])
        misfits.push({ table: child.table, column: wholeItem, count: 1 })
        continue
      }
      const cells = new Array<Cell>(width)
      cells[0] = position
      const trouble = fields(item, cells, at, misfits)
      if (trouble !== undefined) return trouble
      rows.push(cells)
    }
    return undefined
  }
}

/** A plain value has no fields: in `extra`, a misfit has the name of its column. */
const compileValues = (family: RecordFamily, child: RecordChild): Items => {
  const { name, type, convert, refuses: isRefused } = compileColumn(family.mode)(child.columns[0]!)
  return (list, rows, place, misfits) => {
    for (let position = 0; position < list.length; position++) {
      const item = list[position]
      const cell = item === null || item === undefined ? undefined : convert(item)
      if (cell !== undefined) {
        rows.push([position, cell, null, null])
        continue
      }
      if (isRefused) return misfit(type, item, { above: place, key: position })
      rows.push([position, null, [told(name, type, item)], jsonText({ [name]: item })])
      misfits.push({ table: child.table, column: name, count: 1 })
    }
    return undefined
  }
}

const noRows: ReadonlyArray<ReadonlyArray<Cell>> = []

/** `keeps`: no record is refused for a child that is no list; it stays in `extra`. */
export const compileFamily = (
  family: RecordFamily,
  keeps = false,
): ((record: Json, place: Place) => RecordCells | Misfit) => {
  const lists = family.children.map(({ field, required }) => ({ name: field, required, isList: keeps }))
  const names = ["product", "sub_family"].map((name) => ({ name, required: false }))
  const where = { table: family.table, first: names.length }
  const fields = compileFields(family.mode, where, family.columns, [...names, ...lists])
  const width = names.length + family.columns.length + 2
  const children = family.children.map((child) => ({
    field: child.field,
    items: child.items === "objects" ? compileObjects(family, child) : compileValues(family, child),
  }))
  return (record, place) => {
    // Of the right length from the start: a list that grows has room that stays empty, row after row.
    const own = new Array<Cell>(width)
    own[0] = record["product"] as string
    own[1] = record["sub_family"] as string
    const misfits: Array<MisfitCount> = []
    const trouble = fields(record, own, place, misfits)
    if (trouble !== undefined) return trouble
    const childRows: Array<ReadonlyArray<ReadonlyArray<Cell>>> = []
    for (let i = 0; i < children.length; i++) {
      const { field, items } = children[i]!
      const list = record[field]
      if (Array.isArray(list)) {
        const rows: Array<ReadonlyArray<Cell>> = []
        const wrong = items(list, rows, { above: place, key: field }, misfits)
        if (wrong !== undefined) return wrong
        childRows.push(rows)
      } else if (keeps || list === undefined || list === null) childRows.push(noRows)
      else return { reason: misfitReason("list", list), place: { above: place, key: field } }
    }
    return { own, children: childRows, misfits: misfits.length === 0 ? misfits : addUpMisfits(misfits) }
  }
}

// A row that another schema made -> its record again, as far as its cells, `extra` and `misfits` tell it. It
// goes through the same conversions as one that has just come.

/** A column of a row as it is in a file. */
export interface HeldColumn {
  readonly name: string
  /** One of an earlier version of the program may have another type. */
  readonly type: ColumnType | (string & {})
}

/** `extra`, `misfits` as JSON, and the cells of the columns. */
export type HeldRow = readonly [extra: string | null, misfits: string | null, ...(string | null)[]]

/**
 * The field of which a cell was made, from the cell as text. A DECIMAL counts as a number and a time as
 * written in UTC: a cell does not say which of the spellings that its column takes it had.
 */
const fieldOf = ({ type }: HeldColumn, text: string): unknown => {
  if (isNumberType(type)) return exactNumber(text.replace(/\.0+$|(\.\d*[1-9])0+$/, "$1"))
  if (type === "BOOLEAN") return text === "true"
  if (type !== "JSON" && type !== "VARCHAR[]") return text
  try {
    return readJson(text, exactNumber)
  } catch {
    return text
  }
}

export const misfitsIn = ([, misfits]: HeldRow): ReadonlyArray<string> =>
  misfits === null ? [] : (JSON.parse(misfits) as ReadonlyArray<string>)

/** The name that a misfit begins with. */
export const misfitName = (misfit: string): string => /^\w*/.exec(misfit)![0]

export const fieldsOf = (columns: ReadonlyArray<HeldColumn>, row: HeldRow): Record<string, unknown> => {
  const [extra, , ...texts] = row
  const fields = extra === null ? {} : (readJson(extra, exactNumber) as Record<string, unknown>)
  for (let i = 0; i < columns.length; i++) {
    const text = texts[i] ?? null
    if (text !== null) fields[columns[i]!.name] = fieldOf(columns[i]!, text)
  }
  return fields
}

/** An item of a list; `name` is the only column of plain values. */
export const itemOf = (
  columns: ReadonlyArray<HeldColumn>,
  row: HeldRow,
  name: string | undefined,
): unknown => {
  const fields = fieldsOf(columns, row)
  if (name !== undefined) return fields[name] ?? null
  return row[1] !== null && misfitsIn(row).some(isWholeItem) ? (fields[wholeItem] ?? null) : fields
}

/** A row that is there stays, whatever the schema would refuse by now. */
export const compileKeeping = (family: RecordFamily): ((record: Json) => RecordCells) => {
  const mode = refuses[family.mode].notesUnknown ? family.mode : "evolve"
  const columns = family.columns.map((each) => ({ ...each, identifies: false }))
  const compiled = compileFamily({ ...family, mode, columns }, true)
  return (record) => compiled(record, { above: undefined, key: "" }) as RecordCells
}

/** What the ids of a family's records are made of, from their cells. */
export const familyIdentity = (
  family: RecordFamily,
  fetchedOf: FetchedOf,
): ((cells: RecordCells) => { readonly key: string | undefined; readonly content: string }) => {
  const columnsAt = (columns: ReadonlyArray<RecordColumn>, first: number): ReadonlyArray<ContentColumn> =>
    columns.map(({ name, type }, index) => ({ name, type, index: first + index }))
  const own = columnsAt(family.columns, 2)
  const isKey = ({ name }: ContentColumn) => family.key.includes(name)
  const keyOf = contentWriter(own.filter(isKey), fetchedOf)
  const contentOf = contentWriter(
    own.filter((each) => isKey(each) || !family.fetched.includes(each.name)),
    fetchedOf,
  )
  const lists = family.children
    .map(({ field, columns }, index) => ({
      field,
      index,
      write: contentWriter(columnsAt(columns, 1), fetchedOf),
    }))
    .toSorted((one, other) => (one.field < other.field ? -1 : 1))
  return (cells) => {
    let content = contentOf(cells.own)
    for (const { field, index, write } of lists) {
      const items = cells.children[index]!
      if (items.length > 0) content += `${field}[${items.map(write).join("")}]`
    }
    return { key: family.key.length === 0 ? undefined : keyOf(cells.own), content }
  }
}

// Where a body comes from: the first columns of every row that is made of it, so that each row of each table
// names its run, the date of the run, task, execution, session, customer and engine.

export interface Lineage {
  readonly run_id: RunId
  /** `YYYY-MM-DD`. */
  readonly run_date: string
  readonly task_id: TaskId
  readonly execution_id: ExecutionId | null
  readonly session_id: SessionId | null
  readonly customer_id: CustomerId | null
  readonly engine_reference: EngineReference | null
}

/** The first cells of a record's rows, in the order of the tables' columns. */
export const lineageCells = (
  lineage: Readonly<Record<keyof Lineage, string | null>>,
  ids: Readonly<Record<keyof RecordIds, string | null>>,
): ReadonlyArray<Cell> => [
  lineage.run_id,
  dateCell(lineage.run_date) ?? null,
  lineage.task_id,
  lineage.execution_id,
  lineage.session_id,
  lineage.customer_id,
  lineage.engine_reference,
  ids.record_id,
  ids.content_id,
]

// Where a record goes, by its product and `sub_family`: the builders of its family's tables and the checks
// of its schema; and which of its fields are times of fetching. A record without a family has no route.

/** What a family has, found by the two names of its records. */
const byKind = <A>(families: ReadonlyArray<RecordFamily>, of: (family: RecordFamily) => A) => {
  const known = new Map<unknown, Map<unknown, A>>()
  for (const family of families) {
    const one = of(family)
    const own = known.get(family.product) ?? new Map<unknown, A>()
    for (const name of family.subFamilies) own.set(name, one)
    known.set(family.product, own)
  }
  return (product: unknown, sub_family: unknown): A | undefined => known.get(product)?.get(sub_family)
}

const noFields: ReadonlyArray<string> = []

/** A record, or half of one, has times of fetching; other objects have none. */
export const fetchedIn = (families: ReadonlyArray<RecordFamily>): FetchedOf => {
  const known = byKind(families, ({ fetched }) => fetched)
  return ({ product, sub_family }) =>
    product === undefined && sub_family === undefined
      ? noFields
      : (known(product, sub_family) ?? defaultFetched)
}

export const routesOf = (
  families: ReadonlyArray<RecordFamily>,
  fetchedOf: FetchedOf,
  builder: (table: string) => TableBuilder,
) =>
  byKind(families, (family) => ({
    table: family.table,
    identity: familyIdentity(family, fetchedOf),
    compiled: compileFamily(family),
    own: builder(family.table),
    children: family.children.map(({ table }) => builder(table)),
  }))
