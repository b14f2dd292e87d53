/** A version that is decided is put into place, whoever asks the process to stop meanwhile. */
import { createHash } from "node:crypto"
import { existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import { assert, describe } from "@effect/vitest"
import { Cause, Effect, Exit, Fiber, Layer } from "effect"
import { DuckDb } from "../../src/base/DuckDb.ts"
import { DurableFiles, machineCalls, modesOf, type FileCalls } from "../../src/base/DurableFile.ts"
import { databaseVersion } from "../../src/tables/BuildDatabase.ts"
import { clearStrays, commit, recover, strayFiles } from "../../src/tables/Version.ts"
import { withDatabase } from "../../src/tables/NextDatabase.ts"
import type { RunPicture } from "../../src/tables/RunPicture.ts"
import { fileSink } from "../../src/tables/DeriveRun.ts"
import { lostTables, runsWithout, withoutTables } from "../../src/tables/NextDatabase.ts"
import { finished } from "../records/families.ts"
import { TableBuilder, column } from "../../src/records/Columns.ts"
import { Ledger } from "../../src/ledger/Ledger.ts"
import {
  filesBelow,
  gapsOf,
  layoutOf,
  nothingPublished,
  placeIn,
  readManifest,
  temporary,
} from "../../src/tables/Manifest.ts"
import type { Manifest, Store } from "../../src/tables/Manifest.ts"
import { refusingFrom } from "../base/FaultyCalls.ts"
import { Publisher } from "../../src/tables/Publisher.ts"
import { append, begin, folder, layers, rowsOf, effectDuckDb } from "./night.ts"
import { anId } from "../harness/Id.ts"
import { live, type Failure } from "../harness/Steps.ts"

const run_id = anId("nightly.2026-11-20")

describe("a publication that is interrupted", () => {
  live(
    "once it is committed: the whole version is in place when the interruption takes effect",
    function* () {
      const root = yield* folder
      const cut: { fiber?: Fiber.Fiber<unknown, unknown> } = {}
      const calls: FileCalls = {
        ...machineCalls,
        rename: (from, to) => {
          machineCalls.rename(from, to)
          if (to.endsWith("manifest.next.json")) cut.fiber?.interruptUnsafe()
        },
      }
      yield* Effect.gen(function* () {
        yield* append([begin(run_id, "2026-11-20")])
        const publisher = yield* Publisher
        const fiber = yield* Effect.forkChild(publisher.publish(run_id))
        cut.fiber = fiber
        yield* Fiber.await(fiber)
        const manifest: unknown = JSON.parse(readFileSync(join(root, "tables/manifest.json"), "utf8"))
        assert.deepInclude(manifest, { version: 1 })
        assert.isFalse(existsSync(join(root, "tables/manifest.next.json")))
        assert.deepStrictEqual(yield* rowsOf(root, "SELECT published_version() AS version"), [{ version: 1 }])
      }).pipe(Effect.provide(layers(root, {}, calls)))
    },
  )
})

/** A version that lists these files, by run. The files hold their own names, so that each is known again. */
const versionOf = (
  version: number,
  runs: Readonly<Record<string, ReadonlyArray<string>>>,
  rest: Partial<Manifest> = {},
): Manifest => ({
  version,
  amends: false,
  runs: Object.fromEntries(
    Object.entries(runs).map(([run, names]) => {
      const files = names.map((name) => ({ table: "t", path: pathOf(name), rows: 1, bytes: 1, sha256: "aa" }))
      return [run, { run_date: "2026-11-20", version, files }] as const
    }),
  ),
  ...rest,
})
const pathOf = (name: string) => `tables/t/${name}.parquet`

const storeIn = (root: string, files: DurableFiles, versionsKept = 2): Store => ({
  layout: layoutOf(root),
  modes: modesOf("none"),
  files,
  families: [],
  schemas: { texts: new Map(), gone: [] },
  toolVersion: "0.1.0",
  versionsKept,
})

/** Writes what is new of a version, as a publication does, and puts it into place. */
const put = (store: Store, next: Manifest, ...names: ReadonlyArray<string>) =>
  Effect.suspend(() => {
    mkdirSync(join(store.layout.tables, "t"), { recursive: true })
    for (const name of names) writeFileSync(temporary(join(store.layout.root, pathOf(name))), name)
    return commit(store, next)
  }).pipe(Effect.provide(DuckDb.layer))

/** Every file of the folder with what it holds; of a manifest its version. */
const everything = (root: string) =>
  Object.fromEntries(
    filesBelow(root).map((path) => {
      const manifest = readManifest(join(root, path))
      return [path, manifest?.version ?? readFileSync(join(root, path), "utf8")]
    }),
  )
const current = (version: number, ...names: ReadonlyArray<string>) => ({
  "tables/manifest.json": version,
  ...Object.fromEntries(names.map((name) => [pathOf(name), name])),
})
const kept = (version: number, ...names: ReadonlyArray<string>) => ({
  [`published/previous/${version}.json`]: version,
  ...Object.fromEntries(names.map((name) => [`published/previous/${pathOf(name)}`, name])),
})

describe("a version that is put into place", () => {
  live(
    "has all its files, and those that only kept versions have are kept beside it, no others",
    function* () {
      const root = yield* folder
      const store = storeIn(root, new DurableFiles(machineCalls))
      yield* put(store, versionOf(1, { a: ["a1"], b: ["b1"] }), "a1", "b1")
      assert.deepStrictEqual(everything(root), current(1, "a1", "b1"))
      yield* put(store, versionOf(2, { a: ["a2"], b: ["b1"] }), "a2")
      assert.deepStrictEqual(everything(root), { ...current(2, "a2", "b1"), ...kept(1, "a1") })
      // It takes the place of the second, which is not kept.
      yield* put(store, versionOf(3, { a: ["a3"], b: ["b1"] }, { amends: true }), "a3")
      assert.deepStrictEqual(everything(root), { ...current(3, "a3", "b1"), ...kept(1, "a1") })
      // A rollback: its file comes back from where it was kept.
      const returned = { returned: { to: 1, from: 3 } }
      yield* put(store, versionOf(4, { a: ["a1"], b: ["b1"] }, returned))
      const both = { ...kept(1), ...kept(3, "a3") }
      assert.deepStrictEqual(everything(root), { ...current(4, "a1", "b1"), ...both })
      // Two versions are kept; the oldest goes, with its files, and what a rollback put in place is kept already.
      yield* put(store, versionOf(5, { a: ["a3"], b: ["b2"] }), "b2")
      assert.deepStrictEqual(everything(root), {
        ...current(5, "a3", "b2"),
        ...kept(1, "a1", "b1"),
        ...kept(3, "b1"),
      })
      yield* put(store, versionOf(6, { b: ["b3"] }), "b3")
      assert.deepStrictEqual(everything(root), {
        ...current(6, "b3"),
        ...kept(3, "a3", "b1"),
        ...kept(5, "a3", "b2"),
      })
    },
  )

  live(
    "is the old one whole until it is decided, and the new one whole once its steps are repeated [words decided]",
    function* () {
      const next = versionOf(2, { a: ["a2"], b: ["b1"] })
      const ends = { old: 0, next: 0 }
      const decided = /the next run puts it into place|in place, but a power failure may undo it/
      for (let failing = 1, isDone = false; !isDone; failing++) {
        const root = yield* folder
        const sound = storeIn(root, new DurableFiles(machineCalls))
        yield* put(sound, versionOf(1, { a: ["a1"], b: ["b1"] }), "a1", "b1")
        const exit = yield* Effect.exit(put(storeIn(root, refusingFrom(failing).files), next, "a2"))
        isDone = Exit.isSuccess(exit)
        const isDecided = existsSync(sound.layout.next)
        if (!isDone && !isDecided && readManifest(sound.layout.manifest)?.version === 1) {
          ends.old += 1
          const {
            [`${pathOf("a2")}.tmp`]: _,
            "tables/manifest.next.json.tmp": __,
            ...left
          } = everything(root)
          assert.deepStrictEqual(left, current(1, "a1", "b1"))
          continue
        }
        ends.next += 1
        if (Exit.isFailure(exit)) assert.match(String(Cause.squash(exit.cause)), decided)
        yield* put(sound, next)
        assert.deepStrictEqual(everything(root), { ...current(2, "a2", "b1"), ...kept(1, "a1") })
      }
      // Each of the two comes about, and more than once.
      assert.isAbove(Math.min(ends.old, ends.next), 3)
    },
  )

  live(
    "keeps the files that stay, writes again what has a new content, and goes on without a lost one",
    function* () {
      const root = yield* folder
      const store = storeIn(root, new DurableFiles(machineCalls))
      yield* put(store, versionOf(1, { a: ["a1"], b: ["b1"] }), "a1", "b1")
      yield* put(store, versionOf(2, { a: ["a2"], b: ["b1"] }, { amends: true }), "a2")
      assert.deepStrictEqual(everything(root), current(2, "a2", "b1"))
      writeFileSync(temporary(join(root, pathOf("a2"))), "a2 again")
      yield* put(store, versionOf(3, { a: ["a2", "lost"], b: ["b1"] }, { amends: true }))
      assert.deepStrictEqual(everything(root), { ...current(3, "a2", "b1"), [pathOf("a2")]: "a2 again" })
    },
  )

  live(
    "acknowledges nothing that a power cut could take back: each folder is synced after its last change",
    function* () {
      const root = yield* folder
      const open = new Map<number, string>()
      const unsynced = new Set<string>()
      const calls: FileCalls = {
        ...machineCalls,
        open: (path, flags, mode) => {
          const descriptor = machineCalls.open(path, flags, mode)
          open.set(descriptor, path)
          return descriptor
        },
        sync: (descriptor) => {
          machineCalls.sync(descriptor)
          unsynced.delete(open.get(descriptor) ?? "?")
        },
        rename: (from, to) => {
          machineCalls.rename(from, to)
          unsynced.add(dirname(from)).add(dirname(to))
        },
        remove: (path) => {
          machineCalls.remove(path)
          if (path.endsWith("manifest.next.json")) unsynced.add(dirname(path))
        },
      }
      const store = storeIn(root, new DurableFiles(calls))
      const returned = { returned: { to: 1, from: 2 } }
      for (const [next, ...names] of [
        [versionOf(1, { a: ["a1"] }), "a1"],
        [versionOf(2, { a: ["a2"] }), "a2"],
        [versionOf(3, { a: ["a1"] }, returned)],
      ] as const) {
        yield* put(store, next, ...names)
        assert.deepStrictEqual([...unsynced], [])
      }
      assert.deepStrictEqual(everything(root), { ...current(3, "a1"), ...kept(1), ...kept(2, "a2") })
    },
  )

  live("leaves as stray what no manifest lists", function* () {
    const root = yield* folder
    const store = storeIn(root, new DurableFiles(machineCalls))
    const manifest = versionOf(1, { a: ["a1"] })
    yield* put(store, manifest, "a1")
    mkdirSync(join(root, "tables/odd"))
    for (const path of ["tables/odd/x", pathOf("b1")]) writeFileSync(join(root, path), "stray")
    assert.deepStrictEqual(strayFiles(store, manifest), ["tables/odd/x", pathOf("b1")])
    yield* clearStrays(store, manifest)
    assert.deepStrictEqual(everything(root), current(1, "a1"))
  })
})

/** Runs statements in a database file, which is made. */
const inDatabase = Effect.fnUntraced(function* (path: string, ...statements: ReadonlyArray<string>) {
  mkdirSync(dirname(path), { recursive: true })
  const duckdb = yield* DuckDb
  const { run } = yield* duckdb.open({ path, access: "read-write" })
  for (const statement of statements) yield* run(statement)
}, Effect.scoped)
const ofVersion = (version: number) => `CREATE MACRO published_version() AS ${version}`

/** A Parquet file of a run, as its name says which one it is. */
const parquet = (root: string, run: string, ending: string) => {
  const path = join(root, "tables/t/run_date=2026-11-20", `${run}${ending}.parquet`)
  mkdirSync(dirname(path), { recursive: true })
  return inDatabase(":memory:", `COPY (SELECT range AS n FROM range(3)) TO '${path}' (FORMAT parquet)`)
}

const ofMachine = Layer.mergeAll(DuckDb.layer, Ledger.layer({ path: ":memory:" }), NodeFileSystem.layer)

describe("what a crash left", () => {
  const machine = new DurableFiles(machineCalls)
  const recovering = (
    title: string,
    steps: (
      store: Store,
      root: string,
    ) => Generator<Effect.Effect<unknown, Failure, Layer.Success<typeof ofMachine>>, void, never>,
  ) =>
    live(title, function* () {
      const root = yield* folder
      yield* Effect.provide(
        Effect.gen(() => steps(storeIn(root, machine), root)),
        ofMachine,
      )
    })
  const modeOf = (path: string) => statSync(path).mode & 0o777

  live("is nothing in a new folder: there is a place for tables, no manifest and no database", function* () {
    const root = join(yield* folder, "new")
    const store = storeIn(root, machine)
    const found = yield* Effect.provide(recover(store), ofMachine)
    assert.deepStrictEqual(
      [found, filesBelow(root), modeOf(root), modeOf(store.layout.tables)],
      [nothingPublished, [], store.modes.folder, store.modes.folder],
    )
  })

  recovering(
    "is finished if its version was decided, even if somebody asks the process to stop meanwhile",
    function* (store, root) {
      yield* put(store, versionOf(1, { a: ["a1"] }), "a1")
      yield* inDatabase(store.layout.database, ofVersion(1))
      const next = versionOf(2, { a: ["a2"] })
      writeFileSync(temporary(join(root, pathOf("a2"))), "a2")
      writeFileSync(store.layout.next, JSON.stringify(next))
      yield* inDatabase(store.layout.build, ofVersion(2))
      const cut: { fiber?: Fiber.Fiber<unknown, unknown> } = {}
      const calls: FileCalls = {
        ...machineCalls,
        rename: (from, to) => {
          machineCalls.rename(from, to)
          if (to.endsWith("a2.parquet")) cut.fiber?.interruptUnsafe()
        },
      }
      cut.fiber = yield* Effect.forkChild(recover({ ...store, files: new DurableFiles(calls) }))
      yield* Fiber.await(cut.fiber)
      const found = [readManifest(store.layout.manifest), yield* databaseVersion(store.layout.database)]
      assert.deepStrictEqual([...found, existsSync(store.layout.next)], [next, 2, false])
    },
  )

  recovering(
    "is removed if no manifest lists it; what the manifest lists and its database stay as they are",
    function* (store, root) {
      const manifest = versionOf(1, { a: ["a1"] })
      yield* put(store, manifest, "a1")
      yield* inDatabase(store.layout.database, ofVersion(1))
      const database = readFileSync(store.layout.database)
      const strays = [pathOf("b1"), `${pathOf("c1")}.tmp`].map((path) => join(root, path))
      const build = ["", ".wal", ".tmp"].map((ending) => `${store.layout.build}${ending}`)
      for (const path of [...strays, ...build]) writeFileSync(path, "half")
      assert.deepStrictEqual(yield* recover(store), manifest)
      assert.deepStrictEqual(
        filesBelow(root).toSorted(),
        ["nightjar.duckdb", pathOf("a1"), "tables/manifest.json"].toSorted(),
      )
      assert.isTrue(database.equals(readFileSync(store.layout.database)))
    },
  )

  recovering(
    "is a database that is missing or of another version: it is built anew, and the manifest names it",
    function* (store) {
      const manifest = versionOf(1, {})
      yield* put(store, manifest)
      for (const damage of [
        Effect.void,
        inDatabase(store.layout.database, `CREATE OR REPLACE ${ofVersion(7).slice(7)}`),
      ]) {
        yield* damage
        const recovered = yield* recover(store)
        const { database, ...found } = recovered
        assert.deepStrictEqual(found, manifest)
        assert.deepStrictEqual(readManifest(store.layout.manifest), recovered)
        assert.strictEqual(database?.bytes, statSync(store.layout.database).size)
        assert.strictEqual(yield* databaseVersion(store.layout.database), 1)
        assert.isFalse(existsSync(store.layout.build))
      }
    },
  )

  recovering(
    "is a lost manifest: the newest files of each run are listed again, under a number that only grows",
    function* (store, root) {
      for (const [run, ending] of [
        ["one", "-v1"],
        ["one", "-v3"],
        ["one", "-v3-2"],
        ["two", "-v2"],
      ] as const)
        yield* parquet(root, run, ending)
      const place = join(root, "tables/t/run_date=2026-11-20")
      for (const name of ["one-v9.parquet", "notes.txt", "Odd-v9.parquet"])
        writeFileSync(join(place, name), "?")
      /** With the database of this version, and these versions kept. */
      const found = (version: number, ...keptOnes: ReadonlyArray<number>) =>
        Effect.gen(function* () {
          for (const one of keptOnes) {
            mkdirSync(store.layout.previous, { recursive: true })
            writeFileSync(join(store.layout.previous, `${one}.json`), JSON.stringify(versionOf(one, {})))
          }
          yield* inDatabase(store.layout.database, `CREATE OR REPLACE ${ofVersion(version).slice(7)}`)
          const manifest = yield* recover(store)
          assert.deepStrictEqual(readManifest(store.layout.manifest), manifest)
          machineCalls.remove(store.layout.manifest)
          const runs = Object.entries(manifest.runs).map(([run, { files, ...rest }]) => [
            run,
            rest,
            files.map(({ path, rows }) => [path.slice("tables/t/run_date=2026-11-20/".length), rows]),
          ])
          return [manifest.version, manifest.amends, runs]
        })
      const runs = [
        [
          "one",
          { run_date: "2026-11-20", version: 3 },
          [
            ["one-v3-2.parquet", 3],
            ["one-v3.parquet", 3],
          ],
        ],
        ["two", { run_date: "2026-11-20", version: 2 }, [["two-v2.parquet", 3]]],
      ]
      assert.deepStrictEqual(yield* found(3), [3, false, runs])
      assert.deepStrictEqual(yield* found(3, 1, 2), [3, false, runs])
      assert.deepStrictEqual(yield* found(6, 5), [6, false, runs])
    },
  )

  recovering("is no version if nothing of it can be read: no manifest is made up", function* (store, root) {
    const place = join(root, "tables/t/run_date=2026-11-20")
    mkdirSync(place, { recursive: true })
    writeFileSync(join(place, "one-v9.parquet"), "?")
    mkdirSync(store.layout.previous, { recursive: true })
    writeFileSync(join(store.layout.previous, "4.json"), JSON.stringify(versionOf(4, {})))
    assert.deepStrictEqual(yield* recover(store), nothingPublished)
    assert.deepStrictEqual(filesBelow(root), ["published/previous/4.json"])
  })
})

describe("what is kept beside the tables", () => {
  live("is private, whatever the folders were before", function* () {
    const root = yield* folder
    const store = storeIn(root, new DurableFiles(machineCalls))
    const folders = ["published", "published/previous"].map((name) => join(root, name))
    for (const path of folders) mkdirSync(path, { mode: 0o755 })
    yield* put(store, versionOf(1, { a: ["a1"] }), "a1")
    yield* put(store, versionOf(2, { a: ["a2"] }), "a2")
    const modes = [...folders, join(folders[1] ?? "", "1.json")].map((path) => statSync(path).mode & 0o777)
    assert.deepStrictEqual(modes, [0o700, 0o700, 0o600])
  })

  live("is found where it stands, and its gaps are named: missing, and damaged if it is read", function* () {
    const root = yield* folder
    const store = storeIn(root, new DurableFiles(machineCalls))
    yield* put(store, versionOf(1, { a: ["a1"], b: ["b1", "b2"] }), "a1", "b1", "b2")
    yield* put(store, versionOf(2, { a: ["a2"], b: ["b1", "b2"] }), "a2")
    const place = placeIn(store)
    assert.deepStrictEqual(
      ["a1", "a2", "never"].map((name) => place({ path: pathOf(name) })),
      [`published/previous/${pathOf("a1")}`, pathOf("a2"), pathOf("never")],
    )
    const hashOf = (text: string) => createHash("sha256").update(text).digest("hex")
    const listed = ["a1", "a2", "b1", "b2", "never"].map((name) => ({
      table: "t",
      path: pathOf(name),
      rows: 1,
      bytes: 2,
      sha256: hashOf(name),
    }))
    writeFileSync(join(root, pathOf("b1")), "xx")
    writeFileSync(join(root, pathOf("b2")), "b2 and more")
    const missing = (name: string) => ({ path: pathOf(name), state: "missing" })
    const damaged = (name: string) => ({ path: pathOf(name), state: "damaged" })
    assert.deepStrictEqual(
      [
        yield* gapsOf(store, listed, false, ({ path }) => path),
        yield* gapsOf(store, listed, false),
        yield* gapsOf(store, listed),
      ],
      [
        [missing("a1"), missing("never")],
        [missing("never")],
        [damaged("b1"), damaged("b2"), missing("never")],
      ],
    )
    const manifest = versionOf(2, { a: ["a2"], b: ["b1", "b2"], c: [] })
    const gaps = yield* gapsOf(store, listed)
    assert.deepStrictEqual(
      [
        withoutTables(manifest, lostTables(manifest, gaps, [])),
        withoutTables(manifest, lostTables(manifest, [], [])),
        runsWithout(manifest, gaps),
        runsWithout(manifest, []),
      ],
      [versionOf(2, { a: ["a2"], b: [], c: [] }), manifest, ["b"], []],
    )
  })

  live("of a table of one run are files with one number, and parts if there is much", function* () {
    const root = yield* folder
    const store = storeIn(root, new DurableFiles(machineCalls))
    const started = { run_id, run_date: "2026-11-20" }
    const { written, sink } = fileSink(store, { state: { started } } as unknown as RunPicture, 7)
    for (const [name, rows] of [
      ["emails", 2],
      ["phones", 1],
      ["emails", 3],
      ["emails", 1],
    ] as const) {
      const spec = { name, comment: "", key: [], columns: [column("n", "INTEGER", "clear", "")] }
      const builder = new TableBuilder(spec)
      for (let n = 0; n < rows; n++) builder.append([n])
      yield* sink({ spec, rows, table: finished(builder) })
    }
    const place = (table: string, part = "") =>
      `tables/${table}/run_date=2026-11-20/${run_id}-v7${part}.parquet`
    assert.deepStrictEqual(
      written.map(({ table, path, rows }) => [table, path, rows]),
      [
        ["emails", place("emails"), 2],
        ["phones", place("phones"), 1],
        ["emails", place("emails", "-2"), 3],
        ["emails", place("emails", "-3"), 1],
      ],
    )
    // Until a version lists them they have temporary names, and what is said of them is true.
    assert.deepStrictEqual(filesBelow(root), written.map(({ path }) => `${path}.tmp`).toSorted())
    const asWritten = { path: (file: { readonly path: string }) => `${file.path}.tmp` }
    assert.deepStrictEqual(yield* gapsOf(store, written, true, asWritten.path), [])
    const modes = ["tables", "tables/emails", "tables/emails/run_date=2026-11-20"].map(
      (path) => statSync(join(root, path)).mode & 0o777,
    )
    assert.deepStrictEqual(modes, [0o700, 0o700, 0o700])
  })
})

describe("a manifest", () => {
  effectDuckDb(
    "says nothing of a database that lacks rows of its files, not even what was said before",
    function* () {
      const store = storeIn(yield* folder, new DurableFiles(machineCalls))
      const database = { bytes: 1, built_bytes: 1, sha256: "aa", made_by: "bb" }
      const known = yield* withDatabase(store, versionOf(1, {}, { database }), {
        gaps: [{ path: pathOf("a1"), state: "missing" }],
      })
      assert.deepStrictEqual(known, versionOf(1, {}))
    },
  )
})
