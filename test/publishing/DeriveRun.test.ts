/** A receipt stands for every body of its execution, those that become no rows too. */
import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { Landing } from "../../src/landing/Landing.ts"
import { deriveRun } from "../../src/publishing/DeriveRun.ts"
import { loadPicture } from "../../src/publishing/RunPicture.ts"
import { append, begin, engine, folder, foundation, profileOf, resultsOf, stateOf, succeed } from "./night.ts"
import { anId } from "../harness/Id.ts"

const run_id = anId("nightly.2026-11-20")
const derive = Effect.gen(function* () {
  const picture = yield* loadPicture(run_id)
  return yield* deriveRun(picture, { families: [], tables: [], sink: () => Effect.void })
})

describe("a receipt", () => {
  it.effect.each(["state", "results"] as const)(
    "is not given if an older %s body that becomes no row has changed since it was landed",
    (kind) =>
      Effect.gen(function* () {
        const root = yield* folder
        yield* Effect.gen(function* () {
          const landing = yield* Landing
          yield* append([begin(run_id, "2026-11-20")])
          const older =
            kind === "state" ? stateOf("1", "c-1", { is_closed: false }) : resultsOf(profileOf("Old"))
          const ref = yield* landing.land(
            {
              kind,
              run_id,
              task_id: anId(`${run_id}/c-1/${engine}`),
              attempt: 1,
              execution_id: anId("e-1"),
              session_id: anId("s-1"),
              http_status: 200,
              received_at: 1,
            },
            new TextEncoder().encode(JSON.stringify(older)),
          )
          yield* succeed(run_id, "1", "c-1", resultsOf(profileOf("Ana")))
          assert.lengthOf((yield* derive).receipts, 1)
          const path = join(root, "landing", run_id, ref.segment)
          const bytes = readFileSync(path)
          bytes[ref.offset + 20]! ^= 1
          writeFileSync(path, bytes)
          const failed = yield* Effect.flip(derive)
          assert.include(failed.message, `the body at offset ${ref.offset} is not what was landed`)
        }).pipe(Effect.provide(foundation(root)))
      }).pipe(Effect.scoped),
  )
})
