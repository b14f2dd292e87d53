/**
 * `current/` and `history/`: what `main` and `history` show, as Parquet. A whole version has a folder of its
 * own below `published/`, and both names lead into it through one link, which is replaced at once. The folder
 * before stays until the next one; files of ended versions, and of tables without news, are linked on. Each
 * folder has a list of what was written: if a file is not that, none is linked on.
 */
import { existsSync, lstatSync, readdirSync, readFileSync, readlinkSync } from "node:fs"
import { dirname, join } from "node:path"
import { Effect, Option, Schema, Struct } from "effect"
import type { Connection } from "../base/DuckDb.ts"
import { identifier, literal } from "../base/DuckDbFailed.ts"
import { sha256Hex } from "../base/Hashes.ts"
import { parquetFolders } from "../jobs/Scalars.ts"
import { memoryLimits, openDatabase } from "./BuildDatabase.ts"
import type { Built, Making } from "./NextDatabase.ts"
import { placeOf, publishedViews } from "./DataDictionary.ts"
import { parquetCells, writeParquet } from "./FileColumns.ts"
import { fileStep, filesBelow, fingerprintAt, makeFoldersOf, markOf } from "./Manifest.ts"
import type { Manifest, ParquetFolder, Store } from "./Manifest.ts"
import { inDatabase } from "./Publisher.ts"
import { keptTables, seenOf, stored } from "./RecordStore.ts"
import type { KeptChild, KeptTable, Relation } from "./RecordStore.ts"
import { consentsTable, documentsTable } from "./SystemTables.ts"

const folderOf = (version: number): string => `published/parquet-v${version}`
const linkName = "published/parquet"
/** Beside both folders, where nobody looks for tables. */
const listName = "files.json"

const ListedFile = Schema.Struct({ bytes: Schema.Int, mark: Schema.String, sha256: Schema.String })
type ListedFile = typeof ListedFile.Type
/** By their paths below the folder of the version. */
const FileList = Schema.Record(Schema.String, ListedFile)
type FileList = typeof FileList.Type
const decodeList = Schema.decodeUnknownOption(Schema.fromJsonString(FileList))

interface Part {
  /** Below the folder of the version. */
  readonly path: string
  readonly sql: string
}

/** The files of a folder, in the order of customers; ended versions from `since` on. */
const partsOf = (
  views: ReadonlyArray<Relation>,
  { version, since, holds }: Pick<ParquetFolder, "version" | "holds"> & { readonly since: number },
): ReadonlyArray<Part> =>
  views.flatMap(({ name, schema, sql, columns }): ReadonlyArray<Part> => {
    // A file cannot tell how old its rows are by now.
    const cells = parquetCells(columns.filter((column) => column.name !== "age_days"))
    const select = (rows: string) => `SELECT ${cells} FROM ${rows} ORDER BY 1, 2, 3, 4`
    const view = `${schema}.${identifier(name)}`
    if (schema === "main" && holds.includes("current"))
      return [{ path: `current/${name}.parquet`, sql: select(view) }]
    if (schema !== "history" || !holds.includes("history")) return []
    return [
      { path: `history/${name}/open.parquet`, sql: select(`${view} WHERE valid_to IS NULL`) },
      {
        path: `history/${name}/ended-v${version}.parquet`,
        sql: select(`(${sql} AND v._until_seq >= ${since})`),
      },
    ]
  })

const isEnded = (path: string): boolean => path.includes("/ended-v")
const tableIn = (path: string): string => path.replace(/\.parquet$/, "").split("/")[1] ?? ""

/** What the folder before has of versions that had ended before, and of tables without news. */
const linkOn = (store: Store, before: ParquetFolder, to: number, quiet: ReadonlySet<string>): FileList => {
  const { files, layout } = store
  const from = join(layout.root, folderOf(before.version))
  const staying = Object.entries(readList(from, before.files) ?? {}).filter(
    ([path]) => isEnded(path) || quiet.has(tableIn(path)),
  )
  for (const [path] of staying) {
    const place = join(layout.root, folderOf(to), path)
    makeFoldersOf(store, place)
    files.link(join(from, path), place)
  }
  return Object.fromEntries(staying)
}

/** Tables of `main` that have no row without one in the table of the same name in `ops`. */
const ofSystem = [consentsTable.name, documentsTable.name]

/**
 * `quiet`: tables whose files are as they were before a run, since nothing in them was read, began or ended;
 * `ended`: those in which something has ended since. A file takes as long without rows as with a few.
 */
const newsSince = Effect.fnUntraced(function* (
  connection: Connection,
  tables: ReadonlyArray<KeptTable>,
  since: number,
) {
  const [first] = yield* connection.rows(
    `SELECT coalesce(min(_reading), 0)::INTEGER AS reading FROM store._readings WHERE seq >= ${since}`,
  )
  const reading = Number(first?.["reading"])
  const newsIn = (name: string, told: string, ended = "false") =>
    `SELECT ${literal(name)} AS name, ${told} AS told, ${ended} AS ended`
  const newsOf = (table: KeptTable, { name }: KeptChild) => {
    const items = name === table.name ? "" : ` JOIN ${stored(name)} USING (_version)`
    const is = (rows: string, where: string) => `EXISTS (FROM ${rows}${items} WHERE ${where})`
    const read = reading === 0 ? "false" : is(seenOf(table.name), `_reading >= ${reading}`)
    const rows = stored(table.name)
    return newsIn(
      name,
      `${read} OR ${is(rows, `_since_seq >= ${since} OR _until_seq >= ${since}`)}`,
      is(rows, `valid_from IS NOT NULL AND _until_seq >= ${since}`),
    )
  }
  const ask = Effect.fnUntraced(function* (parts: ReadonlyArray<string>) {
    const rows = parts.length === 0 ? [] : yield* connection.rows(parts.join(" UNION ALL "))
    return rows.map(({ name, told, ended }) => ({ name: String(name), told, ended }))
  })
  const own = yield* ask([
    ...tables.map((table) => newsOf(table, table)),
    ...ofSystem.map((name) => newsIn(name, `EXISTS (FROM ${placeOf(name)})`)),
  ])
  const told = new Set(own.flatMap((one) => (one.told === true ? [one.name] : [])))
  const lists = yield* ask(
    tables.flatMap((table) =>
      told.has(table.name) ? table.children.map((child) => newsOf(table, child)) : [],
    ),
  )
  for (const one of lists) if (one.told === true) told.add(one.name)
  const all = [...tables, ...tables.flatMap(({ children }) => children)].map(({ name }) => name)
  return {
    quiet: new Set([...all, ...ofSystem].filter((name) => !told.has(name))),
    ended: new Set([...own, ...lists].flatMap((one) => (one.ended === true ? [one.name] : []))),
  }
})

/**
 * What the manifest of the next version says of the two folders, which are there. A run that goes on leaves
 * them, unless a customer is taken out. Where an edit changed versions in their files, the next one writes
 * all anew.
 */
export const parquetOf = Effect.fn("Publishing.parquetOf")(function* (
  store: Store,
  { current, next }: Making,
  { since }: Built,
  isAnew: boolean,
) {
  const { parquet: before } = current
  const holds = store.parquet ?? before?.holds ?? []
  if (holds.length === 0) return undefined
  const isAppended = before?.seq !== undefined && since !== undefined && since > before.seq
  const isOther = isAnew || next.returned !== undefined || current.returned !== undefined
  const isSame = before?.files !== undefined && before.holds.join() === holds.join() && !isOther
  const isLeft = next.interim === true && !isAnew
  const goesOn = isSame && !isLeft && (yield* parquetGaps(store, current, false)).length === 0
  if (isLeft || (goesOn && since === Infinity)) {
    if (before === undefined || isAppended) return before
    return Struct.omit(before, ["seq"]) satisfies ParquetFolder as ParquetFolder
  }
  const { version } = next
  return yield* writeFolder(store, {
    version,
    holds,
    ...(goesOn && isAppended && { before }),
  })
})

/**
 * The folder of a version, with the rows of its database, which is not in place yet, and the ended versions
 * of `before`. One of a version before there was a history has none.
 */
const writeFolder = Effect.fn("Publishing.writeFolder")(function* (
  store: Store,
  { version, holds, before }: Pick<ParquetFolder, "version" | "holds"> & { readonly before?: ParquetFolder },
) {
  const connection = yield* openDatabase(store.layout.build, "read-only", memoryLimits[1])
  const kept = yield* connection.rows("FROM duckdb_schemas() WHERE schema_name = 'store'")
  if (kept.length === 0) return undefined
  yield* fileStep(() => {
    const { files, layout, modes } = store
    files.remove(join(layout.root, folderOf(version)))
    files.makeFolder(dirname(join(layout.root, folderOf(version))), modes.folder)
    files.makeFolder(join(layout.root, folderOf(version)), modes.folder)
  })
  const views = publishedViews(store.families, store.pseudonyms?.policy)
  const since = before?.seq === undefined ? 0 : before.seq + 1
  const { quiet, ended } = yield* newsSince(connection, keptTables(store.families), since)
  const linked = before && (yield* fileStep(() => linkOn(store, before, version, quiet)))
  const list: Record<string, ListedFile> = { ...linked }
  for (const { path, sql } of partsOf(views, { version, since, holds })) {
    if (isEnded(path) ? !ended.has(tableIn(path)) : list[path] !== undefined) continue
    const place = join(store.layout.root, folderOf(version), path)
    yield* writeParquet(store, connection, place, { sql, version })
    list[path] = { ...(yield* fileStep(() => markOf(place))), ...(yield* fingerprintAt(place)) }
  }
  const text = `${JSON.stringify(list, null, 1)}\n`
  yield* fileStep(() => {
    store.files.write(join(store.layout.root, folderOf(version), listName), text, store.modes.file)
    syncFolders(store, version)
  })
  const [row] = yield* connection.rows("SELECT coalesce(max(seq), 0)::INTEGER AS seq FROM store._runs")
  const files = sha256Hex(text)
  return { version, holds, seq: Number(row?.["seq"]), files } satisfies ParquetFolder as ParquetFolder
}, inDatabase)

const syncFolders = ({ files, layout }: Store, version: number): void => {
  const folder = join(layout.root, folderOf(version))
  const folders = new Set(filesBelow(folder).map((path) => dirname(join(folder, path))))
  for (const one of [...folders, folder, dirname(folder)]) files.syncFolder(one)
}

const isLink = (path: string): boolean =>
  lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() === true

/**
 * Whoever copies an output folder may get folders in place of its links. What in `name` is as in a version
 * that is still there goes, and the folder with it; what else somebody put there stays.
 */
const removeCopies = (files: Store["files"], root: string, name: string): void => {
  const folder = join(root, name)
  const published = join(root, dirname(linkName))
  if (lstatSync(folder, { throwIfNoEntry: false })?.isDirectory() !== true) return
  const of = (path: string) => (existsSync(path) ? JSON.stringify(markOf(path)) : undefined)
  const versions = versionFolders(published)
  const copies = filesBelow(folder).filter((path) => {
    const found = of(join(folder, path))
    return versions.some(([version]) => of(join(published, version, name, path)) === found)
  })
  for (const path of copies) files.remove(join(folder, path))
  const left = readdirSync(folder, { recursive: true, withFileTypes: true })
  if (copies.length > 0 && left.every((entry) => entry.isDirectory())) files.remove(folder)
}

/** Leads the names to this folder, or removes them; a folder of that name that somebody made stays. */
export const placeParquet = ({ layout, files }: Pick<Store, "layout" | "files">, next: Manifest): void => {
  const { root } = layout
  const { parquet } = next
  const shared = join(root, linkName)
  if (existsSync(shared) && !isLink(shared)) files.remove(shared)
  if (parquet !== undefined) lead(files, shared, `parquet-v${parquet.version}`)
  for (const kind of parquetFolders) {
    const name = join(root, kind)
    removeCopies(files, root, kind)
    if (parquet?.holds.includes(kind) === true) {
      if (lstatSync(name, { throwIfNoEntry: false }) === undefined || isLink(name))
        lead(files, name, `${linkName}/${kind}`)
    } else if (isLink(name)) files.remove(name)
  }
  if (parquet === undefined && isLink(shared)) files.remove(shared)
}

const lead = (files: Store["files"], name: string, target: string): void => {
  if (isLink(name) && readlinkSync(name) === target) return
  files.remove(`${name}.tmp`)
  files.symlink(target, `${name}.tmp`)
  files.rename(`${name}.tmp`, name)
  files.syncFolder(dirname(name))
}

/** The folders of versions, and the number of each. */
const versionFolders = (published: string): ReadonlyArray<readonly [name: string, version: number]> =>
  (existsSync(published) ? readdirSync(published) : []).flatMap((name) => {
    const version = /^parquet-v(\d+)$/.exec(name)?.[1]
    return version === undefined ? [] : [[name, Number(version)] as const]
  })

/** Removes the folders of all versions but those that stay. */
export const sweepParquet = (
  { layout, files }: Pick<Store, "layout" | "files">,
  stays: (version: number) => boolean,
): void => {
  const published = join(layout.root, dirname(linkName))
  for (const [name, version] of versionFolders(published))
    if (!stays(version)) files.remove(join(published, name))
}

// Whether the folder of a version is what the version wrote.

interface ParquetGap {
  /** As a reader names it: below the output folder. */
  readonly path: string
  /** "lost" of a folder, or of a name that leads to none. */
  readonly state: "lost" | "missing" | "damaged" | "unlisted"
}

/** Undefined if it is not the list that this is the SHA-256 of. */
const readList = (folder: string, sha256: string | undefined): FileList | undefined => {
  const place = join(folder, listName)
  const text = existsSync(place) ? readFileSync(place, "utf8") : ""
  return sha256Hex(text) === sha256 ? Option.getOrUndefined(decodeList(text)) : undefined
}

/** What cannot be read is not what was written. */
const isAsWritten = Effect.fnUntraced(function* (place: string, file: ListedFile, thoroughly: boolean) {
  const found = yield* Effect.option(fileStep(() => markOf(place)))
  if (Option.isNone(found) || found.value.bytes !== file.bytes || found.value.mark !== file.mark) return false
  if (!thoroughly) return true
  const whole = yield* Effect.option(fingerprintAt(place))
  return Option.isSome(whole) && whole.value.sha256 === file.sha256
})

/**
 * Names at which something else stands, so that nobody finds the files of the version there. A copy of the
 * output folder may have all of them in a folder in place of its link.
 */
export const takenNames = Effect.fn("Publishing.takenNames")(function* (
  { layout: { root } }: Pick<Store, "layout">,
  { parquet }: Manifest,
) {
  const taken: Array<string> = []
  if (parquet === undefined) return taken
  const list = yield* fileStep(() => readList(join(root, folderOf(parquet.version)), parquet.files))
  for (const name of parquet.holds) {
    if (!existsSync(join(root, name)) || isLink(join(root, name))) continue
    const files = Object.entries(list ?? {}).filter(([path]) => path.startsWith(`${name}/`))
    const written = yield* Effect.forEach(files, ([path, file]) => isAsWritten(join(root, path), file, false))
    if (written.includes(false)) taken.push(name)
  }
  return taken
})

/**
 * Names that lead nowhere, and files that are not what the version wrote, or that it did not write. In a
 * large file, a bit that flipped is only found `thoroughly`. A folder of an earlier version of the program
 * has no list.
 */
export const parquetGaps = Effect.fn("Publishing.parquetGaps")(function* (
  { layout: { root } }: Pick<Store, "layout">,
  { parquet }: Manifest,
  thoroughly: boolean,
) {
  if (parquet === undefined) return []
  const name = folderOf(parquet.version)
  const folder = join(root, name)
  const gaps = [name, ...parquet.holds]
    .filter((path) => !existsSync(join(root, path)))
    .map((path): ParquetGap => ({ path, state: "lost" }))
  if (parquet.files === undefined || !existsSync(folder)) return gaps
  const stateOf = (path: string) => (existsSync(join(folder, path)) ? "damaged" : "missing")
  const list = Option.getOrUndefined(yield* Effect.option(fileStep(() => readList(folder, parquet.files))))
  if (list === undefined) return [...gaps, { path: `${name}/${listName}`, state: stateOf(listName) }]
  for (const [path, file] of Object.entries(list))
    if (!(yield* isAsWritten(join(folder, path), file, thoroughly))) gaps.push({ path, state: stateOf(path) })
  for (const path of yield* fileStep(() => filesBelow(folder)))
    if (path.endsWith(".parquet") && list[path] === undefined) gaps.push({ path, state: "unlisted" })
  return gaps
})
