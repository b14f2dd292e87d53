/**
 * Where the keys of the pseudonyms of an output folder are, for commands that have no job: never a key. By
 * the check value of each, because a version that is being replaced has another key than the next.
 */
import { existsSync, readFileSync } from "node:fs"
import { join, resolve } from "node:path"
import { Effect, Schema } from "effect"
import type { SecretReference } from "../jobs/Job.ts"
import { fileStep } from "./OutputFiles.ts"
import type { Store } from "./Store.ts"

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
