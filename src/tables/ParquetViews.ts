/**
 * `current/` and `history/`: what `main` and `history` show, as Parquet, for those who do not use DuckDB. A
 * whole version has a folder of its own below `published/`, and both names lead into it through one link,
 * which is replaced at once: whoever resolves a folder before reading sees one version. The folder before
 * stays until the next one; versions of records that have ended stand in files that are linked on from
 * folder to folder.
 */
import { existsSync, lstatSync, readdirSync, readlinkSync } from "node:fs"
import { dirname, join } from "node:path"
import { Effect } from "effect"
import type { Connection } from "../base/DuckDb.ts"
import { identifier, literal } from "../base/DuckDbFailed.ts"
import { recordTables } from "../records/RecordTables.ts"
import { memoryLimits, openDatabase } from "./BuildDatabase.ts"
import type { Built } from "./ContinueDatabase.ts"
import { publishedViews } from "./DataDictionary.ts"
import { fileStep, filesBelow } from "./Manifest.ts"
import type { Manifest, ParquetFolder } from "./Manifest.ts"
import { databaseFailed, PublishFailed } from "./Publisher.ts"
import type { Relation } from "./RecordStore.ts"
import type { Store } from "./Store.ts"

const folderOf = (version: number): string => `published/parquet-v${version}`
const linkName = "published/parquet"
const kinds = ["current", "history"] as const

/** What a file has: all columns but the age of its rows, which a file cannot tell; JSON as text. */
const cellsOf = ({ columns }: Relation): string =>
  columns
    .flatMap(({ name, type }) =>
      name === "age_days"
        ? []
        : [
            type === "JSON"
              ? `CAST(${identifier(name)} AS VARCHAR) AS ${identifier(name)}`
              : identifier(name),
          ],
    )
    .join(", ")

interface Part {
  /** Below the folder of the version. */
  readonly path: string
  readonly sql: string
}

/** The files of a folder, in the order of customers; ended versions from `since` on. */
const partsOf = (
  relations: ReadonlyArray<Relation>,
  {
    version,
    since,
    holds,
  }: { readonly version: number; readonly since: number } & Pick<ParquetFolder, "holds">,
): ReadonlyArray<Part> =>
  relations.flatMap((relation): ReadonlyArray<Part> => {
    const select = (rows: string) => `SELECT ${cellsOf(relation)} FROM (${rows}) ORDER BY 1, 2, 3, 4`
    const { name, schema, sql } = relation
    if (schema === "main" && holds.includes("current"))
      return [{ path: `current/${name}.parquet`, sql: select(sql) }]
    if (schema !== "history" || !holds.includes("history")) return []
    return [
      { path: `history/${name}/open.parquet`, sql: select(`${sql} AND v._until_seq IS NULL`) },
      {
        path: `history/${name}/ended-v${version}.parquet`,
        sql: select(`${sql} AND v._until_seq >= ${since}`),
      },
    ]
  })

const write = Effect.fnUntraced(function* (
  store: Store,
  connection: Connection,
  { path, sql }: Part,
  version: number,
) {
  const { files, layout, modes, toolVersion } = store
  const place = join(layout.root, folderOf(version), path)
  yield* fileStep(() => files.makeFolder(dirname(place), modes.folder))
  const rows = yield* connection.run(
    `COPY (${sql}) TO ${literal(place)} (FORMAT parquet, COMPRESSION zstd,
      KV_METADATA {version: '${version}', tool: ${literal(toolVersion)}})`,
  )
  yield* Effect.mapError(files.settle(place, modes.file), ({ message }) => new PublishFailed({ message }))
  return rows
})

/** Files of versions that had ended before, in the folder before. */
const linkEnded = (store: Store, from: number, to: number): void => {
  const { files, layout, modes } = store
  const [before, now] = [folderOf(from), folderOf(to)].map((one) => join(layout.root, one, "history"))
  if (before === undefined || now === undefined) return
  for (const path of filesBelow(before)) {
    if (!path.includes("/ended-v")) continue
    files.makeFolder(dirname(join(now, path)), modes.folder)
    files.link(join(before, path), join(now, path))
  }
}

/** Whether anything that the folder shows may differ in the next version. */
const differs = (store: Store, current: Manifest, next: Manifest): boolean => {
  const runs = new Set([...Object.keys(current.runs), ...Object.keys(next.runs)])
  const records = new Set(recordTables(store.families).map(({ spec }) => spec.name))
  const pathsOf = (manifest: Manifest, run_id: string) =>
    (manifest.runs[run_id]?.files ?? [])
      .flatMap(({ table, path }) => (records.has(table) ? [path] : []))
      .join()
  return [...runs].some(
    (run_id) =>
      current.runs[run_id]?.version !== next.runs[run_id]?.version &&
      (current.runs[run_id] === undefined || pathsOf(current, run_id) !== pathsOf(next, run_id)),
  )
}

interface Making {
  readonly current: Manifest
  readonly next: Manifest
  readonly built: Built
  readonly isAnew: boolean
}

/**
 * What the manifest of the next version says of the two folders, which are there; only a whole version writes
 * them. An edit that changed versions of records that are in its files has them all written by the next one.
 */
export const parquetOf = Effect.fn("Publishing.parquetOf")(function* (
  store: Store,
  { current, next, built, isAnew }: Making,
) {
  const { parquet: before } = current
  const holds = store.parquet ?? before?.holds ?? []
  if (holds.length === 0) return undefined
  const { since } = built
  const isAppended = before?.seq !== undefined && since !== undefined && since > before.seq
  const isOther = isAnew || next.returned !== undefined || current.returned !== undefined
  const isSame = before !== undefined && before.holds.join() === holds.join()
  if (next.interim === true || (isSame && !isOther && !differs(store, current, next))) {
    if (before === undefined || isAppended) return before
    return { version: before.version, holds: before.holds } satisfies ParquetFolder as ParquetFolder
  }
  const { version } = next
  const goesOn = isSame && !isOther && isAppended
  return yield* writeFolder(store, store.layout.build, { version, holds, ...(goesOn && { before }) })
})

/** The folder of a version, with the rows of this database; it has the ended versions of `before` too. */
export const writeFolder = Effect.fn("Publishing.writeFolder")(
  function* (
    store: Store,
    database: string,
    {
      version,
      holds,
      before,
    }: Pick<ParquetFolder, "version" | "holds"> & { readonly before?: ParquetFolder },
  ) {
    yield* fileStep(() => {
      const { files, layout, modes } = store
      files.remove(join(layout.root, folderOf(version)))
      files.makeFolder(dirname(join(layout.root, folderOf(version))), modes.folder)
      files.makeFolder(join(layout.root, folderOf(version)), modes.folder)
      if (before !== undefined) linkEnded(store, before.version, version)
    })
    const connection = yield* openDatabase(database, "read-only", memoryLimits[1])
    const since = before?.seq === undefined ? 0 : before.seq + 1
    const views = publishedViews(store.families, store.pseudonyms?.policy)
    for (const part of partsOf(views, { version, since, holds })) {
      const rows = yield* write(store, connection, part, version)
      const isEmpty = rows === 0 && part.path.includes("/ended-v")
      if (isEmpty)
        yield* fileStep(() => store.files.remove(join(store.layout.root, folderOf(version), part.path)))
    }
    yield* fileStep(() => syncFolders(store, version))
    const [row] = yield* connection.rows("SELECT coalesce(max(seq), 0)::INTEGER AS seq FROM store._runs")
    return { version, holds, seq: Number(row?.["seq"]) } satisfies ParquetFolder as ParquetFolder
  },
  Effect.scoped,
  Effect.catchTag("DuckDbFailed", (failure) => Effect.fail(databaseFailed(failure))),
)

const syncFolders = ({ files, layout }: Store, version: number): void => {
  const folder = join(layout.root, folderOf(version))
  const folders = new Set(filesBelow(folder).map((path) => dirname(join(folder, path))))
  for (const one of [...folders, folder, dirname(folder)]) files.syncFolder(one)
}

const isLink = (path: string): boolean =>
  lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() === true

/** Leads the names to this folder, or removes them; a folder of that name that somebody made stays. */
export const placeParquet = ({ layout, files }: Pick<Store, "layout" | "files">, next: Manifest): void => {
  const { root } = layout
  const { parquet } = next
  if (parquet !== undefined) lead(files, join(root, linkName), `parquet-v${parquet.version}`)
  for (const kind of kinds) {
    const name = join(root, kind)
    if (parquet?.holds.includes(kind) === true) {
      if (lstatSync(name, { throwIfNoEntry: false }) === undefined || isLink(name))
        lead(files, name, `${linkName}/${kind}`)
    } else if (isLink(name)) files.remove(name)
  }
  if (parquet === undefined && isLink(join(root, linkName))) files.remove(join(root, linkName))
}

const lead = (files: Store["files"], name: string, target: string): void => {
  if (isLink(name) && readlinkSync(name) === target) return
  files.remove(`${name}.tmp`)
  files.symlink(target, `${name}.tmp`)
  files.rename(`${name}.tmp`, name)
  files.syncFolder(dirname(name))
}

/** Removes the folders of other versions. */
export const sweepParquet = (
  { layout, files }: Pick<Store, "layout" | "files">,
  stays: ReadonlyArray<number | undefined>,
): void => {
  const published = join(layout.root, dirname(linkName))
  const names = existsSync(published) ? readdirSync(published) : []
  const named = new Set(stays.flatMap((version) => (version === undefined ? [] : [`parquet-v${version}`])))
  for (const name of names)
    if (/^parquet-v\d+$/.test(name) && !named.has(name)) files.remove(join(published, name))
}

/** Folders that no version names: of one that was not finished. */
export const clearParquet = (
  store: Pick<Store, "layout" | "files">,
  { version, parquet }: Manifest,
): void => {
  const published = join(store.layout.root, dirname(linkName))
  const names = existsSync(published) ? readdirSync(published) : []
  const older = names.flatMap((name) => {
    const number = Number(/^parquet-v(\d+)$/.exec(name)?.[1])
    return number <= (parquet?.version ?? version) ? [number] : []
  })
  sweepParquet(store, older)
}

/** The folder of a version that is not there, or that its names do not lead to. */
export const lostParquet = (
  { layout: { root } }: Pick<Store, "layout">,
  { parquet }: Manifest,
): ReadonlyArray<string> =>
  parquet === undefined
    ? []
    : [folderOf(parquet.version), ...parquet.holds].filter((name) => !existsSync(join(root, name)))
