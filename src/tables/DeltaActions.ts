/**
 * What a table's Delta log says, as pure functions (PROTOCOL.md of delta-io/delta): its actions, the state
 * that they add up to, and the actions of the next commit, which are what differs between the state and the
 * manifest. So versions that were never logged, a rollback, a removed customer or files that were put
 * together need no case of their own. It says dates and numbers of rows, never a value of a record.
 */
import { Schema } from "effect"
import { stableUuid } from "../base/Hashes.ts"
import type { ColumnType, TableSpec } from "../records/Columns.ts"
import type { Manifest } from "./Manifest.ts"

/** Neither deletion vectors nor column mapping nor times without a zone: every reader has these versions. */
const Protocol = Schema.Struct({ minReaderVersion: Schema.Literal(1), minWriterVersion: Schema.Literal(2) })
const noSettings = Schema.Record(Schema.String, Schema.Never)

const MetaData = Schema.Struct({
  id: Schema.String,
  name: Schema.String,
  description: Schema.String,
  format: Schema.Struct({ provider: Schema.Literal("parquet"), options: noSettings }),
  schemaString: Schema.String,
  partitionColumns: Schema.Array(Schema.Never),
  configuration: noSettings,
  createdTime: Schema.Int,
})
type MetaData = typeof MetaData.Type

const AddedFile = Schema.Struct({
  /** Relative to the table's folder, as a URI. */
  path: Schema.String,
  partitionValues: noSettings,
  size: Schema.Int,
  modificationTime: Schema.Int,
  dataChange: Schema.Boolean,
  stats: Schema.String,
})
type AddedFile = typeof AddedFile.Type

const RemovedFile = Schema.Struct({
  path: Schema.String,
  deletionTimestamp: Schema.Int,
  dataChange: Schema.Boolean,
})

const CommitInfo = Schema.Struct({
  timestamp: Schema.Int,
  operation: Schema.String,
  operationParameters: noSettings,
  engineInfo: Schema.String,
  userMetadata: Schema.String,
})

const Action = Schema.Union([
  Schema.Struct({ commitInfo: CommitInfo }),
  Schema.Struct({ protocol: Protocol }),
  Schema.Struct({ metaData: MetaData }),
  Schema.Struct({ add: AddedFile }),
  Schema.Struct({ remove: RemovedFile }),
])
export type Action = typeof Action.Type

const decode = Schema.decodeUnknownOption(Schema.Array(Action), { onExcessProperty: "error" })

/** Undefined unless every one is an action as it is written here: nobody else writes to these logs. */
export const actionsIn = (actions: ReadonlyArray<unknown>): ReadonlyArray<Action> | undefined => {
  const decoded = decode(actions)
  return decoded._tag === "Some" ? decoded.value : undefined
}

/** What a log says of a table. */
export interface DeltaState {
  readonly version: number
  readonly metaData: MetaData
  readonly files: ReadonlyMap<string, AddedFile>
}

/** The state after these actions, whose last commit is `version`; undefined if they describe no table. */
export const replay = (version: number, actions: Iterable<Action>): DeltaState | undefined => {
  let metaData: MetaData | undefined
  let hasProtocol = false
  const files = new Map<string, AddedFile>()
  for (const action of actions) {
    if ("protocol" in action) hasProtocol = true
    else if ("metaData" in action) metaData = action.metaData
    else if ("add" in action) files.set(action.add.path, action.add)
    else if ("remove" in action) files.delete(action.remove.path)
  }
  return metaData === undefined || !hasProtocol ? undefined : { version, metaData, files }
}

/** What a checkpoint of the state holds: it takes the place of every commit up to its version. */
export const checkpointOf = ({ metaData, files }: DeltaState): ReadonlyArray<Action> => [
  { protocol },
  { metaData },
  ...[...files.values()].map((add) => ({ add })),
]

const protocol: typeof Protocol.Type = { minReaderVersion: 1, minWriterVersion: 2 }

/** A file of a table that a log has to name. */
export interface DeltaFile {
  readonly table: string
  /** Relative to the output folder. */
  readonly path: string
  readonly bytes: number
  /** Undefined if it is listed for several runs: then it is not said how many it holds of all. */
  readonly rows: number | undefined
  /** Of the runs whose rows it holds. */
  readonly firstDate: string
  readonly lastDate: string
}

/**
 * The files of each table, in the order of the manifest. A run that is published while it goes on is not in
 * the logs before it is over: its versions are not kept either, and each of them would be a commit.
 */
export const filesForLogs = ({ runs }: Manifest): ReadonlyMap<string, ReadonlyArray<DeltaFile>> => {
  const files = new Map<string, DeltaFile>()
  for (const { run_date, interim, files: own } of Object.values(runs)) {
    if (interim === true) continue
    for (const { table, path, rows, bytes } of own) {
      const known = files.get(path)
      const { firstDate = run_date, lastDate = run_date } = known ?? {}
      files.set(path, {
        table,
        path,
        bytes,
        rows: known === undefined ? rows : undefined,
        firstDate: run_date < firstDate ? run_date : firstDate,
        lastDate: run_date > lastDate ? run_date : lastDate,
      })
    }
  }
  return Map.groupBy(files.values(), ({ table }) => table)
}

const uriOf = ({ table, path }: DeltaFile): string => encodeURI(path.slice(`tables/${table}/`.length))

/**
 * So that readers open only files of the dates that they were asked for. The date is a column in the files,
 * not a partition column: a file may hold several dates.
 */
const statsOf = ({ rows, firstDate, lastDate }: DeltaFile): string =>
  JSON.stringify({
    ...(rows === undefined ? {} : { numRecords: rows }),
    minValues: { run_date: firstDate },
    maxValues: { run_date: lastDate },
    nullCount: { run_date: 0 },
  })

const decimalPattern = /^DECIMAL\((\d+),(\d+)\)$/

/** The type as Spark writes it; every type that a column may have has one. JSON is text in Parquet. */
const deltaType = (type: ColumnType): unknown => {
  switch (type) {
    case "VARCHAR":
    case "JSON":
      return "string"
    case "BOOLEAN":
      return "boolean"
    case "INTEGER":
      return "integer"
    case "BIGINT":
      return "long"
    case "DOUBLE":
      return "double"
    case "DATE":
      return "date"
    case "TIMESTAMPTZ":
      return "timestamp"
    case "VARCHAR[]":
      return { type: "array", elementType: "string", containsNull: true }
    default:
      return type.replace(decimalPattern, "decimal($1,$2)")
  }
}

/** Every column may be null: files of earlier versions lack the columns that were added since. */
const schemaStringOf = ({ columns }: TableSpec): string =>
  JSON.stringify({
    type: "struct",
    fields: columns.map(({ name, type, comment }) => ({
      name,
      type: deltaType(type),
      nullable: true,
      metadata: { comment },
    })),
  })

const decodeFields = Schema.decodeUnknownOption(
  Schema.fromJsonString(
    Schema.Struct({ fields: Schema.Array(Schema.Struct({ name: Schema.String, type: Schema.Unknown })) }),
  ),
)

/** The log has these columns with these types: every file that it names can be read as they are. */
export const hasColumnsOf = ({ metaData }: DeltaState, { columns }: TableSpec): boolean => {
  const decoded = decodeFields(metaData.schemaString)
  const wanted = columns.map(({ name, type }) => ({ name, type: deltaType(type) }))
  return decoded._tag === "Some" && JSON.stringify(decoded.value.fields) === JSON.stringify(wanted)
}

/** A namespace of ours, for ids of tables. */
const tableIds = "5b6c8f0e-4f0b-4a57-9d0a-6f3f0a7a9f5d"

/** A log that begins anew is another table for readers who follow it. */
const metaDataOf = (spec: TableSpec, at: number): MetaData => ({
  id: stableUuid(tableIds, `${spec.name} ${at}`),
  name: spec.name,
  description: spec.comment,
  format: { provider: "parquet", options: {} },
  schemaString: schemaStringOf(spec),
  partitionColumns: [],
  configuration: {},
  createdTime: at,
})

/** Columns, comments, name or description of the table are not those that the log says. */
const isDescribedOtherwise = ({ metaData }: DeltaState, spec: TableSpec): boolean =>
  metaData.schemaString !== schemaStringOf(spec) ||
  metaData.name !== spec.name ||
  metaData.description !== spec.comment

export interface NextCommit {
  /** Of what the log says now; undefined if there is none. */
  readonly state: DeltaState | undefined
  /** The table as it is published. */
  readonly spec: TableSpec
  readonly files: ReadonlyArray<DeltaFile>
}

/** Files that the log does not name, or not as they are. */
export const filesToAdd = ({ state, files }: Pick<NextCommit, "state" | "files">): ReadonlyArray<DeltaFile> =>
  files.filter((file) => {
    const known = state?.files.get(uriOf(file))
    return known === undefined || known.size !== file.bytes || known.stats !== statsOf(file)
  })

/** The actions that bring the log to the table as it is published; none if nothing has changed. */
export const nextActions = (
  { state, spec, files }: NextCommit,
  { at, version, tool }: { readonly at: number; readonly version: number; readonly tool: string },
): ReadonlyArray<Action> => {
  const named = new Set(files.map(uriOf))
  const gone = [...(state?.files.keys() ?? [])].filter((path) => !named.has(path))
  const described = metaDataOf(spec, at)
  const changes: ReadonlyArray<Action> = [
    ...(state === undefined ? [{ protocol }, { metaData: described }] : []),
    ...(state !== undefined && isDescribedOtherwise(state, spec)
      ? [{ metaData: { ...described, id: state.metaData.id, createdTime: state.metaData.createdTime } }]
      : []),
    ...gone.map((path) => ({ remove: { path, deletionTimestamp: at, dataChange: true } })),
    ...filesToAdd({ state, files }).map((file) => ({
      add: {
        path: uriOf(file),
        partitionValues: {},
        size: file.bytes,
        modificationTime: at,
        dataChange: true,
        stats: statsOf(file),
      },
    })),
  ]
  if (changes.length === 0) return []
  const userMetadata = `nightjar version ${version}`
  const engineInfo = `nightjar/${tool}`
  const operation = { timestamp: at, operation: "WRITE", operationParameters: {} }
  return [{ commitInfo: { ...operation, engineInfo, userMetadata } }, ...changes]
}

/** One action a line. */
export const commitText = (actions: ReadonlyArray<Action>): string =>
  actions.map((action) => `${JSON.stringify(action)}\n`).join("")
