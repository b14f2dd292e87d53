/**
 * Facts of runs that are over, moved out of the ledger's file: every read gives what it gave before, wherever a
 * crash or a damaged byte comes in between, and a removed customer leaves the archive too.
 */
import { describe, expect, it } from "@effect/vitest"
import { Effect, Exit, Layer } from "effect"
import {
  appendFileSync,
  copyFileSync,
  cpSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs"
import { DatabaseSync } from "node:sqlite"
import { join } from "node:path"
import { zstdDecompressSync } from "node:zlib"
import { FileCalls } from "../../src/base/DurableFile.ts"
import type { Fact } from "../../src/ledger/Fact.ts"
import { Ledger } from "../../src/ledger/Ledger.ts"
import { makeTables, openLedger } from "../../src/ledger/LedgerSchema.ts"
import { refusingFrom } from "../base/FaultyCalls.ts"
import { changeFile, preparing } from "./CountedReads.ts"
import { anId } from "../harness/Id.ts"
import { effect } from "../harness/Steps.ts"
import { folder } from "../harness/Folder.ts"
import { aFact, runStarted } from "../harness/Facts.ts"

const at = (root: string, readOnly = false) =>
  Layer.fresh(Ledger.layer({ path: join(root, "ledger.sqlite"), readOnly }))
const using = <A, E>(
  root: string,
  body: (ledger: Ledger["Service"]) => Effect.Effect<A, E>,
  readOnly = false,
) => Effect.provide(Effect.flatMap(Ledger, body), at(root, readOnly))

const runs = ["job.2026-01-30", "job.2026-01-31", "job.2026-02-01"] as const
const customers = ["c-1", "c-2"] as const
const idOf = (run: string, customer: string) => `e-${run.slice(-2)}-${customer}`

const factsOf = (run: string): ReadonlyArray<Fact> => {
  const run_id = anId(run)
  return [
    runStarted(run),
    ...customers.flatMap((customer): ReadonlyArray<Fact> => {
      const task = { run_id, task_id: anId(`${run}/${customer}/bank`) }
      const access = { customer_id: anId(customer), engine_reference: anId("bank") }
      const execution_id = anId(idOf(run, customer))
      return [
        { _tag: "TaskPlanned", ...task, ...access, features: ["accounts_read"] },
        { _tag: "StartIntended", ...task, attempt: 1, external_execution_id: `x-${run}`, probe: false },
        { _tag: "StartAnswered", ...task, attempt: 1, answer: "accepted", execution_id },
        aFact("AttachmentRead", {
          ...task,
          session_id: `s-${customer}`,
          attachment_id: "a",
          sha256: `${customer}-document`,
        }),
        aFact("CredentialRejected", {
          ...task,
          ...access,
          fingerprint: `f-${run}-${customer.length}${customer === "c-1"}`,
          account: `a-${run}`,
        }),
        // Whether a third login is sent to the account depends on it.
        { _tag: "LoginAccepted", ...task, account: `a-${run}` },
        { _tag: "TaskSettled", ...task, outcome: "failed", reason: "FAILED", who_acts: "engineer" },
        { _tag: "DeleteAnswered", ...task, execution_id, http_status: 204, outcome: "deleted" },
      ]
    }),
    aFact("RunPublished", {
      run_id,
      receipts: customers.map((one) => ({ execution_id: anId(idOf(run, one)), landed_sha256: "ab" })),
    }),
    { _tag: "RunEnded", run_id, exit_code: 0, leftovers: false },
    { _tag: "OutcomePublished", run_id },
  ]
}

/** Three runs; the last two beside each other, fact by fact. */
const written = (root: string) =>
  using(root, (ledger) =>
    Effect.gen(function* () {
      yield* ledger.append(factsOf(runs[0]))
      const [one, other] = [factsOf(runs[1]), factsOf(runs[2])]
      for (const [index, fact] of one.entries()) yield* ledger.append([fact, other[index] ?? fact])
      yield* ledger.append([{ _tag: "CredentialReleased", fingerprint: `f-${runs[0]}-3true` }])
    }),
  )

const folderOfThree = Effect.tap(folder, written)

/** A database that knows of no archive when it is asked for the first time. */
const late = (database: DatabaseSync, asked: Array<string>): DatabaseSync =>
  preparing(
    database,
    (sql) => /WHERE \+run_id = \? AND tag = 'FactsArchived' ORDER/.test(sql),
    (statement, sql) => ({
      all: (...given: Parameters<typeof statement.all>) =>
        asked.push(sql) === 1 ? [] : statement.all(...given),
    }),
  )

const archive = (root: string, ...which: ReadonlyArray<string>) =>
  using(root, (ledger) =>
    Effect.gen(function* () {
      const started = (yield* ledger.runs).filter(({ fact }) => which.includes(fact.run_id))
      return yield* Effect.forEach(started, ({ fact }) => ledger.archive(fact))
    }),
  )

const january = "2026-01.ndjson.zst"
const textOf = (path: string): string => {
  const bytes = readFileSync(path)
  return path.endsWith(".zst") ? framesIn(bytes).join("") : bytes.toString("latin1")
}
/** Node's own call reads the first frame only. */
const framesIn = (bytes: Buffer): ReadonlyArray<string> => {
  if (bytes.length === 0) return []
  const next = bytes.indexOf(Buffer.from([0x28, 0xb5, 0x2f, 0xfd]), 1)
  const [frame, rest] =
    next < 0 ? [bytes, bytes.subarray(0, 0)] : [bytes.subarray(0, next), bytes.subarray(next)]
  return [zstdDecompressSync(frame).toString(), ...framesIn(rest)]
}

/** Everything that is asked of a ledger, but for the fact that says where the others are. */
const everything = (ledger: Ledger["Service"]) =>
  Effect.gen(function* () {
    const tasks = runs.flatMap((run) =>
      customers.map((one) => ({ run_id: anId(run), task_id: anId(`${run}/${one}/bank`) })),
    )
    const facts = yield* Effect.forEach(runs, (run) => ledger.facts(anId(run)))
    const ids = ["c-1", idOf(runs[0], "c-2"), "nobody"]
    const sorted = (found: ReadonlyArray<object>) => found.map((one) => JSON.stringify(one)).toSorted()
    return {
      facts: facts.map((all) => all.filter(({ fact }) => fact._tag !== "FactsArchived")),
      tasks: yield* Effect.forEach(tasks, ledger.factsOfTask),
      naming: yield* Effect.forEach(ids, (id) => Effect.map(ledger.tasksNaming(id), sorted)),
      customers: yield* ledger.customers,
      runs: yield* ledger.runs,
      accounts: yield* ledger.accounts,
      byHand: yield* ledger.byHand,
      documents: (yield* ledger.runsWithDocument("c-1-document")).toSorted(),
      claims: yield* Effect.forEach(["j.9/c/b", `${runs[0]}/c-1/bank`], (task) =>
        ledger.claim({ execution_id: anId(idOf(runs[0], "c-1")), task_id: anId(task), attempt: 1 }),
      ),
      problems: yield* ledger.problems,
    }
  })

describe("an archived run", () => {
  effect(
    "is read as before, by whoever asks for whatever, and its bytes are no longer in the ledger",
    function* () {
      const root = yield* folderOfThree
      const before = yield* using(root, everything)
      expect(before.problems).toEqual([])
      const done = yield* archive(root, runs[0], runs[1])
      expect(done.map((one) => one?.facts)).toEqual([13, 13])
      expect(yield* archive(root, runs[0])).toEqual([undefined])
      expect(yield* using(root, everything)).toEqual(before)
      expect(yield* using(root, everything, true)).toEqual(before)
      expect((yield* using(root, (ledger) => ledger.archived)).size).toBe(2)
      // One file per month; whoever has only the file reads it line by line.
      expect(readdirSync(join(root, "ledger-archive"))).toEqual(["2026-01.ndjson.zst"])
      const lines = zstdDecompressSync(
        readFileSync(join(root, "ledger-archive/2026-01.ndjson.zst")),
      ).toString()
      expect(JSON.parse(lines.split("\n")[0] ?? "").fact).toEqual({ ...factsOf(runs[0])[1] })
      const database = new DatabaseSync(join(root, "ledger.sqlite"))
      const tags = database
        .prepare("SELECT DISTINCT tag FROM facts WHERE run_id = ? ORDER BY tag")
        .all(runs[0])
      database.close()
      expect(tags.map(({ tag }) => tag)).toEqual([
        "CredentialRejected",
        "FactsArchived",
        "LoginAccepted",
        "OutcomePublished",
        "RunEnded",
        "RunStarted",
      ])
      yield* archive(root, runs[2])
      expect(yield* using(root, everything)).toEqual(before)
      expect(readdirSync(join(root, "ledger-archive"))).toEqual(["2026-01.ndjson.zst", "2026-02.ndjson.zst"])
    },
  )

  effect("is read again if it was archived after the reader had asked where its facts are", function* () {
    const root = yield* folderOfThree
    const before = yield* using(root, (ledger) => ledger.state(anId(runs[0])), true)
    yield* archive(root, runs[0])
    const asked: Array<string> = []
    const database = late(openLedger({ path: join(root, "ledger.sqlite") }), asked)
    const layer = Ledger.layerOver(database, join(root, "ledger-archive"))
    const state = yield* Effect.provide(
      Effect.flatMap(Ledger, (ledger) => ledger.state(anId(runs[0]))),
      layer,
    )
    database.close()
    // The third time, to know that its state is not to be kept.
    expect([state?.tasks, state?.ended, asked.length]).toEqual([before?.tasks, before?.ended, 3])
  })

  effect("goes on in a process that knew the half of it when another one archived it", function* () {
    const root = yield* folder
    const [begun, task, ...facts] = factsOf(runs[0])
    const read: Fact = aFact("ResultsRead", {
      run_id: runs[0],
      task_id: `${runs[0]}/c-1/bank`,
      http_status: 404,
    })
    yield* using(root, (ledger) => ledger.append([begun!, task!, read]))
    yield* using(root, (reader) =>
      Effect.gen(function* () {
        yield* reader.state(anId(runs[0]))
        yield* using(root, (ledger) => ledger.append(facts))
        yield* archive(root, runs[0])
        const fresh = yield* using(root, (ledger) => ledger.state(anId(runs[0])), true)
        expect(yield* reader.state(anId(runs[0]))).toEqual(fresh)
      }),
    )
  })

  effect(
    "goes on: what is added later comes after what is archived, also in a state that is kept",
    function* () {
      const root = yield* folderOfThree
      const [run_id] = [anId(runs[0])]
      const states = (ledger: Ledger["Service"]) =>
        Effect.gen(function* () {
          const before = yield* ledger.state(run_id)
          yield* ledger.archive(before!.started)
          const [carried, fresh] = [
            yield* ledger.state(run_id),
            yield* using(root, (one) => one.state(run_id), true),
          ]
          yield* ledger.append([{ _tag: "LandingPruned", run_id, bytes: 1 }])
          return [before, carried, fresh, yield* ledger.state(run_id)].map((state) => ({
            ...state,
            newest: 0,
          }))
        })
      const [before, ...later] = yield* using(root, states)
      for (const state of later) expect(state).toEqual(before)
      expect(yield* using(root, (ledger) => ledger.problems)).toEqual([])
    },
  )

  effect("is in one place at least, and never in two, wherever moving it is cut off", function* () {
    const root = yield* folderOfThree
    yield* archive(root, runs[0])
    const before = yield* using(root, everything)
    for (let cut = 1; ; cut += 1) {
      const copy = join(yield* folder, "copy")
      cpSync(root, copy, { recursive: true })
      const exit = yield* Effect.exit(
        Effect.provideService(archive(copy, runs[1]), FileCalls, refusingFrom(cut).calls),
      )
      expect(yield* using(copy, everything)).toEqual(before)
      if (Exit.isSuccess(exit)) {
        expect(cut).toBeGreaterThan(3)
        break
      }
      yield* archive(copy, runs[1])
      expect(yield* using(copy, everything)).toEqual(before)
    }
  })

  effect("is in one place if the process dies before the ledger says so", function* () {
    const root = yield* folderOfThree
    const before = yield* using(root, everything)
    const database = openLedger({ path: join(root, "ledger.sqlite") })
    database.exec("CREATE TRIGGER died BEFORE DELETE ON facts BEGIN SELECT RAISE(ABORT, 'died'); END")
    expect((yield* Effect.flip(archive(root, runs[0]))).message).toBe("died")
    expect(yield* using(root, everything)).toEqual(before)
    database.exec("DROP TRIGGER died")
    database.close()
    yield* archive(root, runs[0])
    expect(yield* using(root, everything)).toEqual(before)
    // What was left behind is not there a second time.
    expect(textOf(join(root, "ledger-archive", january)).split("\n")).toHaveLength(14)
  })

  effect("that has changed, is gone or is there twice is told, and read no further", function* () {
    const root = yield* folderOfThree
    yield* archive(root, runs[0], runs[1])
    const [ledger, path] = [join(root, "ledger.sqlite"), join(root, "ledger-archive", january)]
    const whole = readFileSync(path)
    copyFileSync(ledger, `${ledger}.whole`)
    const told = Effect.gen(function* () {
      const read = yield* Effect.exit(using(root, (one) => one.facts(anId(runs[0])), true))
      return [Exit.isSuccess(read), (yield* using(root, (one) => one.problems, true))[0]]
    })
    const changed = Buffer.from(whole)
    changed[40]! ^= 1
    writeFileSync(path, changed)
    const where = `${runs[0]}: ledger-archive/${january}`
    expect(yield* told).toEqual([false, `${where} has changed since it was written`])
    rmSync(path)
    expect(yield* told).toEqual([false, `${where} is missing`])
    writeFileSync(path, whole)
    expect(yield* told).toEqual([true, undefined])
    const newestLink = "seq = (SELECT max(seq) FROM archived_links)"
    const cases: ReadonlyArray<readonly [string, string]> = [
      [
        "DELETE FROM facts WHERE seq = (SELECT seq FROM facts WHERE tag = 'FactsArchived' LIMIT 1)",
        "fact 63",
      ],
      ["DELETE FROM facts WHERE tag = 'FactsArchived'", "fact 2 is missing"],
      [`UPDATE archived_links SET chain = 'x' WHERE ${newestLink}`, "has changed since"],
      [`DELETE FROM archived_links WHERE ${newestLink}`, "has changed since"],
      ["UPDATE archived_ids SET id = 'c-9' WHERE id = 'c-1'", "the ids of the archived run"],
      ["INSERT INTO archived_ids VALUES (1, 'c-9', 1, 'x')", "ids of archived facts that do not exist"],
      ["INSERT INTO facts SELECT 2, at, tag, NULL, NULL, body, chain FROM facts WHERE seq = 1", "fact 2"],
    ]
    for (const [sql, says] of cases) {
      copyFileSync(`${ledger}.whole`, ledger)
      changeFile(ledger, sql)
      const problems = yield* using(root, (one) => one.problems, true)
      expect([sql, problems.join("; ")]).toEqual([sql, expect.stringContaining(says)])
    }
  })
})

describe("a customer who is removed", () => {
  const zero = { bodies: 0, documents: 0, rows: 0, held: 0, tokens: 0, recordings: 0, deleted: 0 }
  const counts = { ...zero, runs: 3, facts: 3, given_up: 0, left_at_service: 0, logins_kept: 0 }
  const forgotten = {
    customer_id: anId("c-1"),
    tasks: new Set(runs.map((run) => `${run}/c-1/bank`)),
    executions: new Set(runs.map((run) => idOf(run, "c-1"))),
  }
  const forget = (root: string) =>
    using(root, (ledger) => ledger.forget(forgotten, { receipt: "r-1", ...counts }))
  const traces = (root: string): ReadonlyArray<string> =>
    [
      "ledger.sqlite",
      ...readdirSync(join(root, "ledger-archive")).map((name) => `ledger-archive/${name}`),
    ].filter((name) => /c-1(?!\d)/.test(textOf(join(root, name))))

  effect("leaves the archive, which is whole and says the same of the others", function* () {
    const root = yield* folderOfThree
    yield* archive(root, runs[0], runs[1])
    const others = (ledger: Ledger["Service"]) =>
      Effect.gen(function* () {
        const { facts, tasks, customers, problems } = yield* everything(ledger)
        const theirs = facts.flat().filter(({ fact }) => JSON.stringify(fact).includes("/c-2/"))
        return [theirs, tasks[1], tasks[3], customers.filter((one) => one !== "c-1"), problems]
      })
    const before = yield* using(root, others)
    expect(traces(root)).toEqual(["ledger.sqlite", `ledger-archive/${january}`])
    expect(yield* forget(root)).toBe(3 * 9)
    expect(traces(root)).toEqual([])
    expect(yield* using(root, others)).toEqual(before)
    const left = yield* using(root, (ledger) =>
      Effect.all([ledger.tasksNaming("c-1"), ledger.runsWithDocument("c-1-document")]),
    )
    expect(left).toEqual([[], []])
    expect(readdirSync(join(root, "ledger-archive"))).toEqual(["2026-01-2.ndjson.zst"])
    // The next run of the month goes behind the others, as before.
    yield* archive(root, runs[2])
    expect(yield* using(root, others)).toEqual(before)
    expect(yield* forget(root)).toBe(0)
    expect(traces(root)).toEqual([])
  })

  effect(
    "is gone once a removal that was cut off is repeated, and the archive is never damaged",
    function* () {
      const root = yield* folderOfThree
      yield* archive(root, runs[0], runs[1])
      for (let cut = 1; ; cut += 1) {
        const copy = join(yield* folder, "copy")
        cpSync(root, copy, { recursive: true })
        const exit = yield* Effect.exit(
          Effect.provideService(forget(copy), FileCalls, refusingFrom(cut).calls),
        )
        expect(yield* using(copy, (ledger) => ledger.problems)).toEqual([])
        yield* forget(copy)
        expect([traces(copy), yield* using(copy, (ledger) => ledger.problems)]).toEqual([[], []])
        expect(readdirSync(join(copy, "ledger-archive"))).toEqual(["2026-01-2.ndjson.zst"])
        if (Exit.isSuccess(exit)) break
      }
    },
  )

  effect("leaves what a crash left behind the archive, too", function* () {
    const root = yield* folderOfThree
    yield* archive(root, runs[2])
    const february = join(root, "ledger-archive/2026-02.ndjson.zst")
    // The process died while it archived these.
    copyFileSync(february, join(root, "ledger-archive", january))
    appendFileSync(february, readFileSync(february))
    yield* forget(root)
    expect(traces(root)).toEqual([])
    expect(readdirSync(join(root, "ledger-archive"))).toEqual(["2026-02-2.ndjson.zst"])
  })
})

it("the file of the ledger gives back what is free but for a part, by steps, whichever version made it", () => {
  const older = new DatabaseSync(":memory:")
  older.exec("CREATE TABLE earlier (a)")
  makeTables(older)
  for (const database of [openLedger({ path: ":memory:" }), older]) {
    database.exec(
      `INSERT INTO facts WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 320)
          SELECT i, 0, 'X', NULL, NULL, hex(zeroblob(60000)), '' FROM n; DELETE FROM facts WHERE seq > 9`,
    )
    const pragma = (name: string) => Number(Object.values(database.prepare(`PRAGMA ${name}`).get() ?? {})[0])
    const free = pragma("freelist_count")
    const giveBack = Effect.flatMap(Ledger, (ledger) => ledger.giveBack)
    Effect.runSync(Effect.provide(giveBack, Ledger.layerOver(database)))
    const kept = database === older ? 0 : 4_096
    expect([free > 9_000, pragma("freelist_count"), pragma("auto_vacuum")]).toEqual([true, kept, 2])
    database.close()
  }
})
