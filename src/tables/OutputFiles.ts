/**
 * What publishing does with files besides writing them: reading, listing what is below a folder, and
 * reporting what the machine refused.
 */
import { closeSync, existsSync, openSync, readdirSync, readSync, statSync } from "node:fs"
import { Effect } from "effect"
import { beginSha256 } from "../base/Hashes.ts"
import { PublishFailed } from "./Publisher.ts"

/** Files below a folder, relative to it; none if there is no folder. */
export const filesBelow = (folder: string): ReadonlyArray<string> =>
  existsSync(folder)
    ? readdirSync(folder, { recursive: true, withFileTypes: true })
        .filter((entry) => !entry.isDirectory())
        .map((entry) => `${entry.parentPath}/${entry.name}`.slice(folder.length + 1))
        .toSorted()
    : []

const pieceBytes = 4 * 1024 * 1024

interface Fingerprint {
  readonly bytes: number
  readonly sha256: string
}

/** Whether a file is, to the byte, the one of which this was said. */
export const isThatFile = (path: string, { bytes, sha256 }: Fingerprint): boolean =>
  statSync(path).size === bytes && fingerprintOf(path).sha256 === sha256

/** Reads a file that may be too large for memory, piece by piece. */
function* hashing(path: string): Generator<undefined, Fingerprint> {
  const hash = beginSha256()
  const piece = Buffer.allocUnsafe(pieceBytes)
  const file = openSync(path, "r")
  try {
    let bytes = 0
    for (let read = readSync(file, piece); read > 0; read = readSync(file, piece)) {
      hash.update(piece.subarray(0, read))
      bytes += read
      yield
    }
    return { bytes, sha256: hash.digest("hex") }
  } finally {
    closeSync(file)
  }
}

/** Size and SHA-256 of a file. */
export const fingerprintOf = (path: string): Fingerprint => {
  const pieces = hashing(path)
  for (;;) {
    const { done, value } = pieces.next()
    if (done === true) return value
  }
}

/** One step with files; a refusal by the machine is reported without a stack trace. */
export const fileStep = <A>(step: () => A): Effect.Effect<A, PublishFailed> =>
  Effect.try({
    try: step,
    catch: (cause) => new PublishFailed({ message: cause instanceof Error ? cause.message : String(cause) }),
  })

/** The same, while others have their turn after each piece: a run may go on meanwhile. */
export const fingerprintInTurns = (path: string) =>
  Effect.acquireUseRelease(
    Effect.sync(() => hashing(path)),
    (pieces) =>
      Effect.gen(function* () {
        for (;;) {
          const { done, value } = yield* fileStep(() => pieces.next())
          if (done === true) return value
          yield* Effect.yieldNow
        }
      }),
    (pieces) => Effect.sync(() => void pieces.return({ bytes: 0, sha256: "" })),
  )
