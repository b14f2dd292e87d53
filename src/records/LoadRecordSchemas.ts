/**
 * All record families of a folder, in the order of their file names. Two files must not claim the same
 * table or `sub_family`: every record belongs to exactly one family.
 */
import { Effect, FileSystem } from "effect"
import { RecordSchemaInvalid, parseRecordSchema } from "./RecordSchema.ts"
import type { RecordFamily } from "./RecordSchema.ts"
import { readTextFile } from "../foundation/RegularFile.ts"

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

/** `folder` is where the `.yaml` files are; the caller knows, in the sources as in a bundle. */
export const loadRecordSchemas = Effect.fn("Records.loadSchemas")(function* (folder: string) {
  const files = yield* FileSystem.FileSystem
  const unreadable = (path: string) => (cause: { readonly message: string }) =>
    new RecordSchemaInvalid({ message: `${path}:1:1: cannot be read: ${cause.message}` })
  const names = (yield* files.readDirectory(folder).pipe(Effect.mapError(unreadable(folder))))
    .filter((name) => name.endsWith(".yaml"))
    .sort()
  const families = yield* Effect.forEach(names, (name) =>
    Effect.gen(function* () {
      const path = `${folder}/${name}`
      const text = yield* readTextFile(path, bytesMax).pipe(
        Effect.mapError((message) => unreadable(path)({ message })),
      )
      return [path, yield* parseRecordSchema(path, text)] as const
    }),
  )
  const troubles = clashes(families)
  if (troubles.length > 0) return yield* new RecordSchemaInvalid({ message: troubles.join("\n") })
  return families.map(([, family]) => family)
})
