/**
 * The history of records against a model that computes it from the bodies: nights of two jobs in a drawn order, with
 * customers, engines and features coming and going, failures, reruns of older nights, partial ends, interim versions,
 * replaced jobs, duplicate keys, and hashes of another version of the program.
 */
import { assert, describe, it } from "@effect/vitest"
import { createHash } from "node:crypto"
import { Effect } from "effect"
import { DuckDb } from "../../src/base/DuckDb.ts"
import type { Connection } from "../../src/base/DuckDb.ts"
import { literal } from "../../src/base/DuckDbFailed.ts"
import { stepRun, unstepNewest } from "../../src/tables/Step.ts"
import { drawing } from "../harness/Drawing.ts"
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
    statements.push(`INSERT INTO ops.tasks BY NAME SELECT '${run.run_id}' AS run_id, '${taskId(run, task)}' AS task_id,
      '${task.customer}' AS customer_id, ${textOf(task.engine)} AS engine_reference,
      [${task.features.map(literal).join(", ")}]::VARCHAR[] AS features`)
  for (const task of tasks) {
    const lineage = `'${run.run_id}', ${date}, '${taskId(run, task)}'`
    for (const feature of told(task))
      statements.push(`INSERT INTO ops.coverage BY NAME SELECT '${run.run_id}' AS run_id, '${taskId(run, task)}' AS task_id,
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

// The model: what is current after each run, from the bodies.

interface Current {
  readonly scope: string
  readonly content: string
  readonly type: string | null
  readonly as_of: string
}
interface Moment {
  readonly run: Run
  readonly e: string
  readonly current: ReadonlyArray<Current>
}

const feeds = (feature: string, kind: Kind): boolean =>
  kind === "paper" ? feature.startsWith("paper_") : kind === "odd" || feature === kind

const moments = (runs: ReadonlyArray<Run>): ReadonlyArray<Moment> => {
  const asked = new Map<string, ReadonlyArray<readonly [subject: string, features: ReadonlyArray<string>]>>()
  let scopes = new Map<
    string,
    { readonly as_of: string; readonly loose: boolean; readonly rows: ReadonlyArray<Row> }
  >()
  const known = new Set<string>()
  const all: Array<Moment> = []
  let e = ""
  for (const run of runs) {
    e = e > dateOf(run.day) ? e : dateOf(run.day)
    if (run.kind === "whole" && run.tasks.length > 0) {
      asked.set(
        run.job,
        run.tasks
          .filter(({ engine }) => engine !== null)
          .map((task) => [`${task.customer}|${task.engine}`, task.features]),
      )
      for (const job of run.replaces) asked.delete(job)
    }
    const isAsked = (subject: string, kind: Kind, loose: boolean): boolean =>
      subject.startsWith("session ") ||
      [...asked.values()]
        .flat()
        .some(
          ([one, wanted]) =>
            one === subject &&
            (loose || wanted.length === 0 || wanted.some((feature) => feeds(feature, kind))),
        )
    const answers = new Map<string, { readonly loose: boolean; readonly rows: ReadonlyArray<Row> }>()
    for (const task of run.tasks)
      for (const kind of kinds) {
        const subject =
          task.engine === null
            ? `session ${sessionOf(run, task, false)}|${task.customer}`
            : `${task.customer}|${task.engine}`
        const scope = `${subject}|${kind}`
        const rows = rowsOf(task).filter((row) => row.kind === kind)
        if (rows.length > 0) known.add(scope)
        if (!known.has(scope)) continue
        const feeding = told(task).filter((feature) => feeds(feature, kind))
        const good = feeding.filter((feature) => task.succeeded.includes(feature))
        const isWhole = feeding.length > 0 && good.length === feeding.length
        const isPartly =
          feeding.length > 0
            ? good.length > 0
            : task.succeeded.some((feature) => told(task).includes(feature))
        if (isWhole || (rows.length > 0 && isPartly))
          answers.set(scope, {
            loose: feeding.length === 0,
            rows: rows.filter(({ isEarlier }) => !isEarlier),
          })
      }
    const next = new Map(scopes)
    for (const scope of new Set([...scopes.keys(), ...answers.keys()])) {
      const parts = scope.split("|")
      const kind = parts[2] as Kind
      const subject = `${parts[0]}|${parts[1]}`
      const answer = answers.get(scope)
      const loose = answer?.loose ?? scopes.get(scope)?.loose ?? false
      if (!isAsked(subject, kind, loose)) {
        const before = scopes.get(scope)
        if (before !== undefined) next.set(scope, { ...before, rows: [] })
      } else if (answer !== undefined) next.set(scope, { as_of: e, ...answer })
    }
    scopes = next
    const current = [...scopes].flatMap(([scope, { as_of, rows }]) =>
      rows.map((row) => ({ scope, content: contentOf(row), type: row.type, as_of })),
    )
    all.push({ run, e, current })
  }
  return all
}

const sorted = (all: ReadonlyArray<unknown>): ReadonlyArray<string> =>
  all.map((one) => JSON.stringify(one)).toSorted()

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

const checkAgainst = Effect.fnUntraced(function* (connection: Connection, expected: ReadonlyArray<Moment>) {
  const versions = yield* connection.rows(versionsSql)
  const last = expected.at(-1)!
  const open = versions.filter(({ until_seq }) => until_seq === null)
  assert.deepStrictEqual(
    sorted(open.map(({ place, content, as_of }) => [place, content, as_of])),
    sorted(last.current.map(({ scope, content, as_of }) => [scope, content, as_of])),
  )
  let before: ReadonlyArray<Current> = []
  for (const { run, e, current } of expected) {
    const seq = run.sequence
    const alive = versions.filter(
      ({ since_seq, until_seq }) =>
        Number(since_seq) <= seq && (until_seq === null || Number(until_seq) > seq),
    )
    assert.deepStrictEqual(
      sorted(alive.map(({ place, content }) => [place, content])),
      sorted(current.map(({ scope, content }) => [scope, content])),
      `after ${run.run_id}`,
    )
    const ids = alive.map(({ scope, record_id }) => `${scope} ${record_id}`)
    assert.strictEqual(new Set(ids).size, ids.length, "a record stands twice")
    // As many begin and end as the model's contents differ: no version ends for nothing.
    const [was, is] = [
      sorted(before.map(({ scope, content }) => [scope, content])),
      sorted(current.map(({ scope, content }) => [scope, content])),
    ]
    const rest = [...was]
    let begun = 0
    for (const one of is) {
      const at = rest.indexOf(one)
      if (at < 0) begun += 1
      else rest.splice(at, 1)
    }
    const since = versions.filter(({ since_seq }) => Number(since_seq) === seq)
    const until = versions.filter(({ until_seq }) => Number(until_seq) === seq)
    assert.deepStrictEqual([since.length, until.length], [begun, rest.length], `versions of ${run.run_id}`)
    for (const { valid_from } of since) assert.strictEqual(valid_from, e)
    for (const { valid_to } of until) assert.strictEqual(valid_to, e)
    // A record has changed where one with its business key takes its place, as often as there is one.
    for (const [place, ended] of Map.groupBy(until, ({ place, type }) => `${place} ${type}`)) {
      const next = since.filter((one) => `${one["place"]} ${one["type"]}` === place)
      const isAsked = ended.every(({ ended_by }) => ended_by !== "not requested")
      const expectedChanged = place.includes("|paper ") && isAsked ? Math.min(ended.length, next.length) : 0
      const changed = ended.filter(({ ended_by }) => ended_by === "changed")
      assert.strictEqual(changed.length, expectedChanged, `changed in ${place}`)
      for (const { record_id } of changed) assert.isTrue(next.some((one) => one["record_id"] === record_id))
    }
    before = current
  }
})

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
    if (before === undefined) continue
    yield* unstepNewest(connection, tables, one.sequence)
    const again = yield* dump(connection)
    // Hashes are brought up to date for good.
    const withoutHash = (all: typeof again) =>
      all.map(([name, rows]) => [name, rows.map((row) => row.replace(/"content_id":"\w+",/, "")).toSorted()])
    assert.deepStrictEqual(withoutHash(again), withoutHash(before), `${one.run_id} taken back`)
    yield* step(connection, one)
  }
  const expected = moments(runs)
  yield* checkAgainst(connection, expected)
  for (const [index, later] of expected.entries())
    yield* checkChanges(connection, expected[Math.max(0, index - int(1, 5))]!, later)
  yield* checkNights(connection, runs)
}, Effect.scoped)

interface Told {
  readonly place: string
  readonly before: string | null
  readonly after: string | null
}

const changesSql = `SELECT CASE WHEN c.engine_reference IS NULL THEN 'session s-' || c.customer_id || '|' || c.customer_id
      ELSE c.customer_id || '|' || c.engine_reference END || '|' || c.product AS place, c.change, c.table_name,
    c.changed_columns, c.before, c.after FROM changes(?, ?) AS c`

const contentIn = (told: unknown): string | null => {
  if (told === null) return null
  const { type, name, amount, lines, record } = JSON.parse(String(told))
  if (record !== undefined) return JSON.stringify([record.name])
  return JSON.stringify([type, name, amount, lines.map((item: { line: string }) => item.line)])
}

/** What one multiset has and the other has not. */
const minus = (one: ReadonlyArray<string>, other: ReadonlyArray<string>): ReadonlyArray<string> => {
  const rest = [...other]
  return one.filter((each) => {
    const at = rest.indexOf(each)
    if (at >= 0) rest.splice(at, 1)
    return at < 0
  })
}

/** Between any two runs, what is told to have come and gone is what differs between their contents. */
const checkChanges = Effect.fnUntraced(function* (connection: Connection, earlier: Moment, later: Moment) {
  const rows = yield* connection.rows(changesSql, [earlier.run.run_id, later.run.run_id])
  const told = rows.map(({ place, before, after }): Told => ({
    place: String(place),
    before: contentIn(before),
    after: contentIn(after),
  }))
  const contents = ({ current }: Moment) =>
    current.map(({ scope, content }) => `${scope} ${JSON.stringify(JSON.parse(content).slice(1))}`)
  const gone = told.flatMap(({ place, before }) => (before === null ? [] : [`${place} ${before}`]))
  const come = told.flatMap(({ place, after }) => (after === null ? [] : [`${place} ${after}`]))
  // Of several records with one key, two may have changed places.
  assert.deepStrictEqual(minus(come, gone).toSorted(), minus(contents(later), contents(earlier)).toSorted())
  assert.deepStrictEqual(minus(gone, come).toSorted(), minus(contents(earlier), contents(later)).toSorted())
  for (const { change, changed_columns } of rows)
    assert.strictEqual(change === "changed", Array.isArray(changed_columns) && changed_columns.length > 0)
})

describe("the history of records", () => {
  it.effect(
    "is what a model computes from the bodies of nights in any order [promise 17] [promise 18]",
    () =>
      Effect.forEach(
        Array.from(
          { length: Number(process.env["SEEDS"] ?? 12) },
          (_, i) => Number(process.env["FROM"] ?? 1) + i,
        ),
        live,
        { discard: true },
      ).pipe(Effect.provide(DuckDb.layer)),
    600_000,
  )
})
