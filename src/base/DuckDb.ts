/**
 * The analytical database, and the only room that knows @duckdb/node-api and Promises. A connection lives in
 * a scope, runs one statement at a time unless told otherwise, answers with JSON-safe rows, and stops its
 * statement when its fiber is interrupted. No extension is ever downloaded; times are UTC.
 */
import { resolve } from "node:path"
import { DuckDBInstance } from "@duckdb/node-api"
import type { DuckDBConnection, DuckDBDataChunk, DuckDBResult, DuckDBType } from "@duckdb/node-api"
import { Cause, Context, Effect, Layer, Stream } from "effect"
import type { Scope } from "effect"
import pLimit from "p-limit"
import { swapFiles } from "./AtomicSwap.ts"
import { closedConfiguration, settingsOnceOpen } from "./Configuration.ts"
import type { DuckDbLimits } from "./Configuration.ts"
import { failureOf } from "./DuckDbFailed.ts"
import type { DuckDbFailed } from "./DuckDbFailed.ts"
import { jsonValue } from "./JsonValue.ts"
import type { Json } from "./JsonValue.ts"
import { bound } from "./Parameter.ts"
import type { Parameter } from "./Parameter.ts"

export interface OpenOptions extends DuckDbLimits {
  /** A file, or `:memory:`. */
  readonly path: string
  /** `read-only` fails if there is no file; `read-write` creates it. */
  readonly access: "read-only" | "read-write"
  /** Statements that may run at once; more than one only helps statements that wait for each other's I/O. */
  readonly statementsMax?: number
}

/**
 * `type` in DuckDB's own spelling, such as `DECIMAL(18,2)`; an alias (`JSON`) goes before the physical type.
 */
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

export interface Connection {
  /** Runs one or more statements and returns the number of rows the last one changed. */
  readonly run: (sql: string, parameters?: ReadonlyArray<Parameter>) => Effect.Effect<number, DuckDbFailed>
  /** The whole result in memory. */
  readonly query: (
    sql: string,
    parameters?: ReadonlyArray<Parameter>,
  ) => Effect.Effect<QueryResult, DuckDbFailed>
  /** The whole result in memory, an object per row. */
  readonly rows: (
    sql: string,
    parameters?: ReadonlyArray<Parameter>,
  ) => Effect.Effect<ReadonlyArray<Readonly<Record<string, Json>>>, DuckDbFailed>
  /** How many statements a text holds, without running any. */
  readonly statements: (sql: string) => Effect.Effect<number, DuckDbFailed>
  /** Names and types of the columns a query would return, without running it. */
  readonly columnTypes: (sql: string) => Effect.Effect<ReadonlyArray<Column>, DuckDbFailed>
  /**
   * A result too big for memory; it uses its own session, so temporary tables of this connection are not
   * visible.
   */
  readonly stream: (
    sql: string,
    parameters?: ReadonlyArray<Parameter>,
  ) => Effect.Effect<ChunkedResult<QueryResult["rows"]>, DuckDbFailed, Scope.Scope>
  /** The same in DuckDB's own vectors, for this room's converters. */
  readonly streamVectors: (
    sql: string,
    parameters?: ReadonlyArray<Parameter>,
  ) => Effect.Effect<
    ChunkedResult<DuckDBDataChunk> & { readonly vectorTypes: ReadonlyArray<DuckDBType> },
    DuckDbFailed,
    Scope.Scope
  >
}

export class DuckDb extends Context.Service<
  DuckDb,
  {
    readonly open: (options: OpenOptions) => Effect.Effect<Connection, DuckDbFailed, Scope.Scope>
    /**
     * Publishes a finished file under its final name: checkpointed, without log, synced, renamed, folder
     * synced. The file must not be open. `mode` is the final file's (default 0600). On failure, the old
     * version is kept.
     */
    readonly atomicSwap: (
      buildPath: string,
      finalPath: string,
      mode?: number,
    ) => Effect.Effect<void, DuckDbFailed>
  }
>()("nightjar/duckdb/DuckDb") {
  static readonly layer = Layer.sync(DuckDb, () => {
    // Two instances of one process do not see each other's file lock: writing through both would ruin the
    // file.
    const paths = new OpenPaths()
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

class OpenPaths {
  private readonly uses = new Map<string, { access: OpenOptions["access"]; count: number }>()
  claim(path: string, access: OpenOptions["access"]): boolean {
    const use = this.uses.get(path)
    if (use !== undefined && (access === "read-write" || use.access === "read-write")) return false
    this.uses.set(path, { access, count: (use?.count ?? 0) + 1 })
    return true
  }
  release(path: string): void {
    const use = this.uses.get(path)
    if (use === undefined) return
    if (use.count === 1) this.uses.delete(path)
    else use.count -= 1
  }
}

const claimPath = (paths: OpenPaths, path: string, access: OpenOptions["access"]) =>
  Effect.acquireRelease(
    Effect.suspend(() =>
      paths.claim(path, access)
        ? Effect.succeed(path)
        : Effect.fail(failureOf(`open ${path}`, new Error("the file is already open in this process"))),
    ),
    (claimed) => Effect.sync(() => paths.release(claimed)),
  )

const openConnection = Effect.fnUntraced(function* (options: OpenOptions) {
  const instance = yield* Effect.acquireRelease(
    Effect.tryPromise({
      try: () =>
        DuckDBInstance.create(options.path, {
          ...closedConfiguration(options),
          ...(options.path === ":memory:"
            ? {}
            : { access_mode: options.access === "read-only" ? "READ_ONLY" : "READ_WRITE" }),
        }),
      catch: (cause) => failureOf(`open ${options.path}`, cause),
    }),
    (opened) => Effect.sync(() => opened.closeSync()),
  )
  const statementsMax = options.statementsMax ?? 1
  const session = yield* openSession(instance, statementsMax)
  for (const setting of settingsOnceOpen(options))
    yield* session(setting, [], (connection) => connection.run(setting))
  return connectionOver(instance, session, statementsMax)
})

/**
 * Runs Promises of one session, at most `statementsMax` at a time; an interrupt stops the statement and
 * waits.
 */
type Session = <A>(
  sql: string,
  parameters: ReadonlyArray<Parameter>,
  work: (connection: DuckDBConnection) => Promise<A>,
) => Effect.Effect<A, DuckDbFailed>

const openSession = Effect.fnUntraced(function* (instance: DuckDBInstance, statementsMax: number) {
  const connection = yield* Effect.acquireRelease(
    Effect.tryPromise({ try: () => instance.connect(), catch: (cause) => failureOf("connect", cause) }),
    (opened) => Effect.sync(() => opened.closeSync()),
  )
  const limit = pLimit(statementsMax)
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

const connectionOver = (instance: DuckDBInstance, session: Session, statementsMax: number): Connection => {
  const streamVectors: Connection["streamVectors"] = Effect.fnUntraced(function* (sql, parameters = []) {
    const own = yield* openSession(instance, statementsMax)
    const result = yield* own(sql, parameters, (connection) => connection.stream(sql, ...bound(parameters)))
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

const nextChunk = (session: Session, sql: string, result: DuckDBResult) =>
  Effect.flatMap(
    session(sql, [], () => result.fetchChunk()),
    (chunk) =>
      chunk === null || chunk.rowCount === 0
        ? Effect.fail(Cause.Done())
        : Effect.succeed<[DuckDBDataChunk]>([chunk]),
  )

const columnsOf = (result: Pick<DuckDBResult, "columnCount" | "columnType" | "deduplicatedColumnNames">) =>
  result.deduplicatedColumnNames().map((name, index) => {
    const type = result.columnType(index)
    return { name, type: type.alias ?? type.toString() }
  })
