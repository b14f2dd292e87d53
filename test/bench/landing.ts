/**
 * How many bodies a second are landed, each of them written, hashed and synced before its caller goes on, with as many
 * callers at once as a night has answers. The peer writes and syncs each body by itself.
 */
import { closeSync, fdatasyncSync, mkdtempSync, openSync, rmSync, writeSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect } from "effect"
import { Landing, type BodyMeta } from "../../src/landing/Landing.ts"
import { LandingFiles } from "../../src/landing/LandingFiles.ts"
import type { Benchmark } from "./Figure.ts"
import { state } from "./loopback.ts"
import { anId } from "../harness/Id.ts"

const atOnce = 64
const body = Buffer.from(state)

const meta = (n: number): BodyMeta => ({
  kind: "state",
  run_id: anId("night.2026-11-21"),
  task_id: anId(`night.2026-11-21/c-${n}/sandbox-bank:website`),
  attempt: 1,
  execution_id: anId(`65f0c0ffee65f0c0ffee${n}`),
  customer_id: anId(`c-${n}`),
  engine_reference: anId("sandbox-bank:website"),
  http_status: 200,
  received_at: 1_795_000_000_000 + n,
})

const perSecond = (count: number, startedAt: number): number =>
  (count * 1_000) / (performance.now() - startedAt)

const landAll = (root: string, count: number) =>
  Effect.gen(function* () {
    const { land } = yield* Landing
    const bodies = Array.from({ length: count }, (_, n) => n)
    const startedAt = performance.now()
    yield* Effect.forEach(bodies, (n) => land(meta(n), body), { concurrency: atOnce, discard: true })
    return perSecond(count, startedAt)
  }).pipe(Effect.provide(LandingFiles.layer({ root })), Effect.runPromise)

const writeEach = (root: string, count: number): number => {
  const descriptor = openSync(join(root, "each"), "w")
  const startedAt = performance.now()
  for (let n = 0; n < count; n++) {
    writeSync(descriptor, body)
    fdatasyncSync(descriptor)
  }
  closeSync(descriptor)
  return perSecond(count, startedAt)
}

export const landing: Benchmark = {
  name: "landing",
  about: "bodies of 4 KB landed a second, each durable before its caller goes on",
  run: async ({ sample }) => {
    const root = mkdtempSync(join(tmpdir(), "landing-"))
    try {
      const value = await landAll(root, sample ? 1_000 : 50_000)
      const peer = { name: "one sync for each", value: writeEach(root, sample ? 200 : 5_000) }
      return { figures: [{ name: "landed", value, unit: "bodies/s", peer }], complaints: [] }
    } finally {
      rmSync(root, { recursive: true, force: true })
    }
  },
}
