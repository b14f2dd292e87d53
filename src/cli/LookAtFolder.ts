/**
 * Everything that can be found out about an output folder without changing it: its marker, its ledger, what
 * is landed, what is published. `verify` lists it, `doctor` counts it.
 */
import { Effect, Layer } from "effect"
import type { Job } from "../jobs/Job.ts"
import { problemOf } from "../messages/Problem.ts"
import type { Problem } from "../messages/Problem.ts"
import { markerName, markerState } from "./OutputGuard.ts"
import { toolVersion } from "./Version.ts"
import { Wiring } from "./Wiring.ts"

const markerProblems = (output: string): ReadonlyArray<Problem> =>
  markerState(output) === "damaged" ? [problemOf(markerName, "marker-damaged")] : []

export const openedStore = Effect.fnUntraced(function* (output: string, share: Job["share"] = "none") {
  const { recordSchemas } = yield* Wiring
  const { openStore } = yield* Effect.promise(() => import("../publishing/PublisherDuckDb.ts"))
  // Only a run applies the job's `retain`.
  const versionsKept = Number.POSITIVE_INFINITY
  return yield* openStore({ root: output, schemasFolder: recordSchemas, share, toolVersion, versionsKept })
})

/** The record families of what is published, or those of the program if nothing is. */
export const familiesOf = Effect.fnUntraced(function* (output: string) {
  const wiring = yield* Wiring
  const { layoutOf, readManifest } = yield* Effect.promise(() => import("../publishing/Manifest.ts"))
  const { schemasOfTables } = yield* Effect.promise(() => import("../records/SchemasInForce.ts"))
  const layout = layoutOf(output)
  const folders = { package: wiring.recordSchemas, own: undefined, kept: layout.schemas }
  const manifest = yield* Effect.sync(() => readManifest(layout.manifest))
  return (yield* schemasOfTables(folders, manifest?.schemas)).families
})

/** All problems of a folder that has a ledger. */
export const problemsOf = Effect.fnUntraced(function* (output: string) {
  const wiring = yield* Wiring
  const { verify, verifyTables } = yield* Effect.promise(() => import("../publishing/Verify.ts"))
  const store = yield* openedStore(output)
  const services = Layer.mergeAll(
    wiring.landing(output, "read-only"),
    wiring.database,
    wiring.ledger(output, "read-only"),
  )
  const looked = verify(store).pipe(
    Effect.provide(services),
    // Its ledger cannot be read; what is published can still be checked.
    Effect.catchTag("LedgerFailed", ({ message }) =>
      Effect.provide(verifyTables(store, message), wiring.database),
    ),
  )
  return [...markerProblems(output), ...(yield* looked)]
})
