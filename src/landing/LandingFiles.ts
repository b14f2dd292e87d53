/**
 * Landing on disk: `landing/<run_id>/segment-000001.njl` and `attachments/<sha256>`. Bodies that come at the
 * same time are written together and share one sync. `Segments.ts` says what a segment looks like, and what a
 * crash may leave; `SegmentFile.ts` how one is compressed later.
 */
import { existsSync, readdirSync } from "node:fs"
import { join } from "node:path"
import { Deferred, Effect, Exit, Layer, Queue, Stream } from "effect"
import { wordsOf } from "../base/Text.ts"
import { durableFiles, quietly, type AppendedFile, type DurableFiles } from "../base/DurableFile.ts"
import { beginSha256, fingerprintOf, sha256Hex } from "../base/Hashes.ts"
import { SegmentWriter, headerBytesMax, landingFailed, scanSegment, type PendingFrame } from "./Segments.ts"
import {
  Landing,
  LandingDamaged,
  LandingFailed,
  type LandedAttachment,
  type LandedBody,
  type LandingDamage,
} from "./Landing.ts"
import { SegmentBodies, segmentNames, segmentPattern } from "./SegmentFile.ts"
import type { LandedRef } from "../ledger/Fact.ts"
import { isRunId } from "../ledger/RunState.ts"
import type { RunId } from "../service/Ids.ts"

// Documents, named only by their own SHA-256: no name from the service ever becomes a path. What a crash left
// half-written is removed at the next start.

const temporaryStart = ".tmp-"

const attempt = <A>(path: string, work: () => A): Effect.Effect<A, LandingFailed> =>
  Effect.try({ try: work, catch: (cause) => landingFailed(path, cause) })

/** Only the process that holds the output folder's lock may call this. */
const cleanAttachments = (files: DurableFiles, folder: string): Effect.Effect<void, LandingFailed> =>
  attempt(folder, () => {
    if (!existsSync(folder)) return
    for (const name of readdirSync(folder)) {
      if (name.startsWith(temporaryStart)) files.remove(join(folder, name))
    }
  })

/** Whether a document is what it was when it was written: the service may be asked to delete the original. */
const isWhole = (folder: string, sha256: string): Effect.Effect<boolean> =>
  fingerprintOf(join(folder, sha256)).pipe(
    Effect.map((found) => found.sha256 === sha256),
    Effect.orElseSucceed(() => false),
  )

const landAttachmentIn = (files: DurableFiles, folder: string, bytesMax: number) => {
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
          const isHere = yield* isWhole(folder, sha256)
          yield* attempt(file.path, () => {
            if (!isHere) files.rename(file.path, join(folder, sha256))
            files.syncFolder(folder)
          })
          return { sha256, bytes, path: `attachments/${sha256}` }
        }),
      close,
    )
}

export interface LandingFilesOptions {
  /** The output folder. */
  readonly root: string
  /** Whoever only reads leaves half-written documents alone: a run may be writing them. */
  readonly access?: "read-only" | "read-write"
  /** A segment that has reached this size is followed by a new one. Default 64 MiB. */
  readonly segmentBytesMax?: number
  /** A longer document is refused. Default 1 GiB. */
  readonly attachmentBytesMax?: number
}

const segmentBytesDefault = 64 * 1024 * 1024
const attachmentBytesDefault = 1024 * 1024 * 1024
/** Bodies waiting to be written; landing one more waits for room. */
const waitingMax = 1_024
/** Bodies written and synced together. */
const batchMax = 1_024

interface Waiting {
  readonly frame: PendingFrame
  readonly done: Deferred.Deferred<LandedRef, LandingFailed>
}

export const LandingFiles = {
  layer: (options: LandingFilesOptions): Layer.Layer<Landing, LandingFailed> =>
    Layer.effect(
      Landing,
      Effect.gen(function* () {
        const landing = join(options.root, "landing")
        const attachments = join(options.root, "attachments")
        const files = yield* durableFiles
        if (options.access !== "read-only") yield* cleanAttachments(files, attachments)
        const bodies = new SegmentBodies()
        const land = yield* groupCommit(landing, options.segmentBytesMax ?? segmentBytesDefault)
        return Landing.of({
          land,
          list: Effect.fn("Landing.list")((run_id: RunId) => ofSegments(landing, run_id, bodiesIn)),
          damage: (run_id) => ofSegments(landing, run_id, damageIn),
          read: Effect.fn("Landing.read")((run_id: RunId, ref: LandedRef) =>
            readBody(bodies, landing, run_id, ref),
          ),
          landAttachment: landAttachmentIn(
            files,
            attachments,
            options.attachmentBytesMax ?? attachmentBytesDefault,
          ),
          hasAttachment: (sha256 = "") => isWhole(attachments, sha256),
        })
      }),
    ),
}

const groupCommit = Effect.fnUntraced(function* (landing: string, segmentBytesMax: number) {
  const files = yield* durableFiles
  const writers = new Map<string, SegmentWriter>()
  const queue = yield* Queue.bounded<Waiting>(waitingMax)
  const commit = Effect.fnUntraced(function* (run_id: RunId, batch: ReadonlyArray<Waiting>) {
    const writer = writers.get(run_id) ?? new SegmentWriter(files, join(landing, run_id), segmentBytesMax)
    writers.set(run_id, writer)
    const exit = yield* Effect.exit(writer.append(batch.map(({ frame }) => frame)))
    batch.forEach(({ done }, index) => {
      const ref = exit._tag === "Success" ? exit.value[index] : undefined
      // One ref per frame: a missing one would be a defect of the writer.
      const answer = ref === undefined ? Exit.die("a frame without a position") : Exit.succeed(ref)
      Deferred.doneUnsafe(done, exit._tag === "Failure" ? Exit.failCause(exit.cause) : answer)
    })
  })
  const commitNext = Effect.flatMap(Queue.takeBetween(queue, 1, batchMax), (batch) =>
    Effect.forEach(
      Map.groupBy(batch, ({ frame }) => frame.meta.run_id),
      ([run_id, one]) => commit(run_id, one),
      { discard: true },
    ).pipe(Effect.uninterruptible),
  )
  yield* Effect.addFinalizer(() => Effect.sync(() => writers.forEach((writer) => writer.close())))
  yield* Effect.forkScoped(Effect.forever(commitNext))
  return Effect.fnUntraced(function* (meta: PendingFrame["meta"], bytes: Uint8Array) {
    const refusal = refusalOf(meta)
    if (refusal !== undefined) return yield* new LandingFailed({ path: landing, message: refusal })
    const done = Deferred.makeUnsafe<LandedRef, LandingFailed>()
    yield* Queue.offer(queue, { frame: { meta, bytes }, done })
    return yield* Deferred.await(done)
  })
})

/** A header that could not be read back must not be written; the other half is for the other fields. */
const refusalOf = (meta: PendingFrame["meta"]): string | undefined => {
  if (!isRunId(meta.run_id)) return "run_id may only hold a-z, 0-9, dot and hyphen"
  return Buffer.byteLength(JSON.stringify(meta)) > headerBytesMax / 2
    ? "the description of the body is too long"
    : undefined
}

const damaged = (path: string, message: string) => Effect.fail(new LandingDamaged({ path, message }))

/** What cannot be read is damaged. */
const reading = <A>(path: string, work: () => A): Effect.Effect<A, LandingDamaged> =>
  Effect.try({
    try: work,
    catch: (cause) => new LandingDamaged({ path, message: wordsOf(cause) }),
  })

const bodiesIn = (folder: string, segment: string): ReadonlyArray<LandedBody> =>
  scanSegment(join(folder, segment)).frames.flatMap(({ header: { bytes, sha256, meta }, offset }) =>
    meta.kind === "forgotten" ? [] : [{ ref: { segment, offset, bytes, sha256 }, meta }],
  )

const damageIn = (folder: string, segment: string): ReadonlyArray<LandingDamage> =>
  scanSegment(join(folder, segment)).damaged.map((bytes) => ({ segment, ...bytes }))

/** What `read` finds in each segment of a run. */
const ofSegments = Effect.fnUntraced(function* <A>(
  landing: string,
  run_id: RunId,
  read: (folder: string, segment: string) => ReadonlyArray<A>,
) {
  if (!isRunId(run_id)) return yield* damaged(landing, "not a run's id")
  const folder = join(landing, run_id)
  const names = yield* reading(folder, () => segmentNames(folder))
  const all = yield* Effect.forEach(names, (name) => reading(join(folder, name), () => read(folder, name)))
  return all.flat()
})

const readBody = Effect.fnUntraced(function* (
  bodies: SegmentBodies,
  landing: string,
  run_id: RunId,
  { segment, offset, bytes: length, sha256 }: LandedRef,
) {
  if (!isRunId(run_id) || !segmentPattern.test(segment))
    return yield* damaged(landing, "not the position of a landed body")
  const path = join(landing, run_id, segment)
  const bytes = yield* reading(path, () => bodies.read(path, offset, length))
  if (bytes === undefined) return yield* damaged(path, `the body at offset ${offset} is cut`)
  if (sha256Hex(bytes) === sha256) return bytes
  return yield* damaged(path, `the body at offset ${offset} is not what was landed`)
})
