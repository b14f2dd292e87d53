/**
 * What the tables of an output folder have, compared with its model: `main`, `history`, `nights`, `changes`, and the
 * Parquet beside them.
 */
import { existsSync } from "node:fs"
import { join } from "node:path"
import { assert } from "@effect/vitest"
import { Effect } from "effect"
import type { Connection } from "../../src/base/DuckDb.ts"
import { literal } from "../../src/base/DuckDbFailed.ts"
import { filesBelow, layoutOf, readManifest } from "../../src/tables/Manifest.ts"
import { checkChanges, checkVersions, sameItems, type Moment, type ToldRun } from "./model.ts"
import type { ModelFolder } from "./modelFolder.ts"
import {
  besideText,
  contentText,
  epoch,
  saidOf,
  sessionOf,
  taskId,
  type Draw,
  type Schemas,
} from "./modelNights.ts"
import { opened } from "./night.ts"

/** A folder and its model, as one seed goes through its nights. */
export interface World {
  readonly root: string
  readonly model: ModelFolder
  readonly draw: Draw
  /** The folders of Parquet that it has. */
  readonly parquet: ReadonlyArray<"current" | "history">
  readonly forgotten: Set<string>
  /** The edit, for messages. */
  what: string
}

export const versionIn = (root: string): number => readManifest(layoutOf(root).manifest)?.version ?? 0

// The tables, as the model tells them.

const placeText = `CASE WHEN s._alone IS NULL THEN s.customer_id || '|' || s.engine_reference
  ELSE 'session ' || s._alone || '|' || s.customer_id END || '|' || s.product`
const cellsOf = ({ amount, note }: Schemas): string =>
  `'papers' AS "table", v.type, v.name, ${amount === undefined ? "NULL" : "CAST(v.amount AS VARCHAR)"} AS amount,
    ${note ? "v.note" : "NULL"} AS note, v.extra, v.misfits`
const othersCells = (name: string, product: string): string =>
  `'${name}' AS "table", ${product} AS type, ${name === "odds" ? "v.name" : "v.record ->> 'name'"} AS name,
    NULL AS amount, NULL AS note, ${name === "odds" ? "v.extra" : "NULL"} AS extra, NULL AS misfits, NULL AS lines, NULL AS asides`
const othersOf = ({ odds }: Schemas): ReadonlyArray<string> => ["other_records", ...(odds ? ["odds"] : [])]

const versionsSql = (schemas: Schemas): string => {
  const first = `${placeText} AS place, s.product, coalesce(v._kept.as_of, s.as_of)::VARCHAR AS as_of, v.record_id, v.valid_from::VARCHAR AS valid_from,
    v.valid_to::VARCHAR AS valid_to, v.ended_by, v._since_seq AS since, v._until_seq AS until`
  const lines = `(SELECT list(l.line ORDER BY l.position) FROM store.lines AS l WHERE l._version = v._version) AS lines,
    NULL AS asides`
  const from = (name: string) =>
    `FROM store.${name} AS v JOIN store._scopes AS s USING (_scope) WHERE v.valid_from IS NOT NULL`
  return [
    `SELECT ${first}, ${cellsOf(schemas)}, ${lines} ${from("papers")}`,
    ...othersOf(schemas).map((name) => `SELECT ${first}, ${othersCells(name, "s.product")} ${from(name)}`),
  ].join(" UNION ALL ")
}

type Row = Readonly<Record<string, unknown>>
const textOr = (value: unknown): string | undefined => (value === null ? undefined : String(value))
const contentOf = (row: Row): string => contentText(row as never)
const besideOf = ({ extra, ...row }: Row): string =>
  besideText({ ...row, extra: typeof extra === "string" ? JSON.parse(extra) : extra })

/** The lines of the rows `v` of a view, and what has no column in them. */
const linesIn = (schema: string, on: ReadonlyArray<string>): string =>
  [`l.line`, `l.extra ->> 'aside'`]
    .map(
      (cell, index) => `(SELECT list(${cell} ORDER BY l.position) FROM ${schema}.lines AS l
        WHERE ${on.map((name) => `l.${name} = v.${name}`).join(" AND ")}) AS ${index === 0 ? "lines" : "asides"}`,
    )
    .join(", ")

const mainSql = (schemas: Schemas): string => {
  const place = `CASE WHEN v.engine_reference IS NULL THEN 'session ' || v.session_id || '|' || v.customer_id
    ELSE v.customer_id || '|' || v.engine_reference END || '|' || v.product AS place`
  return [
    `SELECT ${place}, ${cellsOf(schemas)}, ${linesIn("main", ["record_id"])} FROM main.papers AS v`,
    ...othersOf(schemas).map(
      (name) => `SELECT ${place}, ${othersCells(name, "v.product")} FROM main.${name} AS v`,
    ),
  ].join(" UNION ALL ")
}

const checkRecords = Effect.fnUntraced(function* (
  world: World,
  connection: Connection,
  expected: ReadonlyArray<Moment<ToldRun>>,
) {
  const { current, sequenceOf } = world.model
  const found = (yield* connection.rows(versionsSql(current.schemas))).map((row) => ({
    scope: String(row["place"]),
    key: row["table"] === "papers" ? String(row["type"]) : undefined,
    content: contentOf(row),
    record_id: String(row["record_id"]),
    since: Number(row["since"]),
    until: row["until"] === null ? undefined : Number(row["until"]),
    valid_from: String(row["valid_from"]),
    valid_to: textOr(row["valid_to"]),
    ended_by: textOr(row["ended_by"]),
    as_of: String(row["as_of"]),
  }))
  checkVersions(found, expected, sequenceOf, world.what)
  sameItems(
    (yield* connection.rows(mainSql(current.schemas))).map((row) => [
      row["place"],
      contentOf(row),
      besideOf(row),
    ]),
    (expected.at(-1)?.current ?? []).map(({ scope, content, beside }) => [scope, content, beside]),
    `${world.what}: main, with what is no content`,
  )
  const tables = ["papers", ...othersOf(current.schemas)]
  const [sizes] = yield* connection.rows(
    `SELECT ${["main", "history"]
      .flatMap((schema) => tables.map((name) => `(SELECT count(*) FROM ${schema}.${name})`))
      .join(" + ")} AS rows, ${tables
      .map((name) => `(SELECT count(*) - count(DISTINCT record_id) FROM main.${name})`)
      .join(" + ")} + ${tables
      .map((name) => `(SELECT count(*) - count(DISTINCT (record_id, since_sequence)) FROM history.${name})`)
      .join(" + ")} AS twice`,
  )
  const open = found.filter(({ until }) => until === undefined).length
  assert.deepStrictEqual(
    [Number(sizes?.["rows"]), Number(sizes?.["twice"])],
    [found.length + open, 0],
    `${world.what}: rows of main and history, and ids that stand twice`,
  )
})

/** What each run read, to the row, with its own times of fetching. */
const checkNights = Effect.fnUntraced(function* (world: World, connection: Connection) {
  const { current } = world.model
  const first = `v.run_id, v.record_id, v.run_date::VARCHAR AS date, v.task_id, v.session_id, epoch(v.fetch_date)::INTEGER AS fetched`
  const lines = linesIn("nights", ["run_id", "task_id", "session_id", "record_id"])
  const rows = yield* connection.rows(
    [
      `SELECT ${first}, ${cellsOf(current.schemas)}, ${lines} FROM nights.papers AS v`,
      ...othersOf(current.schemas).map(
        (name) => `SELECT ${first}, ${othersCells(name, "v.product")} FROM nights.${name} AS v`,
      ),
    ].join(" UNION ALL "),
  )
  const cells = ({ run_id, date, task_id, session_id, fetched }: Row) =>
    [run_id, date, task_id, session_id, fetched] as const
  sameItems(
    rows.map((row) => [...cells(row), contentOf(row), besideOf(row)]),
    world.model.entries().flatMap(({ run, derived, over }) =>
      run.tasks
        .filter((task) => over?.has(taskId(run, task)) ?? true)
        .flatMap((task) =>
          task.rows.map((row) => {
            const { content, beside } = saidOf(row, derived, current.schemas)
            const session = sessionOf(run, task, row.isEarlier)
            const at = epoch / 1000 + run.fetched
            return [run.run_id, run.date, taskId(run, task), session, at, content, beside]
          }),
        ),
    ),
    `${world.what}: nights`,
  )
  const keys = new Set(
    rows.map((row) => [row["table"], ...cells(row).slice(0, 4), row["record_id"]].join(" ")),
  )
  assert.strictEqual(keys.size, rows.length, `${world.what}: a key of nights stands twice`)
})

/** `current/` and `history/` have what the views have, but for the age of the rows. */
const checkParquet = Effect.fnUntraced(function* (world: World, connection: Connection) {
  if (world.parquet.length === 0 || world.model.current.isInterim) return
  for (const name of ["papers", "lines", ...othersOf(world.model.current.schemas)])
    for (const [schema, path] of [
      ["main", `current/${name}.parquet`],
      ["history", `history/${name}/*.parquet`],
    ] as const) {
      const columns = (yield* connection.columnTypes(`SELECT * FROM ${schema}.${name}`))
        .filter((one) => one.name !== "age_days")
        .map((one) => (one.type === "JSON" ? `${one.name}::VARCHAR` : one.name))
      const [view, file] = [`${schema}.${name}`, `read_parquet(${literal(join(world.root, path))})`].map(
        (from) => `SELECT ${columns.join(", ")} FROM ${from}`,
      )
      const sides = [view, file].map((rows, side) => `SELECT *, ${1 - 2 * side} AS _n FROM (${rows})`)
      const differing = yield* connection.rows(
        `SELECT * EXCLUDE (_n), sum(_n) AS _n FROM (${sides.join(" UNION ALL ")}) GROUP BY ALL HAVING sum(_n) <> 0 LIMIT 1`,
      )
      assert.deepStrictEqual(differing, [], `${world.what}: ${path} is not ${schema}.${name}`)
    }
})

const changesSql = `SELECT CASE WHEN c.engine_reference IS NULL THEN 'session s-' || c.customer_id || '|' || c.customer_id
    ELSE c.customer_id || '|' || c.engine_reference END || '|' || c.product AS place, c.product, c.change, c.table_name,
  c.changed_columns, c.before, c.after FROM changes(?, ?) AS c`

const contentIn = (table: unknown, product: unknown, told: unknown): string | null => {
  if (told === null) return null
  const { record, lines = [], ...rest } = JSON.parse(String(told))
  if (table !== "papers") return contentOf({ ...rest, table, type: product, name: record?.name ?? rest.name })
  return contentOf({ ...rest, table, lines: lines.map((item: { line: string }) => item.line) })
}

export const checkSomeChanges = Effect.fnUntraced(function* (
  world: World,
  connection: Connection,
  expected: ReadonlyArray<Moment<ToldRun>>,
) {
  const { int } = world.draw
  const at = int(0, expected.length - 1)
  for (const [from, to] of [
    [at - int(1, 4), at],
    [expected.length - 2, expected.length - 1],
  ] as const) {
    const [earlier, later] = [expected[Math.max(0, from)], expected[to]]
    if (earlier === undefined || later === undefined) continue
    const rows = yield* connection.rows(changesSql, [earlier.run.run_id, later.run.run_id])
    const found = rows.map(({ place, product, table_name, change, changed_columns, before, after }) => ({
      scope: String(place),
      change: String(change),
      changed_columns,
      before: contentIn(table_name, product, before),
      after: contentIn(table_name, product, after),
    }))
    checkChanges(found, earlier, later, `${world.what}: from ${earlier.run.run_id} to ${later.run.run_id}`)
  }
})

export const checkTables = Effect.fnUntraced(function* (world: World, connection: Connection) {
  const expected = world.model.moments()
  yield* checkRecords(world, connection, expected)
  yield* checkNights(world, connection)
  yield* checkParquet(world, connection)
  yield* checkSomeChanges(world, connection, expected)
})

export const check = Effect.fnUntraced(function* (world: World) {
  assert.strictEqual(versionIn(world.root), world.model.current.version, `${world.what}: version`)
  if (world.model.current.version > 0) yield* checkTables(world, yield* opened(world.root))
}, Effect.scoped)

/** Nothing names a customer who was forgotten: no table, no Parquet file of any version. */
export const checkForgotten = Effect.fnUntraced(function* (world: World) {
  const { root, forgotten } = world
  if (forgotten.size === 0 || !existsSync(join(root, "nightjar.duckdb"))) return
  const connection = yield* opened(root)
  const tables = yield* connection.rows(
    "SELECT schema_name || '.' || table_name AS name FROM duckdb_tables()",
  )
  const files = filesBelow(root)
  const sources = [
    ...tables.map(({ name }) => String(name)),
    ...files.filter((path) => path.endsWith(".parquet")).map((path) => literal(join(root, path))),
  ]
  for (const customer of forgotten) {
    const texts = sources.map(
      (source) => `SELECT ${literal(source)} AS source FROM ${source} AS t
        WHERE contains(CAST(t AS VARCHAR), ${literal(customer)})`,
    )
    const found = yield* connection.rows(texts.join(" UNION ALL "))
    assert.deepStrictEqual(found, [], `${world.what}: ${customer} was forgotten`)
  }
}, Effect.scoped)
