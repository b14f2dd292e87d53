/**
 * The store of an output folder, with the record schemas and the pseudonyms that are in force for whoever
 * opens it: a job that is about to run, or a command that works on what is published.
 */
import { join, resolve } from "node:path"
import { Effect, Struct, Schema } from "effect"
import { durableFiles, modesOf, type Share } from "../base/DurableFile.ts"
import type { Freshness, Gates, Job, SqlFile } from "../jobs/Job.ts"
import { listedSchemas, schemasOfTables, schemasWithKept } from "../records/SchemasInForce.ts"
import type { ListedSchemas, NamedSchemas, Readings, SchemaFolders } from "../records/SchemasInForce.ts"
import type { SchemasInForce } from "../records/SchemasInForce.ts"
import { newestDerived } from "./KeptVersions.ts"
import { fileStep, layoutOf, readManifest } from "./Manifest.ts"
import { PublishFailed } from "./Publisher.ts"
import type { PseudonymKey, PseudonymPolicy } from "./Treatments.ts"
import type { Pseudonyms, Store, Layout, Manifest } from "./Manifest.ts"
import { existsSync, readFileSync } from "node:fs"
import { describeReference, type SecretReference } from "../jobs/Scalars.ts"
import { resolveReference } from "../jobs/Secrets.ts"
import type { RecordFamily } from "../records/RecordSchema.ts"
import { columnTroubles, inOrder, isSamePolicy, readPseudonymKey } from "./Treatments.ts"

// Whether a job's rows may stand beside those that are published: all rows of a folder name the customers, or
// all of them have the same pseudonyms. Asked before a run starts anything, and before each publication.

/** The job's pseudonyms cannot be made here; nothing was started. */
export class PseudonymsRefused extends Schema.TaggedError<PseudonymsRefused>()("PseudonymsRefused", {
  message: Schema.String,
}) {}

/** What a job asks for, with its key. */
export const askedBy = Effect.fnUntraced(function* ({
  pseudonyms,
}: {
  readonly pseudonyms?: Pick<NonNullable<Job["pseudonyms"]>, "key" | "columns">
}) {
  if (pseudonyms === undefined) return undefined
  const { key: reference, columns } = pseudonyms
  const key = readPseudonymKey(yield* resolveReference(reference))
  if (key !== undefined) {
    const policy: PseudonymPolicy = { check: key.check, columns: inOrder(columns) }
    return { policy, key, reference } satisfies Pseudonyms
  }
  return yield* new PseudonymsRefused({
    message:
      `${describeReference(reference)}: the key of the pseudonyms is not 32 random bytes in hexadecimal or ` +
      "base64; `openssl rand -base64 32` generates one",
  })
})

/** Why the two may not stand in one version; undefined if they may. */
const disagreement = (
  standing: PseudonymPolicy | undefined,
  asked: PseudonymPolicy | undefined,
): string | undefined => {
  if (isSamePolicy(standing, asked)) return undefined
  if (standing === undefined)
    return "the published tables name the customers, and the job asks for pseudonyms"
  if (asked === undefined) return "the published tables have pseudonyms, and the job asks for none"
  return standing.check === asked.check
    ? "the published tables have pseudonyms in other columns than the job asks for"
    : "the published tables have the pseudonyms of another key"
}

/** What is published, or is being put into place. */
export const standingIn = (layout: Layout) =>
  fileStep(() => {
    const manifest = readManifest(layout.next) ?? readManifest(layout.manifest)
    return manifest === undefined || manifest.version === 0 ? undefined : manifest
  })

/** Fails unless the rows of a job may stand beside what is published; it writes nothing. */
export const checkBeside = Effect.fnUntraced(function* (layout: Layout, asked: Pseudonyms | undefined) {
  const standing = yield* standingIn(layout)
  const why = standing && disagreement(standing.pseudonyms, asked?.policy)
  if (why !== undefined) return yield* new PseudonymsRefused({ message: why })
})

/** Fails unless all of what a job asks for can be made with these schemas. */
const checkColumns = (families: ReadonlyArray<RecordFamily>, asked: Pseudonyms | undefined) => {
  const [trouble] = columnTroubles(asked?.policy.columns ?? {}, families)
  if (trouble === undefined) return Effect.void
  const { table, column, why } = trouble
  const name = column === undefined ? table : `${table}.${column}`
  return Effect.fail(new PseudonymsRefused({ message: `${name} cannot have pseudonyms: ${why}` }))
}

/** Before rows are added to a version: a lost manifest may have been read off the files meanwhile. */
export const checkAgreement = ({ pseudonyms }: Store, current: Manifest) => {
  const why = current.version === 0 ? undefined : disagreement(current.pseudonyms, pseudonyms?.policy)
  return why === undefined ? Effect.void : Effect.fail(new PublishFailed({ message: why }))
}

// Where the keys of the pseudonyms of an output folder are, for commands that have no job: never a key. By
// the check value of each, because a version that is being replaced has another key than the next.

const Reference = Schema.Union([
  Schema.Struct({
    _tag: Schema.Literal("Env"),
    name: Schema.String,
    file: Schema.optionalKey(Schema.String),
  }),
  Schema.Struct({ _tag: Schema.Literal("File"), path: Schema.String }),
])
type Reference = typeof Reference.Type
const decode = Schema.decodeUnknownOption(Schema.fromJsonString(Schema.Record(Schema.String, Reference)))

type Places = Readonly<Record<string, Reference>>

const placesIn = (path: string): Places => {
  const found = existsSync(path) ? decode(readFileSync(path, "utf8")) : undefined
  return found?._tag === "Some" ? found.value : {}
}

/** Later commands may be started in another folder. */
const anywhere = (reference: SecretReference): Reference | undefined => {
  if (reference._tag === "Exec") return undefined
  if (reference._tag === "File") return { ...reference, path: resolve(reference.path) }
  return reference.file === undefined ? reference : { ...reference, file: resolve(reference.file) }
}

/** Before anything is published with the key. From then on, reports and logs are for the operator alone. */
export const keepKeyPlace = ({ layout, files, pseudonyms }: Store) =>
  fileStep(() => {
    const { policy, reference } = pseudonyms ?? {}
    const place = reference === undefined ? undefined : anywhere(reference)
    if (policy === undefined || place === undefined) return
    files.makeFolder(join(layout.root, "runs"), 0o700)
    const places: Places = { ...placesIn(layout.pseudonyms), [policy.check]: place }
    const text = `${JSON.stringify(places, null, 1)}\n`
    if (existsSync(layout.pseudonyms) && readFileSync(layout.pseudonyms, "utf8") === text) return
    files.replace(layout.pseudonyms, text, 0o600)
  })

/** Once no table has pseudonyms any more. */
export const dropKeyPlaces = ({ layout, files }: Store) => fileStep(() => files.remove(layout.pseudonyms))

/** Undefined if no run has said where the key with this check value is. */
export const keyPlace = (path: string, check: string): Effect.Effect<SecretReference | undefined> =>
  Effect.sync(() => placesIn(path)[check])

export interface PublisherOptions {
  readonly root: string
  /** Where the program's own record schemas are. */
  readonly schemasFolder: string
  /** Where the job's are, if it has any. */
  readonly ownSchemas?: string
  /** Which of the program's readings the job has; none if it is not given. */
  readonly readings?: Readings
  /** Whose gates and models these are; the job of each run that is published if it is not given. */
  readonly job?: string
  readonly gates?: Gates
  readonly freshness?: Freshness
  readonly models?: ReadonlyArray<SqlFile>
  readonly share: Share
  /** Which folders of Parquet a version has; as before if it is not given. */
  readonly parquet?: Store["parquet"]
  /** Earlier versions that stay restorable after a publication; 3 if it is not given. */
  readonly versionsKept?: number | undefined
  readonly toolVersion: string
  readonly pseudonyms?: Pseudonyms
}

/** A version costs the Parquet files that were replaced since: nothing, unless a run is published again. */
const versionsKeptDefault = 3

export const ownSchemasOf = ({ schemas }: Job): Pick<PublisherOptions, "ownSchemas"> =>
  schemas === undefined ? {} : { ownSchemas: join(schemas, "records") }

export const foldersOf = ({ root, schemasFolder, ownSchemas }: PublisherOptions): SchemaFolders => ({
  package: schemasFolder,
  own: ownSchemas,
  kept: layoutOf(root).schemas,
})

const storeWith = Effect.fnUntraced(function* (options: PublisherOptions, schemas: SchemasInForce) {
  const store: Store = {
    ...Struct.pick(options, ["toolVersion", "pseudonyms"]),
    ...(options.parquet && { parquet: options.parquet }),
    layout: layoutOf(options.root),
    modes: modesOf(options.share),
    files: yield* durableFiles,
    families: schemas.families,
    schemas,
    versionsKept: options.versionsKept ?? versionsKeptDefault,
  }
  return store
})

/** The store of an output folder as it is published, for verify and repair; with its key, if it has one. */
export const openStore = Effect.fnUntraced(function* (
  options: Omit<PublisherOptions, "pseudonyms">,
  key?: PseudonymKey,
) {
  const layout = layoutOf(options.root)
  const standing = yield* standingIn(layout)
  const policy = standing?.pseudonyms
  const pseudonyms = policy && { policy, ...(key && { key }) }
  const schemas = yield* schemasOfTables(foldersOf(options), standing ?? {})
  return yield* storeWith({ ...options, ...(pseudonyms && { pseudonyms }) }, schemas)
})

/** The schemas in force beside those that the next version continues from. */
const schemasBeside = Effect.fnUntraced(function* (options: PublisherOptions, listed: ListedSchemas) {
  const layout = layoutOf(options.root)
  const standing = yield* standingIn(layout)
  const named = yield* fileStep((): NamedSchemas => {
    if (standing === undefined) return {}
    const { schemas } = newestDerived({ layout }, standing)
    return { ...(schemas && { schemas }), ...Struct.pick(standing, ["schema_files"]) }
  })
  return yield* schemasWithKept(listed, layout.schemas, named)
})

/** To derive all rows again as a job asks: it may choose columns of a table that does not exist yet. */
export const openStoreAsked = Effect.fnUntraced(function* (
  options: PublisherOptions,
  listed?: ListedSchemas,
) {
  const own = listed ?? (yield* listedSchemas(foldersOf(options), options.readings))
  const schemas = yield* schemasBeside(options, own)
  yield* checkColumns(schemas.families, options.pseudonyms)
  return yield* storeWith(options, schemas)
})

/**
 * The store of a job: with the schemas of its own folders when it begins (`listed`), and of the output folder
 * when it publishes: a job beside it may have kept new ones, which must not be lost or written over.
 */
export const openStoreOfJob = Effect.fnUntraced(function* (options: PublisherOptions, listed: ListedSchemas) {
  const store = yield* openStoreAsked(options, listed)
  yield* checkBeside(store.layout, options.pseudonyms)
  yield* keepKeyPlace(store)
  return store
})
