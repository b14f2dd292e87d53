/**
 * Landed bodies that are compressed after a while: every body is read at its place as before, whatever fails while they
 * are compressed, damage is noticed, and a customer who is removed leaves them too.
 */
import {
  appendFileSync,
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from "node:fs"
import { basename, join } from "node:path"
import { zstdDecompressSync } from "node:zlib"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import * as fc from "fast-check"
import { DurableFiles, machineCalls, type FileCalls } from "../../src/base/DurableFile.ts"
import { pack } from "../../src/base/Zstd.ts"
import { blankFrames } from "../../src/landing/BlankFrames.ts"
import { SegmentBodies, compressSegments, contentOf } from "../../src/landing/SegmentFile.ts"
import { Landing } from "../../src/landing/Landing.ts"
import { LandingFiles } from "../../src/landing/LandingFiles.ts"
import { refusingFrom } from "../base/FaultyCalls.ts"
import { anId } from "../harness/Id.ts"
import { bytesOf, metaOf } from "./landingSuite.ts"
import { effect } from "../harness/Steps.ts"
import { freshFolders } from "../harness/Folder.ts"

const fresh = freshFolders()
const run = anId("nightly.2026-11-21")
const files = new DurableFiles(machineCalls)

const within = <A, E>(root: string, work: (landing: Landing["Service"]) => Effect.Effect<A, E>) =>
  Effect.flatMap(Landing, work).pipe(Effect.provide(Layer.fresh(LandingFiles.layer({ root }))))

/** A process of its own for each list of bodies, so that each is a segment. */
const landed = Effect.fnUntraced(function* (segments: ReadonlyArray<ReadonlyArray<string>>) {
  const root = fresh()
  for (const texts of segments)
    yield* within(root, (landing) =>
      Effect.forEach(texts, (text, index) => landing.land(metaOf(`t-${index}`), bytesOf(text))),
    )
  return root
})

/** Every body with its place, as somebody reads it who knows nothing of compression. */
const bodiesOf = (root: string) =>
  within(root, (landing) =>
    Effect.flatMap(landing.list(run), (bodies) =>
      Effect.forEach(bodies, ({ ref, meta }) =>
        Effect.map(landing.read(run, ref), (bytes) => ({
          ref,
          task_id: meta.task_id,
          text: Buffer.from(bytes).toString(),
        })),
      ),
    ),
  )

const folderOf = (root: string) => join(root, "landing", run)
const nothing = { before: 0, after: 0 }
const names = (root: string) => readdirSync(folderOf(root)).toSorted()
const compress = (root: string, by = files) => compressSegments(by, join(root, "landing"), run)

describe("landed bodies that are compressed", () => {
  effect("are read at their places as before, and more can be landed [decision 3 compressed]", function* () {
    const long = JSON.stringify({ results: Array.from({ length: 3_000 }, (_, index) => ({ index })) })
    const root = yield* landed([["", "{}", long, 'é\n\0{"njl":1,'], [long]])
    appendFileSync(join(folderOf(root), "segment-000002.njl"), "half a frame")
    const before = yield* bodiesOf(root)
    const sizes = compress(root)
    assert.deepStrictEqual(names(root), ["segment-000001.njl.zst", "segment-000002.njl.zst"])
    assert.deepStrictEqual(
      names(root).map((name) => statSync(join(folderOf(root), name)).mode & 0o777),
      [0o600, 0o600],
    )
    assert.isTrue(sizes.before > 2 * long.length && sizes.after < sizes.before / 4)
    const left = names(root).map((name) => statSync(join(folderOf(root), name)).size)
    assert.strictEqual(
      sizes.after,
      left.reduce((sum, size) => sum + size, 0),
    )
    assert.deepStrictEqual(yield* bodiesOf(root), before)
    assert.deepStrictEqual(compress(root), nothing)
    yield* within(root, (landing) => landing.land(metaOf("late"), bytesOf("late")))
    assert.strictEqual(names(root).at(-1), "segment-000003.njl")
    assert.deepStrictEqual(
      (yield* bodiesOf(root)).map(({ text }) => text),
      [...before.map(({ text }) => text), "late"],
    )
  })

  effect("are whole whichever call fails on the way, and are compressed by the next attempt", function* () {
    let failing = 0
    let isFinished = false
    while (!isFinished) {
      failing += 1
      const root = yield* landed([["first", "second"], ["third"]])
      const before = yield* bodiesOf(root)
      const faulty = refusingFrom(failing)
      yield* Effect.ignore(Effect.try(() => compress(root, faulty.files)))
      isFinished = faulty.done.length < failing
      if (isFinished) assert.deepStrictEqual(faulty.done.slice(-4), ["remove", "open", "sync", "close"])
      assert.deepStrictEqual(yield* bodiesOf(root), before)
      compress(root)
      assert.deepStrictEqual(
        [yield* bodiesOf(root), names(root)],
        [before, ["segment-000001.njl.zst", "segment-000002.njl.zst"]],
      )
    }
    // Each segment is opened, written, synced, renamed; its folder is synced; the old one goes.
    assert.isAbove(failing, 15)
  })

  effect("stay as they arrived where the disk keeps other bytes than it was given", function* () {
    const root = yield* landed([["first", "second"]])
    const before = yield* bodiesOf(root)
    const write: FileCalls["write"] = (descriptor, bytes, from) =>
      machineCalls.write(
        descriptor,
        bytes.map((byte, index) => (index === 20 ? byte ^ 1 : byte)),
        from,
      )
    assert.throws(
      () => compress(root, new DurableFiles({ ...machineCalls, write })),
      "segment-000001.njl reads back differently once it is compressed; it stays as it is",
    )
    assert.deepStrictEqual([yield* bodiesOf(root), names(root)], [before, ["segment-000001.njl"]])
  })

  effect(
    "are those of a run: no other folder is touched, and no segment that no reader could unpack",
    function* () {
      const root = yield* landed([["first"]])
      const outside = mkdtempSync(join(root, "other-"))
      copyFileSync(join(folderOf(root), "segment-000001.njl"), join(outside, "segment-000001.njl"))
      const elsewhere = anId(`../${basename(outside)}`)
      assert.deepStrictEqual(compressSegments(files, join(root, "landing"), elsewhere), nothing)
      assert.deepStrictEqual(readdirSync(outside), ["segment-000001.njl"])
      // It takes no room: nothing but its length is written.
      truncateSync(join(folderOf(root), "segment-000001.njl"), 2 ** 30 + 1)
      assert.deepStrictEqual([compress(root), names(root)], [nothing, ["segment-000001.njl"]])
    },
  )

  effect("are never read wrongly: any changed or missing byte is noticed", function* () {
    const root = yield* landed([["first", "second", "third"]])
    const before = yield* bodiesOf(root)
    compress(root)
    const path = join(folderOf(root), "segment-000001.njl.zst")
    const whole = readFileSync(path)
    for (let at = 0; at < whole.length; at += 1) {
      const changed = Buffer.from(whole)
      changed[at]! ^= 1 << (at % 8)
      for (const bytes of [changed, whole.subarray(0, at)]) {
        writeFileSync(path, bytes)
        const read = yield* Effect.exit(bodiesOf(root))
        if (read._tag === "Success") assert.deepStrictEqual(read.value, before)
        else assert.match(String(read.cause), /LandingDamaged/)
      }
    }
  })

  it("are read as before, whatever they are", () =>
    fc.assert(
      fc.asyncProperty(fc.array(fc.array(fc.string({ unit: "binary" })), { maxLength: 3 }), (segments) =>
        Effect.runPromise(
          Effect.gen(function* () {
            const root = yield* landed(segments)
            const before = yield* bodiesOf(root)
            compress(root)
            assert.deepStrictEqual(yield* bodiesOf(root), before)
          }),
        ),
      ),
      { numRuns: 8 },
    ))

  effect(
    "are removed with their customer, also where a crash left both copies [promise 15 compressed]",
    function* () {
      const root = yield* landed([
        ["their secret", "mine"],
        ["their secret", "mine"],
      ])
      const before = yield* bodiesOf(root)
      const [first, second] = ["segment-000001.njl", "segment-000002.njl"].map((name) =>
        join(folderOf(root), name),
      )
      const kept = fresh()
      copyFileSync(second ?? "", join(kept, "second"))
      compress(root)
      copyFileSync(join(kept, "second"), second ?? "")
      writeFileSync(`${first}.zst.tmp`, "half of their secret")
      blankFrames(files, join(root, "landing"), run, ({ task_id }) => task_id === "t-0")
      assert.deepStrictEqual(names(root), ["segment-000001.njl.zst", "segment-000002.njl"])
      const left = [zstdDecompressSync(readFileSync(`${first}.zst`)), readFileSync(second ?? "")]
      assert.deepStrictEqual(
        left.map((bytes) => bytes.includes("secret")),
        [false, false],
      )
      assert.deepStrictEqual(
        yield* bodiesOf(root),
        before.filter(({ task_id }) => task_id !== "t-0"),
      )
    },
  )
})

const aPath = () => join(fresh(), "segment-000001.njl")

describe("a segment", () => {
  it("is the file that was there first, and the compressed one only if there is no other", () => {
    const path = aPath()
    assert.throws(() => contentOf(path), /ENOENT.*segment-000001\.njl'/)
    writeFileSync(`${path}.zst`, pack(Buffer.from("compressed")))
    assert.strictEqual(contentOf(path).toString(), "compressed")
    mkdirSync(path)
    assert.throws(() => contentOf(path), /EISDIR/)
    rmSync(path, { recursive: true })
    writeFileSync(path, "as it was written")
    assert.strictEqual(contentOf(path).toString(), "as it was written")
  })

  it("that is compressed is unpacked once for all of its bodies, and again once it was replaced", () => {
    const path = aPath()
    const bodies = new SegmentBodies()
    const read = () => Buffer.from(bodies.read(path, 0, 5) ?? []).toString()
    const packed = pack(Buffer.from("first and second"))
    writeFileSync(`${path}.zst`, packed)
    assert.strictEqual(read(), "first")
    const { atime, mtime } = statSync(`${path}.zst`)
    utimesSync(`${path}.zst`, atime, mtime)
    assert.strictEqual(read(), "first")
    writeFileSync(`${path}.zst`, Buffer.alloc(packed.length))
    utimesSync(`${path}.zst`, atime, mtime)
    assert.strictEqual(read(), "first")
    writeFileSync(`${path}.zst`, pack(Buffer.from("other")))
    assert.strictEqual(read(), "other")
  })
})
