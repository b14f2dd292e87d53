import { copyFileSync, existsSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, expect } from "@effect/vitest"
import { Effect, Fiber, Stream } from "effect"
import { DuckDb, type OpenOptions } from "../../src/base/DuckDb.ts"
import { literal } from "../../src/base/DuckDbFailed.ts"
import { withLayer } from "../harness/Steps.ts"
import { folder } from "../harness/Folder.ts"

const { effect, live } = withLayer(DuckDb.layer)

const memory: OpenOptions = { path: ":memory:", access: "read-write", threads: 1, memoryLimit: "512MB" }

const opened = (options: OpenOptions) => Effect.flatMap(DuckDb, (duckdb) => duckdb.open(options))

/** Builds a database of one row; the scope closes it, so that it can be swapped. */
const build = (path: string, value: number) =>
  Effect.scoped(
    Effect.flatMap(opened({ path, access: "read-write" }), (connection) =>
      connection.run(`CREATE TABLE t AS SELECT ${value} AS version`),
    ),
  )

describe("DuckDb", () => {
  effect("returns rows as JSON without losing a digit [query endless]", function* () {
    const connection = yield* opened(memory)
    const { columns, rows } = yield* connection.query(`SELECT
        7::BIGINT AS small, 9007199254740993::BIGINT AS big, 1.10::DECIMAL(9,2) AS amount,
        TIMESTAMPTZ '2026-01-02 03:04:05.123456+02' AS at, TIMESTAMPTZ '1969-12-31 23:59:59.5+00' AS before,
        TIMESTAMP '2026-01-02 03:04:05' AS local, DATE '2026-01-02' AS day, ['x', NULL] AS codes, NULL AS nothing,
        'NaN'::DOUBLE AS nan, {'a': 1, 'b': [2::BIGINT]} AS nested, MAP {'k': 1} AS pairs,
        '{"a":1.10}'::JSON AS json, 'infinity'::TIMESTAMPTZ AS forever,
        ['-infinity'::DATE, 'infinity'::DATE] AS ends, 1 AS small,
        {'s': 'infinity'::TIMESTAMP_S, 'ms': '-infinity'::TIMESTAMP_MS, 'ns': 'infinity'::TIMESTAMP_NS,
          'day': TIMESTAMP_S '2026-01-02'} AS coarse`)
    assert.deepStrictEqual(columns, [
      { name: "small", type: "BIGINT" },
      { name: "big", type: "BIGINT" },
      { name: "amount", type: "DECIMAL(9,2)" },
      { name: "at", type: "TIMESTAMP WITH TIME ZONE" },
      { name: "before", type: "TIMESTAMP WITH TIME ZONE" },
      { name: "local", type: "TIMESTAMP" },
      { name: "day", type: "DATE" },
      { name: "codes", type: "VARCHAR[]" },
      { name: "nothing", type: "INTEGER" },
      { name: "nan", type: "DOUBLE" },
      { name: "nested", type: 'STRUCT("a" INTEGER, "b" BIGINT[])' },
      { name: "pairs", type: "MAP(VARCHAR, INTEGER)" },
      { name: "json", type: "JSON" },
      { name: "forever", type: "TIMESTAMP WITH TIME ZONE" },
      { name: "ends", type: "DATE[]" },
      { name: "small:1", type: "INTEGER" },
      {
        name: "coarse",
        type: 'STRUCT("s" TIMESTAMP_S, "ms" TIMESTAMP_MS, "ns" TIMESTAMP_NS, "day" TIMESTAMP_S)',
      },
    ])
    expect(rows.map((row) => JSON.stringify(row))).toStrictEqual([
      '[7,"9007199254740993","1.10","2026-01-02T01:04:05.123456Z","1969-12-31T23:59:59.500000Z",' +
        '"2026-01-02T03:04:05","2026-01-02",["x",null],null,"NaN",{"a":1,"b":[2]},' +
        '[{"key":"k","value":1}],"{\\"a\\":1.10}","infinity",["-infinity","infinity"],1,' +
        '{"s":"infinity","ms":"-infinity","ns":"infinity","day":"2026-01-02 00:00:00"}]',
    ])
  })

  effect("binds parameters of every kind", function* () {
    const connection = yield* opened(memory)
    const values = ["'; DROP TABLE t; --", 5, 2 ** 40, 1.5, 9_007_199_254_740_993n, 2n ** 80n, true, null]
    const rows = yield* connection.rows(
      "SELECT ? AS a, ? AS b, ? AS c, ? AS d, ? AS e, ? AS f, ? AS g, ? AS h, ? AS i, ? AS j, typeof(i) AS k",
      [...values, [], ["x", "y"]],
    )
    assert.deepStrictEqual(rows, [
      {
        a: "'; DROP TABLE t; --",
        b: 5,
        c: 2 ** 40,
        d: 1.5,
        e: "9007199254740993",
        f: "1208925819614629174706176",
        g: true,
        h: null,
        i: [],
        j: ["x", "y"],
        k: "VARCHAR[]",
      },
    ])
  })

  effect("is limited, in UTC, and downloads no extension", function* () {
    const connection = yield* opened(memory)
    const settings = yield* connection.rows(
      "SELECT current_setting('TimeZone') AS zone, current_setting('threads') AS threads, " +
        "current_setting('memory_limit') AS memory, current_setting('autoinstall_known_extensions') AS auto",
    )
    assert.deepStrictEqual(settings, [{ zone: "UTC", threads: 1, memory: "488.2 MiB", auto: false }])
    const install = yield* Effect.flip(connection.run("INSTALL httpfs"))
    assert.match(install.message, /^IO Error: Failed to install local extension/)
    const community = yield* Effect.flip(connection.run("INSTALL quack FROM community"))
    assert.match(community.message, /ommunity|local extension/)
  })

  effect("lets no statement open a file, change a setting or write what it was opened to read", function* () {
    const root = yield* folder
    const path = join(root, "nightjar.duckdb")
    yield* build(path, 7)
    const before = readFileSync(path)
    const file = literal(path)
    const log = literal(`${path}.wal`)
    const overIt = `COPY (SELECT 1) TO ${file} (USE_TMP_FILE false)`
    const refused = [
      overIt,
      `COPY (SELECT 1) TO ${file}`,
      `COPY (SELECT 1) TO ${file} (FORMAT parquet, USE_TMP_FILE false)`,
      `COPY (SELECT 1) TO ${log}`,
      `COPY (SELECT 1) TO ${literal(`${path}.tmp/x.csv`)}`,
      `COPY (SELECT 1) TO '/dev/stdout'`,
      `EXPLAIN ANALYZE ${overIt}`,
      `PREPARE later AS ${overIt}`,
      `SELECT 1; ${overIt}`,
      `EXPORT DATABASE ${literal(root)}`,
      `ATTACH ${file} AS again`,
      `ATTACH ${file} AS again (READ_WRITE)`,
      `ATTACH ${log} AS beside (READ_WRITE)`,
      `ATTACH ':memory:' AS room; COPY FROM DATABASE nightjar TO room`,
      `CREATE TABLE u AS SELECT 1`,
      `INSERT INTO t VALUES (8)`,
      `DROP TABLE t`,
      `INSTALL httpfs`,
      `INSTALL ${file}`,
      `LOAD ${file}`,
      `CREATE PERSISTENT SECRET s (TYPE http)`,
      `SET log_query_path = ${file}`,
      `SET log_query_path = ${log}`,
      `SET GLOBAL temp_directory = ${log}`,
      `SET secret_directory = ${log}`,
      `SET enable_external_access = true`,
      `SET allowed_paths = [${file}]`,
      `SET GLOBAL disabled_filesystems = ''`,
      `RESET GLOBAL disabled_filesystems`,
      `SET lock_configuration = false`,
      `SET access_mode = 'READ_WRITE'`,
      `PRAGMA enable_profiling = 'json'`,
      `PRAGMA profiling_output = ${literal(`${path}.json`)}`,
      `CALL enable_profiling(format = 'json', save_location = ${literal(`${path}.json`)})`,
      `CALL enable_logging(storage = 'file', storage_path = ${log})`,
      `SELECT * FROM enable_logging(storage = 'file', storage_path = ${log})`,
      `SELECT * FROM read_text('/etc/hostname')`,
      `SELECT size FROM read_blob(${file})`,
      `SELECT * FROM read_duckdb(${file})`,
      `SELECT * FROM glob('/etc/*')`,
    ]
    const done: Array<string> = []
    const connection = yield* opened({ path, access: "read-only", files: "none" })
    for (const sql of refused) {
      const result = yield* Effect.result(connection.query(sql))
      if (result._tag === "Success") done.push(sql)
      // A statement may have an effect on the next one only: on its own connection, or on another.
      yield* connection.query("SELECT * FROM t")
    }
    for (const one of [connection, yield* opened({ path, access: "read-only", files: "none" })]) {
      const { columns, chunks } = yield* one.stream("SELECT *, current_setting('TimeZone') AS z FROM t")
      expect(columns.map(({ name }) => name)).toStrictEqual(["version", "z"])
      assert.deepStrictEqual(yield* Stream.runCollect(chunks), [[[7, "UTC"]]])
    }
    assert.deepStrictEqual(done, [])
    assert.deepStrictEqual(readdirSync(root), ["nightjar.duckdb"])
    assert.strictEqual(readFileSync(path).equals(before), true)
  })

  effect("says that memory did not suffice where nothing may be put on disk", function* () {
    const path = join(yield* folder, "nightjar.duckdb")
    yield* build(path, 7)
    const limits = { memoryLimit: "50MB", threads: 1 }
    const connection = yield* opened({ path, access: "read-only", files: "none", ...limits })
    const sorted =
      "SELECT count(*) FROM (SELECT row_number() OVER (ORDER BY s) FROM " +
      "(SELECT md5(i::VARCHAR) AS s FROM range(2000000) AS r(i)))"
    const failure = yield* Effect.flip(connection.query(sorted))
    assert.match(failure.message, /^Out of Memory Error/)
  })

  effect("streams a big result chunk by chunk while the connection answers other statements", function* () {
    const connection = yield* opened(memory)
    const { columns, chunks } = yield* connection.stream("SELECT i FROM range(?) r(i)", [100_000])
    assert.deepStrictEqual(columns, [{ name: "i", type: "BIGINT" }])
    const sum = yield* Stream.runFoldEffect(
      chunks,
      () => 0,
      (total, rows) =>
        Effect.as(
          connection.query("SELECT 1"),
          rows.reduce((subtotal, [value]) => subtotal + Number(value), total),
        ),
    )
    assert.strictEqual(sum, (100_000 * 99_999) / 2)
  })

  effect("shows no parameters or data in a failure, only the names a user needs", function* () {
    const connection = yield* opened(memory)
    const conversion = yield* Effect.flip(connection.rows("SELECT CAST(? AS INTEGER)", ["canary-4711"]))
    expect({ statement: conversion.statement, message: conversion.message }).toStrictEqual({
      statement: "SELECT CAST(? AS INTEGER)",
      message: "Conversion Error: Could not convert string '…' to INT32",
    })
    yield* connection.run("CREATE TABLE t (a VARCHAR PRIMARY KEY); INSERT INTO t VALUES ('canary-4711')")
    const constraint = yield* Effect.flip(connection.run("INSERT INTO t SELECT a FROM t"))
    assert.strictEqual(
      constraint.message,
      'Constraint Error: Duplicate key "…" violates primary key constraint.',
    )
    const thrown = yield* Effect.flip(connection.rows("SELECT error(?)", ["says canary-4711"]))
    assert.notInclude(thrown.message, "canary-4711")
    const unknown = yield* Effect.flip(connection.rows(`SELECT nope FROM t ${" ".repeat(300)}`))
    assert.include(unknown.message, 'Referenced column "nope" not found')
    assert.strictEqual(unknown.statement.length, 200)
  })

  effect(
    "keeps the words of a failure and hides each value in it [promise 13 shown words] [promise 13 shown values]",
    function* () {
      const connection = yield* opened(memory)
      yield* connection.run("CREATE TABLE t (n DECIMAL(9,1) PRIMARY KEY); INSERT INTO t VALUES (4711)")
      const shown = Effect.fnUntraced(function* (sql: string) {
        const { message } = yield* Effect.flip(connection.run(sql))
        assert.notMatch(message, /Ana|4711|canary/)
        return message.slice(message.indexOf(":") + 2)
      })
      const cast = (what: string, type: string) => shown(`SELECT CAST(${what} AS ${type})`)
      assert.deepStrictEqual(
        [
          yield* shown("SELECT struct_pack()"),
          yield* cast("'it''s ''Ana'' \"4711''canary'", "INTEGER"),
          yield* cast("'Ana''\n\ncanary'' x' || chr(10) || 'Ana'", "DATE"),
          yield* cast("47114711.5", "TINYINT"),
          yield* cast("4711", "DECIMAL(3,0)"),
          yield* cast("'[Ana, ''4711'", "INTEGER[]"),
          yield* cast("json('[\"Ana\", 4711]')", "INTEGER"),
          yield* shown("SELECT 9223372036854775807 + 4711"),
          yield* shown("SELECT make_date(4711, 47, 11)"),
          yield* shown("SELECT regexp_matches('a', '(Ana4711')"),
          yield* shown("SELECT CAST('\\xZZ4711' AS BLOB)"),
          yield* shown("INSERT INTO t VALUES (4711)"),
        ],
        [
          "Can't pack nothing into a struct",
          "Could not convert string '…' to INT32",
          'invalid date field format: "…", expected format is (YYYY-MM-DD)',
          "Failed to cast decimal value … to type INT8",
          "Could not cast value … to DECIMAL(3,0)",
          "Type VARCHAR with value … can't be cast to the destination type INTEGER[]",
          "Failed to cast value to numerical: …",
          "Overflow in addition of INT64 (… + …)!",
          "Date out of range: …",
          "missing ): …",
          'Invalid hex escape code encountered in string -> blob conversion of string "…": …',
          'Duplicate key "…" violates primary key constraint.',
        ],
      )
    },
  )

  live("stops its statement when its fiber is interrupted", function* () {
    const connection = yield* opened(memory)
    const fiber = yield* Effect.forkChild(
      connection.query("SELECT count(*) FROM range(100000000000) a(i) WHERE hash(i) = 1"),
      { startImmediately: true },
    )
    const queued = yield* Effect.forkChild(connection.run("CREATE TABLE never (i INTEGER)"), {
      startImmediately: true,
    })
    yield* Fiber.interrupt(queued)
    yield* Fiber.interrupt(fiber)
    assert.deepStrictEqual(yield* connection.rows("SELECT count(*) AS tables FROM duckdb_tables()"), [
      { tables: 0 },
    ])
  })

  effect("refuses to open a file twice if one of the two would write", function* () {
    const path = join(yield* folder, "a.duckdb")
    yield* build(path, 1)
    yield* opened({ path, access: "read-only" })
    yield* opened({ path, access: "read-only" })
    const failure = yield* Effect.flip(opened({ path, access: "read-write" }))
    assert.strictEqual(failure.message, "the file is already open in this process")
    const missing = yield* Effect.flip(opened({ path: `${path}.missing`, access: "read-only" }))
    assert.match(missing.message, /^IO Error: Cannot open database/)
  })
})

describe("atomicSwap", () => {
  effect("publishes a new version while readers of the old one keep theirs", function* () {
    const at = yield* folder
    const final = join(at, "nightjar.duckdb")
    const duckdb = yield* DuckDb
    yield* build(join(at, "build-1"), 1)
    yield* duckdb.atomicSwap(join(at, "build-1"), final)
    const before = yield* opened({ path: final, access: "read-only" })
    yield* build(join(at, "build-2"), 2)
    yield* duckdb.atomicSwap(join(at, "build-2"), final, 0o640)
    const after = yield* opened({ path: final, access: "read-only" })
    assert.deepStrictEqual(yield* before.rows("SELECT * FROM t"), [{ version: 1 }])
    assert.deepStrictEqual(yield* after.rows("SELECT * FROM t"), [{ version: 2 }])
    assert.deepStrictEqual(readdirSync(at), ["nightjar.duckdb"])
    assert.strictEqual(statSync(final).mode & 0o777, 0o640)
  })

  effect("publishes rows that only the build's log has, and replays no log of the name", function* () {
    const at = yield* folder
    const final = join(at, "nightjar.duckdb")
    const duckdb = yield* DuckDb
    writeFileSync(`${final}.wal`, "a log of another version")
    const writer = yield* opened({ path: join(at, "open"), access: "read-write" })
    yield* writer.run("CREATE TABLE t AS SELECT 4 AS version")
    // As a crash leaves it.
    for (const ending of ["", ".wal"]) copyFileSync(join(at, `open${ending}`), join(at, `build${ending}`))
    yield* duckdb.atomicSwap(join(at, "build"), final)
    assert.deepStrictEqual([`${final}.wal`, join(at, "build.wal")].map(existsSync), [false, false])
    const after = yield* opened({ path: final, access: "read-only" })
    assert.deepStrictEqual(yield* after.rows("SELECT * FROM t"), [{ version: 4 }])
  })

  effect("leaves the old version if the new one is missing, open or not a database", function* () {
    const at = yield* folder
    const final = join(at, "nightjar.duckdb")
    const duckdb = yield* DuckDb
    yield* build(final, 1)
    const missing = yield* Effect.flip(duckdb.atomicSwap(join(at, "missing"), final))
    assert.strictEqual(missing.message, "there is no file to publish")
    writeFileSync(join(at, "rubbish"), "x".repeat(100_000))
    yield* Effect.flip(duckdb.atomicSwap(join(at, "rubbish"), final))
    const writer = yield* opened({ path: join(at, "open"), access: "read-write" })
    yield* writer.run("CREATE TABLE t AS SELECT 9 AS version")
    const busy = yield* Effect.flip(duckdb.atomicSwap(join(at, "open"), final))
    assert.strictEqual(busy.message, "the file is already open in this process")
    const after = yield* opened({ path: final, access: "read-only" })
    assert.deepStrictEqual(yield* after.rows("SELECT * FROM t"), [{ version: 1 }])
  })
})
