/**
 * The analytical database, and the only room that knows @duckdb/node-api and Promises. A connection lives in
 * a scope, runs one statement at a time, answers with JSON-safe rows, and stops its statement when its fiber
 * is interrupted. No extension is ever downloaded; times are UTC.
 */
import { closeSync, existsSync, openSync, readSync } from "node:fs"
import { dirname, resolve } from "node:path"
import * as duckdb from "@duckdb/node-api"
import { Cause, Context, Effect, Layer, Stream, type Scope } from "effect"
import pLimit from "p-limit"
import { failureOf, type DuckDbFailed } from "./DuckDbFailed.ts"
import { durableFiles } from "./DurableFile.ts"

// Nothing is ever downloaded: json, parquet and icu are built in, and a query that needs more fails instead.

export interface DuckDbLimits {
  /** Threads of one database; a run's own writers take 1, so that the machine stays usable. */
  readonly threads?: number
  /** DuckDB's own spelling, such as `1GB`. */
  readonly memoryLimit?: string
  /** Freed memory that may wait for the next statement, `4MB` by default; groups of rows take 2 MB. */
  readonly freedMax?: string
  /** Tables are written as they are: to find how to compress each column costs more than few rows do. */
  readonly isUncompressed?: boolean
  /**
   * The files that SQL can open; all if it is not said. `own`: the database's, its log and what does not fit
   * into memory. `none`: not even those, since `COPY … TO` would write over the database although it was
   * opened read-only; what does not fit into memory fails. Neither can change a setting.
   */
  readonly files?: "own" | "none"
}

const closedConfiguration = (limits: DuckDbLimits): Record<string, string> => ({
  threads: String(limits.threads ?? 2),
  // Of a new file: with the usual 256 KiB a small one is twice as large, as few tables fill a block.
  default_block_size: "65536",
  // What DuckDB 0.10 can read has 3 KB of statistics for each column, empty ones too: 2 MB in every version.
  storage_compatibility_version: "v1.2.0",
  autoinstall_known_extensions: "false",
  autoload_known_extensions: "false",
  allow_community_extensions: "false",
  // An explicit INSTALL must not reach the network either: it looks in a folder that does not exist.
  custom_extension_repository: "/nonexistent",
  // Freed memory that waits for the next statement: up to twice the memory limit by default. With 1MB, giving
  // pages back and taking them again was a fifth of the CPU of a small publication.
  allocator_bulk_deallocation_flush_threshold: limits.freedMax ?? "4MB",
  // A Parquet file is read once or twice: what a cache of them would keep is memory that others need.
  enable_external_file_cache: "false",
  ...(limits.isUncompressed === true ? { force_compression: "uncompressed" } : {}),
  ...(limits.memoryLimit === undefined ? {} : { memory_limit: limits.memoryLimit }),
  ...(limits.files === "none" ? { temp_directory: "" } : {}),
  ...(limits.files === undefined ? {} : { enable_external_access: "false" }),
})

/** Only possible on an open database, and valid for all its connections. The last one closes the others. */
const settingsOnceOpen = (limits: DuckDbLimits): ReadonlyArray<string> => [
  "SET GLOBAL TimeZone = 'UTC'",
  ...(limits.files === "none" ? ["SET GLOBAL disabled_filesystems = 'LocalFileSystem'"] : []),
  ...(limits.files === undefined ? [] : ["SET GLOBAL lock_configuration = true"]),
]

/** Empties the write-ahead log into the file and closes it; DuckDB removes the log on closing. */
const checkpoint = async (path: string): Promise<void> => {
  const instance = await duckdb.DuckDBInstance.create(path, closedConfiguration({ threads: 1 }))
  try {
    const connection = await instance.connect()
    try {
      await connection.run("FORCE CHECKPOINT")
    } finally {
      connection.closeSync()
    }
  } finally {
    instance.closeSync()
  }
}

/** Whether the file says that it is a database: these bytes follow the checksum of its first block. */
const isDatabase = (path: string): boolean => {
  const bytes = Buffer.alloc(12)
  const file = openSync(path, "r")
  try {
    readSync(file, bytes)
  } finally {
    closeSync(file)
  }
  return bytes.toString("latin1", 8) === "DUCK"
}

/** `mode` is that of the final file: 0600, or 0640 if the job shares its tables. */
const swapFiles = Effect.fnUntraced(function* (buildPath: string, finalPath: string, mode: number) {
  const files = yield* durableFiles
  const failed = (cause: unknown) => failureOf(`swap ${buildPath} -> ${finalPath}`, cause)
  // Opening a path that does not exist would create and publish an empty database.
  if (!existsSync(buildPath)) return yield* failed(new Error("there is no file to publish"))
  if (!(yield* Effect.try({ try: () => isDatabase(buildPath), catch: failed })))
    return yield* failed(new Error("it is no database"))
  // A database whose log remains is incomplete without it, and the log does not travel with a rename.
  // One that was closed has none: opening it once more would cost as much as a small night's rows.
  const log = `${buildPath}.wal`
  if (existsSync(log)) yield* Effect.tryPromise({ try: () => checkpoint(buildPath), catch: failed })
  if (existsSync(log)) return yield* failed(new Error("a write-ahead log remains after the checkpoint"))
  yield* Effect.mapError(files.settle(buildPath, mode), failed)
  yield* Effect.try({
    try: () => {
      // A log beside the final name belongs to the old version and must never be replayed into the new one.
      files.remove(`${finalPath}.wal`)
      files.rename(buildPath, finalPath)
      files.syncFolder(dirname(finalPath))
    },
    catch: failed,
  })
})

// Values of a query result as JSON, without losing a digit: integers beyond 2^53 and decimals are strings,
// times are ISO 8601 in UTC, lists are arrays, structs are objects, NULL is null.

export type Json = null | boolean | number | string | ReadonlyArray<Json> | { readonly [field: string]: Json }

/** One cell. NaN and the infinities are strings, as JSON has no numbers for them. */
export const jsonValue = (value: duckdb.DuckDBValue): Json => {
  switch (typeof value) {
    case "string":
    case "boolean":
      return value
    case "number":
      return Number.isFinite(value) ? value : String(value)
    case "bigint": {
      const number = Number(value)
      return Number.isSafeInteger(number) ? number : value.toString()
    }
    default:
      return value === null ? null : jsonObject(value)
  }
}

/** No date has so many; the binding would show one. */
const infiniteDays = 2_147_483_647

const jsonObject = (value: Exclude<duckdb.DuckDBValue, null | boolean | number | bigint | string>): Json => {
  if (value instanceof duckdb.DuckDBListValue || value instanceof duckdb.DuckDBArrayValue)
    return value.items.map(jsonValue)
  if (value instanceof duckdb.DuckDBStructValue) return jsonFields(value.entries)
  if (value instanceof duckdb.DuckDBMapValue) {
    return value.entries.map((entry) => ({ key: jsonValue(entry.key), value: jsonValue(entry.value) }))
  }
  if (value instanceof duckdb.DuckDBUnionValue) return jsonValue(value.value)
  if (value instanceof duckdb.DuckDBDateValue && Math.abs(value.days) === infiniteDays)
    return value.days > 0 ? "infinity" : "-infinity"
  if (value instanceof duckdb.DuckDBTimestampSecondsValue) return orEndless(value, value.seconds)
  if (value instanceof duckdb.DuckDBTimestampMillisecondsValue) return orEndless(value, value.millis)
  if (value instanceof duckdb.DuckDBTimestampNanosecondsValue) return orEndless(value, value.nanos)
  if (value instanceof duckdb.DuckDBTimestampTZValue) return isoTime(value, "Z")
  if (value instanceof duckdb.DuckDBTimestampValue) return isoTime(value, "")
  return value.toString()
}

/** Of these types, too, the binding shows a date where there is none. */
const orEndless = (time: { readonly isFinite: boolean; toString(): string }, ticks: bigint): string =>
  time.isFinite ? time.toString() : ticks > 0n ? "infinity" : "-infinity"

const jsonFields = (entries: Readonly<Record<string, duckdb.DuckDBValue>>): Json =>
  Object.fromEntries(Object.entries(entries).map(([name, value]) => [name, jsonValue(value)]))

/** The range of JavaScript's dates, in milliseconds either side of the epoch. */
const dateMillisMax = 8_640_000_000_000_000n

const isoTime = (
  time: { readonly micros: bigint; readonly isFinite: boolean; toString(): string },
  zone: "Z" | "",
): string => {
  const rest = ((time.micros % 1_000_000n) + 1_000_000n) % 1_000_000n
  const millis = (time.micros - rest) / 1000n
  if (!time.isFinite || millis > dateMillisMax || millis < -dateMillisMax) return time.toString()
  const seconds = new Date(Number(millis)).toISOString().slice(0, -".000Z".length)
  return rest === 0n ? `${seconds}${zone}` : `${seconds}.${rest.toString().padStart(6, "0")}${zone}`
}

// Values for the `?` of a statement, with the SQL type each is bound as: they can never become SQL.

/** Lists are VARCHAR[]. */
export type Parameter = null | boolean | number | bigint | string | ReadonlyArray<string>

/** Types are explicit: DuckDB could not guess one from an empty list. */
export const bound = (
  parameters: ReadonlyArray<Parameter>,
): [values?: Array<duckdb.DuckDBValue>, types?: Array<duckdb.DuckDBType>] => {
  if (parameters.length === 0) return []
  const values = parameters.map((value) => (isList(value) ? duckdb.listValue([...value]) : value))
  return [
    values,
    parameters.map((value) => (isList(value) ? duckdb.LIST(duckdb.VARCHAR) : scalarType(value))),
  ]
}

const isList = (value: Parameter): value is ReadonlyArray<string> => Array.isArray(value)

const int32Max = 2_147_483_647
const int64Max = 9_223_372_036_854_775_807n

const scalarType = (value: Exclude<Parameter, ReadonlyArray<string>>): duckdb.DuckDBType => {
  if (value === null) return duckdb.SQLNULL
  if (typeof value === "boolean") return duckdb.BOOLEAN
  if (typeof value === "string") return duckdb.VARCHAR
  if (typeof value === "bigint")
    return value <= int64Max && value >= -int64Max ? duckdb.BIGINT : duckdb.HUGEINT
  if (!Number.isSafeInteger(value)) return duckdb.DOUBLE
  return Math.abs(value) <= int32Max ? duckdb.INTEGER : duckdb.BIGINT
}

export interface OpenOptions extends DuckDbLimits {
  /** A file, or `:memory:`. */
  readonly path: string
  /** `read-only` fails if there is no file; `read-write` creates it. */
  readonly access: "read-only" | "read-write"
}

/** `type` in DuckDB's spelling, such as `DECIMAL(18,2)`; an alias (`JSON`) goes before the physical type. */
export interface Column {
  readonly name: string
  readonly type: string
}

/** Cells are in the order of `columns`, whose names are unique (a repeated name gets a suffix). */
export interface QueryResult {
  readonly columns: ReadonlyArray<Column>
  readonly rows: ReadonlyArray<ReadonlyArray<Json>>
}

export interface ChunkedResult<Chunk> {
  readonly columns: ReadonlyArray<Column>
  /** At most 2,048 rows each. To be read once, inside the scope. */
  readonly chunks: Stream.Stream<Chunk, DuckDbFailed>
}

/** A statement with the values of its `?`, and what it answers. */
type Ask<A, R = never> = (
  sql: string,
  parameters?: ReadonlyArray<Parameter>,
) => Effect.Effect<A, DuckDbFailed, R>

export interface Connection {
  /** Runs one or more statements and returns the number of rows the last one changed. */
  readonly run: Ask<number>
  /** The whole result in memory. */
  readonly query: Ask<QueryResult>
  /** The whole result in memory, an object per row. */
  readonly rows: Ask<ReadonlyArray<Readonly<Record<string, Json>>>>
  /** How many statements a text holds, without running any. */
  readonly statements: (sql: string) => Effect.Effect<number, DuckDbFailed>
  /** Of the columns a query would return, without running it. */
  readonly columnTypes: (sql: string) => Effect.Effect<ReadonlyArray<Column>, DuckDbFailed>
  /** Too big for memory. It has its own session, without the temporary tables of this connection. */
  readonly stream: Ask<ChunkedResult<QueryResult["rows"]>, Scope.Scope>
  /** The same in DuckDB's own vectors, for this room's converters. */
  readonly streamVectors: Ask<
    ChunkedResult<duckdb.DuckDBDataChunk> & { readonly vectorTypes: ReadonlyArray<duckdb.DuckDBType> },
    Scope.Scope
  >
}

export class DuckDb extends Context.Service<
  DuckDb,
  {
    readonly open: (options: OpenOptions) => Effect.Effect<Connection, DuckDbFailed, Scope.Scope>
    /**
     * Publishes a finished, closed file under its final name, completely or not at all. Readers that have the
     * old file open keep their view of it.
     */
    readonly atomicSwap: (
      buildPath: string,
      finalPath: string,
      mode?: number,
    ) => Effect.Effect<void, DuckDbFailed>
  }
>()("nightjar/duckdb/DuckDb") {
  static readonly layer = Layer.sync(DuckDb, () => {
    const paths: OpenPaths = new Map()
    return DuckDb.of({
      open: Effect.fn("DuckDb.open")(function* (options: OpenOptions) {
        if (options.path !== ":memory:") yield* claimPath(paths, resolve(options.path), options.access)
        return yield* openConnection(options)
      }),
      atomicSwap: Effect.fn("DuckDb.atomicSwap")(function* (buildPath, finalPath, mode = 0o600) {
        yield* Effect.scoped(
          Effect.gen(function* () {
            yield* claimPath(paths, resolve(buildPath), "read-write")
            // Never interrupted half-way: the steps are short, and their order is what makes them safe.
            yield* Effect.uninterruptible(swapFiles(buildPath, finalPath, mode))
          }),
        )
      }),
    })
  })
}

/** How many read each open file; one that is written has no other user. */
type OpenPaths = Map<string, number | "written">

/** Two instances of one process do not see each other's file lock: writing through both ruins the file. */
const claimPath = (paths: OpenPaths, path: string, access: OpenOptions["access"]) =>
  Effect.acquireRelease(
    Effect.suspend(() => {
      const use = paths.get(path) ?? 0
      const isFree = use === 0 || (use !== "written" && access === "read-only")
      if (!isFree)
        return Effect.fail(failureOf(`open ${path}`, new Error("the file is already open in this process")))
      return Effect.succeed(paths.set(path, access === "read-write" ? "written" : Number(use) + 1))
    }),
    () =>
      Effect.sync(() => {
        const use = paths.get(path)
        if (typeof use === "number" && use > 1) paths.set(path, use - 1)
        else paths.delete(path)
      }),
  )

const openConnection = Effect.fnUntraced(function* (options: OpenOptions) {
  const instance = yield* Effect.acquireRelease(
    Effect.tryPromise({
      try: () =>
        duckdb.DuckDBInstance.create(options.path, {
          ...closedConfiguration(options),
          ...(options.path === ":memory:"
            ? {}
            : { access_mode: options.access === "read-only" ? "READ_ONLY" : "READ_WRITE" }),
        }),
      catch: (cause) => failureOf(`open ${options.path}`, cause),
    }),
    (opened) => Effect.sync(() => opened.closeSync()),
  )
  const session = yield* openSession(instance)
  for (const setting of settingsOnceOpen(options))
    yield* session(setting, [], (connection) => connection.run(setting))
  return connectionOver(instance, session)
})

/** One statement at a time; an interrupt stops the statement and waits. */
type Session = <A>(
  sql: string,
  parameters: ReadonlyArray<Parameter>,
  work: (connection: duckdb.DuckDBConnection) => Promise<A>,
) => Effect.Effect<A, DuckDbFailed>

const openSession = Effect.fnUntraced(function* (instance: duckdb.DuckDBInstance) {
  const connection = yield* Effect.acquireRelease(
    Effect.tryPromise({ try: () => instance.connect(), catch: (cause) => failureOf("connect", cause) }),
    (opened) => Effect.sync(() => opened.closeSync()),
  )
  const limit = pLimit(1)
  const session: Session = (sql, parameters, work) =>
    Effect.callback((resume) => {
      const progress = { started: false, settled: false, abandoned: false }
      limit(() => {
        if (progress.abandoned) return Promise.reject(new Error("interrupted before it started"))
        progress.started = true
        return work(connection)
      }).then(
        (value) => {
          progress.settled = true
          resume(Effect.succeed(value))
        },
        (cause: unknown) => {
          progress.settled = true
          resume(Effect.fail(failureOf(sql, cause, parameters)))
        },
      )
      // An interrupt between two steps of a statement is lost on DuckDB, so it is repeated until the
      // statement ends.
      return Effect.suspend(() => {
        progress.abandoned = true
        const stop = Effect.andThen(
          Effect.sync(() => connection.interrupt()),
          Effect.yieldNow,
        )
        return Effect.whileLoop({
          while: () => progress.started && !progress.settled,
          body: () => stop,
          step: () => undefined,
        })
      })
    })
  return session
})

const connectionOver = (instance: duckdb.DuckDBInstance, session: Session): Connection => {
  const streamVectors: Connection["streamVectors"] = Effect.fnUntraced(function* (sql, parameters = []) {
    const own = yield* openSession(instance)
    const result = yield* own(sql, parameters, async (connection) =>
      connection.stream(sql, ...bound(parameters)),
    )
    return {
      columns: columnsOf(result),
      vectorTypes: Array.from({ length: result.columnCount }, (_, index) => result.columnType(index)),
      chunks: Stream.fromPull(Effect.succeed(nextChunk(own, sql, result))),
    }
  })
  const query: Connection["query"] = (sql, parameters = []) =>
    session(sql, parameters, async (connection) => {
      const reader = await connection.runAndReadAll(sql, ...bound(parameters))
      return { columns: columnsOf(reader), rows: reader.getRows().map((row) => row.map(jsonValue)) }
    })
  return {
    run: (sql, parameters = []) =>
      session(
        sql,
        parameters,
        async (connection) => (await connection.run(sql, ...bound(parameters))).rowsChanged,
      ),
    query,
    rows: (sql, parameters = []) =>
      Effect.map(query(sql, parameters), ({ columns, rows }) =>
        rows.map((row) => Object.fromEntries(columns.map(({ name }, index) => [name, row[index] ?? null]))),
      ),
    statements: (sql) =>
      session(sql, [], async (connection) => (await connection.extractStatements(sql)).count),
    columnTypes: (sql) =>
      Effect.map(query(`DESCRIBE ${sql}`), ({ rows }) =>
        rows.map((row) => ({ name: String(row[0]), type: String(row[1]) })),
      ),
    stream: (sql, parameters = []) =>
      Effect.map(streamVectors(sql, parameters), ({ columns, chunks }) => ({
        columns,
        chunks: Stream.map(chunks, (chunk) => chunk.getRows().map((row) => row.map(jsonValue))),
      })),
    streamVectors,
  }
}

const nextChunk = (session: Session, sql: string, result: duckdb.DuckDBResult) =>
  Effect.flatMap(
    session(sql, [], () => result.fetchChunk()),
    (chunk) =>
      chunk === null || chunk.rowCount === 0
        ? Effect.fail(Cause.Done())
        : Effect.succeed<[duckdb.DuckDBDataChunk]>([chunk]),
  )

const columnsOf = (
  result: Pick<duckdb.DuckDBResult, "columnCount" | "columnType" | "deduplicatedColumnNames">,
) =>
  result.deduplicatedColumnNames().map((name, index) => {
    const type = result.columnType(index)
    return { name, type: type.alias ?? type.toString() }
  })
