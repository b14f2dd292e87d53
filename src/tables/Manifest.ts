/**
 * What is published: the version and, per run, its Parquet files. The manifest decides: a file in `tables/`
 * that it does not list was left by a crash, and the database is built from those that it lists.
 */
import { closeSync, existsSync, fstatSync, openSync, readFileSync, readSync, readdirSync } from "node:fs"
import { join, dirname } from "node:path"
import { Effect, Option, Schema } from "effect"
import { dayMs, isoDay, wordsOf } from "../base/Text.ts"
import { beginSha256, fingerprintOf } from "../base/Hashes.ts"
import { parquetFolders, type SecretReference } from "../jobs/Scalars.ts"
import { PublishFailed } from "./Publisher.ts"
import { PseudonymPolicy, type PseudonymKey } from "./Treatments.ts"
import type { DurableFiles, modesOf } from "../base/DurableFile.ts"
import type { RecordFamily } from "../records/RecordSchema.ts"
import type { SchemasInForce } from "../records/SchemasInForce.ts"

const ManifestFile = Schema.Struct({
  table: Schema.String,
  /** Relative to the output folder. */
  path: Schema.String,
  /** Those of the run. */
  rows: Schema.Int,
  /** Rows of the whole file, like its size and hash, if several runs share it. */
  file_rows: Schema.optionalKey(Schema.Int),
  bytes: Schema.Int,
  sha256: Schema.String,
})
export type ManifestFile = typeof ManifestFile.Type

/** The database file of a version, and what it was made with. */
const BuiltDatabase = Schema.Struct({
  bytes: Schema.Int,
  /** Its size when it was last built of all files. */
  built_bytes: Schema.Int,
  /** What the file is known by (`markOf`); absent in manifests of older versions. */
  mark: Schema.optionalKey(Schema.String),
  /** Hash of the program's version and of the definitions of all tables and views. */
  made_by: Schema.String,
})

/** The folders `current/` and `history/` for those who read Parquet. */
const ParquetFolder = Schema.Struct({
  /** The version whose rows they have. */
  version: Schema.Int,
  holds: Schema.Array(Schema.Literals(parquetFolders)),
  /** Of the newest run in them; absent if what they have of ended versions is written anew by the next. */
  seq: Schema.optionalKey(Schema.Int),
  /** SHA-256 of the list of its files; absent if an earlier version of the program wrote them. */
  files: Schema.optionalKey(Schema.String),
})
export type ParquetFolder = typeof ParquetFolder.Type

const SchemaVersions = Schema.optionalKey(Schema.Record(Schema.String, Schema.Int))

export const Manifest = Schema.Struct({
  version: Schema.Int,
  /** Version of each record table's schema below `schemas/`; absent in manifests of older versions. */
  schemas: SchemaVersions,
  /** By name, of each file below `schemas/` that any version has named; absent in older manifests. */
  schema_files: Schema.optionalKey(Schema.Record(Schema.String, Schema.String)),
  /**
   * True when the version takes the place of the one before, which is not kept: it only adds the outcome of
   * deletions, or a customer was removed from it, or its rows are in other files.
   */
  amends: Schema.Boolean,
  /** It was published while a run went on: it is not kept once another version takes its place. */
  interim: Schema.optionalKey(Schema.Literal(true)),
  /** Of a rollback: whose tables it has, and the version that it replaced, which the next continues from. */
  returned: Schema.optionalKey(Schema.Struct({ to: Schema.Int, from: Schema.Int })),
  /**
   * The next version continues this database if it is still the same file. Absent if it lacks rows, or if it
   * is not known what it has: the next one is then built from all files.
   */
  database: Schema.optionalKey(BuiltDatabase),
  /** Absent if no job asks for them. */
  parquet: Schema.optionalKey(ParquetFolder),
  /** What stands in place of the customers, in every row of every run; absent if the rows name them. */
  pseudonyms: Schema.optionalKey(PseudonymPolicy),
  runs: Schema.Record(
    Schema.String,
    Schema.Struct({
      run_date: Schema.String,
      /** The version in which its rows were last derived, whatever became of the files since. */
      version: Schema.Int,
      /** The run was not over: only those of its tasks are here that were. */
      interim: Schema.optionalKey(Schema.Literal(true)),
      /** Its rows could not be derived with the pseudonyms of the version: it has none. */
      left_out: Schema.optionalKey(Schema.Literal(true)),
      /** Those with which the run's records were derived. */
      schemas: SchemaVersions,
      files: Schema.Array(ManifestFile),
    }),
  ),
})
export type Manifest = typeof Manifest.Type

export const nothingPublished: Manifest = { version: 0, amends: false, runs: {} }

const decode = Schema.decodeUnknownOption(Schema.fromJsonString(Manifest))

/** By their texts, that in force and the next: a publication reads each of them several times. */
const known = new Map<string, Manifest | undefined>()
const knownMax = 2

/** Undefined if there is no file, or if it is not a manifest. */
export const readManifest = (path: string): Manifest | undefined => {
  if (!existsSync(path)) return undefined
  const text = readFileSync(path, "utf8")
  if (known.has(text)) return known.get(text)
  const decoded = Option.getOrUndefined(decode(text))
  if (known.size === knownMax) known.clear()
  known.set(text, decoded)
  return decoded
}

/** What is published; nothing if there is no manifest. */
export const publishedIn = ({ layout }: { readonly layout: Layout }) =>
  fileStep(() => readManifest(layout.manifest) ?? nothingPublished)

/** As runs are called; any other name below `landing/` is not a run's. */
const runName = /^[a-z0-9-]+\.\d{4}-\d{2}-\d{2}(?:\.\d+)?$/

/**
 * Runs that are published or landed here: a ledger that is read afterwards knows them all, unless it is an
 * older copy.
 */
export const runsHere = ({ root }: Pick<Layout, "root">, manifest: Manifest | undefined) => {
  const landing = join(root, "landing")
  const landed = existsSync(landing) ? readdirSync(landing).filter((name) => runName.test(name)) : []
  return [...new Set([...Object.keys(manifest?.runs ?? {}), ...landed])].toSorted()
}

export const manifestText = (manifest: Manifest): string => `${JSON.stringify(manifest, null, 1)}\n`

export const withFiles = (
  manifest: Manifest,
  filesIn: (run_id: string, files: ReadonlyArray<ManifestFile>) => ReadonlyArray<ManifestFile>,
): Manifest => {
  const runs = Object.entries(manifest.runs)
  const changed = runs.map(([run_id, run]) => [run_id, { ...run, files: filesIn(run_id, run.files) }])
  return { ...manifest, runs: Object.fromEntries(changed) }
}

/** Each file once, with all of its rows. */
export const filesOf = (manifest: Manifest): ReadonlyArray<ManifestFile> => {
  const byPath = new Map<string, ManifestFile>()
  for (const { files } of Object.values(manifest.runs))
    for (const file of files) byPath.set(file.path, { ...file, rows: file.file_rows ?? file.rows })
  return [...byPath.values()]
}

// How the files of tables are named: after their run, or after their month if several runs share one.

const freePath = (
  table: string,
  [days, whose]: readonly [string, string],
  version: number,
  taken: Set<string>,
): string => {
  for (let part = 1; ; part += 1) {
    const ending = part === 1 ? "" : `-${part}`
    const path = `tables/${table}/run_date=${days}/${whose}-v${version}${ending}.parquet`
    if (taken.has(path)) continue
    taken.add(path)
    return path
  }
}

/** All files of a table of a run have one version's number: a lost manifest can be read off them. */
export const runPath = (
  { table, run_id, run_date }: { readonly table: string; readonly run_id: string; readonly run_date: string },
  version: number,
  taken: Set<string>,
): string => freePath(table, [run_date, run_id], version, taken)

export const monthOf = (run_date: string): string => run_date.slice(0, "YYYY-MM".length)

/** When the month is over, in UTC. */
export const endOf = (month: string): Date => {
  const [year = 0, number = 0] = month.split("-").map(Number)
  return new Date(Date.UTC(year, number, 1))
}

/**
 * A glob for `run_date=*` finds it, but with two equals signs it is no Hive partition: DuckDB then takes
 * `run_date` from the rows of all files. As a partition it could have only one date.
 */
export const monthPath = (
  { table, month }: { readonly table: string; readonly month: string },
  version: number,
  taken: Set<string>,
): string => {
  const last = isoDay(endOf(month).getTime() - dayMs)
  return freePath(table, [`${month}-01=${last}`, month], version, taken)
}

interface PathSays {
  readonly table: string
  readonly version: number
  /** Undefined of a file that several runs share: its rows say whose they are. */
  readonly own: { readonly run_id: string; readonly run_date: string } | undefined
}

/** What the name of a file says; undefined if it is none of these. */
export const readPath = (path: string): PathSays | undefined => {
  const pattern =
    /^tables\/(\w+)\/run_date=(\d{4}-\d\d-\d\d)(=[\d-]+)?\/([a-z0-9][a-z0-9.-]*)-v(\d+)(-\d+)?\.parquet$/
  const [, table, run_date = "", until, run_id = "", version] = pattern.exec(path) ?? []
  if (table === undefined) return undefined
  return { table, version: Number(version), own: until === undefined ? { run_id, run_date } : undefined }
}

export const layoutOf = (root: string) => ({
  root,
  tables: join(root, "tables"),
  manifest: join(root, "tables/manifest.json"),
  /** The version that is being put into place; if it exists, the next publication finishes it first. */
  next: join(root, "tables/manifest.next.json"),
  /** Whom `nightjar forget` is removing; it exists only until the removal is finished. */
  forgetting: join(root, "forgetting.json"),
  /** Where the key of the pseudonyms is, for commands that have no job. */
  pseudonyms: join(root, "pseudonyms.json"),
  /** The record schemas of everything published, each text once. */
  schemas: join(root, "schemas"),
  database: join(root, "nightjar.duckdb"),
  build: join(root, "nightjar.duckdb.build"),
  previous: join(root, "published/previous"),
  previousDatabase: join(root, "published/previous/nightjar.duckdb"),
})
export type Layout = ReturnType<typeof layoutOf>

// What publishing does with files besides writing them: reading, listing what is below a folder, and
// reporting what the machine refused.

/** Files below a folder, relative to it; none if there is no folder. */
export const filesBelow = (folder: string): ReadonlyArray<string> =>
  existsSync(folder)
    ? readdirSync(folder, { recursive: true, withFileTypes: true })
        .filter((entry) => !entry.isDirectory() && !entry.isSymbolicLink())
        .map((entry) => `${entry.parentPath}/${entry.name}`.slice(folder.length + 1))
        .toSorted()
    : []

/** A DuckDB file begins with its own header and the two that checkpoints write in turn. */
const headBytes = 12_288
/** Each block after them begins with the checksum of the rest of it; older files have larger ones. */
const blockBytes = 65_536
const checksumBytes = 8

/**
 * What a database file is known by: its size, and the SHA-256 of its headers and of the checksums of all
 * blocks, which whatever DuckDB writes changes. A bit that flipped within a block does not: DuckDB refuses it
 * once it is read. Of other files it is a sample.
 */
export const markOf = (path: string) => {
  const hash = beginSha256()
  const piece = Buffer.allocUnsafe(headBytes)
  const file = openSync(path, "r")
  const take = (length: number, from: number) =>
    hash.update(piece.subarray(0, readSync(file, piece, 0, length, from)))
  try {
    const bytes = fstatSync(file).size
    take(headBytes, 0)
    for (let from = headBytes; from < bytes; from += blockBytes) take(checksumBytes, from)
    return { bytes, mark: hash.digest("hex") }
  } finally {
    closeSync(file)
  }
}

/**
 * Whether this is another file than the one of which the manifest says this; false if it is not known. Nobody
 * else writes into it: a log beside it is of another program, and changes what readers see.
 */
export const isOtherDatabase = (path: string, database: Manifest["database"]): boolean => {
  if (database?.mark === undefined) return false
  if (existsSync(`${path}.wal`)) return true
  const { bytes, mark } = markOf(path)
  return bytes !== database.bytes || mark !== database.mark
}

/** Whether the file is there and is the one of which the manifest says this. */
export const isThatDatabase = (path: string, database: Manifest["database"]): boolean =>
  database?.mark !== undefined && existsSync(path) && !isOtherDatabase(path, database)

/** One step with files; a refusal by the machine is reported without a stack trace. */
export const fileStep = <A>(step: () => A): Effect.Effect<A, PublishFailed> =>
  Effect.try({
    try: step,
    catch: (cause) => new PublishFailed({ message: wordsOf(cause) }),
  })

/** Size and SHA-256 of a published file. */
export const fingerprintAt = (path: string) =>
  Effect.mapError(fingerprintOf(path), (message) => new PublishFailed({ message }))

// The paths, modes and file writes of one output folder, shared by the code that publishes, verifies or
// repairs.

export interface Store {
  readonly layout: Layout
  readonly modes: ReturnType<typeof modesOf>
  readonly files: DurableFiles
  readonly families: ReadonlyArray<RecordFamily>
  readonly schemas: Pick<SchemasInForce, "texts" | "gone">
  readonly toolVersion: string
  /** Which folders of Parquet a version has; as before if it is not given. */
  readonly parquet?: ParquetFolder["holds"]
  /** Earlier versions that stay restorable after a publication. */
  readonly versionsKept: number
  /** Absent if the tables name the customers. */
  readonly pseudonyms?: Pseudonyms
}

/** What the tables have in place of the customers; the key only where rows are derived or looked for. */
export interface Pseudonyms {
  readonly policy: PseudonymPolicy
  readonly key?: PseudonymKey
  /** Where the key is, if a job has just said so. */
  readonly reference?: SecretReference
}

/** The name of a file that is written but not published yet; no glob for Parquet files matches it. */
export const temporary = (path: string): string => `${path}.tmp`

/** Where a file is now, below the output folder: it may be new, or only kept versions have it. */
export const placeIn =
  ({ layout: { root } }: Pick<Store, "layout">) =>
  ({ path }: { readonly path: string }): string =>
    [path, temporary(path), `published/previous/${path}`].find((place) => existsSync(join(root, place))) ??
    path

/** The same as paths of the machine. */
export const placesOf = (
  store: Pick<Store, "layout">,
  files: ReadonlyArray<ManifestFile>,
): ReadonlyArray<string> => files.map(placeIn(store)).map((place) => join(store.layout.root, place))

export interface Gap {
  readonly path: string
  readonly state: "missing" | "damaged"
}

/**
 * Of files of a version, wherever they are now. `thoroughly`: every file is read and hashed, which takes
 * longer the more history there is.
 */
export const gapsOf = Effect.fnUntraced(function* (
  store: Pick<Store, "layout">,
  published: ReadonlyArray<ManifestFile>,
  thoroughly = true,
  standsAt: (file: ManifestFile) => string = placeIn(store),
) {
  const gaps: Array<Gap> = []
  for (const file of published) {
    const { path, sha256 } = file
    const stands = join(store.layout.root, standsAt(file))
    if (!existsSync(stands)) gaps.push({ path, state: "missing" })
    else if (thoroughly && (yield* fingerprintAt(stands)).sha256 !== sha256)
      gaps.push({ path, state: "damaged" })
  }
  return gaps
})

/** The folder that a file is to be in and the one around it, which may have been made with other modes. */
export const makeFoldersOf = ({ files, modes }: Pick<Store, "files" | "modes">, path: string): void => {
  files.makeFolder(dirname(dirname(path)), modes.folder)
  files.makeFolder(dirname(path), modes.folder)
}
