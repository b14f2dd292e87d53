/** One segment under two names: which of the two is read, what is kept of the last one, and what is an error. */
import { mkdirSync, rmSync, statSync, utimesSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { pack } from "../../src/base/Zstd.ts"
import { SegmentBodies, contentOf } from "../../src/landing/SegmentFile.ts"
import { freshFolders } from "../harness/Folder.ts"

const fresh = freshFolders()
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
