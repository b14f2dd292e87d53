/**
 * The history of records against a model that computes it from the bodies: nights of two jobs in a drawn order, with
 * customers, engines and features coming and going, failures, reruns of older nights, partial ends, interim versions,
 * replaced jobs, duplicate keys, and hashes of another version of the program.
 * `SEEDS=200 FROM=1` tries as many seeds.
 */
import { assert, describe, it } from "@effect/vitest"
import { createHash } from "node:crypto"
import { Effect } from "effect"
import { DuckDb } from "../../src/base/DuckDb.ts"
import type { Connection } from "../../src/base/DuckDb.ts"
import { literal } from "../../src/base/DuckDbFailed.ts"
import { stepRun, unstepNewest } from "../../src/tables/Step.ts"
import { drawing } from "../harness/Drawing.ts"
import { checkChanges, checkVersions, moments, sorted } from "./model.ts"
import type { Moment, ToldRun } from "./model.ts"
import { begin, families, tables } from "./papers.ts"

const customers = ["c-1", "c-2", "c-3"]
const engines = ["bank:website", "bank:mobile"]
const features = ["paper_a", "paper_b", "labor_check"]
/** Of the first there is a schema; the second is fed by the feature of its name; nobody knows what feeds the last. */
const kinds = ["paper", "labor_check", "odd"] as const
type Kind = (typeof kinds)[number]

interface Row {
  readonly kind: Kind
  readonly type: string | null
  readonly name: string
  readonly amount: string | null
  readonly lines: ReadonlyArray<string>
  /** Of a session that is not the newest of its task. */
  readonly isEarlier: boolean
}
interface Task {
  readonly customer: string
  readonly engine: string | null
  readonly features: ReadonlyArray<string>
  readonly succeeded: ReadonlyArray<string>
  readonly rows: ReadonlyArray<Row>
}
interface Run {
  readonly run_id: string
  readonly job: string
  readonly day: number
  readonly sequence: number
  readonly kind: "whole" | "rerun" | "empty"
  readonly replaces: ReadonlyArray<string>
  readonly tasks: ReadonlyArray<Task>
  readonly old: boolean
}

const drawRuns = (seed: number): ReadonlyArray<Run> => {
  const { int, chance, pick, some } = drawing(seed)
  const row = (kind: Kind): Row => ({
    kind,
    type: kind === "paper" ? pick(["person", "company", null]) : null,
    name: pick(["Ana", "Bea", "Cid"]),
    amount: pick(["1.00", "2.50", null]),
    lines: kind === "paper" ? some(["x", "y"], 0.4) : [],
    isEarlier: chance(0.1),
  })
  const task = (customer: string, engine: string | null): Task => {
    const asked = chance(0.1) ? [] : some(features, 0.7)
    const told = asked.length === 0 ? features : asked
    const delivered = kinds.filter(() => chance(0.75))
    const rows = delivered.flatMap((kind) => Array.from({ length: int(0, 3) }, () => row(kind)))
    return { customer, engine, features: asked, succeeded: some(told, 0.75), rows }
  }
  let day = 0
  return Array.from({ length: int(6, 14) }, (_, index): Run => {
    day += int(0, 2)
    const kind = chance(0.2) ? "rerun" : chance(0.05) ? "empty" : "whole"
    const job = chance(0.25) ? "b" : "a"
    const subjects = customers.flatMap((customer) =>
      some(engines, kind === "whole" ? 0.6 : 0.3).map((engine) => [customer, engine] as const),
    )
    const sessions = chance(0.15) ? [[pick(customers), null] as const] : []
    return {
      run_id: `r-${String(index).padStart(2, "0")}`,
      job,
      day: kind === "rerun" ? int(0, day) : day,
      sequence: 3 * index + 1,
      kind,
      replaces: job === "b" && chance(0.2) ? ["a"] : [],
      tasks:
        kind === "empty"
          ? []
          : [...subjects, ...sessions].map(([customer, engine]) => task(customer, engine)),
      old: chance(0.2),
    }
  })
}

const dateOf = (day: number): string => new Date(Date.UTC(2026, 0, 1 + day)).toISOString().slice(0, 10)
const hash = (...parts: ReadonlyArray<unknown>): string =>
  createHash("sha256").update(JSON.stringify(parts)).digest("hex").slice(0, 32)
const taskId = ({ run_id }: Run, { customer, engine }: Task): string =>
  `${run_id}/${customer}/${engine ?? "session"}`
/** Of a session that was only read there is one: the same in all nights. */
const sessionOf = (run: Run, task: Task, isEarlier: boolean): string =>
  task.engine === null ? `s-${task.customer}` : `${taskId(run, task)}/${isEarlier ? 1 : 2}`
const told = (task: Task): ReadonlyArray<string> => (task.features.length === 0 ? features : task.features)
const rowsOf = (task: Task): ReadonlyArray<Row> =>
  task.engine === null ? task.rows.filter(({ isEarlier }) => !isEarlier) : task.rows
const textOf = (value: string | null): string => (value === null ? "NULL" : literal(value))

const contentOf = ({ kind, type, name, amount, lines }: Row): string =>
  JSON.stringify(kind === "paper" ? [kind, type, name, amount, lines] : [kind, name])
const fetchedOf = (run: Run): string => `2026-01-01 00:00:${String(run.sequence).padStart(2, "0")}+00`

/** The rows of a run as they would be published; of one that goes on, those of its first tasks. */
const put = Effect.fnUntraced(function* (connection: Connection, run: Run, tasks: ReadonlyArray<Task>) {
  const date = `DATE '${dateOf(run.day)}'`
  const statements = [
    ...["runs", "tasks", "coverage"].map((name) => `DELETE FROM ops.${name} WHERE run_id = '${run.run_id}'`),
    ...["papers", "other_records", "lines"].map(
      (name) => `DELETE FROM files.${name} WHERE run_id = '${run.run_id}'`,
    ),
    `INSERT INTO ops.runs BY NAME SELECT '${run.run_id}' AS run_id, '${run.job}' AS job, ${date} AS run_date,
      ${run.tasks.length} AS tasks, ${run.kind === "rerun" ? "'r-00'" : "NULL"} AS parent,
      [${run.replaces.map(literal).join(", ")}]::VARCHAR[] AS replaces, ${run.sequence} AS sequence`,
  ]
  for (const task of run.tasks)
    statements.push(`INSERT INTO ops.tasks BY NAME SELECT '${run.run_id}' AS run_id, ${date} AS run_date, '${taskId(run, task)}' AS task_id,
      '${task.customer}' AS customer_id, ${textOf(task.engine)} AS engine_reference,
      [${task.features.map(literal).join(", ")}]::VARCHAR[] AS features`)
  for (const task of tasks) {
    const lineage = `'${run.run_id}', ${date}, '${taskId(run, task)}'`
    for (const feature of told(task))
      statements.push(`INSERT INTO ops.coverage BY NAME SELECT '${run.run_id}' AS run_id, ${date} AS run_date, '${taskId(run, task)}' AS task_id,
        '${task.customer}' AS customer_id, ${textOf(task.engine)} AS engine_reference, '${feature}' AS feature,
        '${sessionOf(run, task, false)}' AS session_id,
        '${task.succeeded.includes(feature) ? "succeeded" : "failed"}' AS outcome`)
    const seen = new Map<string, number>()
    for (const row of rowsOf(task)) {
      const session = sessionOf(run, task, row.isEarlier)
      const base = row.kind === "paper" ? [row.type] : [row.name]
      const key = JSON.stringify([session, row.kind, base])
      const nth = seen.get(key) ?? 0
      seen.set(key, nth + 1)
      const owner = task.engine === null ? session : `${task.customer}/${task.engine}`
      const record = hash(owner, row.kind, base, nth)
      const first = `${lineage}, 'e', '${session}', '${task.customer}', ${textOf(task.engine)}, '${record}',
        '${hash(contentOf(row), run.old)}'`
      if (row.kind !== "paper")
        statements.push(
          `INSERT INTO files.other_records VALUES (${first}, '${row.kind}', '${row.kind}:x', '${fetchedOf(run)}', '{"name":"${row.name}"}')`,
        )
      else {
        statements.push(`INSERT INTO files.papers VALUES (${first}, 'paper', 'paper:id', '${fetchedOf(run)}',
          ${textOf(row.type)}, '${row.name}', ${row.amount ?? "NULL"}, NULL, NULL)`)
        for (const [position, line] of row.lines.entries())
          statements.push(`INSERT INTO files.lines VALUES (${first}, ${position}, '${line}', NULL, NULL)`)
      }
    }
  }
  yield* connection.run(statements.join(";\n"))
})

const step = Effect.fnUntraced(function* (connection: Connection, run: Run, interim = false) {
  const found = new Set<string>()
  for (const name of ["papers", "other_records", "lines"]) {
    const [row] = yield* connection.rows(
      `SELECT count(*)::INTEGER AS n FROM files.${name} WHERE run_id = '${run.run_id}'`,
    )
    if (Number(row?.["n"]) > 0) found.add(name)
  }
  const sources = new Map(
    [...found].map((name) => [name, `SELECT * FROM files.${name} WHERE run_id = '${run.run_id}'`] as const),
  )
  yield* stepRun(connection, tables, families, {
    run_id: run.run_id,
    sequence: run.sequence,
    interim,
    sources,
    lost: new Set(),
  })
})

const feeds = (feature: string, kind: string): boolean =>
  kind === "paper" ? feature.startsWith("paper_") : kind === "odd" || feature === kind

interface Told extends ToldRun {
  readonly sequence: number
}

/** The runs as the model takes them. */
const toldOf = (run: Run): Told => ({
  run_id: run.run_id,
  job: run.job,
  date: dateOf(run.day),
  kind: run.kind,
  sequence: run.sequence,
  replaces: run.replaces,
  tasks: run.tasks.map((task) => ({
    subject:
      task.engine === null
        ? `session ${sessionOf(run, task, false)}|${task.customer}`
        : `${task.customer}|${task.engine}`,
    isAlone: task.engine === null,
    features: task.features,
    told: told(task),
    succeeded: task.succeeded,
    rows: rowsOf(task).map((row) => ({
      kind: row.kind,
      key: row.kind === "paper" ? String(row.type) : undefined,
      content: contentOf(row),
      isEarlier: row.isEarlier,
    })),
  })),
})

const paper = `SELECT v.*, (SELECT list(l.line ORDER BY l.position) FROM store.lines AS l WHERE l._version = v._version) AS lines
  FROM store.papers AS v`
const scopeText = `CASE WHEN s._alone IS NULL THEN s.customer_id || '|' || s.engine_reference ELSE 'session ' || s._alone || '|' || s.customer_id END`
/** Every version, with its content as the model writes it. */
const versionsSql = `SELECT s._scope AS scope, ${scopeText} || '|paper' AS place, v.record_id, v.type,
    json_array('paper', v.type, v.name, CAST(v.amount AS VARCHAR), coalesce(v.lines, []))::VARCHAR AS content,
    v.valid_from::VARCHAR AS valid_from, v.valid_to::VARCHAR AS valid_to, v.ended_by, v._since_seq AS since_seq, v._until_seq AS until_seq, s.as_of::VARCHAR AS as_of
  FROM (${paper}) AS v JOIN store._scopes AS s USING (_scope) WHERE v.valid_from IS NOT NULL
  UNION ALL SELECT s._scope AS scope, ${scopeText} || '|' || s.product, v.record_id, NULL, json_array(s.product, v.record ->> 'name')::VARCHAR,
    v.valid_from::VARCHAR, v.valid_to::VARCHAR, v.ended_by, v._since_seq AS since_seq, v._until_seq AS until_seq, s.as_of::VARCHAR
  FROM store.other_records AS v JOIN store._scopes AS s USING (_scope) WHERE v.valid_from IS NOT NULL`

const versionsIn = (connection: Connection) =>
  Effect.map(connection.rows(versionsSql), (rows) =>
    rows.map((row) => {
      const place = String(row["place"])
      return {
        scope: place,
        key: place.endsWith("|paper") ? String(row["type"]) : undefined,
        content: String(row["content"]),
        record_id: String(row["record_id"]),
        since: Number(row["since_seq"]),
        until: row["until_seq"] === null ? undefined : Number(row["until_seq"]),
        valid_from: String(row["valid_from"]),
        valid_to: row["valid_to"] === null ? undefined : String(row["valid_to"]),
        ended_by: row["ended_by"] === null ? undefined : String(row["ended_by"]),
        as_of: String(row["as_of"]),
      }
    }),
  )

/** What each run read: to the row, with its own times of fetching. */
const checkNights = Effect.fnUntraced(function* (connection: Connection, runs: ReadonlyArray<Run>) {
  const rows =
    yield* connection.rows(`SELECT n.run_id, n.run_date::VARCHAR AS date, n.task_id, n.session_id, n.type, n.name,
      n.amount::VARCHAR AS amount, epoch(n.fetch_date)::INTEGER AS fetched, n.record_id,
      (SELECT coalesce(list(l.line ORDER BY l.position), []) FROM nights.lines AS l WHERE l.run_id = n.run_id AND l.task_id = n.task_id
        AND l.session_id = n.session_id AND l.record_id = n.record_id) AS lines
    FROM nights.papers AS n UNION ALL SELECT n.run_id, n.run_date::VARCHAR, n.task_id, n.session_id, NULL, n.record ->> 'name',
      NULL, epoch(n.fetch_date)::INTEGER, n.record_id, NULL FROM nights.other_records AS n`)
  const base = Date.UTC(2026, 0, 1) / 1000
  assert.deepStrictEqual(
    sorted(
      rows.map((row) => [
        row["run_id"],
        row["date"],
        row["task_id"],
        row["session_id"],
        row["type"],
        row["name"],
        row["amount"],
        row["fetched"],
        row["lines"],
      ]),
    ),
    sorted(
      runs.flatMap((run) =>
        run.tasks.flatMap((task) =>
          rowsOf(task).map((row) => [
            run.run_id,
            dateOf(run.day),
            taskId(run, task),
            sessionOf(run, task, row.isEarlier),
            ...(row.kind === "paper" ? [row.type, row.name, row.amount] : [null, row.name, null]),
            base + run.sequence,
            row.kind === "paper" ? row.lines : null,
          ]),
        ),
      ),
    ),
  )
  const keys = rows.map((row) =>
    JSON.stringify([row["run_id"], row["task_id"], row["session_id"], row["record_id"]]),
  )
  const repeated = rows.filter(
    (_, at) => keys.indexOf(keys[at]!) !== at || keys.lastIndexOf(keys[at]!) !== at,
  )
  assert.deepStrictEqual(repeated, [], "a key of nights stands twice")
})

const stored = [
  "_runs",
  "_scopes",
  "_asked",
  "_readings",
  "_coverage",
  "_dates",
  "papers",
  "lines",
  "other_records",
  "_seen_papers",
  "_seen_other_records",
]
const dump = (connection: Connection) =>
  Effect.forEach(stored, (name) =>
    Effect.map(connection.rows(`SELECT * FROM store.${name}`), (rows) => [name, sorted(rows)] as const),
  )

/** What is kept of all runs as they are added, as the rows of all runs say it. */
const gatheredSql = {
  coverage: `WITH told AS (SELECT c.*, r.seq, r.e, CASE WHEN c.engine_reference IS NULL THEN c.session_id END AS alone
      FROM ops.coverage AS c JOIN store._runs AS r USING (run_id) JOIN ops.tasks AS t USING (run_id, task_id)
      WHERE c.engine_reference IS NULL OR EXISTS (FROM store._asked AS a WHERE a.customer_id = c.customer_id
        AND a.engine_reference = c.engine_reference
        AND (a.feature IS NULL OR a.feature = c.feature OR NOT list_contains(t.features, c.feature))))
    SELECT customer_id, engine_reference, session_id, feature, outcome, run_id, run_date,
      max(e) FILTER (outcome = 'succeeded') OVER same AS fresh_date
    FROM told WINDOW same AS (PARTITION BY customer_id, engine_reference, alone, feature)
    QUALIFY seq = max(seq) OVER same`,
  customers: `SELECT customer_id, min(run_date) AS first_seen, max(run_date) AS last_seen FROM ops.tasks
    WHERE customer_id IN (SELECT customer_id FROM store._asked) GROUP BY customer_id`,
  features: `SELECT feature AS code, min(run_date) AS first_seen, max(run_date) AS last_seen FROM ops.coverage
    WHERE feature IN (SELECT feature FROM store._asked WHERE engine_reference IS NOT NULL) GROUP BY feature`,
}

const checkGathered = Effect.fnUntraced(function* (connection: Connection) {
  for (const [name, sql] of Object.entries(gatheredSql)) {
    const columns = (yield* connection.columnTypes(sql)).map((one) => one.name).join(", ")
    const kept = yield* connection.rows(`SELECT ${columns} FROM main.${name}`)
    assert.deepStrictEqual(sorted(kept), sorted(yield* connection.rows(sql)), name)
  }
})

const live = Effect.fnUntraced(function* (seed: number) {
  const { chance, int } = drawing(seed + 500_000)
  const runs = drawRuns(seed)
  const duckdb = yield* DuckDb
  const connection = yield* duckdb.open({ path: ":memory:", access: "read-write", threads: 1 })
  yield* begin(connection)
  for (const one of runs) {
    if (one.tasks.length > 0 && chance(0.2)) {
      yield* put(connection, one, one.tasks.slice(0, int(0, one.tasks.length)))
      yield* step(connection, one, true)
      yield* unstepNewest(connection, tables, one.sequence)
    }
    yield* put(connection, one, one.tasks)
    const before = chance(0.2) ? yield* dump(connection) : undefined
    yield* step(connection, one)
    yield* checkGathered(connection)
    if (before === undefined) continue
    yield* unstepNewest(connection, tables, one.sequence)
    const again = yield* dump(connection)
    // Hashes are brought up to date for good.
    const withoutHash = (all: typeof again) =>
      all.map(([name, rows]) => [name, rows.map((row) => row.replace(/"content_id":"\w+",/, "")).toSorted()])
    assert.deepStrictEqual(withoutHash(again), withoutHash(before), `${one.run_id} taken back`)
    yield* step(connection, one)
  }
  const expected = moments(runs.map(toldOf), kinds, feeds)
  checkVersions(yield* versionsIn(connection), expected, ({ sequence }) => sequence, `seed ${seed}`)
  for (const [index, later] of expected.entries())
    yield* checkBetween(connection, expected[Math.max(0, index - int(1, 5))]!, later)
  yield* checkNights(connection, runs)
}, Effect.scoped)

const changesSql = `SELECT CASE WHEN c.engine_reference IS NULL THEN 'session s-' || c.customer_id || '|' || c.customer_id
      ELSE c.customer_id || '|' || c.engine_reference END || '|' || c.product AS place, c.product, c.change,
    c.changed_columns, c.before, c.after FROM changes(?, ?) AS c`

const contentIn = (product: unknown, told: unknown): string | null => {
  if (told === null) return null
  const { type, name, amount, lines, record } = JSON.parse(String(told))
  if (record !== undefined) return JSON.stringify([product, record.name])
  return JSON.stringify(["paper", type, name, amount, lines.map((item: { line: string }) => item.line)])
}

/** Between any two runs. */
const checkBetween = Effect.fnUntraced(function* (
  connection: Connection,
  earlier: Moment<Told>,
  later: Moment<Told>,
) {
  const rows = yield* connection.rows(changesSql, [earlier.run.run_id, later.run.run_id])
  const found = rows.map(({ place, product, change, changed_columns, before, after }) => ({
    scope: String(place),
    change: String(change),
    changed_columns,
    before: contentIn(product, before),
    after: contentIn(product, after),
  }))
  checkChanges(found, earlier, later, `from ${earlier.run.run_id} to ${later.run.run_id}`)
})

describe("the history of records", () => {
  it.effect(
    "keeps what a run that goes on has brought when another job's is added [decision 10 goes on]",
    () =>
      Effect.gen(function* () {
        const duckdb = yield* DuckDb
        const connection = yield* duckdb.open({ path: ":memory:", access: "read-write", threads: 1 })
        yield* begin(connection)
        const row = {
          kind: "odd" as const,
          type: null,
          name: "Ana",
          amount: null,
          lines: [],
          isEarlier: false,
        }
        const of = (customer: string, job: string, sequence: number): Run => ({
          run_id: `r-${job}`,
          job,
          day: sequence,
          sequence,
          kind: "whole",
          replaces: [],
          tasks: [{ customer, engine: "bank:website", features, succeeded: features, rows: [row] }],
          old: false,
        })
        const [first, second] = [of("c-1", "a", 1), of("c-2", "b", 2)]
        yield* put(connection, first, first.tasks)
        yield* step(connection, first, true)
        yield* put(connection, second, second.tasks)
        yield* step(connection, second)
        const rows = yield* connection.rows("SELECT customer_id FROM main.other_records ORDER BY 1")
        assert.deepStrictEqual(rows, [{ customer_id: "c-1" }, { customer_id: "c-2" }])
      }).pipe(Effect.scoped, Effect.provide(DuckDb.layer)),
  )

  it.effect(
    "is what a model computes from the bodies of nights in any order [promise 17] [promise 18]",
    () =>
      Effect.forEach(
        Array.from(
          { length: Number(process.env["SEEDS"] ?? 2) },
          (_, i) => Number(process.env["FROM"] ?? 1) + i,
        ),
        live,
        { discard: true },
      ).pipe(Effect.provide(DuckDb.layer)),
    600_000,
  )
})
