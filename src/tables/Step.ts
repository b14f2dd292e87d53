/**
 * The history of all records as a fold over runs, in the order in which they began: `stepRun` adds one run,
 * `unstepNewest` takes the newest one away. Publishing does one step, building a database anew does all of
 * them; there is no other way that `store` changes.
 *
 * What a run answers and somebody still asks for (`Answers.ts`) is current; a record that was not found again
 * is gone; what nobody asks for any more ends as not requested. All that a step needs is in published rows.
 */
import { Effect } from "effect"
import type { Connection } from "../base/DuckDb.ts"
import { identifier, literal } from "../base/DuckDbFailed.ts"
import { sha256Hex } from "../base/Hashes.ts"
import type { RecordFamily } from "../records/RecordSchema.ts"
import { answer, askedAnew, kind, lastAnswers, names, sameSql, temp } from "./Answers.ts"
import type { Meta, SteppedRun } from "./Answers.ts"
import { gatherRun, gatherWithout } from "./Dimensions.ts"
import {
  allOf,
  contentOf,
  decisive,
  listsOf,
  listsStored,
  namesOf,
  ofReading,
  restText,
} from "./RecordStore.ts"
import { seenOf, stored, type Compared, type KeptTable } from "./RecordStore.ts"

/** What a step needs to know of a table: where it is kept, and what its run has of it. */
interface Stepping {
  readonly table: KeptTable
  /** Its number among the tables, which names its rows of the run. */
  readonly index: number
  readonly run: SteppedRun
  readonly meta: Meta
}

/** Further columns of a list: what each reading has of its own. */
const readIn = (alias: string, table: KeptTable): string =>
  ofReading(table)
    .map(({ name }) => `, ${alias}.${identifier(name)}`)
    .join("")

/**
 * `step_inc`: what came, by scope and reading, without its cells, of which most are known; `step_same`: which
 * open version each is, by its hash. `step_left` is on its own, so that its few cells alone are looked for.
 */
const matchSql = ({ table, index }: Stepping): string => {
  const own = ofReading(table).map(({ name, type }) =>
    name === "_rest" ? `, NULL::${type} AS _rest` : `, s.${identifier(name)}`,
  )
  return `${temp("inc")} SELECT s._ord, s.task_id, s.session_id, s.record_id, s.content_id${own.join("")},
        q._scope, q._reading, q._answered,
        row_number() OVER (PARTITION BY q._reading, s.content_id ORDER BY s._ord) AS _nth
      FROM step_src_${index} AS s JOIN step_read AS q
        ON q.task_id = s.task_id AND ${sameSql("q", "s", ["session_id", ...kind])};
  ${temp("open")} SELECT v.rowid AS id, v._version, v._scope, v.record_id, v.content_id,
        row_number() OVER (PARTITION BY v._scope, v.content_id ORDER BY v._version) AS _nth
      FROM ${stored(table.name)} AS v
      WHERE v._until_seq IS NULL AND v._scope IN (SELECT _scope FROM step_read);
  ${temp("same")} SELECT i._ord, i._reading, i._answered, i.task_id, i.session_id, i.record_id AS read_id,
        o.id, o._version, o.record_id
      FROM step_inc AS i JOIN step_open AS o USING (_scope, content_id, _nth);
  ${temp("left")} SELECT _ord, _scope, _reading, _answered FROM step_inc ANTI JOIN step_same USING (_ord);
  CREATE OR REPLACE TEMP VIEW step_unmatched AS SELECT s.*, i.* EXCLUDE (_ord)
      FROM step_src_${index} AS s JOIN step_left AS i USING (_ord);
  ${unseenSql(table, " AND v._version NOT IN (SELECT _version FROM step_same WHERE _answered)")}`
}

/**
 * `step_unseen`: what was not found; `stays`: it may be missing because a feature did not succeed. Where none
 * did, only what the same session said before ends; without a key all ends, since what changed would stay
 * beside what it was, one more each night.
 */
const unseenSql = (table: KeptTable, where = ""): string => {
  const ofOthers = table.key.length > 0 ? "v.session_id IS DISTINCT FROM h.session_id" : "false"
  return `${temp("unseen")} SELECT v.rowid AS id, v._version, h.was_as_of, h.was_lacks,
        CASE WHEN h.short THEN ${ofOthers}
          ELSE NOT h.was_short AND NOT list_has_all(coalesce(v._kept.lacks, h.was_lacks), h.lacks)
        END AS stays
      FROM ${stored(table.name)} AS v JOIN step_here AS h USING (_scope)
      WHERE v._until_seq IS NULL${where};`
}

/** A file of an older version may name no task. */
export const isItemOf = (item: string, record: string, id: string): string =>
  `${item}.record_id = ${record}.${id} AND ${item}.session_id IS NOT DISTINCT FROM ${record}.session_id
    AND coalesce(${item}.task_id, ${record}.task_id) = ${record}.task_id`

/** The same of the rows of the run that are in `of`, a table of the step with a column `_ord`. */
const listsCome = ({ table, run }: Stepping, what: Compared, of: string): string =>
  listsOf(
    table,
    what,
    (child) => {
      const source = run.sources.get(child.name)
      return source === undefined
        ? `SELECT u._ord, x.* FROM ${stored(child.name)} AS x JOIN ${of} AS u ON false`
        : `SELECT u._ord, x.* FROM (${source}) AS x JOIN ${of} AS u ON ${isItemOf("x", "u", "record_id")}`
    },
    "_ord",
  )

/**
 * How many pairs of what came and what is missing may be equal, whatever made their hashes: they differ in
 * their lists at most, which take long to compare.
 */
const likelySql = ({ table }: Stepping): string =>
  `SELECT count(*)::INTEGER AS likely FROM step_unmatched AS f
    JOIN (FROM ${stored(table.name)} WHERE rowid IN (SELECT id FROM step_unseen)) AS l
    ON ${sameSql("f", "l", ["_scope", ...contentOf(table)])}`

/** `step_found` and `step_lost`: what came and has no equal hash, and what is missing, as it is compared. */
const differingSql = (stepping: Stepping): string => {
  const { table } = stepping
  return `${temp("found")} SELECT r._ord, r._reading, r._answered, r._scope, r.task_id, r.session_id,
        r.record_id, r.content_id, ${allOf(table, "columns")} AS _all
      FROM step_unmatched AS r ${listsCome(stepping, "columns", "step_unmatched")};
  ${temp("lost")} SELECT u.id AS _id, r._version, r._scope, r.record_id, r.content_id,
        ${allOf(table, "columns")} AS _all
      FROM step_unseen AS u JOIN ${stored(table.name)} AS r ON r.rowid = u.id
        ${listsStored(table, "columns", "step_unseen")};`
}

/** `step_equal`: of rows that are equal more than once, each is one. */
const equalSql = (): string => {
  const nth = (what: string, order: string) =>
    `row_number() OVER (PARTITION BY ${what}, _all ORDER BY ${order}) AS _equal`
  return `${temp("equal")} SELECT f._ord, f._reading, f._answered, f.task_id, f.session_id,
      f.record_id AS read_id, l._id AS id, l._version, l.record_id, f.content_id, l.content_id AS was
    FROM (SELECT *, ${nth("_reading", "_ord")} FROM step_found) AS f
      JOIN (SELECT *, ${nth("_scope", "_version")} FROM step_lost) AS l
      ON l._scope = f._scope AND l._equal = f._equal AND l._all IS NOT DISTINCT FROM f._all
      ANTI JOIN step_same AS s ON s._reading = f._reading AND s._version = l._version;`
}

/** What is equal is the same, with the hash that it has by now; so has its twin that was not found. */
const takeEqualSql = ({ table }: Stepping): string => {
  const place = stored(table.name)
  return `INSERT INTO step_same SELECT * EXCLUDE (content_id, was) FROM step_equal;
  UPDATE ${place} SET content_id = q.content_id
    FROM (SELECT id, content_id FROM step_equal WHERE _answered
      UNION SELECT o.id, q.content_id FROM step_equal AS q JOIN step_open AS o ON o.content_id = q.was
      WHERE q._answered) AS q WHERE ${place}.rowid = q.id;
  DELETE FROM step_left WHERE _ord IN (SELECT _ord FROM step_equal);
  DELETE FROM step_unseen WHERE _version IN (SELECT _version FROM step_equal WHERE _answered);`
}

/** A cell in which more records of one key are equal does not tell which of them one is. */
const equalMax = 16
/** About how many comparisons are in memory at once. */
const comparisonsMax = 200_000

/**
 * `step_near`: what came beside missing records of its key, with how many cells are equal. Only those are
 * compared that are among few that are equal in a cell, or in all but one: of a thousand with one key, each
 * with each would be a million.
 */
const nearSql = ({ table }: Stepping, key: ReadonlyArray<string>): string => {
  const of = decisive(table).map((name) => `_all.${identifier(name)}`)
  const hashes = of.map((cell, at) => `hash(${at}, x.${cell})`)
  const told = (name: string, rows: string, id: string) => `${temp(`${name}_cells`)} FROM (
      SELECT *, unnest(cells || list_transform(cells, lambda cell: xor(cell, whole))) AS cell
      FROM (SELECT *, list_reduce(cells, lambda one, other: xor(one, other)) AS whole
        FROM (SELECT ${names([...key, id], "r.")}, [${hashes.join(", ")}] AS cells
          FROM step_${rows} AS x JOIN step_${name} AS r USING (${id}))))
    QUALIFY count(*) OVER (PARTITION BY ${names([...key, "cell"])}) <= ${equalMax};`
  const alike = of.map((cell) => `(y.${cell} IS NOT DISTINCT FROM x.${cell})::INTEGER`)
  return `${told("came", "found", "_ord")}
  ${told("were", "lost", "_version")}
  ${temp("near")} SELECT n.*, x.content_id, ${alike.join(" + ")} AS alike
    FROM (SELECT DISTINCT f._ord, l._version, hash(${names(key, "f.")}) AS bucket
      FROM step_came_cells AS f JOIN step_were_cells AS l
        ON ${sameSql("l", "f", [...key, "cell"])}) AS n
      JOIN step_found AS x USING (_ord) JOIN step_lost AS y USING (_version);`
}

/** Of those that are compared, the most alike are one record, each once. */
const pairNear = Effect.fnUntraced(function* (connection: Connection) {
  const [row] = yield* connection.rows("SELECT count(*)::INTEGER AS pairs FROM step_near")
  const batches = Math.ceil(Number(row?.["pairs"]) / comparisonsMax)
  for (let batch = 0; batch < batches; batch++) {
    const rows = yield* connection.rows(`SELECT _ord AS came, _version AS was FROM step_near
      WHERE bucket % ${batches} = ${batch} ORDER BY alike DESC, was, content_id, came`)
    const [cames, wases] = [new Set<string>(), new Set<string>()]
    for (const one of rows) {
      const [came, was] = [String(one["came"]), String(one["was"])]
      if (cames.has(came) || wases.has(was)) continue
      cames.add(came)
      wases.add(was)
    }
    yield* connection.run(
      `INSERT INTO step_pairs SELECT p.came, p.was, l.record_id
      FROM (${inParallel("BIGINT", "INTEGER")}) AS p(came, was) JOIN step_lost AS l ON l._version = p.was`,
      [[...cames], [...wases]],
    )
  }
})

/**
 * `step_pairs`: which missing record each of those that came is now, unless it stays. One of a business key
 * is; of several, those that are most alike are, and the rest in the order of their cells.
 */
const pair = Effect.fnUntraced(function* (connection: Connection, stepping: Stepping, isCompared: boolean) {
  const { table } = stepping
  const key = ["_scope", ...table.key]
  const ofKey = sameSql("l", "f", key)
  const counted = `count(*) OVER (PARTITION BY ${names(key)}) AS _of`
  const isPaired = (id: string) => `${id} IN (SELECT ${id} FROM step_pairs)`
  yield* connection.run(
    `${temp("came")} SELECT ${names([...key, "_ord"])}, ${counted} FROM step_unmatched WHERE _answered;
  ${temp("were")} SELECT ${names([...key, "record_id", "_version"])}, ${counted}
    FROM ${stored(table.name)} AS v WHERE v.rowid IN (SELECT id FROM step_unseen);
  ${temp("pairs")} SELECT f._ord, l._version, l.record_id FROM step_came AS f JOIN step_were AS l ON ${ofKey}
    WHERE f._of = 1 AND l._of = 1;
  DELETE FROM step_were WHERE ${isPaired("_version")}
    OR _version IN (SELECT _version FROM step_unseen WHERE stays);
  ${temp("came")} FROM step_came AS f SEMI JOIN step_were AS l ON ${ofKey} WHERE NOT ${isPaired("_ord")};`,
  )
  const [row] = yield* connection.rows("SELECT count(*)::INTEGER AS several FROM step_came")
  if (Number(row?.["several"]) === 0) return
  if (!isCompared) yield* connection.run(differingSql(stepping))
  const ordered = (rows: string, all: string, id: string) => `SELECT r.*, row_number()
      OVER (PARTITION BY ${names(key, "r.")} ORDER BY x._all, r.${id}) AS _place
    FROM step_${rows} AS r JOIN step_${all} AS x USING (${id})
    WHERE r.${id} NOT IN (SELECT ${id} FROM step_pairs)`
  yield* connection.run(nearSql(stepping, key))
  yield* pairNear(connection)
  yield* connection.run(`INSERT INTO step_pairs SELECT f._ord, l._version, l.record_id
    FROM (${ordered("came", "found", "_ord")}) AS f JOIN (${ordered("were", "lost", "_version")}) AS l
      ON ${ofKey} AND l._place = f._place`)
})

/** Lists of values side by side as a table: a statement that names very many takes minutes to plan. */
const inParallel = (...types: ReadonlyArray<string>): string =>
  `SELECT ${types.map((type) => `unnest(?::VARCHAR[])::${type}`).join(", ")}`

const noPairs = `${temp("pairs")} SELECT 0::BIGINT AS _ord, 0 AS _version, '' AS record_id LIMIT 0;`

/** What was not found again ends, unless it stays. */
const endSql = ({ table, run, meta }: Stepping): string => `${temp("staying")} FROM step_unseen
    WHERE stays AND _version NOT IN (SELECT _version FROM step_pairs);
  DELETE FROM step_unseen WHERE id IN (SELECT id FROM step_staying);
  UPDATE ${stored(table.name)} SET valid_to = DATE ${literal(meta.e)}, _until_seq = ${run.sequence},
      ended_by = CASE WHEN _version IN (SELECT _version FROM step_pairs) THEN 'changed' ELSE 'gone' END
    WHERE rowid IN (SELECT id FROM step_unseen);`

/** What stays is as of the answer that had it last. The update moves rows: no `id` holds after it. */
const staySql = ({ table }: Stepping): string => `UPDATE ${stored(table.name)}
    SET _kept = {as_of: s.was_as_of, lacks: s.was_lacks}
    FROM step_staying AS s WHERE ${stored(table.name)}._version = s._version AND _kept IS NULL;`

/**
 * Adds `_rest` to `step_inc`: `misfits` and `extra` of what was found again, if they are others than when its
 * version was first read. They are no content, and usually nothing has any.
 */
const restSql = (stepping: Stepping): string => {
  const { table, index } = stepping
  return `UPDATE step_inc SET _rest = ${restText(table, "n.rest")} FROM (
    SELECT m._ord, c.rest
    FROM step_same AS m
      JOIN (SELECT r._ord, ${allOf(table, "rest")} AS rest FROM step_src_${index} AS r
        ${listsCome(stepping, "rest", "step_inc")}) AS c USING (_ord)
      JOIN (SELECT r._version, ${allOf(table, "rest")} AS rest
        FROM (FROM ${stored(table.name)} WHERE rowid IN (SELECT id FROM step_same)) AS r
        ${listsStored(table, "rest", "step_same")}) AS w USING (_version)
    WHERE c.rest IS DISTINCT FROM w.rest) AS n
  WHERE n._ord = step_inc._ord`
}

/** A row if anything that came, or that is current, has `misfits` or `extra`; none otherwise. */
const hasRestSql = ({ table, index, run }: Stepping): string => {
  const has = (rows: string, columns: ReadonlyArray<string>, where = "true") => {
    const isEmpty = columns.map((name) => `${identifier(name)} IS NULL`).join(" AND ")
    return `SELECT 1 FROM ${rows} WHERE ${where} AND NOT (${isEmpty})`
  }
  const rest = namesOf(table.rest)
  const parts = [
    has(`step_src_${index}`, rest),
    has(stored(table.name), [...rest, "_rest"], "_until_seq IS NULL"),
    ...table.children.flatMap((child) => {
      const source = run.sources.get(child.name)
      return [has(stored(child.name), rest), ...(source === undefined ? [] : [has(`(${source})`, rest)])]
    }),
  ]
  return `${parts.join(" UNION ALL ")} LIMIT 1`
}

/** What was found again is as it was read now, but for its content. */
const readAgainSql = ({ table }: Stepping): string => {
  const place = stored(table.name)
  const cells = ofReading(table).map(({ name }) => identifier(name))
  const found = `UPDATE ${place} SET _kept = NULL
    WHERE _kept IS NOT NULL AND _version IN (SELECT _version FROM step_same WHERE _answered);`
  if (cells.length === 0) return found
  return `UPDATE ${place} SET ${cells.map((name) => `${name} = i.${name}`).join(", ")}
    FROM (SELECT s.id, ${cells.map((name) => `arg_max_null(i.${name}, s._reading) AS ${name}`).join(", ")}
      FROM step_same AS s JOIN step_inc AS i USING (_ord) WHERE s._answered GROUP BY s.id) AS i
    WHERE ${place}.rowid = i.id;
  ${found}`
}

/** `step_new`: the versions that begin. An id stands once in a scope, or in a reading that answers none. */
const beginSql = ({ table }: Stepping): string =>
  `${temp("new")} SELECT u._ord, u._reading, u._answered, u._scope, u.task_id, u.session_id,
      u.record_id AS read_id, coalesce(p.record_id, u.record_id) AS record_id,
      p.record_id IS NOT NULL AS paired,
      CASE WHEN u._answered THEN 's' || u._scope ELSE 'r' || u._reading END AS place,
      (SELECT coalesce(max(_version), 0) FROM ${stored(table.name)})
        + row_number() OVER (ORDER BY u.customer_id, u.engine_reference, u._scope, u._ord) AS _version
    FROM step_unmatched AS u LEFT JOIN step_pairs AS p ON p._ord = u._ord;
  ${temp("taken")} SELECT 's' || o._scope AS place, o.record_id FROM step_open AS o
      WHERE o._scope IN (SELECT _scope FROM step_new WHERE _answered AND NOT paired)
        AND o._version NOT IN (SELECT _version FROM step_unseen)
    UNION ALL SELECT place, record_id FROM step_new WHERE paired
    UNION ALL SELECT 'r' || s._reading, o.record_id
      FROM step_same AS s JOIN step_open AS o USING (_version) WHERE NOT s._answered;`

const hashed = (text: string): string => sha256Hex(text).slice(0, 32)

/** Gives further records of one key numbers, where their ids would stand twice. */
const renumber = Effect.fnUntraced(function* (connection: Connection) {
  const rows = yield* connection.rows(`SELECT n._ord AS came, n.place, n.record_id
    FROM (SELECT *, row_number() OVER (PARTITION BY place, record_id ORDER BY _ord) AS _nth
      FROM step_new WHERE NOT paired) AS n LEFT JOIN (SELECT DISTINCT place, record_id FROM step_taken) AS t
      ON t.place = n.place AND t.record_id = n.record_id
    WHERE n._nth > 1 OR t.place IS NOT NULL ORDER BY n._ord`)
  if (rows.length === 0) return
  const places = [...new Set(rows.map(({ place }) => String(place)))]
  const known = yield* connection.rows(
    `SELECT place, record_id FROM (FROM step_taken UNION ALL SELECT place, record_id FROM step_new)
    WHERE place IN (SELECT unnest(?::VARCHAR[]))`,
    [places],
  )
  const taken = new Set(known.map((one) => `${String(one.place)} ${String(one.record_id)}`))
  // From where to count on: one body may hold very many records of one key.
  const numbers = new Map<string, number>()
  const ids = rows.map(({ place, record_id }) => {
    const key = `${String(place)} ${String(record_id)}`
    const idOf = (number: number) => hashed(`${String(record_id)}/${number}`)
    let number = numbers.get(key) ?? 1
    while (taken.has(`${String(place)} ${idOf(number)}`)) number += 1
    numbers.set(key, number + 1)
    taken.add(`${String(place)} ${idOf(number)}`)
    return idOf(number)
  })
  yield* connection.run(
    `UPDATE step_new SET record_id = v.id FROM (${inParallel("BIGINT", "VARCHAR")}) AS v(came, id)
    WHERE v.came = step_new._ord`,
    [rows.map(({ came }) => String(came)), ids],
  )
})

/** The versions that begin, with their lists. */
const addSql = ({ table, run, meta }: Stepping): string => {
  const cells = namesOf([...table.columns, ...table.rest])
  const lists = table.children.flatMap((child) => {
    const source = run.sources.get(child.name)
    if (source === undefined) return []
    const own = namesOf([...child.columns, ...child.rest])
    return [
      `INSERT INTO ${stored(child.name)} SELECT n._version, c.position, ${names(own, "c.")}
      FROM step_new AS n JOIN (${source}) AS c ON ${isItemOf("c", "n", "read_id")}
      ORDER BY n._version, c.position;`,
    ]
  })
  return `INSERT INTO ${stored(table.name)} SELECT n._version, n._scope, n.record_id, ${names(cells, "u.")},
      ${table.rest.length > 0 ? "NULL, " : ""}u.content_id, u.session_id, u.execution_id,
      CASE WHEN n._answered THEN DATE ${literal(meta.e)} END, NULL, NULL,
      ${run.sequence}, CASE WHEN n._answered THEN NULL ELSE ${run.sequence} END, NULL
    FROM step_new AS n JOIN step_unmatched AS u USING (_ord) ORDER BY n._version;
  ${lists.join("\n")}`
}

/**
 * Every row that came is its version's: for each, what the night saw of it. Documents of the run name a
 * record as its body has it; its id is that of the record that it is.
 */
const seeSql = ({ table, run, meta }: Stepping, hasNew: boolean): string => {
  const of = (columns: string, where = "") =>
    ["same", ...(hasNew ? ["new"] : [])]
      .map((name) => `SELECT ${columns} FROM step_${name}${where}`)
      .join(" UNION ALL ")
  const documents = `UPDATE ops.documents SET record_id = m.record_id
    FROM (${of("task_id, session_id, read_id, record_id", " WHERE record_id <> read_id")}) AS m
    WHERE documents.run_id = ${literal(run.run_id)} AND documents.task_id = m.task_id
      AND documents.session_id = m.session_id AND documents.record_id = m.read_id;`
  return `INSERT INTO ${seenOf(table.name)} SELECT m._reading, m._version${readIn("i", table)}
    FROM (${of("_ord, _reading, _version")}) AS m JOIN step_inc AS i USING (_ord)
    ORDER BY m._reading, m._version;
  ${meta.hasDocuments ? documents : ""}`
}

const stepTable = Effect.fnUntraced(function* (connection: Connection, stepping: Stepping) {
  const { table, run, meta } = stepping
  if (!run.sources.has(table.name)) {
    if (!meta.current.includes(table)) return
    yield* connection.run([unseenSql(table), noPairs, endSql(stepping), staySql(stepping)].join("\n"))
    return
  }
  yield* connection.run(matchSql(stepping))
  const countOf = (name: string): string => `(SELECT count(*) FROM step_${name})::INTEGER AS ${name}`
  const [left] = yield* connection.rows(`SELECT ${countOf("unmatched")}, ${countOf("unseen")}`)
  const isSome = (row: typeof left, name: string): boolean => Number(row?.[name]) > 0
  const [hasNew, hasLost] = [isSome(left, "unmatched"), isSome(left, "unseen")]
  const [found] = hasNew && hasLost ? yield* connection.rows(likelySql(stepping)) : []
  const isCompared = isSome(found, "likely")
  if (isCompared)
    yield* connection.run([differingSql(stepping), equalSql(), takeEqualSql(stepping)].join("\n"))
  if (hasNew && hasLost && table.key.length > 0) yield* pair(connection, stepping, isCompared)
  else yield* connection.run(noPairs)
  if (hasLost) yield* connection.run(endSql(stepping))
  const rest = table.rest.length > 0 ? yield* connection.rows(hasRestSql(stepping)) : []
  if (rest.length > 0) yield* connection.run(restSql(stepping))
  yield* connection.run(readAgainSql(stepping))
  if (hasLost) yield* connection.run(staySql(stepping))
  if (hasNew) {
    yield* connection.run(beginSql(stepping))
    yield* renumber(connection)
    yield* connection.run(addSql(stepping))
  }
  yield* connection.run(seeSql(stepping, hasNew))
})

/** Adds a run whose rows of `ops` are there; every run before it has been added. Within a transaction. */
export const stepRun = Effect.fn("Tables.stepRun")(function* (
  connection: Connection,
  tables: ReadonlyArray<KeptTable>,
  families: ReadonlyArray<RecordFamily>,
  run: SteppedRun,
) {
  const meta = yield* answer(connection, tables, families, run)
  for (const [index, table] of tables.entries()) yield* stepTable(connection, { table, index, run, meta })
  yield* connection.run(gatherRun(run.run_id))
})

/** Takes the newest run away again: everything is as it was before it was added. Within a transaction. */
export const unstepNewest = Effect.fn("Tables.unstepNewest")(function* (
  connection: Connection,
  tables: ReadonlyArray<KeptTable>,
  seq: number,
) {
  const readings = `SELECT _reading FROM store._readings WHERE seq = ${seq}`
  yield* connection.run(`${temp("back")} SELECT _scope, max(seq) FILTER (_answered AND seq <> ${seq}) AS seq
    FROM store._readings GROUP BY _scope HAVING bool_or(seq = ${seq})`)
  for (const table of tables) {
    const place = stored(table.name)
    const fetched = ofReading(table).map(({ name }) => identifier(name))
    const begun = `SELECT _version FROM ${place} WHERE _since_seq = ${seq}`
    yield* connection.run(`
    ${table.children
      .map(({ name }) => `DELETE FROM ${stored(name)} WHERE _version IN (${begun});`)
      .join("\n")}
    DELETE FROM ${place} WHERE _since_seq = ${seq};
    UPDATE ${place} SET valid_to = NULL, _until_seq = NULL, ended_by = NULL WHERE _until_seq = ${seq};
    ${temp("kept")} SELECT v._version, arg_max({seq: r.seq, as_of: r.e, lacks: r.lacks}, r._reading) AS had,
        any_value(b.seq) AS seq
      FROM ${place} AS v JOIN ${seenOf(table.name)} AS n USING (_version) JOIN store._readings AS r
          ON r._reading = n._reading AND r._answered AND r.seq <> ${seq}
        JOIN step_back AS b ON b._scope = v._scope
      WHERE v._until_seq IS NULL GROUP BY ALL;
    UPDATE ${place} SET _kept = CASE WHEN k.had.seq < k.seq THEN {as_of: k.had.as_of, lacks: k.had.lacks} END
      FROM step_kept AS k WHERE k._version = ${place}._version;
    ${temp("again")} SELECT DISTINCT _version FROM ${seenOf(table.name)} WHERE _reading IN (${readings});
    DELETE FROM ${seenOf(table.name)} WHERE _reading IN (${readings});
    ${
      fetched.length === 0
        ? ""
        : `UPDATE ${place} SET ${fetched.map((name) => `${name} = o.${name}`).join(", ")}
      FROM (SELECT n._version,
          ${fetched.map((name) => `arg_max_null(n.${name}, n._reading) AS ${name}`).join(", ")}
        FROM ${seenOf(table.name)} AS n SEMI JOIN step_again USING (_version)
          JOIN store._readings AS r USING (_reading)
        WHERE r._answered GROUP BY n._version) AS o WHERE ${place}._version = o._version;`
    }`)
  }
  yield* connection.run(`
  DELETE FROM store._readings WHERE seq = ${seq};
  DELETE FROM store._scopes WHERE _scope IN (SELECT _scope FROM step_back)
    AND _scope NOT IN (SELECT _scope FROM store._readings);
  ${lastAnswers("step_back", "store._readings")}
  DELETE FROM store._runs WHERE seq = ${seq};
  ${gatherWithout(seq)}
  ${askedAnew}`)
})
