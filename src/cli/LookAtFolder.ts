/**
 * Everything that can be found out about an output folder without changing it: its marker, its ledger, what
 * is landed, what is published. `verify` lists it, `doctor` counts it.
 */
import { existsSync } from "node:fs"
import { Effect, Layer, Option } from "effect"
import { suggestion } from "../base/Text.ts"
import { outputFolder } from "./CommonFlags.ts"
import { refuse, toolVersion } from "./Failures.ts"
import { lostLedger, markerName, markerState, refusalOfFile } from "./RunFolder.ts"
import { Wiring } from "./Wiring.ts"
import type { Job } from "../jobs/Job.ts"
import type { Ledger } from "../ledger/Ledger.ts"
import { nightAround } from "../ledger/WholeNight.ts"
import { problemOf, withId } from "../messages/Catalogue.ts"
import type { Problem } from "../messages/Catalogue.ts"
import { RunId } from "../service/Ids.ts"

// The key of the pseudonyms that are published in an output folder, for commands that derive rows, look for a
// customer's, or say who is who. A job that is about to run brings its own.

/** Undefined if the published tables have no pseudonyms. */
export const publishedKey = Effect.fnUntraced(function* (output: string) {
  const { layoutOf } = yield* Effect.promise(() => import("../tables/Manifest.ts"))
  const { standingIn } = yield* Effect.promise(() => import("../tables/PseudonymsOfJob.ts"))
  const { keyPlace } = yield* Effect.promise(() => import("../tables/PseudonymsOfJob.ts"))
  const layout = layoutOf(output)
  const policy = (yield* standingIn(layout))?.pseudonyms
  if (policy === undefined) return undefined
  const reference = yield* keyPlace(layout.pseudonyms, policy.check)
  if (reference === undefined) return yield* refuse("pseudonyms-key-unknown")
  const { columns } = policy
  return (yield* askedWith({ pseudonyms: { key: reference, columns } }))?.key
})

/** What a job asks for in place of the customers, with its key. */
const askedWith = Effect.fnUntraced(function* (job: {
  readonly pseudonyms?: Pick<NonNullable<Job["pseudonyms"]>, "key" | "columns">
}) {
  const wiring = yield* Wiring
  const { askedBy } = yield* Effect.promise(() => import("../tables/PseudonymsOfJob.ts"))
  return yield* Effect.provide(askedBy(job), wiring.secrets)
})

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

/** For commands that mend or copy: each problem with what to do about it. */
export const problemLines = (problems: ReadonlyArray<Problem>): ReadonlyArray<string> =>
  problems.map(({ id, where, problem, next }) => `${where}: ${withId(id, problem)}. ${next}`)

// The ledger of the output folder for commands that only read: whether there is one, which run is meant,
// and its state.

/** The service; its room is loaded when it is first needed. */
export const openedLedger = Effect.flatMap(
  Effect.promise(() => import("../ledger/Ledger.ts")),
  (room) => room.Ledger,
)

/**
 * A file is no output folder, and an empty ledger in place of a lost one would claim that nothing ever ran:
 * both are refused.
 */
export const refuseLostLedger = Effect.fnUntraced(function* (output: string) {
  const file = refusalOfFile(output)
  if (file !== undefined) return yield* file
  const found = lostLedger(output)
  if (found !== undefined) return yield* refuse("ledger-missing", { output, found })
})

export const hasLedger = Effect.flatMap(outputFolder, (output) =>
  Effect.as(refuseLostLedger(output), existsSync(`${output}/ledger.sqlite`)),
)

/** Exit code 2 if nothing ever ran, or if the ledger of what ran is lost. */
export const requireLedger = Effect.fnUntraced(function* (output: string) {
  yield* refuseLostLedger(output)
  if (existsSync(`${output}/ledger.sqlite`)) return
  return yield* refuse("nothing-ran", { output })
})

/** Runs a read of the ledger; exit code 2 if nothing ever ran. */
export const withLedger = Effect.fnUntraced(function* <A, E, R>(
  look: Effect.Effect<A, E, R | Ledger>,
  access: "read-only" | "read-write" = "read-only",
) {
  const output = yield* outputFolder
  const wiring = yield* Wiring
  yield* requireLedger(output)
  return yield* look.pipe(Effect.provide(wiring.ledger(output, access)))
})

/** Where each job of the output folder was last started from. */
export const knownJobPaths = Effect.gen(function* () {
  const runs = yield* withLedger(Effect.flatMap(openedLedger, (ledger) => ledger.runs))
  return [...new Map(runs.map(({ fact }) => [fact.job, fact.job_path])).values()]
})

/** The state of the named run, or else of the newest one. */
export const findRun = Effect.fnUntraced(function* (named: Option.Option<string>) {
  const ledger = yield* openedLedger
  const ids = (yield* ledger.runs).map(({ fact }) => fact.run_id)
  const run_id = Option.match(named, { onNone: () => ids.at(-1), onSome: RunId.make })
  if (run_id === undefined) return yield* refuse("nothing-ran", { output: yield* outputFolder })
  if (!ids.includes(run_id)) return yield* refuse("run-unknown", { suggestion: suggestion(run_id, ids) })
  const state = yield* ledger.state(run_id)
  return state ?? (yield* refuse("run-incomplete", { run_id }))
})

/** The same run, with all runs of its night. */
export const findNight = Effect.fnUntraced(function* (named: Option.Option<string>) {
  const state = yield* findRun(named)
  return { state, night: yield* nightAround(yield* openedLedger, state) }
})
