/**
 * Whether a job's rows may stand beside those that are published: all rows of a folder name the customers,
 * or all of them have the same pseudonyms. Asked before a run starts anything, and before each publication.
 */
import { existsSync, readFileSync } from "node:fs"
import { join, resolve } from "node:path"
import { Effect, Schema } from "effect"
import type { Job } from "../jobs/Job.ts"
import type { SecretReference } from "../jobs/Scalars.ts"
import { describeReference } from "../jobs/Scalars.ts"
import { resolveReference } from "../jobs/Secrets.ts"
import type { RecordFamily } from "../records/RecordSchema.ts"
import { fileStep, readManifest } from "./Manifest.ts"
import type { Layout, Manifest } from "./Manifest.ts"
import { columnTroubles, inOrder, isSamePolicy, readPseudonymKey } from "./Treatments.ts"
import type { PseudonymKey, PseudonymPolicy } from "./Treatments.ts"
import { PublishFailed } from "./Publisher.ts"
import type { Pseudonyms, Store } from "./Store.ts"

/** The job's pseudonyms cannot be made here; nothing was started. */
export class PseudonymsRefused extends Schema.TaggedError<PseudonymsRefused>()("PseudonymsRefused", {
  message: Schema.String,
}) {}

export interface PseudonymsAsked {
  readonly key: PseudonymKey
  /** Where the key is. */
  readonly reference: SecretReference
  /** By record table. */
  readonly columns: Readonly<Record<string, ReadonlyArray<string>>>
}

/** What a job asks for, with its key. */
export const askedBy = Effect.fnUntraced(function* ({
  pseudonyms,
}: {
  readonly pseudonyms?: Pick<NonNullable<Job["pseudonyms"]>, "key" | "columns">
}) {
  if (pseudonyms === undefined) return undefined
  const { key: reference, columns } = pseudonyms
  const key = readPseudonymKey(yield* resolveReference(reference))
  if (key !== undefined) return { key, columns, reference } satisfies PseudonymsAsked as PseudonymsAsked
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

/** What a job asks for, if all of it can be made with these schemas. */
export const pseudonymsOf = Effect.fnUntraced(function* (
  families: ReadonlyArray<RecordFamily>,
  asked: PseudonymsAsked | undefined,
) {
  if (asked === undefined) return undefined
  const policy: PseudonymPolicy = { check: asked.key.check, columns: inOrder(asked.columns) }
  const [trouble] = columnTroubles(policy.columns, families)
  if (trouble !== undefined) {
    const { table, column, why } = trouble
    const name = column === undefined ? table : `${table}.${column}`
    return yield* new PseudonymsRefused({ message: `${name} cannot have pseudonyms: ${why}` })
  }
  const { key, reference } = asked
  return { policy, key, reference } satisfies Pseudonyms as Pseudonyms
})

/** The same for a job that is about to run: it must agree with what is published. */
export const pseudonymsForJob = Effect.fnUntraced(function* (
  standing: Manifest | undefined,
  families: ReadonlyArray<RecordFamily>,
  asked: PseudonymsAsked | undefined,
) {
  const pseudonyms = yield* pseudonymsOf(families, asked)
  if (standing === undefined) return pseudonyms
  const why = disagreement(standing.pseudonyms, pseudonyms?.policy)
  return why === undefined ? pseudonyms : yield* new PseudonymsRefused({ message: why })
})

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
  switch (reference._tag) {
    case "Env":
      return reference.file === undefined ? reference : { ...reference, file: resolve(reference.file) }
    case "File":
      return { ...reference, path: resolve(reference.path) }
    case "Exec":
      return undefined
  }
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
