import { execFileSync, spawnSync } from "node:child_process"
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, assert, describe, it } from "@effect/vitest"
import { Effect, Stream } from "effect"
import { Landing } from "../../src/landing/Landing.ts"
import { LandingFiles } from "../../src/landing/LandingFiles.ts"
import { bytesOf, landingSuite, metaOf } from "./landingSuite.ts"
import { anId } from "../harness/Id.ts"

const base = mkdtempSync(join(tmpdir(), "nightjar-landing-"))
afterAll(() => rmSync(base, { recursive: true, force: true }))
const fresh = (): string => mkdtempSync(join(base, "out-"))
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

describe("LandingFiles", () => {
  it.effect(
    "keeps folders 0700 and files 0600, and begins a segment when one is full or the process new",
    () =>
      Effect.gen(function* () {
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
        assert.deepStrictEqual(
          (yield* listAll(root)).map(({ meta }) => meta.task_id),
          ["a", "b", "c"],
        )
      }),
  )

  it.effect("a segment torn at any byte loses nothing before the tear and invents nothing", () =>
    Effect.gen(function* () {
      const root = fresh()
      const refs = yield* landAll(root, ["first", "second\n", '{"njl":1,"at":0}\n', "fourth"])
      const path = join(root, "landing", run, "segment-000001.njl")
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
    }),
  )

  it.effect("a body that the disk lost before its sync ends the segment", () =>
    Effect.gen(function* () {
      const root = fresh()
      const refs = yield* landAll(root, ["synced", "never synced"])
      const path = join(root, "landing", run, "segment-000001.njl")
      const bytes = readFileSync(path)
      bytes.fill(0, refs[1]?.offset, (refs[1]?.offset ?? 0) + 12)
      writeFileSync(path, bytes)
      assert.deepStrictEqual(
        (yield* listAll(root)).map(({ ref }) => ref),
        refs.slice(0, 1),
      )
    }),
  )

  it.effect("damage to what was synced is an error that names file and offset", () =>
    Effect.gen(function* () {
      const root = fresh()
      const refs = yield* landAll(root, ["first", "second", "third"])
      const path = join(root, "landing", run, "segment-000001.njl")
      const whole = readFileSync(path)
      for (const offset of [0, 5, 60, (refs[1]?.offset ?? 0) - 5, (refs[0]?.offset ?? 0) + 5]) {
        const bytes = Buffer.from(whole)
        bytes[offset] = (bytes[offset] ?? 0) ^ 1
        writeFileSync(path, bytes)
        const failure = yield* Effect.flip(listAll(root))
        assert.deepStrictEqual(
          [failure._tag, failure.path, /the frame at offset \d+ is damaged/.test(failure.message)],
          ["LandingDamaged", path, true],
        )
      }
      const bytes = Buffer.from(whole)
      bytes[refs[0]?.offset ?? 0] = 0x00
      writeFileSync(path, bytes)
      const read = Effect.flatMap(Landing, (landing) => Effect.forEach(refs, (ref) => landing.read(run, ref)))
      const failure = yield* Effect.flip(Effect.provide(read, LandingFiles.layer({ root })))
      assert.strictEqual(failure.message, `the body at offset ${refs[0]?.offset} is not what was landed`)
    }),
  )

  it.effect("no id but a run's becomes a folder", () =>
    Effect.gen(function* () {
      const root = fresh()
      const landing = yield* Effect.provide(Landing, LandingFiles.layer({ root }))
      for (const id of ["../x", "a/b", "", ".", "a..b", "A", "a\0", "-"]) {
        assert.strictEqual((yield* Effect.flip(landing.list(anId(id))))._tag, "LandingDamaged")
      }
      const ref = { segment: "../../../etc/passwd", offset: 0, bytes: 1, sha256: "" }
      assert.strictEqual((yield* Effect.flip(landing.read(run, ref)))._tag, "LandingDamaged")
      assert.deepStrictEqual(readdirSync(root), [])
    }),
  )

  it.effect("removes half documents of a crash, and refuses one that is too long", () =>
    Effect.gen(function* () {
      const root = fresh()
      mkdirSync(join(root, "attachments"), { mode: 0o700 })
      writeFileSync(join(root, "attachments", ".tmp-1-1"), "half")
      const failure = yield* Effect.flip(
        Effect.flatMap(Landing, (landing) =>
          landing.landAttachment(Stream.make(bytesOf("four"), bytesOf("4"))),
        ).pipe(Effect.provide(LandingFiles.layer({ root, attachmentBytesMax: 4 }))),
      )
      assert.include(failure.message, "4 bytes at most")
      assert.deepStrictEqual(readdirSync(join(root, "attachments")), [])
    }),
  )

  it("a full disk fails what is landed then, loses nothing before, and serves again when there is room", (context) => {
    const probe = spawnSync("unshare", ["-rm", "true"])
    if (probe.status !== 0) return context.skip()
    const disk = mkdtempSync(join(base, "disk-"))
    const script = join(import.meta.dirname, "fullDisk.ts")
    const command = 'mount -t tmpfs -o size=256k tmpfs "$1" && exec "$2" "$3" "$1"'
    const answer = execFileSync("unshare", ["-rm", "sh", "-c", command, "sh", disk, process.execPath, script])
    assert.deepStrictEqual(JSON.parse(answer.toString()), {
      error: "ENOSPC: no space left on device, write",
      listedIsLanded: true,
      later: "landed",
    })
  }, 20_000)
})
