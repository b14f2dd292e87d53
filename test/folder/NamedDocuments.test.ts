/**
 * Documents under names for people: what a hostile title becomes, what a second night changes, and that a copy goes
 * with its document and never changes it.
 */
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Duration, Effect } from "effect"
import fc from "fast-check"
import { DuckDb } from "../../src/base/DuckDb.ts"
import { FileCalls } from "../../src/base/DurableFile.ts"
import { sha256Hex } from "../../src/base/Hashes.ts"
import {
  customerFolderName,
  digitsIn,
  documentFileName,
  forgetNamed,
  nameDocuments,
  sweepDocuments,
} from "../../src/folder/NamedDocuments.ts"
import { prune } from "../../src/folder/Prune.ts"
import { filesBelow } from "../../src/tables/Manifest.ts"
import { rollback } from "../../src/tables/Rollback.ts"
import { Workplace } from "../acceptance/Nightjar.ts"
import { faultyCalls, refusal } from "../base/FaultyCalls.ts"
import { copiesOf } from "../harness/CopiesOf.ts"
import {
  append,
  begin,
  engine,
  layers,
  problemsIn,
  profileOf,
  publish,
  resultsOf,
  storeOf,
  succeed,
  liveIn,
  deletes,
  document,
  ends,
} from "../tables/night.ts"
import { effect } from "../harness/Steps.ts"

const [first, second] = ["nightly.2026-11-20", "nightly.2026-11-21"]
const sha256 = sha256Hex("a document")
const digits = sha256.slice(0, 12)
const aDocument = {
  customer_id: "c-1",
  engine_reference: engine,
  sha256,
  title: "Tax return",
  media_type: "application/pdf",
  run_date: "2026-11-20",
}

describe("the name of a document", () => {
  const titles: ReadonlyArray<readonly [title: unknown, shown: string]> = [
    ["Tax return", "Tax return"],
    ["../../etc/passwd", "etc-passwd"],
    ["..\\..\\autorun.inf", "autorun.inf"],
    ["C:\\secret | a?<b>*", "C--secret - a--b--"],
    ["line\none\u0000two\tthree\u2028four", "line one two three four"],
    ["invoice\u202Efdp.exe", "invoicefdp.exe"],
    ["statement.PDF", "statement"],
    ["  .hidden. ", "hidden"],
    ["e\u0301tude", "\u00E9tude"],
    ["half \uD800 pair", "half pair"],
    ["-rf", "rf"],
    ["...", "document"],
    ["", "document"],
    [null, "document"],
  ]

  it("has what can be shown of its title, ends as its media type says, whatever its title says, and as `.bin` if that is unknown", () => {
    assert.deepStrictEqual(
      titles.map(([title]) => documentFileName({ ...aDocument, title: title as string | null })),
      titles.map(([, shown]) => `2026-11-20 es-tax-agency-website ${shown} ${digits}.pdf`),
    )
    const ended = (media_type: string | null) =>
      documentFileName({ ...aDocument, engine_reference: null, title: "run.exe", media_type })
    assert.deepStrictEqual(
      ["Text/CSV; charset=utf-8", "application/x-msdownload", null].map(ended),
      ["csv", "bin", "bin"].map((ending) => `2026-11-20 run.exe ${digits}.${ending}`),
    )
  })

  it("of a title of 4,000 characters has 200 bytes at most, and no half character", () => {
    const family = "\u{1F469}\u{1F469}\u{1F467}"
    const name = documentFileName({ ...aDocument, title: family.repeat(1_000) })
    const start = "2026-11-20 es-tax-agency-website "
    const left = 200 - start.length - ` ${digits}.pdf`.length
    assert.strictEqual(name, `${start}${[...family.repeat(99)].slice(0, left >> 2).join("")} ${digits}.pdf`)
  })

  it("is one name of a file system, normalised and bounded, for any title and engine [promise 13 names]", () => {
    const anyText = fc.oneof(
      fc.string({ unit: "binary", maxLength: 300 }),
      fc.string({ unit: fc.constantFrom(..."./\\:*?\u202E\u0301 \u0000-aA") }),
    )
    fc.assert(
      fc.property(anyText, anyText, (title, engine_reference) => {
        const name = documentFileName({ ...aDocument, title, engine_reference })
        assert.isAtMost(Buffer.byteLength(name), 200)
        assert.notMatch(name, /[<>:"/\\|?*\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/u)
        assert.strictEqual(name.normalize("NFC"), name)
        assert.strictEqual(digitsIn(name), digits)
      }),
    )
  })
})

describe("the folder of a customer", () => {
  const ids: ReadonlyArray<readonly [id: string | null, name: string]> = [
    ["c-0001", "c-0001"],
    ["a.b_c", "a.b_c"],
    ["C-0001", `C-0001-${sha256Hex("C-0001").slice(0, 12)}`],
    ["nul", `_nul-${sha256Hex("nul").slice(0, 12)}`],
    ["con.1", `_con.1-${sha256Hex("con.1").slice(0, 12)}`],
    ["../c-1", `c-1-${sha256Hex("../c-1").slice(0, 12)}`],
    ["\u202E", `customer-${sha256Hex("\u202E").slice(0, 12)}`],
    ["without-customer", `without-customer-${sha256Hex("without-customer").slice(0, 12)}`],
    [null, "without-customer"],
  ]

  it("is a safe name, and no other customer's, also where capitals do not count", () => {
    assert.deepStrictEqual(
      ids.map(([id]) => customerFolderName(id)),
      ids.map(([, name]) => name),
    )
    const anyId = fc.string({ unit: fc.constantFrom(..."aAbB.-/\u0301"), maxLength: 4 })
    fc.assert(
      fc.property(fc.uniqueArray(anyId, { minLength: 2, maxLength: 6 }), (ids) => {
        const names = ids.map((id) => customerFolderName(id).toLowerCase())
        assert.lengthOf(new Set(names), ids.length)
      }),
    )
  })
})

interface Told {
  readonly id: string
  readonly title?: unknown
  readonly text: string
}

/** A published night of c-1, whose results name these documents. */
const night = Effect.fnUntraced(function* (run: string, session: string, told: ReadonlyArray<Told>) {
  yield* append([begin(run, run.slice("nightly.".length))])
  const named = told.map(({ id, title }) => ({ title, attachment_id: id }))
  yield* succeed(run, session, "c-1", resultsOf({ ...profileOf("Ana"), documents: named }))
  for (const { id, text } of told) yield* document(run, session, id, text)
  yield* publish(run)
})

/** Nothing of the first night is at the service any more. */
const endsClean = Effect.andThen(deletes(first, "1"), ends(first))

const nameIn = Effect.fnUntraced(function* (root: string) {
  const duckdb = yield* DuckDb
  const path = join(root, "nightjar.duckdb")
  const connection = yield* duckdb.open({ path, access: "read-only", files: "none" })
  return yield* nameDocuments(yield* storeOf(root), connection)
}, Effect.scoped)

const nameOf = (date: string, title: string, text: string) =>
  `c-1/${date} es-tax-agency-website ${title} ${sha256Hex(text).slice(0, 12)}.pdf`
const named = (root: string) =>
  filesBelow(join(root, "documents")).filter((name) => name !== ".nightjar-documents")
const modeOf = (path: string) => (statSync(path).mode & 0o777).toString(8)

const hostile = { id: "a-1", title: "../../x", text: "one" }
const twins = [
  { id: "a-2", title: "Letter", text: "two" },
  { id: "a-3", title: "Letter", text: "three" },
]
const firstNight = copiesOf((root) => Effect.provide(night(first, "1", [hostile, ...twins]), layers(root)))

describe("nameDocuments", () => {
  liveIn(firstNight)(
    "copies each document once, for its owner only, and the next night adds and renames nothing",
    function* (root) {
      assert.deepStrictEqual(yield* nameIn(root), {
        added: 3,
        removed: 0,
        documents: 3,
        customers: 1,
        gone: 0,
      })
      const before = [
        nameOf("2026-11-20", "x", "one"),
        nameOf("2026-11-20", "Letter", "two"),
        nameOf("2026-11-20", "Letter", "three"),
      ].toSorted()
      assert.deepStrictEqual(named(root), before)
      const paths = ["", "c-1", before[0] ?? ""].map((path) => join(root, "documents", path))
      assert.deepStrictEqual(paths.map(modeOf), ["700", "700", "600"])
      yield* night(second, "2", [
        { ...hostile, title: "Another title" },
        { id: "a-4", text: "four" },
      ])
      assert.deepStrictEqual(yield* nameIn(root), {
        added: 1,
        removed: 0,
        documents: 4,
        customers: 1,
        gone: 0,
      })
      const after = [...before, nameOf("2026-11-21", "document", "four")].toSorted()
      assert.deepStrictEqual(named(root), after)
      assert.deepStrictEqual(yield* problemsIn(root), [])
      // What was downloaded stays named, whichever version of the tables is current.
      yield* rollback(yield* storeOf(root))
      assert.deepStrictEqual([(yield* nameIn(root)).removed, named(root)], [0, after])
    },
  )

  liveIn(firstNight)(
    "leaves what has landed as it is, whatever somebody does to a copy [promise 13 copies]",
    function* (root) {
      yield* nameIn(root)
      const name = nameOf("2026-11-20", "x", "one")
      writeFileSync(join(root, "documents", name), "signed")
      assert.strictEqual(readFileSync(join(root, "attachments", sha256Hex("one")), "utf8"), "one")
      assert.deepStrictEqual(yield* problemsIn(root), [])
      rmSync(join(root, "documents", name))
      yield* nameIn(root)
      assert.strictEqual(readFileSync(join(root, "documents", name), "utf8"), "one")
    },
  )

  liveIn(firstNight)(
    "shows a copy only once it is complete, and goes on where a full disk stopped it",
    function* (root) {
      let copies = 0
      const full = faultyCalls({
        refuse: (name) => (name === "syncData" && (copies += 1) === 2 ? refusal("ENOSPC", name) : undefined),
      })
      const stopped = yield* Effect.flip(Effect.provideService(nameIn(root), FileCalls, full.calls))
      assert.match(stopped.message, /no space left/)
      assert.lengthOf(
        named(root).filter((name) => digitsIn(name.slice("c-1/".length)) !== undefined),
        1,
      )
      const { added, documents } = yield* nameIn(root)
      assert.deepStrictEqual([added, documents, named(root).length], [2, 3, 3])
    },
  )

  liveIn(firstNight)("touches no folder of this name that is somebody else's, and no link", function* (root) {
    const place = join(root, "documents")
    mkdirSync(join(place, "c-1"), { recursive: true })
    writeFileSync(join(place, "thesis.odt"), "mine")
    const refused = Effect.map(Effect.flip(nameIn(root)), (failure) =>
      "because" in failure && failure.because === "foreign" ? failure.message : failure,
    )
    assert.strictEqual(yield* refused, "c-1, thesis.odt")
    const store = yield* storeOf(root)
    assert.strictEqual(yield* sweepDocuments(store), 0)
    // A customer must not stay in a folder whose marker somebody removed.
    assert.throws(() => forgetNamed(store, "c-1"), /has no \.nightjar-documents, but a folder named/)
    assert.deepStrictEqual(readdirSync(place), ["c-1", "thesis.odt"])
    rmSync(place, { recursive: true })
    mkdirSync(join(root, "elsewhere"))
    symlinkSync(join(root, "elsewhere"), place)
    assert.strictEqual(yield* refused, "something that is not a folder")
    assert.deepStrictEqual(readdirSync(join(root, "elsewhere")), [])
  })

  liveIn(firstNight)(
    "lets a copy go with its document, and leaves what a person put beside it [promise 15 aged]",
    function* (root) {
      yield* endsClean
      yield* nameIn(root)
      writeFileSync(join(root, "documents/c-1/notes.txt"), "mine")
      const rules = [{ job: "nightly", attachments: Duration.days(1) }]
      const now = Date.now() + Duration.toMillis(Duration.days(9))
      const removes = (isDry: boolean) =>
        Effect.flatMap(storeOf(root), (store) => prune(store, rules, { now, isDry, runsMax: 9 }))
      yield* removes(true)
      assert.lengthOf(named(root), 4)
      yield* removes(false)
      assert.deepStrictEqual(named(root), ["c-1/notes.txt"])
      const after = yield* nameIn(root)
      assert.deepStrictEqual([after.added, after.documents, after.gone], [0, 0, 3])
    },
  )
})

describe("a run with `documents: by_name`", () => {
  effect(
    "names new documents at its end; `forget` removes them, and a copy of the folder gets them again",
    function* () {
      const place = new Workplace()
      yield* Effect.addFinalizer(() => Effect.sync(() => place.remove()))
      const parameters = "parameters: { username: queue-1+run-1+ok+attach-2, password: pppp }"
      place.write(
        "job.yaml",
        "name: nightly\nservice: { sandbox: { speed: 200 } }\nengines: [sandbox-tax:website]\nrecord_schemas: []\n" +
          "output: { documents: by_name }\n" +
          `customers: [{ id: c-1, ${parameters} }, { id: C-2, ${parameters} }]\n`,
      )
      const nightjar = (...args: ReadonlyArray<string>) => Effect.promise(() => place.nightjar(...args))
      const customers = () => [...new Set(named(place.output).map((name) => name.split("/", 1)[0]))]
      const other = customerFolderName("C-2")
      const run = yield* nightjar("run", "job.yaml")
      assert.deepStrictEqual([run.code, customers()], [0, [other, "c-1"]])
      yield* nightjar("forget", "c-1", "--yes")
      assert.deepStrictEqual(customers(), [other])
      yield* nightjar("backup", "copy")
      assert.isFalse(existsSync(join(place.folder, "copy/documents")))
      const { stdout } = yield* nightjar("documents", "--output", "copy")
      assert.match(stdout, /copy\/documents: (\d+) documents? of 1 customer, \1 new, 0 removed\.\n$/)
      assert.deepStrictEqual(filesBelow(join(place.folder, "copy/documents")), [
        ".nightjar-documents",
        ...named(place.output),
      ])
      rmSync(join(place.folder, "copy/documents/.nightjar-documents"))
      const refused = yield* nightjar("documents", "--output", "copy")
      assert.deepStrictEqual([refused.code, refused.stderr.includes("[documents-not-ours]")], [2, true])
    },
    120_000,
  )
})
