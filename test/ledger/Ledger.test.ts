/** The ledger over memory and over files: durable, whole, readable while it is written, closed to others. */
import { describe, expect, it } from "@effect/vitest"
import { Effect, Exit, Layer } from "effect"
import { TestClock } from "effect/testing"
import { existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs"
import { DatabaseSync } from "node:sqlite"
import { join } from "node:path"
import { lockFolder } from "../../src/base/FolderLock.ts"
import type { Fact } from "../../src/ledger/Fact.ts"
import { linkOf } from "../../src/ledger/LedgerKeys.ts"
import { Ledger } from "../../src/ledger/Ledger.ts"
import { openLedger } from "../../src/ledger/LedgerSchema.ts"
import { everyFact, everyRun } from "./AnyFacts.ts"
import { changeFile } from "./CountedReads.ts"
import { anId } from "../harness/Id.ts"
import { effect, withLayer } from "../harness/Steps.ts"
import { folder } from "../harness/Folder.ts"
import { aFact, runStarted } from "../harness/Facts.ts"

const run_id = anId("nightly.2026-11-21")
const task = { run_id, task_id: anId(`${run_id}/c-1/bank:website`) }
const planned: Fact = aFact("TaskPlanned", {
  ...task,
  customer_id: "c-1",
  engine_reference: "bank",
  features: ["a"],
})
const rejected = (fingerprint: string, reason = "BLOCKED_USER"): Fact =>
  aFact("CredentialRejected", { ...task, fingerprint, customer_id: "c-1", engine_reference: "bank", reason })

/** The same behaviour over every place that a ledger may have. */
const inMemory = withLayer(Ledger.layer({ path: ":memory:" }))
const inFile = withLayer(
  Layer.unwrap(Effect.map(folder, (root) => Ledger.layer({ path: join(root, "ledger.sqlite") }))),
)
const overBoth = (title: string, steps: Parameters<typeof inMemory.effect>[1]) => {
  inMemory.effect(`${title}, in memory`, steps)
  inFile.effect(`${title}, in a file`, steps)
}

describe("the ledger", () => {
  effect("accepts no fact once a person removed the lock of its folder [promise 8 ledger]", function* () {
    const root = yield* folder
    yield* lockFolder(join(root, "run.lock"))
    const written = Effect.gen(function* () {
      const ledger = yield* Ledger
      yield* ledger.append([runStarted(run_id)])
      rmSync(join(root, "run.lock"))
      return [yield* Effect.flip(ledger.append([planned])), yield* ledger.facts(run_id)] as const
    })
    const [failure, facts] = yield* Effect.provide(
      written,
      Ledger.layer({ path: join(root, "ledger.sqlite") }),
    )
    expect(failure.message).toContain("run.lock was removed while this process works")
    expect(facts).toHaveLength(1)
  })

  overBoth("returns each run's facts in order with the time at which they were known", function* () {
    const ledger = yield* Ledger
    yield* ledger.append([])
    yield* ledger.append([runStarted(run_id), planned])
    yield* TestClock.adjust("3 seconds")
    yield* ledger.append([runStarted("other.2026-11-21")])
    yield* ledger.append([
      { _tag: "TaskSettled", ...task, outcome: "failed", reason: "FAILED", who_acts: "nobody" },
    ])
    const facts = yield* ledger.facts(run_id)
    expect(facts.map(({ seq, at, fact }) => [seq, at, fact._tag])).toEqual([
      [1, 0, "RunStarted"],
      [2, 0, "TaskPlanned"],
      [4, 3_000, "TaskSettled"],
    ])
    expect(facts[1]?.fact).toEqual(planned)
    expect(yield* ledger.facts(anId("nobody.2026-11-21"))).toEqual([])
    expect((yield* ledger.runs).map(({ seq, fact, ended }) => [seq, fact, ended])).toEqual([
      [1, runStarted(run_id), undefined],
      [3, runStarted("other.2026-11-21"), undefined],
    ])
  })

  overBoth("keeps a rejected login until it is released, and again when it is rejected again", function* () {
    const ledger = yield* Ledger
    const open = Effect.map(ledger.accounts, (accounts) =>
      accounts.flatMap((account) =>
        account.rejected.map(({ fingerprint, reason, at }) => [fingerprint, reason, at]),
      ),
    )
    const released: Fact = { _tag: "CredentialReleased", fingerprint: "f1" }
    yield* ledger.append([rejected("f1"), rejected("f2")])
    yield* TestClock.adjust("3 seconds")
    yield* ledger.append([released])
    expect(yield* open).toEqual([["f2", "BLOCKED_USER", 0]])
    yield* ledger.append([rejected("f1", "CHANGE_PASSWORD")])
    expect(yield* open).toEqual([
      ["f1", "CHANGE_PASSWORD", 3_000],
      ["f2", "BLOCKED_USER", 0],
    ])
    // What was done by hand belongs to no run.
    expect(yield* ledger.byHand).toEqual([{ seq: 3, at: 3_000, fact: released }])
  })

  overBoth(
    "decides in the transaction that writes: of two at once the second sees the first; one that throws fails alone",
    function* () {
      const ledger = yield* Ledger
      const login = {
        account: "A",
        identity: ["user"],
        password: "p",
        fingerprint: "f",
        former: [],
        isByHand: false,
      }
      const once = (name: string) =>
        ledger.decide(({ ofLogin }) => {
          const others = ofLogin(login).flatMap(({ sent }) =>
            sent.map(({ external_execution_id }) => external_execution_id),
          )
          const intent = {
            ...task,
            engine_reference: anId("bank"),
            attempt: 1,
            external_execution_id: name,
            probe: false,
          }
          const sent = { account: "A", identity: ["user"], password: "p" }
          const fact: Fact = { _tag: "StartIntended", ...intent, login: sent, fingerprint: "f" }
          return { facts: others.length === 0 ? [fact] : [], answer: others }
        })
      const broken = ledger.decide(() => {
        throw new Error("a defect")
      })
      const unwritable = ledger.append([{ _tag: "RunResumed" } as Fact])
      const all = yield* Effect.all(
        [
          Effect.exit(broken),
          Effect.exit(unwritable),
          once("first"),
          once("second"),
          ledger.append([runStarted(run_id)]),
        ],
        { concurrency: "unbounded" },
      )
      // A defect of ours is none of the ledger's: a ledger that fails would end the run.
      expect([
        ...all.slice(0, 2).map((one) => Exit.isExit(one) && Exit.hasDies(one)),
        all[2],
        all[3],
      ]).toEqual([true, true, [], ["first"]])
      expect((yield* ledger.facts(run_id)).map(({ fact }) => fact._tag)).toEqual([
        "StartIntended",
        "RunStarted",
      ])
    },
  )

  overBoth("keeps the newest form of an engine, and one key forever", function* () {
    const ledger = yield* Ledger
    expect(yield* ledger.cachedForm(anId("bank"))).toBeUndefined()
    yield* ledger.cacheForm({ engine_reference: anId("bank"), fetched_at: 1.5, body: "old" })
    yield* ledger.cacheForm({ engine_reference: anId("bank"), fetched_at: 2, body: "new" })
    expect(yield* ledger.cachedForm(anId("bank"))).toEqual({
      engine_reference: anId("bank"),
      fetched_at: 2,
      body: "new",
    })
    const key = yield* ledger.fingerprintKey
    expect(key.length).toBe(32)
    expect(yield* ledger.fingerprintKey).toEqual(key)
  })

  effect("gives two output folders different keys", function* () {
    const key = Effect.provide(
      Effect.flatMap(Ledger, (ledger) => ledger.fingerprintKey),
      Layer.fresh(Ledger.layer({ path: ":memory:" })),
    )
    expect(yield* key).not.toEqual(yield* key)
  })

  effect("writes all of an append or nothing, and continues after a failure", function* () {
    const database = openLedger({ path: ":memory:" })
    database.exec(
      `CREATE TRIGGER full BEFORE INSERT ON facts WHEN NEW.tag = 'TaskPlanned'
          BEGIN SELECT RAISE(ABORT, 'disk full'); END`,
    )
    yield* Effect.gen(function* () {
      const ledger = yield* Ledger
      const failed = yield* Effect.flip(ledger.append([runStarted(run_id), planned]))
      // What other space on the disk mends is not called damage.
      expect([failed._tag, failed.message, failed.damaged]).toEqual(["LedgerFailed", "disk full", undefined])
      expect([yield* ledger.facts(run_id), database.isTransaction]).toEqual([[], false])
      database.exec("DROP TRIGGER full")
      yield* ledger.append([runStarted(run_id), planned])
      expect((yield* ledger.facts(run_id)).length).toBe(2)
    }).pipe(Effect.provide(Ledger.layerOver(database)))
  })

  effect(
    "is read by a second process while the first one writes, which never sees half an append",
    function* () {
      const path = join(yield* folder, "ledger.sqlite")
      const writer = openLedger({ path })
      yield* Effect.provide(
        Effect.flatMap(Ledger, (ledger) => ledger.append([runStarted(run_id)])),
        Ledger.layerOver(writer),
      )
      yield* Effect.gen(function* () {
        const reader = yield* Ledger
        const seen = Effect.map(reader.facts(run_id), (facts) => facts.length)
        writer.exec("BEGIN IMMEDIATE")
        const [first] = writer.prepare("SELECT * FROM facts").all()
        const body = JSON.stringify(planned)
        const fact = { seq: 2, at: 1, tag: planned._tag, run_id, task_id: null, body }
        writer
          .prepare("INSERT INTO facts VALUES (2, 1, ?, ?, NULL, ?, ?)")
          .run(fact.tag, run_id, body, linkOf(String(first?.["chain"]), fact))
        expect(yield* seen).toBe(1)
        writer.exec("COMMIT")
        expect(yield* seen).toBe(2)
        expect((yield* Effect.flip(reader.append([planned])))._tag).toBe("LedgerFailed")
      }).pipe(Effect.provide(Ledger.layer({ path, readOnly: true })))
      writer.close()
    },
  )

  effect(
    "survives its process: a reopened file has all that was acknowledged, closed to other accounts",
    function* () {
      const path = join(yield* folder, "ledger.sqlite")
      const open = <A, E>(body: (ledger: Ledger["Service"]) => Effect.Effect<A, E>) =>
        Effect.provide(Effect.flatMap(Ledger, body), Layer.fresh(Ledger.layer({ path })))
      const key = yield* open((ledger) => ledger.fingerprintKey)
      yield* open((ledger) => ledger.append([runStarted(run_id), planned]))
      expect(yield* open((ledger) => ledger.facts(run_id))).toHaveLength(2)
      expect(yield* open((ledger) => ledger.fingerprintKey)).toEqual(key)
      expect(statSync(path).mode & 0o777).toBe(0o600)
      // Who closes it leaves one file.
      expect(existsSync(`${path}-wal`)).toBe(false)
    },
  )

  effect("acknowledges nothing that a power cut could take back", function* () {
    const database = openLedger({ path: join(yield* folder, "ledger.sqlite") })
    const pragma = (name: string) => Object.values(database.prepare(`PRAGMA ${name}`).get() ?? {})[0]
    // 2 is FULL: every commit is synced, not only checkpoints.
    expect([pragma("journal_mode"), pragma("synchronous")]).toEqual(["wal", 2])
    database.close()
  })

  effect("refuses a missing ledger, or a file that is not one, by name and not as a defect", function* () {
    const root = yield* folder
    const garbage = join(root, "garbage.sqlite")
    writeFileSync(garbage, "this is no database, whatever its name says".repeat(100))
    const torn = join(root, "torn.sqlite")
    openLedger({ path: torn }).close()
    writeFileSync(torn, readFileSync(torn).fill(0xff, 100, 200))
    const refusalOf = Effect.fnUntraced(function* (path: string, readOnly: boolean) {
      const runs = Effect.flatMap(Ledger, (ledger) => ledger.runs)
      const { _tag, message, damaged } = yield* Effect.flip(
        Effect.provide(runs, Layer.fresh(Ledger.layer({ path, readOnly }))),
      )
      return [_tag, message, damaged]
    })
    const malformed = ["LedgerFailed", "database disk image is malformed", true]
    const noDatabase = ["LedgerFailed", "file is not a database", true]
    expect(yield* refusalOf(torn, false)).toEqual(malformed)
    expect(yield* refusalOf(torn, true)).toEqual(malformed)
    expect(yield* refusalOf(garbage, false)).toEqual(noDatabase)
    expect(yield* refusalOf(garbage, true)).toEqual(noDatabase)
    expect(yield* refusalOf(join(root, "missing.sqlite"), true)).toEqual([
      "LedgerFailed",
      "unable to open database file",
      undefined,
    ])
  })

  effect(
    "that a newer version wrote is refused by name, whether its format or one of its facts is new",
    function* () {
      const root = yield* folder
      const written = Effect.fnUntraced(function* (name: string, facts: ReadonlyArray<Fact>, sql: string) {
        const path = join(root, name)
        const ledger = Effect.flatMap(Ledger, (open) => open.append(facts))
        yield* Effect.provide(ledger, Layer.fresh(Ledger.layer({ path })))
        const database = new DatabaseSync(path)
        const { user_version } = database.prepare("PRAGMA user_version").get() ?? {}
        expect(user_version).toBe(3)
        database.exec(sql)
        database.close()
        const read = Effect.flatMap(Ledger, (open) => open.facts(run_id))
        const refused = yield* Effect.flip(Effect.provide(read, Layer.fresh(Ledger.layer({ path }))))
        // Whoever has it open leaves files beside it.
        expect(readdirSync(root).filter((file) => file.startsWith(name))).toEqual([name])
        return [refused.message, refused.written_by, refused.damaged]
      })
      const says = (what: string, version: string) => [
        `${what}; the newest run in it was written by version ${version}`,
        version,
        undefined,
      ]
      const older = runStarted("nightly.2026-11-20", { tool_version: "0.0.9" })
      const format = "PRAGMA user_version = 4"
      const newer = "the ledger has format 4"
      expect(yield* written("format", [older, runStarted(run_id)], format)).toEqual(says(newer, "0.1.0"))
      expect(yield* written("empty", [], format)).toEqual(says(newer, "unknown"))
      expect(yield* written("no tables", [], `${format}; DROP TABLE facts`)).toEqual(says(newer, "unknown"))
      const first = { seq: 1, at: 0, tag: "RunStarted", run_id, task_id: null }
      const chain = linkOf("", { ...first, body: JSON.stringify(runStarted(run_id)) })
      // A kind of fact, or a value in one.
      for (const unknown of [
        { _tag: "FromTomorrow", run_id },
        { ...aFact("RunEnded", { run_id }), exit_code: "x" },
      ]) {
        const body = JSON.stringify(unknown)
        const link = linkOf(chain, { seq: 2, at: 0, tag: unknown._tag, run_id, task_id: null, body })
        const add = `INSERT INTO facts VALUES (2, 0, '${unknown._tag}', '${run_id}', NULL, '${body}', '${link}')`
        const refused = yield* written(unknown._tag, [runStarted(run_id)], add)
        expect(refused).toEqual(says("this version cannot read fact 2", "0.1.0"))
      }
    },
  )

  inMemory.effect("gives back each kind of fact with all that was said in it", function* () {
    const ledger = yield* Ledger
    yield* ledger.append(everyFact)
    const kept = [...(yield* ledger.facts(everyRun)), ...(yield* ledger.byHand)]
    expect(kept.toSorted((one, other) => one.seq - other.seq).map(({ fact }) => fact)).toStrictEqual(
      everyFact,
    )
  })

  /** Which indexes the statements of an empty ledger use that match this. */
  const indexesOf = (isMeant: (sql: string) => boolean) => {
    const database = openLedger({ path: ":memory:" })
    const asked: Array<string> = []
    const spy = new Proxy(database, {
      get: (target, name) => {
        if (name !== "prepare") return Reflect.get(target, name, target)
        return (sql: string) => {
          asked.push(sql)
          return target.prepare(sql)
        }
      },
    })
    Effect.runSync(Effect.provide(Effect.service(Ledger), Ledger.layerOver(spy)))
    const plans = asked.filter(isMeant).map((sql) =>
      database
        .prepare(`EXPLAIN QUERY PLAN ${sql}`)
        .all(...Array.from(sql.matchAll(/\?/g), () => "any"))
        .map((row) => String(row["detail"])),
    )
    return plans.map((plan) => /USING INDEX (\w+)/.exec(plan.join("\n"))?.[1])
  }

  it("finds runs, rejections, what was pruned, receipts and archives without reading every fact [decision 10 archive]", () => {
    expect(indexesOf((sql) => sql.includes("tag IN"))).toEqual([
      "facts_by_tag",
      "facts_of_pruning",
      // Of one run, to be archived.
      "facts_by_run",
      "facts_by_run",
    ])
    const isOfArchives = (sql: string) => sql.includes("tag = 'FactsArchived' ORDER BY seq")
    expect(indexesOf(isOfArchives)).toEqual(["facts_of_archives", "facts_of_archives"])
  })
})

describe("an execution id", () => {
  const claim = (task_id: string, attempt = 1) => ({
    execution_id: anId("e-1"),
    task_id: anId(task_id),
    attempt,
  })
  const answered = (task_id: string, answer: "accepted" | "lost"): Fact =>
    aFact("StartAnswered", { run_id, ...claim(task_id), answer })
  const deletion = (outcome: "pending" | "deleted"): Fact => ({
    _tag: "DeleteAnswered",
    run_id,
    task_id: anId("a"),
    execution_id: anId("e-1"),
    http_status: 204,
    outcome,
  })
  const asked = (...claims: ReadonlyArray<ReturnType<typeof claim>>) =>
    Effect.flatMap(Ledger, (ledger) => Effect.forEach(claims, ledger.claim))

  effect("belongs to its attempt in later processes too, until the execution is deleted", function* () {
    const database = openLedger({ path: ":memory:" })
    const process = <A, E>(work: Effect.Effect<A, E, Ledger>) =>
      Effect.provide(work, Layer.fresh(Ledger.layerOver(database)))
    const told = (fact: Fact) => Effect.flatMap(Ledger, (ledger) => ledger.append([fact]))

    // The process died before its answer was a fact, or the answer does not say that it is its own.
    expect(yield* process(asked(claim("b")))).toEqual([true])
    yield* process(told(answered("a", "lost")))
    expect(yield* process(asked(claim("b")))).toEqual([true])
    yield* process(told(answered("a", "accepted")))
    yield* process(told(deletion("pending")))
    const another = { ...claim("b"), execution_id: anId("e-2") }
    expect(yield* process(asked(claim("b"), claim("a", 2), claim("a"), claim("b"), another))).toEqual([
      false,
      false,
      true,
      false,
      true,
    ])
    const within = Effect.gen(function* () {
      expect(yield* asked(claim("a"))).toEqual([true])
      yield* told(deletion("deleted"))
      return yield* asked(claim("b"), claim("a"), claim("c"), claim("b"))
    })
    expect(yield* process(within)).toEqual([true, false, false, true])
    expect(yield* process(asked(claim("c"), claim("b")))).toEqual([true, false])
    yield* process(told(answered("c", "accepted")))
    expect(yield* process(asked(claim("a"), claim("c")))).toEqual([false, true])
  })
})

describe("a customer who is removed", () => {
  const counts = {
    runs: 1,
    facts: 3,
    bodies: 0,
    documents: 0,
    rows: 0,
    held: 0,
    tokens: 0,
    recordings: 0,
    deleted: 0,
    given_up: 0,
    left_at_service: 0,
    logins_kept: 1,
  }
  const taskOf = (customer: string) => ({ run_id, task_id: anId(`${run_id}/${customer}/bank:website`) })
  const plannedFor = (customer: string): Fact => ({
    ...planned,
    ...taskOf(customer),
    customer_id: anId(customer),
  })
  const forget = (customer: string, receipt: string) =>
    Effect.flatMap(Ledger, (ledger) =>
      ledger.forget(
        { customer_id: anId(customer), tasks: new Set([taskOf(customer).task_id]), executions: new Set() },
        { receipt, ...counts },
      ),
    )
  const factsNow = Effect.gen(function* () {
    const ledger = yield* Ledger
    return [...(yield* ledger.facts(run_id)), ...(yield* ledger.byHand)]
      .toSorted((one, other) => one.seq - other.seq)
      .map(({ fact }) => fact)
  })
  type Rejected = Extract<Fact, { readonly _tag: "CredentialRejected" }>
  const forgotten = (receipt: string): Fact => ({ _tag: "FactForgotten", run_id, receipt })
  const receiptOf = (receipt: string, sealed_from: number): Fact => ({
    _tag: "CustomerForgotten",
    receipt,
    sealed_from,
    ...counts,
  })
  const isWhole = Effect.gen(function* () {
    expect(yield* (yield* Ledger).problems).toEqual([])
  })

  overBoth(
    "is in no fact any more, with one receipt however often it is asked, and the chain is whole",
    function* () {
      const ledger = yield* Ledger
      const released: Fact = { _tag: "CredentialReleased", fingerprint: "f2" }
      yield* ledger.append([
        runStarted(run_id),
        plannedFor("c-1"),
        plannedFor("c-2"),
        rejected("f1"),
        rejected("f2"),
        released,
      ])
      yield* ledger.append([plannedFor("c-3")])
      expect((yield* ledger.state(run_id))?.tasks.size).toBe(3)
      expect(yield* forget("c-1", "r-1")).toBe(3)
      const { task_id: _, customer_id: __, ...hashes } = rejected("f1") as Rejected
      const rest = [plannedFor("c-2"), hashes, { ...hashes, fingerprint: "f2" }, released]
      // Nobody can read whose it was, and the login stays rejected.
      const known = (yield* ledger.accounts).flatMap((account) => account.rejected)
      expect(known.map((one) => [one.fingerprint, one.customer_id, one.task_id])).toEqual([
        ["f1", undefined, undefined],
      ])
      const without = [runStarted(run_id), forgotten("r-1"), ...rest]
      expect(yield* factsNow).toEqual([...without, plannedFor("c-3"), receiptOf("r-1", 2)])
      expect((yield* ledger.state(run_id))?.tasks.size).toBe(2)
      yield* isWhole
      // The last fact of all, so that nothing after it is chained again but its receipt.
      yield* ledger.append([plannedFor("c-4")])
      expect(yield* forget("c-4", "r-4")).toBe(1)
      yield* isWhole
      expect([yield* forget("c-1", "r-1"), yield* forget("c-4", "r-4")]).toEqual([0, 0])
      // What a process that was cut off had yet to write comes to the receipt that is there.
      yield* ledger.append([plannedFor("c-1")])
      expect(yield* forget("c-1", "r-1")).toBe(1)
      expect(yield* forget("c-of-nobody", "r-5")).toBe(0)
      yield* isWhole
      const receipts = Effect.map(ledger.receipts, (all) => all.map(({ seq, fact }) => [seq, fact]))
      expect(yield* receipts).toEqual([
        [8, receiptOf("r-1", 2)],
        [10, receiptOf("r-4", 9)],
        [12, receiptOf("r-5", 12)],
      ])
      expect((yield* factsNow)[10]).toEqual(forgotten("r-1"))
    },
  )

  effect("has left no byte in the file or its log, not even in what is free", function* () {
    const path = join(yield* folder, "ledger.sqlite")
    const nameOf = (n: number) => `customer-${String((n * 7_919) % 600).padStart(4, "0")}-canary`
    yield* Effect.gen(function* () {
      const ledger = yield* Ledger
      yield* ledger.append([runStarted(run_id)])
      for (let n = 0; n < 600; n += 20)
        yield* ledger.append(Array.from({ length: 20 }, (_, more) => plannedFor(nameOf(n + more))))
      changeFile(path, "PRAGMA wal_checkpoint(TRUNCATE)")
      // Of this one SQLite has left the most behind, in pages that it has since split.
      const text = readFileSync(path).toString("latin1")
      const names = Array.from({ length: 600 }, (_, n) => ({
        name: nameOf(n),
        times: text.split(nameOf(n)).length,
      }))
      const { name: gone } = names.reduce((most, one) => (one.times > most.times ? one : most))
      const isLeft = () =>
        [path, `${path}-wal`].map((file) => existsSync(file) && readFileSync(file).includes(gone))
      expect(isLeft()).toEqual([true, false])
      expect(yield* forget(gone, "r-1")).toBe(1)
      expect(isLeft()).toEqual([false, false])
      yield* isWhole
    }).pipe(Effect.provide(Ledger.layer({ path })))
  })

  effect("is not said to be gone while another process still reads what was there", function* () {
    const path = join(yield* folder, "ledger.sqlite")
    const database = openLedger({ path })
    database.exec("PRAGMA busy_timeout = 0")
    yield* Effect.gen(function* () {
      const ledger = yield* Ledger
      yield* ledger.append([runStarted(run_id), plannedFor("c-1")])
      const reader = new DatabaseSync(path, { readOnly: true })
      reader.exec("BEGIN; SELECT count(*) FROM facts")
      const refused = yield* Effect.flip(forget("c-1", "r-1"))
      expect([refused._tag, refused.message]).toEqual([
        "LedgerFailed",
        "another process is reading the ledger",
      ])
      reader.close()
      // The facts are replaced; to ask once more also removes the bytes.
      expect(yield* forget("c-1", "r-1")).toBe(0)
      expect(readFileSync(path).includes("c-1/bank")).toBe(false)
    }).pipe(Effect.provide(Ledger.layerOver(database)))
    database.close()
  })
})
