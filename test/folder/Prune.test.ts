/**
 * What is removed by age, and what stays whatever its age: landing is the only lossless copy, so each reason to keep it
 * is tried, and what was removed is known as pruned, not as lost.
 */
import { cpSync, existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Duration, Effect, Layer } from "effect"
import { TestClock } from "effect/testing"
import { FileCalls, machineCalls } from "../../src/base/DurableFile.ts"
import { applyRetain } from "../../src/cli/PruneJobs.ts"
import type { Job } from "../../src/jobs/Job.ts"
import { backup } from "../../src/folder/Backup.ts"
import { prune, reasonToKeep, type PruneRules } from "../../src/folder/Prune.ts"
import type { Fact } from "../../src/ledger/Fact.ts"
import { Ledger, LedgerFailed } from "../../src/ledger/Ledger.ts"
import { rebuild } from "../../src/tables/Rebuild.ts"
import { repair } from "../../src/tables/Repair.ts"
import { filesBelow } from "../../src/tables/Manifest.ts"
import { Workplace } from "../acceptance/Nightjar.ts"
import { commandHere, commandWork, worksHere } from "../harness/CommandsHere.ts"
import { copiesOf } from "../harness/CopiesOf.ts"
import { aFact, runStarted } from "../harness/Facts.ts"
import { anId } from "../harness/Id.ts"
import { effect } from "../harness/Steps.ts"
import { answered, closed, fold, intended, run_id as lifeId, settled, task_id } from "../task/Lives.ts"
import {
  append,
  begin,
  folder,
  layers,
  problemsIn,
  profileOf,
  publish,
  resultsOf,
  rowsOf,
  storeOf,
  succeed,
  liveIn,
  deletes,
  document,
  ends,
  taskOf,
} from "../tables/night.ts"

const run_id = "nightly.2026-11-20"
const later = "nightly.2026-11-21"
const days = (count: number) => Duration.days(count)

/** A whole night that left nothing at the service. */
const night = Effect.fnUntraced(function* (run: string, id: string, ...documents: ReadonlyArray<string>) {
  yield* append([begin(run, run.slice("nightly.".length))])
  yield* succeed(run, id, "c-1", resultsOf(profileOf(`name-${id}`)))
  const paths: Array<string> = []
  for (const text of documents) paths.push(yield* document(run, id, text, text))
  const { receipts } = yield* publish(run)
  yield* deletes(run, id, receipts[0]?.landed_sha256 ?? "")
  yield* ends(run)
  return paths
})

/** One night that is over; the same with two documents, whose paths are kept; and one that is published, and not over. */
const afterNight = copiesOf((root) => Effect.provide(night(run_id, "1"), layers(root)))
const documents: Array<string> = []
const withDocuments = copiesOf((root) =>
  Effect.provide(
    Effect.map(night(run_id, "1", "own", "shared"), (paths) => documents.push(...paths)),
    layers(root),
  ),
)
const landed = Effect.andThen(
  append([begin(run_id, "2026-11-20")]),
  succeed(run_id, "1", "c-1", resultsOf(profileOf("Ana"))),
)
const publishedNight = Effect.andThen(landed, publish(run_id))

const soon = () => Date.now() + Duration.toMillis(days(100))
const pruned = Effect.fnUntraced(function* (root: string, rules: Partial<PruneRules>, isDry = false) {
  const store = yield* storeOf(root)
  return yield* prune(store, [{ job: "nightly", ...rules }], { now: soon(), isDry, runsMax: 100 })
})
const none = { removed: [], kept: [], compressed: [], archived: [] }
const bytesBelow = (folder: string) => filesBelow(folder).length

describe("prune", () => {
  liveIn(afterNight)(
    "removes old landing and says so; tables stay, and nothing calls it missing",
    function* (root) {
      const landing = join(root, "landing", run_id)
      const dry = yield* pruned(root, { landing: days(90) }, true)
      assert.deepStrictEqual([bytesBelow(landing), (yield* (yield* Ledger).pruned).landing.size], [1, 0])
      assert.deepStrictEqual(yield* pruned(root, { landing: days(101) }), none)
      const { removed, ...rest } = yield* pruned(root, { landing: days(90) })
      assert.deepStrictEqual({ removed, ...rest }, dry)
      assert.deepStrictEqual(
        removed.map(({ bytes, ...one }) => ({ ...one, some: bytes > 1_000 })),
        [{ run_id: anId(run_id), what: "landing", some: true }],
      )
      assert.deepStrictEqual(readdirSync(join(root, "landing")), [])
      assert.deepStrictEqual(yield* problemsIn(root), [])
      const names = yield* rowsOf(root, "SELECT name FROM nights.customer_profiles")
      assert.deepStrictEqual(names, [{ name: "name-1" }])
      assert.deepStrictEqual(yield* pruned(root, { landing: days(90) }), none)
      const today = new Date().toISOString().slice(0, 10)
      const reason = `its landed bodies were pruned on ${today}`
      const { runs, kept: keeps } = yield* rebuild(yield* storeOf(root), true)
      assert.deepStrictEqual([runs, keeps], [0, [{ run_id: anId(run_id), reason, pruned: true }]])
      // The database has the rows of a lost file, until it is lost too.
      rmSync(join(root, "tables/customer_profiles"), { recursive: true })
      assert.deepStrictEqual((yield* repair(yield* storeOf(root))).left, [])
      assert.deepStrictEqual(yield* problemsIn(root), [])
      rmSync(join(root, "tables/customer_profiles"), { recursive: true })
      rmSync(join(root, "nightjar.duckdb"))
      assert.deepStrictEqual((yield* repair(yield* storeOf(root))).left, [
        `${run_id}: its tables cannot be derived again: ${reason}`,
      ])
    },
  )

  liveIn(withDocuments)(
    "archives what the ledger knows of old runs; tables are checked and derived as before",
    function* (root) {
      // What the next night reads stays: the newest runs of a job, whatever their age.
      const newer = Array.from({ length: 10 }, (_, index) => `nightly.2026-12-${10 + index}`)
      for (const run of newer) {
        const steered = { _tag: "RunSteered", run_id: anId(run), order: "pause" } as const
        yield* append([begin(run, run.slice("nightly.".length)), steered])
        yield* ends(run)
      }
      const ledger = yield* Ledger
      const facts = ledger.facts(anId(run_id))
      const before = yield* facts
      assert.deepStrictEqual((yield* pruned(root, { ledger: days(101) })).archived, [])
      const dry = yield* pruned(root, { ledger: days(90) }, true)
      assert.deepStrictEqual([yield* facts, (yield* ledger.archived).size], [before, 0])
      const { archived, ...rest } = yield* pruned(root, { ledger: days(90) })
      assert.deepStrictEqual({ archived, ...rest }, dry)
      assert.deepStrictEqual(
        [archived.map((one) => one.run_id), rest],
        [[anId(run_id)], { removed: [], kept: [], compressed: [] }],
      )
      assert.deepStrictEqual((yield* pruned(root, { ledger: days(90) })).archived, [])
      assert.deepStrictEqual((yield* facts).slice(0, -1), before)
      assert.deepStrictEqual(yield* problemsIn(root), [])
      const copy = join(root, "copy")
      yield* backup(root, copy)
      const copied = Effect.flatMap(Ledger, (theirs) =>
        Effect.all([theirs.facts(anId(run_id)), problemsIn(copy)]),
      )
      const [inCopy, problems] = yield* Effect.provide(copied, Layer.fresh(layers(copy)))
      assert.deepStrictEqual([inCopy.slice(0, -1), problems], [before, []])
      rmSync(copy, { recursive: true })
      rmSync(join(root, "tables/customer_profiles"), { recursive: true })
      rmSync(join(root, "nightjar.duckdb"))
      assert.deepStrictEqual((yield* repair(yield* storeOf(root))).left, [])
      assert.deepStrictEqual(yield* rowsOf(root, "SELECT name FROM nights.customer_profiles"), [
        { name: "name-1" },
      ])
      // Its documents and landed bodies still leave by their own ages.
      const removed = (yield* pruned(root, { landing: days(90), attachments: days(90) })).removed
      assert.deepStrictEqual(
        removed.map(({ what }) => what),
        ["landing", "attachments"],
      )
      assert.deepStrictEqual([yield* problemsIn(root), readdirSync(join(root, "attachments"))], [[], []])
    },
  )

  liveIn()(
    "warns if the disk has no room to make the ledger's file smaller: what is archived stays so",
    function* (root) {
      const runs = Array.from({ length: 12 }, (_, index) => `nightly.2026-12-${10 + index}`)
      for (const run of runs) {
        const steered = { _tag: "RunSteered", run_id: anId(run), order: "pause" } as const
        yield* append([begin(run, run.slice("nightly.".length)), steered])
        yield* ends(run)
      }
      const ledger = yield* Ledger
      const failing = (failure: LedgerFailed) =>
        Effect.provideService(Ledger, Ledger.of({ ...ledger, giveBack: Effect.fail(failure) }))
      const full = failing(new LedgerFailed({ message: "database or disk is full" }))
      const rules = { ledger: days(90) }
      const { archived, still_large } = yield* full(pruned(root, rules))
      assert.deepStrictEqual(
        [archived.map((one) => one.run_id), still_large],
        [[anId(runs[0]!), anId(runs[1]!)], "database or disk is full"],
      )
      const damaged = new LedgerFailed({ message: "malformed", damaged: true })
      assert.strictEqual(yield* Effect.flip(failing(damaged)(pruned(root, rules))), damaged)
      assert.deepStrictEqual(yield* pruned(root, rules), none)
      const retain = { ledger: Duration.zero, compress: days(90) }
      const { stdout, stderr } = yield* worksHere(full(applyRetain(root, { name: "nightly", retain } as Job)))
      assert.deepStrictEqual(
        [stdout, stderr],
        [
          "",
          "warning: the ledger's file could not be made smaller after facts of old runs were archived: " +
            "database or disk is full [ledger-still-large]\n",
        ],
      )
      assert.deepStrictEqual(yield* problemsIn(root), [])
    },
  )

  effect(
    "leaves the facts of a run in the ledger that has not ended, waits for a gate, or has something at the service",
    function* () {
      const root = yield* folder
      yield* Effect.gen(function* () {
        const begins = (day: number) => {
          const run = `nightly.2026-12-${day}`
          return Effect.as(append([begin(run, run.slice("nightly.".length))]), run)
        }
        const held = (run: string) =>
          append([{ _tag: "RunHeld", run_id: anId(run), database: "held", gates: [] }])
        const works = [
          () => Effect.void,
          (run: string) => ends(run, { leftovers: true }),
          (run: string) => ends(run, { kept: 1 }),
          (run: string) => Effect.andThen(held(run), ends(run)),
        ]
        for (const [at, work] of works.entries()) {
          const run = yield* begins(10 + at)
          yield* succeed(run, String(at), "c-1", resultsOf(profileOf("Ana")))
          yield* work(run)
        }
        for (let day = 15; day < 25; day += 1) yield* begins(day)
        const now = Duration.toMillis(days(20))
        const rules = [{ job: "nightly", ledger: days(1) }]
        const { archived } = yield* prune(yield* storeOf(root), rules, { now, isDry: false, runsMax: 9 })
        assert.deepStrictEqual(archived, [])
      }).pipe(Effect.provide(layers(root)))
    },
  )

  liveIn(afterNight)("compresses old landing, from which all tables can still be derived", function* (root) {
    const below = () => readdirSync(join(root, "landing", run_id))
    const people = () => rowsOf(root, "SELECT record_id, content_id, name FROM nights.customer_profiles")
    const before = yield* people()
    assert.lengthOf(before, 1)
    assert.deepStrictEqual(yield* pruned(root, { compress: days(101) }), none)
    // What is removed is not compressed.
    const all = yield* pruned(root, { compress: days(7), landing: days(90) }, true)
    assert.deepStrictEqual([all.compressed, all.removed.length], [[], 1])
    const dry = yield* pruned(root, { compress: days(7), landing: days(101) }, true)
    assert.deepStrictEqual(below(), ["segment-000001.njl"])
    const { compressed, ...rest } = yield* pruned(root, { compress: days(7), landing: days(101) })
    assert.deepStrictEqual({ compressed, ...rest }, dry)
    assert.deepStrictEqual(
      [rest, compressed.map(({ run_id: id, before, after }) => [id, after < before])],
      [{ removed: [], kept: [], archived: [] }, [[anId(run_id), true]]],
    )
    assert.deepStrictEqual(below(), ["segment-000001.njl.zst"])
    assert.deepStrictEqual(yield* pruned(root, { compress: days(7) }), none)
    const derived = yield* rebuild(yield* storeOf(root), true)
    assert.deepStrictEqual([derived.runs, derived.kept], [1, []])
    assert.deepStrictEqual([yield* people(), yield* problemsIn(root)], [before, []])
    const { removed } = yield* pruned(root, { compress: days(7), landing: days(90) })
    assert.deepStrictEqual([removed.length, existsSync(join(root, "landing", run_id))], [1, false])
  })

  it("keeps the landing while anything of its run is open, at the service, held back or not in the tables [promise 5 pruned]", () => {
    const execution = { run_id: lifeId, task_id, execution_id: anId("e-1") }
    const lived = [intended(1), answered(1, "accepted"), settled("succeeded", "COMPLETED")]
    const gone = { status_code: "UNKNOWN", status_reason: "EXECUTION_GONE" } as const
    const deleted: ReadonlyArray<Fact> = [
      { _tag: "DeleteIntended", ...execution, landed_sha256: "aa" },
      { _tag: "DeleteAnswered", ...execution, http_status: 204, outcome: "deleted" },
    ]
    const published = aFact("RunPublished", { run_id: lifeId })
    const where = { task_id, where: "segment-000001.njl:1", reason: "too deep" }
    const ended = aFact("RunEnded", { run_id: lifeId })
    const held: Fact = { _tag: "RunHeld", run_id: lifeId, database: "published/held/x", gates: [] }
    const read = aFact("ResultsRead", { run_id: lifeId, task_id })
    const reasonOf = (...facts: ReadonlyArray<Fact>) => reasonToKeep(fold([...lived, ...facts]))
    const atService = "something of it is still at the service"
    assert.deepStrictEqual(
      [
        reasonOf(published, ...deleted, ended),
        // The service has forgotten it.
        reasonOf(aFact("AttemptClosed", { ...execution, ...gone }), published, ended),
        reasonOf(published, ...deleted),
        reasonOf(published, ...deleted, ended, { _tag: "RunResumed", run_id: lifeId }),
        reasonOf(published, ended),
        reasonOf(published, ...deleted, aFact("RunEnded", { run_id: lifeId, leftovers: true })),
        reasonOf(published, ...deleted, held, ended),
        reasonOf(...deleted, ended),
        reasonOf(published, closed(1), ...deleted, ended),
        reasonOf(published, ...deleted, read, ended),
        reasonOf({ ...published, left_out: [where] }, ...deleted, ended),
      ],
      [
        undefined,
        undefined,
        "it is not finished",
        "it is not finished",
        atService,
        atService,
        "a gate holds its tables back",
        "not all of it is published",
        "not all of it is published",
        "not all of it is published",
        "some of its bodies are not in the tables",
      ],
    )
  })

  liveIn(afterNight)(
    "keeps the landing of a run whose tables are damaged [promise 5 last copy]",
    function* (root) {
      const path = `tables/customer_profiles/run_date=2026-11-20/${run_id}-v1.parquet`
      writeFileSync(join(root, path), "something else")
      assert.deepStrictEqual(yield* pruned(root, { landing: days(1) }), {
        removed: [],
        kept: [{ run_id: anId(run_id), what: "landing", reason: `${path} is damaged` }],
        compressed: [],
        archived: [],
      })
    },
  )

  effect("counts from the end of a run, and a stranger's execution keeps nothing", function* () {
    const root = yield* folder
    yield* Effect.gen(function* () {
      yield* publishedNight
      yield* append([{ _tag: "AttemptDisowned", ...taskOf(run_id), attempt: 1, execution_id: anId("e-1") }])
      yield* TestClock.adjust(days(10))
      yield* ends(run_id)
      const store = yield* storeOf(root)
      const after = (count: number) =>
        prune(store, [{ job: "nightly", landing: days(90) }], {
          now: Duration.toMillis(days(count)),
          isDry: false,
          runsMax: 100,
        })
      assert.deepStrictEqual(yield* after(99), none)
      assert.lengthOf((yield* after(100)).removed, 1)
    }).pipe(Effect.provide(layers(root)))
  })

  liveIn(withDocuments)(
    "removes a document with the last run that needs it, and logs alone",
    function* (root) {
      const [own = "", shared = ""] = documents
      yield* append([{ ...begin(later, "2026-11-21"), job: "other" } as Fact])
      yield* succeed(later, "2", "c-1", resultsOf(profileOf("Bea")))
      yield* document(later, "2", "shared", "shared")
      const { receipts } = yield* publish(later)
      yield* deletes(later, "2", receipts[0]?.landed_sha256 ?? "")
      yield* ends(later)
      mkdirSync(join(root, "runs", run_id), { recursive: true })
      writeFileSync(join(root, "runs", run_id, "log.ndjson"), "12345\n")
      writeFileSync(join(root, "runs", run_id, "summary.json"), "{}\n")
      const there = () => [own, shared].map((path) => existsSync(join(root, path)))
      const dry = yield* pruned(root, { attachments: days(1), logs: days(1) }, true)
      assert.deepStrictEqual([dry.removed.length, there()], [2, [true, true]])
      assert.include(readdirSync(join(root, "runs", run_id)), "log.ndjson")
      assert.deepStrictEqual((yield* pruned(root, { attachments: days(1), logs: days(1) })).removed, [
        { run_id: anId(run_id), what: "attachments", bytes: 3 },
        { run_id: anId(run_id), what: "log", bytes: 6 },
      ])
      assert.deepStrictEqual([there(), yield* problemsIn(root)], [[false, true], []])
      assert.deepStrictEqual(readdirSync(join(root, "runs", run_id)), ["summary.json"])
      const { removed } = yield* pruned(root, { job: "other", attachments: days(1) })
      assert.deepStrictEqual(removed, [{ run_id: anId(later), what: "attachments", bytes: 6 }])
      assert.deepStrictEqual([there(), yield* problemsIn(root)], [[false, false], []])
    },
  )

  liveIn(afterNight)(
    "looks once at a run without documents, and at no more runs than it may",
    function* (root) {
      yield* night(later, "2", "a document")
      const store = yield* storeOf(root)
      const next = (isDry: boolean) =>
        prune(store, [{ job: "nightly", attachments: days(1) }], { now: soon(), isDry, runsMax: 1 })
      const noted = Effect.flatMap(Ledger, (ledger) => ledger.pruned)
      const looks = [yield* next(true), yield* next(false), yield* next(false), yield* next(false)]
      const removed = [{ run_id: anId(later), what: "attachments" as const, bytes: 10 }]
      assert.deepStrictEqual(
        looks.map((one) => one.removed),
        [[], [], removed, []],
      )
      assert.deepStrictEqual([...(yield* noted).attachments.keys()], [run_id, later])
    },
  )

  liveIn(withDocuments)("that was cut off is finished by the next one", function* (root) {
    const [path = ""] = documents
    const refusing: FileCalls = {
      ...machineCalls,
      remove: () => {
        throw new Error("cut off")
      },
    }
    const stopped = (rules: Partial<PruneRules>) =>
      Effect.flip(Effect.provideService(pruned(root, rules), FileCalls, refusing))
    assert.match((yield* stopped({ attachments: days(1) })).message, /cut off/)
    assert.match((yield* stopped({ landing: days(1) })).message, /cut off/)
    const there = () => [path, `landing/${run_id}`].map((one) => existsSync(join(root, one)))
    assert.deepStrictEqual([there(), yield* problemsIn(root)], [[true, true], []])
    yield* pruned(root, { landing: days(1), attachments: days(1) })
    assert.deepStrictEqual([there(), yield* problemsIn(root)], [[false, false], []])
  })
})

describe("a run with `retain`", () => {
  // The first night is lived at the beginning of time: the clock of this test starts there.
  effect(
    "removes and compacts at its end what is old enough, and `prune` finds nothing more; without it, compresses landing [prune list]",
    function* () {
      const place = new Workplace()
      yield* Effect.addFinalizer(() => Effect.sync(() => place.remove()))
      mkdirSync(join(place.output, "runs"), { recursive: true })
      const old = ["nightly.2025-10-30", "nightly.2025-10-31"]
      const nights = Effect.forEach(old, (run, at) => night(run, String(at)))
      yield* Effect.provide(nights, layers(place.output))
      const job = (retain: string) =>
        place.write(
          "job.yaml",
          `name: nightly\nservice: { sandbox: { speed: 200 } }\nengines: [sandbox-bank:website]\nrecord_schemas: []\n${retain}` +
            "customers: [{ id: one, parameters: { username: queue-1+run-1+ok, password: pppp } }]\n",
        )
      const nightjar = (...args: ReadonlyArray<string>) => Effect.promise(() => place.nightjar(...args))
      job("")
      const unset = yield* nightjar("prune", "job.yaml")
      assert.deepStrictEqual([unset.code, unset.stderr.includes("[retain-unset]")], [2, true])
      const first = yield* nightjar("run", "job.yaml")
      const landed = (id: string) => readdirSync(join(place.output, "landing", id))
      const [, , today = ""] = readdirSync(join(place.output, "landing")).toSorted()
      const compressed = ["segment-000001.njl.zst"]
      assert.deepStrictEqual(
        [first.code, first.stderr.includes("ompress"), old.map(landed), landed(today)],
        [0, false, [compressed, compressed], ["segment-000001.njl"]],
      )
      job("retain: { landing: 30 days, snapshots: 1, compact: 1 day }\n")
      const dry = yield* nightjar("prune", "job.yaml", "--dry-run")
      assert.match(dry.stdout, /^2025-10: 26 files \(.*\) would become 13 files\.\nThis would be removed, /)
      assert.match(dry.stdout, /^nightly\.2025-10-30 +landing/m)
      // A copy in which nothing can be published: what is gone is told before the reason why it stopped.
      const copy = join(place.folder, "copy")
      cpSync(place.output, copy, { recursive: true })
      const refusing = {
        ...machineCalls,
        rename: (from: string, to: string) => {
          if (to.endsWith("manifest.next.json")) throw new Error("cut off")
          machineCalls.rename(from, to)
        },
      }
      const stopped = yield* Effect.promise(() =>
        Effect.runPromise(
          Effect.provideService(
            commandWork(["prune", join(place.folder, "job.yaml"), "--output", copy]),
            FileCalls,
            refusing,
          ),
        ),
      )
      assert.strictEqual(stopped.code, 4)
      assert.match(stopped.stdout, /^Removed, [^]*^nightly\.2025-10-30 +landing/m)
      assert.match(stopped.stderr, /cut off[^]*What was removed stays removed, and the ledger records it\. /)
      const run = yield* nightjar("run", "job.yaml")
      assert.strictEqual(run.code, 0)
      assert.match(run.stderr, /^Removed by age \(`retain`\): [0-9.]+ kB of 2 runs\.$/m)
      assert.match(run.stderr, /^Compacted 2025-10: from 26 files \(.*\) to 13 files \(/m)
      assert.deepStrictEqual(readdirSync(join(place.output, "landing")), [today])
      const again = yield* nightjar("prune", "job.yaml")
      assert.deepStrictEqual(
        [again.code, again.stdout],
        [0, "Nothing is older than `retain` allows, or it is still needed.\n"],
      )
      assert.strictEqual((yield* nightjar("verify")).stdout, "Files, ledger and tables agree.\n")
    },
    120_000,
  )
})

describe("`prune` without job files", () => {
  const nobody = "customers: []\nmin_customers: 9\n"
  /** In a folder in which a run of each job, from the named file, ended in 1970 and left a log. */
  const after = Effect.fnUntraced(function* (jobs: Readonly<Record<string, string>>) {
    const [output, files] = [yield* folder, yield* folder]
    const pathOf = (file: string) => join(files, `${file}.yaml`)
    const logOf = (job: string) => join(output, `runs/${job}.2026-11-20/log.ndjson`)
    const write = (name: string, text: string) =>
      writeFileSync(
        pathOf(name),
        `name: ${name}\nservice: sandbox\nengines: [sandbox-bank:website]\nretain: { logs: 1 day }\n${text}`,
      )
    const runs = Object.entries(jobs).map(([job, file]) => {
      mkdirSync(dirname(logOf(job)), { recursive: true })
      writeFileSync(logOf(job), "{}\n")
      const run = `${job}.2026-11-20`
      return Effect.andThen(append([runStarted(run, { job_path: pathOf(file) })]), ends(run))
    })
    yield* Effect.provide(Effect.all(runs), layers(output))
    const command = Effect.promise(() => commandHere("prune", "--output", output))
    const logs = () => Object.keys(jobs).filter((job) => existsSync(logOf(job)))
    return { pathOf, write, command, logs }
  })

  effect(
    "keeps what is of a job without a file, names that job, and applies the rules of the others [prune moved]",
    function* () {
      const { pathOf, write, command, logs } = yield* after({ gone: "gone", former: "named", named: "named" })
      write("named", nobody)
      const { code, stderr } = yield* command
      const told = (job: string, file: string) =>
        `warning: nothing of job ${job} is removed by age: its file is no longer at ${pathOf(file)} [prune-without-job]\n`
      assert.deepStrictEqual([code, stderr], [0, told("gone", "gone") + told("former", "named")])
      assert.deepStrictEqual(logs(), ["gone", "former"])
    },
  )

  effect("needs no customers of a job, and refuses a file that is wrong [prune nobody]", function* () {
    const { write, command, logs } = yield* after({ one: "one", other: "other" })
    write("one", nobody)
    write("other", "custmers: []\n")
    const refused = yield* command
    assert.deepStrictEqual([refused.code, logs()], [2, ["one", "other"]])
    assert.match(refused.stderr, /\[job-invalid\]/)
    write("other", nobody)
    const { code, stderr } = yield* command
    assert.deepStrictEqual([code, stderr, logs()], [0, "", []])
  })
})
