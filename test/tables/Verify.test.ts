/** The proof of a deletion from landing alone: what the ledger says of it is not asked. */
import { mkdirSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { describe, expect } from "@effect/vitest"
import { Effect } from "effect"
import type { ResultsSource } from "../../src/service/FlowResults.ts"
import { DuckDb } from "../../src/base/DuckDb.ts"
import { sha256Hex } from "../../src/base/Hashes.ts"
import type { Ledger } from "../../src/ledger/Ledger.ts"
import { Landing, type BodyMeta } from "../../src/landing/Landing.ts"
import type { Fact, ProofLine } from "../../src/ledger/Fact.ts"
import { receiptOf } from "../../src/tables/DeriveRun.ts"
import { verifyTables, proveAgain } from "../../src/tables/Verify.ts"
import {
  append,
  begin,
  damageBody,
  engine,
  folder,
  foundation,
  problemsIn,
  profileOf,
  resultsOf,
  stateOf,
  storeOf,
  succeed,
} from "./night.ts"
import { LandingMemory } from "../harness/LandingMemory.ts"
import { answered, closed, drained, fold, intended, run_id, task_id } from "../task/Lives.ts"
import { anId } from "../harness/Id.ts"
import { live } from "../harness/Steps.ts"

const state = fold([intended(1), answered(1, "accepted"), closed(1), drained(1)])
const task = state.tasks.get(task_id)!
const records = (count: number) => Array.from({ length: count }, () => ({ product: "p", sub_family: "a:b" }))
const results = (count: number, is_closed = true) => JSON.stringify({ is_closed, data: records(count) })

/** What a state and the newest bodies of two sessions prove of the first one's execution. */
const proved = (
  stateBody: string | undefined,
  bodies: ReadonlyArray<string>,
  session_id: string | undefined = "s-1",
  sources: ReadonlyArray<ResultsSource> = state.sources,
) =>
  Effect.gen(function* () {
    const landing = yield* Landing
    const land = (kind: BodyMeta["kind"], text: string) => {
      const meta: BodyMeta = { run_id, task_id, kind, http_status: 200, received_at: 0 }
      return Effect.map(landing.land(meta, Buffer.from(text)), (ref) => ({ ref, meta }))
    }
    const sessionOf = Effect.fnUntraced(function* (id: string, texts: ReadonlyArray<string>) {
      const landed = yield* Effect.forEach(texts, (text) => land("results", text))
      return {
        task,
        session_id: anId(id),
        execution_id: anId("e-1"),
        body: landed[0],
        bodies: landed,
        read_at: 0,
        is_closed: true,
      }
    })
    const stateOf = stateBody === undefined ? [] : [[anId("e-1"), yield* land("state", stateBody)] as const]
    const picture = {
      state: { ...state, sources },
      engines: [],
      frames: [],
      framesByTask: new Map(),
      stateOf: new Map(stateOf),
      sessions: [yield* sessionOf("s-9", [results(9)]), yield* sessionOf("s-1", bodies)],
    }
    return yield* proveAgain(picture, anId("e-1"), session_id === undefined ? undefined : anId(session_id))
  }).pipe(Effect.provide(LandingMemory.layer(LandingMemory.makeStore())))

const two = JSON.stringify({ products_count: { "a:b@p": 2 } })
const line = (landed: number) => ({ family: "a:b", counted: 2, landed })

describe("a repeated proof", () => {
  // The job takes this endpoint at its word, so that a final answer needs no count.
  const trusted = state.sources.map((source) => ({ ...source, counts: "none" as const }))
  const broken: ReadonlyArray<ResultsSource> = trusted.map((source) => ({
    ...source,
    get records(): ResultsSource["records"] {
      throw new RangeError("quotes a body")
    },
  }))
  const short = (landed: number) => ({ isWhole: false, isCounted: true, families: [line(landed)] })
  const none = JSON.stringify({ products_count: {} })

  live(
    "is complete if the landed bodies of its own session contain what the landed state counted",
    function* () {
      const whole = { isWhole: true, isCounted: true, families: [line(2)] }
      expect([
        yield* proved(two, [results(2)]),
        // From every endpoint.
        yield* proved(two, [results(0), results(2)]),
        yield* proved(none, [], "s-of-nobody"),
      ]).toEqual([whole, whole, { ...whole, families: [] }])
      // Another session of the run holds nine; they are not this execution's.
      expect([
        yield* proved(two, [results(1)]),
        yield* proved(two, [results(2, false)]),
        yield* proved(two, []),
        yield* proved(two, ["no JSON"]),
        yield* proved(two, [results(2)], "s-of-nobody"),
      ]).toEqual([1, 2, 0, 0, 0].map(short))
    },
  )

  live("is not given by a body that cannot be counted, nor without a state that can be read", function* () {
    const isWhole = (sources: ReadonlyArray<ResultsSource>) =>
      Effect.map(proved("{}", [results(2)], "s-1", sources), (proof) => proof.isWhole)
    expect([yield* isWhole(trusted), yield* isWhole(broken)]).toEqual([true, false])
    const unread = { isWhole: false, isCounted: false, families: [{ family: "a:b", landed: 2 }] }
    for (const body of [undefined, "no JSON", "[]", "{}", '{"products_count":{"a:b@p":"2"}}'])
      expect(yield* proved(body, [results(2)])).toEqual(unread)
  })
})

const night = anId("nightly.2026-11-20")
const family = "customer_information:user_profile"
const counting = (count: unknown) => ({ [`${family}@customer_information`]: count })
const taskOf = (id: string) => ({ run_id: night, task_id: anId(`${night}/c-${id}/${engine}`) })
const execution_of = (id: string) => anId(`e-${id}`)

/** What `verify` says of a folder where nothing is published yet, after this night. */
const verified = <E>(happens: (root: string) => Effect.Effect<unknown, E, Landing | Ledger | DuckDb>) =>
  Effect.gen(function* () {
    const root = yield* folder
    const found = Effect.gen(function* () {
      yield* append([begin(night, "2026-11-20")])
      yield* happens(root)
      return (yield* problemsIn(root)).map(({ id, where, problem }) => [id, where, problem])
    })
    return yield* Effect.provide(found, foundation(root))
  }).pipe(Effect.scoped)

/** An execution with one profile, counted as its state says, and deleted with a receipt. */
const deletedAfter = Effect.fnUntraced(function* (
  id: string,
  products_count: unknown,
  proof?: { readonly basis: "counted" | "unwanted"; readonly families: ReadonlyArray<ProofLine> },
  receipt?: string,
) {
  yield* succeed(
    night,
    id,
    `c-${id}`,
    resultsOf(profileOf("Ana")),
    stateOf(id, `c-${id}`, { products_count }),
  )
  const own = (yield* (yield* Landing).list(night)).filter(
    ({ meta }) => meta.execution_id === execution_of(id),
  )
  const about = { ...taskOf(id), execution_id: execution_of(id) }
  const landed_sha256 = receipt ?? receiptOf(own.map(({ ref }) => ref.sha256))
  const drained: ReadonlyArray<Fact> =
    proof === undefined ? [] : [{ _tag: "AttemptDrained", ...about, attempt: 1, proof }]
  yield* append([...drained, { _tag: "DeleteIntended", ...about, landed_sha256 }])
  return own
})
const proofOf = (landed: number, more: ReadonlyArray<ProofLine> = []) => ({
  basis: "counted" as const,
  families: [{ family, counted: landed, landed }, ...more],
})

describe("what is verified of deletions", () => {
  live(
    "is that each has a receipt of what is landed, and is proved by what is landed [promise 5 verify]",
    function* () {
      const found = yield* verified(() =>
        Effect.gen(function* () {
          yield* deletedAfter("whole", counting(1), proofOf(1))
          yield* deletedAfter("old", counting(1))
          yield* deletedAfter("blank", counting(1), proofOf(1), "")
          yield* deletedAfter("other", counting(1), proofOf(1), "not this one")
          yield* deletedAfter("short", counting(3), proofOf(1))
          yield* deletedAfter("unread", counting("1"), proofOf(1))
          yield* deletedAfter("fewer", counting(1), proofOf(2))
          yield* deletedAfter("gone", counting(1), proofOf(1, [{ family: "a:b", landed: 1 }]))
          yield* deletedAfter("none", counting(1), proofOf(1, [{ family: "a:b", landed: 0 }]))
          yield* deletedAfter("unwanted", counting(3), { basis: "unwanted", families: [] })
          yield* succeed(night, "kept", "c-kept", resultsOf(), stateOf("kept", "c-kept"))
        }),
      )
      const missing = (what: string) => `deleted, but landing does not contain all of it: ${what}`
      const mismatch = "landing contains fewer records than the proof of its deletion"
      expect(found).toEqual([
        ["receipt-missing", "e-blank", expect.any(String)],
        ["receipt-mismatch", "e-other", "the receipt of its deletion does not match the landed bodies"],
        ["deleted-unproved", "e-short", missing("2 records missing")],
        ["deleted-unproved", "e-unread", missing("its products_count cannot be read")],
        ["proof-mismatch", "e-fewer", mismatch],
        ["proof-mismatch", "e-gone", mismatch],
      ])
    },
  )

  live("is not what a damaged body held: the damage is named, and each body of it", function* () {
    const found = yield* verified((root) =>
      Effect.gen(function* () {
        const [, results] = yield* deletedAfter("1", counting(1), proofOf(1))
        const [state] = yield* deletedAfter("2", counting(3), proofOf(3))
        for (const { ref } of [results, state].filter((body) => body !== undefined))
          damageBody(root, night, ref)
      }),
    )
    const where = expect.stringMatching(new RegExp(`^landing/${night}/segment-000001\\.njl:\\d+$`))
    expect(found.map(([id, place]) => [id, place])).toEqual([
      ["landing-unreadable", where],
      ["landing-unreadable", where],
    ])
  })

  live("nor is a body that lost its header, unless the service was read again [verify header]", function* () {
    const lost = (isReadAgain: boolean) =>
      verified((root) =>
        Effect.gen(function* () {
          const landing = yield* Landing
          const about = { ...taskOf("1"), attempt: 1, execution_id: execution_of("1") }
          const started = { ...about, kind: "start", http_status: 202, received_at: 0 } as const
          const start = yield* landing.land(started, Buffer.from("{}"))
          yield* succeed(night, "1", "c-1", resultsOf(profileOf("Ana")))
          damageBody(root, night, { ...start, offset: 0 })
          const [state] = yield* landing.list(night)
          if (isReadAgain)
            yield* append([{ _tag: "BodiesLost", ...about, bodies: [start], landed: state!.ref }])
        }),
      )
    const why = "landed data cannot be read: the header of a body is damaged"
    expect(yield* lost(false)).toEqual([["landing-unreadable", `landing/${night}/segment-000001.njl:0`, why]])
    expect(yield* lost(true)).toEqual([])
  })

  live("and of documents, that each one that was downloaded is there as it came", function* () {
    const found = yield* verified((root) =>
      Effect.gen(function* () {
        yield* append([{ _tag: "TaskPlanned", ...taskOf("1"), features: [] }])
        mkdirSync(join(root, "attachments"), { recursive: true })
        for (const name of ["whole", "changed"])
          writeFileSync(join(root, "attachments", sha256Hex(name)), name === "whole" ? name : "chanted")
        const read = (name: string, status: "downloaded" | "missing", more: object = {}, of = "1"): Fact => ({
          _tag: "AttachmentRead",
          ...taskOf(of),
          session_id: anId("s-1"),
          attachment_id: name,
          status,
          ...more,
        })
        const pathOf = (name: string) => `attachments/${sha256Hex(name)}`
        const kept = (name: string, of?: string) =>
          read(name, "downloaded", { path: pathOf(name), sha256: sha256Hex(name), bytes: name.length }, of)
        yield* append([
          ...["whole", "changed", "lost"].map((name) => kept(name)),
          // What another task has too is named once.
          { _tag: "TaskPlanned", ...taskOf("2"), features: [] },
          kept("lost", "2"),
          read("never", "missing", { path: pathOf("never"), sha256: sha256Hex("never") }),
          read("nowhere", "downloaded"),
        ])
      }),
    )
    expect(found.map(([id, where]) => [id, where])).toEqual([
      ["document-changed", `attachments/${sha256Hex("changed")}`],
      ["document-missing", `attachments/${sha256Hex("lost")}`],
    ])
  })

  live("and of a removed customer, that nothing of the removal is left to do", function* () {
    const counts = {
      runs: 1,
      facts: 1,
      bodies: 1,
      documents: 0,
      rows: 1,
      held: 0,
      tokens: 0,
      recordings: 0,
      deleted: 1,
      given_up: 0,
      left_at_service: 0,
      logins_kept: 0,
      sealed_from: 1,
    }
    const forgotten = (receipt: string): Fact => ({ _tag: "CustomerForgotten", receipt, ...counts })
    const finished = (receipt: string): Fact => ({ _tag: "ForgetFinished", receipt })
    const after = (facts: ReadonlyArray<Fact>, isOpen = false) =>
      verified((root) =>
        Effect.gen(function* () {
          yield* append(facts)
          if (isOpen) writeFileSync(join(root, "forgetting.json"), "{}")
        }),
      )
    const open = [["forget-unfinished", "forgetting.json", expect.any(String)]]
    expect([
      yield* after([forgotten("a"), finished("a")]),
      yield* after([forgotten("a"), finished("a"), forgotten("b")]),
      yield* after([forgotten("a"), forgotten("b"), finished("b"), finished("a")]),
      yield* after([], true),
    ]).toEqual([[], open, [], open])
  })
})

describe("what is verified of the tables", () => {
  const file = (path: string, table = "emails") => ({ table, path, rows: 1, bytes: 1, sha256: "aa" })
  const manifest = (version: number, files: ReadonlyArray<ReturnType<typeof file>>, more: object = {}) =>
    JSON.stringify({
      version,
      amends: false,
      runs: { [night]: { run_date: "2026-11-20", version, files } },
      ...more,
    })
  /** With these files below the output folder. */
  const withFiles = (files: Readonly<Record<string, string>>) =>
    Effect.map(
      verified((root) =>
        Effect.sync(() => {
          for (const [path, text] of Object.entries(files)) {
            mkdirSync(dirname(join(root, path)), { recursive: true })
            writeFileSync(join(root, path), text)
          }
        }),
      ),
      (found) => found.map(([id, where, problem]) => `${id} ${where}: ${problem}`),
    )

  live("is nothing where there are none, and one thing where nobody knows which ones count", function* () {
    expect([yield* withFiles({}), yield* withFiles({ "tables/emails/x.parquet": "x" })]).toEqual([
      [],
      [expect.stringMatching(/^manifest-lost tables\/manifest\.json: /)],
    ])
  })

  live("is that no publication was cut off, and that a rollback still has what it replaced", function* () {
    const listed = { "tables/manifest.json": manifest(0, []), "tables/manifest.next.json": "{" }
    const cut = yield* withFiles({ ...listed, "tables/odd": "x" })
    expect(cut.map((line) => line.split(":")[0])).toEqual([
      "publication-interrupted tables",
      "file-unlisted tables/odd",
    ])
    const returned = { returned: { to: 1, from: 2 } }
    const lost = yield* withFiles({ "tables/manifest.json": manifest(3, [], returned) })
    const ids = (found: ReadonlyArray<string>) => found.map((line) => line.split(":")[0])
    expect(ids(lost)).toEqual(["newest-version-lost published/previous", "database-version nightjar.duckdb"])
    const there = yield* withFiles({
      "tables/manifest.json": manifest(3, [file("tables/emails/a")], returned),
      "published/previous/2.json": manifest(2, [
        file("tables/emails/a"),
        file("tables/emails/b"),
        file("tables/emails/c"),
      ]),
      "tables/emails/a": "a",
      "published/previous/tables/emails/c": "c",
    })
    expect(there).toEqual([
      expect.stringMatching(/^file-differs tables\/emails\/a: .* damaged$/),
      expect.stringMatching(/^file-differs tables\/emails\/b: .* missing$/),
      expect.stringMatching(/^file-differs tables\/emails\/c: .* damaged$/),
      expect.stringMatching(/^database-version nightjar\.duckdb: /),
    ])
  })

  live("is that the database can be read, and has the version and the rows of the files", function* () {
    const found = yield* verified((root) =>
      Effect.gen(function* () {
        mkdirSync(join(root, "tables"))
        writeFileSync(join(root, "tables/manifest.json"), manifest(1, []))
        const { open } = yield* DuckDb
        const { run } = yield* open({ path: join(root, "nightjar.duckdb"), access: "read-write" })
        yield* run("CREATE MACRO published_version() AS 1")
      }).pipe(Effect.scoped),
    )
    expect(found.map(([id, where]) => [id, where])).toEqual([["database-unreadable", "nightjar.duckdb"]])
  })

  live("and without a ledger that can be read, as much as can be said without it", function* () {
    const root = yield* folder
    mkdirSync(join(root, "tables"))
    const found = Effect.gen(function* () {
      const store = yield* storeOf(root)
      const before = yield* verifyTables(store, "a bit flipped")
      writeFileSync(join(root, "tables/odd"), "x")
      const lost = yield* verifyTables(store, "a bit flipped")
      writeFileSync(join(root, "tables/manifest.json"), manifest(2, []))
      return [before, lost, yield* verifyTables(store, "a bit flipped")].map((all) =>
        all.map(({ id, where }) => `${id} ${where}`),
      )
    })
    const damaged = "facts-damaged ledger.sqlite"
    expect(yield* Effect.provide(found, foundation(root))).toEqual([
      [damaged],
      [damaged, "manifest-lost tables/manifest.json"],
      [damaged, "file-unlisted tables/odd", "database-version nightjar.duckdb"],
    ])
  })
})
