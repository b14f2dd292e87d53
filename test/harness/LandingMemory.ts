/**
 * Landing for simulated runs: the same port, without Promises or timers other than the Clock's. The store
 * survives the layer, as a disk survives a process; `crash` discards what was not synced, which is exactly
 * what was never reported as landed.
 */
import { Effect, Layer, Stream } from "effect"
import { sha256Hex } from "../../src/base/Hashes.ts"
import type { RunId } from "../../src/service/Ids.ts"
import type { LandedRef } from "../../src/ledger/Fact.ts"
import { Landing, LandingDamaged, type BodyMeta, type LandedAttachment } from "../../src/landing/Landing.ts"

interface Stored {
  readonly meta: BodyMeta
  readonly ref: LandedRef
  bytes: Uint8Array
  synced: boolean
}

export interface LandingStore {
  readonly bodies: Map<string, Array<Stored>>
  readonly attachments: Map<string, Uint8Array>
  /** What a power failure does: everything not yet synced is gone. */
  readonly crash: () => void
}

const makeStore = (): LandingStore => {
  const bodies = new Map<string, Array<Stored>>()
  return {
    bodies,
    attachments: new Map(),
    crash: () => {
      for (const [run_id, stored] of bodies) {
        bodies.set(
          run_id,
          stored.filter(({ synced }) => synced),
        )
      }
    },
  }
}

/** How long a sync takes, in virtual time. */
const syncing = Effect.sleep("5 millis")
const segment = "segment-000001.njl"

const landIn = (store: LandingStore) =>
  Effect.fnUntraced(function* (meta: BodyMeta, bytes: Uint8Array) {
    const run = store.bodies.get(meta.run_id) ?? []
    store.bodies.set(meta.run_id, run)
    const last = run.at(-1)
    const offset = last === undefined ? 0 : last.ref.offset + last.ref.bytes + 1
    const ref = { segment, offset, bytes: bytes.length, sha256: sha256Hex(bytes) }
    const stored: Stored = { meta, ref, bytes: bytes.slice(), synced: false }
    run.push(stored)
    yield* syncing
    stored.synced = true
    return ref
  })

const readFrom = (store: LandingStore, run_id: RunId, ref: LandedRef) => {
  const found = store.bodies.get(run_id)?.find((stored) => stored.ref.offset === ref.offset)
  return found !== undefined && sha256Hex(found.bytes) === ref.sha256 && found.ref.segment === ref.segment
    ? Effect.succeed(found.bytes.slice())
    : Effect.fail(new LandingDamaged({ path: run_id, message: `no such body at offset ${ref.offset}` }))
}

const landAttachmentIn =
  (store: LandingStore) =>
  <E>(chunks: Stream.Stream<Uint8Array, E>): Effect.Effect<LandedAttachment, E> =>
    Effect.gen(function* () {
      const pieces = yield* Stream.runCollect(chunks)
      const bytes = Buffer.concat(pieces)
      const sha256 = sha256Hex(bytes)
      yield* syncing
      store.attachments.set(sha256, bytes)
      return { sha256, bytes: bytes.length, path: `attachments/${sha256}` }
    })

export const LandingMemory = {
  makeStore,
  layer: (store: LandingStore): Layer.Layer<Landing> =>
    Layer.sync(Landing, () =>
      Landing.of({
        land: landIn(store),
        list: (run_id) =>
          Effect.sync(() => (store.bodies.get(run_id) ?? []).map(({ ref, meta }) => ({ ref, meta }))),
        damage: () => Effect.succeed([]),
        read: (run_id, ref) => Effect.suspend(() => readFrom(store, run_id, ref)),
        landAttachment: landAttachmentIn(store),
        hasAttachment: (sha256 = "") =>
          Effect.sync(() => sha256Hex(store.attachments.get(sha256) ?? "gone") === sha256),
      }),
    ),
}
