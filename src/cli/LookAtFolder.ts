/**
 * Everything that can be found out about an output folder without changing it: its marker, its ledger, what
 * is landed, what is published. `verify` lists it, `doctor` counts it.
 */
import { Effect, Layer } from "effect"
import type { Job } from "../jobs/Job.ts"
import { problemOf } from "../messages/Problem.ts"
import type { Problem } from "../messages/Problem.ts"
import { markerName, markerState } from "./OutputGuard.ts"
import { askedWith, publishedKey } from "./PseudonymKeys.ts"
import { toolVersion } from "./Version.ts"
import { Wiring } from "./Wiring.ts"

const markerProblems = (output: string): ReadonlyArray<Problem> =>
  markerState(output) === "damaged" ? [problemOf(markerName, "marker-damaged")] : []

const storeOptions = Effect.fnUntraced(function* (output: string, share: Job["share"]) {
  const { recordSchemas } = yield* Wiring
  // Only a run applies the job's `retain`.
  const versionsKept = Number.POSITIVE_INFINITY
  return { root: output, schemasFolder: recordSchemas, share, toolVersion, versionsKept }
})

export const openedStore = Effect.fnUntraced(function* (output: string, share: Job["share"] = "none") {
  const { openStore } = yield* Effect.promise(() => import("../tables/OpenStore.ts"))
  return yield* openStore(yield* storeOptions(output, share))
})

/** With the key of its pseudonyms, if it has any: rows can be derived, and those of a customer found. */
export const openedStoreWithKey = Effect.fnUntraced(function* (output: string, share: Job["share"]) {
  const { openStore } = yield* Effect.promise(() => import("../tables/OpenStore.ts"))
  return yield* openStore(yield* storeOptions(output, share), yield* publishedKey(output))
})

/** To derive all rows again with what this job asks for in place of the customers. */
export const openedStoreAsked = (job: Job) =>
  Effect.fnUntraced(function* (output: string, share: Job["share"]) {
    const { openStoreAsked, ownSchemasOf } = yield* Effect.promise(() => import("../tables/OpenStore.ts"))
    const { readingsOf } = yield* Effect.promise(() => import("./ReadingsOfJob.ts"))
    const pseudonyms = yield* askedWith(job)
    const options = yield* storeOptions(output, share)
    const schemas = { ...ownSchemasOf(job), readings: readingsOf(job) }
    return yield* openStoreAsked({ ...options, ...schemas, ...(pseudonyms && { pseudonyms }) })
  })

/** What the published tables have in place of the customers; undefined if they name them. */
export const policyOf = Effect.fnUntraced(function* (output: string) {
  const { layoutOf, readManifest } = yield* Effect.promise(() => import("../tables/Manifest.ts"))
  return yield* Effect.sync(() => readManifest(layoutOf(output).manifest)?.pseudonyms)
})

/** The record families of what is published, or those of the program if nothing is. */
export const familiesOf = Effect.fnUntraced(function* (output: string) {
  const wiring = yield* Wiring
  const { layoutOf, readManifest } = yield* Effect.promise(() => import("../tables/Manifest.ts"))
  const { schemasOfTables } = yield* Effect.promise(() => import("../records/SchemasInForce.ts"))
  const layout = layoutOf(output)
  const folders = { package: wiring.recordSchemas, own: undefined, kept: layout.schemas }
  const manifest = yield* Effect.sync(() => readManifest(layout.manifest))
  return (yield* schemasOfTables(folders, manifest ?? {})).families
})

/** All problems of a folder that has a ledger. */
export const problemsOf = Effect.fnUntraced(function* (output: string) {
  const wiring = yield* Wiring
  const { verify, verifyTables } = yield* Effect.promise(() => import("../tables/Verify.ts"))
  const { verifyBeside } = yield* Effect.promise(() => import("../tables/VerifyBeside.ts"))
  const { layoutOf } = yield* Effect.promise(() => import("../tables/Manifest.ts"))
  const services = Layer.mergeAll(
    wiring.landing(output, "read-only"),
    wiring.database,
    wiring.ledger(output, "read-only"),
  )
  const look = Effect.flatMap(openedStore(output), (store) =>
    verify(store).pipe(
      Effect.provide(services),
      // Its ledger cannot be read; what is published can still be checked.
      Effect.catchTag("LedgerFailed", ({ message }) =>
        Effect.provide(verifyTables(store, message), wiring.database),
      ),
    ),
  )
  return [...markerProblems(output), ...(yield* verifyBeside(layoutOf(output), look))]
})
