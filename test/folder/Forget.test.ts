/**
 * A customer is removed from a folder that holds everything a folder can hold of one: afterwards nothing in it names
 * the customer, and the others' rows are what they were, wherever the removal was cut off in between.
 */
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs"
import { join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import { assert, beforeAll, describe } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { DuckDb } from "../../src/base/DuckDb.ts"
import { FileCalls, machineCalls } from "../../src/base/DurableFile.ts"
import { remoteOf } from "../../src/cli/commands/Forget.ts"
import type { RunId } from "../../src/service/Ids.ts"
import { lockFolder } from "../../src/base/FolderLock.ts"
import { checkWhole, forget, planForget } from "../../src/folder/Forget.ts"
import { nameDocuments } from "../../src/folder/NamedDocuments.ts"
import { isInName, mentionsIn, namesLeft } from "../../src/folder/Mentions.ts"
import type { Fact } from "../../src/ledger/Fact.ts"
import { logLine } from "../../src/ledger/FactRows.ts"
import { Ledger } from "../../src/ledger/Ledger.ts"
import { publishStage } from "../../src/run/PublishMeanwhile.ts"
import { filesBelow } from "../../src/tables/Manifest.ts"
import { Publisher } from "../../src/tables/Publisher.ts"
import { PublisherDuckDb } from "../../src/tables/PublisherDuckDb.ts"
import { rebuild } from "../../src/tables/Rebuild.ts"
import { rollback } from "../../src/tables/Rollback.ts"
import { openTokenDatabase } from "../../src/tokens/TokenTables.ts"
import { Workplace } from "../acceptance/Nightjar.ts"
import { commandHere } from "../harness/CommandsHere.ts"
import { anId } from "../harness/Id.ts"
import { sharedFolder } from "../harness/Folder.ts"
import { effect, live } from "../harness/Steps.ts"
import {
  append,
  begin,
  engine,
  foundation,
  layers,
  namesIn,
  problemsIn,
  profileOf,
  publisherOptions,
  resultsOf,
  rowsOf,
  storeOf,
  succeed,
  deletes,
  document,
  publish as publishes,
  taskOf,
} from "../tables/night.ts"

const [first, second] = ["nightly.2026-11-20", "nightly.2026-11-21"] as const
const gone = "c-1"
const documentText = "what only the document of the customer says"

/** Everything that may name the customer; an id counts only where it is not a part of a longer one. */
const traces = [
  /(?<![A-Za-z0-9_-])c-1(?![A-Za-z0-9_-]|\.x)/,
  /theirs-(one|two)/,
  /Anastasia/,
  /token-of-theirs/,
  new RegExp(documentText),
]

const publish = Effect.fnUntraced(function* (run: string) {
  yield* publishes(run)
  yield* append([{ _tag: "RunEnded", run_id: anId(run), exit_code: 0, leftovers: false, kept: 0 }])
  yield* Effect.flatMap(Publisher, ({ publishOutcome }) => publishOutcome(anId(run)))
  yield* append([{ _tag: "OutcomePublished", run_id: anId(run) }])
})

const rejected = (run: string, customer: string, fingerprint: string): Fact => ({
  _tag: "CredentialRejected",
  ...taskOf(run, customer),
  fingerprint,
  customer_id: anId(customer),
  engine_reference: anId(engine),
  reason: "INVALID_CREDENTIALS",
})

/** What other rooms leave beside ledger, landing and tables. */
const writeOthers = (root: string): void => {
  writeFileSync(join(root, "ledger.format-1.2026-11-20.sqlite"), `the ledger as it was, with ${gone}`)
  for (const run of [first, second]) {
    mkdirSync(join(root, "runs", run), { recursive: true })
    const write = (name: string, text: string) => writeFileSync(join(root, "runs", run, name), text)
    write("log.ndjson", `${JSON.stringify({ fact: "TaskSettled", ...taskOf(run, gone) })}\n`)
    write("summary.json", JSON.stringify({ troubles: [{ examples: [`${gone} ${engine}`] }] }))
    write("report.html", `<td>${gone}</td>`)
    write("worklist.csv", "customer_id\nc-10\n")
  }
  const tokens = openTokenDatabase(join(root, "tokens.sqlite"))
  const insert = tokens.prepare(
    "INSERT INTO tokens VALUES ('s', ?, ?, ?, 'e', NULL, '[]', NULL, NULL, 1, 2, NULL, NULL, NULL, NULL)",
  )
  insert.run("c-1/e", "token-of-theirs", gone)
  insert.run("c-10/e", "token-of-others", "c-10")
  tokens.close()
  const record = (name: string, report: string | undefined) => {
    mkdirSync(join(root, "acquaint", name), { recursive: true })
    const write = (file: string, text: string) => writeFileSync(join(root, "acquaint", name, file), text)
    write(
      "calls.ndjson",
      `${JSON.stringify({ call: 1, name: "startExecution", ids: { execution_id: "e-th…" } })}\n`,
    )
    if (report !== undefined) write("report.md", report)
  }
  for (const customer of [gone, "c-10"]) {
    record(`${customer}.sandbox-bank_website`, `# ${customer} on sandbox-bank:website\n`)
  }
  // Of a customer whose id continues with a point, as only the report says; the first one was cut off.
  record("c-1.sandbox-tax_website", undefined)
  record("c-1.x.sandbox-bank_website", "# c-1.x on sandbox-bank:website\n")
  const event = (at: number, customer: string) =>
    `${JSON.stringify({ _tag: "Started", at, customer_id: customer, execution_id: `e-of-${customer}` })}\n`
  writeFileSync(join(root, "sandbox.ndjson"), event(1, "c-10") + event(2, gone) + event(3, gone).slice(0, -9))
}

const liveNights = Effect.fnUntraced(function* (root: string) {
  yield* append([begin(first, "2026-11-20")])
  yield* succeed(first, "theirs-one-000001", gone, resultsOf(profileOf("Anastasia")))
  yield* succeed(first, "others-one-000001", "c-10", resultsOf(profileOf("Bea")))
  yield* succeed(first, "others-one-000002", "c-2", resultsOf(profileOf("Carl")))
  const of = (id: string, text: string, customer: string) => document(first, id, `of ${id}`, text, customer)
  yield* of("theirs-one-000001", documentText, gone)
  yield* of("theirs-one-000001", "what both have", gone)
  yield* of("others-one-000001", "what both have", "c-10")
  yield* append([rejected(first, gone, "f-open"), rejected(first, gone, "f-released")])
  yield* append([{ _tag: "CredentialReleased", fingerprint: "f-released" }])
  yield* publish(first)
  yield* append([begin(second, "2026-11-21")])
  yield* succeed(second, "others-two-000001", "c-10", resultsOf(profileOf("Bea"), profileOf("Bert")))
  yield* succeed(second, "theirs-two-000001", gone, resultsOf(profileOf("Anastasia")))
  yield* append([
    {
      _tag: "TaskSettled",
      ...taskOf(second, "c-10"),
      outcome: "failed",
      reason: "BLOCKED_USER",
      who_acts: "customer",
      message: "rejected (then under customer c-1) before",
    },
  ])
  yield* publish(second)
  writeOthers(root)
  yield* nameIn(root)
})

const nameIn = Effect.fnUntraced(function* (root: string) {
  const duckdb = yield* DuckDb
  const connection = yield* duckdb.open({ path: join(root, "nightjar.duckdb"), access: "read-only" })
  yield* nameDocuments(yield* storeOf(root), connection)
}, Effect.scoped)

const base = sharedFolder()
const aFolder = () => mkdtempSync(join(base, "nightjar-forget-"))
const template = aFolder()
beforeAll(
  () => Effect.runPromise(Effect.scoped(Effect.provide(liveNights(template), layers(template)))),
  60_000,
)

const copyOf = (of: string) =>
  Effect.acquireRelease(
    Effect.sync(() => {
      const root = aFolder()
      cpSync(of, root, { recursive: true })
      return root
    }),
    (root) => Effect.sync(() => rmSync(root, { recursive: true, force: true })),
  )
const aCopy = copyOf(template)

type Services = Layer.Success<ReturnType<typeof foundation>>

const inFolder = <A, E>(root: string, work: Effect.Effect<A, E, Services>, calls: FileCalls = machineCalls) =>
  Effect.scoped(Effect.provideService(Effect.provide(work, foundation(root)), FileCalls, calls))

const forgetIn = Effect.fnUntraced(function* (
  root: string,
  customer = gone,
  writeReport: (run_id: RunId) => Effect.Effect<boolean> = () => Effect.succeed(false),
) {
  const store = yield* storeOf(root)
  yield* checkWhole(store)
  const plan = yield* planForget(store, anId(customer))
  if (plan === undefined) return undefined
  return { plan, ...(yield* forget(store, plan, writeReport)) }
})

/** Holds a version back as soon as it has somebody called Eve. */
const gates = {
  keys: false,
  tests: [{ name: "no_eve", sql: "SELECT 1 FROM nights.customer_profiles WHERE name = 'Eve'" }],
}
const models = [
  { name: "people", sql: "-- materialized: table\nSELECT DISTINCT name FROM nights.customer_profiles" },
]

const allTables = "SELECT schema_name || '.' || table_name AS name FROM duckdb_tables()"
const allViews = "SELECT schema_name || '.' || view_name FROM duckdb_views() WHERE NOT internal"

/** All rows of these tables and views, by one connection: opening a database costs more than reading a small one. */
const tablesOf = Effect.fnUntraced(function* (root: string, database: string, of: string) {
  const duckdb = yield* DuckDb
  const { rows } = yield* duckdb.open({ path: join(root, database), access: "read-only" })
  const tables: Record<string, ReadonlyArray<string>> = {}
  for (const { name } of yield* rows(of))
    tables[String(name)] = (yield* rows(`SELECT * FROM ${String(name)}`)).map((row) => JSON.stringify(row))
  return tables
}, Effect.scoped)

const about = (all: ReadonlyArray<RegExp>) => (text: string) => all.some((trace) => trace.test(text))
const isAboutThem = about(traces)

/**
 * All rows to read but those that mention the customer, and how many rows runs have brought: what is true now and the
 * history are views of the same. `runs` counts tasks, and a model is made anew.
 */
const rowsIn = (root: string) =>
  Effect.map(tablesOf(root, "nightjar.duckdb", `${allTables} UNION ALL ${allViews}`), (tables) => ({
    others: Object.fromEntries(
      Object.entries(tables)
        .filter(([name]) => !name.startsWith("store.") && name !== "ops.runs" && name !== "main.people")
        .map(([name, rows]) => [name, rows.filter((row) => !isAboutThem(row)).toSorted()]),
    ),
    brought: Object.entries(tables).reduce(
      (sum, [name, rows]) => sum + (/^(nights|ops)\./.test(name) ? rows.length : 0),
      0,
    ),
  }))
const othersIn = (root: string) => Effect.map(rowsIn(root), ({ others }) => others)

/**
 * Every file that still names the customer: by its path, by all its bytes, and by the rows of what is compressed.
 * A view shows rows of tables.
 */
const findTraces = Effect.fnUntraced(function* (root: string, isAbout = isAboutThem) {
  const duckdb = yield* DuckDb
  const { rows } = yield* duckdb.open({ path: ":memory:", access: "read-write" })
  const found = new Set<string>()
  const paths = filesBelow(root)
  for (const path of paths) {
    const texts = [path, readFileSync(join(root, path), "latin1")]
    if (path.endsWith(".duckdb")) texts.push(JSON.stringify(yield* tablesOf(root, path, allTables)))
    if (texts.some(isAbout)) found.add(path)
  }
  // All files of a table at once: asking for each costs more than reading it.
  const parquet = paths.filter((path) => path.endsWith(".parquet"))
  for (const [, ofTable] of Map.groupBy(parquet, (path) => /tables\/(\w+)\//.exec(path)?.[1])) {
    const list = ofTable.map((path) => `'${join(root, path)}'`).join(", ")
    const all = yield* rows(`SELECT * FROM read_parquet([${list}], union_by_name = true, filename = 'place')`)
    for (const { place, ...row } of all)
      if (isAbout(JSON.stringify(row))) found.add(String(place).slice(root.length + 1))
  }
  return [...found]
}, Effect.scoped)

/** The machine's calls, each after a look at what it is about; runs, tables and numbers are not told apart. */
const around = (look: (call: string) => void): FileCalls => {
  const told = (name: string, [from, to]: ReadonlyArray<unknown>): string => {
    const path = String(typeof to === "string" && (name === "rename" || name === "link") ? to : from)
    const [, below = path] = /nightjar-forget-[^/]*\/(.*)$/.exec(path) ?? []
    const kind = below.replace(/tables\/\w+\/.*/, "tables/").replaceAll(/nightly[^/]*|[0-9a-f]{64}|\d+/g, "*")
    return `${name} ${kind}`
  }
  const watched = Object.entries(machineCalls).map(
    ([name, call]: [string, (...args: Array<never>) => unknown]) => [
      name,
      (...args: Array<never>) => {
        if (name !== "close") look(told(name, args))
        return call(...args)
      },
    ],
  )
  return Object.fromEntries(watched) as unknown as FileCalls
}

/** Every sixteenth one is tried: `NIGHTJAR_CUTS_EVERY=1` tries all, and `npm run faults -- --removals N` kills for real. */
const every = Number(process.env["NIGHTJAR_CUTS_EVERY"] ?? 16)

/**
 * A removal, for all tests that only look at what it leaves, and the folders that a kill would have left: one before
 * each call after which a folder is another one, of each kind the first, in their order.
 */
const removal = Effect.runSync(
  Effect.cached(
    Effect.gen(function* () {
      const root = aFolder()
      cpSync(template, root, { recursive: true })
      const cuts = new Map<string, string>()
      const cut = (call: string) => {
        if (cuts.has(call) || !/^(rename|remove|link|copy) /.test(call)) return
        cuts.set(call, "")
        if (cuts.size % every !== 0) return
        const left = aFolder()
        cpSync(root, left, { recursive: true })
        cuts.set(call, left)
      }
      const reports: Array<RunId> = []
      const notWritten = (run_id: RunId) => Effect.sync(() => reports.push(run_id) < 0)
      const done = yield* inFolder(root, forgetIn(root, gone, notWritten), around(cut))
      return { root, done, reports, cuts: [...cuts].filter(([, left]) => left !== "") }
    }),
  ),
)

describe("forget", () => {
  live(
    "leaves nothing of the customer in any file or folder's name, and everything of the others [promise 15] [promise 15 recordings] [promise 15 names]",
    function* () {
      const { root, done, reports } = yield* removal
      const namedIn = (folder: string) =>
        filesBelow(join(folder, "documents")).map((path) => path.replace(/\/.*/, ""))
      assert.deepStrictEqual(
        [namedIn(template), namedIn(root)],
        [
          [".nightjar-documents", "c-1", "c-10"],
          [".nightjar-documents", "c-10"],
        ],
      )
      const before = yield* inFolder(template, rowsIn(template))
      assert.isAbove((yield* inFolder(template, findTraces(template))).length, 30)
      assert.deepStrictEqual(yield* inFolder(root, findTraces(root)), [])
      const after = yield* inFolder(root, rowsIn(root))
      assert.deepStrictEqual(after.others, before.others)
      assert.deepStrictEqual(yield* inFolder(root, problemsIn(root)), [])
      assert.deepStrictEqual(done?.plan.counts, {
        runs: 2,
        facts: 16,
        bodies: 4,
        // The other document is also another customer's, and stays.
        documents: 1,
        held: 0,
        rows: before.brought - after.brought,
        tokens: 1,
        recordings: 2,
        deleted: 0,
        given_up: 0,
        left_at_service: 0,
        logins_kept: 1,
      })
      assert.deepStrictEqual(reports, [anId(first), anId(second)])
      const runs = yield* inFolder(root, rowsOf(root, "SELECT run_id, tasks FROM ops.runs ORDER BY run_id"))
      assert.deepStrictEqual(runs, [
        { run_id: first, tasks: 2 },
        { run_id: second, tasks: 1 },
      ])
      // What is derived again from the cleaned ledger and landing is what is published.
      const again = yield* inFolder(
        root,
        Effect.flatMap(storeOf(root), (store) => rebuild(store, false)),
      )
      assert.deepStrictEqual({ changes: again.changes, kept: again.kept }, { changes: [], kept: [] })
    },
  )

  live(
    "keeps what two customers have in common, whatever only begins with the id, and of a rejected login nothing but its keyed fingerprint [promise 15 others] [promise 4 forgotten]",
    function* () {
      const { root } = yield* removal
      assert.deepStrictEqual(
        [template, root].map((folder) => filesBelow(join(folder, "attachments")).length),
        [2, 1],
      )
      assert.deepStrictEqual(
        filesBelow(join(root, "acquaint")).filter((path) => path.endsWith("report.md")),
        ["c-1.x.sandbox-bank_website/report.md", "c-10.sandbox-bank_website/report.md"],
      )
      const tokens = new DatabaseSync(join(root, "tokens.sqlite"), { readOnly: true })
      const names = tokens.prepare("SELECT name FROM tokens").all()
      tokens.close()
      assert.deepStrictEqual(names, [{ ...names[0], name: "c-10/e" }])
      assert.deepStrictEqual(readFileSync(join(root, "sandbox.ndjson"), "utf8").trimEnd().split("\n"), [
        '{"_tag":"Started","at":1,"customer_id":"c-10","execution_id":"e-of-c-10"}',
        '{"_tag":"TimeKept","at":2}',
      ])
      const facts = yield* inFolder(
        root,
        Effect.flatMap(Ledger, (ledger) => ledger.facts(anId(first))),
      )
      assert.strictEqual(
        readFileSync(join(root, "runs", first, "log.ndjson"), "utf8"),
        facts.map(({ fact, at }) => logLine(fact, at)).join(""),
      )
      assert.isTrue(facts.some(({ fact }) => fact._tag === "FactForgotten"))
      assert.isTrue(existsSync(join(root, "runs", second, "worklist.csv")))
      const accounts = yield* inFolder(
        root,
        Effect.flatMap(Ledger, (ledger) => ledger.accounts),
      )
      const open = accounts.flatMap(({ rejected: all }) => all.filter((one) => one.fingerprint === "f-open"))
      const of = { run_id: anId(first), engine_reference: anId(engine), reason: "INVALID_CREDENTIALS" }
      assert.deepStrictEqual(
        open.map((one) => ({ ...one, at: 0 })),
        [{ ...of, fingerprint: "f-open", password: "f-open", counts: true, at: 0 } as never],
      )
    },
  )

  live("writes a receipt that every replaced fact names, and notices one that is gone", function* () {
    const { root: removed, done } = yield* removal
    const root = yield* copyOf(removed)
    const receipts = yield* inFolder(
      root,
      Effect.flatMap(Ledger, (ledger) => ledger.receipts),
    )
    const receipt = done?.plan.receipt ?? ""
    assert.match(receipt, /^forgotten-[0-9a-f]{32}$/)
    assert.deepStrictEqual(
      receipts.map(({ fact }) => fact),
      [
        { _tag: "CustomerForgotten", receipt, sealed_from: 2, ...done?.plan.counts } as never,
        { _tag: "ForgetFinished", receipt },
      ],
    )
    const file = new DatabaseSync(join(root, "ledger.sqlite"))
    file.exec("UPDATE facts SET tag = 'Other' WHERE tag = 'CustomerForgotten'")
    file.close()
    const problems = inFolder(
      root,
      Effect.flatMap(Ledger, (ledger) => ledger.problems),
    )
    assert.include(yield* problems, "facts were replaced, and the receipt that says why is missing")
  })

  live(
    "cleans every version that can be put back; one that removed nothing yet blocks no other one [promise 15 versions] [promise 15 refused]",
    function* () {
      const root = yield* copyOf((yield* removal).root)
      const back = yield* inFolder(root, Effect.flatMap(storeOf(root), rollback))
      assert.strictEqual(back._tag, "RolledBack")
      assert.deepStrictEqual(yield* inFolder(root, namesIn(root)), ["Bea", "Carl"])
      const killed = Effect.updateService(forgetIn(root, "c-10"), Ledger, (ledger) => ({
        ...ledger,
        forget: () => Effect.die("killed"),
      }))
      yield* Effect.exit(inFolder(root, killed))
      assert.isTrue(existsSync(join(root, "forgetting.json")))
      // The customer before is gone; another one is removed while an earlier version is published.
      assert.isDefined(yield* inFolder(root, forgetIn(root, "c-2")))
      assert.deepStrictEqual(yield* inFolder(root, namesIn(root)), ["Bea"])
      assert.deepStrictEqual(yield* inFolder(root, problemsIn(root)), [])
    },
  )

  live(
    "removes what a gate holds back, cleans what models made, and the held run is published without the customer [promise 15 held]",
    function* () {
      const root = yield* aCopy
      const third: RunId = anId("nightly.2026-11-22")
      const publisher = PublisherDuckDb.layer({ ...publisherOptions(root), gates, models })
      const living = Layer.provideMerge(publisher, foundation(root))
      yield* Effect.provide(
        Effect.gen(function* () {
          yield* append([begin(third, "2026-11-22")])
          yield* succeed(third, "theirs-one-000003", gone, resultsOf(profileOf("Anastasia")))
          yield* publishStage(third)
          yield* succeed(third, "others-one-000003", "c-3", resultsOf(profileOf("Eve")))
          yield* publishStage(third)
        }),
        living,
      )
      yield* inFolder(root, Effect.flatMap(storeOf(root), rollback))
      const held = `published/held/${third}.duckdb`
      assert.isTrue(isAboutThem(JSON.stringify(yield* inFolder(root, tablesOf(root, held, allTables)))))
      const done = yield* inFolder(root, forgetIn(root))
      assert.strictEqual(done?.plan.counts.held, 1)
      assert.deepStrictEqual(yield* inFolder(root, findTraces(root)), [])
      yield* Effect.provide(
        Effect.andThen(append([{ _tag: "RunAccepted", run_id: third }]), publishStage(third)),
        living,
      )
      assert.deepStrictEqual(yield* inFolder(root, problemsIn(root)), [])
      assert.deepStrictEqual(
        yield* inFolder(root, rowsOf(root, "SELECT name FROM people ORDER BY name")),
        ["Bea", "Bert", "Carl", "Eve"].map((name) => ({ name })),
      )
    },
  )

  live(
    "tells which names and models, which are not its own to change, still name the customer",
    function* () {
      const root = yield* aCopy
      const names = Effect.flatMap(storeOf(root), (store) => namesLeft(store, gone))
      assert.deepStrictEqual(yield* inFolder(root, names), {
        jobs: [],
        jobPaths: [],
        folder: undefined,
        models: [],
      })
      const started = {
        ...begin("only-c-1.2026-11-22", "2026-11-22"),
        job: "only-c-1",
        job_path: "/jobs/C-1/job.yaml",
      } as Fact
      yield* inFolder(root, append([started]))
      mkdirSync(join(root, "published/models"))
      const theirs = [
        { name: "them", sql: "SELECT 'c-1'" },
        { name: "others", sql: "SELECT 'c-10'" },
      ]
      writeFileSync(join(root, "published/models/nightly.json"), JSON.stringify(theirs))
      assert.deepStrictEqual(yield* inFolder(root, names), {
        jobs: ["only-c-1"],
        jobPaths: ["/jobs/C-1/job.yaml"],
        folder: undefined,
        models: [{ job: "nightly", name: "them", sql: "SELECT 'c-1'" }],
      } as never)
      assert.deepStrictEqual(
        ["/data/c-1/output", "c-10", "ac-1", "C-1_old"].map((name) => isInName(name, gone)),
        [true, false, false, true],
      )
      // As a page has it in its data.
      const named = { customer_id: "a<b", tasks: new Set<string>(), ids: [] }
      assert.deepStrictEqual(
        ['{"p":"a\\u003cb bank"}', '{"p":"ba\\u003cb"}'].map((text) => mentionsIn(named, text)),
        [true, false],
      )
    },
  )

  live("counts what the service still has, and what was given up there without a proof", function* () {
    const root = yield* aCopy
    const remote = Effect.gen(function* () {
      const plan = yield* planForget(yield* storeOf(root), anId(gone))
      assert.isDefined(plan)
      const { runs, deleted, given_up } = yield* remoteOf(root, plan as NonNullable<typeof plan>)
      return { due: runs.flatMap(({ due }) => due), deleted, given_up }
    })
    const due = [first, second].map((run) => ({
      task_id: taskOf(run, gone).task_id,
      execution_id: anId(`e-theirs-${run === first ? "one" : "two"}-000001`),
      landed_sha256: "",
    }))
    assert.deepStrictEqual(yield* inFolder(root, remote), { due, deleted: 0, given_up: 0 })
    yield* inFolder(root, deletes(first, "theirs-one-000001"))
    assert.deepStrictEqual(yield* inFolder(root, remote), { due: due.slice(1), deleted: 1, given_up: 1 })
  })

  live(
    "that is cut off before the reports are written again finds them once more, and what came since [promise 15 reports] [promise 15 since]",
    function* () {
      const root = yield* aCopy
      const path = (run: string) => join(root, "runs", run, "report.html")
      const killed = forgetIn(root, gone, () => Effect.die("killed"))
      yield* Effect.exit(inFolder(root, killed))
      const third: RunId = anId("nightly.2026-11-22")
      yield* inFolder(root, append([begin(third, "2026-11-22")]))
      yield* inFolder(root, succeed(third, "theirs-one-000003", gone, resultsOf(profileOf("Anastasia"))))
      const facts = yield* inFolder(
        root,
        Effect.flatMap(Ledger, (ledger) => ledger.factsOfTask(taskOf(third, gone))),
      )
      const done = yield* inFolder(
        root,
        forgetIn(root, gone, (run_id) =>
          Effect.as(
            Effect.sync(() => writeFileSync(path(run_id), "new")),
            true,
          ),
        ),
      )
      const texts = [first, second].map((run) => readFileSync(path(run), "utf8"))
      assert.deepStrictEqual([texts, yield* inFolder(root, findTraces(root))], [["new", "new"], []])
      const { counts } = done?.plan ?? {}
      assert.deepInclude(counts, { runs: 3, facts: 16 + facts.length, bodies: 6, tokens: 1, recordings: 2 })
      const receipts = yield* inFolder(
        root,
        Effect.flatMap(Ledger, (ledger) => ledger.receipts),
      )
      assert.deepInclude(receipts[0]?.fact, counts as object)
    },
  )

  live("finds nothing of a customer who is unknown, and nothing a second time", function* () {
    assert.isUndefined(yield* inFolder(template, forgetIn(template, "c")))
    const { root } = yield* removal
    assert.isUndefined(yield* inFolder(root, forgetIn(root)))
  })

  live(
    "that is cut off anywhere leaves readable tables, and the same command finishes it [promise 15 cut off]",
    function* () {
      const before = yield* inFolder(template, othersIn(template))
      const { cuts } = yield* removal
      assert.isAbove(cuts.length, 0)
      for (const [at, root] of cuts)
        yield* Effect.scoped(
          Effect.gen(function* () {
            const names = yield* inFolder(
              root,
              rowsOf(root, "SELECT DISTINCT name FROM nights.customer_profiles"),
            )
            assert.includeMembers(
              names.map(({ name }) => name),
              ["Bea", "Bert", "Carl"],
            )
            yield* inFolder(root, forgetIn(root))
            const where = `cut before ${at}`
            assert.deepStrictEqual(yield* inFolder(root, findTraces(root)), [], where)
            assert.deepStrictEqual(yield* inFolder(root, othersIn(root)), before, where)
            assert.deepStrictEqual(yield* inFolder(root, problemsIn(root)), [], where)
          }),
        )
    },
    480_000,
  )
})

describe("nightjar forget", () => {
  effect(
    "deletes at the service what is kept there; what it refuses blocks nobody else, and is told with the night that ran meanwhile; of who was tried it finds the trial's job file and its recording [promise 15 tried]",
    function* () {
      const place = new Workplace()
      yield* Effect.addFinalizer(() => Effect.sync(() => place.remove()))
      // No id begins with another one: DuckDB cuts texts in two at the ends of its blocks.
      const customer = (id: string) =>
        `  - { id: ${id}, parameters: { username: queue-1+run-1+ok+as-${id}, password: pppp } }\n`
      const writeJob = (...ids: ReadonlyArray<string>) =>
        place.write(
          "job.yaml",
          "name: nightly\nservice: { sandbox: { speed: 200, faults: faults.yaml } }\nafter_export: keep\n" +
            `engines: [sandbox-bank:website]\nrecord_schemas: []\ncustomers:\n${ids.map(customer).join("")}`,
        )
      const nightjar = (...args: ReadonlyArray<string>) => Effect.promise(() => place.nightjar(...args))
      const here = (...args: ReadonlyArray<string>) =>
        Effect.promise(() => commandHere(...args, "--output", place.output))
      const json = (...args: ReadonlyArray<string>) =>
        Effect.promise(async () => (await place.json(...args)) as object)
      place.write("faults.yaml", "faults: [{ on: deleteExecution, customer: cust-1, status: 409 }]\n")
      writeJob("cust-1", "other", "cust-2")
      assert.strictEqual((yield* nightjar("run", "job.yaml")).code, 0)
      writeJob("cust-1", "tried-4")
      yield* nightjar("acquaint", "job.yaml", "--customer", "tried-4")
      const held = Effect.andThen(lockFolder(`${place.output}/run.lock`), here("forget", "cust-1", "--yes"))
      assert.strictEqual((yield* Effect.scoped(held)).code, 5)
      const found = yield* json("forget", "cust-1", "--dry-run")
      assert.deepInclude(found, { runs: 1, at_service: 1 })
      const refused = yield* nightjar("forget", "cust-1", "--yes")
      assert.deepStrictEqual([refused.code, refused.stderr.includes("[forget-pending]")], [4, true])
      const told = { runs: 1, deleted: 1, recordings: 1, left_at_service: 0 }
      assert.deepInclude(yield* json("forget", "tried-4", "--yes"), told)
      writeJob("cust-1")
      assert.strictEqual((yield* nightjar("run", "job.yaml", "--new")).code, 0)
      place.write("faults.yaml", "faults: []\n")
      renameSync(join(place.folder, "job.yaml"), join(place.folder, "moved.yaml"))
      const needed = yield* nightjar("forget", "cust-1", "--yes")
      assert.deepStrictEqual([needed.code, needed.stderr.includes("[forget-job-needed]")], [2, true])
      // Its service is asked even if the job no longer has any customers.
      place.write(
        "moved.yaml",
        readFileSync(join(place.folder, "moved.yaml"), "utf8").replace(/customers:[^]*/, "customers: []\n"),
      )
      // A removal that was refused has not begun.
      assert.strictEqual((yield* here("verify")).code, 0)
      const done = yield* json("forget", "cust-1", "--yes", "--job", "moved.yaml")
      assert.deepInclude(done, { runs: 2, deleted: 2, given_up: 0, left_at_service: 0 })
      const left = yield* json("forget", "cust-2", "--yes", "--here-only")
      assert.deepInclude(left, { deleted: 0, left_at_service: 1 })
      const named = filesBelow(place.output).filter((path) =>
        /(?<![\w-])(as-)?(cust-[12]|tried-4)(?![\w-])/.test(
          path + readFileSync(join(place.output, path), "latin1"),
        ),
      )
      assert.deepStrictEqual(named, [])
      assert.strictEqual((yield* here("verify")).stdout, "Files, ledger and tables agree.\n")
      assert.strictEqual((yield* nightjar("rerun", "--dry-run")).code, 0)
      const rest = yield* Effect.promise(() => place.rows("SELECT customer_id FROM ops.tasks"))
      assert.deepStrictEqual(rest, [{ customer_id: "other" }])
    },
    240_000,
  )
})
