/**
 * What publishing does with files besides writing them: reading, listing what is below a folder, and
 * reporting what the machine refused.
 */
import { closeSync, existsSync, openSync, readdirSync, readSync, statSync } from "node:fs"
import { Effect } from "effect"
import { beginSha256 } from "../foundation/Sha256.ts"
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

/** Size and SHA-256 of a file that may be too large for memory. */
export const fingerprintOf = (path: string): Fingerprint => {
  const hash = beginSha256()
  const piece = Buffer.allocUnsafe(pieceBytes)
  const file = openSync(path, "r")
  try {
    let bytes = 0
    for (let read = readSync(file, piece); read > 0; read = readSync(file, piece)) {
      hash.update(piece.subarray(0, read))
      bytes += read
    }
    return { bytes, sha256: hash.digest("hex") }
  } finally {
    closeSync(file)
  }
}

/** One step with files; a refusal by the machine is reported without a stack trace. */
export const fileStep = <A>(step: () => A): Effect.Effect<A, PublishFailed> =>
  Effect.try({
    try: step,
    catch: (cause) => new PublishFailed({ message: cause instanceof Error ? cause.message : String(cause) }),
  })
