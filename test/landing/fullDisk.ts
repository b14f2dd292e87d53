/** Run on a tiny disk by the test of the full disk: lands until it fails, makes room, lands again; one line of JSON. */
import { rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { Console, Effect } from "effect"
import { Landing, type BodyMeta } from "../../src/landing/Landing.ts"
import { LandingFiles } from "../../src/landing/LandingFiles.ts"
import { anId } from "../harness/Id.ts"

const metaOf = (task_id: string): BodyMeta => ({
  kind: "state",
  run_id: anId("nightly.2026-11-21"),
  task_id: anId(task_id),
  http_status: 200,
  received_at: 0,
})

const root = process.argv[2] ?? ""
const ballast = join(root, "ballast")
writeFileSync(ballast, Buffer.alloc(100_000))

const program = Effect.gen(function* () {
  const landing = yield* Landing
  const refs: Array<string> = []
  let error = ""
  while (error === "") {
    const exit = yield* Effect.result(landing.land(metaOf(`t${refs.length}`), Buffer.alloc(7_000, 1)))
    if (exit._tag === "Success") refs.push(`${exit.success.segment}@${exit.success.offset}`)
    else error = exit.failure.message
  }
  rmSync(ballast)
  const later = yield* landing.land(metaOf("later"), Buffer.alloc(7_000, 2))
  const listed = (yield* landing.list(anId("nightly.2026-11-21"))).map(
    ({ ref }) => `${ref.segment}@${ref.offset}`,
  )
  const landed = [...refs, `${later.segment}@${later.offset}`]
  const listedIsLanded = JSON.stringify(listed) === JSON.stringify(landed)
  yield* Console.log(JSON.stringify({ error, listedIsLanded, later: "landed" }))
})

await Effect.runPromise(Effect.provide(program, LandingFiles.layer({ root })))
