/**
 * A record family -> a function from a record to the cells of its row and of its children's rows, or to the
 * first thing that is wrong with it. Nothing is written before the whole record has been checked.
 */
import { converter, misfitReason } from "./Cells.ts"
import type { Convert } from "./Cells.ts"
import type { Cell, ColumnType } from "./ColumnData.ts"
import { ExactNumber } from "./ExactNumber.ts"
import type { Place } from "./FindRecords.ts"
import { jsonText } from "./JsonText.ts"
import type { RecordChild, RecordColumn, RecordFamily } from "./RecordSchema.ts"

type Json = Readonly<Record<string, unknown>>

/** What is wrong with a record, and where. */
interface Misfit {
  readonly reason: string
  readonly place: Place
}

interface RecordCells {
  /** `product`, `sub_family`, fields in the order of the family's columns, then `extra`. */
  readonly own: ReadonlyArray<Cell>
  /** Per child: per item its position, its fields, and for objects `extra`. */
  readonly children: ReadonlyArray<ReadonlyArray<ReadonlyArray<Cell>>>
}

export const isMisfit = (result: RecordCells | Misfit): result is Misfit => "reason" in result

interface CompiledColumn {
  readonly name: string
  readonly type: ColumnType
  readonly required: boolean
  readonly convert: Convert
}

const compileColumn = ({ name, type, required }: RecordColumn): CompiledColumn => ({
  name,
  type,
  required,
  convert: converter(type),
})

/** A list reports the item that is wrong, everything else itself. */
const misfit = (type: ColumnType, value: unknown, place: Place): Misfit => {
  if (type === "VARCHAR[]" && Array.isArray(value)) {
    const key = value.findIndex((item) => typeof item !== "string")
    return { reason: misfitReason("VARCHAR", value[key]), place: { above: place, key } }
  }
  return { reason: misfitReason(type, value), place }
}

interface Fields {
  /** Appends a cell per column and `extra`; undefined if all is well. */
  (value: Json, cells: Array<Cell>, place: Place): Misfit | undefined
}

/** `elsewhere`: fields of the object that are stored, but not in a column of this table. */
const compileFields = (columns: ReadonlyArray<RecordColumn>, elsewhere: ReadonlyArray<string>): Fields => {
  const compiled = columns.map(compileColumn)
  const known = new Set([...columns.map(({ name }) => name), ...elsewhere])
  return (value, cells, place) => {
    let present = 0
    for (let i = 0; i < compiled.length; i++) {
      const { name, type, required, convert } = compiled[i]!
      const field = value[name]
      if (field === undefined || field === null) {
        if (field === null) present++
        if (required) return misfit(type, field, { above: place, key: name })
        cells.push(null)
        continue
      }
      const cell = convert(field)
      if (cell === undefined) return misfit(type, field, { above: place, key: name })
      present++
      cells.push(cell)
    }
    for (let i = 0; i < elsewhere.length; i++) if (value[elsewhere[i]!] !== undefined) present++
    const keys = Object.keys(value)
    if (keys.length === present) cells.push(null)
    else {
      // `fromEntries` defines fields, so a key named __proto__ is a key like any other.
      const rest = keys.filter((key) => !known.has(key)).map((key) => [key, value[key]] as const)
      cells.push(jsonText(Object.fromEntries(rest)))
    }
    return undefined
  }
}

interface Items {
  (list: ReadonlyArray<unknown>, rows: Array<ReadonlyArray<Cell>>, place: Place): Misfit | undefined
}

const compileObjects = (child: RecordChild): Items => {
  const fields = compileFields(child.columns, [])
  return (list, rows, place) => {
    for (let position = 0; position < list.length; position++) {
      const item = list[position]
      const at: Place = { above: place, key: position }
      if (typeof item !== "object" || item === null || Array.isArray(item) || item instanceof ExactNumber) {
        return { reason: misfitReason("object", item), place: at }
      }
      const cells: Array<Cell> = [position]
      const trouble = fields(item as Json, cells, at)
      if (trouble !== undefined) return trouble
      rows.push(cells)
    }
    return undefined
  }
}

const compileValues = (child: RecordChild): Items => {
  const { type, convert } = compileColumn(child.columns[0]!)
  return (list, rows, place) => {
    for (let position = 0; position < list.length; position++) {
      const item = list[position]
      const cell = item === null || item === undefined ? undefined : convert(item)
      if (cell === undefined) return misfit(type, item, { above: place, key: position })
      rows.push([position, cell])
    }
    return undefined
  }
}

const noRows: ReadonlyArray<ReadonlyArray<Cell>> = []

export const compileFamily = (
  family: RecordFamily,
): ((record: Json, place: Place) => RecordCells | Misfit) => {
  const elsewhere = ["product", "sub_family", ...family.children.map(({ field }) => field)]
  const fields = compileFields(family.columns, elsewhere)
  const children = family.children.map((child) => ({
    field: child.field,
    required: child.required,
    items: child.items === "objects" ? compileObjects(child) : compileValues(child),
  }))
  return (record, place) => {
    const own: Array<Cell> = [record["product"] as string, record["sub_family"] as string]
    const trouble = fields(record, own, place)
    if (trouble !== undefined) return trouble
    const childRows: Array<ReadonlyArray<ReadonlyArray<Cell>>> = []
    for (let i = 0; i < children.length; i++) {
      const { field, required, items } = children[i]!
      const list = record[field]
      if (Array.isArray(list)) {
        const rows: Array<ReadonlyArray<Cell>> = []
        const wrong = items(list, rows, { above: place, key: field })
        if (wrong !== undefined) return wrong
        childRows.push(rows)
      } else if ((list === undefined || list === null) && !required) childRows.push(noRows)
      else return { reason: misfitReason("list", list), place: { above: place, key: field } }
    }
    return { own, children: childRows }
  }
}
