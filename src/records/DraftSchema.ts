/**
 * A record schema drafted from what was seen of the records of a family that has none: it takes each of them
 * without a misfit.
 */
import { Effect } from "effect"
import { Document, isMap, visit } from "yaml"
import { counted, listed } from "../base/Text.ts"
import type { ColumnType } from "./ColumnData.ts"
import type { Json } from "./ExactNumber.ts"
import { isColumnName, parseRecordSchema, programTables } from "./RecordSchema.ts"
import type { RecordSchemaFile } from "./RecordSchema.ts"
import type { SeenField, SeenObject } from "./SeenFields.ts"

type Columns = RecordSchemaFile["columns"]
type Child = NonNullable<RecordSchemaFile["children"]>[string]

export interface Draft {
  readonly file: RecordSchemaFile
  /** For whoever completes it; each becomes a comment of its own. */
  readonly notes: ReadonlyArray<string>
}

const commentOf = (seen: SeenField, count: number, noun: string): string => {
  const of = counted(count, noun)
  const words = seen.words === undefined ? "" : `; values: ${seen.words.join(", ")}`
  return seen.present === 0 ? `Always null in ${of}.` : `In ${seen.present} of ${of}${words}.`
}

type Fields = ReadonlyArray<readonly [name: string, seen: SeenField]>

/** Those that can be columns. */
const fieldsIn = ({ fields }: SeenObject): Fields => [...fields].filter(([name]) => isColumnName(name))

const isInAll = ({ present }: SeenField, count: number) => (present === count ? { required: true } : {})

/** `count`: how many objects there were. */
const columnsOf = (fields: Fields, count: number, noun: string): Columns =>
  Object.fromEntries(
    fields.map(([name, seen]) => [
      name,
      { type: seen.type, ...isInAll(seen, count), comment: commentOf(seen, count, noun) },
    ]),
  )

/** Fields that cannot be columns. The two names of a record's kind have columns already. */
const notesOn = (
  where: string,
  object: SeenObject,
  known: ReadonlyArray<string> = [],
): ReadonlyArray<string> => {
  const others = [...object.fields.keys()].filter((name) => !isColumnName(name) && !known.includes(name))
  const names = listed(
    others.map((name) => JSON.stringify(name.slice(0, 60))),
    10,
  )
  return [
    ...(others.length === 0
      ? []
      : [`${where}: in \`extra\`, because their names cannot be columns: ${names}.`]),
    ...(object.hasMore ? [`${where}: there are more fields than these; the others stay in \`extra\`.`] : []),
  ]
}

/** A list with a table of its own, if every value is one. */
const childOf = (table: string, field: string, seen: SeenField, records: number): Child | undefined => {
  const comment = `${field} of ${table}, one row each.`
  const named = { table: `${table}_${field}`, comment, ...isInAll(seen, records) }
  if (!isColumnName(named.table) || programTables.includes(named.table)) return undefined
  const objects = seen.itemObjects
  if (objects !== undefined) {
    const names = fieldsIn(objects)
    // A table of nothing but its rows' positions says less than the list itself.
    return names.length === 0 ? undefined : { ...named, columns: columnsOf(names, objects.count, "item") }
  }
  const values = seen.itemValues
  if (values === undefined) return undefined
  const item = { name: "value", type: values.type, comment: commentOf(values, values.present, "item") }
  return { ...named, item }
}

const childNotes = (children: Readonly<Record<string, Child>>, object: SeenObject): ReadonlyArray<string> =>
  Object.keys(children).flatMap((field) => {
    const items = object.fields.get(field)?.itemObjects
    return items === undefined ? [] : notesOn(field, items)
  })

interface Described {
  readonly table: string
  readonly product: string
  readonly sub_families: ReadonlyArray<string>
  readonly features: ReadonlyArray<string>
}

/** For records of a family without a schema. */
export const draftSchema = (described: Described, object: SeenObject, keys: KeyCandidates): Draft => {
  const { table, product } = described
  const fields = fieldsIn(object)
  const children: Record<string, Child> = {}
  for (const [name, seen] of fields) {
    const child = childOf(table, name, seen, object.count)
    if (child !== undefined) children[name] = child
  }
  const own = fields.filter(([name]) => !Object.hasOwn(children, name))
  const columns = columnsOf(own, object.count, "record")
  const key = keys.best(
    Object.entries(columns).map(([name, { type, required }]) => ({
      name,
      type: type as ColumnType,
      required: required === true,
    })),
  )
  const proposed = "key is proposed: no two records of one answer share it. Check that it stays over nights."
  return {
    file: {
      table,
      comment: `${product}, one row each.`,
      product,
      sub_families: described.sub_families,
      features: described.features,
      ...(key === undefined ? {} : { key: [key] }),
      columns,
      ...(Object.keys(children).length === 0 ? {} : { children }),
    },
    notes: [
      ...(key === undefined ? [] : [proposed]),
      ...notesOn("Fields", object, ["product", "sub_family"]),
      ...childNotes(children, object),
    ],
  }
}

// Which column could tell the records of one answer apart: a plain value that every record has and that no
// two records of one answer share. Answers are looked at one after the other, so only one is in memory.

/** Names that usually stay with what they name. */
const namesOfKeys = /(?:^|_)(?:id|iban|number|reference|code|pan|year|period)$/
/** A long text is no key. */
const textMax = 80

export class KeyCandidates {
  #group: string | undefined
  #size = 0
  readonly #seen = new Map<string, Set<string>>()
  readonly #repeated = new Set<string>()
  /** Whether any answer had two records to tell apart. */
  #compared = false

  /** `group` names the answer and the kind of record; records of one group come together. */
  add(group: string, record: Json): void {
    if (group !== this.#group) {
      this.#group = group
      this.#size = 0
      this.#seen.clear()
    }
    this.#size++
    if (this.#size > 1) this.#compared = true
    for (const [name, value] of Object.entries(record)) {
      if (this.#repeated.has(name)) continue
      if ((typeof value !== "string" || value.length > textMax) && typeof value !== "number") {
        this.#repeated.add(name)
        continue
      }
      const values = this.#seen.get(name) ?? new Set()
      if (values.has(String(value))) this.#repeated.add(name)
      values.add(String(value))
      this.#seen.set(name, values)
    }
  }

  /** The best of these columns, or nothing where no answer had two records, or no column differs. */
  best(
    columns: ReadonlyArray<{ readonly name: string; readonly type: ColumnType; readonly required: boolean }>,
  ): string | undefined {
    if (!this.#compared) return undefined
    const able = columns.filter(
      ({ name, type, required }) =>
        required && ["VARCHAR", "INTEGER", "BIGINT"].includes(type) && !this.#repeated.has(name),
    )
    return (able.find(({ name }) => namesOfKeys.test(name)) ?? able[0])?.name
  }
}

// A drafted record schema as the YAML that people complete: its notes as comments before it, a line per
// column. What it says is read back with the schemas' own parser before anybody sees it.

/** A defect if the parser refuses it: then the draft is of no use. */
export const draftText = Effect.fn("DraftText.of")(function* ({ file, notes }: Draft, about: string) {
  const document = new Document(file)
  document.commentBefore = [about, ...notes].map((note) => ` ${note}`).join("\n")
  // Names, columns and items are short enough for a line each; a table of its own is not.
  visit(document, {
    Seq: (_, list) => {
      list.flow = true
    },
    Map: (_, map) => {
      map.flow = !map.items.some(({ value }) => isMap(value))
    },
  })
  const text = document.toString({ lineWidth: 0, flowCollectionPadding: true })
  yield* Effect.orDie(parseRecordSchema(`${file.table}.yaml`, text))
  return text
})
