/** What a disk that fails in the middle costs: the bodies that were told so, and nothing else. */
import * as fs from "node:fs"
import { anId } from "../harness/Id.ts"
import { join, relative } from "node:path"
import { assert, describe } from "@effect/vitest"
import { Effect, Layer, Stream } from "effect"
import { FileCalls, machineCalls } from "../../src/base/DurableFile.ts"
import { Landing } from "../../src/landing/Landing.ts"
import { LandingFiles } from "../../src/landing/LandingFiles.ts"
import { bytesOf, metaOf } from "./landingSuite.ts"
import { freshFolders } from "../harness/Folder.ts"
import { effect, type Failure } from "../harness/Steps.ts"

/** What fails while it is named, which files are open, and whose bytes and which folders were synced. */
const disk = {
  fails: "",
  open: new Map<number, string>(),
  data: [] as Array<string>,
  folders: [] as Array<string>,
}
const steps: Readonly<Record<string, string>> = {
  write: "cannot write",
  syncData: "cannot sync",
  sync: "cannot sync the folder",
}
const toldOf = (what: string): string => `${steps[what]}: the disk fails: ${what}`
const fail = (what: string) => {
  if (disk.fails === what) throw new Error(`the disk fails: ${what}`)
}
const calls: FileCalls = {
  ...machineCalls,
  open: (path, flags, mode) => {
    const descriptor = machineCalls.open(path, flags, mode)
    disk.open.set(descriptor, path)
    return descriptor
  },
  close: (descriptor) => {
    const path = disk.open.get(descriptor) ?? "?"
    disk.open.delete(descriptor)
    machineCalls.close(descriptor)
    if (path.includes("/.tmp-")) fail("close")
  },
  sync: (descriptor) => {
    fail("sync")
    disk.folders.push(disk.open.get(descriptor) ?? "?")
    machineCalls.sync(descriptor)
  },
  write: (descriptor, bytes, from) => {
    // Two bytes are written before it fails.
    if (disk.fails === "write") machineCalls.write(descriptor, bytes.subarray(0, from + 2), from)
    fail("write")
    return machineCalls.write(descriptor, bytes, from)
  },
  syncData: (descriptor, done) => {
    disk.data.push(disk.open.get(descriptor) ?? "?")
    if (disk.fails === "syncData") done(new Error("the disk fails: syncData"))
    else machineCalls.syncData(descriptor, done)
  },
}
const landingIn = (options: Parameters<typeof LandingFiles.layer>[0]) =>
  LandingFiles.layer(options).pipe(Layer.provide(Layer.succeed(FileCalls, calls)))

const fresh = freshFolders()
const run = anId("nightly.2026-11-21")
const openIn = (root: string) => [...disk.open.values()].filter((path) => path.startsWith(`${root}/`))
const segment = (root: string, number: number) => join(root, "landing", run, `segment-00000${number}.njl`)

/** A test in a folder of its own. */
const inFolder = (
  title: string,
  steps: (root: string) => Generator<Effect.Effect<unknown, Failure, Landing>, void, never>,
) =>
  effect(title, function* () {
    const root = fresh()
    yield* Effect.provide(
      Effect.gen(() => steps(root)),
      landingIn({ root }),
    )
  })

const failing = <A, E>(what: string, work: Effect.Effect<A, E, Landing>) =>
  Effect.acquireUseRelease(
    Effect.sync(() => {
      disk.fails = what
    }),
    () => Effect.flip(work),
    () =>
      Effect.sync(() => {
        disk.fails = ""
      }),
  )
const land = (text: string) => Effect.flatMap(Landing, (landing) => landing.land(metaOf(text), bytesOf(text)))
const listed = Effect.flatMap(Landing, (landing) =>
  Effect.map(landing.list(run), (bodies) => bodies.map(({ meta }) => meta.task_id)),
)

describe("a body that is written but not synced", () => {
  for (const what of ["write", "syncData"])
    inFolder(`is not landed if ${what} fails, and what is there without it is cut off`, function* (root) {
      yield* land("first")
      const { size } = fs.statSync(segment(root, 1))
      const failure = yield* failing(what, land("second"))
      assert.deepStrictEqual(
        [failure._tag, failure.path, failure.message],
        ["LandingFailed", segment(root, 1), toldOf(what)],
      )
      assert.strictEqual(fs.statSync(segment(root, 1)).size, size)
      yield* land("third")
      assert.deepStrictEqual(yield* listed, ["first", "third"])
      // What failed once is not written to again.
      assert.strictEqual(fs.statSync(segment(root, 1)).size, size)
      assert.isTrue(fs.existsSync(segment(root, 2)))
    })

  inFolder("leaves no empty segment if nothing else was in it", function* (root) {
    for (let times = 0; times < 3; times++) yield* failing("syncData", land("first"))
    assert.deepStrictEqual(fs.readdirSync(join(root, "landing", run)), [])
    yield* land("second")
    assert.deepStrictEqual(yield* listed, ["second"])
  })

  inFolder("is not landed in a folder whose entry may be lost", function* (root) {
    const landing = join(root, "landing", run)
    const made = yield* failing("sync", land("first"))
    assert.deepStrictEqual([made._tag, made.message], ["LandingFailed", toldOf("sync")])
    const begun = yield* failing("sync", land("first"))
    // The folder was taken away again, so that the second try too syncs its entry.
    assert.deepStrictEqual([begun._tag, begun.path], ["LandingFailed", root])
    assert.isFalse(fs.existsSync(landing))
    assert.deepStrictEqual([yield* listed, openIn(root)], [[], []])
    yield* land("second")
    assert.deepStrictEqual(yield* listed, ["second"])
  })

  inFolder("leaves no segment, open or empty, whose own entry may be lost", function* (root) {
    const folder = join(root, "landing", run)
    fs.mkdirSync(folder, { recursive: true })

    for (let times = 0; times < 2; times++) {
      const failure = yield* failing("sync", land("first"))
      assert.deepStrictEqual(
        [failure._tag, failure.path, failure.message],
        ["LandingFailed", folder, toldOf("sync")],
      )
      assert.deepStrictEqual([fs.readdirSync(folder), openIn(root)], [[], []])
    }
    yield* land("second")
    assert.deepStrictEqual([fs.readdirSync(folder), yield* listed], [["segment-000001.njl"], ["second"]])
  })
})

describe("a document", () => {
  const document = (...chunks: ReadonlyArray<string>) =>
    Effect.flatMap(Landing, (landing) => landing.landAttachment(Stream.make(...chunks.map(bytesOf))))

  inFolder(
    "is stored byte for byte under its hash, synced, once, and closed to other accounts",
    function* (root) {
      const synced = disk.data.length
      const one = yield* document("a", "bc")
      const folder = join(root, "attachments")
      const file = join(root, one.path)
      const { ino } = fs.statSync(file)
      const same = yield* document("abc")
      assert.deepStrictEqual([one, one.bytes], [same, 3])
      // The first copy stays, with all names that others may have given it.
      assert.deepStrictEqual([fs.statSync(file).ino, fs.statSync(folder).mode & 0o777], [ino, 0o700])
      assert.deepStrictEqual(fs.readdirSync(folder), [relative(folder, file)])
      assert.deepStrictEqual([fs.readFileSync(file, "utf8"), fs.statSync(file).mode & 0o777], ["abc", 0o600])
      assert.deepStrictEqual(
        disk.data.slice(synced).map((path) => /\.tmp-\d+-\d+$/.test(path)),
        [true, true],
      )
      const both = yield* Effect.all([document("x"), document("y")], { concurrency: 2 })
      assert.deepStrictEqual(
        both.map(({ path }) => fs.readFileSync(join(root, path), "utf8")),
        ["x", "y"],
      )
      assert.deepStrictEqual(openIn(root), [])
    },
  )

  for (const what of ["write", "syncData", "sync"])
    inFolder(`is not stored if ${what} fails, nor half of it`, function* (root) {
      yield* document("old")
      const failure = yield* failing(what, document("new"))
      assert.deepStrictEqual([failure._tag, failure.message], ["LandingFailed", toldOf(what)])
      const names = fs.readdirSync(join(root, "attachments"))
      // Its name may be lost with the folder's entry, so that nobody was told of it.
      assert.strictEqual(names.length, what === "sync" ? 2 : 1)
      assert.isFalse(names.some((name) => name.startsWith(".tmp-")))
      assert.deepStrictEqual(openIn(root), [])
    })
})

describe("a document's half-written copy", () => {
  const document = Effect.flatMap(Landing, (landing) => landing.landAttachment(Stream.make(bytesOf("a"))))
  inFolder("that cannot be closed neither takes the document back nor stays", function* (root) {
    const names = () => fs.readdirSync(join(root, "attachments"))

    const tooLong = Effect.provide(document, landingIn({ root, attachmentBytesMax: 0 }))
    const failure = yield* failing("close", tooLong)
    assert.deepStrictEqual([failure.message, names()], ["a document may have 0 bytes at most", []])
    const landed = yield* failing("close", Effect.flip(document))
    assert.deepStrictEqual([landed.bytes, names().map((name) => `attachments/${name}`)], [1, [landed.path]])
  })
})

effect("files are closed once they are read or full, and all of them with the process", function* () {
  const root = fresh()
  // As the machine has it, for reading too.
  const open = () =>
    fs
      .readdirSync("/proc/self/fd")
      .flatMap((number) => {
        try {
          return [fs.readlinkSync(join("/proc/self/fd", number))]
        } catch {
          return []
        }
      })
      .filter((path) => path.startsWith(root))
      .map((path) => relative(root, path))

  yield* Effect.gen(function* () {
    const landing = yield* Landing
    const ref = yield* land("first")
    yield* landing.read(run, ref)
    yield* listed
    assert.deepStrictEqual(open(), [relative(root, segment(root, 1))])
    yield* land("second")
    assert.deepStrictEqual(open(), [relative(root, segment(root, 1))])
  }).pipe(Effect.provide(landingIn({ root })))
  assert.deepStrictEqual(open(), [])
  const full = Effect.gen(function* () {
    yield* land("third")
    assert.deepStrictEqual(open(), [])
  })
  yield* Effect.provide(full, landingIn({ root, segmentBytesMax: 1 }))
})

effect("a folder of what is landed is synced once it is created, and so are those above it", function* () {
  const root = fresh()
  const foldersSynced = Effect.fnUntraced(function* <A, E>(work: Effect.Effect<A, E, Landing>) {
    disk.folders.length = 0
    yield* work
    return [...new Set(disk.folders)].map((path) => relative(root, path)).toSorted()
  })
  yield* Effect.gen(function* () {
    assert.deepStrictEqual(yield* foldersSynced(land("a")), ["", "landing", `landing/${run}`])
    assert.deepStrictEqual(yield* foldersSynced(land("b")), [])
    const document = Effect.flatMap(Landing, (landing) => landing.landAttachment(Stream.make(bytesOf("c"))))
    assert.deepStrictEqual(yield* foldersSynced(document), ["", "attachments"])
  }).pipe(Effect.provide(Layer.fresh(landingIn({ root }))))
  // Another process begins its own segment in the folder that is there.
  const again = Effect.provide(foldersSynced(land("d")), Layer.fresh(landingIn({ root })))
  assert.deepStrictEqual(yield* again, [`landing/${run}`])
})
