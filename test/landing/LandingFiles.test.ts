import { execFileSync, spawnSync } from "node:child_process"
import {
  appendFileSync,
  chmodSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  statSync,
  writeFileSync,
  rmSync,
} from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Stream } from "effect"
import { FileCalls, durableFiles, machineCalls } from "../../src/base/DurableFile.ts"
import { blankFrames, countFrames } from "../../src/landing/BlankFrames.ts"
import { encodeHeader, framesIn } from "../../src/landing/Segments.ts"
import { Landing, type BodyMeta } from "../../src/landing/Landing.ts"
import { LandingFiles } from "../../src/landing/LandingFiles.ts"
import type { LandedRef } from "../../src/ledger/Fact.ts"
import { faultyCalls, refusal, withCalls } from "../base/FaultyCalls.ts"
import { bytesOf, landingSuite, metaOf, sha256 } from "./landingSuite.ts"
import { anId } from "../harness/Id.ts"
import { effect, live } from "../harness/Steps.ts"
import { freshFolders } from "../harness/Folder.ts"

const fresh = freshFolders()
const run = anId("nightly.2026-11-21")

landingSuite("LandingFiles", () => LandingFiles.layer({ root: fresh() }))

const landAll = (root: string, texts: ReadonlyArray<string>, segmentBytesMax = 1 << 26) =>
  Effect.gen(function* () {
    const landing = yield* Landing
    return yield* Effect.forEach(texts, (text) => landing.land(metaOf(text), bytesOf(text)))
  }).pipe(Effect.provide(LandingFiles.layer({ root, segmentBytesMax })))

const listAll = (root: string) =>
  Effect.gen(function* () {
    const landing = yield* Landing
    return yield* landing.list(run)
  }).pipe(Effect.provide(LandingFiles.layer({ root })))

const refsIn = (root: string) => Effect.map(listAll(root), (all) => all.map(({ ref }) => ref))
const tasksIn = (root: string) => Effect.map(listAll(root), (all) => all.map(({ meta }) => meta.task_id))
const segmentIn = (root: string, number = 1) => join(root, "landing", run, `segment-00000${number}.njl`)

describe("LandingFiles", () => {
  effect(
    "keeps folders 0700 and files 0600, and begins a segment when one is full or the process is new",
    function* () {
      const root = fresh()
      chmodSync(root, 0o755)
      yield* landAll(root, ["a", "b"], 1)
      yield* landAll(root, ["c"])
      const folder = join(root, "landing", run)
      const names = ["segment-000001.njl", "segment-000002.njl", "segment-000003.njl"]
      assert.deepStrictEqual(readdirSync(folder), names)
      assert.deepStrictEqual(
        [folder, join(folder, "segment-000001.njl")].map((path) => statSync(path).mode & 0o777),
        [0o700, 0o600],
      )
      assert.deepStrictEqual(yield* tasksIn(root), ["a", "b", "c"])
    },
  )

  effect("a segment torn at any byte loses nothing before the tear and invents nothing", function* () {
    const root = fresh()
    const refs = yield* landAll(root, ["first", "second\n", '{"njl":1,"at":0}\n', "fourth"])
    const path = segmentIn(root)
    const whole = readFileSync(path)
    const landing = yield* Effect.provide(Landing, LandingFiles.layer({ root }))
    for (let size = 0; size <= whole.length; size += 1) {
      const expected = refs.filter((ref) => ref.offset + ref.bytes < size)
      for (const filling of size % 4 === 0 ? [0, 37] : [0]) {
        writeFileSync(path, Buffer.concat([whole.subarray(0, size), Buffer.alloc(filling)]))
        // Zeros after a whole frame's end change nothing; in place of its last newline they cut it.
        const listed = yield* landing.list(run)
        assert.deepStrictEqual(
          listed.map(({ ref }) => ref),
          expected,
          `${size} + ${filling}`,
        )
      }
    }
  })

  effect("an empty body is whole, and a first one that the disk lost leaves none", function* () {
    const root = fresh()
    const refs = yield* landAll(root, [""])
    assert.deepStrictEqual(yield* refsIn(root), refs)
    const other = fresh()
    const [only] = yield* landAll(other, ["never synced"])
    const path = segmentIn(other)
    const bytes = readFileSync(path)
    bytes.fill(0, only?.offset, (only?.offset ?? 0) + 12)
    writeFileSync(path, bytes)
    assert.deepStrictEqual(yield* listAll(other), [])
  })

  effect("frames that were never synced end at the first lost one, whatever follows", function* () {
    const root = fresh()
    const [first, lost, last] = yield* Effect.gen(function* () {
      const landing = yield* Landing
      const land = (text: string) => landing.land(metaOf(text), bytesOf(text))
      return [yield* land("first"), ...(yield* Effect.all([land("b"), land("c")], { concurrency: 2 }))]
    }).pipe(Effect.provide(LandingFiles.layer({ root })))
    const path = segmentIn(root)
    const whole = readFileSync(path)
    whole[(lost?.offset ?? 0) - 20] = 0
    for (const size of [whole.length, (last?.offset ?? 0) - 20]) {
      writeFileSync(path, whole.subarray(0, size))
      assert.deepStrictEqual(yield* refsIn(root), [first])
    }
  })

  effect("a frame inside a body does not count, however complete it is", function* () {
    const source = fresh()
    const refs = yield* landAll(source, ["x".repeat(2_000), "second"])
    const segment = ["landing", run, "segment-000001.njl"]
    const from = (refs[0]?.offset ?? 0) + (refs[0]?.bytes ?? 0) + 1
    const frame = readFileSync(join(source, ...segment)).subarray(from)
    const root = fresh()
    const [first] = yield* landAll(root, ["first", `\n${frame.toString()}`])
    const path = join(root, ...segment)
    writeFileSync(path, readFileSync(path).subarray(0, -1))
    assert.deepStrictEqual(yield* refsIn(root), [first])
  })

  effect("a header in the middle of a line does not count, though it names its own place", function* () {
    const landTwo = (root: string, second: Uint8Array) =>
      Effect.gen(function* () {
        const landing = yield* Landing
        const first = yield* landing.land(metaOf("a"), bytesOf("first"))
        return [first, yield* landing.land(metaOf("b"), second)] as const
      }).pipe(Effect.provide(LandingFiles.layer({ root })))
    const body = Buffer.alloc(1_000, "x")
    const [, planned] = yield* landTwo(fresh(), body)
    const at = planned.offset + 1
    const nothing = sha256(bytesOf(""))
    body.set(encodeHeader({ njl: 1, at, synced: at, bytes: 0, sha256: nothing, meta: metaOf("c") }), 1)
    const root = fresh()
    const [first] = yield* landTwo(root, body)
    const path = segmentIn(root)
    writeFileSync(path, readFileSync(path).subarray(0, -1))
    assert.deepStrictEqual(yield* refsIn(root), [first])
  })

  effect("segments are read in the order of their numbers, and no other file is", function* () {
    const root = fresh()
    const folder = join(root, "landing", run)
    yield* landAll(root, ["a"])
    renameSync(join(folder, "segment-000001.njl"), join(folder, "segment-999999.njl"))
    writeFileSync(join(folder, "zzz.txt"), readFileSync(join(folder, "segment-999999.njl")))
    yield* landAll(root, ["b"])
    assert.deepStrictEqual(readdirSync(folder).toSorted(), [
      "segment-1000000.njl",
      "segment-999999.njl",
      "zzz.txt",
    ])
    assert.deepStrictEqual(yield* tasksIn(root), ["a", "b"])
  })

  effect("a run whose folder cannot be read is damaged, not empty, and takes no body", function* () {
    const root = fresh()
    mkdirSync(join(root, "landing"))
    writeFileSync(join(root, "landing", run), "no folder")
    const failure = yield* Effect.flip(listAll(root))
    assert.deepStrictEqual(
      [failure._tag, failure.path, failure.message.slice(0, 8)],
      ["LandingDamaged", join(root, "landing", run), "ENOTDIR:"],
    )
    const refused = yield* Effect.flip(landAll(root, ["a"]))
    assert.deepStrictEqual(
      [refused._tag, refused.path, refused.message.slice(0, 8)],
      ["LandingFailed", join(root, "landing", run), "ENOTDIR:"],
    )
  })

  effect("a segment is full at its size, and the next body begins another", function* () {
    const root = fresh()
    const [only] = yield* landAll(root, ["a"])
    const size = (only?.offset ?? 0) + (only?.bytes ?? 0) + 1
    const refs = yield* landAll(fresh(), ["a", "b"], size)
    assert.deepStrictEqual(
      refs.map(({ segment }) => segment),
      ["segment-000001.njl", "segment-000002.njl"],
    )
  })

  it.effect("a segment is full at 64 MiB, and a document at 1 GiB, where nothing else is asked for", () =>
    Effect.gen(function* () {
      const landing = yield* Landing
      const meta = metaOf("a")
      const described = {
        njl: 1,
        at: 0,
        synced: 0,
        bytes: 10_000_000,
        sha256: sha256(bytesOf("")),
        meta,
      } as const
      const rest = 64 * 1024 * 1024 - 1 - encodeHeader(described).length - 1
      const refs = yield* Effect.forEach([rest, 1, 1], (size) => landing.land(meta, new Uint8Array(size)))
      assert.deepStrictEqual(
        refs.map(({ segment }) => segment),
        ["segment-000001.njl", "segment-000001.njl", "segment-000002.njl"],
      )
      const tooLong = new Uint8Array(1024 * 1024 * 1024 + 1)
      const failure = yield* Effect.flip(landing.landAttachment(Stream.make(tooLong)))
      assert.strictEqual(failure.message, "a document may have 1073741824 bytes at most")
    }).pipe(
      Effect.provide(LandingFiles.layer({ root: fresh() })),
      // Nothing is written: the sizes alone count.
      withCalls({ ...machineCalls, write: (_, bytes, from) => bytes.length - from }),
    ),
  )

  effect("refuses a body that no header can describe, and an id that is not a run's, by name", function* () {
    const root = fresh()
    const told = Effect.fnUntraced(function* (meta: ReturnType<typeof metaOf>) {
      const landing = yield* Landing
      return (yield* Effect.flip(landing.land(meta, bytesOf("a")))).message
    })
    const room = 32_768 - Buffer.byteLength(JSON.stringify(metaOf("")))
    const messages = yield* Effect.gen(function* () {
      const landing = yield* Landing
      yield* landing.land(metaOf("x".repeat(room)), bytesOf("a"))
      return [yield* told(metaOf("x".repeat(room + 1))), yield* told(metaOf("a", "../a"))]
    }).pipe(Effect.provide(LandingFiles.layer({ root })))
    assert.deepStrictEqual(messages, [
      "the description of the body is too long",
      "run_id may only hold a-z, 0-9, dot and hyphen",
    ])
    assert.deepStrictEqual(readdirSync(join(root, "landing")), [run])
  })

  effect("reads no incomplete body", function* () {
    const root = fresh()
    const [ref] = yield* landAll(root, ["body"])
    if (ref === undefined) return assert.fail("nothing was landed")
    const message = (wrong: Partial<typeof ref>) =>
      Effect.flatMap(Landing, (landing) => Effect.flip(landing.read(run, { ...ref, ...wrong }))).pipe(
        Effect.map(({ message: said }) => said),
        Effect.provide(LandingFiles.layer({ root })),
      )
    assert.deepStrictEqual(
      [
        yield* message({ bytes: 6 }),
        yield* message({ bytes: -1 }),
        yield* message({ offset: -1, bytes: 1 }),
        yield* message({ offset: 0 }),
        yield* message({ bytes: 5 }),
        yield* message({ segment: "../segment-000001.njl" }),
      ],
      [
        `the body at offset ${ref.offset} is cut`,
        `the body at offset ${ref.offset} is cut`,
        "the body at offset -1 is cut",
        "the body at offset 0 is not what was landed",
        `the body at offset ${ref.offset} is not what was landed`,
        "not the position of a landed body",
      ],
    )
    assert.match(yield* message({ segment: "segment-000009.njl" }), /^ENOENT: /)
  })

  effect(
    "a damaged header in what was synced costs its own body, and is named [promise 7 damaged header]",
    function* () {
      const root = fresh()
      const refs = yield* landAll(root, ['first {"njl":1, as in a header', "second", "third"])
      const path = segmentIn(root)
      const whole = readFileSync(path)
      const places = [0, 5, 60, refs[0]!.offset + refs[0]!.bytes].map((offset) => [offset, 0] as const)
      for (const [offset, lost] of [...places, [refs[1]!.offset - 5, 1] as const]) {
        const bytes = Buffer.from(whole)
        bytes[offset] = (bytes[offset] ?? 0) ^ 1
        writeFileSync(path, bytes)
        const landing = yield* Effect.provide(Landing, LandingFiles.layer({ root }))
        assert.deepStrictEqual(
          (yield* landing.list(run)).map(({ ref }) => ref),
          refs.toSpliced(lost, 1),
        )
        const [bytesLost, ...more] = yield* landing.damage(run)
        const { segment, offset: body } = refs[lost]!
        assert.deepStrictEqual([bytesLost?.segment, more], [segment, []])
        assert.isTrue(bytesLost!.from < body && body < bytesLost!.to)
        assert.throws(() => framesIn(path), `the frame at offset ${bytesLost?.from} is damaged`)
      }
      const bytes = Buffer.from(whole)
      bytes[refs[0]?.offset ?? 0] = 0x00
      writeFileSync(path, bytes)
      const read = Effect.flatMap(Landing, (landing) => Effect.forEach(refs, (ref) => landing.read(run, ref)))
      // Every body is still known by its place: only reading one tells that it is not what was landed.
      assert.deepStrictEqual(yield* refsIn(root), refs)
      const failure = yield* Effect.flip(Effect.provide(read, LandingFiles.layer({ root })))
      assert.strictEqual(failure.message, `the body at offset ${refs[0]?.offset} is not what was landed`)
    },
  )

  effect("no id but a run's becomes a folder", function* () {
    const root = fresh()
    const landing = yield* Effect.provide(Landing, LandingFiles.layer({ root }))
    for (const id of ["../x", "a/b", "", ".", "a..b", "A", "a\0", "-"]) {
      const { _tag, path, message } = yield* Effect.flip(landing.list(anId(id)))
      assert.deepStrictEqual(
        [_tag, path, message],
        ["LandingDamaged", join(root, "landing"), "not a run's id"],
      )
    }
    const ref = { segment: "../../../etc/passwd", offset: 0, bytes: 1, sha256: "" }
    assert.strictEqual((yield* Effect.flip(landing.read(run, ref)))._tag, "LandingDamaged")
    assert.deepStrictEqual(readdirSync(root), [])
  })

  effect("removes half-written documents after a crash, and refuses one that is too long", function* () {
    const root = fresh()
    mkdirSync(join(root, "attachments"), { mode: 0o700 })
    writeFileSync(join(root, "attachments", ".tmp-1-1"), "half")
    const failure = yield* Effect.flip(
      Effect.flatMap(Landing, (landing) =>
        landing.landAttachment(Stream.make(bytesOf("four"), bytesOf("4"))),
      ).pipe(Effect.provide(LandingFiles.layer({ root, attachmentBytesMax: 4 }))),
    )
    assert.strictEqual(failure.message, "a document may have 4 bytes at most")
    assert.deepStrictEqual(readdirSync(join(root, "attachments")), [])
    const whole = yield* Effect.flatMap(Landing, (landing) =>
      landing.landAttachment(Stream.make(bytesOf("four"))),
    ).pipe(Effect.provide(LandingFiles.layer({ root, attachmentBytesMax: 4 })))
    assert.strictEqual(whole.bytes, 4)
  })

  effect(
    "[promise 5 damaged document] takes the place of its own copy, in case that is damaged",
    function* () {
      const root = fresh()
      const landed = yield* Effect.flatMap(Landing, (landing) => {
        const land = landing.landAttachment(Stream.make(bytesOf("document")))
        const damage = ({ path }: { readonly path: string }) => writeFileSync(join(root, path), "damaged!")
        return Effect.andThen(Effect.map(land, damage), land)
      }).pipe(Effect.provide(LandingFiles.layer({ root })))
      assert.strictEqual(readFileSync(join(root, landed.path), "utf8"), "document")
      assert.deepStrictEqual(readdirSync(join(root, "attachments")), [landed.sha256])
    },
  )

  effect(
    "a document that was cut or changed since is not here, and is whole once it is landed again [promise 5 changed]",
    function* () {
      const root = fresh()
      const landing = yield* Effect.provide(Landing, LandingFiles.layer({ root }))
      const landed = yield* landing.landAttachment(Stream.make(bytesOf("four")))
      const seen = [yield* landing.hasAttachment(landed.sha256)]
      for (const spoil of [
        () => writeFileSync(join(root, landed.path), "fo"),
        () => writeFileSync(join(root, landed.path), "five"),
        () => rmSync(join(root, landed.path)),
      ]) {
        spoil()
        seen.push(yield* landing.hasAttachment(landed.sha256))
        yield* landing.landAttachment(Stream.make(bytesOf("four")))
        seen.push(yield* landing.hasAttachment(landed.sha256))
      }
      assert.deepStrictEqual(seen, [true, false, true, false, true, false, true])
      assert.strictEqual(readFileSync(join(root, landed.path), "utf8"), "four")
    },
  )

  effect("leaves the half-written document of a run alone if it only reads", function* () {
    const root = fresh()
    mkdirSync(join(root, "attachments"), { mode: 0o700 })
    writeFileSync(join(root, "attachments", ".tmp-1-1"), "half")
    const list = Effect.flatMap(Landing, (landing) => landing.list(run))
    const listed = yield* Effect.provide(list, LandingFiles.layer({ root, access: "read-only" }))
    assert.deepStrictEqual([listed, readdirSync(join(root, "attachments"))], [[], [".tmp-1-1"]])
  })

  live("a disk that fails at any step loses no landed body, and later bodies land again", function* () {
    const landSome = Effect.fnUntraced(function* (root: string, calls: FileCalls) {
      return yield* Effect.gen(function* () {
        const landing = yield* Landing
        const told: Array<LandedRef> = []
        for (const text of ["first", "second", "third"]) {
          const result = yield* Effect.result(landing.land(metaOf(text), bytesOf(text.repeat(99))))
          if (result._tag === "Success") told.push(result.success)
        }
        const document = yield* Effect.result(landing.landAttachment(Stream.make(bytesOf("document"))))
        return { told, document: document._tag }
      }).pipe(
        Effect.provide(LandingFiles.layer({ root }).pipe(Layer.provide(Layer.succeed(FileCalls, calls)))),
      )
    })
    const undisturbed = faultyCalls({ writeBytesMax: 50 })
    yield* landSome(fresh(), undisturbed.calls)
    assert.isAbove(undisturbed.done.length, 30)
    for (let failing = 1; failing <= undisturbed.done.length; failing++) {
      for (const once of [true, false]) {
        const root = fresh()
        const { calls, done } = faultyCalls({
          writeBytesMax: 50,
          refuse: (name, nth) =>
            nth === failing || (!once && nth > failing) ? refusal("EIO", name) : undefined,
        })
        const { told, document } = yield* landSome(root, calls)
        const at = `${done[failing - 1]} ${failing}${once ? "" : " and on"}`
        const listed = yield* refsIn(root)
        assert.deepStrictEqual(
          listed.filter(({ sha256 }) => told.some((ref) => ref.sha256 === sha256)),
          told,
          at,
        )
        const stored = join(root, "attachments", sha256(bytesOf("document")))
        if (document === "Success") assert.strictEqual(readFileSync(stored, "utf8"), "document", at)
        yield* landAll(root, ["later"])
        assert.strictEqual((yield* listAll(root)).at(-1)?.meta.task_id, "later", at)
      }
    }
  })

  it("a full disk fails new bodies, loses no earlier ones, and works again when there is room", (context) => {
    const probe = spawnSync("unshare", ["-rm", "true"])
    if (probe.status !== 0) return context.skip()
    const disk = fresh()
    const script = join(import.meta.dirname, "fullDisk.ts")
    const command = 'mount -t tmpfs -o size=256k tmpfs "$1" && exec "$2" "$3" "$1"'
    const answer = execFileSync("unshare", ["-rm", "sh", "-c", command, "sh", disk, process.execPath, script])
    assert.deepStrictEqual(JSON.parse(answer.toString()), {
      error: "cannot write: no space left on device (ENOSPC)",
      listedIsLanded: true,
      later: "landed",
    })
  }, 20_000)
})

describe("bodies that are removed", () => {
  const isGone = ({ task_id }: BodyMeta) => task_id.startsWith("gone")
  const blank = (root: string, matches: (meta: BodyMeta) => boolean, id = run) =>
    Effect.map(durableFiles, (files) => blankFrames(files, join(root, "landing"), id, matches))
  const countedIn = (root: string, matches: (meta: BodyMeta) => boolean) =>
    countFrames(join(root, "landing"), run, matches)

  effect("leave blanks of their length, whatever that is, and every other body where it was", function* () {
    const root = fresh()
    const lengths = [...Array.from({ length: 130 }, (_, length) => length), 600, 850, 9_700, 9_950, 99_800]
    yield* Effect.gen(function* () {
      const landing = yield* Landing
      const wanted = lengths.flatMap((length) => [
        { task_id: `gone-${length}`, length },
        { task_id: "kept", length },
      ])
      const refs = yield* Effect.forEach(
        wanted,
        ({ task_id, length }) =>
          landing.land(metaOf(task_id), bytesOf("secret".repeat(length).slice(0, length))),
        { concurrency: "unbounded" },
      )
      const kept = refs.filter((_, index) => index % 2 === 1)
      const before = readFileSync(segmentIn(root))
      assert.strictEqual(countedIn(root, isGone), lengths.length)
      yield* blank(root, isGone)
      const after = readFileSync(segmentIn(root))
      assert.deepStrictEqual(
        [after.length, statSync(segmentIn(root)).mode & 0o777, after.includes("gone")],
        [before.length, 0o600, false],
      )
      assert.deepStrictEqual([countedIn(root, isGone), countedIn(root, () => true)], [0, lengths.length])
      const left = yield* landing.list(run)
      assert.deepStrictEqual(
        left.map(({ ref }) => ref),
        kept,
      )
      for (const [index, ref] of kept.entries())
        assert.lengthOf(yield* landing.read(run, ref), lengths[index] ?? -1)
      // What stands between them is read as whole frames of blanks.
      const blanks = framesIn(segmentIn(root)).filter(({ header }) => header.meta.kind === "forgotten")
      assert.deepStrictEqual(
        blanks.map(({ header, offset }) =>
          after
            .subarray(offset, offset + header.bytes)
            .toString()
            .trim(),
        ),
        lengths.map(() => ""),
      )
    }).pipe(Effect.provide(LandingFiles.layer({ root })))
  })

  effect(
    "cost nothing where there are none; what a crash left behind the last frame goes all the same",
    function* () {
      const root = fresh()
      yield* Effect.provide(
        Effect.flatMap(Landing, (landing) => landing.land(metaOf("kept"), bytesOf("kept"))),
        Layer.fresh(LandingFiles.layer({ root })),
      )
      const path = segmentIn(root)
      const whole = readFileSync(path)
      const { ino } = statSync(path)
      yield* blank(root, isGone)
      assert.strictEqual(statSync(path).ino, ino)
      appendFileSync(path, "half a frame of somebody")
      writeFileSync(segmentIn(root, 2), "nothing else")
      yield* blank(root, isGone)
      assert.deepStrictEqual([readFileSync(path), readFileSync(segmentIn(root, 2)).length], [whole, 0])
      // It is left at its length, so that nothing is done again.
      const empty = statSync(segmentIn(root, 2)).ino
      yield* blank(root, isGone)
      assert.strictEqual(statSync(segmentIn(root, 2)).ino, empty)
    },
  )

  effect("are not looked for in a damaged segment, which is refused, nor under what is no run", function* () {
    const root = fresh()
    const two = Effect.flatMap(Landing, (landing) =>
      Effect.andThen(
        landing.land(metaOf("gone-1"), bytesOf("first")),
        landing.land(metaOf("gone-2"), bytesOf("second")),
      ),
    )
    yield* Effect.provide(two, Layer.fresh(LandingFiles.layer({ root })))
    const path = segmentIn(root)
    const bytes = readFileSync(path)
    bytes[20]! ^= 1
    writeFileSync(path, bytes)
    const why = "the frame at offset 0 is damaged"
    assert.throws(() => countedIn(root, isGone), why)
    const refused = yield* Effect.exit(blank(root, isGone))
    assert.include(JSON.stringify(refused), why)
    assert.deepStrictEqual(readFileSync(path), bytes)
    assert.strictEqual(countFrames(join(root, "landing"), anId("../landing"), isGone), 0)
    yield* blank(root, isGone, anId("../landing"))
  })
})
