/** Which runs a gate is asked about, and which that were held back become current with another one: both let deletions begin. */
import { mkdirSync, statSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { DuckDb } from "../../src/base/DuckDb.ts"
import { DurableFiles, machineCalls, modesOf } from "../../src/base/DurableFile.ts"
import { ScaledClock } from "../../src/base/Time.ts"
import type { Gates } from "../../src/jobs/Job.ts"
import type { Fact } from "../../src/ledger/Fact.ts"
import { foldRun } from "../../src/ledger/FoldRun.ts"
import { Ledger, LedgerFailed } from "../../src/ledger/Ledger.ts"
import type { RunState } from "../../src/ledger/RunState.ts"
import { gatherRun } from "../../src/tables/Dimensions.ts"
import { failedGates, isAsked } from "../../src/tables/AskGates.ts"
import { askedAnew } from "../../src/tables/Answers.ts"
import { makeEmptyDatabase } from "../../src/tables/EmptyDatabase.ts"
import { filesBelow, layoutOf, manifestText } from "../../src/tables/Manifest.ts"
import type { Manifest, Store } from "../../src/tables/Manifest.ts"
import { databaseVersion } from "../../src/tables/BuildDatabase.ts"
import {
  continuedFrom,
  countHeld,
  heldBefore,
  heldDatabase,
  heldRuns,
  keepAside,
  removeAllAside,
  removeAside,
  withoutInterim,
} from "../../src/tables/HeldRuns.ts"
import { PublishFailed } from "../../src/tables/Publisher.ts"
import { factsOf, idOf, type Told } from "../ledger/ToldRuns.ts"
import { families } from "../records/families.ts"
import { executed, planned, run_id, settled, started } from "../report/Samples.ts"
import { folder, liveDuckDb } from "./night.ts"
import { runStarted } from "../harness/Facts.ts"
import { live, effect } from "../harness/Steps.ts"

const fold = (facts: ReadonlyArray<Fact>): RunState => {
  const run = foldRun(facts.map((fact, seq) => ({ seq: seq + 1, at: seq, fact })))
  if (run === undefined) throw new Error("no beginning")
  return run
}

describe("the gates of a job are asked", () => {
  const published: Fact = { _tag: "RunPublished", run_id, version: 1, receipts: [] }
  const held: Fact = { _tag: "RunHeld", run_id, database: "held", gates: [] }
  const end = settled("c", "succeeded", "COMPLETED", "nobody")
  const night = [started, planned("c"), ...executed("c", { a: 1 }), end]
  const asked = (...facts: ReadonlyArray<Fact>) => isAsked(fold(facts))

  it("of a run with tasks that was never published, or was held back since; not of one that a person let through", () => {
    const accepted: Fact = { _tag: "RunAccepted", run_id }
    expect([asked(...night), asked(...night, held), asked(...night, published, held)]).not.toContain(false)
    expect([asked(started), asked(started, held), asked(...night, held, accepted)]).not.toContain(true)
  })

  it("not again of one to which nothing came since it was published, but of one to which something did", () => {
    expect([
      // A closed execution, and a verdict after it.
      asked(...night.slice(0, -1), published, end),
      asked(...night.slice(0, 2), published, ...night.slice(2)),
      // A task that still has no verdict may be anything by now.
      asked(...night, planned("d"), published),
    ]).not.toContain(false)
    const deletion: Fact = {
      _tag: "DeleteIntended",
      run_id,
      task_id: end._tag === "TaskSettled" ? end.task_id : ("" as never),
      execution_id: "e-c" as never,
      landed_sha256: "aa",
    }
    expect([asked(...night, published), asked(...night, published, deletion)]).not.toContain(true)
  })
})

type Runs = ReadonlyArray<readonly [number, Told]>
const held: Told = { tasks: { "c-1": "succeeded" }, exit_code: 3, leftovers: true, isHeld: true }
const open: Told = { tasks: { "c-1": "succeeded" } }
const on = (run_date: string, told: Told): Told => ({ ...told, run_date })
const accepted = (number: number): Fact => ({ _tag: "RunAccepted", run_id: idOf(number) })

/** Those that become current with the newest of these runs, and all that wait for it. */
const heldWith = (runs: Runs, more: ReadonlyArray<Fact> = []) =>
  Effect.gen(function* () {
    const ledger = yield* Ledger
    for (const [number, told] of runs) yield* ledger.append(factsOf(number, told))
    yield* ledger.append(more)
    const [number, { run_date }] = runs.at(-1) ?? [0, open]
    const state = yield* ledger.state(idOf(number, run_date))
    if (state === undefined) throw new Error("no such run")
    const all = (yield* heldRuns).map((one) => one.started.run_id)
    return { with: yield* heldBefore(state), all }
  }).pipe(Effect.provide(Ledger.layer({ path: ":memory:" })))

describe("a version contains the runs that were held back before it", () => {
  effect("of the same job and night or an earlier one, oldest first [gate night]", function* () {
    const runs: Runs = [
      [1, on("2026-11-20", held)],
      [2, on("2026-11-20", { ...held, isHeld: false })],
      [3, { ...held, job: "other" }],
      [1, on("2026-11-22", held)],
      [1, held],
      [2, { ...held, isHeld: false, leftovers: false, exit_code: 0 }],
      [4, open],
    ]
    expect(yield* heldWith(runs)).toEqual({
      with: [idOf(1, "2026-11-20"), idOf(1)],
      all: [idOf(1, "2026-11-20"), idOf(3), idOf(1, "2026-11-22"), idOf(1)],
    })
  })

  effect("but not itself, not a later one, and none that is let through and published already", function* () {
    expect(yield* heldWith([[1, held]])).toEqual({ with: [], all: [idOf(1)] })
    const through: ReadonlyArray<Fact> = [
      { _tag: "RunPublished", run_id: idOf(1), version: 2, receipts: [] },
      accepted(1),
    ]
    const runs: Runs = [
      [1, held],
      [2, open],
    ]
    expect(yield* heldWith(runs, through)).toEqual({ with: [], all: [idOf(1)] })
    const ledger = Ledger.layer({ path: ":memory:" })
    const earlier = Effect.gen(function* () {
      const { append, state } = yield* Ledger
      yield* append(factsOf(1, open))
      yield* append(factsOf(2, held))
      const first = yield* state(idOf(1))
      return first === undefined ? undefined : yield* heldBefore(first)
    })
    expect(yield* Effect.provide(earlier, ledger)).toEqual([])
  })

  effect("only if its own gates were asked, or a person let it through [gate asked]", function* () {
    const runs = (newest: Told): Runs => [
      [1, held],
      [2, newest],
    ]
    expect((yield* heldWith(runs({}))).with).toEqual([])
    // One that is published again with nothing new.
    const published: Fact = { _tag: "RunPublished", run_id: idOf(2), version: 2, receipts: [] }
    expect((yield* heldWith(runs(open), [published])).with).toEqual([])
    expect((yield* heldWith(runs({}), [accepted(2)])).with).toEqual([idOf(1)])
    expect((yield* heldWith(runs(open), [accepted(2)])).with).toEqual([idOf(1)])
  })

  it.effect(
    "unless the ledger cannot be read: then nothing is published, and it says whether it is damaged",
    () =>
      Effect.gen(function* () {
        const real = yield* Ledger
        const told = (failure: LedgerFailed) =>
          heldBefore(fold(factsOf(1, open))).pipe(
            Effect.provideService(Ledger, { ...real, runs: Effect.fail(failure) }),
            Effect.flip,
          )
        const message = "disk gone"
        expect([
          yield* told(new LedgerFailed({ message })),
          yield* told(new LedgerFailed({ message, damaged: true })),
        ]).toEqual([
          new PublishFailed({ message: "the ledger: disk gone", damaged: false, isLedger: true }),
          new PublishFailed({ message: "the ledger: disk gone", damaged: true, isLedger: true }),
        ])
      }).pipe(Effect.provide(Ledger.layer({ path: ":memory:" }))),
  )
})

/** So many rows of a table, alike but for what tells them apart; of a list, of as many profiles. */
const rows = (table: string, run: string, count: number): string => {
  const from = `FROM range(${count}) AS r(n)`
  if (table === "rejected_records")
    return `INSERT INTO ops.${table} BY NAME SELECT '${run}' AS run_id, n::VARCHAR AS record_id ${from}`
  const isList = table === "emails" || table === "phones"
  const kept = isList ? "customer_profiles" : table
  const [reading, version] = [
    "(SELECT max(_reading) FROM store._readings)",
    `(SELECT max(_version) FROM store.${kept})`,
  ]
  return [
    `INSERT INTO store._readings BY NAME SELECT coalesce(${reading}, 0) + 1 AS _reading, '${run}' AS run_id,
      't' AS task_id, 's' AS session_id, 1 AS _scope`,
    `INSERT INTO store.${kept} BY NAME SELECT coalesce(${version}, 0) + n + 1 AS _version, 1 AS _scope,
      n::VARCHAR AS record_id ${from}`,
    `INSERT INTO store._seen_${kept} BY NAME SELECT ${reading} AS _reading, ${version} - n AS _version ${from}`,
    ...(isList
      ? [`INSERT INTO store.${table} BY NAME SELECT ${version} - n AS _version, 0 AS position ${from}`]
      : []),
  ].join(";\n")
}
/** What the nights ask for, and in which order they began. */
const asking = `INSERT INTO store._scopes BY NAME SELECT 1 AS _scope, 'c' AS customer_id;
  INSERT INTO store._runs SELECT run_id, row_number() OVER (ORDER BY run_id), run_date, job,
    parent IS NULL AND tasks > 0, NULL FROM ops.runs;
  ${askedAnew}`
const nightOf = (day: number, further = "", more = "'demo' AS job, 1 AS tasks") =>
  `INSERT INTO ops.runs BY NAME SELECT 'r.${day}${further}' AS run_id, DATE '2026-11-${day}' AS run_date, ${more}`
const covered = (
  run: string,
  customer: string,
  feature: string,
  outcome: string,
  more = "'bank' AS engine_reference",
) =>
  `INSERT INTO ops.coverage BY NAME SELECT '${run}' AS run_id, DATE '2026-11-${run.slice(2, 4)}' AS run_date,
    'r/${customer}' AS task_id, '${customer}' AS customer_id, ${feature} AS feature, '${outcome}' AS outcome,
    TIMESTAMPTZ '2026-11-${run.slice(2, 4)} 00:00:00+00' AS as_of, ${more}`

const storeIn = (root: string, calls = machineCalls): Store => ({
  layout: layoutOf(root),
  modes: modesOf("none"),
  files: new DurableFiles(calls),
  families,
  schemas: { texts: new Map(), gone: [] },
  toolVersion: "0.1.0",
  versionsKept: 3,
})

/** What the gates of the night of the 21st, or of its part, find in a version with these rows, asked one by one. */
const findings = (
  statements: ReadonlyArray<string>,
  all: ReadonlyArray<Partial<Gates>>,
  part: { readonly part?: string } = {},
) =>
  Effect.gen(function* () {
    const root = yield* folder
    const store = storeIn(root)
    const { layout } = store
    mkdirSync(dirname(layout.build), { recursive: true })
    yield* makeEmptyDatabase(store)
    const duckdb = yield* DuckDb
    const fill = duckdb.open({ path: layout.build, access: "read-write" })
    yield* Effect.scoped(
      Effect.gen(function* () {
        const { run, rows: found } = yield* fill
        yield* run(["BEGIN", ...statements, asking].join(";\n"))
        for (const { run_id } of yield* found("SELECT run_id FROM store._runs ORDER BY seq"))
          yield* run(gatherRun(String(run_id)))
        yield* run("COMMIT")
      }),
    )
    const run = fold([runStarted(run_id, part), planned("c"), ...executed("c", { a: 1 })])
    return yield* Effect.forEach(all, (gates) =>
      Effect.map(failedGates(store, run, { keys: false, tests: [], ...gates }), (failed) =>
        failed.map(({ gate, expected, found }) => `${gate}: ${found}; expected: ${expected}`).join("\n"),
      ),
    )
  }).pipe(Effect.provide(DuckDb.layer), Effect.scoped)

describe("a gate that is asked of a finished version", () => {
  live(
    "of its rows compares the night, reruns included, with the median of the nights before [gate rows]",
    function* () {
      const history = [
        // Another job, a night of nobody, and a night after this one.
        nightOf(20, ".w", "'other' AS job, 1 AS tasks"),
        nightOf(17, "", "'demo' AS job, 0 AS tasks"),
        ...[18, 19, 20, 21, 22].map((day) => nightOf(day)),
        nightOf(20, ".2"),
        nightOf(21, ".2"),
        rows("customer_profiles", "r.20.w", 90),
        rows("customer_profiles", "r.22", 90),
        rows("customer_profiles", "r.18", 20),
        rows("customer_profiles", "r.19", 10),
        rows("customer_profiles", "r.20", 9),
        rows("customer_profiles", "r.20.2", 3),
        rows("customer_profiles", "r.21", 4),
        rows("customer_profiles", "r.21.2", 1),
        // Too few to be compared, and enough.
        ...[18, 19, 20].map((day) => rows("higher_education", `r.${day}`, 9)),
        ...[18, 19, 20].map((day) => rows("other_records", `r.${day}`, 10)),
        rows("other_records", "r.21", 5),
      ]
      const ofRows = (min: number, nights: number) => ({ rows: { min, nights } })
      expect(
        yield* findings(history, [
          ofRows(0.5, 3),
          ofRows(0.5, 2),
          ofRows(0.51, 1),
          ofRows(0.4, 3),
          ofRows(0.5, 7),
        ]),
      ).toEqual([
        "rows: customer_profiles has 5 of 12; expected: 50% of the median of 3 nights before",
        "rows: customer_profiles has 5 of 11; expected: 50% of the median of 2 nights before",
        "rows: customer_profiles has 5 of 12, other_records has 5 of 10; " +
          "expected: 51% of the median of 1 night before",
        "",
        "rows: customer_profiles has 5 of 12; expected: 50% of the median of 7 nights before",
      ])
    },
  )

  live(
    "of its keys names the tables with a key that two rows share, and how many keys [decision 10 gate keys]",
    function* () {
      // Two records of one business key, though each has an id of its own.
      const typed = "UPDATE store.customer_profiles SET type = 'person'"
      const both = [nightOf(21), rows("customer_profiles", "r.21", 2), typed]
      expect(yield* findings(both, [{ keys: "business" }, { keys: true }])).toEqual([
        "keys: repeated: 1 key of customer_profiles (type); expected: no key twice",
        "",
      ])
      const alike = (table: string, times: number) =>
        Array.from({ length: times }, () => rows(table, "r.21", 2))
      const keys = { keys: true }
      expect(yield* findings([nightOf(21), ...alike("emails", 1)], [keys])).toEqual([""])
      const repeated = [...alike("emails", 2), rows("phones", "r.21", 1), rows("phones", "r.21", 1)]
      expect(yield* findings([nightOf(21), ...repeated, ...alike("rejected_records", 2)], [keys])).toEqual([
        "keys: repeated: 2 keys of customer_profiles, 2 keys of emails, 1 key of phones; expected: no key twice",
      ])
      // Of another night, which a gate of that night was asked about.
      const before = alike("emails", 2).map((sql) => sql.replace("r.21", "r.20"))
      expect(yield* findings([nightOf(21), nightOf(20), ...before], [keys])).toEqual([""])
    },
  )

  live("compares no part of a job with its nights, and no night with a part [part gates]", function* () {
    const profiles = (run: string, count: number) => rows("customer_profiles", run, count)
    const nights = [
      ...[19, 21].map((day) => nightOf(day)),
      ...[19, 20, 21].map((day) => nightOf(day, ".p", "'demo' AS job, 1 AS tasks, 'p' AS part")),
      profiles("r.19", 12),
      profiles("r.21", 7),
      profiles("r.19.p", 10),
      profiles("r.20.p", 1),
      profiles("r.21.p", 1),
    ]
    const sizes = { rows: { min: 0.9, nights: 1 } }
    const own = { tests: [{ name: "told", sql: "SELECT 1" }] }
    expect(yield* findings(nights, [sizes])).toEqual([
      "rows: customer_profiles has 7 of 12; expected: 90% of the median of 1 night before",
    ])
    const ofPart = [{ ...sizes, coverage: 1.01, freshness: 0 }, own]
    expect(yield* findings(nights, ofPart, { part: "p" })).toEqual([
      "",
      "tests/told.sql: 1 row; expected: no rows",
    ])
  })

  live("of its rejected records counts them among all records of the night", function* () {
    const night = [
      nightOf(20),
      nightOf(21),
      rows("customer_profiles", "r.21", 4),
      rows("other_records", "r.21", 3),
      rows("rejected_records", "r.21", 1),
      rows("rejected_records", "r.20", 5),
    ]
    expect(yield* findings(night, [{ rejected: 0.125 }, { rejected: 0.12 }])).toEqual([
      "",
      "rejected: 1 of 8 records (12.5%); expected: at most 12% of the records rejected",
    ])
  })

  live(
    "of coverage counts the newest outcome of each customer, engine and feature, and each lone session",
    function* () {
      const alone = (id: string) => `NULL AS engine_reference, '${id}' AS session_id`
      const night = [
        nightOf(21, "", "'demo' AS job, 1 AS tasks, 1 AS sequence"),
        nightOf(21, ".2", "'demo' AS job, 1 AS tasks, 2 AS sequence"),
        nightOf(20),
        covered("r.21", "c-1", "'f'", "failed"),
        covered("r.21.2", "c-1", "'f'", "succeeded"),
        covered("r.21", "c-1", "'g'", "succeeded"),
        covered("r.21", "c-2", "'f'", "partial"),
        covered("r.20", "c-3", "'f'", "failed"),
        ...["s-1", "s-2"].map((id) => covered("r.21", "c-1", "NULL", "succeeded", alone(id))),
      ]
      expect(yield* findings(night, [{ coverage: 0.8 }, { coverage: 0.801 }])).toEqual([
        "",
        "coverage: 4 of 5 succeeded (80%); expected: at least 80.1% of customers, engines and features succeeded",
      ])
    },
  )

  live("of freshness names the engines and features of the job whose data is older", function* () {
    const nights = [
      ...[17, 18, 21].map((day) => nightOf(day)),
      nightOf(17, ".w", "'other' AS job, 1 AS tasks"),
      ...["'f'", "'g'", "NULL"].map((feature) => covered("r.17", "c-1", feature, "succeeded")),
      covered("r.18", "c-1", "'g'", "succeeded"),
      ...["'f'", "'g'", "NULL"].map((feature) => covered("r.21", "c-1", feature, "failed")),
      covered("r.17.w", "c-9", "'h'", "succeeded"),
    ]
    const task = (run: string, customer: string) =>
      `INSERT INTO ops.tasks BY NAME SELECT '${run}' AS run_id, 'r/${customer}' AS task_id,
          '${customer}' AS customer_id, 'bank' AS engine_reference, []::VARCHAR[] AS features`
    const tasks = [task("r.17", "c-1"), task("r.18", "c-1"), task("r.21", "c-1"), task("r.17.w", "c-9")]
    const found = yield* findings(
      [...nights, ...tasks],
      [4, 3, 2].map((freshness) => ({ freshness })),
    )
    expect(found).toEqual([
      "",
      "freshness: bank f: 4 days old; expected: data of every engine and feature at most 3 days old",
      "freshness: bank f: 4 days old, bank g: 3 days old; " +
        "expected: data of every engine and feature at most 2 days old",
    ])
  })

  live(
    "of the job's own counts the rows that it gives, whatever ends it, and all that failed are told; it has ten minutes of this machine, however fast the run's clock goes, and nothing is compared in a first night",
    function* () {
      const sql = (name: string, text: string) => ({ name, sql: text })
      const tests = [
        sql("none", "SELECT 1 WHERE false;;\n"),
        sql("one", "SELECT run_id FROM ops.runs; \n"),
        sql("two", "VALUES (1), (2) -- so many"),
        sql("odd", "SELECT nothing"),
        sql("read", "SELECT * FROM read_csv('/etc/hosts')"),
        sql("dropped", "SELECT 1) AS t; DROP TABLE runs; --"),
        sql("written", "SELECT 1) AS t; COPY (SELECT 1) TO '/dev/null'; SELECT 0 AS n FROM (SELECT 1"),
      ]
      const fast = ScaledClock.layer({ speed: 10_000_000, originMs: Date.parse("2026-11-21T00:00:00Z") })
      // Takes some milliseconds, and ten minutes of that clock are a fraction of one.
      const slow = "SELECT sum(a.range) AS s FROM range(2000) AS a, range(4000) AS b HAVING s < 0"
      const first = { keys: true, rows: { min: 1, nights: 7 }, coverage: 1, freshness: 1 }
      const asked = [{ tests }, { tests: [sql("slow", slow)] }, { rejected: 0 }, first]
      const [found = "", ...others] = yield* Effect.provide(findings([nightOf(21)], asked), fast)
      expect(others).toEqual(["", "", ""])
      expect(found).toMatch(/^tests\/read\.sql: .*disabled/m)
      expect(
        found.split("\n").map((line) => line.replace(/(asked: )(?!it is not).*; exp/, "$1…; exp")),
      ).toEqual([
        "tests/one.sql: 1 row; expected: no rows",
        "tests/two.sql: 2 rows; expected: no rows",
        ...["odd", "read", "dropped"].map(
          (name) => `tests/${name}.sql: it could not be asked: …; expected: no rows`,
        ),
        "tests/written.sql: it could not be asked: it is not one query; expected: no rows",
      ])
    },
  )

  liveDuckDb(
    "is not asked of a job without gates; where there is no version to ask, nothing is published",
    function* () {
      const root = yield* folder
      const run = fold([started, planned("c"), ...executed("c", { a: 1 })])
      const store = { layout: layoutOf(root), families } as unknown as Store
      const asked = (gates: Gates | undefined) => failedGates(store, run, gates)
      expect(yield* asked(undefined)).toEqual([])
      const failure = yield* Effect.flip(asked({ keys: true, tests: [] }))
      expect([failure._tag, failure.message]).toEqual([
        "PublishFailed",
        expect.stringMatching(/^the database: /),
      ])
    },
  )
})

describe("a run that is held back, of which a part was published while it went on", () => {
  it.effect(
    "is as it was before, and does not come back when the next publication ends a rollback [interim back]",
    () =>
      Effect.gen(function* () {
        const store = storeIn(yield* folder)
        const { layout } = store
        const entry = (version: number, more: object = {}) => ({
          run_date: "2026-11-21",
          version,
          files: [],
          ...more,
        })
        const part = entry(2, { interim: true })
        const version = (number: number, runs: Manifest["runs"], more: object = {}): Manifest => ({
          version: number,
          amends: false,
          runs,
          ...more,
        })
        const [held, open, other] = [idOf(1), idOf(2), idOf(3)]
        const first = version(1, { [held]: entry(1), [other]: entry(1) })
        const newest = version(2, { [held]: part, [open]: part, [other]: entry(1) })
        mkdirSync(layout.previous, { recursive: true })
        for (const one of [first, newest])
          writeFileSync(join(layout.previous, `${one.version}.json`), manifestText(one))
        const { append } = yield* Ledger
        for (const [number, isHeld] of [
          [1, true],
          [2, false],
          [3, true],
        ] as const)
          yield* append(factsOf(number, { tasks: { "c-1": "succeeded" }, isHeld }))
        const back = version(3, first.runs, { returned: { to: 1, from: 2 } })
        expect((yield* continuedFrom(store, back)).runs).toEqual({
          [held]: entry(1),
          [open]: part,
          [other]: entry(1),
        })
        // Nothing of it was published before.
        writeFileSync(join(layout.previous, "1.json"), manifestText(version(1, {})))
        expect(Object.keys((yield* continuedFrom(store, back)).runs)).toEqual([open, other])
        expect(withoutInterim(store, newest, other)).toBe(newest)
      }).pipe(Effect.scoped, Effect.provide(Ledger.layer({ path: ":memory:" }))),
  )
})

describe("a version that is kept aside", () => {
  liveDuckDb(
    "is moved to its own place, readable, and takes the place of those that it contains",
    function* () {
      const root = yield* folder
      const store = storeIn(root)
      const duckdb = yield* DuckDb
      const keep = Effect.fnUntraced(function* (number: number, ...contained: ReadonlyArray<number>) {
        mkdirSync(dirname(store.layout.build), { recursive: true })
        const open = duckdb.open({ path: store.layout.build, access: "read-write" })
        yield* Effect.scoped(
          Effect.flatMap(open, ({ run }) => run(`CREATE MACRO published_version() AS ${number}`)),
        )
        yield* keepAside(
          store,
          idOf(number),
          contained.map((one) => idOf(one)),
        )
        const path = join(root, heldDatabase(idOf(number)))
        return [yield* databaseVersion(path), statSync(path).mode & 0o777, countHeld(store)]
      })
      const { file } = store.modes
      expect([yield* keep(1), yield* keep(2), yield* keep(1), yield* keep(3, 2)]).toEqual([
        [1, file, 1],
        [2, file, 2],
        [1, file, 2],
        [3, file, 2],
      ])
      const place = (number: number) => `published/held/${idOf(number)}.duckdb`
      expect(filesBelow(root)).toEqual([place(1), place(3)].toSorted())
      const modes = ["published", "published/held"].map((name) => statSync(join(root, name)).mode & 0o777)
      expect(modes).toEqual([store.modes.folder, store.modes.folder])
      // What a reader of it left beside it goes with it, and is no version of its own.
      for (const number of [1, 3]) writeFileSync(`${join(root, place(number))}.wal`, "")
      expect(countHeld(store)).toBe(2)
      yield* removeAside(store, [idOf(1), idOf(7)])
      expect(filesBelow(root)).toEqual([place(3), `${place(3)}.wal`])
      const synced: Array<string> = []
      const open = new Map<number, string>()
      const watching = storeIn(root, {
        ...machineCalls,
        open: (path, flags, mode) => {
          const descriptor = machineCalls.open(path, flags, mode)
          open.set(descriptor, path)
          return descriptor
        },
        sync: (descriptor) => {
          machineCalls.sync(descriptor)
          synced.push(open.get(descriptor) ?? "?")
        },
      })
      yield* removeAllAside(watching)
      yield* removeAllAside(watching)
      expect([filesBelow(root), countHeld(store), synced]).toEqual([[], 0, [join(root, "published/held")]])
    },
  )
})
