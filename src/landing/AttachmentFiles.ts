/**
 * Documents on disk, named only by their own SHA-256: streamed to a temporary name, hashed on the way,
 * synced, renamed. No name from the service ever becomes a path. What a crash left half-written is removed
 * at the next start.
 */
import { existsSync, readdirSync } from "node:fs"
import { join } from "node:path"
import { Effect, Stream } from "effect"
import { beginSha256 } from "../base/Sha256.ts"
import type { AppendedFile, DurableFiles } from "../base/DurableFile.ts"
import { quietly } from "../base/FileCalls.ts"
import type { LandedAttachment, LandingFailed } from "./Landing.ts"
import { landingFailed } from "./SegmentWriter.ts"

const temporaryStart = ".tmp-"

const attempt = <A>(path: string, work: () => A): Effect.Effect<A, LandingFailed> =>
  Effect.try({ try: work, catch: (cause) => landingFailed(path, cause) })

/** Only the process that holds the output folder's lock may call this. */
export const cleanAttachments = (files: DurableFiles, folder: string): Effect.Effect<void, LandingFailed> =>
  attempt(folder, () => {
    if (!existsSync(folder)) return
    for (const name of readdirSync(folder)) {
      if (name.startsWith(temporaryStart)) files.remove(join(folder, name))
    }
  })

export const landAttachmentIn = (files: DurableFiles, folder: string, bytesMax: number) => {
  let begun = 0
  const open = attempt(folder, () => {
    files.makeFolder(folder, 0o700)
    begun += 1
    return files.append(join(folder, `${temporaryStart}${process.pid}-${begun}`), "wx", 0o600)
  })
  const close = (file: AppendedFile) =>
    Effect.sync(() => {
      quietly(() => file.close())
      quietly(() => files.remove(file.path))
    })
  return <E>(chunks: Stream.Stream<Uint8Array, E>): Effect.Effect<LandedAttachment, LandingFailed | E> =>
    Effect.acquireUseRelease(
      open,
      (file) =>
        Effect.gen(function* () {
          const hash = beginSha256()
          const bytes = yield* Stream.runFoldEffect(
            chunks,
            () => 0,
            (total, chunk) =>
              attempt(file.path, () => {
                if (total + chunk.length > bytesMax)
                  throw new Error(`a document may have ${bytesMax} bytes at most`)
                hash.update(chunk)
                file.append(chunk)
                return total + chunk.length
              }),
          )
          yield* Effect.mapError(file.sync, (cause) => landingFailed(file.path, cause))
          const sha256 = hash.digest("hex")
          yield* attempt(file.path, () => {
            const final = join(folder, sha256)
            if (!existsSync(final)) files.rename(file.path, final)
            files.syncFolder(folder)
          })
          return { sha256, bytes, path: `attachments/${sha256}` }
        }),
      close,
    )
}
