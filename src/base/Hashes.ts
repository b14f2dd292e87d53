/**
 * SHA-256, which identifies bodies, files, facts and keys: of data that is complete, or of data that arrives
 * in pieces, or of a file.
 */
import { createHash, hash } from "node:crypto"
import { closeSync, fstatSync, openSync, readSync } from "node:fs"
import { Effect } from "effect"
import { wordsOf } from "./Text.ts"

export const beginSha256 = () => createHash("sha256")

/** Its 32 bytes. */
export const sha256 = (content: Uint8Array | string): Buffer => hash("sha256", content, "buffer")

export const sha256Hex = (content: Uint8Array | string): string => sha256(content).toString("hex")

const pieceBytes = 1024 * 1024

/** Size and SHA-256 of a file that may be too large for memory; a run may go on meanwhile. */
export const fingerprintOf = Effect.fnUntraced(function* (path: string) {
  const step = <A>(call: () => A) => Effect.try({ try: call, catch: wordsOf })
  const file = yield* Effect.acquireRelease(
    step(() => openSync(path, "r")),
    (opened) => Effect.sync(() => closeSync(opened)),
  )
  const all = beginSha256()
  const { size } = yield* step(() => fstatSync(file))
  // Memory outside of the heap makes V8 collect everything: thirty small files must not count as 30 MB.
  const piece = Buffer.allocUnsafe(Math.min(size + 1, pieceBytes))
  for (let bytes = 0; ;) {
    const read = yield* step(() => readSync(file, piece))
    if (read === 0) return { bytes, sha256: all.digest("hex") }
    all.update(piece.subarray(0, read))
    bytes += read
    yield* Effect.yieldNow
  }
}, Effect.scoped)
