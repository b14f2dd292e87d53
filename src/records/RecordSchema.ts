/**
 * What a record family looks like: one YAML file in `schemas/records`, or in `schemas/readings` if the
 * reference does not show it. A file with any error is refused with file, line and column before a run
 * begins.
 */
import { Effect, FileSystem, Result, Schema } from "effect"
import { Problem, readTextFile, topOf } from "../base/DurableFile.ts"
import { sha256Hex } from "../base/Hashes.ts"
import { jsonSchemaOf, type Finding } from "../base/Schemas.ts"
import { decodeYaml, problemLines, type YamlKind } from "../base/YamlText.ts"
import { decimalShape, plainColumnTypes, type ColumnType } from "./ColumnData.ts"

const isColumnType = (text: string): text is ColumnType =>
  plainColumnTypes.some((type) => type === text) || decimalShape(text) !== undefined

// Names become columns, and fields are read from objects that inherit some, so `constructor` is not allowed.
const isName = (text: string): boolean => /^[a-z][a-z0-9_]{0,62}$/.test(text) && !(text in {})

const TypeOfColumn = Schema.String.check(
  Schema.makeFilter((text: string) =>
    isColumnType(text) ? undefined : `expected one of ${plainColumnTypes.join(", ")} or DECIMAL(p,s)`,
  ),
)
const Name = Schema.String.check(
  Schema.makeFilter((text: string) => (isName(text) ? undefined : "expected a name in snake_case")),
)
const Text = Schema.NonEmptyString

/** What happens to a record that does not fit; `refuses` says how they differ. */
const Mode = Schema.Literals(["evolve", "discard_value", "quarantine", "freeze"])
export type Mode = typeof Mode.Type

/**
 * What a mode refuses a record for, and whether it counts fields that the schema does not have. Whatever the
 * mode, a record is refused if a time of fetching or the business key cannot be read, or if a child is no
 * list.
 */
export const refuses: Readonly<
  Record<Mode, { readonly misfits: boolean; readonly unknownFields: boolean; readonly notesUnknown: boolean }>
> = {
  evolve: { misfits: false, unknownFields: false, notesUnknown: false },
  discard_value: { misfits: false, unknownFields: false, notesUnknown: true },
  quarantine: { misfits: true, unknownFields: false, notesUnknown: false },
  freeze: { misfits: true, unknownFields: true, notesUnknown: false },
}

const required = <S extends Schema.Top>(schema: S, description: string) =>
  schema.pipe(Schema.annotateKey<S>({ description }))
const optional = <S extends Schema.Top>(schema: S, description: string) =>
  Schema.optionalKey(schema).pipe(Schema.annotateKey<Schema.optionalKey<S>>({ description }))

const columnFields = {
  type: required(TypeOfColumn, `${plainColumnTypes.join(", ")} or DECIMAL(p,s).`),
  comment: required(Text, "What the column holds, for whoever reads the tables."),
}
const Column = Schema.Struct({
  ...columnFields,
  required: optional(Schema.Boolean, "The field must be present and not null; if it is not, it is a misfit."),
})
const Columns = Schema.Record(Schema.String, Column)

const Child = Schema.Struct({
  comment: required(Text, "What the table holds."),
  required: optional(Schema.Boolean, "The field must be present, even if only as an empty list."),
  table: optional(Name, "If the table does not have the field's name."),
  columns: optional(Columns, "For a list of objects: their fields."),
  item: optional(
    Schema.Struct({ name: required(Name, "Name of the column."), ...columnFields }),
    "For a list of plain values.",
  ),
})

/** A file in `schemas/records` as it is written. */
export const RecordSchemaFile = Schema.Struct({
  table: required(Name, "Name of the table."),
  comment: required(Text, "What the table holds."),
  product: required(Text, "The `product` of the records."),
  sub_families: required(
    Schema.Array(Text).check(Schema.isMinLength(1)),
    "Their `sub_family`: one of these.",
  ),
  features: required(
    Schema.Array(Text).check(Schema.isMinLength(1)),
    "Feature codes that feed the table: its rows are current while one of them is asked for.",
  ),
  key: optional(
    Schema.Array(Text),
    "Columns that tell the records of one customer, engine and sub_family apart. Default: all their content.",
  ),
  fetched: optional(
    Schema.Array(Text),
    "Fields that are times of fetching, with a column or without: no content. Default: fetch_date.",
  ),
  mode: optional(Mode, "What happens to a record that does not fit. Default: evolve."),
  assumed: optional(
    Schema.Boolean,
    "Nobody has promised that the records look like this: any other schema of them comes before it.",
  ),
  columns: required(Columns, "The record's own fields, each with a column of its name."),
  children: optional(
    Schema.Record(Schema.String, Child),
    "Lists in the record that have tables of their own.",
  ),
}).annotate({
  title: "Nightjar record schema",
  description: "Turns the records of one family into a table.",
})
export type RecordSchemaFile = typeof RecordSchemaFile.Type

export interface RecordColumn {
  readonly name: string
  readonly type: ColumnType
  readonly comment: string
  readonly required: boolean
  /** A time of fetching, or a part of the business key: a record without it cannot be placed in time. */
  readonly identifies: boolean
  /** A text that an earlier schema declared as a number: numbers are kept as they are written. */
  readonly takesNumbers?: boolean
}

/** A list in a record that has its own table; its items are objects, or plain values of one column. */
export interface RecordChild {
  readonly field: string
  readonly table: string
  readonly comment: string
  readonly required: boolean
  readonly items: "objects" | "values"
  readonly columns: ReadonlyArray<RecordColumn>
  /** As its family. */
  readonly assumed?: true
}

type Defaulted = Required<Pick<RecordSchemaFile, "key" | "fetched" | "mode">>

export interface RecordFamily
  extends Pick<RecordSchemaFile, "table" | "comment" | "product" | "features">, Defaulted {
  readonly subFamilies: ReadonlyArray<string>
  /** What another family has by now: rows of earlier runs may still be of it. */
  readonly former?: ReadonlyArray<string>
  readonly columns: ReadonlyArray<RecordColumn>
  readonly children: ReadonlyArray<RecordChild>
  /** A reading of records that the reference does not show: it gives way to any other schema. */
  readonly assumed?: true
  /** What the kept texts of the same table describe, by their numbers. */
  readonly kept?: Readonly<Record<number, RecordFamily>>
}

/** Its own, and those of its lists. */
export const tablesOf = ({ table, children }: RecordFamily): ReadonlyArray<string> => [
  table,
  ...children.map((list) => list.table),
]

/** Every problem at once, in the order of the files. */
export class RecordSchemaInvalid extends Schema.TaggedError<RecordSchemaInvalid>()("RecordSchemaInvalid", {
  problems: Schema.Array(Problem),
}) {
  override readonly message = problemLines(this.problems)
}

// Column names that the tables, or the views of what is true now and of history, use themselves.
const lineageNames = [
  "run_id",
  "run_date",
  "task_id",
  "execution_id",
  "session_id",
  "customer_id",
  "engine_reference",
  "record_id",
  "content_id",
  "position",
  "misfits",
  "extra",
  "product",
  "sub_family",
  "valid_from",
  "valid_to",
  "ended_by",
  "since_sequence",
  "as_of",
  "age_days",
]

/** Tables, views and macros of every version, with or without families. */
export const programTables: ReadonlyArray<string> = [
  "attachments",
  "changes",
  "consent_documents",
  "consents",
  "coverage",
  "customers",
  "deletions",
  "documents",
  "engine_descriptions",
  "engines",
  "execution_errors",
  "execution_features",
  "execution_messages",
  "executions",
  "features",
  "other_records",
  "products_count",
  "rejected_records",
  "runs",
  "sessions",
  "tasks",
]

/** Whether a field can have a column or a table of its name. */
export const isColumnName = (name: string): boolean => isName(name) && !lineageNames.includes(name)

const nameTroubles = (file: RecordSchemaFile): ReadonlyArray<Finding> => {
  const troubles: Array<Finding> = []
  const tell = (path: Finding["path"], message: string) => troubles.push({ path, at: "value", message })
  const children = Object.entries(file.children ?? {})
  const check = (names: ReadonlyArray<string>, path: ReadonlyArray<string>): void => {
    for (const name of names) {
      if (!isName(name)) tell([...path, name], "expected a name in snake_case")
      if (lineageNames.includes(name)) {
        tell([...path, name], `${name} is a column that every record table has`)
      }
    }
  }
  const checkTable = (name: string, path: ReadonlyArray<string>): void => {
    if (programTables.includes(name))
      tell(path, `${name} is a table of every output folder; choose another name`)
  }
  checkTable(file.table, ["table"])
  check(Object.keys(file.columns), ["columns"])
  check(
    children.map(([field]) => field),
    ["children"],
  )
  for (const [at, name] of (file.key ?? []).entries())
    if (!Object.hasOwn(file.columns, name)) tell(["key", at], `${name} is no column of this table`)
  for (const [field, child] of children) {
    const path = ["children", field]
    checkTable(child.table ?? field, child.table === undefined ? path : [...path, "table"])
    if (Object.hasOwn(file.columns, field)) {
      tell(path, `${field} is already a column`)
    }
    if ((child.columns === undefined) === (child.item === undefined)) {
      tell(path, "expected either columns or item")
    }
    check(Object.keys(child.columns ?? {}), [...path, "columns"])
    check(child.item === undefined ? [] : [child.item.name], [...path, "item"])
  }
  return troubles
}

/** Times of fetching, if the schema says nothing else. */
export const defaultFetched: ReadonlyArray<string> = ["fetch_date"]

const columnsOf = (
  columns: RecordSchemaFile["columns"],
  identifying: ReadonlyArray<string> = [],
): ReadonlyArray<RecordColumn> =>
  Object.entries(columns).map(([name, { type, comment, required }]) => ({
    name,
    type: type as ColumnType,
    comment,
    required: required === true,
    identifies: identifying.includes(name),
  }))

const familyOf = ({
  sub_families,
  key = [],
  fetched = defaultFetched,
  mode = "evolve",
  assumed = false,
  columns,
  children = {},
  ...named
}: RecordSchemaFile): RecordFamily => {
  const reading = assumed ? { assumed } : {}
  return {
    ...named,
    ...reading,
    key,
    fetched,
    mode,
    subFamilies: sub_families,
    columns: columnsOf(columns, [...key, ...fetched]),
    children: Object.entries(children).map(([field, child]) => ({
      ...reading,
      field,
      table: child.table ?? field,
      comment: child.comment,
      required: child.required === true,
      items: child.item === undefined ? "objects" : "values",
      columns: columnsOf(
        child.item === undefined
          ? (child.columns ?? {})
          : { [child.item.name]: { ...child.item, required: true } },
      ),
    })),
  }
}

const recordSchema: YamlKind<RecordSchemaFile> = {
  named: "the record schema",
  schema: RecordSchemaFile,
  check: nameTroubles,
}

/** Each publication reads all files again: of a text that is as it was, the family is. */
const parsed = new Map<string, RecordFamily>()
const parsedMax = 256

/** One file's text -> its family, or every error in it. */
export const parseRecordSchema = (
  file: string,
  text: string,
): Effect.Effect<RecordFamily, RecordSchemaInvalid> =>
  Effect.suspend(() => {
    const known = parsed.get(text)
    if (known !== undefined) return Effect.succeed(known)
    return Effect.fromResult(
      Result.mapBoth(decodeYaml(recordSchema, file, text), {
        onSuccess: (decoded) => {
          const family = familyOf(decoded)
          if (parsed.size === parsedMax) parsed.clear()
          parsed.set(text, family)
          return family
        },
        onFailure: (problems) => new RecordSchemaInvalid({ problems }),
      }),
    )
  })

/** For editors. */
export const recordJsonSchema = () => jsonSchemaOf(RecordSchemaFile)

// The record schemas of a folder, in the order of their file names. Two files that are in force together
// must not claim the same table or `sub_family`: every record belongs to exactly one family.

/** Far larger than any schema of records. */
const bytesMax = 1_000_000

/** A schema's file as it is written, and the family that it describes. */
export interface ReadSchema {
  readonly path: string
  /** The file's name in its folder. */
  readonly name: string
  readonly text: string
  readonly family: RecordFamily
}

/** In the order of file names. A file that is not what `hashes` says is damaged, and left out. */
export const readRecordSchemas = Effect.fn("Records.readSchemas")(function* (
  folder: string,
  isSchema: (name: string) => boolean = (name) => name.endsWith(".yaml"),
  hashes: Readonly<Record<string, string>> = {},
) {
  const files = yield* FileSystem.FileSystem
  const unreadable = (path: string) => (cause: { readonly message: string }) =>
    new RecordSchemaInvalid({ problems: [{ ...topOf(path), message: `cannot be read: ${cause.message}` }] })
  const names = (yield* files.readDirectory(folder).pipe(Effect.mapError(unreadable(folder))))
    .filter(isSchema)
    .sort()
  const read: Array<ReadSchema> = []
  for (const name of names) {
    const path = `${folder}/${name}`
    const found = yield* Effect.result(readTextFile(path, bytesMax))
    const hash = hashes[name]
    if (hash !== undefined && (found._tag === "Failure" || sha256Hex(found.success) !== hash)) continue
    if (found._tag === "Failure") return yield* unreadable(path)({ message: found.failure })
    const text = found.success
    read.push({ path, name, text, family: yield* parseRecordSchema(path, text) })
  }
  return read as ReadonlyArray<ReadSchema>
})

/** Fails with every clash between schemas that are to be in force together. */
export const refuseClashes = (
  schemas: ReadonlyArray<ReadSchema>,
): Effect.Effect<void, RecordSchemaInvalid> => {
  const owners = new Map<string, string>()
  const problems: Array<Problem> = []
  for (const { path, family } of schemas) {
    const { product, subFamilies } = family
    const tables = tablesOf(family).map((table) => `table ${table}`)
    for (const what of [...tables, ...subFamilies.map((name) => `${product} / ${name}`)]) {
      const owner = owners.get(what)
      if (owner === undefined) owners.set(what, path)
      else problems.push({ ...topOf(path), message: `${what} belongs to ${owner} already` })
    }
  }
  return problems.length === 0 ? Effect.void : Effect.fail(new RecordSchemaInvalid({ problems }))
}
