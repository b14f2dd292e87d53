/**
 * Documents on disk, named by nothing but their own SHA-256: streamed to a temporary name, hashed on the way,
 * synced, renamed. No name from the service ever becomes a path. What a crash left half-written is removed at
 * the next start.
 */
import { createHash } from "node:crypto"
import { closeSync, existsSync, openSync, readdirSync, renameSync, rmSync } from "node:fs"
import { join } from "node:path"
import { Effect, Stream } from "effect"
import type { LandedAttachment, LandingFailed } from "./Landing.ts"
import { landingFailed, makeFolder, syncData, syncFolder, writeAll } from "./SegmentWriter.ts"

const temporaryStart = ".tmp-"

const attempt = <A>(path: string, work: () => A): Effect.Effect<A, LandingFailed> =>
  Effect.try({ try: work, catch: (cause) => landingFailed(path, cause) })

/** Only the process that holds the output folder's lock may call this. */
export const cleanAttachments = (folder: string): Effect.Effect<void, LandingFailed> =>
  attempt(folder, () => {
    if (!existsSync(folder)) return
    for (const name of readdirSync(folder)) {
      if (name.startsWith(temporaryStart)) rmSync(join(folder, name), { force: true })
    }
  })

export const landAttachmentIn = (folder: string, bytesMax: number) => {
  let begun = 0
  const open = attempt(folder, () => {
    makeFolder(folder)
    begun += 1
    const path = join(folder, `${temporaryStart}${process.pid}-${begun}`)
    return { path, descriptor: openSync(path, "wx", 0o600) }
  })
  const close = (file: { readonly path: string; readonly descriptor: number }) =>
    Effect.sync(() => {
      closeSync(file.descriptor)
      rmSync(file.path, { force: true })
    })
  return <E>(chunks: Stream.Stream<Uint8Array, E>): Effect.Effect<LandedAttachment, LandingFailed | E> =>
    Effect.acquireUseRelease(
      open,
      ({ path, descriptor }) =>
        Effect.gen(function* () {
          const hash = createHash("sha256")
          const bytes = yield* Stream.runFoldEffect(
            chunks,
            () => 0,
            (total, chunk) =>
              attempt(path, () => {
                if (total + chunk.length > bytesMax)
                  throw new Error(`a document may have ${bytesMax} bytes at most`)
                hash.update(chunk)
                writeAll(descriptor, chunk)
                return total + chunk.length
              }),
          )
          yield* syncData(descriptor, path)
          const sha256 = hash.digest("hex")
          yield* attempt(path, () => {
            const final = join(folder, sha256)
            if (!existsSync(final)) renameSync(path, final)
            syncFolder(folder)
          })
          return { sha256, bytes, path: `attachments/${sha256}` }
        }),
      close,
    )
}
