/**
 * The record schemas of a folder, in the order of their file names. Two files that are in force together
 * must not claim the same table or `sub_family`: every record belongs to exactly one family.
 */
import { Effect, FileSystem } from "effect"
import { RecordSchemaInvalid, parseRecordSchema } from "./RecordSchema.ts"
import type { RecordFamily } from "./RecordSchema.ts"
import { readTextFile } from "../base/RegularFile.ts"
import { sha256Hex } from "../base/Sha256.ts"

/** Far larger than any schema of records. */
const bytesMax = 1_000_000

/** Tables of every version, with or without families. */
const ownTables = ["other_records", "rejected_records"]

const clashes = (
  families: ReadonlyArray<readonly [file: string, family: RecordFamily]>,
): ReadonlyArray<string> => {
  const owners = new Map<string, string>(ownTables.map((table) => [`table ${table}`, "the program itself"]))
  const troubles: Array<string> = []
  const claim = (file: string, what: string): void => {
    const owner = owners.get(what)
    if (owner === undefined) owners.set(what, file)
    else troubles.push(`${file}:1:1: ${what} belongs to ${owner} already`)
  }
  for (const [file, family] of families) {
    claim(file, `table ${family.table}`)
    for (const child of family.children) claim(file, `table ${child.table}`)
    for (const subFamily of family.subFamilies) claim(file, `${family.product} / ${subFamily}`)
  }
  return troubles
}

/** A schema's file as it is written, and the family that it describes. */
export interface ReadSchema {
  readonly path: string
  /** The file's name in its folder. */
  readonly name: string
  readonly text: string
  readonly family: RecordFamily
}

/**
 * All schemas of a folder, in the order of their files' names. A file that is not what `hashes` says of its
 * name is damaged, and left out.
 */
export const readRecordSchemas = Effect.fn("Records.readSchemas")(function* (
  folder: string,
  isSchema: (name: string) => boolean = (name) => name.endsWith(".yaml"),
  hashes: Readonly<Record<string, string>> = {},
) {
  const files = yield* FileSystem.FileSystem
  const unreadable = (path: string) => (cause: { readonly message: string }) =>
    new RecordSchemaInvalid({ message: `${path}:1:1: cannot be read: ${cause.message}` })
  const names = (yield* files.readDirectory(folder).pipe(Effect.mapError(unreadable(folder))))
    .filter(isSchema)
    .sort()
  const read: Array<ReadSchema> = []
  for (const name of names) {
    const path = `${folder}/${name}`
    const found = yield* Effect.result(readTextFile(path, bytesMax))
    const hash = hashes[name]
    if (hash !== undefined && (found._tag === "Failure" || sha256Hex(found.success) !== hash)) continue
    if (found._tag === "Failure") return yield* unreadable(path)({ message: found.failure })
    const text = found.success
    read.push({ path, name, text, family: yield* parseRecordSchema(path, text) })
  }
  return read as ReadonlyArray<ReadSchema>
})

/** Fails with every clash between schemas that are to be in force together. */
export const refuseClashes = (
  schemas: ReadonlyArray<ReadSchema>,
): Effect.Effect<void, RecordSchemaInvalid> => {
  const troubles = clashes(schemas.map(({ path, family }) => [path, family] as const))
  return troubles.length === 0
    ? Effect.void
    : Effect.fail(new RecordSchemaInvalid({ message: troubles.join("\n") }))
}

/** `folder` is where the `.yaml` files are; the caller knows, in the sources as in a bundle. */
export const loadRecordSchemas = Effect.fn("Records.loadSchemas")(function* (folder: string) {
  const schemas = yield* readRecordSchemas(folder)
  yield* refuseClashes(schemas)
  return schemas.map(({ family }) => family)
})
