/**
 * The store of an output folder, with the record schemas and the pseudonyms that are in force for whoever
 * opens it: a job that is about to run, or a command that works on what is published.
 */
import { join } from "node:path"
import { Effect, Struct } from "effect"
import { durableFiles } from "../base/DurableFile.ts"
import type { Freshness, Gates, Job, SqlFile } from "../jobs/Job.ts"
import { listedSchemas, schemasOfTables, schemasWithKept } from "../records/SchemasInForce.ts"
import type {
  ListedSchemas,
  NamedSchemas,
  Readings,
  SchemaFolders,
  SchemasInForce,
} from "../records/SchemasInForce.ts"
import { newestDerived } from "./KeptVersions.ts"
import { keepKeyPlace, pseudonymsForJob, pseudonymsOf, standingIn } from "./PseudonymsOfJob.ts"
import type { PseudonymsAsked } from "./PseudonymsOfJob.ts"
import { fileStep, layoutOf, modesOf, readManifest } from "./Manifest.ts"
import { PublishFailed } from "./Publisher.ts"
import type { PseudonymKey } from "./Treatments.ts"
import type { Pseudonyms, Store } from "./Store.ts"

export interface PublisherOptions {
  /** The output folder. */
  readonly root: string
  /** Where the program's own record schemas are. */
  readonly schemasFolder: string
  /** Where the job's are, if it has any. */
  readonly ownSchemas?: string
  /** Which of the program's readings the job has; none if it is not given. */
  readonly readings?: Readings
  /** What a version must pass to become current. */
  readonly gates?: Gates
  /** How old its data may get. */
  readonly freshness?: Freshness
  /** The job's own views and tables. */
  readonly models?: ReadonlyArray<SqlFile>
  readonly share: "none" | "group"
  /** Which folders of Parquet a version has; as before if it is not given. */
  readonly parquet?: Store["parquet"]
  /** Earlier versions that stay restorable after a publication; 3 if it is not given. */
  readonly versionsKept?: number | undefined
  readonly toolVersion: string
  /** What the job asks for in place of the customers. */
  readonly pseudonyms?: PseudonymsAsked
}

/** A version costs the Parquet files that were replaced since: nothing, unless a run is published again. */
const versionsKeptDefault = 3

/** Where a job's own record schemas are, if it has any. */
export const ownSchemasOf = ({ schemas }: Job): Pick<PublisherOptions, "ownSchemas"> =>
  schemas === undefined ? {} : { ownSchemas: join(schemas, "records") }

export const foldersOf = ({ root, schemasFolder, ownSchemas }: PublisherOptions): SchemaFolders => ({
  package: schemasFolder,
  own: ownSchemas,
  kept: layoutOf(root).schemas,
})

const storeWith = Effect.fnUntraced(function* (
  options: PublisherOptions,
  schemas: SchemasInForce,
  pseudonyms: Pseudonyms | undefined,
) {
  const files = yield* durableFiles
  const { families } = schemas
  const store: Store = {
    layout: layoutOf(options.root),
    modes: modesOf(options.share),
    files,
    families,
    schemas,
    toolVersion: options.toolVersion,
    versionsKept: options.versionsKept ?? versionsKeptDefault,
    ...(pseudonyms === undefined ? {} : { pseudonyms }),
    ...(options.parquet === undefined ? {} : { parquet: options.parquet }),
  }
  return store
})

/** The store of an output folder as it is published, for verify and repair. */
export const openStore = Effect.fnUntraced(function* (
  options: Omit<PublisherOptions, "pseudonyms">,
  key?: PseudonymKey,
) {
  const layout = layoutOf(options.root)
  const manifest = yield* fileStep(() => readManifest(layout.manifest))
  const policy = (yield* standingIn(layout))?.pseudonyms
  if (policy !== undefined && key !== undefined && key.check !== policy.check)
    return yield* new PublishFailed({ message: "the published tables have the pseudonyms of another key" })
  const pseudonyms = policy === undefined ? undefined : { policy, ...(key === undefined ? {} : { key }) }
  return yield* storeWith(options, yield* schemasOfTables(foldersOf(options), manifest ?? {}), pseudonyms)
})

/** What is published, and the schemas in force beside those that the next version continues from. */
const schemasBeside = Effect.fnUntraced(function* (options: PublisherOptions, listed: ListedSchemas) {
  const layout = layoutOf(options.root)
  const standing = yield* standingIn(layout)
  const named = yield* fileStep((): NamedSchemas => {
    if (standing === undefined) return {}
    const { schemas } = newestDerived({ layout }, standing)
    return { ...(schemas && { schemas }), ...Struct.pick(standing, ["schema_files"]) }
  })
  return { standing, schemas: yield* schemasWithKept(listed, layout.schemas, named) }
})

/**
 * To derive all rows again with what a job asks for in place of the customers, and with its record schemas:
 * it may choose columns of a table that does not exist yet.
 */
export const openStoreAsked = Effect.fnUntraced(function* (options: PublisherOptions) {
  const listed = yield* listedSchemas(foldersOf(options), options.readings)
  const { schemas } = yield* schemasBeside(options, listed)
  return yield* storeWith(options, schemas, yield* pseudonymsOf(schemas.families, options.pseudonyms))
})

/**
 * The store of a job: with the schemas that its own folders have when it begins (`listed`), and those that
 * the output folder has when it publishes. A job beside it may have kept new ones, which must not be lost or
 * written over.
 */
export const openStoreOfJob = Effect.fnUntraced(function* (options: PublisherOptions, listed: ListedSchemas) {
  const { standing, schemas } = yield* schemasBeside(options, listed)
  const pseudonyms = yield* pseudonymsForJob(standing, schemas.families, options.pseudonyms)
  const store = yield* storeWith(options, schemas, pseudonyms)
  yield* keepKeyPlace(store)
  return store
})
