/** What a disk that fails in the middle costs: the bodies that were told so, and nothing else. */
import * as fs from "node:fs"
import { anId } from "../harness/Id.ts"
import { tmpdir } from "node:os"
import { join, relative } from "node:path"
import { afterAll, assert, describe, it } from "@effect/vitest"
import { vi } from "vitest"
import { Effect, Stream } from "effect"
import { Landing } from "../../src/landing/Landing.ts"
import { LandingFiles } from "../../src/landing/LandingFiles.ts"
import { bytesOf, metaOf } from "./landingSuite.ts"

/** What fails while it is named, and which files are open. */
const disk = vi.hoisted(() => ({ fails: "", open: new Map<number, string>(), data: [] as Array<string> }))

vi.mock("node:fs", async (original) => {
  const real = await original<typeof import("node:fs")>()
  const fail = (what: string) => {
    if (disk.fails === what) throw new Error(`the disk fails: ${what}`)
  }
  return {
    ...real,
    openSync: (path: string, ...rest: [string, number?]) => {
      const descriptor = real.openSync(path, ...rest)
      disk.open.set(descriptor, path)
      return descriptor
    },
    closeSync: (descriptor: number) => {
      disk.open.delete(descriptor)
      real.closeSync(descriptor)
    },
    fsyncSync: (descriptor: number) => {
      fail("fsync")
      real.fsyncSync(descriptor)
    },
    writeSync: (descriptor: number, bytes: Uint8Array, from: number) => {
      // Two bytes are written before it fails.
      if (disk.fails === "write") real.writeSync(descriptor, bytes, from, 2)
      fail("write")
      return real.writeSync(descriptor, bytes, from)
    },
    fdatasync: (descriptor: number, done: (cause: Error | null) => void) => {
      disk.data.push(disk.open.get(descriptor) ?? "?")
      if (disk.fails === "fdatasync") done(new Error("the disk fails: fdatasync"))
      else real.fdatasync(descriptor, done)
    },
  }
})

const base = fs.mkdtempSync(join(tmpdir(), "nightjar-faults-"))
afterAll(() => fs.rmSync(base, { recursive: true, force: true }))
const fresh = (): string => fs.mkdtempSync(join(base, "out-"))
const run = anId("nightly.2026-11-21")
const segment = (root: string, number: number) => join(root, "landing", run, `segment-00000${number}.njl`)

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

describe("a body whose bytes are written and not synced", () => {
  for (const what of ["write", "fdatasync"])
    it.effect(`is not landed where ${what} fails, and what is there without it is cut off`, () => {
      const root = fresh()
      return Effect.gen(function* () {
        yield* land("first")
        const { size } = fs.statSync(segment(root, 1))
        const failure = yield* failing(what, land("second"))
        assert.deepStrictEqual(
          [failure._tag, failure.path, failure.message],
          ["LandingFailed", segment(root, 1), `the disk fails: ${what}`],
        )
        assert.strictEqual(fs.statSync(segment(root, 1)).size, size)
        yield* land("third")
        assert.deepStrictEqual(yield* listed, ["first", "third"])
        // What failed once is not written to again.
        assert.strictEqual(fs.statSync(segment(root, 1)).size, size)
        assert.isTrue(fs.existsSync(segment(root, 2)))
      }).pipe(Effect.provide(LandingFiles.layer({ root })))
    })

  it.effect("leaves no empty segment where nothing else was in it", () => {
    const root = fresh()
    return Effect.gen(function* () {
      for (let times = 0; times < 3; times++) yield* failing("fdatasync", land("first"))
      assert.deepStrictEqual(fs.readdirSync(join(root, "landing", run)), [])
      yield* land("second")
      assert.deepStrictEqual(yield* listed, ["second"])
    }).pipe(Effect.provide(LandingFiles.layer({ root })))
  })

  it.effect("is not landed in a folder whose entry may be lost", () => {
    const root = fresh()
    return Effect.gen(function* () {
      const landing = join(root, "landing", run)
      const made = yield* failing("fsync", land("first"))
      assert.deepStrictEqual([made._tag, made.message], ["LandingFailed", "the disk fails: fsync"])
      const begun = yield* failing("fsync", land("first"))
      assert.deepStrictEqual([begun._tag, begun.path], ["LandingFailed", landing])
      assert.deepStrictEqual([yield* listed, [...disk.open.values()]], [[], []])
      yield* land("second")
      assert.deepStrictEqual(yield* listed, ["second"])
    }).pipe(Effect.provide(LandingFiles.layer({ root })))
  })
})

describe("a document", () => {
  const document = (...chunks: ReadonlyArray<string>) =>
    Effect.flatMap(Landing, (landing) => landing.landAttachment(Stream.make(...chunks.map(bytesOf))))

  it.effect("is there byte for byte under its hash, synced, once, and closed to other accounts", () => {
    const root = fresh()
    return Effect.gen(function* () {
      const synced = disk.data.length
      const [one, same] = [yield* document("a", "bc"), yield* document("abc")]
      assert.deepStrictEqual([one, one.bytes], [same, 3])
      const folder = join(root, "attachments")
      const file = join(root, one.path)
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
      assert.deepStrictEqual([...disk.open.values()], [])
    }).pipe(Effect.provide(LandingFiles.layer({ root })))
  })

  for (const what of ["write", "fdatasync", "fsync"])
    it.effect(`is not there where ${what} fails, nor half of it`, () => {
      const root = fresh()
      return Effect.gen(function* () {
        yield* document("old")
        const failure = yield* failing(what, document("new"))
        assert.deepStrictEqual([failure._tag, failure.message], ["LandingFailed", `the disk fails: ${what}`])
        const names = fs.readdirSync(join(root, "attachments"))
        // Its name may be lost with the folder's entry, so that nobody was told of it.
        assert.strictEqual(names.length, what === "fsync" ? 2 : 1)
        assert.isFalse(names.some((name) => name.startsWith(".tmp-")))
        assert.deepStrictEqual([...disk.open.values()], [])
      }).pipe(Effect.provide(LandingFiles.layer({ root })))
    })
})

describe("files", () => {
  it.effect("are closed once they are read or full, and all of them with the process", () => {
    const root = fresh()
    const open = () => [...disk.open.values()].map((path) => relative(root, path))
    return Effect.gen(function* () {
      yield* Effect.gen(function* () {
        const landing = yield* Landing
        const ref = yield* land("first")
        yield* landing.read(run, ref)
        yield* listed
        assert.deepStrictEqual(open(), [relative(root, segment(root, 1))])
        yield* land("second")
        assert.deepStrictEqual(open(), [relative(root, segment(root, 1))])
      }).pipe(Effect.provide(LandingFiles.layer({ root })))
      assert.deepStrictEqual(open(), [])
      const full = Effect.gen(function* () {
        yield* land("third")
        assert.deepStrictEqual(open(), [])
      })
      yield* Effect.provide(full, LandingFiles.layer({ root, segmentBytesMax: 1 }))
    })
  })
})
