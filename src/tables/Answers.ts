/**
 * What a run answers, and what is asked for: the first half of a step (`Step.ts`). A run answers a scope if
 * one of the features that feed it succeeded; if it tells of none, if any did and there are records. What it
 * does not find again ends only if what lacks in it lacked too when that was found. Otherwise records that
 * are here answer it where nothing whole is current, whatever word the task ended with: they end nothing but
 * what their own session said before.
 */
import { Effect } from "effect"
import type { Connection, Json } from "../base/DuckDb.ts"
import { identifier, literal } from "../base/DuckDbFailed.ts"
import type { RecordFamily } from "../records/RecordSchema.ts"
import { acquaintNameSql } from "../jobs/Job.ts"
import { features as featureCodes } from "../service/Vocabulary.ts"
import { productsOf } from "./CoverageRows.ts"
import { otherRecordsTable } from "../records/RecordTables.ts"
import { stored, type KeptTable } from "./RecordStore.ts"

export interface SteppedRun {
  readonly run_id: string
  /** Its place in the order in which runs began. */
  readonly sequence: number
  /** Instead of its own, which cannot be right. */
  readonly date?: string | undefined
  /** The run goes on: it does not decide yet what is asked for. */
  readonly interim: boolean
  /** Tables of records of which a file is lost: nobody knows what it had, so nothing in them is answered. */
  readonly lost: ReadonlySet<string>
  /** By table, of records and of their lists: a query for its rows as `tables/` has them, in their order. */
  readonly sources: ReadonlyMap<string, string>
}

/** Sessions that were only read have no engine: each of them stands alone. */
export const aloneSql = (alias: string): string =>
  `CASE WHEN ${alias}.engine_reference IS NULL THEN ${alias}.session_id END`

/** It succeeded, and somebody looked for its records: a job may want none. */
export const isAnswered = (coverage: string): string =>
  `(${coverage}.outcome = 'succeeded' AND ${coverage}.as_of IS NOT NULL)`

/** Equal, or both NULL, in each of these columns. */
export const sameSql = (left: string, right: string, columns: ReadonlyArray<string>): string =>
  columns
    .map((name) => `${left}.${identifier(name)} IS NOT DISTINCT FROM ${right}.${identifier(name)}`)
    .join(" AND ")

export const subject = ["customer_id", "engine_reference", "_alone"] as const
export const kind = ["product", "sub_family"]
export const names = (columns: ReadonlyArray<string>, alias = ""): string =>
  columns.map((name) => `${alias}${identifier(name)}`).join(", ")
const isList = (value: Json | undefined): value is ReadonlyArray<Json> => Array.isArray(value)
const valuesSql = (rows: ReadonlyArray<ReadonlyArray<string>>): string =>
  rows.map((row) => `(${row.map(literal).join(", ")})`).join(", ")

/** The beginning of a statement. */
export const temp = (name: string): string => `CREATE OR REPLACE TEMP TABLE step_${name} AS`

/** The kinds of families with each feature that feeds them, those that a family had before included. */
const familyKinds = (families: ReadonlyArray<RecordFamily>): ReadonlyArray<ReadonlyArray<string>> =>
  families.flatMap((family) =>
    [...family.subFamilies, ...(family.former ?? [])].flatMap((sub_family) =>
      family.features.map((feature) => [family.product, sub_family, feature]),
    ),
  )

/** Which product each feature feeds by its name, for records without a schema. */
const feeding = (families: ReadonlyArray<RecordFamily>): ReadonlyArray<ReadonlyArray<string>> =>
  [...new Set([...featureCodes, ...families.flatMap(({ features }) => features)])].flatMap((code) =>
    productsOf(code, families).map((product) => [product, code]),
  )

/** `step_kinds`: which features feed the kinds of known scopes; NULL if none is known to. */
const kindsSql = (families: ReadonlyArray<RecordFamily>): string => {
  const own = familyKinds(families)
  return `${temp("family_kinds")} ${
    own.length === 0
      ? "SELECT NULL::VARCHAR AS product, NULL::VARCHAR AS sub_family, NULL::VARCHAR AS feature LIMIT 0"
      : `SELECT DISTINCT * FROM (VALUES ${valuesSql(own)}) AS k(product, sub_family, feature)`
  };
  ${temp("kinds")} SELECT * FROM step_family_kinds UNION ALL
      SELECT k.product, k.sub_family, f.feature
      FROM (SELECT DISTINCT product, sub_family FROM store._scopes) AS k
        ANTI JOIN step_family_kinds AS own ON own.product = k.product AND own.sub_family = k.sub_family
        LEFT JOIN (VALUES ${valuesSql(feeding(families))}) AS f(product, feature) ON f.product = k.product;`
}

/** Scopes that somebody asks for, among `step_all`. */
const askedSql = `${temp("asked")} SELECT DISTINCT c._scope FROM step_all AS c JOIN store._asked AS a
      ON a.customer_id IS NOT DISTINCT FROM c.customer_id AND a.engine_reference = c.engine_reference
    WHERE c._alone IS NULL AND (c.loose OR a.feature IS NULL)
  UNION
  SELECT DISTINCT c._scope FROM step_all AS c
    JOIN step_kinds AS k ON k.product = c.product AND k.sub_family = c.sub_family
    JOIN store._asked AS a ON a.customer_id IS NOT DISTINCT FROM c.customer_id
      AND a.engine_reference = c.engine_reference AND (k.feature IS NULL OR k.feature = a.feature)
    WHERE c._alone IS NULL
  UNION SELECT _scope FROM step_all WHERE _alone IS NOT NULL;`

/**
 * The date on which a run looked: `e`, the latest date so far, unless that is of a run whose clock was ahead;
 * then its own clock decides. A day is no sign of that: dates are of time zones.
 */
export const lookedOn = (e: string, run: string): string => {
  const day = `(DATE '1970-01-01' + (epoch_ms(${run}.started_at) // 86400000)::INTEGER)`
  return `CASE WHEN ${e} > ${day} + 1 THEN greatest(${run}.run_date, ${day}) ELSE ${e} END`
}

export interface Meta {
  readonly e: string
  /** The date on which it looked. */
  readonly on: string
  readonly job: string
  readonly whole: boolean
  /** Documents of the run may name records. */
  readonly hasDocuments: boolean
  /** Tables in which something is current before the run: nothing can end in the others. */
  readonly current: ReadonlyArray<KeptTable>
}

const isCurrentSql = ({ name }: KeptTable) => `EXISTS (FROM ${stored(name)} WHERE _until_seq IS NULL)`

const metaOf = Effect.fnUntraced(function* (
  connection: Connection,
  tables: ReadonlyArray<KeptTable>,
  { run_id, interim, date }: SteppedRun,
) {
  const own = date === undefined ? "run_date" : `DATE ${literal(date)}`
  const [row] = yield* connection.rows(
    `SELECT job, coalesce(whole, parent IS NULL AND tasks > 0) AS night,
      e::VARCHAR AS e, ${lookedOn("e", "r")}::VARCHAR AS looked,
      EXISTS (FROM ops.documents WHERE run_id = $1 AND record_id IS NOT NULL) AS documents,
      [${tables.map(isCurrentSql).join(", ")}] AS current
    FROM (SELECT *, greatest(${own}, coalesce((SELECT max(e) FROM store._runs), ${own})) AS e
      FROM ops.runs WHERE run_id = $1) AS r`,
    [run_id],
  )
  const current = isList(row?.["current"]) ? row["current"] : []
  const meta: Meta = {
    e: String(row?.["e"]),
    on: String(row?.["looked"]),
    job: String(row?.["job"]),
    whole: row?.["night"] === true && !interim,
    hasDocuments: row?.["documents"] === true,
    current: tables.filter((_, index) => current[index] === true),
  }
  return meta
})

/**
 * What each job asks for: its newest whole run that is there, and what goes on since, or was a part of it.
 * No other whole run takes that back, unless its job replaces this one, or was tried with `acquaint` as this
 * one. A rerun asks for what its night has not answered: of customers and engines that are asked for, it
 * brings features that were added to the job; one that it neither asks for nor has from its night is no
 * longer in the job.
 */
export const askedAnew = `${temp("asking")}
    SELECT r.job, r.seq, t.customer_id, t.engine_reference, t.features, o.parent
    FROM store._runs AS r JOIN ops.runs AS o USING (run_id) JOIN ops.tasks AS t USING (run_id)
    WHERE NOT EXISTS (
      SELECT 1 FROM store._runs AS later WHERE later.whole AND later.seq > r.seq
        AND (r.job IN (later.job, ${acquaintNameSql("later.job")}) OR list_contains(later.replaces, r.job)))
    QUALIFY bool_or(o.parent IS NULL) OVER (PARTITION BY r.job, t.customer_id, t.engine_reference);
  ${temp("reruns")} SELECT g.*, list(c.feature) FILTER (c.outcome = 'succeeded') AS answered
    FROM step_asking AS g JOIN ops.runs AS o ON o.run_id = g.parent OR o.parent = g.parent
      JOIN store._runs AS r ON r.run_id = o.run_id LEFT JOIN ops.coverage AS c ON c.run_id = o.run_id
        AND ${sameSql("c", "g", ["customer_id", "engine_reference"])}
    GROUP BY ALL;
  DELETE FROM store._asked;
  INSERT INTO store._asked
  SELECT DISTINCT job, customer_id, engine_reference, feature
  FROM (SELECT *, unnest(CASE WHEN len(features) = 0 THEN [NULL] ELSE features END) AS feature
    FROM step_asking) AS g
  WHERE feature IS NULL OR NOT EXISTS (FROM step_reruns AS n WHERE n.seq > g.seq AND n.job = g.job
    AND ${sameSql("n", "g", ["customer_id", "engine_reference"])} AND len(n.features) > 0
    AND NOT list_contains(n.features || coalesce(n.answered, []), g.feature))
  ORDER BY ALL;`

const scopeNames = [...subject, ...kind]
const cell = (name: string): string => `NULL::VARCHAR AS ${name}`

/** The run among those before it, and what is asked for since. */
const askingSql = ({ run_id, sequence }: SteppedRun, { e, job, whole }: Meta): string =>
  `INSERT INTO store._runs
    SELECT ${literal(run_id)}, ${sequence}, DATE ${literal(e)}, ${literal(job)}, ${whole}, replaces
    FROM ops.runs WHERE run_id = ${literal(run_id)};
  ${askedAnew}`

/** `step_src_<table>`: the rows of the run; `step_scoped`: in which session each scope has some. */
const rowsSql = (tables: ReadonlyArray<KeptTable>, run: SteppedRun): string => {
  const columns = [...scopeNames, "task_id", "session_id"]
  const read = tables.flatMap(({ name }, index) => {
    const source = run.sources.get(name)
    return source === undefined ? [] : [{ index, source }]
  })
  const sources = read.map(
    ({ index, source }) => `${temp(`src_${index}`)} SELECT t.*, ${aloneSql("t")} AS _alone,
        row_number() OVER () AS _ord FROM (${source}) AS t;`,
  )
  const rows = [
    ...read.map(({ index }) => `SELECT ${names([...columns, "execution_id"])} FROM step_src_${index}`),
    `SELECT * FROM (SELECT ${[...columns, "execution_id"].map(cell).join(", ")} LIMIT 0)`,
  ]
  return `${sources.join("\n")}
  ${temp("rows")} SELECT ${names(columns)}, any_value(execution_id) AS execution_id
        FROM (${rows.join(" UNION ALL ")}) GROUP BY ALL;
  INSERT INTO store._scopes SELECT (SELECT coalesce(max(_scope), 0) FROM store._scopes)
        + row_number() OVER (ORDER BY ${names(scopeNames, "p.")}),
        ${names(scopeNames, "p.")}, NULL, NULL, NULL, false, false, []
      FROM (SELECT DISTINCT ${names(scopeNames)} FROM step_rows) AS p
        ANTI JOIN store._scopes AS s ON ${sameSql("s", "p", scopeNames)};
  ${temp("scoped")} SELECT s._scope, r.*
      FROM step_rows AS r JOIN store._scopes AS s ON ${sameSql("s", "r", scopeNames)};`
}

/** Features that did not succeed, of `step_told`. */
const lackingSql = "list(coalesce(t.feature, '')) FILTER (NOT t.fine) AS lacks"

/** `step_told`: each feature that the run tells of; `step_candidates`: the scopes that it may answer. */
const toldSql = ({ run_id }: SteppedRun): string =>
  `${temp("told")} SELECT c.customer_id, c.engine_reference, ${aloneSql("c")} AS _alone, c.feature,
        c.session_id, c.task_id, ${isAnswered("c")} AS fine,
        len(t.features) = 0 OR list_contains(t.features, c.feature)
          OR EXISTS (SELECT 1 FROM store._asked AS a WHERE a.customer_id IS NOT DISTINCT FROM c.customer_id
            AND a.engine_reference = c.engine_reference
            AND (a.feature IS NULL OR a.feature = c.feature)) AS requested
      FROM ops.coverage AS c JOIN ops.tasks AS t USING (run_id, task_id) WHERE c.run_id = ${literal(run_id)};
  ${temp("tasks")} SELECT ${names(subject)}, any_value(session_id) AS session_id,
        any_value(task_id) AS task_id, bool_or(fine) AS partly, ${lackingSql}
      FROM step_told AS t GROUP BY ALL;
  ${temp("candidates")} SELECT s._scope, ${names(scopeNames, "s.")}, t.partly, t.lacks, t.session_id,
        t.task_id, s.as_of AS was_as_of, s.short AS was_short, s.lacks AS was_lacks,
        s.product IS NOT NULL AND s._scope IN (SELECT _scope FROM step_scoped) AS present,
        s.product IS NOT NULL AND EXISTS (FROM step_scoped AS r WHERE r._scope = s._scope
          AND (t.session_id IS NULL OR r.session_id IS NOT DISTINCT FROM t.session_id)) AS fills
      FROM store._scopes AS s JOIN step_tasks AS t ON ${sameSql("s", "t", subject)};`

/** Kinds of records that a run cannot answer, because its files of them are lost. */
const lostSql = (families: ReadonlyArray<RecordFamily>, { lost }: SteppedRun): string => {
  const own = families.filter(({ table }) => lost.has(table))
  const kinds = familyKinds(own).map(([product = "", sub_family = ""]) => [product, sub_family])
  const named = kinds.length === 0 ? "false" : `(c.product, c.sub_family) IN (${valuesSql(kinds)})`
  const others =
    "NOT EXISTS (SELECT 1 FROM step_family_kinds AS k " +
    "WHERE k.product = c.product AND k.sub_family = c.sub_family)"
  return lost.has(otherRecordsTable.name) ? `(${named} OR ${others})` : named
}

/** Results that are not whole take no place in which something whole is current. */
const vacantSql = ({ current: tables }: Meta): string => {
  if (tables.length === 0) return ""
  const current = tables.map(
    ({ name }) => `SELECT _scope FROM ${stored(name)}
      WHERE _until_seq IS NULL AND _scope IN (SELECT _scope FROM step_filling)`,
  )
  return `${temp("filling")} SELECT _scope FROM step_answered WHERE short AND NOT was_short;
  DELETE FROM step_answered WHERE _scope IN (${current.join(" UNION ALL ")});`
}

/**
 * `step_here`: what the run answers and somebody asks for; `lacks`: the features that feed it and did not
 * succeed, those that it did not ask for included.
 */
const answeredSql = (families: ReadonlyArray<RecordFamily>, run: SteppedRun, meta: Meta): string =>
  `${temp("feeders")} SELECT c._scope, ${names(subject, "c.")}, k.feature
    FROM step_candidates AS c JOIN step_kinds AS k ON k.product = c.product AND k.sub_family = c.sub_family;
  ${temp("fed")} SELECT k._scope, bool_or(t.fine) AS partly, bool_or(t.requested) AS requested, ${lackingSql}
    FROM step_feeders AS k JOIN step_told AS t ON ${sameSql("k", "t", subject)}
      AND (t.feature = k.feature OR (k.feature IS NULL AND t.feature IS NOT NULL)) GROUP BY k._scope;
  ${temp("untold")} SELECT k._scope, list(a.feature) AS lacks FROM step_feeders AS k JOIN store._asked AS a
      ON a.customer_id IS NOT DISTINCT FROM k.customer_id AND a.engine_reference = k.engine_reference
        AND a.feature IS NOT NULL AND (k.feature IS NULL OR k.feature = a.feature)
      ANTI JOIN step_told AS t ON ${sameSql("k", "t", subject)} AND t.feature = a.feature GROUP BY k._scope;
  ${temp("answered")} SELECT c._scope, c.session_id, c.task_id, NOT coalesce(f.requested, false) AS loose,
      NOT coalesce(f.partly, c.present AND c.partly) AS short, c.was_as_of, c.was_short, c.was_lacks,
      coalesce(CASE WHEN f._scope IS NULL THEN c.lacks ELSE f.lacks END, []) || coalesce(u.lacks, []) AS lacks
    FROM step_candidates AS c LEFT JOIN step_fed AS f USING (_scope) LEFT JOIN step_untold AS u USING (_scope)
    WHERE (NOT short OR c.fills) AND NOT ${lostSql(families, run)};
  ${vacantSql(meta)}
  ${temp("all")} SELECT s._scope, ${names(scopeNames, "s.")}, coalesce(a.loose, s.loose) AS loose
    FROM store._scopes AS s LEFT JOIN step_answered AS a USING (_scope);
  ${askedSql}
  ${temp("here")} SELECT * FROM step_answered SEMI JOIN step_asked USING (_scope);`

/** `step_read`: which scopes the run has read, in which sessions, and whether that answers them. */
const readingsSql = ({ run_id, sequence }: SteppedRun, { on }: Meta): string => {
  const ofAnswer = (session: string): string =>
    `(h.session_id IS NULL OR ${session} IS NOT DISTINCT FROM h.session_id)`
  return `${temp("read")} SELECT (SELECT coalesce(max(_reading), 0) FROM store._readings)
        + row_number() OVER (ORDER BY ${names(scopeNames, "s.")}, q.task_id, q.session_id) AS _reading,
      q.*, h._scope IS NOT NULL AND ${ofAnswer("q.session_id")} AS _answered,
      coalesce(h.loose, false) AS loose, coalesce(h.short, false) AS short,
      coalesce(h.lacks, []) AS lacks
    FROM (
      SELECT _scope, task_id, session_id, execution_id, product, sub_family FROM step_scoped
      UNION ALL
      SELECT h._scope, h.task_id, h.session_id, NULL, NULL, NULL FROM step_here AS h
      WHERE NOT EXISTS (FROM step_scoped AS r WHERE r._scope = h._scope AND ${ofAnswer("r.session_id")})
    ) AS q JOIN store._scopes AS s ON s._scope = q._scope LEFT JOIN step_here AS h ON h._scope = q._scope;
  INSERT INTO store._readings SELECT _reading, ${literal(run_id)},
      (SELECT run_date FROM ops.runs WHERE run_id = ${literal(run_id)}), ${sequence}, DATE ${literal(on)},
      task_id, execution_id, session_id, _scope, _answered, loose, short, lacks
    FROM step_read ORDER BY _reading;
  ${lastAnswers("(FROM step_read WHERE _answered)", `(FROM store._readings WHERE seq = ${sequence})`)}`
}

/** Scopes are as the newest of these readings that answers them: as if never answered, if none does. */
export const lastAnswers = (scopes: string, readings: string): string => `UPDATE store._scopes
    SET seq = o.seq, as_of = o.e, _reading = o._reading, loose = coalesce(o.loose, false),
      short = coalesce(o.short, false), lacks = coalesce(o.lacks, [])
    FROM (SELECT b._scope, max(r._reading) AS _reading, arg_max(r.seq, r._reading) AS seq,
        arg_max(r.e, r._reading) AS e, arg_max(r.loose, r._reading) AS loose,
        arg_max(r.short, r._reading) AS short, arg_max(r.lacks, r._reading) AS lacks
      FROM ${scopes} AS b LEFT JOIN ${readings} AS r ON r._scope = b._scope AND r._answered
      GROUP BY b._scope) AS o
    WHERE o._scope = _scopes._scope;`

const endingSql = ({ sequence }: SteppedRun, { e, current }: Meta): string =>
  current
    .map(
      ({ name }) => `UPDATE ${stored(name)}
      SET valid_to = DATE ${literal(e)}, _until_seq = ${sequence}, ended_by = 'not requested'
      WHERE _until_seq IS NULL AND _scope NOT IN (SELECT _scope FROM step_asked);`,
    )
    .join("\n")

/** Adds the run, what it asks for and what it answers; returns what the second half needs to know of it. */
export const answer = Effect.fnUntraced(function* (
  connection: Connection,
  tables: ReadonlyArray<KeptTable>,
  families: ReadonlyArray<RecordFamily>,
  run: SteppedRun,
) {
  const meta = yield* metaOf(connection, tables, run)
  yield* connection.run(
    [
      askingSql(run, meta),
      rowsSql(tables, run),
      kindsSql(families),
      toldSql(run),
      answeredSql(families, run, meta),
      readingsSql(run, meta),
      endingSql(run, meta),
    ].join("\n"),
  )
  return meta
})
