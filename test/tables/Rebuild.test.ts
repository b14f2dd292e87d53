/**
 * Tables derived again from landed bodies: equal under equal schemas, different where a schema changed, all in one
 * version or not at all.
 */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { DuckDb } from "../../src/base/DuckDb.ts"
import { Ledger } from "../../src/ledger/Ledger.ts"
import { publishStage } from "../../src/run/PublishMeanwhile.ts"
import { datesInstead } from "../../src/tables/BuildDatabase.ts"
import { placeOf } from "../../src/tables/DataDictionary.ts"
import { layoutOf, nothingPublished, readManifest } from "../../src/tables/Manifest.ts"
import { openStore } from "../../src/tables/OpenStore.ts"
import { Publisher } from "../../src/tables/Publisher.ts"
import { compareRows, rebuild } from "../../src/tables/Rebuild.ts"
import { verify } from "../../src/tables/Verify.ts"
import {
  account,
  append,
  begin,
  engine,
  layers,
  opened,
  profileOf,
  publish,
  publisherOptions,
  resultsOf,
  rowsOf,
  succeed,
  storeOf,
  liveIn,
  liveDuckDb,
} from "./night.ts"
import { families } from "../records/families.ts"
import { copiesOf } from "../harness/CopiesOf.ts"
import { anId } from "../harness/Id.ts"
import { live } from "../harness/Steps.ts"

const first = "nightly.2026-11-20"
const second = "nightly.2026-11-21"

const night = Effect.fnUntraced(function* (run_id: string, id: string, name: string) {
  const { cacheForm } = yield* Ledger
  const body = JSON.stringify({ name: "Bank", status: `of ${name}` })
  yield* cacheForm({ engine_reference: anId(engine), fetched_at: Number(id), body })
  yield* append([begin(run_id, run_id.slice("nightly.".length))])
  yield* succeed(run_id, id, "c-1", resultsOf(profileOf(name), account))
  yield* publishStage(anId(run_id))
  // The end of a run is published again: only then its row in `runs` has all its times.
  yield* Effect.flatMap(Publisher, (publisher) => publisher.publishOutcome(anId(run_id)))
})
const afterNights = copiesOf((root) =>
  Effect.provide(Effect.andThen(night(first, "1", "Ana"), night(second, "2", "Bea")), layers(root)),
)

const rebuilt = (root: string) => Effect.flatMap(storeOf(root), (store) => rebuild(store, true))
const tables = ["runs", "tasks", "executions", "coverage", "customer_profiles", "emails", "other_records"]
const everything = (root: string) =>
  Effect.flatMap(opened(root), ({ rows }) =>
    Effect.forEach(tables, (table) => rows(`SELECT * FROM ${placeOf(table)} ORDER BY ALL`)),
  ).pipe(Effect.scoped)
const versionIn = (root: string) => rowsOf(root, "SELECT published_version() AS version")

describe("dates of runs", () => {
  it("are their own, but for those whose clock was ahead of most others [promise 9 most clocks]", () => {
    const insteadOf = (...dates: ReadonlyArray<string>) => {
      const runs = dates.map((run_date) => ({
        run_id: run_date,
        run_date,
        at: Date.parse(`${run_date}T22:30:00Z`),
      }))
      return [...datesInstead(runs)]
    }
    const before = ["2026-11-18", "2026-11-19", "2026-11-20"]
    assert.deepStrictEqual(insteadOf(...before, "2099-01-01"), [])
    assert.deepStrictEqual(insteadOf(...before, "2026-12-20", "2026-12-21", "2026-11-21", "2026-11-22"), [
      ["2026-12-21", "2026-11-21"],
      ["2026-12-20", "2026-11-21"],
    ])
    assert.deepStrictEqual(insteadOf(...before, "2020-01-01"), [])
    assert.deepStrictEqual(insteadOf(...before, "2020-01-01", "2026-11-22"), [])
    // A job that waited for its service began before another one that it is recorded after.
    assert.deepStrictEqual(insteadOf(...before, "2026-11-19"), [])
  })
})

describe("rebuild", () => {
  liveIn(afterNights)("under equal schemas publishes equal rows as one new version", function* (root) {
    const before = yield* everything(root)
    assert.deepStrictEqual(yield* rebuilt(root), {
      version: 5,
      runs: 2,
      changes: [],
      kept: [],
      left_out: [],
      unknown: [],
      models: [],
    })
    assert.deepStrictEqual(yield* everything(root), before)
    // What the catalogue said of an engine stays as each run found it, whatever it says since.
    const described = yield* rowsOf(root, "SELECT status FROM ops.engine_descriptions ORDER BY ALL")
    assert.deepStrictEqual(described, [{ status: "of Ana" }, { status: "of Bea" }])
    assert.deepStrictEqual(yield* versionIn(root), [{ version: 5 }])
    assert.deepStrictEqual(yield* verify(yield* storeOf(root)), [])
    // Each run says with which schemas it was derived: a later change of them is noticed.
    const { schemas, runs } = readManifest(join(root, "tables/manifest.json")) ?? nothingPublished
    assert.deepStrictEqual(schemas, { customer_profiles: 1 })
    const ofRuns = Object.values(runs).map((run) => run.schemas)
    assert.deepStrictEqual(ofRuns, [schemas, schemas])
  })
})

const compared = mkdtempSync(join(tmpdir(), "nightjar-compared-"))
afterAll(() => rmSync(compared, { recursive: true, force: true }))

const side = Effect.fnUntraced(function* (name: string, tables: Readonly<Record<string, string>>) {
  const { open } = yield* DuckDb
  const { run } = yield* open({ path: ":memory:", access: "read-write" })
  return yield* Effect.forEach(Object.entries(tables), ([table, rows]) => {
    const path = `${name}-${table}.parquet`
    const ofRun = `SELECT 'r' AS run_id, * FROM (${rows}) UNION ALL SELECT 'other', * FROM (${rows})`
    const copied = run(`COPY (${ofRun}) TO '${join(compared, path)}' (FORMAT parquet)`)
    return Effect.map(copied, (count) => ({ table, path, rows: count / 2, bytes: 1, sha256: "" }))
  })
}, Effect.scoped)

describe("the tables of a run", () => {
  liveDuckDb(
    "differ where a row was added, is gone, or is another one, in the order of the dictionary",
    function* () {
      const before = yield* side("before", {
        unheard: "SELECT 1 AS a",
        emails: "SELECT unnest(['one', 'two']) AS email",
        phones: "SELECT unnest(['one', 'one']) AS phone",
        tasks: "SELECT 1 AS attempts",
        runs: "SELECT 'same' AS job",
      })
      const after = yield* side("after", {
        emails: "SELECT unnest(['one', 'other']) AS email",
        phones: "SELECT 'one' AS phone",
        tasks: "SELECT 1 AS attempts, NULL::VARCHAR AS reason",
        runs: "SELECT 'same' AS job",
      })
      assert.deepStrictEqual(
        yield* compareRows({ layout: layoutOf(compared), families }, "r", { before, after }),
        [
          { table: "emails", before: 2, after: 2, added: 1, gone: 1 },
          { table: "phones", before: 2, after: 1, added: 0, gone: 1 },
          { table: "unheard", before: 1, after: 0, added: 0, gone: 1 },
        ],
      )
    },
  )
})

// Two customers with equal records under one schema, then one of them under another: whatever the nights make
// of the rows of before, `rebuild` makes the same.

const loans = {
  columns: {
    fetch_date: "TIMESTAMPTZ",
    number: "VARCHAR",
    branch: "VARCHAR",
    amount: "DECIMAL(9,2)",
    rate: "DOUBLE",
    paid: "DATE",
    details: "JSON",
  },
  children: {
    holders: "columns: { name: { type: VARCHAR, comment: n }, share: { type: INTEGER, comment: s } }",
    codes: "item: { name: code, type: VARCHAR, comment: c }",
  },
  key: ["number"],
}
type LoansSchema = Omit<typeof loans, "columns" | "children"> &
  Readonly<Record<"columns" | "children", Readonly<Record<string, string>>>>

/** `nth` is behind the names of its tables. */
const loansText = ({ columns, children, key }: LoansSchema, nth: number): string => `table: loans_${nth}
comment: Loans of a bank.
product: loans_${nth}
sub_families: ["bank:loan"]
features: [customer_information_read]
key: [${key.join(", ")}]
columns:
${Object.entries(columns)
  .map(([name, type]) => `  ${name}: { type: "${type}", comment: c }\n`)
  .join("")}${Object.keys(children).length === 0 ? "" : "children:\n"}${Object.entries(children)
  .map(
    ([name, rest]) =>
      `  ${name}: { comment: l, table: ${listTable(name, rest)}_${nth}, ${rest.replace(/^table: \w+, /, "")} }\n`,
  )
  .join("")}`

const listTable = (field: string, rest: string): string => /^table: (\w+)/.exec(rest)?.[1] ?? field

const loanOf = (nth: number, number: string, day: string, more: object = {}) => ({
  product: `loans_${nth}`,
  sub_family: "bank:loan",
  fetch_date: `${day}T01:00:00Z`,
  number,
  branch: "north",
  amount: "12.50",
  rate: 1.5,
  paid: "2026-11-01",
  details: { b: 1, a: [null, "x"] },
  holders: [{ name: "Ana", share: 2 }, { name: "Bea" }],
  codes: ["a", "b"],
  notes: "new",
  payers: [{ name: "Eva", since: 2020 }, { name: null }, "Eva"],
  ...more,
})

const { columns: ofLoans, children: ofLists } = loans
const without = (all: Readonly<Record<string, string>>, ...names: ReadonlyArray<string>) =>
  Object.fromEntries(Object.entries(all).filter(([name]) => !names.includes(name)))

/** Without lists. */
const alone = { children: {} }

/** By what changes: the schema before the second night, and after. */
const schemaChanges: Readonly<
  Record<string, readonly [before: Partial<LoansSchema>, now: Partial<LoansSchema>]>
> = {
  "a column renamed, and others retyped": [
    alone,
    {
      ...alone,
      columns: {
        ...without(ofLoans, "branch"),
        notes: "VARCHAR",
        amount: "DECIMAL(12,4)",
        paid: "VARCHAR",
      },
    },
  ],
  "a column added that its values do not fit, a list, and a column of another list": [
    { children: { ...ofLists, holders: ofLists.holders.replace(/, share.*}$/, " }") } },
    {
      columns: { ...ofLoans, notes: "INTEGER" },
      children: { ...ofLists, payers: "columns: { name: { type: VARCHAR, comment: n } }" },
    },
  ],
  // Of its lists alone.
  "a list removed, and another renamed": [{}, { children: { codes: `table: loan_codes, ${ofLists.codes}` } }],
  "another key": [alone, { ...alone, key: ["number", "branch"] }],
  "no key, and all lists removed": [{}, { key: [], children: {} }],
  "a key column removed, a list of another field, and one as a column": [
    {
      key: ["number", "branch"],
      children: { ...without(ofLists, "codes"), other: `table: codes, ${ofLists.codes}` },
    },
    { columns: { ...without(ofLoans, "branch"), holders: "JSON" }, children: without(ofLists, "holders") },
  ],
  "no key before, a column removed, and one as a list": [
    { key: [], columns: { ...ofLoans, holders: "JSON" }, children: without(ofLists, "holders") },
    { columns: without(ofLoans, "branch") },
  ],
}

describe("a record schema that changes", () => {
  live(
    "gives equal rows equal ids, and rows as `rebuild` gives them [decision 10 gone column] [decision 10 taken] [decision 10 schema ids] [decision 10 schema documents] [decision 10 new list]",
    function* () {
      const base = mkdtempSync(join(tmpdir(), "nightjar-schemas-"))
      yield* Effect.addFinalizer(() => Effect.sync(() => rmSync(base, { recursive: true, force: true })))
      const [root, schemasFolder] = [join(base, "output"), join(base, "records")]
      for (const each of [root, schemasFolder]) mkdirSync(each)
      // Each change in tables of its own.
      const changes = Object.entries(schemaChanges)
      const publishLoans = (day: string, customers: ReadonlyArray<string>) =>
        Effect.gen(function* () {
          yield* append([begin(`nightly.${day}`, day)])
          const records = changes.flatMap((_, nth) => [
            loanOf(nth, "1", day, { attachment_id: `a-${nth}` }),
            loanOf(nth, "2", day),
            loanOf(nth, "2", day, { amount: null, holders: undefined }),
          ])
          for (const id of customers)
            yield* succeed(`nightly.${day}`, `${id}-${day}`, id, resultsOf(...records))
          return yield* publish(`nightly.${day}`)
        }).pipe(Effect.provide(layers(root, { schemasFolder })))
      const schemasAre = (place: 0 | 1) => {
        for (const [nth, [, both]] of changes.entries())
          writeFileSync(
            join(schemasFolder, `loans_${nth}.yaml`),
            loansText({ ...loans, ...both[place] }, nth),
          )
      }
      schemasAre(0)
      yield* publishLoans("2026-11-20", ["c-1", "c-2"])
      schemasAre(1)
      yield* publishLoans("2026-11-21", ["c-1"])
      yield* Effect.gen(function* () {
        const tables = changes.flatMap(([what, [, { children = ofLists }]], nth) => [
          [what, `loans_${nth}`] as const,
          ...Object.entries(children).map((list) => [what, `${listTable(...list)}_${nth}`] as const),
        ])
        // The members of `extra` are in no order.
        const look = Effect.scoped(
          Effect.flatMap(opened(root), (connection) =>
            Effect.forEach(tables, ([what, table]) =>
              Effect.map(
                Effect.forEach(["nights", "history", "main"], (schema) =>
                  Effect.map(connection.rows(`FROM ${schema}.${table} ORDER BY ALL`), (rows) =>
                    rows.map(({ extra, ...row }) => ({
                      ...row,
                      extra: JSON.parse(String(extra)) as unknown,
                    })),
                  ),
                ),
                (rows) => [what, table, rows] as const,
              ),
            ),
          ),
        )
        const documents = rowsOf(root, "SELECT run_id, task_id, record_id FROM ops.documents ORDER BY ALL")
        const [continued, naming] = [yield* look, yield* documents]
        const store = openStore({ ...publisherOptions(root), schemasFolder })
        assert.deepStrictEqual(yield* verify(yield* store), [])
        yield* rebuild(yield* store, true)
        assert.deepStrictEqual(continued, yield* look)
        assert.deepStrictEqual([naming, naming.length], [yield* documents, 3 * changes.length])
        const contents = changes.map(
          ([what], nth) =>
            `SELECT '${what}' AS what, count(DISTINCT content_id)::INTEGER AS n FROM nights.loans_${nth}`,
        )
        assert.deepStrictEqual(
          yield* rowsOf(root, contents.join(" UNION ALL ")),
          changes.map(([what]) => ({ what, n: 3 })),
        )
        assert.deepStrictEqual(
          yield* rowsOf(root, "SELECT DISTINCT change FROM changes('2026-11-20', '2026-11-21')"),
          [{ change: "gone" }],
        )
      }).pipe(Effect.provide(layers(root, { schemasFolder })))
    },
  )
})
