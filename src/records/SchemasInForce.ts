/**
 * Which record schemas are in force: those of the package, replaced or completed by the job's own, and those
 * that the output folder keeps of families whose file is gone, so that no family loses its table. Tables
 * that are already published are read with the schemas they were published with.
 */
import { Effect, FileSystem } from "effect"
import { decimalShape } from "./ColumnData.ts"
import type { ColumnType } from "./ColumnData.ts"
import { refuseClashes, readRecordSchemas } from "./LoadRecordSchemas.ts"
import type { ReadSchema } from "./LoadRecordSchemas.ts"
import type { RecordColumn, RecordFamily } from "./RecordSchema.ts"

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

const readKept = Effect.fnUntraced(function* (folder: string) {
  const files = yield* FileSystem.FileSystem
  const isThere = yield* Effect.orElseSucceed(files.exists(folder), () => false)
  if (!isThere) return []
  const read = yield* readRecordSchemas(folder, (name) => keptOf(name) !== undefined)
  return read.map((each): Kept => ({ ...each, version: keptOf(each.name)?.version ?? 0 }))
})

const isNumber = (type: ColumnType): boolean =>
  type === "INTEGER" || type === "BIGINT" || type === "DOUBLE" || decimalShape(type) !== undefined

/** A column of texts that an earlier schema declared as numbers also takes numbers, as they are written. */
const widened = (
  columns: ReadonlyArray<RecordColumn>,
  earlier: ReadonlyArray<ReadonlyArray<RecordColumn>>,
): ReadonlyArray<RecordColumn> =>
  columns.map((column) =>
    column.type === "VARCHAR" &&
    earlier.some((then) => then.some(({ name, type }) => name === column.name && isNumber(type)))
      ? { ...column, takesNumbers: true }
      : column,
  )

const withHistory = (family: RecordFamily, kept: ReadonlyArray<Kept>): RecordFamily => {
  const earlier = kept.map((each) => each.family).filter(({ table }) => table === family.table)
  return {
    ...family,
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
  return {
    ...family,
    subFamilies: family.subFamilies.filter((name) => !claimed.has(`${family.product}/${name}`)),
    children: family.children.filter(({ table }) => !tables.has(table)),
  }
}

const tablesOf = (family: RecordFamily): ReadonlyArray<string> => [
  family.table,
  ...family.children.map(({ table }) => table),
]

const newestOf = (kept: ReadonlyArray<Kept>): ReadonlyArray<Kept> => {
  const newest = new Map<string, Kept>()
  for (const each of kept) {
    const { table } = each.family
    if ((newest.get(table)?.version ?? 0) < each.version) newest.set(table, each)
  }
  return [...newest.values()]
}

const inForce = (
  listed: ReadonlyArray<ReadSchema>,
  kept: ReadonlyArray<Kept>,
  fallback: ReadonlyArray<ReadSchema>,
): SchemasInForce => {
  const claimed = new Set(listed.flatMap(({ family }) => tablesOf(family)))
  const gone = fallback.filter(({ family }) => !claimed.has(family.table))
  const families = listed.map(({ family }) => family)
  for (const { family } of gone) families.push(besides(family, families))
  return {
    families: families.map((family) => withHistory(family, kept)),
    texts: new Map([...listed, ...gone].map(({ family, text }) => [family.table, text])),
    gone: gone.map(({ family }) => family.table),
  }
}

/** A job's own schemas; its folder need not have any. */
export const readOwnSchemas = Effect.fn("Records.readOwnSchemas")(function* (folder: string) {
  const files = yield* FileSystem.FileSystem
  const isThere = yield* Effect.orElseSucceed(files.exists(folder), () => false)
  if (!isThere) return []
  // A file that is passed over in silence would be worse than one that is refused.
  const own = yield* readRecordSchemas(folder, (name) => /\.ya?ml$/.test(name))
  yield* refuseClashes(own)
  return own
})

/** The schemas that the program and the job have; a file for the same table replaces the program's. */
export const listedSchemas = Effect.fn("Records.listedSchemas")(function* (
  folders: Pick<SchemaFolders, "package" | "own">,
) {
  const ofPackage = yield* readRecordSchemas(folders.package)
  const own = folders.own === undefined ? [] : yield* readOwnSchemas(folders.own)
  const replaced = new Set(own.map(({ family }) => family.table))
  const listed = [...ofPackage.filter(({ family }) => !replaced.has(family.table)), ...own].toSorted((a, b) =>
    a.name < b.name ? -1 : 1,
  )
  yield* refuseClashes(listed)
  return listed
})

/**
 * Those of a job, with what the output folder has by now: another job may have kept more of them meanwhile.
 */
export const schemasWithKept = Effect.fn("Records.schemasWithKept")(function* (
  listed: ReadonlyArray<ReadSchema>,
  keptFolder: string,
) {
  const kept = yield* readKept(keptFolder)
  return inForce(listed, kept, newestOf(kept))
})

/**
 * Those of the tables that are published: `versions` names each table's, or nothing if they were published
 * before schemas were kept.
 */
export const schemasOfTables = Effect.fn("Records.schemasOfTables")(function* (
  folders: SchemaFolders,
  versions: Readonly<Record<string, number>> | undefined,
) {
  const kept = yield* readKept(folders.kept)
  const listed = kept.filter(({ family, version }) => versions?.[family.table] === version)
  if (versions !== undefined && listed.length === Object.keys(versions).length)
    return inForce(listed, kept, [])
  const ofPackage = yield* readRecordSchemas(folders.package)
  if (versions === undefined) return inForce(ofPackage, kept, newestOf(kept))
  // A kept file is lost: another text of the same table is better than none.
  const rest = ofPackage.filter(({ family }) => kept.every((each) => each.family.table !== family.table))
  const named = [...newestOf(kept), ...rest].filter(({ family }) => Object.hasOwn(versions, family.table))
  return inForce(listed, kept, named)
})
