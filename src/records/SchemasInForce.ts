/**
 * Which record schemas are in force: the package's, replaced or completed by the job's own, then those that
 * the output folder keeps of families whose file is gone, so that none loses its table, then our own
 * readings. What is published is read with the schemas that it was published with.
 */
import { dirname, join } from "node:path"
import { Effect, FileSystem } from "effect"
import { isNumberType } from "./ColumnData.ts"
import { readRecordSchemas, refuseClashes, tablesOf } from "./RecordSchema.ts"
import type { ReadSchema, RecordColumn, RecordFamily } from "./RecordSchema.ts"

/** `<table>.v<N>.yaml`: the N-th text that a table's schema had. */
const keptPattern = /^([a-z][a-z0-9_]*)\.v([1-9]\d{0,5})\.yaml$/

export const keptName = (table: string, version: number): string => `${table}.v${version}.yaml`

/** Table and version of a kept file's name. */
export const keptOf = (name: string): { readonly table: string; readonly version: number } | undefined => {
  const [, table, version] = keptPattern.exec(name) ?? []
  return table === undefined ? undefined : { table, version: Number(version) }
}

export interface SchemasInForce {
  readonly families: ReadonlyArray<RecordFamily>
  /** The files as they are written, by table. */
  readonly texts: ReadonlyMap<string, string>
  /** Tables whose file is in no folder any more; the kept one is used. */
  readonly gone: ReadonlyArray<string>
}

export interface SchemaFolders {
  readonly package: string
  /** The job's own, if it has any. */
  readonly own: string | undefined
  /** The output folder's, which need not exist yet. */
  readonly kept: string
}

interface Kept extends ReadSchema {
  readonly version: number
}

/** What a manifest says of the kept texts. */
export interface NamedSchemas {
  /** The version in force, by table; absent if it was published before schemas were kept. */
  readonly schemas?: Readonly<Record<string, number>>
  /** The hash of each kept file. */
  readonly schema_files?: Readonly<Record<string, string>>
}

/** The schemas of a folder that need not be there. */
const readIfThere = Effect.fnUntraced(function* (...of: Parameters<typeof readRecordSchemas>) {
  const files = yield* FileSystem.FileSystem
  const isThere = yield* Effect.orElseSucceed(files.exists(of[0]), () => false)
  return isThere ? yield* readRecordSchemas(...of) : []
})

const readKept = Effect.fnUntraced(function* (folder: string, { schema_files }: NamedSchemas) {
  const read = yield* readIfThere(folder, (name) => keptOf(name) !== undefined, schema_files)
  return read.map((each): Kept => ({ ...each, version: keptOf(each.name)?.version ?? 0 }))
})

/** A column of texts that an earlier schema declared as numbers also takes numbers, as they are written. */
const widened = (
  columns: ReadonlyArray<RecordColumn>,
  earlier: ReadonlyArray<ReadonlyArray<RecordColumn>>,
): ReadonlyArray<RecordColumn> =>
  columns.map((column) =>
    column.type === "VARCHAR" &&
    earlier.some((then) => then.some(({ name, type }) => name === column.name && isNumberType(type)))
      ? { ...column, takesNumbers: true }
      : column,
  )

const withHistory = (family: RecordFamily, kept: ReadonlyArray<Kept>): RecordFamily => {
  const own = kept.filter((each) => each.family.table === family.table)
  const earlier = own.map((each) => each.family)
  return {
    ...family,
    kept: Object.fromEntries(own.map((each) => [each.version, each.family])),
    columns: widened(
      family.columns,
      earlier.map(({ columns }) => columns),
    ),
    children: family.children.map((child) => ({
      ...child,
      columns: widened(
        child.columns,
        earlier.flatMap(({ children }) =>
          children.filter(({ table }) => table === child.table).map(({ columns }) => columns),
        ),
      ),
    })),
  }
}

/** Without what belongs to another family by now; its table stays, even if no record goes to it any more. */
const besides = (family: RecordFamily, others: ReadonlyArray<RecordFamily>): RecordFamily => {
  const tables = new Set(others.flatMap(tablesOf))
  const claimed = new Set(
    others.flatMap((other) => other.subFamilies.map((name) => `${other.product}/${name}`)),
  )
  const isTaken = (name: string): boolean => claimed.has(`${family.product}/${name}`)
  const former = [...(family.former ?? []), ...family.subFamilies.filter(isTaken)]
  return {
    ...family,
    subFamilies: family.subFamilies.filter((name) => !isTaken(name)),
    ...(former.length === 0 ? {} : { former }),
    children: family.children.filter(({ table }) => !tables.has(table)),
  }
}

/** Of each table the text in force; of one that has none by now, the one with the highest number. */
const newestOf = (kept: ReadonlyArray<Kept>, { schemas = {} }: NamedSchemas): ReadonlyArray<Kept> => {
  const newest = new Map<string, Kept>()
  const rank = ({ family: { table }, version }: Kept): number =>
    version === schemas[table] ? Number.POSITIVE_INFINITY : version
  for (const each of kept) {
    const known = newest.get(each.family.table)
    if (known === undefined || rank(known) < rank(each)) newest.set(each.family.table, each)
  }
  return [...newest.values()]
}

/** A family's claim to its table; those before it have claimed what they have. */
const isFree = ({ family }: ReadSchema, before: ReadonlyArray<RecordFamily>): boolean =>
  !before.flatMap(tablesOf).includes(family.table)

/** `ordered`: each has what those before it leave; of two for one table, the first. */
const inForce = (
  ordered: ReadonlyArray<ReadSchema>,
  kept: ReadonlyArray<Kept>,
  isGone: (schema: ReadSchema) => boolean,
): SchemasInForce => {
  const families: Array<RecordFamily> = []
  const texts = new Map<string, string>()
  const gone: Array<string> = []
  for (const schema of ordered) {
    if (!isFree(schema, families)) continue
    const { family, text } = schema
    families.push(besides(family, families))
    texts.set(family.table, text)
    if (isGone(schema)) gone.push(family.table)
  }
  return { families: families.map((family) => withHistory(family, kept)), texts, gone }
}

/** A job's own schemas; its folder need not have any. */
export const readOwnSchemas = Effect.fn("Records.readOwnSchemas")(function* (folder: string) {
  // A file that is passed over in silence would be worse than one that is refused.
  const own = yield* readIfThere(folder, (name) => /\.ya?ml$/.test(name))
  yield* refuseClashes(own)
  return own
})

/**
 * Which of our own readings a job has: the tables that it names, or those that one of its features feeds;
 * `features` is undefined if any may be retrieved.
 */
export type Readings =
  | { readonly _tag: "Named"; readonly tables: ReadonlyArray<string> }
  | { readonly _tag: "Fed"; readonly features: ReadonlySet<string> | undefined }

export const noReadings: Readings = { _tag: "Named", tables: [] }

/** They are in `readings`, beside the program's record schemas; a test's program need not have any. */
const readReadings = (ofPackage: string) => readIfThere(join(dirname(ofPackage), "readings"))

/** What others leave of each; one of which nothing is left is not used. */
const leftOf = (
  readings: ReadonlyArray<ReadSchema>,
  others: ReadonlyArray<ReadSchema>,
): ReadonlyArray<ReadSchema> => {
  const before = others.map(({ family }) => family)
  return readings
    .filter((reading) => isFree(reading, before))
    .map((reading) => ({ ...reading, family: besides(reading.family, before) }))
    .filter(({ family }) => family.subFamilies.length > 0)
}

/**
 * The schemas that the program and the job have; a file for the same table replaces the program's, and a
 * reading has the records that no other schema claims.
 */
export const listedSchemas = Effect.fn("Records.listedSchemas")(function* (
  folders: Pick<SchemaFolders, "package" | "own">,
  readings: Readings = noReadings,
) {
  const ofPackage = yield* readRecordSchemas(folders.package)
  const own = folders.own === undefined ? [] : yield* readOwnSchemas(folders.own)
  const replaced = new Set(own.map(({ family }) => family.table))
  const listed = [...ofPackage.filter(({ family }) => !replaced.has(family.table)), ...own].toSorted((a, b) =>
    a.name < b.name ? -1 : 1,
  )
  yield* refuseClashes(listed)
  const all = yield* readReadings(folders.package)
  const isAsked = ({ family: { table, features } }: ReadSchema): boolean =>
    readings._tag === "Named"
      ? readings.tables.includes(table)
      : readings.features === undefined || features.some((code) => readings.features?.has(code))
  const asked = leftOf(all.filter(isAsked), listed)
  const isNamed = readings._tag === "Named"
  return {
    schemas: isNamed ? [...listed, ...asked] : listed,
    /** Nobody has named these: what the output folder has of anybody else comes before them. */
    readings: isNamed ? [] : asked,
    /** Tables that the program has a reading for, whichever of them a job has. */
    readable: new Set(all.map(({ family }) => family.table)),
  }
})
export type ListedSchemas = Effect.Success<ReturnType<typeof listedSchemas>>

/**
 * Those of a job, with what the output folder has by now: another job may have kept more of them meanwhile. A
 * reading that this job does not ask for is not gone. `named`: by the newest version of the tables.
 */
export const schemasWithKept = Effect.fn("Records.schemasWithKept")(function* (
  { schemas, readings, readable }: ListedSchemas,
  keptFolder: string,
  named: NamedSchemas,
) {
  const kept = yield* readKept(keptFolder, named)
  const newest = newestOf(kept, named)
  const isReading = ({ family }: ReadSchema): boolean => family.assumed === true
  const claimed = schemas.map(({ family }) => family)
  const others = newest.filter((one) => !isReading(one) && isFree(one, claimed))
  const rest = leftOf(readings, [...schemas, ...others])
  const isGone = (one: ReadSchema): boolean =>
    newest.includes(one as Kept) && !(isReading(one) && readable.has(one.family.table))
  return inForce([...schemas, ...others, ...rest, ...newest.filter(isReading)], kept, isGone)
})

/** Those that come with the program, whichever of them a job has. */
export const readShipped = Effect.fn("Records.readShipped")(function* (ofPackage: string) {
  return [...(yield* readRecordSchemas(ofPackage)), ...(yield* readReadings(ofPackage))]
})

/** As the manifest names them; they claim records in the order in which they did then. */
export const schemasOfTables = Effect.fn("Records.schemasOfTables")(function* (
  folders: SchemaFolders,
  named: NamedSchemas,
) {
  const { schemas: versions } = named
  const kept = yield* readKept(folders.kept, named)
  if (versions === undefined) {
    const ofPackage = yield* readRecordSchemas(folders.package)
    const isKept = (one: ReadSchema): boolean => kept.includes(one as Kept)
    return inForce([...ofPackage, ...newestOf(kept, named)], kept, isKept)
  }
  const tables = Object.keys(versions)
  const published = kept.filter(({ family, version }) => versions[family.table] === version)
  const listed = published.toSorted((a, b) => tables.indexOf(a.family.table) - tables.indexOf(b.family.table))
  if (listed.length === tables.length) return inForce(listed, kept, () => false)
  // A kept file is lost: another text of the same table is better than none.
  const shipped = yield* readShipped(folders.package)
  const rest = shipped.filter(({ family }) => kept.every((each) => each.family.table !== family.table))
  const placed = new Set(listed.map(({ family }) => family.table))
  const others = [...newestOf(kept, named), ...rest].filter(
    ({ family: { table } }) => Object.hasOwn(versions, table) && !placed.has(table),
  )
  return inForce([...listed, ...others], kept, (one) => others.includes(one))
})
